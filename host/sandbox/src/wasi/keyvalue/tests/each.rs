//! One suite over both keepers of state: a file, and a real server.
//!
//! Promise: state is a component's own.
//! Promise: state is bounded.
use std::collections::BTreeMap;

use toolcell_shared::{Kept, ValkeyOptions};

use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::state::{StateOperation, StateOutcome};

use super::*;
use crate::wasi::keyvalue::in_file::InFile;
use crate::wasi::keyvalue::keeper::{BucketPlace, StateKeeper};
use crate::wasi::keyvalue::on_server::OnServer;
use crate::wasi::keyvalue::session::StateSession;

#[path = "../../../../../shared/tests/engine/mod.rs"]
pub(super) mod engine;
use engine::Engine;

/// State on this server.
pub(super) fn kept(engine: &Engine) -> Arc<Kept> {
    let options = ValkeyOptions::at("127.0.0.1", engine.port());
    let options = ValkeyOptions { prefix: "test".to_owned(), within: Duration::from_secs(10), ..options };
    Kept::new(options).unwrap()
}

/// A bucket of a keeper, and what the namespace may hold.
#[derive(Clone)]
struct Held<'k> {
    keeper: &'k dyn StateKeeper,
    path: BucketPath,
    bounds: NamespaceBounds,
}

impl Held<'_> {
    fn within(&self, bytes: u64, entries: u64, value_bytes: u64) -> Self {
        Self { bounds: NamespaceBounds { bytes, entries, value_bytes }, ..self.clone() }
    }

    fn at(&self, path: BucketPath) -> Self {
        Self { path, ..self.clone() }
    }

    async fn perform(&self, operation: StateOperation) -> Result<StateOutcome, StateRefusal> {
        let mut session = StateSession::default();
        let place = BucketPlace { bounds: self.bounds, path: self.path.clone() };
        let done = self.keeper.perform(&mut session, place, operation).await;
        session.settle().await.unwrap();
        done
    }

    async fn get(&self, key: &str) -> Option<String> {
        match self.perform(StateOperation::Get(key.to_owned())).await.unwrap() {
            StateOutcome::Value(found) => found.map(|Blob(value)| String::from_utf8(value).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    async fn set(&self, key: &str, value: &str) -> Result<(), StateRefusal> {
        self.set_many(&[(key, value)]).await
    }

    async fn set_many(&self, pairs: &[(&str, &str)]) -> Result<(), StateRefusal> {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), Blob(value.as_bytes().to_vec())));
        self.perform(StateOperation::SetMany(pairs.collect())).await.map(|done| assert_eq!(done, StateOutcome::Done))
    }

    async fn delete(&self, keys: &[&str]) -> Result<(), StateRefusal> {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        self.perform(StateOperation::DeleteMany(keys)).await.map(|done| assert_eq!(done, StateOutcome::Done))
    }

    async fn add(&self, key: &str, delta: u64) -> Result<u64, StateRefusal> {
        match self.perform(StateOperation::Add(key.to_owned(), delta)).await? {
            StateOutcome::Number(number) => Ok(number),
            other => panic!("{other:?}"),
        }
    }

    async fn page(&self, cursor: Option<u64>) -> (Vec<String>, Option<u64>) {
        match self.perform(StateOperation::List(cursor)).await.unwrap() {
            StateOutcome::Page(keys, cursor) => (keys, cursor),
            other => panic!("{other:?}"),
        }
    }

    async fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.page(cursor).await;
            keys.extend(page.0);
            cursor = page.1;
            if cursor.is_none() {
                return keys;
            }
        }
    }
}

