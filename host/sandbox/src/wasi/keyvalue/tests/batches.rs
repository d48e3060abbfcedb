//! Batches: their size, their waiters, and the quota that ends them.
//!
//! Promise: state and files hold nobody up.
use super::*;

#[test]
fn a_batch_is_bounded_in_keys_and_bytes_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let bounds = NamespaceBounds { bytes: 1 << 30, entries: 1_000_000, value_bytes: 16 << 20 };
    let pairs = |count: usize| (0..count).map(|n| (format!("k{n}"), Vec::new())).collect::<Vec<_>>();
    let keys = |count: usize| pairs(count).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    let refused = |result: Result<(), StateRefusal>| matches!(result, Err(StateRefusal::Unfit(UnfitOperation::Keys { keys, max })) if keys == max + 1);
    assert!(refused(store.set_many(&shared(), &bounds, &pairs(BATCH_KEYS_MAX + 1)).map(drop)));
    assert!(refused(store.delete_many(&shared(), &bounds, &keys(BATCH_KEYS_MAX + 1)).map(drop)));
    assert!(refused(store.get_many(&shared(), keys(BATCH_KEYS_MAX + 1), 1000).map(drop)));
    let large: Vec<_> = ["a", "b"].map(|key| (key.to_owned(), vec![7; (BATCH_BYTES_MAX / 2) as usize])).into();
    let error = store.set_many(&shared(), &bounds, &large).unwrap_err();
    let text = "the keys and values of one batch are at most 33554432 bytes together, and these are 33554434; split it";
    assert_eq!(error.to_string(), text);
    assert!(all_keys(&store, &shared()).is_empty());
    store.set_many(&shared(), &bounds, &pairs(BATCH_KEYS_MAX)).unwrap();
    assert_eq!(store.get_many(&shared(), keys(BATCH_KEYS_MAX), 1 << 20).unwrap().len(), BATCH_KEYS_MAX);
    store.delete_many(&shared(), &bounds, &keys(BATCH_KEYS_MAX)).unwrap();
}

#[test]
fn a_batch_that_nobody_waits_for_any_more_is_not_done() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    set(&store, &shared(), &ROOMY, "a", "1").unwrap();
    let place = shared();
    let stop = StopFlag::default();
    let change = StateWrite { place: &place, bounds: &ROOMY, stop: &stop };
    let pairs: Vec<_> = (0..1000).map(|n| (format!("k{n}"), Vec::new())).collect();
    drop(stop.waiter());
    assert!(matches!(store.set_all(change, &pairs), Err(StateRefusal::Stopped)));
    assert!(matches!(store.delete_all(change, &["a".to_owned()]), Err(StateRefusal::Stopped)));
    assert!(matches!(store.add(change, "n", 1), Err(StateRefusal::Stopped)));
    assert!(matches!(store.get_all(&place, vec!["a".to_owned()], 1000, &stop), Err(StateRefusal::Stopped)));
    assert_eq!(all_keys(&store, &shared()), ["a"]);
}

#[test]
fn a_batch_past_the_quota_ends_where_it_passes_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let bounds = NamespaceBounds { bytes: 1 << 20, entries: 10, value_bytes: 1 << 20 };
    let pairs = |count: usize| (0..count).map(|n| (format!("k{n}"), b"v".to_vec())).collect::<Vec<_>>();
    // The eleventh is refused, and the others are not checked.
    let refusal = store.set_many(&shared(), &bounds, &pairs(5_000)).unwrap_err();
    assert!(matches!(refusal, StateRefusal::Entries { wanted: 11, max: 10 }), "{refusal}");
    // Bytes that a batch frees later count only at the end.
    let tight = NamespaceBounds { bytes: 100, entries: 10, value_bytes: 100 };
    set(&store, &shared(), &tight, "old", &"v".repeat(97)).unwrap();
    let turned = [("new".to_owned(), vec![b'n'; 90]), ("old".to_owned(), Vec::new())];
    store.set_many(&shared(), &tight, &turned).unwrap();
    assert_eq!(get(&store, &shared(), "new").map(|value| value.len()), Some(90));
}
