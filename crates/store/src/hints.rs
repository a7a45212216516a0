//! What to do about an error of a store: which setting to look at.

use std::error::Error;

use url::Url;

/// Whose store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// This machine.
    Here,
    S3,
    Azure,
    Gcs,
}

/// How a store is reached, as far as it may be told.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    provider: Provider,
    bucket: String,
    endpoint: Option<String>,
    pub(crate) region: Option<String>,
    /// Whether credentials are set; else those of the machine's role are asked for.
    has_credentials: bool,
}

impl Access {
    /// A store of this machine.
    pub(crate) fn here() -> Access {
        Access { provider: Provider::Here, bucket: String::new(), endpoint: None, region: None, has_credentials: true }
    }

    pub(crate) fn new(provider: Provider, url: &Url, endpoint: Option<&str>, region: Option<&str>) -> Access {
        // In the URLs of Azure, the host may be the account and the container stands before it.
        let bucket = if url.username().is_empty() { url.host_str().unwrap_or_default() } else { url.username() };
        Access {
            provider,
            bucket: bucket.to_owned(),
            endpoint: endpoint.map(without_credentials),
            region: region.map(str::to_owned),
            has_credentials: true,
        }
    }

    pub(crate) fn with_credentials(self, has_credentials: bool) -> Access {
        Access { has_credentials, ..self }
    }

    /// What to do about an error, if there is something to say.
    pub(crate) fn hint(&self, error: &object_store::Error) -> Option<String> {
        let names = match self.provider {
            Provider::Here => return None,
            Provider::S3 => &S3,
            Provider::Azure => &AZURE,
            Provider::Gcs => &GCS,
        };
        let said = said(error);
        if !self.has_credentials && MACHINE.iter().any(|part| said.contains(part)) {
            return Some(format!(
                "no credentials are set, and this machine has no role that gives some: set {}",
                names.credentials
            ));
        }
        // Azure has this message for more than one code.
        if said.contains("Server failed to authenticate the request") {
            return Some(format!("the secret is wrong: check {}", names.secret));
        }
        if let Some(hint) = code(&said).and_then(|code| self.hint_for(code, names)) {
            return Some(hint);
        }
        match status(&said) {
            Some(301 | 307) => Some(self.region_hint()),
            Some(401 | 403) => {
                Some(format!("the store refuses these credentials: check {}, and what they may do", names.credentials))
            }
            Some(429 | 500..) => Some("the store failed each time that it was asked: run again later".to_owned()),
            Some(_) => None,
            None if said.contains("incorrectly configured region") => Some(self.region_hint()),
            None if said.contains("error sending request") || said.contains(crate::client::STALLED) => Some(format!(
                "{} was asked again and again and did not answer: check {} and the network, or run again later",
                self.endpoint.as_deref().unwrap_or("the store"),
                names.endpoint
            )),
            None => None,
        }
    }

    fn hint_for(&self, code: &str, names: &Names) -> Option<String> {
        let hint = match code {
            _ if NO_BUCKET.contains(&code) => format!(
                "there is no {} `{}` at {}: check the URL and {}",
                names.bucket,
                self.bucket,
                self.endpoint.as_deref().unwrap_or("the provider"),
                names.endpoint
            ),
            "SignatureDoesNotMatch" => format!("the secret is wrong: check {}", names.secret),
            "InvalidAccessKeyId" => "there is no such key: check `AWS_ACCESS_KEY_ID`".to_owned(),
            "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => {
                "the session has ended: get new credentials, of which `AWS_SESSION_TOKEN` is a part".to_owned()
            }
            "AuthorizationHeaderMalformed" | "PermanentRedirect" | "IllegalLocationConstraintException" => {
                self.region_hint()
            }
            "RequestTimeTooSkewed" => "the clock of this machine is wrong".to_owned(),
            "AccessDenied" | "AuthorizationPermissionMismatch" | "AuthorizationFailure" => {
                format!("these credentials may not do this in {} `{}`: ask its owner", names.bucket, self.bucket)
            }
            _ => return None,
        };
        Some(hint)
    }

    fn region_hint(&self) -> String {
        let region = self.region.as_deref().unwrap_or("us-east-1");
        format!("the bucket lies in another region than `{region}`: set `AWS_REGION`")
    }
}

/// What the settings of a provider are called.
struct Names {
    credentials: &'static str,
    secret: &'static str,
    endpoint: &'static str,
    bucket: &'static str,
}

