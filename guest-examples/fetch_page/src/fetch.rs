//! Asking the host for a page by `wasi:http`, redirects included. Holds nothing of what a page says.

use toolkit::Failure;

use crate::page::Page;
use crate::url;

/// The most of a page that is read, in bytes: past it there is nothing that a person would read.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// How many redirects are followed: what browsers' makers found enough for honest pages is 20, and 5 is enough for nearly all.
const REDIRECTS_MAX: usize = 5;

/// Fetches a page. Where it leads elsewhere, that is asked for like any other URL: the host decides anew.
pub fn page(address: &str) -> Result<Page, Failure> {
    let mut address = address.to_owned();
    for _ in 0..=REDIRECTS_MAX {
        let (scheme, authority, rest) = url::parts(&address)
            .filter(|(scheme, ..)| ["http", "https"].contains(scheme))
            .ok_or_else(|| Failure::invalid(format!("{address:?} is no http or https URL")))?;
        let rest = rest.split('#').next().unwrap_or("");
        let target = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
        match request::get(scheme, authority, &target, PAGE_BYTES_MAX)? {
            request::Came::Redirect(to) => address = url::joined(&address, &to),
            request::Came::Response { status, kind, body } => return Ok(Page { url: address, status, kind, body }),
        }
    }
    Err(Failure::Failed(format!("the page leads on and on: {REDIRECTS_MAX} redirects were followed")))
}

#[cfg(not(target_arch = "wasm32"))]
mod request {
    //! Outside of a component there is no host to ask.

    use toolkit::Failure;

    pub enum Came {
        Redirect(String),
        Response { status: u16, kind: String, body: Vec<u8> },
    }

    pub fn get(_scheme: &str, _authority: &str, _target: &str, _bytes_max: usize) -> Result<Came, Failure> {
        Err(Failure::Failed("there is no host to ask".to_owned()))
    }
}

#[cfg(target_arch = "wasm32")]
mod request {
    //! One request, by WASI's own calls.

    use toolkit::Failure;

    use bindings::wasi::http::outgoing_handler::handle;
    use bindings::wasi::http::types::{ErrorCode, Fields, IncomingBody, IncomingResponse, OutgoingRequest, Scheme};
    use bindings::wasi::io::streams::StreamError;

    #[allow(missing_docs, unsafe_code, rust_2018_idioms, clippy::all)]
    mod bindings {
        wit_bindgen::generate!({
            inline: r"
                package example:fetch-page;
                world client {
                    import wasi:http/outgoing-handler@0.2.12;
                }
            ",
            path: "../../wit",
            world: "example:fetch-page/client",
            generate_all,
        });
    }

    pub enum Came {
        Redirect(String),
        Response { status: u16, kind: String, body: Vec<u8> },
    }

    /// What is asked for; the host adds `Host` and speaks TLS.
    const HEADERS: [(&str, &str); 2] = [
        ("accept", "text/html, text/plain, application/json;q=0.9, */*;q=0.1"),
        ("user-agent", "toolcell-fetch-page/0.1"),
    ];

    pub fn get(scheme: &str, authority: &str, target: &str, bytes_max: usize) -> Result<Came, Failure> {
        let url = format!("{scheme}://{authority}{target}");
        let wrong = |part: &str| Failure::invalid(format!("{url:?} has no proper {part}"));
        let headers = HEADERS.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        let request = OutgoingRequest::new(Fields::from_list(&headers).map_err(|_| wrong("headers"))?);
        let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
        request.set_scheme(Some(&scheme)).map_err(|()| wrong("scheme"))?;
        request.set_authority(Some(authority)).map_err(|()| wrong("host"))?;
        request.set_path_with_query(Some(target)).map_err(|()| wrong("path"))?;
        let failed = |error: ErrorCode| Failure::Failed(format!("{url} cannot be fetched: {error}"));
        let future = handle(request, None).map_err(failed)?;
        future.subscribe().block();
        match future.get() {
            Some(Ok(Ok(response))) => came(&response, bytes_max).map_err(failed),
            Some(Ok(Err(error))) => Err(failed(error)),
            _ => Err(Failure::Failed(format!("{url} was never answered"))),
        }
    }

    fn came(response: &IncomingResponse, bytes_max: usize) -> Result<Came, ErrorCode> {
        let headers = response.headers();
        let header = |name: &str| {
            headers.get(name).first().map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
        };
        let (status, location) = (response.status(), header("location"));
        if matches!(status, 301 | 302 | 303 | 307 | 308) && !location.is_empty() {
            return Ok(Came::Redirect(location));
        }
        let kind = header("content-type");
        let body = response.consume().map_err(|()| ErrorCode::InternalError(None))?;
        let held = read(&body, bytes_max)?;
        drop(IncomingBody::finish(body));
        Ok(Came::Response { status, kind, body: held })
    }

    fn read(body: &IncomingBody, bytes_max: usize) -> Result<Vec<u8>, ErrorCode> {
        let stream = body.stream().map_err(|()| ErrorCode::InternalError(None))?;
        let mut held = Vec::new();
        while held.len() < bytes_max {
            match stream.blocking_read(64 * 1024) {
                Ok(block) => held.extend(block),
                Err(StreamError::Closed) => break,
                Err(StreamError::LastOperationFailed(error)) => {
                    let code = bindings::wasi::http::types::http_error_code(&error);
                    return Err(code.unwrap_or_else(|| ErrorCode::InternalError(Some(error.to_debug_string()))));
                }
            }
        }
        held.truncate(bytes_max);
        Ok(held)
    }
}
