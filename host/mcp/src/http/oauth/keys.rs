//! The public keys of an issuer for checking tokens (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::value::RawValue;

/// Keys of one set. Issuers have two to ten.
const KEYS_MAX: usize = 100;

/// Bytes of an RSA modulus. Shorter ones are broken, longer ones too slow to check (2,048 to 8,192
/// bits).
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1_024;

/// The longest name of a key, in bytes.
const KID_BYTES_MAX: usize = 512;

/// The keys of one issuer.
#[derive(Clone, Debug, Default)]
pub struct KeySet(Vec<WebKey>);

#[derive(Clone, Debug)]
struct WebKey {
    kid: Option<String>,
    /// The only algorithm of the key, if the set names one.
    only: Option<Algorithm>,
    kind: KeyKind,
    key: DecodingKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// Why a set of keys is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// It is not JSON with a list `keys`.
    #[error("this is not a JSON key set")]
    Form,
    /// There are too many keys.
    #[error("the set has more than {KEYS_MAX} keys")]
    TooMany,
    /// No key has a known algorithm.
    #[error("the set has no key that a token can be checked with")]
    Empty,
}

impl KeySet {
    /// Reads a set. Keys for other purposes, or of unknown kinds, are left out.
    ///
    /// # Errors
    /// The text is not a set of keys, or has no usable key.
    pub fn parse(json: &[u8]) -> Result<Self, KeySetError> {
        #[derive(serde::Deserialize)]
        struct Set<'s> {
            #[serde(borrow)]
            keys: Vec<&'s RawValue>,
        }
        let set: Set<'_> = serde_json::from_slice(json).map_err(|_| KeySetError::Form)?;
        if set.keys.len() > KEYS_MAX {
            return Err(KeySetError::TooMany);
        }
        let read = |text: &&RawValue| WebKey::of(&serde_json::from_str(text.get()).ok()?);
        let keys: Vec<WebKey> = set.keys.iter().filter_map(read).collect();
        if keys.is_empty() { Err(KeySetError::Empty) } else { Ok(Self(keys)) }
    }

    /// The key that a token names. Without a name, the only key that fits the algorithm.
    pub(super) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let mut fitting =
            self.0.iter().filter(|key| key.takes(algorithm) && kid.is_none_or(|kid| key.kid.as_deref() == Some(kid)));
        let found = fitting.next()?;
        // Trying each would let a client cause as many checks as there are keys.
        if fitting.next().is_some() { None } else { Some(&found.key) }
    }
}

impl WebKey {
    fn of(jwk: &Jwk) -> Option<Self> {
        let common = &jwk.common;
        if common.public_key_use.as_ref().is_some_and(|usage| *usage != PublicKeyUse::Signature) {
            return None;
        }
        if common.key_id.as_ref().is_some_and(|kid| kid.len() > KID_BYTES_MAX) {
            return None;
        }
        let kind = match &jwk.algorithm {
            AlgorithmParameters::RSA(rsa) => {
                let modulus = URL_SAFE_NO_PAD.decode(rsa.n.trim_end_matches('=')).ok()?;
                RSA_BYTES.contains(&modulus.len()).then_some(KeyKind::Rsa)?
            }
            AlgorithmParameters::EllipticCurve(point) => match point.curve {
                EllipticCurve::P256 => KeyKind::P256,
                EllipticCurve::P384 => KeyKind::P384,
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => KeyKind::Ed25519,
            // Symmetric keys are not accepted.
            _ => return None,
        };
        let only = match common.key_algorithm {
            Some(named) => Some(Algorithm::try_from(named).ok()?),
            None => None,
        };
        let key = Self { kid: common.key_id.clone(), only, kind, key: DecodingKey::from_jwk(jwk).ok()? };
        only.is_none_or(|only| key.takes(only)).then_some(key)
    }

    fn takes(&self, algorithm: Algorithm) -> bool {
        use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        let kind = match algorithm {
            RS256 | RS384 | RS512 | PS256 | PS384 | PS512 => KeyKind::Rsa,
            ES256 => KeyKind::P256,
            ES384 => KeyKind::P384,
            EdDSA => KeyKind::Ed25519,
            _ => return false,
        };
        self.kind == kind && self.only.is_none_or(|only| only == algorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: &str = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4";
    const Y: &str = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM";
    const ED: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn ec(more: &str) -> String {
        format!(r#"{{"kty":"EC","crv":"P-256","x":"{X}","y":"{Y}"{more}}}"#)
    }

    fn set(keys: &[String]) -> Result<KeySet, KeySetError> {
        KeySet::parse(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes())
    }

    #[test]
    fn keys_that_no_token_may_be_checked_with_are_left_out() {
        let short = URL_SAFE_NO_PAD.encode([0xff; 128]);
        for (what, key) in [
            ("a shared key", r#"{"kty":"oct","k":"AAAA","kid":"a"}"#.to_owned()),
            ("one for encryption", ec(r#","use":"enc""#)),
            ("one for another algorithm", ec(r#","alg":"RS256""#)),
            ("one for a shared key's algorithm", ec(r#","alg":"HS256""#)),
            ("a curve that is not known", r#"{"kty":"EC","crv":"P-521","x":"AA","y":"AA"}"#.to_owned()),
            ("a short modulus", format!(r#"{{"kty":"RSA","n":"{short}","e":"AQAB"}}"#)),
            ("no base64", r#"{"kty":"RSA","n":"%","e":"AQAB"}"#.to_owned()),
            ("an unknown kind", r#"{"kty":"AKP","pub":"AA"}"#.to_owned()),
            ("no key", "7".to_owned()),
        ] {
            assert_eq!(set(std::slice::from_ref(&key)).unwrap_err(), KeySetError::Empty, "{what}");
            assert_eq!(set(&[key, ec("")]).unwrap().0.len(), 1, "{what}");
        }
        assert_eq!(KeySet::parse(b"{}").unwrap_err(), KeySetError::Form);
        assert_eq!(KeySet::parse(b"<html>").unwrap_err(), KeySetError::Form);
        assert_eq!(set(&vec![ec(""); 101]).unwrap_err(), KeySetError::TooMany);
    }

    #[test]
    fn a_token_that_names_no_key_is_checked_where_only_one_fits() {
        let ed = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{ED}","kid":"b"}}"#);
        let two = set(&[ec(r#","kid":"a""#), ed.clone()]).unwrap();
        for (kid, algorithm, found) in [
            (Some("a"), Algorithm::ES256, true),
            (Some("a"), Algorithm::EdDSA, false),
            (Some("b"), Algorithm::EdDSA, true),
            (Some("c"), Algorithm::ES256, false),
            (None, Algorithm::ES256, true),
            (None, Algorithm::RS256, false),
            (None, Algorithm::HS256, false),
        ] {
            assert_eq!(two.find(kid, algorithm).is_some(), found, "{kid:?} {algorithm:?}");
        }
        let several = set(&[ec(r#","kid":"a""#), ec(r#","kid":"c""#), ed]).unwrap();
        assert!(several.find(None, Algorithm::ES256).is_none() && several.find(Some("c"), Algorithm::ES256).is_some());
    }
}
