//! What is said when a store refuses, or is not there.

use goodput_store::{Location, StoreError};
use goodput_testkit::servers::{self, Server};

use crate::sites::{at, new_name};

/// Settings with some of them replaced, and few tries.
fn with(server: &Server, changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut settings = server.settings();
    let few = [("AWS_MAX_RETRIES", "2"), ("AZURE_MAX_RETRIES", "2")];
    for (name, value) in few.iter().chain(changes) {
        settings.retain(|(other, _)| other != name);
        settings.push(((*name).to_owned(), (*value).to_owned()));
    }
    settings
}

/// Reads, lists and writes; all must fail, and the message with its causes and hint is looked at.
async fn refused(location: &Location, secret: &str, expected: &[&str]) {
    let path = location.join("a").root().clone();
    let errors = [
        location.list().await.map(|_| ()).unwrap_err(),
        location.write(&path, "x".into()).await.unwrap_err(),
        location.create(&path, "x".into()).await.map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        let said = said(&error);
        for part in expected {
            assert!(said.contains(part), "`{part}` is missing: {said}");
        }
        assert!(!said.contains(secret), "{said}");
        assert!(!format!("{error:?} {location:?}").contains(secret), "{error:?}");
    }
}

fn said(error: &StoreError) -> String {
    let mut said = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        said.push_str(&format!("\n  {error}"));
        cause = error.source();
    }
    said.push_str(&format!("\nhint: {}", error.hint().unwrap_or("none")));
    said
}

#[tokio::test]
async fn a_wrong_secret_is_named_and_never_shown() {
    let secret = "hush-hush-hush-hush";
    if let Some(server) = servers::s3("a wrong secret of S3") {
        let location = at(&server.url(&new_name()), with(&server, &[("AWS_SECRET_ACCESS_KEY", secret)]));
        refused(&location, secret, &["403", "hint: the secret is wrong: check `AWS_SECRET_ACCESS_KEY`"]).await;
        let location = at(&server.url(&new_name()), with(&server, &[("AWS_ACCESS_KEY_ID", "nobody")]));
        refused(&location, "goodput-test-secret", &["403", "check `AWS_ACCESS_KEY_ID`"]).await;
    }
    if let Some(server) = servers::azure("a wrong secret of Azure") {
        let secret = "aHVzaC1odXNoLWh1c2gtaHVzaC1odXNo";
        let location = at(&server.url(&new_name()), with(&server, &[("AZURE_STORAGE_ACCOUNT_KEY", secret)]));
        refused(&location, secret, &["403", "check `AZURE_STORAGE_ACCOUNT_KEY`"]).await;
    }
}

#[tokio::test]
async fn a_session_token_that_a_store_quotes_is_never_shown() {
    let Some(server) = servers::s3("a wrong session") else { return };
    let token = "hush-hush-token";
    let location = at(&server.url(&new_name()), with(&server, &[("AWS_SESSION_TOKEN", token)]));
    refused(&location, token, &["hint: "]).await;
}

#[tokio::test]
async fn a_missing_bucket_is_named() {
    if let Some(server) = servers::s3("a missing bucket") {
        let location = at("s3://no-such-bucket/a", with(&server, &[]));
        let expected = format!("hint: there is no bucket `no-such-bucket` at {}", server.endpoint());
        refused(&location, "goodput-test-secret", &["404", &expected, "`AWS_ENDPOINT_URL`"]).await;
        // What is read is then missing as well, and must not pass for an object that is not there.
        let error = location.read(location.root()).await.unwrap_err();
        assert!(said(&error).contains("no bucket `no-such-bucket`"), "{}", said(&error));
    }
    if let Some(server) = servers::azure("a missing container") {
        let location = at("az://no-such-container/a", with(&server, &[]));
        refused(&location, "==", &["404", "hint: there is no container `no-such-container`"]).await;
        let error = location.read(location.root()).await.unwrap_err();
        assert!(said(&error).contains("no container `no-such-container`"), "{}", said(&error));
    }
}

/// Nothing listens on the discard port of the loopback.
#[tokio::test]
async fn a_store_that_is_not_there_is_named_after_a_bounded_number_of_tries() {
    let settings = [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "hush-hush"),
        ("AWS_MAX_RETRIES", "1"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let location = at("s3://bucket/a", settings);
    let expected = ["max_retries: 1", "hint: http://127.0.0.1:9 was asked again and again", "check `AWS_ENDPOINT_URL`"];
    refused(&location, "hush-hush", &expected).await;
}

/// Where no credentials are set, the machine is asked for those of its role; here it has none.
#[tokio::test]
async fn missing_credentials_are_named() {
    let settings = [("AWS_REGION", "eu-west-1"), ("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let location = at("s3://bucket/a", settings);
    let expected = ["hint: no credentials are set", "`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"];
    refused(&location, "\u{0}", &expected).await;
}
