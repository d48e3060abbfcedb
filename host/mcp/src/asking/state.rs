//! `requestState`: the sealed memory of a call between its rounds, which travels through the
//! client. Must not hold: its use.
//!
//! It is sealed with AES-256-GCM under a fresh key: HKDF-SHA256 over the server's key and a random
//! salt. A key that seals once needs no nonce. So nothing is counted, and replicas may share the
//! server's key.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::frame::{decode_base64, push_base64};

/// Least length of a given key, in bytes: that of a SHA-256 digest.
pub const STATE_KEY_BYTES_MIN: usize = 32;

/// Longest `requestState`, in bytes. It holds the default number of answers of the default length
/// several times.
pub(super) const STATE_BYTES_MAX: usize = 4 * 1024 * 1024;

const SALT_BYTES: usize = 32;

/// The purpose of the derived keys. It changes with the sealed format.
const PURPOSE: &[u8] = b"toolcell requestState 1";

/// The key under which `requestState` is sealed. Cheap to clone; never shown.
#[derive(Clone)]
pub struct StateKey(Arc<[u8]>);

/// A key is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key has {bytes} bytes, and must have at least {STATE_KEY_BYTES_MIN}")]
pub struct WeakKey {
    /// The length of the given key.
    pub bytes: usize,
}

impl StateKey {
    /// A key of these bytes, for several processes that answer the same clients.
    ///
    /// # Errors
    /// [`WeakKey`] if there are fewer than [`STATE_KEY_BYTES_MIN`].
    pub fn of(bytes: &[u8]) -> Result<Self, WeakKey> {
        if bytes.len() < STATE_KEY_BYTES_MIN {
            return Err(WeakKey { bytes: bytes.len() });
        }
        Ok(Self(bytes.into()))
    }

    /// A new random key. States sealed under another key are refused.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; STATE_KEY_BYTES_MIN];
        // Without randomness the key is empty, and seals nothing.
        match SystemRandom::new().fill(&mut bytes) {
            Ok(()) => Self(bytes.as_slice().into()),
            Err(_) => Self(Arc::from([])),
        }
    }

    fn derived(&self, salt: &[u8]) -> Option<LessSafeKey> {
        if self.0.is_empty() {
            return None;
        }
        let prk = Salt::new(HKDF_SHA256, salt).extract(&self.0);
        let key = prk.expand(&[PURPOSE], &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(key)))
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(..)")
    }
}

/// The memory of a call between two rounds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Remembered {
    /// Who called.
    #[serde(rename = "p")]
    pub(super) principal: String,
    /// Its expiry, in milliseconds since 1970.
    #[serde(rename = "e")]
    pub(super) expires_ms: u64,
    /// Digest of the tool, its arguments and its code.
    #[serde(rename = "r")]
    pub(super) request: String,
    /// The name that all rounds of the call share.
    #[serde(rename = "c")]
    pub(super) chain: String,
    /// The answers of earlier rounds: key, digest of the question, answer.
    #[serde(rename = "a")]
    pub(super) answered: Vec<(String, String, String)>,
    /// The questions of the last round: key, digest of the question.
    #[serde(rename = "q")]
    pub(super) asked: Vec<(String, String)>,
}

/// A new name for the rounds of one call.
pub(super) fn new_chain() -> String {
    let mut bytes = [0; 16];
    // Without randomness nothing is sealed, so no further round comes.
    let _ = SystemRandom::new().fill(&mut bytes);
    let mut out = Vec::new();
    push_base64(&mut out, &bytes);
    String::from_utf8_lossy(&out).into_owned()
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Seals. `None` if the result would be too long, or the machine has no randomness.
pub(super) fn seal(key: &StateKey, remembered: &Remembered) -> Option<String> {
    let mut salt = [0; SALT_BYTES];
    SystemRandom::new().fill(&mut salt).ok()?;
    let sealing = key.derived(&salt)?;
    let mut sealed = serde_json::to_vec(remembered).ok()?;
    let nonce = Nonce::assume_unique_for_key([0; 12]);
    sealing.seal_in_place_append_tag(nonce, Aad::empty(), &mut sealed).ok()?;
    let mut whole = salt.to_vec();
    whole.append(&mut sealed);
    let mut out = Vec::new();
    push_base64(&mut out, &whole);
    String::from_utf8(out).ok().filter(|text| text.len() <= STATE_BYTES_MAX)
}

/// Opens a state that [`seal`] made under the same key; `None` for anything else.
pub(super) fn open(key: &StateKey, text: &str) -> Option<Remembered> {
    if text.len() > STATE_BYTES_MAX {
        return None;
    }
    let mut whole = decode_base64(text)?;
    let (salt, sealed) = whole.split_at_mut_checked(SALT_BYTES)?;
    let nonce = Nonce::assume_unique_for_key([0; 12]);
    let opened = key.derived(salt)?.open_in_place(nonce, Aad::empty(), sealed).ok()?;
    serde_json::from_slice(opened).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered() -> Remembered {
        let answered = vec![("name".to_owned(), "d".to_owned(), "{}".to_owned())];
        Remembered {
            principal: "local".to_owned(),
            expires_ms: 1,
            request: "r".to_owned(),
            chain: "c".to_owned(),
            answered,
            asked: Vec::new(),
        }
    }

    #[test]
    fn only_the_key_that_sealed_opens() {
        let (key, other) = (StateKey::random(), StateKey::random());
        let sealed = seal(&key, &remembered()).unwrap();
        assert_eq!(open(&key, &sealed).unwrap().answered, remembered().answered);
        assert!(open(&other, &sealed).is_none());
        assert_ne!(sealed, seal(&key, &remembered()).unwrap(), "nothing tells that two hold the same");
    }

    #[test]
    fn replicas_with_one_key_open_what_the_other_sealed() {
        let bytes = [7; STATE_KEY_BYTES_MIN];
        let (one, two) = (StateKey::of(&bytes).unwrap(), StateKey::of(&bytes).unwrap());
        assert!(open(&two, &seal(&one, &remembered()).unwrap()).is_some());
        assert_eq!(StateKey::of(&bytes[1..]).unwrap_err(), WeakKey { bytes: 31 });
    }

    #[test]
    fn a_change_anywhere_is_seen() {
        let key = StateKey::random();
        let sealed = seal(&key, &remembered()).unwrap();
        for place in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            assert!(open(&key, std::str::from_utf8(&bytes).unwrap()).is_none(), "byte {place}");
        }
        for cut in 0..sealed.len() {
            assert!(open(&key, &sealed[..cut]).is_none(), "cut at {cut}");
        }
        assert!(open(&key, &format!("{sealed}AAAA")).is_none());
    }
}
