//! Settings of stores as their users know them, and what must be said of them before a store is asked for anything.
//!
//! A setting that is missing or contradicts another is an error here, which names it. No value of a setting is ever
//! shown but addresses and regions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig};
use url::Url;

use crate::LocationProblem;
use crate::client::{Connector, Secrets};
use crate::hints::{Access, Provider};

/// How long a store may fail, all tries of one request together. Long enough for a server that is started again.
const RETRY_TIMEOUT: Duration = Duration::from_secs(120);

/// How often one request is tried again: the time runs out first, unless a store answers at once.
const MAX_RETRIES: usize = 40;

/// How long nothing may arrive. There is no limit for a whole request: an object may be large, and a network slow.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Names by which the users of a cloud know a setting, and what `object_store` calls it.
const ALIASES: [(&str, &str); 2] =
    [("azure_storage_account", "azure_storage_account_name"), ("azure_storage_key", "azure_storage_account_key")];

/// Settings whose values are never shown. The address of a proxy may hold a password.
const SECRETS: [&str; 14] = [
    "secret_access_key",
    "session_token",
    "token",
    "sse_customer_key_base64",
    "service_account_key",
    "storage_account_key",
    "storage_access_key",
    "storage_master_key",
    "storage_sas_key",
    "storage_sas_token",
    "storage_token",
    "client_secret",
    "fabric_session_token",
    "proxy_url",
];

/// Settings of stores, in the names that their users know: `aws_access_key_id`, `google_service_account`,
/// `azure_storage_account_name`, `aws_endpoint_url`, `allow_http`. Names that a store does not know are passed over.
#[derive(Clone, Default)]
pub struct StoreOptions(Vec<(String, String)>);

impl StoreOptions {
    /// Takes the settings, such as the environment's; names may be in upper or lower case. An empty value is none.
    pub fn new(settings: impl IntoIterator<Item = (String, String)>) -> StoreOptions {
        let settings = settings.into_iter().filter(|(_, value)| !value.is_empty());
        let named = |name: String| {
            let name = name.to_ascii_lowercase();
            ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, known)| (*known).to_owned())
        };
        let mut settings: Vec<_> = settings.map(|(name, value)| (named(name), value)).collect();
        // Where two names mean the same, the outcome must not depend on the order of the environment.
        settings.sort();
        StoreOptions(settings)
    }

    /// The first of some names that is set.
    fn get(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.0.iter().find(|(set, _)| set == name).map(|(_, value)| value.as_str()))
    }

    fn has(&self, names: &[&str]) -> bool {
        self.get(names).is_some()
    }

    fn is_on(&self, names: &[&str]) -> bool {
        self.get(names)
            .is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "on" | "yes" | "y"))
    }

    /// Values that are never shown.
    fn secrets(&self) -> Secrets {
        let is_secret = |name: &str| {
            let rest =
                ["aws_", "google_", "azure_"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
            SECRETS.contains(&rest) || SECRETS.contains(&name)
        };
        Secrets::new(self.0.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.clone()))
    }

    /// A duration such as `30s`, under its name with the prefix of a provider or without.
    fn duration(&self, prefix: &str, name: &str, default: Duration) -> Result<Duration, LocationProblem> {
        match self.prefixed(prefix, name) {
            None => Ok(default),
            Some((full, value)) => humantime::parse_duration(value)
                .map_err(|_| wrong(&full, &format!("`{value}` is not a duration"), "write it as `30s` or `2m`")),
        }
    }

    fn prefixed(&self, prefix: &str, name: &str) -> Option<(String, &str)> {
        let full = format!("{prefix}{name}");
        self.get(&[&full, name]).map(|value| (full.to_ascii_uppercase(), value))
    }

    /// How a request is tried again: `aws_retry_timeout` and `aws_max_retries`, and so on.
    fn retries(&self, prefix: &str) -> Result<RetryConfig, LocationProblem> {
        let max_retries = match self.prefixed(prefix, "max_retries") {
            None => MAX_RETRIES,
            Some((full, value)) => {
                value.parse().map_err(|_| wrong(&full, &format!("`{value}` is not a number"), "write it as `10`"))?
            }
        };
        Ok(RetryConfig {
            // The next pause is drawn from between the first and `base` times the one before: with a base of 2 pauses
            // hardly grow, and ten tries are over in seconds.
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(10),
                base: 3.0,
            },
            max_retries,
            retry_timeout: self.duration(prefix, "retry_timeout", RETRY_TIMEOUT)?,
        })
    }

    fn connector(&self, prefix: &str) -> Result<Connector, LocationProblem> {
        Ok(Connector::new(self.duration(prefix, "read_timeout", READ_TIMEOUT)?, self.secrets()))
    }
}

