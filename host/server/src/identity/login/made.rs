//! What a browser keeps of a login that it made: with it, the caller ends that login, and no other.
use ::http::HeaderMap;
use ::http::header::COOKIE;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use toolcell_mcp::{Purpose, StateKey};
use toolcell_sandbox::ComponentDigest;

use super::ticket::{open, seal};

/// The beginning of a cookie's name; an identifier of the caller's login follows.
const COOKIE_NAME: &str = "toolcell_made_";

/// Digits of that identifier: enough for the logins of one browser.
const ID_DIGITS: usize = 16;

/// Seconds for which a browser keeps it: 400 days, the longest that browsers keep any.
pub(super) const COOKIE_SECONDS: u64 = 400 * 24 * 3_600;

/// Logins of one browser that are shown: more than a person has with one server.
const SHOWN_MAX: usize = 32;

/// A login that this browser made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MadeLogin {
    pub(super) login: String,
    pub(super) caller: String,
    /// The mark of its record: a later login of the caller has another.
    pub(super) mark: String,
}

impl MadeLogin {
    /// Its name in forms. A caller's next login in the same browser takes its place.
    pub(super) fn id(&self) -> String {
        let both = format!("{} {}{}", self.login.len(), self.login, self.caller);
        let digest = ComponentDigest::of(both.as_bytes()).to_string();
        digest.rsplit(':').next().unwrap_or_default().chars().take(ID_DIGITS).collect()
    }

    /// The name of its cookie.
    pub(super) fn cookie_name(&self) -> String {
        format!("{COOKIE_NAME}{}", self.id())
    }

    /// The value of its cookie; `None` if it is too long.
    pub(super) fn sealed(&self, key: &StateKey) -> Option<String> {
        seal(self, |bytes| key.seal(Purpose::LoginMade, bytes))
    }

    /// The logins that the browser of this request made.
    pub(super) fn all(key: &StateKey, headers: &HeaderMap) -> Vec<Self> {
        let made = cookies(headers).filter(|(name, _)| name.starts_with(COOKIE_NAME));
        made.filter_map(|(_, text)| open(key, Purpose::LoginMade, text)).take(SHOWN_MAX).collect()
    }
}

/// The cookies of a request, by name.
pub(super) fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let fields = headers.get_all(COOKIE).iter().filter_map(|field| field.to_str().ok());
    fields.flat_map(|field| field.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// A mark that nobody guesses, of a text that nobody else has.
pub(super) fn mark(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(ComponentDigest::of(format!("mark {text}").as_bytes()).as_bytes())
}

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;

    use super::*;

    #[test]
    fn a_browser_shows_the_logins_that_it_made_and_no_others() {
        let key = StateKey::random();
        let made =
            |caller: &str| MadeLogin { login: "notes".to_owned(), caller: caller.to_owned(), mark: mark(caller) };
        let cookie = |made: &MadeLogin, key: &StateKey| format!("{}={}", made.cookie_name(), made.sealed(key).unwrap());
        let ann = made("ann");
        let bob = made("bob");
        assert!(ann.id() != bob.id() && ann.id() == MadeLogin { mark: "m".to_owned(), ..ann.clone() }.id());
        let mut headers = HeaderMap::new();
        for text in [
            format!("a=b; {}; {}x", cookie(&ann, &key), cookie(&bob, &key)),
            cookie(&bob, &StateKey::random()),
            format!("else={}", bob.sealed(&key).unwrap()),
            format!("{}=", bob.cookie_name()),
        ] {
            headers.append(COOKIE, HeaderValue::from_str(&text).unwrap());
        }
        assert_eq!(MadeLogin::all(&key, &headers), std::slice::from_ref(&ann));
        for _ in 0..2 * SHOWN_MAX {
            headers.append(COOKIE, HeaderValue::from_str(&cookie(&bob, &key)).unwrap());
        }
        assert_eq!(MadeLogin::all(&key, &headers).len(), SHOWN_MAX);
    }
}
