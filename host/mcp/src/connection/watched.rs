//! The addresses that one session or stream watches, and those whose changes are still to be
//! notified.

use std::collections::BTreeMap;

use crate::frame::RpcError;
use crate::news::{WATCHED_URI_BYTES_MAX, WatchShare, normal_uri};

/// Watched addresses, as the client wrote them.
#[derive(Debug, Default)]
pub(super) struct WatchedUris(BTreeMap<Box<str>, WatchedUri>);

#[derive(Debug)]
struct WatchedUri {
    /// The address in its normal form.
    normal: Box<str>,
    /// True if it has changed since the last notification.
    changed: bool,
    _share: WatchShare,
}

impl WatchedUris {
    /// Watches one more address. `share` counts it against the caller's limit, if there is room.
    ///
    /// # Errors
    ///
    /// The address is too long, or the list is full.
    pub(super) fn add(
        &mut self,
        uri: &str,
        most: usize,
        share: impl FnOnce() -> Option<WatchShare>,
    ) -> Result<(), RpcError> {
        if uri.is_empty() || uri.len() > WATCHED_URI_BYTES_MAX {
            let text = format!("The address of a resource has 1 to {WATCHED_URI_BYTES_MAX} bytes");
            return Err(RpcError::params(text));
        }
        if self.0.contains_key(uri) {
            return Ok(());
        }
        // The request is valid, but the server has no room for it.
        let full = |text: String| RpcError::internal(text);
        if self.0.len() >= most {
            return Err(full(format!("At most {most} resources may be watched at once: unsubscribe from one first")));
        }
        let share = share();
        let share = share.ok_or_else(|| full("This caller watches as many resources as it may".to_owned()))?;
        let normal = normal_uri(uri).into();
        self.0.insert(uri.into(), WatchedUri { normal, changed: false, _share: share });
        Ok(())
    }

    /// Stops watching an address.
    pub(super) fn remove(&mut self, uri: &str) {
        self.0.remove(uri);
    }

    /// The addresses, as the client wrote them.
    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(AsRef::as_ref)
    }

    /// Marks the addresses for which this returns true as changed. It gets the normal form.
    pub(super) fn note(&mut self, has_changed: impl Fn(&str) -> bool) {
        for watched in self.0.values_mut().filter(|watched| !watched.changed) {
            watched.changed = has_changed(&watched.normal);
        }
    }

    /// True if some changes are still to be notified.
    pub(super) fn has_news(&self) -> bool {
        self.0.values().any(|watched| watched.changed)
    }

    /// The changed addresses. They then count as notified.
    pub(super) fn take_changed(&mut self) -> Vec<String> {
        let changed = self.0.iter_mut().filter_map(|(uri, watched)| {
            let has_changed = std::mem::take(&mut watched.changed);
            has_changed.then(|| uri.to_string())
        });
        changed.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::news::WatchCounts;

    #[test]
    fn a_change_is_told_once_under_the_spelling_of_the_client_and_several_are_one() {
        let counts = Arc::<WatchCounts>::default();
        let mut watched = WatchedUris::default();
        for uri in ["file:///a%62", "file:///b"] {
            watched.add(uri, 2, || counts.take("ann", 9)).unwrap();
        }
        assert!(!watched.has_news());
        watched.note(|uri| uri == "file:///ab");
        watched.note(|uri| uri == "file:///ab");
        assert!(watched.has_news());
        assert_eq!(watched.take_changed(), ["file:///a%62"]);
        assert_eq!(watched.take_changed(), [""; 0]);
        watched.remove("file:///b");
        watched.note(|_| true);
        assert_eq!(watched.take_changed(), ["file:///a%62"]);
    }

    #[test]
    fn addresses_are_bounded_in_length_and_number_and_a_second_time_is_no_second_one() {
        let counts = Arc::<WatchCounts>::default();
        let mut watched = WatchedUris::default();
        let long = format!("file:///{}", "a".repeat(WATCHED_URI_BYTES_MAX - 8));
        let longer = format!("{long}a");
        for (uri, fits) in
            [("a:1", true), ("a:1", true), (&*long, true), (&*longer, false), ("", false), ("a:2", false)]
        {
            assert_eq!(watched.add(uri, 2, || counts.take("ann", 3)).is_ok(), fits, "{}", uri.len());
        }
        let mut other = WatchedUris::default();
        other.add("a:1", 2, || counts.take("ann", 3)).unwrap();
        assert!(other.add("a:2", 2, || counts.take("ann", 3)).is_err(), "the caller has three");
        drop(watched);
        other.add("a:2", 2, || counts.take("ann", 3)).unwrap();
    }
}