impl fmt::Debug for StoreOptions {
    /// The values may be secrets: they are never shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StoreOptions({} settings)", self.0.len())
    }
}

/// A store that is set up; nothing has been asked of it yet.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) root: Path,
    pub(crate) access: Access,
}

/// Sets up the store of a URL.
pub(crate) fn open(url: &Url, options: &StoreOptions) -> Result<Opened, LocationProblem> {
    if url.password().is_some() {
        let hint =
            "set them in the environment: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or those of your cloud";
        return Err(LocationProblem::setting("credentials do not belong into a URL", hint));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(LocationProblem::setting(
            "it has a query or a fragment",
            "in a URL, write a `?` of a name as `%3F` and a `#` as `%23`; a signature belongs into the environment",
        ));
    }
    let is_known = ["file", "memory", "s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "https"];
    if !is_known.contains(&url.scheme()) {
        return Err(unknown_store());
    }
    let (scheme, root) = ObjectStoreScheme::parse(url)
        .map_err(|error| LocationProblem::Setup(object_store::Error::from(error).to_string()))?;
    let (store, access) = match scheme {
        ObjectStoreScheme::Local => (Arc::new(LocalFileSystem::new()) as _, Access::here()),
        ObjectStoreScheme::Memory => (Arc::new(InMemory::new()) as _, Access::here()),
        ObjectStoreScheme::AmazonS3 => s3(url, options)?,
        ObjectStoreScheme::GoogleCloudStorage => gcs(url, options)?,
        ObjectStoreScheme::MicrosoftAzure => azure(url, options)?,
        _ => return Err(unknown_store()),
    };
    Ok(Opened { store, root, access })
}

fn unknown_store() -> LocationProblem {
    let hint = "write a path, or a URL that begins with `s3://`, `gs://`, `az://` or `file://`";
    LocationProblem::setting("there is no such kind of store", hint)
}

type Built = (Arc<dyn ObjectStore>, Access);

fn s3(url: &Url, options: &StoreOptions) -> Result<Built, LocationProblem> {
    let endpoint = options.get(&["aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint"]);
    let access = Access::new(Provider::S3, url, endpoint, options.get(&["aws_region", "aws_default_region"]));
    plain_http(endpoint, options.is_on(&["aws_allow_http", "allow_http"]), "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP")?;
    if endpoint.is_none() && access.region.is_none() && url.scheme().starts_with("s3") {
        let hint = "set `AWS_REGION` to the bucket's region, or `AWS_ENDPOINT_URL` for a store that is not Amazon's";
        return Err(LocationProblem::setting("`AWS_REGION` is not set", hint));
    }
    let (key, secret) = (options.has(&["aws_access_key_id"]), options.has(&["aws_secret_access_key"]));
    let half = match (key, secret) {
        (true, false) => Some(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")),
        (false, true) => Some(("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID")),
        _ => None,
    };
    if let Some((given, missing)) = half {
        let problem = format!("`{given}` is set and `{missing}` is not");
        return Err(LocationProblem::setting(problem, format!("set `{missing}` as well")));
    }
    let web = options.has(&["aws_web_identity_token_file"]) && options.has(&["aws_role_arn"]);
    let container = options.has(&["aws_container_credentials_relative_uri"])
        || (options.has(&["aws_container_credentials_full_uri"])
            && options.has(&["aws_container_authorization_token_file"]));
    let given = key || web || container || options.is_on(&["aws_skip_signature", "skip_signature"]);
    if !given && options.has(&["aws_profile"]) {
        return Err(LocationProblem::setting(
            "`AWS_PROFILE` is set, and profiles are not read",
            "export its credentials: `eval \"$(aws configure export-credentials --format env)\"`; \
             or unset `AWS_PROFILE` to use the role of this machine",
        ));
    }
    if !given && options.is_on(&["aws_ec2_metadata_disabled"]) {
        let hint = "set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`";
        return Err(LocationProblem::setting("no credentials are set, and `AWS_EC2_METADATA_DISABLED` is", hint));
    }
    let mut builder = AmazonS3Builder::new()
        .with_url(url.as_str())
        .with_client_options(client_options())
        .with_http_connector(options.connector("aws_")?)
        .with_retry(options.retries("aws_")?);
    for (name, value) in &options.0 {
        if let Ok(name) = name.parse() {
            builder = builder.with_config(name, value);
        }
    }
    let secrets = options.secrets();
    if !given {
        let asking = builder.clone().with_retry(machine_retries()).build().map_err(|error| setup(error, &secrets))?;
        builder = builder.with_credentials(Arc::clone(asking.credentials()));
    }
    let store = builder.build().map_err(|error| setup(error, &secrets))?;
    Ok((Arc::new(store), access.with_credentials(given)))
}

fn azure(url: &Url, options: &StoreOptions) -> Result<Built, LocationProblem> {
    let endpoint = options.get(&["azure_storage_endpoint", "azure_endpoint"]);
    let access = Access::new(Provider::Azure, url, endpoint, None);
    let emulator = options.is_on(&["azure_storage_use_emulator"]);
    let allowed = emulator || options.is_on(&["azure_allow_http", "allow_http"]);
    plain_http(endpoint, allowed, "AZURE_STORAGE_ENDPOINT", "AZURE_ALLOW_HTTP")?;
    // The account may be part of the URL: `abfss://container@account.dfs.core.windows.net`, `https://account.blob...`.
    let in_url = !url.username().is_empty() || url.scheme() == "https";
    if !in_url && !emulator && !options.has(&["azure_storage_account_name"]) {
        let hint = "set `AZURE_STORAGE_ACCOUNT_NAME`; `AZURE_STORAGE_CONNECTION_STRING` is not read";
        return Err(LocationProblem::setting("`AZURE_STORAGE_ACCOUNT_NAME` is not set", hint));
    }
    let tenant = ["azure_tenant_id", "azure_storage_tenant_id", "azure_authority_id", "azure_storage_authority_id"];
    let application = options.has(&tenant) && options.has(&["azure_client_id", "azure_storage_client_id"]);
    let proof = ["azure_client_secret", "azure_storage_client_secret", "azure_federated_token_file"];
    let keys = [
        "azure_storage_account_key",
        "azure_storage_access_key",
        "azure_storage_master_key",
        "azure_storage_sas_key",
        "azure_storage_sas_token",
        "azure_storage_token",
        "azure_fabric_session_token",
    ];
    let switches = ["azure_skip_signature", "skip_signature", "azure_use_azure_cli"];
    let given = emulator || options.has(&keys) || (application && options.has(&proof)) || options.is_on(&switches);
    let mut builder = MicrosoftAzureBuilder::new()
        .with_url(url.as_str())
        .with_client_options(client_options())
        .with_http_connector(options.connector("azure_")?)
        .with_retry(options.retries("azure_")?);
    for (name, value) in &options.0 {
        if let Ok(name) = name.parse() {
            builder = builder.with_config(name, value);
        }
    }
    let secrets = options.secrets();
    if !given {
        let asking = builder.clone().with_retry(machine_retries()).build().map_err(|error| setup(error, &secrets))?;
        builder = builder.with_credentials(Arc::clone(asking.credentials()));
    }
    let store = builder.build().map_err(|error| setup(error, &secrets))?;
    Ok((Arc::new(store), access.with_credentials(given)))
}

fn gcs(url: &Url, options: &StoreOptions) -> Result<Built, LocationProblem> {
    let access = Access::new(Provider::Gcs, url, options.get(&["google_base_url"]), None);
    let keys = [
        "google_service_account",
        "google_service_account_path",
        "google_service_account_key",
        "google_application_credentials",
    ];
    let given = options.has(&keys) || options.is_on(&["google_skip_signature", "skip_signature"]);
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_url(url.as_str())
        .with_client_options(client_options().with_allow_http(true))
        .with_http_connector(options.connector("google_")?)
        .with_retry(options.retries("google_")?);
    for (name, value) in &options.0 {
        if let Ok(name) = name.parse() {
            builder = builder.with_config(name, value);
        }
    }
    let secrets = options.secrets();
    if !given {
        // Either the file that `gcloud auth application-default login` leaves, or the role of this machine.
        let asking = builder.clone().with_retry(machine_retries()).build().map_err(|error| setup(error, &secrets))?;
        builder = builder.with_credentials(Arc::clone(asking.credentials()));
    }
    let store = builder.build().map_err(|error| setup(error, &secrets))?;
    Ok((Arc::new(store), access.with_credentials(given)))
}

/// A time limit for whole requests would be one for the size of objects: what does not move is noticed by the connector.
fn client_options() -> ClientOptions {
    ClientOptions::new().with_timeout_disabled()
}

/// Where no credentials are set, the machine is asked for those of its role. Most machines have none: that must not take
/// minutes to find out.
fn machine_retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 3, retry_timeout: Duration::from_secs(10) }
}

