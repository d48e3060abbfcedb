//! `requestState`: the sealed state of a call between its rounds, which travels through the client.

use std::time::SystemTime;

use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use crate::frame::{base64, decode_base64};
use crate::sealing::{Purpose, StateKey};

/// Longest `requestState`, in bytes: several times the default number of answers of the default
/// length.
pub(super) const STATE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The state of a call between two rounds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Remembered {
    /// Who called.
    #[serde(rename = "p")]
    pub(super) principal: String,
    /// Its expiry, in milliseconds since 1970.
    #[serde(rename = "e")]
    pub(super) expires_ms: u64,
    /// Digest of the tool, its arguments and the subject of its questions.
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
    /// What the host has to find again in the next round.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// A new name for the rounds of one call.
pub(super) fn new_chain() -> String {
    let mut bytes = [0; 16];
    // Without randomness nothing is sealed, so there is no further round.
    let _ = SystemRandom::new().fill(&mut bytes);
    base64(&bytes)
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Seals. `None` if the result would be too long, or the machine has no randomness.
pub(super) fn seal(key: &StateKey, remembered: &Remembered) -> Option<String> {
    let sealed = key.seal(Purpose::RequestState, serde_json::to_vec(remembered).ok()?)?;
    Some(base64(&sealed)).filter(|text| text.len() <= STATE_BYTES_MAX)
}

/// Opens a state that [`seal`] made under the same key; `None` for anything else.
pub(super) fn open(key: &StateKey, text: &str) -> Option<Remembered> {
    if text.len() > STATE_BYTES_MAX {
        return None;
    }
    let mut whole = decode_base64(text)?;
    serde_json::from_slice(key.open(Purpose::RequestState, &mut whole)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealing::{STATE_KEY_BYTES_MIN, WeakKey};

    fn remembered() -> Remembered {
        let answered = vec![("name".to_owned(), "d".to_owned(), "{}".to_owned())];
        Remembered {
            principal: "local".to_owned(),
            expires_ms: 1,
            request: "r".to_owned(),
            chain: "c".to_owned(),
            answered,
            asked: Vec::new(),
            note: None,
        }
    }

    #[test]
    fn only_the_key_that_sealed_opens() {
        let key = StateKey::random();
        let other = StateKey::random();
        let sealed = seal(&key, &remembered()).unwrap();
        assert_eq!(open(&key, &sealed).unwrap().answered, remembered().answered);
        assert!(open(&other, &sealed).is_none());
        assert_ne!(sealed, seal(&key, &remembered()).unwrap(), "nothing tells that two hold the same");
    }

    #[test]
    fn replicas_with_one_key_open_what_the_other_sealed() {
        let bytes = [7; STATE_KEY_BYTES_MIN];
        let one = StateKey::of(&bytes).unwrap();
        let two = StateKey::of(&bytes).unwrap();
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
