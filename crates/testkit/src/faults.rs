//! A proxy before a store's server that fails as networks and servers do: seeded, so that a test fails again in the same way
//! as far as the order of its requests is the same.
//!
//! Each connection carries one request. Its head and body are passed on as they are, so that signatures hold; its answer is
//! read to the end and then told, or told wrongly.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::cases::TestError;

/// What can happen to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Answered by 500, and never passed on.
    InternalError,
    /// Answered by 503, and never passed on.
    Unavailable,
    /// Passed on and done, but answered by 503.
    UnavailableAfter,
    /// The connection is reset, the request never passed on.
    Reset,
    /// Passed on and done; the connection is reset instead of an answer.
    ResetAfter,
    /// The answer comes in small pieces, with pauses.
    Slow,
    /// Half of the answer, and then nothing more until the client gives up.
    Stalled,
    /// Half of the answer, and then the end of the connection.
    Cut,
    /// Half of the body in an answer that says that this is its length.
    Short,
}

/// All that a client that is patient enough gets over.
pub const FAULTS: [Fault; 9] = [
    Fault::InternalError,
    Fault::Unavailable,
    Fault::UnavailableAfter,
    Fault::Reset,
    Fault::ResetAfter,
    Fault::Slow,
    Fault::Stalled,
    Fault::Cut,
    Fault::Short,
];

/// Which requests fail, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What all draws are made from.
    pub seed: u64,
    /// How many of a thousand requests fail.
    pub permille: u64,
    /// What happens to those; each is as likely as the others.
    pub faults: Vec<Fault>,
    /// The number of requests after which no connection is accepted any more, and those that are open are reset.
    pub dies_after: Option<u64>,
}

/// The proxy; it ends with this.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    state: Arc<State>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    plan: Plan,
    upstream: String,
    requests: AtomicU64,
    failed: AtomicU64,
}

