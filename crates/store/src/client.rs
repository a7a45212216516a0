//! What lies between `object_store` and the wire: it notices what stalls, holds answers to the length that they promise,
//! and keeps secrets out of what a store says back.
//!
//! All of that is reported as an error of the connection, so that `object_store` asks again in its own way: a read goes on
//! where it stopped, if the object is still the same.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    ReqwestConnector,
};
use tokio::time::{Instant, Sleep};

/// How a stalled connection is told; `hints` knows it.
pub(crate) const STALLED: &str = "nothing arrived for";

/// An upload is answered only when all of it has arrived: slower than this it counts as stalled.
const SLOWEST_UPLOAD_BYTES_PER_SECOND: u64 = 64 * 1024;

/// Texts that are never shown.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Arc<[String]>);

impl Secrets {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Secrets {
        // What is shorter is no secret, and hiding it would spoil any text.
        let mut secrets: Vec<String> = secrets.into_iter().filter(|secret| secret.len() >= 4).collect();
        // One may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Secrets(secrets.into())
    }

    /// A text without them.
    pub(crate) fn hidden(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }

    /// With what a request proves its right by: stores quote it when they refuse one.
    fn with_those_of(&self, request: &HttpRequest) -> Secrets {
        let headers = ["authorization", "x-amz-security-token"].map(|name| request.headers().get(name));
        let values = headers.into_iter().flatten().filter_map(|value| value.to_str().ok());
        // `Bearer TOKEN`: the token alone is secret, too.
        let values = values.flat_map(|value| [Some(value), value.split_once(' ').map(|(_, token)| token)]);
        Secrets::new(self.0.iter().cloned().chain(values.flatten().map(str::to_owned)))
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Secrets({})", self.0.len())
    }
}

/// Makes the clients of a store.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    patience: Duration,
    secrets: Secrets,
}

impl Connector {
    /// With the time for which nothing may arrive, and what is never to be shown.
    pub(crate) fn new(patience: Duration, secrets: Secrets) -> Connector {
        Connector { patience, secrets }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Watched { client, connector: self.clone() }))
    }
}

#[derive(Debug)]
struct Watched {
    client: HttpClient,
    connector: Connector,
}

#[async_trait::async_trait]
impl HttpService for Watched {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let Connector { patience, secrets } = &self.connector;
        let upload = request.body().content_length() as u64 / SLOWEST_UPLOAD_BYTES_PER_SECOND;
        let patience_for_answer = *patience + Duration::from_secs(upload);
        let is_listing = is_listing(&request);
        let secrets = secrets.with_those_of(&request);
        let method = request.method().to_string();
        let answer = tokio::time::timeout(patience_for_answer, self.client.execute(request));
        let answer = answer.await.unwrap_or_else(|_| Err(stalled(patience_for_answer)));
        let answer = answer.inspect_err(|error| tracing::info!(method, %error, "a store did not answer"))?;
        let promised = promised(&answer);
        let (parts, body) = answer.into_parts();
        let body = HttpResponseBody::new(WatchedBody { body, patience: *patience, sleep: None, promised });
        if !parts.status.is_success() {
            tracing::info!(method, status = parts.status.as_u16(), "a store refused");
            // What cannot be read to its end is not needed: the status tells enough.
            let said = body.bytes().await.unwrap_or_default();
            let said = secrets.hidden(&String::from_utf8_lossy(&said));
            return Ok(HttpResponse::from_parts(parts, said.into()));
        }
        if is_listing {
            // `object_store` asks again for an answer that does not come, but not for one that stops half way.
            let listing = body.bytes().await.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?;
            if !is_whole_xml(&listing) {
                return Err(cut("a listing ends half way".to_owned()));
            }
            return Ok(HttpResponse::from_parts(parts, listing.into()));
        }
        Ok(HttpResponse::from_parts(parts, body))
    }
}

/// A body that may not stall, and whose end may not come before what its range promised.
#[derive(Debug)]
struct WatchedBody {
    body: HttpResponseBody,
    patience: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Bytes that are still to come, where the answer says of which range it is. That of a whole object may have no more
    /// than its own length to go by, which the connection already holds it to.
    promised: Option<u64>,
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Pending => {
                let patience = this.patience;
                let sleep = this.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
                if sleep.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Some(Err(stalled(patience))));
                }
                Poll::Pending
            }
            Poll::Ready(frame) => {
                if let Some(sleep) = &mut this.sleep {
                    sleep.as_mut().reset(Instant::now() + this.patience);
                }
                if let (Some(Ok(frame)), Some(promised)) = (&frame, &mut this.promised) {
                    let arrived = frame.data_ref().map_or(0, |data| data.len() as u64);
                    *promised = promised.saturating_sub(arrived);
                }
                match (&frame, this.promised) {
                    (None, Some(missing @ 1..)) => Poll::Ready(Some(Err(cut(format!("{missing} bytes are missing"))))),
                    _ => Poll::Ready(frame),
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && self.promised.is_none_or(|missing| missing == 0)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The length of the range that an answer says it holds.
fn promised(answer: &HttpResponse) -> Option<u64> {
    if answer.status().as_u16() != 206 {
        return None;
    }
    let range = answer.headers().get("content-range")?.to_str().ok()?;
    let (first, last) = range.trim().strip_prefix("bytes ")?.split_once('/')?.0.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    last.checked_sub(first)?.checked_add(1)
}

fn is_listing(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.method().as_str() == "GET" && query.split('&').any(|part| matches!(part, "list-type=2" | "comp=list"))
}

/// Whether the first element of a document is closed at its end.
fn is_whole_xml(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let starts = |at: &usize| text[*at] == b'<' && text.get(at + 1).is_some_and(u8::is_ascii_alphabetic);
    let Some(start) = (0..text.len()).find(starts) else { return false };
    let name = text[start + 1..].split(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or_default();
    let is_empty_element = text.ends_with(b"/>") && !text[start + 1..].contains(&b'<');
    is_empty_element
        || text.strip_suffix(b">").and_then(|text| text.strip_suffix(name)).is_some_and(|text| text.ends_with(b"</"))
}

fn stalled(patience: Duration) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, Broken(format!("{STALLED} {patience:?}")))
}

fn cut(problem: String) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, Broken(problem))
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Broken(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_documents() {
        let whole = [
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"a\"><Key>x</Key></ListBucketResult>\n",
            "\u{feff}<?xml version=\"1.0\"?>\n<EnumerationResults><Blobs/></EnumerationResults>",
            "<ListBucketResult/>",
        ];
        for text in whole {
            assert!(is_whole_xml(text.as_bytes()), "{text}");
            for end in 0..text.trim_end().len() {
                assert!(!is_whole_xml(&text.as_bytes()[..end]), "{text} cut at {end}");
            }
        }
    }

    #[test]
    fn secrets_are_hidden() {
        let secrets = Secrets::new(["hush".to_owned(), "hush-hush".to_owned(), "a".to_owned()]);
        assert_eq!(secrets.hidden("a hush and a hush-hush"), "a *** and a ***");
        assert_eq!(format!("{secrets:?}"), "Secrets(2)");
    }
}
