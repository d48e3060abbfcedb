//! `WWW-Authenticate`: which authentication a registry requires.
use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

/// Most headers that are read; registries send one or two.
const HEADERS_MAX: usize = 8;

/// Most parameters of a challenge; three have a meaning.
const PARAMETERS_MAX: usize = 16;

/// The authentication that a registry requires.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A token of the server at `realm`.
    Bearer {
        /// Address of the server of tokens.
        realm: String,
        /// The registry's name at that server.
        service: Option<String>,
    },
    /// Name and password.
    Basic,
}

/// The challenge of an answer: bearer if the registry offers a choice.
pub(crate) fn of(headers: &HeaderMap) -> Option<Challenge> {
    let texts = headers.get_all(WWW_AUTHENTICATE).iter().take(HEADERS_MAX).filter_map(|value| value.to_str().ok());
    let mut basic = None;
    for text in texts {
        for (scheme, parameters) in challenges(text) {
            let value = |name: &str| parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v);
            if scheme.eq_ignore_ascii_case("bearer")
                && let Some(realm) = value("realm")
            {
                return Some(Challenge::Bearer { realm: realm.clone(), service: value("service").cloned() });
            }
            if scheme.eq_ignore_ascii_case("basic") {
                basic = Some(Challenge::Basic);
            }
        }
    }
    basic
}

type Parameters = Vec<(String, String)>;

/// The challenges of one header (RFC 9110, section 11.6.1), up to the first that does not parse.
fn challenges(text: &str) -> Vec<(&str, Parameters)> {
    let mut found: Vec<(&str, Parameters)> = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (name, behind) = token(rest);
        if name.is_empty() || found.len() > HEADERS_MAX {
            return found;
        }
        if let Some(behind) = behind.trim_start().strip_prefix('=') {
            let Some((value, behind)) = value(behind.trim_start()) else { return found };
            match found.last_mut() {
                Some((_, parameters)) if parameters.len() < PARAMETERS_MAX => parameters.push((name.to_owned(), value)),
                _ => return found,
            }
            rest = behind;
        } else {
            found.push((name, Vec::new()));
            rest = behind;
        }
    }
}

fn token(text: &str) -> (&str, &str) {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let end = text.bytes().position(|b| !is_token(b)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A token or a quoted string, and what follows.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = token(text);
        return (!value.is_empty()).then(|| (value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, quoted.get(at + 1..)?)),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) })
        };
        for (texts, expected) in [
            (
                &[r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="a:b,c""#][..],
                bearer("https://auth.docker.io/token", Some("registry.docker.io")),
            ),
            (&["bearer  Realm = \"a\\\"b\" , service=c"], bearer("a\"b", Some("c"))),
            (&["Basic realm=\"x\"", "Bearer realm=\"y\""], bearer("y", None)),
            (&["Basic realm=\"x, y\", Bearer realm=\"y\""], bearer("y", None)),
            (&["Basic"], Some(Challenge::Basic)),
            (&["Bearer service=\"x\""], None),
            (&["Bearer realm=\"x"], None),
            (&["Negotiate abc=="], None),
            (&["realm=\"x\""], None),
            (&[""], None),
            (&["\u{e9}"], None),
        ] {
            let mut headers = HeaderMap::new();
            for text in texts {
                headers.append(WWW_AUTHENTICATE, text.parse().unwrap());
            }
            assert_eq!(of(&headers), expected, "{texts:?}");
        }
        let mut headers = HeaderMap::new();
        let long = format!("Bearer {}", "a=b,".repeat(10_000));
        headers.append(WWW_AUTHENTICATE, long.parse().unwrap());
        assert_eq!(of(&headers), None);
    }
}
