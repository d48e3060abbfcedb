//! The form of the pages at which callers log in: their HTML, their headers, and forms that
//! browsers send.
use ::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use ::http::{HeaderValue, Response, StatusCode};
use url::form_urlencoded;

pub(super) type Page = Response<String>;

/// Why a page shows nothing else: a sentence for the person.
pub(super) struct Ended(pub(super) StatusCode, pub(super) String);

impl Ended {
    pub(super) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self(status, text.into())
    }
}

/// The value of a field that is there once.
pub(super) fn one(form: &str, name: &str) -> Option<String> {
    let mut named = form_urlencoded::parse(form.as_bytes()).filter(|(key, _)| key == name);
    let first = named.next().map(|(_, value)| value.into_owned())?;
    named.next().is_none().then_some(first)
}

pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

/// A page with one paragraph of text.
pub(super) fn page(status: StatusCode, text: &str) -> Page {
    html(status, &format!("<p>{}</p>", escaped(text)))
}

pub(super) fn nothing() -> Page {
    page(StatusCode::NOT_FOUND, "There is nothing here.")
}

pub(super) fn only(methods: &'static str) -> Page {
    let mut response = page(StatusCode::METHOD_NOT_ALLOWED, "This page is opened with a browser.");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

pub(super) fn html(status: StatusCode, body: &str) -> Page {
    let mut response = Response::new(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>toolcell</title>{body}</html>\n"
    ));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
        // The form has to say where it is from.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
