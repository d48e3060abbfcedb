//! One JSON Web Token (RFC 7519, RFC 9068): its claimed issuer, and its verification.
//! `jsonwebtoken` does the checks; this file makes it accept only what was configured.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::keys::KeySet;
use super::signature;

/// The longest token, in bytes. 16 KiB: those with every group of a large directory have about ten.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// The longest subject, in bytes: OpenID Connect has 255 characters at most.
const SUBJECT_BYTES_MAX: usize = 255;

const SCOPES_MAX: usize = 256;

/// The algorithms that tokens may be signed with, by name. Neither shared keys nor `none` are among
/// them.
pub const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("PS256", Algorithm::PS256),
    ("PS384", Algorithm::PS384),
    ("PS512", Algorithm::PS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// The rules for the tokens of one issuer.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// The value of `iss`.
    pub issuer: String,
    /// The accepted values of `aud`.
    pub audiences: Vec<String>,
    /// The names of the allowed algorithms, from [`ALGORITHMS`].
    pub algorithms: Vec<&'static str>,
    /// The tolerated difference of clocks.
    pub leeway: Duration,
}

/// The claims of a token that are needed before its verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnverifiedToken {
    /// The claimed issuer.
    pub issuer: String,
    algorithm: String,
    kid: Option<String>,
}

/// The verified claims of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedClaims {
    /// The holder of the token.
    pub subject: String,
    /// The scopes of its holder.
    pub scopes: Vec<String>,
    /// Its expiry in seconds since 1970, without the leeway.
    pub expires: u64,
}

/// Why a token is rejected. The message goes to the client as `error_description` (RFC 6750 section
/// 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// Longer than [`TOKEN_BYTES_MAX`].
    #[error("The token is too long")]
    TooLong,
    /// Not three parts of base64 with JSON objects in the first two.
    #[error("The token is not a JSON Web Token")]
    Malformed,
    /// `none`, a symmetric algorithm, or another one that is not accepted.
    #[error("The token is signed with an algorithm that is not accepted")]
    Algorithm,
    /// The server does not know the token, or has revoked it.
    #[error("The token is not known, or was revoked")]
    Unknown,
    /// `crit` names extensions that the server does not know.
    #[error("The token needs an extension that is not known")]
    Extension,
    /// `iss` is not an accepted issuer.
    #[error("The token is of an issuer that is not accepted")]
    Issuer,
    /// No key of the issuer has this name, or several fit.
    #[error("The token names a key that its issuer does not have")]
    Key,
    /// It was changed, or signed with another key.
    #[error("The signature of the token does not hold")]
    Signature,
    /// `exp` has passed.
    #[error("The token has expired")]
    Expired,
    /// `nbf` is in the future.
    #[error("The token is not valid yet")]
    NotYet,
    /// `aud` names another audience.
    #[error("The token is meant for another audience")]
    Audience,
    /// `exp`, `aud`, `iss` or `sub` is missing, or has the wrong type.
    #[error("The token lacks a claim, or has one of another type")]
    Claims,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(rename = "exp")]
    expires: f64,
    scope: Option<String>,
    scp: Option<TokenScopes>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TokenScopes {
    Text(String),
    List(Vec<String>),
}

impl UnverifiedToken {
    /// Reads the claims that are needed to find the issuer's keys.
    ///
    /// # Errors
    ///
    /// The text is not a token, or no server should accept it.
    pub fn parse(token: &str) -> Result<Self, TokenFault> {
        #[derive(Deserialize)]
        struct Body {
            iss: String,
        }
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenFault::TooLong);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(body), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(TokenFault::Malformed);
        };
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::Malformed);
        let header: TokenHeader = serde_json::from_slice(&decoded(header)?).map_err(|_| TokenFault::Malformed)?;
        if header.crit.is_some() {
            return Err(TokenFault::Extension);
        }
        if !ALGORITHMS.iter().any(|(name, _)| *name == header.alg) {
            return Err(TokenFault::Algorithm);
        }
        let body = decoded(body)?;
        let body: Body = serde_json::from_slice(&body).map_err(|_| TokenFault::Claims)?;
        Ok(Self { issuer: body.iss, algorithm: header.alg, kid: header.kid })
    }
}

