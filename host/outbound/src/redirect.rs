//! Redirects: their targets, and which ones are not followed.
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use url::Url;

use crate::shown;

/// Most redirects that are followed: a registry or a forge redirects to its store, and that to a
/// mirror.
pub const REDIRECTS_MAX: usize = 5;

/// A redirect that is not followed.
#[derive(Debug, PartialEq, Eq)]
pub struct NotFollowed {
    /// The target, without its query.
    pub to: String,
    /// A part of a sentence that begins with "which" or "but".
    pub problem: &'static str,
}

impl NotFollowed {
    /// The error for a redirect to this address after [`REDIRECTS_MAX`] others.
    #[must_use]
    pub fn too_many(to: &Url) -> Self {
        Self { to: without_query(to), problem: "which comes after more redirects than are followed" }
    }
}

/// True if the status redirects a request that only reads.
#[must_use]
pub const fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The target of a redirect.
///
/// # Errors
/// It leads from https to http, to another scheme, or names a user.
pub fn followed(url: &Url, headers: &HeaderMap) -> Result<Url, NotFollowed> {
    let refuse = |to: &str, problem| Err(NotFollowed { to: to.to_owned(), problem });
    let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let Some(mut next) = location.and_then(|location| url.join(location).ok()) else {
        return refuse("no address", "which cannot be followed");
    };
    let to = without_query(&next);
    if !matches!(next.scheme(), "http" | "https") || next.host().is_none() {
        return refuse(&to, "which is neither http nor https");
    }
    if next.scheme() == "http" && url.scheme() == "https" {
        return refuse(&to, "which is not https");
    }
    if !next.username().is_empty() || next.password().is_some() {
        return refuse(&to, "which names a user");
    }
    next.set_fragment(None);
    Ok(next)
}

/// The URL without its query, which may be secret.
fn without_query(url: &Url) -> String {
    const CHARS_SHOWN: usize = 200;
    let text = format!("{}://{}{}", url.scheme(), shown(url), url.path());
    text.chars().take(CHARS_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_read_with_care() {
        for (from, location, expected) in [
            ("https://a.example/v2/x", "https://b.example/y?z#f", Ok("https://b.example/y?z")),
            ("https://a.example/v2/x", "/y", Ok("https://a.example/y")),
            ("https://a.example/v2/x", "y", Ok("https://a.example/v2/y")),
            ("http://a.example/", "https://a.example/", Ok("https://a.example/")),
            ("https://a.example/", "http://a.example/?secret", Err("which is not https")),
            ("https://a.example/", "https://a:b@b.example/", Err("which names a user")),
            ("https://a.example/", "file:///etc/passwd", Err("which is neither http nor https")),
            ("https://a.example/", "https://", Err("which cannot be followed")),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, location.parse().unwrap());
            match (followed(&Url::parse(from).unwrap(), &headers), expected) {
                (Ok(next), Ok(expected)) => assert_eq!(next.as_str(), expected),
                (Err(found), Err(expected)) => {
                    assert_eq!(found.problem, expected, "{location}");
                    assert!(!found.to.contains("secret"));
                }
                (found, _) => panic!("{location}: {found:?}"),
            }
        }
    }
}
