//! Identity tokens (OpenID Connect): what a server says about the account of a login. They come
//! from the token endpoint itself, so that a signature would say no more (OpenID Connect Core,
//! section 3.1.3.7).
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

/// The scope that asks for an identity token.
pub(super) const OPENID: &str = "openid";

/// The claims of an identity token, as far as a login needs them.
#[derive(Deserialize)]
struct IdentityClaims {
    iss: String,
    sub: String,
    aud: Audience,
    azp: Option<String>,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// What an identity token must say.
#[derive(Clone, Copy)]
pub(super) struct ExpectedAccount<'a> {
    /// The server's name, where it is known.
    pub(super) issuer: Option<&'a str>,
    /// The client that it must be for.
    pub(super) client: &'a str,
    /// The nonce of the login, where one was sent.
    pub(super) nonce: Option<&'a str>,
    /// The account, where it is known.
    pub(super) subject: Option<&'a str>,
}

impl Audience {
    fn has(&self, client: &str) -> bool {
        match self {
            Self::One(audience) => audience == client,
            Self::Many(audiences) => audiences.iter().any(|audience| audience == client),
        }
    }
}

impl ExpectedAccount<'_> {
    /// What is wrong with this identity token; `None` if it is as expected.
    pub(super) fn problem(&self, token: &str) -> Option<&'static str> {
        let Some(claims) = read(token) else { return Some("its identity token cannot be read") };
        // Some servers leave the scheme out.
        let plain = |issuer: &str| issuer.strip_prefix("https://").unwrap_or(issuer).to_owned();
        if self.issuer.is_some_and(|issuer| plain(issuer) != plain(&claims.iss)) {
            return Some("its identity token is another issuer's");
        }
        let is_for = |presenter: &String| presenter == self.client;
        if !claims.aud.has(self.client) || !claims.azp.as_ref().is_none_or(is_for) {
            return Some("its identity token is for another client");
        }
        if self.nonce.is_some_and(|nonce| claims.nonce.as_deref() != Some(nonce)) {
            return Some("its identity token was made for another login");
        }
        if self.subject.is_some_and(|subject| subject != claims.sub) {
            return Some("this is another person's account than the caller's: log in with your own");
        }
        None
    }
}

fn read(token: &str) -> Option<IdentityClaims> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    serde_json::from_slice(&claims).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn token(claims: &Value) -> String {
        format!("e30.{}.", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn an_identity_token_is_that_of_this_server_client_login_and_account() {
        let expected = ExpectedAccount {
            issuer: Some("https://a.example"),
            client: "desk",
            nonce: Some("n"),
            subject: Some("ann"),
        };
        let right = json!({"iss": "https://a.example", "sub": "ann", "aud": "desk", "nonce": "n"});
        let with = |name: &str, value: Value| {
            let mut claims = right.clone();
            claims[name] = value;
            expected.problem(&token(&claims))
        };
        for (name, value) in [
            ("sub", json!("ann")),
            ("aud", json!(["else", "desk"])),
            ("azp", json!("desk")),
            ("iss", json!("a.example")),
            ("exp", json!("what this host does not read")),
        ] {
            assert_eq!(with(name, value.clone()), None, "{name} {value}");
        }
        for (name, value, problem) in [
            ("iss", json!("https://b.example"), "another issuer's"),
            ("iss", json!("http://a.example"), "another issuer's"),
            ("aud", json!("desk2"), "another client"),
            ("aud", json!([]), "another client"),
            ("azp", json!("else"), "another client"),
            ("nonce", json!("m"), "another login"),
            ("nonce", Value::Null, "another login"),
            ("sub", json!("bob"), "another person's account"),
            ("aud", json!({"desk": 1}), "cannot be read"),
            ("sub", Value::Null, "cannot be read"),
        ] {
            assert!(with(name, value.clone()).is_some_and(|found| found.contains(problem)), "{name} {value}");
        }
        for strange in ["", ".", "a.b.c", "e30.e30.", "é.é.é"] {
            assert_eq!(expected.problem(strange), Some("its identity token cannot be read"), "{strange}");
        }
        let any = ExpectedAccount { issuer: None, nonce: None, subject: None, ..expected };
        assert_eq!(any.problem(&token(&json!({"iss": "x", "sub": "bob", "aud": "desk"}))), None);
    }
}