impl Issuer {
    /// Verifies a token that claims this issuer: signature, `iss`, `aud`, `exp`, `nbf`.
    ///
    /// # Errors
    /// It is not valid.
    pub fn verify(&self, token: &str, seen: &UnverifiedToken, keys: &KeySet) -> Result<VerifiedClaims, TokenFault> {
        if !self.algorithms.contains(&seen.algorithm.as_str()) {
            return Err(TokenFault::Algorithm);
        }
        let algorithm = ALGORITHMS.iter().find(|(name, _)| *name == seen.algorithm);
        let (_, algorithm) = *algorithm.ok_or(TokenFault::Algorithm)?;
        let key = keys.find(seen.kid.as_deref(), algorithm).ok_or(TokenFault::Key)?;
        signature::install();
        let mut validation = Validation::new(algorithm);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&self.audiences);
        validation.validate_nbf = true;
        validation.leeway = self.leeway.as_secs();
        let claims = decode::<Claims>(token, key, &validation).map_err(|error| fault(error.kind()))?.claims;
        claims.verified()
    }
}

impl Claims {
    fn verified(self) -> Result<VerifiedClaims, TokenFault> {
        let plain = !self.sub.is_empty()
            && self.sub.len() <= SUBJECT_BYTES_MAX
            && !self.sub.contains(|c: char| c.is_control() || c.is_whitespace());
        if !plain || !self.expires.is_finite() || self.expires < 0.0 {
            return Err(TokenFault::Claims);
        }
        let split = |text: String| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut scopes = self.scope.map(split).unwrap_or_default();
        match self.scp {
            Some(TokenScopes::Text(text)) => scopes.extend(split(text)),
            Some(TokenScopes::List(list)) => scopes.extend(list),
            None => {}
        }
        if scopes.len() > SCOPES_MAX {
            return Err(TokenFault::Claims);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is not negative")]
        Ok(VerifiedClaims { subject: self.sub, scopes, expires: self.expires as u64 })
    }
}

fn fault(kind: &ErrorKind) -> TokenFault {
    match kind {
        ErrorKind::ExpiredSignature => TokenFault::Expired,
        ErrorKind::ImmatureSignature => TokenFault::NotYet,
        ErrorKind::InvalidAudience => TokenFault::Audience,
        ErrorKind::InvalidIssuer => TokenFault::Issuer,
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) | ErrorKind::Json(_) => {
            TokenFault::Claims
        }
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => TokenFault::Algorithm,
        _ => TokenFault::Signature,
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use serde_json::{Value, json};

    use super::*;

    fn text(header: &str, body: &str) -> String {
        format!("{}.{}.AA", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(body))
    }

    /// An Ed25519 key from a well-known seed.
    fn key() -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
    }

    fn keys() -> KeySet {
        let x = URL_SAFE_NO_PAD.encode(key().public_key());
        let key = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": x});
        KeySet::parse(json!({"keys": [key]}).to_string().as_bytes()).unwrap()
    }

    fn issuer() -> Issuer {
        Issuer {
            issuer: "i".to_owned(),
            audiences: vec!["a".to_owned()],
            algorithms: vec!["EdDSA"],
            leeway: Duration::ZERO,
        }
    }

    fn checked(token: &str) -> Result<VerifiedClaims, TokenFault> {
        issuer().verify(token, &UnverifiedToken::parse(token)?, &keys())
    }