/// Runs a test over each keeper, with a roomy bucket.
fn each(test: impl AsyncFn(Held<'_>)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&[]);
    let file = InFile(Arc::new(store(folder.path())));
    let server = OnServer::new(&kept(&engine), "notes");
    let keepers: [&dyn StateKeeper; 2] = [&file, &server];
    for keeper in keepers {
        runtime.block_on(test(Held { keeper, path: shared(), bounds: ROOMY }));
    }
}

#[test]
fn entries_are_kept_apart_by_bucket_and_namespace() {
    each(async |held| {
        let paths = [shared(), place("", "other"), place("caller:a", "default"), place("caller:b", "default")];
        for (number, path) in paths.iter().enumerate() {
            let held = held.at(path.clone());
            assert_eq!(held.get("k").await, None);
            held.set("k", "0").await.unwrap();
            held.set("k", &number.to_string()).await.unwrap();
        }
        held.delete(&["k", "never"]).await.unwrap();
        assert_eq!(held.get("k").await, None);
        assert_eq!(held.perform(StateOperation::Exists("k".to_owned())).await.unwrap(), StateOutcome::Exists(false));
        for (number, path) in paths.iter().enumerate().skip(1) {
            let held = held.at(path.clone());
            assert_eq!(held.get("k").await, Some(number.to_string()), "{path:?}");
            assert_eq!(held.keys().await, ["k"], "{path:?}");
            assert_eq!(held.perform(StateOperation::Exists("k".to_owned())).await.unwrap(), StateOutcome::Exists(true));
        }
    });
}

#[test]
fn a_bound_holds_to_the_last_byte_and_entry_in_the_same_words() {
    each(async |held| {
        let held = held.within(100, 3, 60);
        let text = |length: usize| "v".repeat(length);
        held.set("a", &text(60)).await.unwrap();
        let refused = held.set("a", &text(61)).await.unwrap_err().to_string();
        assert!(refused.starts_with("quota: one value is at most 60 bytes, and this one is 61"), "{refused}");
        held.set("b", &text(38)).await.unwrap();
        let refused = held.set("b", &text(39)).await.unwrap_err().to_string();
        let says = "quota: keys and values together are at most 100 bytes, 100 are in use and this would make them 101";
        assert!(refused.starts_with(says), "{refused}");
        assert_eq!(held.get("b").await, Some(text(38)));
        held.set_many(&[("a", ""), ("b", ""), ("c", "")]).await.unwrap();
        let refused = held.set("d", "").await.unwrap_err().to_string();
        assert!(refused.starts_with("quota: at most 3 entries, and this would make 4"), "{refused}");
        held.delete(&["a"]).await.unwrap();
        held.set("d", "").await.unwrap();
        // Content from before a quota was lowered stays, and may shrink.
        let lowered = held.within(1, 1, 60);
        assert!(matches!(lowered.set("d", "more").await, Err(StateRefusal::Bytes { held: 3, wanted: 7, max: 1 })));
        lowered.set("d", "").await.unwrap();
        lowered.delete(&["d"]).await.unwrap();
        assert!(matches!(
            held.set(&"k".repeat(KEY_BYTES_MAX + 1), "").await,
            Err(StateRefusal::Unfit(UnfitOperation::Key { .. }))
        ));
    });
}

#[test]
fn a_batch_is_whole_or_not_at_all() {
    each(async |held| {
        let two = held.within(1_000, 2, 100);
        let refused = two.set_many(&[("a", "v"), ("b", "v"), ("c", "v")]).await;
        assert!(matches!(refused, Err(StateRefusal::Entries { wanted: 3, max: 2 })), "{refused:?}");
        assert!(two.keys().await.is_empty());
        two.set_many(&[("a", "1"), ("b", "2"), ("a", "3")]).await.unwrap();
        assert_eq!(two.keys().await, ["a", "b"]);
        assert_eq!(two.get("a").await.as_deref(), Some("3"));
        two.delete(&["a", "a", "b"]).await.unwrap();
        assert!(two.keys().await.is_empty());
        two.set_many(&[]).await.unwrap();
        two.delete(&[]).await.unwrap();
        let names: Vec<String> = (0..BATCH_KEYS_MAX).map(|number| format!("k{number}")).collect();
        let pairs: Vec<_> = names.iter().map(|name| (name.as_str(), "v")).collect();
        held.set_many(&pairs).await.unwrap();
        let many = held.perform(StateOperation::GetMany(names.clone())).await.unwrap();
        let StateOutcome::Values(values) = many else { panic!("{many:?}") };
        assert!(values.iter().zip(&names).all(|(value, name)| *value == Some((name.clone(), Blob(b"v".to_vec())))));
        assert_eq!(held.keys().await, names);
        held.delete(&names.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
        assert!(held.keys().await.is_empty());
    });
}

#[test]
fn one_large_value_asked_for_many_times_is_refused() {
    each(async |held| {
        let held = held.within(3_000, 10, 1_000);
        held.set("a", &"v".repeat(999)).await.unwrap();
        held.set("empty", "").await.unwrap();
        let ask = |keys: Vec<&str>| StateOperation::GetMany(keys.into_iter().map(str::to_owned).collect());
        let found = held.perform(ask(vec!["a", "none", "a", "empty"])).await.unwrap();
        let a = || Some(("a".to_owned(), Blob(vec![b'v'; 999])));
        let empty = Some(("empty".to_owned(), Blob(Vec::new())));
        assert_eq!(found, StateOutcome::Values(vec![a(), None, a(), empty]));
        held.perform(ask(vec!["a"; 3])).await.unwrap();
        let refused = held.perform(ask(vec!["a", "a", "a", "empty"])).await;
        assert!(matches!(refused, Err(StateRefusal::Answer { max: 3_000 })), "{refused:?}");
    });
}

#[test]
fn numbers_are_counted_to_the_end() {
    each(async |held| {
        assert_eq!(held.add("n", 5).await.unwrap(), 5);
        assert_eq!(held.add("n", 0).await.unwrap(), 5);
        assert_eq!(held.add("n", u64::MAX - 5).await.unwrap(), u64::MAX);
        assert!(matches!(held.add("n", 1).await, Err(StateRefusal::Overflow)));
        assert_eq!(held.get("n").await, Some(u64::MAX.to_string()));
        for (text, sum) in [("007", 8), ("00000000000000000009", 10), ("0", 1)] {
            held.set("t", text).await.unwrap();
            assert_eq!(held.add("t", 1).await.unwrap(), sum);
        }
        let zeros = "0".repeat(21);
        for text in ["", "+1", "-1", "1.0", " 1", "x", "18446744073709551616", "99999999999999999999", &zeros] {
            held.set("t", text).await.unwrap();
            assert!(matches!(held.add("t", 1).await, Err(StateRefusal::NoNumber)), "{text:?}");
            assert_eq!(held.get("t").await.as_deref(), Some(text));
        }
        let tight = held.within(1_000, 10, 1);
        tight.add("d", 9).await.unwrap();
        assert!(matches!(tight.add("d", 1).await, Err(StateRefusal::Value { bytes: 2, max: 1 })));
        assert!(matches!(
            held.within(3, 1, 9).add("new", 1).await,
            Err(StateRefusal::Bytes { .. } | StateRefusal::Entries { .. })
        ));
    });
}

#[test]
fn a_listing_has_each_key_once_while_others_come_and_go() {
    each(async |held| {
        let names: Vec<String> = (0..PAGE_KEYS_MAX * 2 + 7).rev().map(|number| format!("k{number:05}")).collect();
        let pairs: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
        held.set_many(&pairs).await.unwrap();
        assert_eq!(held.keys().await, names);
        let (first, cursor) = held.page(None).await;
        assert_eq!(first, names[..PAGE_KEYS_MAX]);
        held.delete(&[&names[0], &names[PAGE_KEYS_MAX]]).await.unwrap();
        held.set("new", "").await.unwrap();
        held.set(&names[1], "again").await.unwrap();
        let (second, cursor) = held.page(cursor).await;
        assert_eq!(second[0], names[PAGE_KEYS_MAX + 1]);
        let (third, end) = held.page(cursor).await;
        assert_eq!((third.last().map(String::as_str), end), (Some("new"), None));
        for beyond in [1 << 40, u64::MAX - 1, u64::MAX] {
            assert_eq!(held.page(Some(beyond)).await, (Vec::new(), None), "cursor {beyond}");
        }
        // An emptied bucket does not reuse serials.
        held.delete(&held.keys().await.iter().map(String::as_str).collect::<Vec<_>>()).await.unwrap();
        held.set("late", "").await.unwrap();
        assert_eq!(held.page(cursor).await, (vec!["late".to_owned()], None));
        let long: Vec<String> = (0..300).map(|n| format!("{n:0width$}", width = KEY_BYTES_MAX)).collect();
        let elsewhere = held.at(place("", "long"));
        elsewhere.set_many(&long.iter().map(|name| (name.as_str(), "")).collect::<Vec<_>>()).await.unwrap();
        assert_eq!(elsewhere.page(None).await.0.len(), PAGE_BYTES_MAX / KEY_BYTES_MAX);
        assert_eq!(elsewhere.keys().await, long);
    });
}

#[test]
fn so_many_callers_keep_state_and_one_that_gives_its_own_up_makes_room() {
    each(async |held| {
        let of = |number: u64| held.at(place(&format!("caller:{number}"), "default"));
        for number in 0..CALLERS_MAX {
            of(number).set("k", "v").await.unwrap();
        }
        let late = of(CALLERS_MAX);
        assert!(matches!(late.set("k", "v").await, Err(StateRefusal::Callers { max: CALLERS_MAX })));
        assert!(matches!(late.add("k", 1).await, Err(StateRefusal::Callers { max: CALLERS_MAX })));
        assert!(late.keys().await.is_empty());
        of(0).set("k2", "v").await.unwrap();
        of(1).delete(&["k"]).await.unwrap();
        late.set("k", "v").await.unwrap();
    });
}

/// Pseudo-random numbers, the same in every run (Knuth's generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn both_keepers_answer_any_operations_alike() {
    let said = std::sync::Mutex::new(Vec::new());
    each(async |held| {
        let mut numbers = Numbers(11);
        let mut answers = Vec::new();
        let mut kinds = BTreeMap::new();
        let tight = held.within(150, 8, 40);
        for round in 0..1_200 {
            let mut key = || format!("k{}", numbers.below(14));
            let keys: Vec<String> = (0..round % 6).map(|_| key()).collect();
            let operation = match round % 7 {
                0 => StateOperation::Get(key()),
                1 => StateOperation::Add(key(), round as u64),
                2 => StateOperation::DeleteMany(keys),
                3 => StateOperation::GetMany(keys),
                4 => StateOperation::Exists(key()),
                _ => {
                    let mut value = || Blob(vec![b'1'; numbers.below(45)]);
                    StateOperation::SetMany(keys.into_iter().map(|key| (key, value())).collect())
                }
            };
            let answer = tight.perform(operation).await.map_err(|refusal| refusal.to_string());
            let kind =
                answer.as_ref().map_or_else(|text| text.split(',').next().unwrap().to_owned(), |_| String::new());
            *kinds.entry(kind).or_insert(0) += 1;
            answers.push(format!("{round}: {answer:?}"));
        }
        answers.push(format!("{:?}", tight.keys().await));
        assert!(kinds.len() >= 4 && kinds.values().all(|count| *count > 3), "every kind of refusal: {kinds:?}");
        said.lock().unwrap().push(answers);
    });
    let said = said.into_inner().unwrap();
    for (file, server) in said[0].iter().zip(&said[1]) {
        assert_eq!(file, server);
    }
}
