//! Entries of tools' state as resources: their addresses, and reading them.
//!
//! | address, of `note:///{+key}` | key |
//! |---|---|
//! | `note:///a/b%20c` | `a/b c` |
//! | `note:///a%2Fb` | none: a slash has one spelling. In `{key}`, which has no `/`, it is `%2F` |
//! | `note:///a?b`, `note:///a#b` | none: `%3F` and `%23` stand for these |
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use toolcell_mcp::normal_uri;
use toolcell_policy::ResourceRule;
use toolcell_sandbox::GrantedCapabilities;

use crate::resources::folders::{ReadFile, decoded};

/// Entries that are read at once, for all clients together. 16: each may take a thread.
const READS_MAX: usize = 16;

/// Reads that may wait for their turn. Further ones fail at once.
const WAITING_MAX: usize = 1_024;

/// Longest wait for an entry. Another host may have the file for two seconds.
const READ_TIME: Duration = Duration::from_secs(10);

/// Longest address of an entry, in bytes: clients and proxies accept this much.
const URI_BYTES_MAX: usize = 2_048;

/// Entries that are resources by a rule of the manifest.
pub struct KeptEntries {
    /// Those of a tool that keeps the state.
    capabilities: Arc<GrantedCapabilities>,
    bucket: String,
    addresses: Addresses,
    mime_type: Option<String>,
}

/// The addresses of entries.
#[derive(Debug, PartialEq, Eq)]
enum Addresses {
    /// One address, of this key.
    One { uri: String, key: String },
    /// Addresses with this prefix; the rest is the key. With `slashes`, it may contain slashes.
    Below { prefix: String, slashes: bool },
}

impl KeptEntries {
    /// The entries of a rule, if it has any.
    pub fn of(rule: &ResourceRule, capabilities: &Arc<GrantedCapabilities>) -> Option<Self> {
        let entries = rule.entries()?;
        let addresses = match &entries.key {
            Some(key) => Addresses::One { uri: rule.uri().as_str().to_owned(), key: key.clone() },
            None => {
                let (prefix, _, slashes) = rule.uri().around_variable()?;
                Addresses::Below { prefix: prefix.to_owned(), slashes }
            }
        };
        let bucket = entries.bucket.clone();
        let mime_type = rule.mime_type().map(str::to_owned);
        Some(Self { capabilities: Arc::clone(capabilities), bucket, addresses, mime_type })
    }

    /// True if each caller has entries of its own.
    pub fn is_per_caller(&self) -> bool {
        self.capabilities.grants().keyvalue().is_some_and(|state| state.per_caller())
    }

    /// True for entries of this bucket.
    pub fn is_of(&self, bucket: &str) -> bool {
        self.bucket == bucket
    }

    /// The address of the entry of this key; `None` if it has none here.
    pub fn uri_of(&self, key: &str) -> Option<String> {
        self.addresses.uri_of(key)
    }

    /// A text that changes if an address is read from something else.
    pub fn identity(&self) -> String {
        format!("{} {:?} {:?}", self.bucket, self.addresses, self.mime_type)
    }
}

impl Addresses {
    fn uri_of(&self, key: &str) -> Option<String> {
        match self {
            Self::One { uri, key: own } => (key == own).then(|| normal_uri(uri)),
            Self::Below { prefix, slashes } => {
                let mut escaped = key.replace('%', "%25").replace('?', "%3F").replace('#', "%23");
                if !slashes {
                    escaped = escaped.replace('/', "%2F");
                }
                let uri = normal_uri(&format!("{prefix}{escaped}"));
                (uri.len() <= URI_BYTES_MAX).then_some(uri)
            }
        }
    }

    fn key_of(&self, uri: &str) -> Option<String> {
        match self {
            Self::One { key, .. } => Some(key.clone()),
            Self::Below { prefix, slashes } => decoded(uri.strip_prefix(prefix)?, !slashes),
        }
    }
}

/// Reads entries, a bounded number at once.
pub struct EntryReads {
    runtime: Handle,
    places: Arc<Semaphore>,
    asked: Arc<Semaphore>,
}

/// The entry cannot be read now.
pub struct NotNow;

impl EntryReads {
    pub fn new(runtime: Handle) -> Self {
        let places = Semaphore::new(READS_MAX);
        let asked = Semaphore::new(READS_MAX + WAITING_MAX);
        Self { runtime, places: Arc::new(places), asked: Arc::new(asked) }
    }

    /// The entry at this address, as this caller's calls find it, if any.
    pub async fn read(&self, entries: &Arc<KeptEntries>, uri: &str, caller: &str) -> Result<Option<ReadFile>, NotNow> {
        let Some(key) = entries.addresses.key_of(uri) else { return Ok(None) };
        let asked = Arc::clone(&self.asked).try_acquire_owned().map_err(|_full| NotNow)?;
        let places = Arc::clone(&self.places);
        let own = Arc::clone(entries);
        let caller = caller.to_owned();
        let reading = async move {
            let _place = (places.acquire_owned().await.map_err(|_closed| NotNow)?, asked);
            own.capabilities.kept_value(&caller, &own.bucket, key).await.map_err(|why| {
                tracing::warn!("an entry of state cannot be read as a resource: {why}");
                NotNow
            })
        };
        let within = self.runtime.spawn(async move { timeout(READ_TIME, reading).await });
        let value = within.await.ok().and_then(Result::ok).unwrap_or(Err(NotNow))?;
        Ok(value.map(|value| ReadFile::of(value, entries.mime_type.as_deref())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_address_and_each_address_one_key() {
        let below = |slashes| Addresses::Below { prefix: "note:///".to_owned(), slashes };
        for (slashes, key, uri) in [
            (true, "a/b c", "note:///a/b%20c"),
            (true, "100%", "note:///100%25"),
            (true, "%41", "note:///%2541"),
            (true, "a?b#c", "note:///a%3Fb%23c"),
            (true, "ä\n", "note:///%C3%A4%0A"),
            (false, "a/b", "note:///a%2Fb"),
            (false, "..", "note:///.."),
        ] {
            let addresses = below(slashes);
            assert_eq!(addresses.uri_of(key).as_deref(), Some(uri));
            assert_eq!(addresses.key_of(uri).as_deref(), Some(key));
        }
        for (slashes, uri) in [
            (true, "note:///a%2Fb"),
            (true, "note:///a?b"),
            (true, "note:///a#b"),
            (true, "note:///%ff"),
            (true, "note:///%4"),
            (true, "other:///a"),
        ] {
            assert_eq!(below(slashes).key_of(uri), None, "{uri}");
        }
        assert_eq!(below(true).uri_of(&"k".repeat(2_048)), None, "longer than an address may be");
        let one = Addresses::One { uri: "note:///index".to_owned(), key: "the index".to_owned() };
        assert_eq!(one.uri_of("the index").as_deref(), Some("note:///index"));
        assert_eq!((one.uri_of("other"), one.key_of("note:///index").as_deref()), (None, Some("the index")));
    }
}
