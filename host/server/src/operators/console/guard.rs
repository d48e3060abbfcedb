//! Checks of a request before anything is done for it: the host, the page that it comes from, its
//! method and its type.
use std::net::IpAddr;

use http::header::{CONTENT_TYPE, COOKIE, HeaderName, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use toolcell_console::routes;
use toolcell_mcp::http::{OriginPolicy, RefusalReason};

/// The header with the origin of a request (Fetch Metadata, "Sec-Fetch-Site").
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The header with the use of the response ("Sec-Fetch-Mode").
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The media type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// A request that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: StatusCode,
    pub text: &'static str,
    /// The reason for the audit; `None` for requests that are only malformed.
    pub reason: Option<RefusalReason>,
}

impl Refused {
    const fn new(status: StatusCode, text: &'static str) -> Self {
        Self { status, text, reason: None }
    }

    const fn forbidden(text: &'static str, reason: RefusalReason) -> Self {
        Self { status: StatusCode::FORBIDDEN, text, reason: Some(reason) }
    }
}

/// Checks a request that came to this address.
pub fn check(parts: &Parts, doors: &OriginPolicy, local: IpAddr) -> Result<(), Refused> {
    let is_post = match parts.method {
        Method::GET | Method::HEAD => false,
        Method::POST => true,
        _ => return Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "The console takes GET and POST.")),
    };
    let site = one(&parts.headers, &SITE)?;
    let origin = one(&parts.headers, &ORIGIN)?;
    // Pages send no referrer, so browsers send "null" as the origin of their forms.
    let is_own_form = is_post && site == Some("same-origin") && origin == Some("null");
    let allowed =
        if is_own_form { doors.allows(&without_origin(parts), Some(local)) } else { doors.allows(parts, Some(local)) };
    if !allowed {
        let text = "The console does not answer to the requested host, or the request is another page's.";
        let goes_by_host = doors.allows(&without_origin(parts), Some(local));
        let reason = if goes_by_host { RefusalReason::Origin } else { RefusalReason::Host };
        return Err(Refused::forbidden(text, reason));
    }
    let is_navigation = one(&parts.headers, &MODE)? == Some("navigate");
    let is_from_here = match site {
        Some("same-origin") => true,
        Some("none") => !is_post,
        Some(_) => !is_post && is_navigation && is_view(parts.uri.path()),
        // Not a browser, or an old one: forms must have an origin.
        None => !is_post || origin.is_some(),
    };
    if !is_from_here {
        return Err(Refused::forbidden("The request comes from another page.", RefusalReason::Origin));
    }
    if is_post && !is_form(&parts.headers) {
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The console takes forms alone."));
    }
    Ok(())
}

/// True if another site's page links here. Browsers then omit the session's cookie.
pub fn is_led_here(headers: &HeaderMap) -> bool {
    matches!(one(headers, &SITE), Ok(Some("cross-site" | "same-site")))
}

/// The value of a cookie; `None` unless there is exactly one.
pub fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut found = pairs.filter(|(found, _)| *found == name).map(|(_, value)| value);
    found.next().filter(|_| found.next().is_none())
}

/// True for addresses to which pages of others may lead. Exports and events hold places of which
/// there are few, and a browser sends the session's cookie from other ports of the same host.
fn is_view(path: &str) -> bool {
    ![routes::EXPORT_JSONL, routes::EXPORT_CSV, routes::EVENTS].contains(&path)
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(FORM))
}

/// The value of a header that may occur once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Refused> {
    let wrong = Refused::new(StatusCode::BAD_REQUEST, "A header of the request appears twice, or is not text.");
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().map_err(|_| wrong)).transpose()?;
    if values.next().is_some() { Err(wrong) } else { Ok(first) }
}

