//! HTTP over `wasi:http`. The host checks each request against the manifest's rules, resolves
//! names, speaks TLS and adds secrets.

use crate::component::wasi::http::outgoing_handler::handle;
use crate::component::wasi::http::types::{ErrorCode, Fields, IncomingBody, IncomingResponse, OutgoingRequest, Scheme};

/// Most bytes of an answer that are read.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Makes a GET request to an `http` or `https` URL, and returns the status and the body.
pub fn get(url: &str, headers: &[(&str, &str)]) -> Result<(u16, Vec<u8>), String> {
    let wrong = |part: &str| format!("{url:?} has no proper {part}");
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("scheme"))?;
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let fields: Vec<_> = headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    let request = OutgoingRequest::new(Fields::from_list(&fields).map_err(|_| wrong("headers"))?);
    let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).map_err(|()| wrong("scheme"))?;
    request.set_authority(Some(authority)).map_err(|()| wrong("host"))?;
    request.set_path_with_query(Some(path)).map_err(|()| wrong("path"))?;
    answered(request).map_err(|error| format!("{url} cannot be fetched: {error}"))
}

fn answered(request: OutgoingRequest) -> Result<(u16, Vec<u8>), ErrorCode> {
    let future = handle(request, None)?;
    future.subscribe().block();
    match future.get() {
        Some(Ok(response)) => response.and_then(|response| Ok((response.status(), read(&response)?))),
        _ => Err(ErrorCode::InternalError(None)),
    }
}

fn read(response: &IncomingResponse) -> Result<Vec<u8>, ErrorCode> {
    let body: IncomingBody = response.consume().map_err(|()| ErrorCode::InternalError(None))?;
    let stream = body.stream().map_err(|()| ErrorCode::InternalError(None))?;
    let mut held = Vec::new();
    while held.len() < BODY_BYTES_MAX {
        // The end is an error of its own; a body that breaks off is shorter than its JSON.
        let Ok(block) = stream.blocking_read(1 << 16) else { break };
        held.extend(block);
    }
    held.truncate(BODY_BYTES_MAX);
    Ok(held)
}