impl FaultProxy {
    /// Starts it on a free port before a server, `http://127.0.0.1:PORT` with any path, on a thread of its own.
    pub fn start(server: &str, plan: Plan) -> Result<FaultProxy, TestError> {
        let upstream = server.strip_prefix("http://").ok_or("the server is no http URL")?;
        let upstream = upstream.split('/').next().unwrap_or_default().to_owned();
        let state = Arc::new(State { plan, upstream, requests: AtomicU64::new(0), failed: AtomicU64::new(0) });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let served = Arc::clone(&state);
        let ends = stop.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                // It was bound and made ready above: this fails only without a runtime.
                if let Ok(listener) = TcpListener::from_std(listener) {
                    serve(listener, served, stopped, ends).await;
                }
            });
        });
        Ok(FaultProxy { address, state, stop, thread: Some(thread) })
    }

    /// Where it answers, as an endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Requests that it has seen.
    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// Requests that failed in one way or another.
    pub fn failed(&self) -> u64 {
        self.state.failed.load(Ordering::Relaxed)
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

async fn serve(
    listener: TcpListener,
    state: Arc<State>,
    mut stopped: watch::Receiver<bool>,
    stop: watch::Sender<bool>,
) {
    loop {
        let client = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let Ok((client, _)) = client else { continue };
        // Whatever still runs when the proxy ends is reset.
        let _ = client.set_zero_linger();
        let (state, mut stopped, stop) = (Arc::clone(&state), stopped.clone(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                // A connection that breaks is what the proxy is for.
                _ = answer(client, &state, &stop) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        });
    }
}

async fn answer(mut client: TcpStream, state: &State, stop: &watch::Sender<bool>) -> Result<(), TestError> {
    let Some(request) = read_message(&mut client, false).await? else { return Ok(()) };
    let number = state.requests.fetch_add(1, Ordering::Relaxed);
    if state.plan.dies_after.is_some_and(|last| number >= last) {
        stop.send_replace(true);
        return Ok(());
    }
    let fault = draw(&state.plan, number);
    if fault.is_some() {
        state.failed.fetch_add(1, Ordering::Relaxed);
    }
    match fault {
        Some(Fault::InternalError) => return say(client, &refusal("500 Internal Server Error")).await,
        Some(Fault::Unavailable) => return say(client, &refusal("503 Service Unavailable")).await,
        // Dropped with its linger time still zero.
        Some(Fault::Reset) => return Ok(()),
        _ => {}
    }
    let is_head = request.starts_with(b"HEAD ");
    let is_chunked = |head: &[u8]| head.to_ascii_lowercase().windows(17).any(|part| part == b"transfer-encoding");
    let mut server = TcpStream::connect(&state.upstream).await?;
    server.write_all(&with_closing(&request)?).await?;
    let response = read_message(&mut server, is_head).await?.ok_or("the server closed the connection")?;
    let body = body_start(&response).ok_or("the answer has no end of its head")?;
    let half = if body == response.len() { body / 2 } else { body + (response.len() - body) / 2 };
    match fault {
        Some(Fault::UnavailableAfter) => say(client, &refusal("503 Service Unavailable")).await,
        Some(Fault::ResetAfter) => Ok(()),
        Some(Fault::Slow) => {
            let size = response.len().div_ceil(8).max(1);
            for piece in response.chunks(size) {
                client.write_all(piece).await?;
                client.flush().await?;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            say(client, b"").await
        }
        Some(Fault::Stalled) => {
            client.write_all(&response[..half]).await?;
            // Until the client closes it.
            let _ = client.read(&mut [0]).await;
            Ok(())
        }
        Some(Fault::Cut) => say(client, &response[..half]).await,
        // The length of a body in chunks is in its chunks.
        Some(Fault::Short) if half > body && !is_head && !is_chunked(&response[..body]) => {
            say(client, &shortened(&response, body, half)?).await
        }
        _ => say(client, &response).await,
    }
}

/// Tells the rest and closes in order.
async fn say(mut client: TcpStream, bytes: &[u8]) -> Result<(), TestError> {
    client.write_all(bytes).await?;
    client.shutdown().await?;
    // The client closes when it has read all: closing before would reset the connection.
    while client.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// What happens to a request, from its number alone.
fn draw(plan: &Plan, number: u64) -> Option<Fault> {
    let draw = mixed(plan.seed ^ mixed(number));
    if draw % 1000 >= plan.permille || plan.faults.is_empty() {
        return None;
    }
    let kinds = plan.faults.len() as u64;
    usize::try_from(draw / 1000 % kinds).ok().and_then(|kind| plan.faults.get(kind)).copied()
}

/// The finaliser of splitmix64 (Steele, Lea and Flood, 2014).
fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn refusal(status: &str) -> Vec<u8> {
    let body = "<Error><Code>Injected</Code></Error>";
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes()
}

/// Reads a request or an answer to its end; `None` if there is none. An answer to HEAD has no body, whatever it says.
async fn read_message(from: &mut TcpStream, has_no_body: bool) -> Result<Option<Vec<u8>>, TestError> {
    let mut bytes = Vec::new();
    let body = loop {
        if let Some(body) = body_start(&bytes) {
            break body;
        }
        if from.read_buf(&mut bytes).await? == 0 {
            return if bytes.is_empty() { Ok(None) } else { Err("a head ends half way".into()) };
        }
    };
    let head = std::str::from_utf8(&bytes[..body])?;
    let is_answer = head.starts_with("HTTP/");
    let has_no_body = has_no_body || head.starts_with("HTTP/1.1 204") || head.starts_with("HTTP/1.1 304");
    let is_chunked = header(head, "transfer-encoding").is_some();
    let length: Option<usize> = header(head, "content-length").map(str::parse).transpose()?;
    if has_no_body {
        return Ok(Some(bytes));
    }
    match length {
        Some(length) => {
            while bytes.len() < body + length {
                if from.read_buf(&mut bytes).await? == 0 {
                    return Err("a body ends half way".into());
                }
            }
        }
        None if is_chunked => {
            while !bytes[body..].ends_with(b"0\r\n\r\n") {
                if from.read_buf(&mut bytes).await? == 0 {
                    return Err("a body ends half way".into());
                }
            }
        }
        // An answer of unknown length ends with its connection; a request without a length has no body.
        None if is_answer => while from.read_buf(&mut bytes).await? > 0 {},
        None => {}
    }
    Ok(Some(bytes))
}

fn body_start(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.into_iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// The request with the wish that the server closes the connection. No signature covers that.
fn with_closing(request: &[u8]) -> Result<Vec<u8>, TestError> {
    let line = request.windows(2).position(|window| window == b"\r\n").ok_or("a request has no line")?;
    let mut out = request[..line].to_vec();
    out.extend(b"\r\nConnection: close");
    out.extend(&request[line..]);
    Ok(out)
}

/// An answer with half of its body, and a head that says that this is all.
fn shortened(response: &[u8], body: usize, half: usize) -> Result<Vec<u8>, TestError> {
    let head = std::str::from_utf8(&response[..body])?;
    let mut out = String::new();
    let is_of_length = |line: &str| line.split(':').next().unwrap_or_default().eq_ignore_ascii_case("content-length");
    for line in head.trim_end().split("\r\n").filter(|line| !is_of_length(line)) {
        out.push_str(line);
        out.push_str("\r\n");
    }
    out.push_str(&format!("Content-Length: {}\r\n\r\n", half - body));
    let mut out = out.into_bytes();
    out.extend(&response[body..half]);
    Ok(out)
}
