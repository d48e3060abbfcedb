//! Changes of resources: what has changed, how all replicas are notified, and bounds on watched
//! resources.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::lock::lock;

pub(crate) const WATCHED_URI_BYTES_MAX: usize = 2_048;

/// The prefix of the name that all connections of a caller share.
const CALLER: &str = "name\n";

/// A change of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceNews {
    /// The client that the resources belong to; `None`: everybody's.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The addresses whose content has changed, each with a number for its new state; 0 never
    /// equals another.
    #[serde(rename = "u", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub updated: BTreeMap<String, u64>,
    /// Components whose resources may all have changed.
    #[serde(rename = "c", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub components: BTreeSet<String>,
    /// True if any address may have changed.
    #[serde(rename = "a", default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// True if the list has changed.
    #[serde(rename = "l", default, skip_serializing_if = "std::ops::Not::not")]
    pub list: bool,
}

impl ResourceNews {
    /// True if nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.updated.is_empty() && self.components.is_empty() && !self.all && !self.list
    }

    /// The name of all connections of this caller, for [`to`](Self::to).
    #[must_use]
    pub fn to_caller(name: &str) -> String {
        format!("{CALLER}{name}")
    }

    /// True if this name is that of the caller's connections.
    pub(crate) fn is_to_caller(to: &str, name: &str) -> bool {
        to.strip_prefix(CALLER) == Some(name)
    }

    /// True if the content of this address has changed. It is in its
    /// [normal form](normal_uri). `component_of` returns the component that reads it.
    pub(crate) fn touches<'c>(&self, uri: &str, component_of: impl FnOnce(&str) -> Option<&'c str>) -> bool {
        let is_of = |component: &str| self.components.contains(component);
        self.all
            || self.updated.contains_key(uri)
            || (!self.components.is_empty() && component_of(uri).is_some_and(is_of))
    }
}

/// Carries changes to every replica of the server, including this one. Each passes them to
/// [`McpServer::resources_changed`](crate::McpServer::resources_changed).
pub trait NewsCarrier: Send + Sync + 'static {
    /// Accepts a change, without waiting. Several may be merged.
    fn carry(&self, news: ResourceNews);
}

/// An address with one spelling: characters that need no escape have none, all others have one
/// (RFC 3986, section 6.2.2). Addresses of files are compared in this form.
#[must_use]
pub fn normal_uri(uri: &str) -> String {
    let bytes = uri.as_bytes();
    let mut normal = String::with_capacity(bytes.len());
    let mut place = 0;
    while let Some(byte) = bytes.get(place) {
        let escaped = bytes.get(place + 1..place + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.filter(|digits| *byte == b'%' && digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                push_normal(&mut normal, decoded, false);
                place += 3;
            }
            None => {
                push_normal(&mut normal, *byte, matches!(byte, b'/' | b'?' | b'#'));
                place += 1;
            }
        }
    }
    normal
}

fn push_normal(out: &mut String, byte: u8, separates: bool) {
    if separates || byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte) {
        out.push(char::from(byte));
    } else {
        // Writing to a String cannot fail.
        let _ = write!(out, "%{byte:02X}");
    }
}

#[derive(Debug, Default)]
pub(crate) struct WatchCounts(Mutex<HashMap<Box<str>, usize>>);

/// One of a caller's watched addresses; freed when dropped.
#[derive(Debug)]
pub(crate) struct WatchShare {
    counts: Arc<WatchCounts>,
    caller: Box<str>,
}

impl WatchCounts {
    /// One more for this caller; `None` at the limit.
    pub(crate) fn take(self: &Arc<Self>, caller: &str, most: usize) -> Option<WatchShare> {
        let mut counts = lock(&self.0);
        let count = counts.entry(caller.into()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(WatchShare { counts: Arc::clone(self), caller: caller.into() })
    }
}

impl Drop for WatchShare {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts.0);
        if let Some(count) = counts.get_mut(&self.caller) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_spelling() {
        for (uri, normal) in [
            ("file:///docs/a.md", "file:///docs/a.md"),
            ("file:///docs/a b", "file:///docs/a%20b"),
            ("file:///docs/%61%2e%6d%64", "file:///docs/a.md"),
            ("file:///docs/%c3%a4", "file:///docs/%C3%A4"),
            ("file:///docs/ä", "file:///docs/%C3%A4"),
            ("file:///docs/[id]", "file:///docs/%5Bid%5D"),
            ("file:///a%2Fb", "file:///a%2Fb"),
            ("note:x?y#z", "note:x?y#z"),
            ("note:100%", "note:100%25"),
            ("note:%zz%1", "note:%25zz%251"),
        ] {
            assert_eq!(normal_uri(uri), normal, "{uri}");
            assert_eq!(normal_uri(normal), normal, "{uri}");
        }
    }

    #[test]
    fn a_caller_watches_so_many_and_others_are_not_held_up() {
        let counts = Arc::<WatchCounts>::default();
        let held: Vec<_> = (0..2).map(|_| counts.take("ann", 2).unwrap()).collect();
        assert!(counts.take("ann", 2).is_none() && counts.take("ben", 2).is_some());
        drop(held);
        assert!(counts.take("ann", 2).is_some());
        assert!(lock(&counts.0).is_empty());
    }
}