fn plain_http(endpoint: Option<&str>, allowed: bool, setting: &str, switch: &str) -> Result<(), LocationProblem> {
    match endpoint {
        Some(address) if !allowed && address.to_ascii_lowercase().starts_with("http://") => {
            let problem = format!("`{setting}` is plain http, which is not allowed unless `{switch}` is set");
            Err(LocationProblem::setting(problem, format!("set `{switch}=true`, or use an address with https")))
        }
        _ => Ok(()),
    }
}

fn wrong(setting: &str, problem: &str, hint: &str) -> LocationProblem {
    LocationProblem::setting(format!("`{setting}`: {problem}"), hint)
}

/// What a builder refuses, without the secrets that it may quote.
fn setup(error: object_store::Error, secrets: &Secrets) -> LocationProblem {
    LocationProblem::Setup(secrets.hidden(&crate::hints::said(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Location, StoreError};

    fn options(settings: &[(&str, &str)]) -> StoreOptions {
        StoreOptions::new(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    /// What is said of a location, with the hint; `usable` if it is.
    fn said(url: &str, settings: &[(&str, &str)]) -> String {
        match Location::parse(url, std::path::Path::new("/"), &options(settings)) {
            Ok(_) => "usable".to_owned(),
            Err(error) => {
                let StoreError::Location { source, .. } = &error else { return error.to_string() };
                format!("{error}: {source} | {}", error.hint().unwrap_or_default())
            }
        }
    }

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "hush-hush")];

    #[test]
    fn settings_of_s3() {
        let with = |more: &[(&'static str, &'static str)]| [&KEYS[..], more].concat();
        let cases: [(Vec<(&str, &str)>, &str); 14] = [
            (with(&[("AWS_REGION", "eu-west-1")]), "usable"),
            (with(&[("AWS_DEFAULT_REGION", "eu-west-1")]), "usable"),
            (with(&[("AWS_ENDPOINT_URL", "https://store.example")]), "usable"),
            (with(&[("AWS_ENDPOINT_URL_S3", "https://store.example")]), "usable"),
            (with(&[]), "`AWS_REGION` is not set"),
            (with(&[("AWS_REGION", "")]), "`AWS_REGION` is not set"),
            (with(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:9")]), "`AWS_ALLOW_HTTP`"),
            (with(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:9"), ("AWS_ALLOW_HTTP", "true")]), "usable"),
            (with(&[("AWS_ENDPOINT", "http://127.0.0.1:9"), ("ALLOW_HTTP", "1")]), "usable"),
            (vec![("AWS_REGION", "r"), KEYS[0]], "`AWS_SECRET_ACCESS_KEY` is not"),
            (vec![("AWS_REGION", "r"), KEYS[1]], "`AWS_ACCESS_KEY_ID` is not"),
            (vec![("AWS_REGION", "r"), ("AWS_PROFILE", "dev")], "aws configure export-credentials --format env"),
            (with(&[("AWS_REGION", "r"), ("AWS_PROFILE", "dev")]), "usable"),
            (vec![("AWS_REGION", "r"), ("AWS_EC2_METADATA_DISABLED", "true")], "set `AWS_ACCESS_KEY_ID` and"),
        ];
        for (settings, expected) in cases {
            let said = said("s3://bucket/a", &settings);
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains("hush-hush"), "{said}");
        }
    }

    #[test]
    fn settings_of_clients() {
        let with = |more: (&'static str, &'static str)| [&KEYS[..], &[("AWS_REGION", "r"), more]].concat();
        let cases = [
            (("AWS_RETRY_TIMEOUT", "5s"), "usable"),
            (("AWS_RETRY_TIMEOUT", "soon"), "`AWS_RETRY_TIMEOUT`: `soon` is not a duration"),
            (("AWS_MAX_RETRIES", "3"), "usable"),
            (("AWS_MAX_RETRIES", "few"), "`AWS_MAX_RETRIES`: `few` is not a number"),
            (("AWS_READ_TIMEOUT", "1m"), "usable"),
            (("AWS_TIMEOUT", "5m"), "usable"),
            (("AWS_TIMEOUT", "long"), "failed to parse \"long\" as Duration"),
            (("AWS_CONNECT_TIMEOUT", "2s"), "usable"),
        ];
        for (setting, expected) in cases {
            let said = said("s3://bucket", &with(setting));
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn settings_of_azure_and_gcs() {
        let key = "aHVzaC1odXNo";
        type Settings<'a> = Vec<(&'a str, &'a str)>;
        let cases: [(&str, Settings<'_>, &str); 11] = [
            (
                "az://container/a",
                vec![("AZURE_STORAGE_ACCOUNT_NAME", "a"), ("AZURE_STORAGE_ACCOUNT_KEY", key)],
                "usable",
            ),
            ("az://container/a", vec![("AZURE_STORAGE_ACCOUNT", "a"), ("AZURE_STORAGE_KEY", key)], "usable"),
            ("az://container/a", vec![("AZURE_STORAGE_KEY", key)], "`AZURE_STORAGE_ACCOUNT_NAME` is not set"),
            ("abfss://container@a.dfs.core.windows.net/a", vec![("AZURE_STORAGE_KEY", key)], "usable"),
            (
                "az://container/a",
                vec![("AZURE_STORAGE_ACCOUNT", "a"), ("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:9/a")],
                "`AZURE_ALLOW_HTTP`",
            ),
            ("az://container/a", vec![("AZURE_STORAGE_USE_EMULATOR", "true")], "usable"),
            // No emulator speaks the interface of Google's store that `object_store` uses: gs:// is tested as far as
            // its settings go.
            ("gs://bucket/a", vec![("GOOGLE_SERVICE_ACCOUNT_KEY", GCS_KEY)], "usable"),
            ("gs://bucket/a", vec![("GOOGLE_SERVICE_ACCOUNT_KEY", "\"hush-hush\"")], "cannot be set up"),
            ("gs://bucket/a", vec![("GOOGLE_SERVICE_ACCOUNT", "/no/such/file.json")], "/no/such/file.json"),
            ("gs://bucket/a", vec![("GOOGLE_APPLICATION_CREDENTIALS", "/no/such/file.json")], "/no/such/file.json"),
            (
                "gs://bucket/a",
                vec![("GOOGLE_SERVICE_ACCOUNT_KEY", GCS_KEY), ("GOOGLE_BASE_URL", "http://127.0.0.1:9")],
                "usable",
            ),
        ];
        for (url, settings, expected) in cases {
            let said = said(url, &settings);
            assert!(said.contains(expected), "{url}: {said}");
            assert!(!said.contains("hush-hush") && !said.contains(key), "{said}");
        }
    }

    const GCS_KEY: &str = r#"{"private_key":"","private_key_id":"","client_email":"","disable_oauth":true}"#;

    #[test]
    fn urls_hold_no_secrets() {
        let cases = [
            ("s3://key:hush-hush@bucket/a", "credentials do not belong into a URL"),
            ("https://a.blob.core.windows.net/container?sig=hush-hush", "a signature belongs into the environment"),
            ("s3://bucket/a#1", "`%23`"),
            ("ftp://host/a", "there is no such kind of store"),
            ("http://host/a", "there is no such kind of store"),
            ("https://host/a", "there is no such kind of store"),
            ("s3://bucket/a//b", "contained empty path segment"),
        ];
        for (url, expected) in cases {
            let said = said(url, &[("AWS_REGION", "r")]);
            assert!(said.contains(expected), "{said}");
            assert!(!said.contains("hush-hush"), "{said}");
        }
    }

    #[test]
    fn options_show_no_value() {
        let shown = format!("{:?}", options(&KEYS));
        assert_eq!(shown, "StoreOptions(2 settings)");
    }
}