    fn signed(claims: &Value) -> String {
        let encoded = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let message = format!("{}.{}", encoded(&json!({"typ": "JWT", "alg": "EdDSA"})), encoded(claims));
        let signature = URL_SAFE_NO_PAD.encode(key().sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    #[test]
    fn a_token_holds_as_it_was_signed_and_with_no_byte_otherwise() {
        let token =
            signed(&json!({"iss": "i", "aud": ["b", "a"], "sub": "s", "exp": 4_102_444_800_u64, "scope": "x  y"}));
        let verified = checked(&token).unwrap();
        assert_eq!(verified.scopes, ["x", "y"]);
        assert_eq!((verified.subject.as_str(), verified.expires), ("s", 4_102_444_800));
        for place in 0..token.len() {
            assert!(checked(&token[..place]).is_err(), "cut at {place}");
            for byte in *b"A0_.=" {
                let mut other = token.clone().into_bytes();
                if std::mem::replace(&mut other[place], byte) != byte {
                    let other = String::from_utf8(other).unwrap();
                    assert!(checked(&other).is_err(), "byte {place}: {other}");
                }
            }
        }
        assert!(checked(&format!("{token}A")).is_err() && checked(&format!("{token}.")).is_err());
    }

    #[test]
    fn claims_have_their_types_and_bounds() {
        for (claim, value) in [
            ("exp", json!("4102444800")),
            ("exp", json!(null)),
            ("exp", json!(-1)),
            ("exp", json!({})),
            ("nbf", json!("0")),
            ("sub", json!("")),
            ("sub", json!(7)),
            ("sub", json!("a".repeat(256))),
            ("sub", json!("a\u{202e} b")),
            ("scope", json!(["x"])),
            ("scp", json!(7)),
            ("scp", json!(vec!["x"; SCOPES_MAX + 1])),
            ("aud", json!({})),
        ] {
            let mut claims = json!({"iss": "i", "aud": "a", "sub": "s", "exp": 4_102_444_800_u64});
            assert!(checked(&signed(&claims)).is_ok());
            claims[claim] = value;
            assert_eq!(checked(&signed(&claims)), Err(TokenFault::Claims), "{claims}");
        }
        let far = json!({"iss": "i", "aud": "a", "sub": "s", "exp": 1e300});
        assert_eq!(checked(&signed(&far)), Err(TokenFault::Claims));
    }

    #[test]
    fn what_nobody_should_take_is_refused_before_a_key_is_looked_for() {
        let body = r#"{"iss":"i"}"#;
        for (token, fault) in [
            (String::new(), TokenFault::Malformed),
            ("a.b".to_owned(), TokenFault::Malformed),
            ("a.b.c.d.e".to_owned(), TokenFault::Malformed),
            ("%.%.%".to_owned(), TokenFault::Malformed),
            (text("[]", body), TokenFault::Malformed),
            (text("{}", body), TokenFault::Malformed),
            (text(r#"{"alg":"none"}"#, body), TokenFault::Algorithm),
            (text(r#"{"alg":"None"}"#, body), TokenFault::Algorithm),
            (text(r#"{"alg":"HS256"}"#, body), TokenFault::Algorithm),
            (text(r#"{"alg":"RS256","crit":["b64"]}"#, body), TokenFault::Extension),
            (text(r#"{"alg":"RS256","alg":"none"}"#, body), TokenFault::Malformed),
            (text(r#"{"alg":"RS256"}"#, "{}"), TokenFault::Claims),
            (text(r#"{"alg":"RS256"}"#, r#"{"iss":["i"]}"#), TokenFault::Claims),
            (text(r#"{"alg":"RS256"}"#, r#"{"iss":"i","iss":"j"}"#), TokenFault::Claims),
            ("a".repeat(TOKEN_BYTES_MAX + 1), TokenFault::TooLong),
        ] {
            assert_eq!(UnverifiedToken::parse(&token), Err(fault), "{token:.60}");
        }
        let said = UnverifiedToken::parse(&text(r#"{"alg":"RS256","kid":"k","jku":"https://evil.example.com"}"#, body))
            .unwrap();
        assert_eq!((said.issuer.as_str(), said.kid.as_deref()), ("i", Some("k")));
    }
}
