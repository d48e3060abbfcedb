//! One request, by WASI's own calls. Holds no reading of URLs.

use bindings::wasi::clocks::monotonic_clock::subscribe_duration;
use bindings::wasi::http::outgoing_handler::handle;
use bindings::wasi::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
};
use bindings::wasi::io::poll::poll;
use bindings::wasi::io::streams::{InputStream, StreamError};

use std::time::Duration;

use super::{Answer, Target};
use crate::Failure;

#[allow(missing_docs, unsafe_code, rust_2018_idioms, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: r"
            package example:toolkit;
            world http-client {
                import wasi:http/outgoing-handler@0.2.12;
                import wasi:clocks/monotonic-clock@0.2.12;
            }
        ",
        path: "../../wit",
        world: "example:toolkit/http-client",
        generate_all,
    });
}

/// The most that one read takes, in bytes.
const BLOCK_BYTES: u64 = 64 * 1024;

/// Bytes behind what was wanted that are read for the sake of the connection. A new one costs about as much.
const DRAINED_BYTES_MAX: usize = 64 * 1024;

/// The most that one write takes, in bytes, by WASI's own rule.
const WRITE_BYTES: usize = 4096;

/// A body that was not read yet, and where it comes from, for messages.
#[derive(Debug)]
pub struct Body {
    url: String,
    body: IncomingBody,
}

/// A body that is being read. The stream goes before the body that it is of.
#[derive(Debug)]
pub struct Blocks {
    url: String,
    stream: InputStream,
    body: IncomingBody,
}

pub fn send(
    method: &str,
    target: Target<'_>,
    fields: &[(&str, &str)],
    body: Option<&[u8]>,
    time: Option<Duration>,
) -> Result<Answer, Failure> {
    let url = format!("{}://{}{}", target.scheme, target.authority, target.path);
    let wrong = |part: &str| Failure::invalid(format!("{url:?} has no proper {part}"));
    let length = body.map(|body| body.len().to_string());
    let length = length.iter().map(|length| ("content-length", length.as_str()));
    let fields = fields.iter().copied().chain(length);
    let fields: Vec<_> = fields.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).collect();
    let request = OutgoingRequest::new(Fields::from_list(&fields).map_err(|_| wrong("fields"))?);
    request.set_method(&method_of(method)).map_err(|()| wrong("method"))?;
    let scheme = if target.scheme == "https" { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).map_err(|()| wrong("scheme"))?;
    request.set_authority(Some(target.authority)).map_err(|()| wrong("host"))?;
    request.set_path_with_query(Some(target.path)).map_err(|()| wrong("path"))?;
    let outgoing = body.and_then(|body| Some((request.body().ok()?, body)));
    let future = handle(request, time.and_then(options)).map_err(|error| failed(&url, &error))?;
    if let Some((outgoing, body)) = outgoing {
        // Where it cannot be written, the answer says why.
        write(outgoing, body);
    }
    future.subscribe().block();
    match future.get() {
        Some(Ok(Ok(response))) => came(url, &response),
        Some(Ok(Err(error))) => Err(failed(&url, &error)),
        _ => Err(Failure::Failed(format!("{url} was never answered"))),
    }
}

/// What gives up where the answer does not begin in time. `None` where the host cannot.
fn options(time: Duration) -> Option<RequestOptions> {
    let nanoseconds = u64::try_from(time.as_nanos()).ok();
    let options = RequestOptions::new();
    options.set_connect_timeout(nanoseconds).ok()?;
    options.set_first_byte_timeout(nanoseconds).ok()?;
    Some(options)
}

fn method_of(method: &str) -> Method {
    match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

/// Writes a body as far as the host takes it.
fn write(outgoing: OutgoingBody, body: &[u8]) {
    if let Ok(stream) = outgoing.write() {
        let all = body.chunks(WRITE_BYTES).all(|block| stream.blocking_write_and_flush(block).is_ok());
        drop(stream);
        if !all {
            return;
        }
    }
    drop(OutgoingBody::finish(outgoing, None));
}

fn came(url: String, response: &IncomingResponse) -> Result<Answer, Failure> {
    let fields = response.headers().entries();
    let fields = fields.into_iter().map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect();
    match response.consume() {
        Ok(body) => Ok(Answer { status: response.status(), fields, body: Body { url, body } }),
        Err(()) => Err(failed(&url, &ErrorCode::InternalError(None))),
    }
}

impl Body {
    pub fn read(self, bytes_max: usize) -> Result<Vec<u8>, Failure> {
        let mut blocks = self.blocks()?;
        let mut held = Vec::new();
        while held.len() < bytes_max {
            match blocks.block()? {
                Some(block) => held.extend(block),
                None => {
                    blocks.finish();
                    break;
                }
            }
        }
        held.truncate(bytes_max);
        Ok(held)
    }

    pub fn blocks(self) -> Result<Blocks, Failure> {
        let Self { url, body } = self;
        match body.stream() {
            Ok(stream) => Ok(Blocks { url, stream, body }),
            Err(()) => Err(failed(&url, &ErrorCode::InternalError(None))),
        }
    }
}

impl Blocks {
    pub fn block(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        match self.stream.blocking_read(BLOCK_BYTES) {
            Ok(block) => Ok(Some(block)),
            Err(StreamError::Closed) => Ok(None),
            Err(StreamError::LastOperationFailed(error)) => {
                let code = bindings::wasi::http::types::http_error_code(&error);
                let code = code.unwrap_or_else(|| ErrorCode::InternalError(Some(error.to_debug_string())));
                Err(failed(&self.url, &code))
            }
        }
    }

    pub fn drain(self, time: Duration) {
        let end = subscribe_duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let mut left = DRAINED_BYTES_MAX;
        while left > 0 {
            match self.stream.read(BLOCK_BYTES) {
                Ok(block) if block.is_empty() => {
                    let more = self.stream.subscribe();
                    if !poll(&[&more, &end]).contains(&0) {
                        return;
                    }
                }
                Ok(block) => left = left.saturating_sub(block.len()),
                Err(StreamError::Closed) => return self.finish(),
                Err(StreamError::LastOperationFailed(_)) => return,
            }
        }
    }

    fn finish(self) {
        let Self { stream, body, .. } = self;
        drop(stream);
        drop(IncomingBody::finish(body));
    }
}

fn failed(url: &str, error: &ErrorCode) -> Failure {
    Failure::Failed(format!("{url} cannot be fetched: {}", in_words(error)))
}

/// The event in words, for those that happen to people; the code's own name for the others.
fn in_words(error: &ErrorCode) -> String {
    let words = match error {
        ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => "there is no server of this name",
        ErrorCode::DnsTimeout => "nobody told the server's address in time",
        ErrorCode::ConnectionRefused => "the server refused the connection",
        ErrorCode::ConnectionTimeout => "the server did not take the connection in time",
        ErrorCode::ConnectionTerminated | ErrorCode::HttpResponseIncomplete => "the server ended the connection",
        ErrorCode::ConnectionReadTimeout | ErrorCode::HttpResponseTimeout => "the server did not answer in time",
        ErrorCode::TlsCertificateError => "the server's certificate is not to be trusted",
        ErrorCode::HttpRequestDenied => "it is not allowed",
        ErrorCode::HttpResponseBodySize(_) => "the answer is too large",
        ErrorCode::InternalError(Some(said)) => return said.clone(),
        other => return other.to_string(),
    };
    words.to_owned()
}