const S3: Names = Names {
    credentials: "`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`",
    secret: "`AWS_SECRET_ACCESS_KEY`",
    endpoint: "`AWS_ENDPOINT_URL`",
    bucket: "bucket",
};

const AZURE: Names = Names {
    credentials: "`AZURE_STORAGE_ACCOUNT_KEY` or `AZURE_STORAGE_SAS_TOKEN`",
    secret: "`AZURE_STORAGE_ACCOUNT_KEY`",
    endpoint: "`AZURE_STORAGE_ENDPOINT`",
    bucket: "container",
};

const GCS: Names = Names {
    credentials: "`GOOGLE_APPLICATION_CREDENTIALS` or `GOOGLE_SERVICE_ACCOUNT_KEY`",
    secret: "`GOOGLE_APPLICATION_CREDENTIALS`",
    endpoint: "`GOOGLE_BASE_URL`",
    bucket: "bucket",
};

/// How stores say that there is no such bucket.
const NO_BUCKET: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];

/// Whether an error is of a bucket that does not exist.
pub(crate) fn is_without_bucket(error: &object_store::Error) -> bool {
    code(&said(error)).is_some_and(|code| NO_BUCKET.contains(&code))
}

/// Parts of the addresses at which a machine is asked for its role's credentials.
const MACHINE: [&str; 5] =
    ["/latest/api/token", "/latest/meta-data", "/metadata/identity", "computeMetadata", "169.254.169.254"];

/// An error with its causes. `object_store` says no status in any other way.
pub(crate) fn said(error: &object_store::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Most repeat their causes.
        if !said.contains(&text) {
            said.push_str(": ");
            said.push_str(&text);
        }
        cause = error.source();
    }
    said
}

/// Whether a request was tried again as often or as long as the settings allow.
pub(crate) fn is_exhausted(error: &object_store::Error) -> bool {
    said(error).contains("max_retries: ")
}

/// The code in the answer of a store, `<Code>NoSuchBucket</Code>`.
fn code(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("<Code>")?;
    Some(rest.split_once("</Code>")?.0)
}

fn status(said: &str) -> Option<u16> {
    let (_, rest) = said.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// An address may be shown, but not with a password.
fn without_credentials(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else { return address.to_owned() };
    // Both fail for an address that cannot have them.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn each_answer_names_its_setting() {
        let url = Url::parse("s3://fleet/telemetry").unwrap();
        let access = Access::new(Provider::S3, &url, Some("http://me:hush@127.0.0.1:9/"), Some("eu-west-1"));
        let refused = "Server returned non-2xx status code: 403 Forbidden: ";
        let cases = [
            (
                "status code: 404 Not Found: <Error><Code>NoSuchBucket</Code>",
                Some("no bucket `fleet` at http://127.0.0.1:9"),
            ),
            (&format!("{refused}<Code>SignatureDoesNotMatch</Code>"), Some("`AWS_SECRET_ACCESS_KEY`")),
            (&format!("{refused}<Code>InvalidAccessKeyId</Code>"), Some("`AWS_ACCESS_KEY_ID`")),
            (&format!("{refused}<Code>AccessDenied</Code>"), Some("may not do this in bucket `fleet`")),
            (refused, Some("`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`")),
            ("status code: 400 Bad Request: <Code>ExpiredToken</Code>", Some("`AWS_SESSION_TOKEN`")),
            ("status code: 400 Bad Request: <Code>AuthorizationHeaderMalformed</Code>", Some("than `eu-west-1`")),
            ("this normally indicates an incorrectly configured region", Some("`AWS_REGION`")),
            ("status code: 503 Service Unavailable: ", Some("run again later")),
            ("HTTP error: error sending request", Some("`AWS_ENDPOINT_URL`")),
            ("status code: 404 Not Found: <Code>NoSuchKey</Code>", None),
            ("something else", None),
        ];
        for (text, expected) in cases {
            let hint = access.hint(&answered(text));
            match expected {
                Some(expected) => {
                    assert!(hint.as_deref().is_some_and(|hint| hint.contains(expected)), "{text}: {hint:?}")
                }
                None => assert_eq!(hint, None, "{text}"),
            }
            assert!(!hint.unwrap_or_default().contains("hush"), "{text}");
        }
        let asking = answered("Error performing PUT http://169.254.169.254/latest/api/token - error sending request");
        let hint = access.with_credentials(false).hint(&asking);
        assert!(hint.as_deref().is_some_and(|hint| hint.contains("no credentials are set")), "{hint:?}");
        assert_eq!(Access::here().hint(&answered("status code: 403")), None);
    }
}
