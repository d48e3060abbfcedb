//! The id of a legacy session that any replica can answer: sealed, it contains everything that a
//! replica needs.

use std::sync::Arc;
use std::time::Duration;

use ring::digest::{Context, SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::asking::{AskCapabilities, now_ms};
use crate::caller::Caller;
use crate::frame::{base64, decode_base64};
use crate::meta::{ClientInfo, ClientLogLevel, Peer, cut};
use crate::revision::Revision;
use crate::sealing::{Purpose, StateKey, hex};

const ID_BYTES_MAX: usize = 2_048;

/// Longest name and version of a client in an id, in bytes; longer ones are cut. Only used for
/// logs.
const CLIENT_BYTES_MAX: usize = 64;

/// Longest declaration of extensions in an id, in bytes; other replicas ignore a longer one. 384:
/// three extensions with their settings.
const EXTENSIONS_BYTES_MAX: usize = 384;

/// The content of a session's id.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SealedSession {
    /// Digest of the caller with its scopes.
    #[serde(rename = "u")]
    caller: String,
    #[serde(rename = "r")]
    revision: String,
    #[serde(rename = "c")]
    capabilities: u8,
    /// Name and version of the client's program.
    #[serde(rename = "n")]
    client: Option<(String, String)>,
    /// The extensions that it declares, as a JSON object.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    extensions: Option<String>,
    /// Its expiry, in milliseconds since 1970.
    #[serde(rename = "e")]
    expires_ms: u64,
}

impl SealedSession {
    /// A session of this caller and client, for a limited time.
    pub(super) fn new(caller: &Caller, peer: &Peer, time: Duration) -> Self {
        let kept = |text: &str| cut(text, CLIENT_BYTES_MAX).to_owned();
        let client = peer.client.as_ref().map(|client| (kept(&client.name), kept(&client.version)));
        let extensions = peer.extensions.as_ref().filter(|text| text.len() <= EXTENSIONS_BYTES_MAX);
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            caller: digest_of(caller),
            revision: peer.revision.name().to_owned(),
            capabilities: peer.capabilities.bits(),
            client,
            extensions: extensions.map(|text| text.to_string()),
            expires_ms: now_ms().saturating_add(time_ms),
        }
    }

    /// Its id. `None` if the machine has no randomness.
    pub(super) fn seal(&self, key: &StateKey) -> Option<String> {
        let sealed = key.seal(Purpose::Session, serde_json::to_vec(self).ok()?)?;
        Some(base64(&sealed)).filter(|id| id.len() <= ID_BYTES_MAX)
    }

    /// The session of this id, if it was sealed under this key, belongs to this caller with
    /// unchanged scopes, and has not expired.
    pub(super) fn open(key: &StateKey, id: &str, caller: &Caller) -> Option<Self> {
        if id.len() > ID_BYTES_MAX {
            return None;
        }
        let mut whole = decode_base64(id)?;
        let session: Self = serde_json::from_slice(key.open(Purpose::Session, &mut whole)?).ok()?;
        (session.caller == digest_of(caller) && !session.left().is_zero()).then_some(session)
    }

    /// Time until it expires.
    pub(super) fn left(&self) -> Duration {
        Duration::from_millis(self.expires_ms.saturating_sub(now_ms()))
    }

    /// Its client.
    pub(super) fn peer(&self) -> Option<Peer> {
        let revision = Revision::named(&self.revision).filter(|revision| !revision.is_modern())?;
        let client = self.client.clone().map(|(name, version)| Arc::new(ClientInfo { name, version }));
        let capabilities = AskCapabilities::of_bits(self.capabilities);
        let extensions = self.extensions.as_deref().map(Arc::from);
        let log_level = Some(ClientLogLevel::LEGACY);
        Some(Peer { revision, client, log_level, capabilities, extensions })
    }
}

/// The name of a session among replicas: a digest of its id, which keeps the id secret.
pub(super) fn key_of(id: &str) -> String {
    hex(digest(&SHA256, id.as_bytes()).as_ref())
}

fn digest_of(caller: &Caller) -> String {
    let mut context = Context::new(&SHA256);
    for part in std::iter::once(caller.name()).chain(caller.scopes()) {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    base64(context.finish().as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn peer(name: &str) -> Peer {
        let client = Some(Arc::new(ClientInfo { name: name.to_owned(), version: "1".to_owned() }));
        let capabilities = AskCapabilities::of_bits(5);
        let extensions = Some(r#"{"io.modelcontextprotocol/ui":{}}"#.into());
        Peer {
            revision: Revision::V2025_11_25,
            client,
            log_level: Some(ClientLogLevel::LEGACY),
            capabilities,
            extensions,
        }
    }

    #[test]
    fn an_id_is_opened_by_any_replica_for_its_caller_alone() {
        let bytes = [7; crate::STATE_KEY_BYTES_MIN];
        let one = StateKey::of(&bytes).unwrap();
        let two = StateKey::of(&bytes).unwrap();
        let ann = Caller::new("ann", ["b", "a"]);
        let id = SealedSession::new(&ann, &peer("client"), HOUR).seal(&one).unwrap();
        let opened = SealedSession::open(&two, &id, &Caller::new("ann", ["a", "b"])).unwrap();
        let resumed = opened.peer().unwrap();
        assert_eq!((resumed.revision, resumed.capabilities), (Revision::V2025_11_25, AskCapabilities::of_bits(5)));
        assert_eq!((resumed.client, resumed.extensions), (peer("client").client, peer("client").extensions));
        assert!(opened.left() <= HOUR && opened.left() > HOUR / 2);
        for other in
            [Caller::new("ben", ["a", "b"]), Caller::new("ann", ["a"]), Caller::new("ann", ["ab"]), Caller::anyone()]
        {
            assert!(SealedSession::open(&two, &id, &other).is_none(), "{other:?}");
        }
        assert!(SealedSession::open(&StateKey::random(), &id, &ann).is_none());
        assert_ne!(id, SealedSession::new(&ann, &peer("client"), HOUR).seal(&one).unwrap());
    }

    #[test]
    fn an_id_expires_and_a_changed_one_is_none() {
        let key = StateKey::random();
        let ann = Caller::new("ann", []);
        let over = SealedSession::new(&ann, &peer("client"), Duration::ZERO).seal(&key).unwrap();
        assert!(SealedSession::open(&key, &over, &ann).is_none());
        let id = SealedSession::new(&ann, &peer("client"), HOUR).seal(&key).unwrap();
        for place in 0..id.len() {
            let mut bytes = id.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            assert!(SealedSession::open(&key, std::str::from_utf8(&bytes).unwrap(), &ann).is_none(), "byte {place}");
        }
        for cut in 0..id.len() {
            assert!(SealedSession::open(&key, &id[..cut], &ann).is_none(), "cut at {cut}");
        }
        assert!(SealedSession::open(&key, &"A".repeat(ID_BYTES_MAX + 4), &ann).is_none());
    }

    #[test]
    fn an_id_is_a_short_header_whatever_the_client_says() {
        let key = StateKey::random();
        let caller = Caller::new(&"é".repeat(10_000), [&*"s".repeat(10_000)]);
        for name in ["é\"", "\u{1}", "client"] {
            let id = SealedSession::new(&caller, &peer(&name.repeat(10_000)), HOUR).seal(&key).unwrap();
            assert!(id.len() <= 1_024, "{}", id.len());
            assert!(http::HeaderValue::from_str(&id).is_ok());
        }
        assert_eq!(key_of("").len(), 64);
        assert_eq!(key_of("").get(..8), Some("e3b0c442"));
    }
}
