//! Responses with their headers.
use std::io;

use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, LOCATION, SET_COOKIE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use hyper::body::Bytes;
use tokio::sync::mpsc::Receiver;
use toolcell_console::asset::Asset;
use toolcell_console::model::ErrorPage;
use toolcell_console::page;
use toolcell_console::policy::PAGE_HEADERS;

use super::body::ConsoleBody;
use super::guard::Refused;

/// A response.
pub type Reply = Response<ConsoleBody>;

/// A page.
pub fn page(status: StatusCode, text: String) -> Reply {
    with_headers(status, text.into())
}

/// An error page.
pub fn problem(status: StatusCode, text: &str, hint: Option<&str>) -> Reply {
    let shown = ErrorPage { status: status.as_u16(), text: text.to_owned(), hint: hint.map(str::to_owned) };
    page(status, page::error(&shown))
}

/// A request that is refused.
pub fn refused(refused: Refused) -> Reply {
    problem(refused.status, refused.text, None)
}

/// Redirects to another page.
pub fn see_other(path: &str) -> Reply {
    let mut reply = page(StatusCode::SEE_OTHER, String::new());
    set(&mut reply, LOCATION, path);
    reply
}

/// Sets or removes the cookie.
pub fn with_cookie(mut reply: Reply, cookie: &str) -> Reply {
    set(&mut reply, SET_COOKIE, cookie);
    reply
}

/// Adds a header.
pub fn with_header(mut reply: Reply, name: HeaderName, value: &str) -> Reply {
    set(&mut reply, name, value);
    reply
}

/// A static file of the pages.
pub fn asset(asset: &'static Asset) -> Reply {
    let mut reply = with_headers(StatusCode::OK, asset.bytes.into());
    set(&mut reply, CONTENT_TYPE, asset.content_type);
    set(&mut reply, CACHE_CONTROL, Asset::CACHE_CONTROL);
    reply
}

/// A stream of this type; a download of this name, if it has one.
pub fn stream(pieces: Receiver<io::Result<Bytes>>, content_type: &str, name: Option<&str>) -> Reply {
    let mut reply = with_headers(StatusCode::OK, ConsoleBody::Pieces(pieces));
    set(&mut reply, CONTENT_TYPE, content_type);
    if let Some(name) = name {
        set(&mut reply, CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\""));
    }
    reply
}

fn with_headers(status: StatusCode, body: ConsoleBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    for (name, value) in PAGE_HEADERS {
        reply.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    reply
}

fn set(reply: &mut Reply, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
}
