//! The object-store servers that `.ci/servers` starts.

/// A server on the loopback, with one bucket, `test`.
#[derive(Debug, Clone)]
pub struct Server {
    scheme: &'static str,
    endpoint: String,
}

/// The S3 server (SeaweedFS); `None`, said on stderr, if it was not started.
pub fn s3(what: &str) -> Option<Server> {
    find("GOODPUT_TEST_S3", "s3", what)
}

/// The Azure server (Azurite); `None`, said on stderr, if it was not started.
pub fn azure(what: &str) -> Option<Server> {
    find("GOODPUT_TEST_AZURE", "az", what)
}

fn find(variable: &str, scheme: &'static str, what: &str) -> Option<Server> {
    #[expect(clippy::disallowed_methods, reason = "tests find servers by a variable of the environment")]
    if let Ok(endpoint) = std::env::var(variable) {
        assert!(endpoint.starts_with("http://127.0.0.1:"), "{variable}: tests do not leave the machine");
        return Some(Server { scheme, endpoint });
    }
    #[expect(clippy::print_stderr, reason = "a test that skips says so")]
    {
        eprintln!("skipped: {what} wants {variable}; run `.ci/servers start` and `eval \"$(.ci/servers env)\"`");
    }
    None
}

impl Server {
    /// Where it answers.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The URL of a place in its bucket.
    pub fn url(&self, path: &str) -> String {
        format!("{}://test/{path}", self.scheme)
    }

    /// The settings for it, under the names that its users know.
    pub fn settings(&self) -> Vec<(String, String)> {
        self.settings_at(&self.endpoint)
    }

    /// The settings for it behind another address, `http://127.0.0.1:PORT`.
    pub fn settings_at(&self, address: &str) -> Vec<(String, String)> {
        let (host, account) = self.endpoint.rsplit_once('/').unwrap_or_default();
        let settings = match self.scheme {
            "s3" => vec![
                ("AWS_ENDPOINT_URL", address.to_owned()),
                ("AWS_ALLOW_HTTP", "true".to_owned()),
                ("AWS_ACCESS_KEY_ID", "goodput-test-key".to_owned()),
                ("AWS_SECRET_ACCESS_KEY", "goodput-test-secret".to_owned()),
            ],
            _ => vec![
                ("AZURE_STORAGE_ENDPOINT", format!("{}/{account}", address.trim_end_matches(&format!("/{account}")))),
                ("AZURE_ALLOW_HTTP", "true".to_owned()),
                ("AZURE_STORAGE_ACCOUNT_NAME", account.to_owned()),
                ("AZURE_STORAGE_ACCOUNT_KEY", AZURITE_KEY.to_owned()),
            ],
        };
        debug_assert!(host.starts_with("http:"));
        settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// The key of the emulator's account, which is public.
const AZURITE_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