fn without_origin(parts: &Parts) -> Parts {
    let mut parts = parts.clone();
    parts.headers.remove(ORIGIN);
    parts
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn refused(method: &str, path: &str, fields: &[(&str, &str)]) -> Option<Refused> {
        let request = fields
            .iter()
            .fold(Request::builder().method(method).uri(path), |request, (name, value)| request.header(*name, *value));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        check(&parts, &OriginPolicy::default(), "127.0.0.1".parse().unwrap()).err()
    }

    fn checked(method: &str, fields: &[(&str, &str)]) -> u16 {
        refused(method, "/", fields).map_or(200, |refused| refused.status.as_u16())
    }

    #[test]
    fn pages_of_others_lead_to_views_and_to_no_export() {
        for path in [routes::AUDIT, routes::NOW, "/enter/x", routes::EXPORT_JSONL, routes::EXPORT_CSV, routes::EVENTS] {
            for (site, is_own) in [("none", true), ("same-origin", true), ("same-site", false), ("cross-site", false)] {
                let fields = [("host", "127.0.0.1:9"), ("sec-fetch-site", site), ("sec-fetch-mode", "navigate")];
                let refused = refused("GET", path, &fields).map(|refused| refused.reason);
                let expected = (!is_own && !is_view(path)).then_some(Some(RefusalReason::Origin));
                assert_eq!(refused, expected, "{path} {site}");
            }
        }
        let evil = [("host", "evil.example"), ("origin", "http://evil.example")];
        assert_eq!(refused("GET", "/", &evil).unwrap().reason, Some(RefusalReason::Host));
        assert_eq!(refused("PUT", "/", &evil).unwrap().reason, None);
    }

    #[test]
    fn only_pages_of_the_console_itself_are_answered() {
        const HERE: (&str, &str) = ("host", "127.0.0.1:9");
        const FORM_TYPE: (&str, &str) = ("content-type", FORM);
        for (fields, read, posted) in [
            (vec![], 200, 403),
            (vec![("sec-fetch-site", "none")], 200, 403),
            (vec![("sec-fetch-site", "same-origin")], 200, 200),
            (vec![("sec-fetch-site", "same-origin"), ("origin", "null")], 403, 200),
            (vec![("origin", "http://127.0.0.1:9")], 200, 200),
            (vec![("origin", "http://127.0.0.1:9"), ("sec-fetch-site", "cross-site")], 403, 403),
            (vec![("origin", "http://127.0.0.1:8")], 403, 403),
            (vec![("origin", "null")], 403, 403),
            (vec![("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")], 403, 403),
            (vec![("sec-fetch-site", "same-site")], 403, 403),
            (vec![("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], 200, 403),
            (vec![("sec-fetch-site", "none"), ("sec-fetch-site", "none")], 400, 400),
        ] {
            let with = |more: &[(&'static str, &'static str)]| [&fields[..], more].concat();
            assert_eq!(checked("GET", &with(&[HERE])), read, "{fields:?}");
            assert_eq!(checked("POST", &with(&[HERE, FORM_TYPE])), posted, "{fields:?}");
        }
        for host in ["evil.example", "localhost.evil.example:9", "10.0.0.1:9"] {
            assert_eq!(checked("GET", &[("host", host)]), 403, "{host}");
        }
        assert_eq!(checked("GET", &[]), 403);
        for method in ["PUT", "DELETE", "OPTIONS", "CONNECT"] {
            assert_eq!(checked(method, &[HERE]), 405, "{method}");
        }
        let own = ("origin", "http://127.0.0.1:9");
        for kind in ["text/plain", "multipart/form-data; boundary=x", "application/json"] {
            assert_eq!(checked("POST", &[HERE, own, ("content-type", kind)]), 415, "{kind}");
        }
        assert_eq!(checked("POST", &[HERE, own]), 415);
    }

    #[test]
    fn a_cookie_that_is_there_twice_is_none() {
        let with = |texts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(COOKIE, http::HeaderValue::from_static(text));
            }
            cookie(&headers, "a").map(str::to_owned)
        };
        assert_eq!(with(&["b=1; a=2; c=3"]).as_deref(), Some("2"));
        assert_eq!(with(&["b=1", "a=2"]).as_deref(), Some("2"));
        assert_eq!(with(&["a=1; a=2"]), None);
        assert_eq!(with(&["a=1", "a=2"]), None);
        assert_eq!(with(&["aa=1"]), None);
    }
}
