//! The state of tools, against real files: bounds, listings, isolation, concurrency, crashes and
//! damage.
//!
//! Promise: state is a component's own.
//! Promise: state is bounded.
//! Promise: state is whole after a crash.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod batches;
mod each;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use toolcell_wall::doors::state::{BATCH_BYTES_MAX, BATCH_KEYS_MAX, KEY_BYTES_MAX, UnfitOperation};

use super::database::WriteMark;
use super::error::{StateOpenError, StateRefusal};
use super::store::{
    BucketPath, CALLERS_MAX, ComponentStore, KeyValue, NamespaceBounds, PAGE_BYTES_MAX, PAGE_KEYS_MAX, StateWrite,
    StopFlag,
};

const ROOMY: NamespaceBounds = NamespaceBounds { bytes: 64 << 20, entries: 100_000, value_bytes: 1 << 20 };

fn open(folder: &Path, component: &str) -> Result<ComponentStore, StateOpenError> {
    ComponentStore::open(folder, component, Duration::ZERO)
}

fn store(folder: &Path) -> ComponentStore {
    open(folder, "notes").unwrap()
}

fn place(namespace: &str, bucket: &str) -> BucketPath {
    BucketPath { namespace: namespace.to_owned(), bucket: bucket.to_owned() }
}

fn shared() -> BucketPath {
    place("", "default")
}

/// Operations that nobody stops.
impl ComponentStore {
    fn set_many(
        &self,
        place: &BucketPath,
        bounds: &NamespaceBounds,
        pairs: &[KeyValue],
    ) -> Result<WriteMark, StateRefusal> {
        self.set_all(StateWrite { place, bounds, stop: &StopFlag::default() }, pairs)
    }

    fn delete_many(
        &self,
        place: &BucketPath,
        bounds: &NamespaceBounds,
        keys: &[String],
    ) -> Result<WriteMark, StateRefusal> {
        self.delete_all(StateWrite { place, bounds, stop: &StopFlag::default() }, keys)
    }

    fn increment(
        &self,
        place: &BucketPath,
        bounds: &NamespaceBounds,
        key: &str,
        delta: u64,
    ) -> Result<(u64, WriteMark), StateRefusal> {
        self.add(StateWrite { place, bounds, stop: &StopFlag::default() }, key, delta)
    }

    fn get_many(
        &self,
        place: &BucketPath,
        keys: Vec<String>,
        bytes_max: u64,
    ) -> Result<Vec<Option<KeyValue>>, StateRefusal> {
        self.get_all(place, keys, bytes_max, &StopFlag::default())
    }
}

fn set(
    store: &ComponentStore,
    place: &BucketPath,
    bounds: &NamespaceBounds,
    key: &str,
    value: &str,
) -> Result<(), StateRefusal> {
    store.set_many(place, bounds, &[(key.to_owned(), value.as_bytes().to_vec())]).map(drop)
}

fn get(store: &ComponentStore, place: &BucketPath, key: &str) -> Option<String> {
    store.get(place, key).unwrap().map(|value| String::from_utf8(value).unwrap())
}

fn all_keys(store: &ComponentStore, place: &BucketPath) -> Vec<String> {
    let mut keys = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.keys(place, cursor).unwrap();
        keys.extend(page.keys);
        cursor = page.cursor;
        if cursor.is_none() {
            return keys;
        }
    }
}

#[test]
fn what_is_set_is_read_until_it_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    assert_eq!(get(&store, &shared(), "a"), None);
    set(&store, &shared(), &ROOMY, "a", "1").unwrap();
    set(&store, &shared(), &ROOMY, "a", "2").unwrap();
    assert_eq!(get(&store, &shared(), "a").as_deref(), Some("2"));
    assert!(store.exists(&shared(), "a").unwrap());
    store.delete_many(&shared(), &ROOMY, &["a".to_owned(), "never".to_owned()]).unwrap();
    assert!(!store.exists(&shared(), "a").unwrap());
}

#[test]
fn namespaces_and_buckets_see_nothing_of_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let places = [shared(), place("", "other"), place("caller:a", "default"), place("caller:b", "default")];
    for (number, place) in places.iter().enumerate() {
        set(&store, place, &ROOMY, "k", &number.to_string()).unwrap();
    }
    for (number, place) in places.iter().enumerate() {
        assert_eq!(get(&store, place, "k"), Some(number.to_string()), "{place:?}");
        assert_eq!(all_keys(&store, place), ["k"], "{place:?}");
    }
    store.delete_many(&places[0], &ROOMY, &["k".to_owned()]).unwrap();
    assert_eq!(get(&store, &places[1], "k").as_deref(), Some("1"));
    assert_eq!(get(&store, &places[2], "k").as_deref(), Some("2"));
}

#[test]
fn each_bound_holds_to_the_last_byte_and_entry() {
    let bounds = NamespaceBounds { bytes: 100, entries: 3, value_bytes: 60 };
    let long_key = "k".repeat(KEY_BYTES_MAX + 1);
    let fits = |key: &str, length: usize| (key.to_owned(), "v".repeat(length), None);
    let refused = |key: &str, length: usize, why: &'static str| (key.to_owned(), "v".repeat(length), Some(why));
    type Row<'a> = (String, String, Option<&'a str>);
    let cases: [(&str, Vec<Row<'_>>); 7] = [
        ("value", vec![fits("a", 60), refused("a", 61, "quota: one value is at most 60 bytes")]),
        (
            "bytes",
            vec![fits("a", 59), fits("b", 39), refused("c", 0, "quota: keys and values together are at most 100")],
        ),
        (
            "bytes, replaced",
            vec![fits("a", 59), fits("a", 60), fits("b", 38), refused("b", 39, "quota: keys and values")],
        ),
        ("entries", vec![fits("a", 1), fits("b", 1), fits("c", 1), refused("d", 1, "quota: at most 3 entries")]),
        ("entries, replaced", vec![fits("a", 1), fits("b", 1), fits("c", 1), fits("c", 2)]),
        (
            "key",
            vec![refused("", 1, "a key is 1 to 512 bytes long"), refused(&long_key, 1, "a key is 1 to 512 bytes long")],
        ),
        ("nothing is too little", vec![fits("a", 0), fits("b", 0)]),
    ];
    for (name, steps) in cases {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        for (key, value, refusal) in steps {
            let before = store.get_many(&shared(), vec!["a".into(), "b".into(), "c".into()], 1000).unwrap();
            match (set(&store, &shared(), &bounds, &key, &value), refusal) {
                (Ok(()), None) => assert_eq!(get(&store, &shared(), &key), Some(value), "{name}"),
                (Err(error), Some(text)) => {
                    assert!(error.to_string().starts_with(text), "{name}: {error}");
                    let after = store.get_many(&shared(), vec!["a".into(), "b".into(), "c".into()], 1000).unwrap();
                    assert_eq!(before, after, "{name}: what is refused changes nothing");
                }
                (result, refusal) => panic!("{name}: {key:?} with {} bytes: {result:?}, not {refusal:?}", value.len()),
            }
        }
    }
}

#[test]
fn a_key_of_the_longest_length_fits() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let key = "k".repeat(KEY_BYTES_MAX);
    set(&store, &shared(), &ROOMY, &key, "v").unwrap();
    assert_eq!(all_keys(&store, &shared()), [key]);
}

#[test]
fn deleting_makes_room_and_a_lowered_quota_keeps_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let bounds = NamespaceBounds { bytes: 100, entries: 10, value_bytes: 100 };
    set(&store, &shared(), &bounds, "a", &"v".repeat(90)).unwrap();
    set(&store, &shared(), &bounds, "b", &"v".repeat(20)).unwrap_err();
    store.delete_many(&shared(), &bounds, &["a".to_owned()]).unwrap();
    set(&store, &shared(), &bounds, "b", &"v".repeat(20)).unwrap();
    set(&store, &shared(), &bounds, "c", &"v".repeat(70)).unwrap();
    let lowered = NamespaceBounds { bytes: 50, entries: 1, value_bytes: 100 };
    assert_eq!(get(&store, &shared(), "c"), Some("v".repeat(70)));
    set(&store, &shared(), &lowered, "c", &"v".repeat(71)).unwrap_err();
    set(&store, &shared(), &lowered, "c", &"v".repeat(69)).unwrap();
    set(&store, &shared(), &lowered, "d", "").unwrap_err();
    store.delete_many(&shared(), &lowered, &["b".to_owned()]).unwrap();
}

#[test]
fn a_batch_is_done_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let bounds = NamespaceBounds { bytes: 1000, entries: 2, value_bytes: 100 };
    let pairs = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), b"v".to_vec())).collect::<Vec<_>>();
    assert!(matches!(
        store.set_many(&shared(), &bounds, &pairs(&["a", "b", "c"])),
        Err(StateRefusal::Entries { wanted: 3, max: 2 })
    ));
    assert!(all_keys(&store, &shared()).is_empty());
    store.set_many(&shared(), &bounds, &pairs(&["a", "b", "a"])).unwrap();
    assert_eq!(all_keys(&store, &shared()), ["a", "b"]);
    store.delete_many(&shared(), &bounds, &["a".to_owned(), "a".to_owned(), String::new()]).unwrap_err();
    assert_eq!(all_keys(&store, &shared()), ["a", "b"]);
    store.delete_many(&shared(), &bounds, &["a".to_owned(), "a".to_owned(), "b".to_owned()]).unwrap();
    assert!(all_keys(&store, &shared()).is_empty());
    store.set_many(&shared(), &bounds, &pairs(&["c", "d"])).unwrap();
}

#[test]
fn asking_for_one_large_value_many_times_is_refused_before_it_fills_the_host_s_memory() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    set(&store, &shared(), &ROOMY, "a", &"v".repeat(999)).unwrap();
    let keys = |count: usize| vec!["a".to_owned(); count];
    assert_eq!(store.get_many(&shared(), keys(3), 3000).unwrap().len(), 3);
    assert!(matches!(store.get_many(&shared(), keys(4), 3000), Err(StateRefusal::Answer { max: 3000 })));
    assert_eq!(store.get_many(&shared(), vec!["none".to_owned()], 0).unwrap(), [None]);
}

#[test]
fn increments_are_decimal_numbers_from_nothing_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let add = |key: &str, delta: u64| store.increment(&shared(), &ROOMY, key, delta).map(|(number, _)| number);
    assert_eq!(add("n", 5).unwrap(), 5);
    assert_eq!(add("n", 0).unwrap(), 5);
    assert_eq!(get(&store, &shared(), "n").as_deref(), Some("5"));
    assert_eq!(add("n", u64::MAX - 5).unwrap(), u64::MAX);
    assert!(matches!(add("n", 1), Err(StateRefusal::Overflow)));
    assert_eq!(get(&store, &shared(), "n"), Some(u64::MAX.to_string()));
    for text in ["", "+1", "-1", "1.0", " 1", "x", "18446744073709551616"] {
        set(&store, &shared(), &ROOMY, "t", text).unwrap();
        assert!(matches!(add("t", 1), Err(StateRefusal::NoNumber)), "{text:?}");
        assert_eq!(get(&store, &shared(), "t").as_deref(), Some(text));
    }
    let tight = NamespaceBounds { bytes: 100, entries: 10, value_bytes: 1 };
    store.increment(&shared(), &tight, "d", 9).unwrap();
    assert!(matches!(store.increment(&shared(), &tight, "d", 1), Err(StateRefusal::Value { bytes: 2, max: 1 })));
}

#[test]
fn a_listing_pages_in_the_order_of_first_setting_and_neither_skips_nor_repeats() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let names: Vec<String> = (0..PAGE_KEYS_MAX * 2 + 7).rev().map(|number| format!("k{number:05}")).collect();
    let pairs: Vec<_> = names.iter().map(|name| (name.clone(), Vec::new())).collect();
    store.set_many(&shared(), &ROOMY, &pairs).unwrap();
    assert_eq!(all_keys(&store, &shared()), names);
    let first = store.keys(&shared(), None).unwrap();
    assert_eq!(first.keys.len(), PAGE_KEYS_MAX);
    // Between two pages, listed entries are removed, unlisted ones are removed, a new one is set,
    // and one is set again.
    store.delete_many(&shared(), &ROOMY, &[names[0].clone(), names[PAGE_KEYS_MAX].clone()]).unwrap();
    set(&store, &shared(), &ROOMY, "new", "").unwrap();
    set(&store, &shared(), &ROOMY, &names[1], "again").unwrap();
    let second = store.keys(&shared(), first.cursor).unwrap();
    assert_eq!(second.keys[0], names[PAGE_KEYS_MAX + 1]);
    let third = store.keys(&shared(), second.cursor).unwrap();
    assert_eq!(third.keys.last().map(String::as_str), Some("new"));
    assert_eq!(third.cursor, None);
    for beyond in [1 << 40, u64::MAX - 1, u64::MAX] {
        assert!(store.keys(&shared(), Some(beyond)).unwrap().keys.is_empty(), "cursor {beyond}");
    }
}

#[test]
fn a_page_of_long_keys_is_bounded_in_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let pairs: Vec<_> = (0..300).map(|n| (format!("{n:0width$}", width = KEY_BYTES_MAX), Vec::new())).collect();
    store.set_many(&shared(), &ROOMY, &pairs).unwrap();
    let page = store.keys(&shared(), None).unwrap();
    assert_eq!(page.keys.len(), PAGE_BYTES_MAX / KEY_BYTES_MAX);
    assert_eq!(all_keys(&store, &shared()).len(), 300);
}

#[test]
fn callers_are_bounded_and_one_that_gives_up_its_state_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    for number in 0..CALLERS_MAX {
        set(&store, &place(&format!("caller:{number}"), "default"), &ROOMY, "k", "v").unwrap();
    }
    let late = place("caller:late", "default");
    assert!(matches!(set(&store, &late, &ROOMY, "k", "v"), Err(StateRefusal::Callers { max: CALLERS_MAX })));
    set(&store, &place("caller:0", "default"), &ROOMY, "k2", "v").unwrap();
    store.delete_many(&place("caller:1", "default"), &ROOMY, &["k".to_owned()]).unwrap();
    set(&store, &late, &ROOMY, "k", "v").unwrap();
}

#[test]
fn increments_from_many_threads_are_all_counted() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let threads = 8_u64;
    let rounds = 200_u64;
    let one = place("caller:one", "default");
    let other = place("caller:other", "default");
    std::thread::scope(|scope| {
        for number in 0..threads {
            let store = &store;
            let mine = if number % 2 == 0 { &one } else { &other };
            scope.spawn(move || {
                for round in 0..rounds {
                    let (_, mark) = store.increment(mine, &ROOMY, "n", 1).unwrap();
                    if round % 50 == 49 {
                        store.settle(mark).unwrap();
                    }
                }
            });
        }
    });
    for mine in [&one, &other] {
        assert_eq!(get(&store, mine, "n"), Some((threads / 2 * rounds).to_string()));
    }
}

#[test]
fn what_was_settled_is_there_after_the_host_is_killed_in_the_middle_of_writing() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", &format!("{}::writes_until_it_is_killed", module())])
            .env("TOOLCELL_TEST_STATE", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let settled = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("settled ")?.parse::<u64>().ok());
        let settled = settled.take(20).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = store(folder.path());
        let number: u64 = get(&store, &shared(), "n").unwrap().parse().unwrap();
        assert!(number >= settled, "{number} is what is left, and {settled} was said to be safe");
        // Both keys are written in one transaction, and the account of the namespace with them.
        assert_eq!(get(&store, &shared(), "copy"), Some(number.to_string()));
        let held: u64 = [("n", number.to_string()), ("copy", number.to_string())]
            .iter()
            .map(|(key, value)| (key.len() + value.len()) as u64)
            .sum();
        let full = NamespaceBounds { bytes: held, entries: 2, value_bytes: 100 };
        set(&store, &shared(), &full, "n", &format!("{number}0")).unwrap_err();
        set(&store, &shared(), &full, "n", &number.to_string()).unwrap();
    }
}

/// The process that the test above runs and kills.
#[test]
#[ignore = "runs until it is killed"]
fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os("TOOLCELL_TEST_STATE") else { return };
    let store = store(Path::new(&folder));
    let mut number = get(&store, &shared(), "n").map_or(0, |text| text.parse::<u64>().unwrap());
    loop {
        number += 1;
        let text = number.to_string().into_bytes();
        let pairs = [("n".to_owned(), text.clone()), ("copy".to_owned(), text)];
        let mark = store.set_many(&shared(), &ROOMY, &pairs).unwrap();
        if number.is_multiple_of(10) {
            store.settle(mark).unwrap();
            let mut out = std::io::stdout();
            writeln!(out, "settled {number}").unwrap();
            out.flush().unwrap();
        }
    }
}

#[test]
fn a_disk_that_was_full_is_written_again_once_it_has_room() {
    let folder = tempfile::tempdir().unwrap();
    // A limit of 4 MiB on files stands for a full disk: writes past it fail, and the signal for
    // that is ignored.
    let script = "trap '' XFSZ; ulimit -f 8192; exec \"$0\" \"$@\"";
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", &format!("{}::writes_until_the_disk_is_full", module())])
        .env("TOOLCELL_TEST_STATE", folder.path())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let store = store(folder.path());
    assert_eq!(get(&store, &shared(), "after").as_deref(), Some("room"));
    assert_eq!(get(&store, &shared(), "before").as_deref(), Some("kept"));
}

/// The process that the test above runs.
#[test]
#[ignore = "needs a limit on the size of files"]
fn writes_until_the_disk_is_full() {
    let Some(folder) = std::env::var_os("TOOLCELL_TEST_STATE") else { return };
    let store = store(Path::new(&folder));
    let before = store.set_many(&shared(), &ROOMY, &[("before".to_owned(), b"kept".to_vec())]).unwrap();
    store.settle(before).unwrap();
    let mut lost = None;
    let full = (0..100).find_map(|number| {
        match store.set_many(&shared(), &ROOMY, &[(format!("k{number}"), vec![7; 300 << 10])]) {
            Ok(mark) => lost = Some(mark),
            Err(refusal) => return Some(refusal),
        }
        store.settle(lost.unwrap()).err().map(StateRefusal::Fault)
    });
    assert!(matches!(full, Some(StateRefusal::Fault(_))), "{full:?}");
    let lost = lost.unwrap();
    assert!(matches!(store.settle(lost), Err(super::error::StateFault::Lost)));
    assert_eq!(get(&store, &shared(), "before").as_deref(), Some("kept"));
    let keys = all_keys(&store, &shared()).into_iter().filter(|key| key != "before").collect::<Vec<_>>();
    let mark = store.delete_many(&shared(), &ROOMY, &keys).unwrap();
    store.settle(mark).unwrap();
    let after = store.set_many(&shared(), &ROOMY, &[("after".to_owned(), b"room".to_vec())]).unwrap();
    store.settle(after).unwrap();
}

fn module() -> &'static str {
    module_path!().split_once("::").map_or("", |(_, module)| module)
}

#[test]
fn a_copy_of_the_file_in_the_middle_of_a_call_holds_what_was_settled() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let (_, mark) = store.increment(&shared(), &ROOMY, "n", 1).unwrap();
    store.settle(mark).unwrap();
    store.increment(&shared(), &ROOMY, "n", 1).unwrap();
    let other = tempfile::tempdir().unwrap();
    std::fs::copy(folder.path().join("notes.redb"), other.path().join("notes.redb")).unwrap();
    assert_eq!(get(&store, &shared(), "n").as_deref(), Some("2"));
    let copy = open(other.path(), "notes").unwrap();
    assert_eq!(get(&copy, &shared(), "n").as_deref(), Some("1"));
}

#[test]
fn closing_and_opening_again_keeps_everything_settled_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let first = store(folder.path());
    set(&first, &shared(), &ROOMY, "a", "1").unwrap();
    drop(first);
    let second = store(folder.path());
    assert_eq!(get(&second, &shared(), "a").as_deref(), Some("1"));
}

#[test]
fn overwriting_one_value_over_and_over_does_not_grow_the_file_without_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let bounds = NamespaceBounds { bytes: 1 << 20, entries: 10, value_bytes: 256 << 10 };
    for round in 0..400 {
        let value = vec![u8::try_from(round % 256).unwrap(); 256 << 10];
        store.set_many(&shared(), &bounds, &[("k".to_owned(), value)]).unwrap();
    }
    let length = folder.path().join("notes.redb").metadata().unwrap().len();
    assert!(length < 32 << 20, "{length} bytes for a value of 256 KiB written 400 times");
}

#[test]
fn the_folder_and_the_file_are_their_owner_s_alone() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("deep/state");
    let store = store(&folder);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("notes.redb")), 0o600);
    drop(store);
    std::fs::set_permissions(folder.join("notes.redb"), std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(self::store(&folder));
    assert_eq!(mode(&folder.join("notes.redb")), 0o600);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(open(&folder, "notes"), Err(StateOpenError::Open { .. })));
}

#[test]
fn a_file_that_another_process_has_open_is_said_to_be_so() {
    let folder = tempfile::tempdir().unwrap();
    let _first = store(folder.path());
    let error = open(folder.path(), "notes").unwrap_err();
    assert!(matches!(error, StateOpenError::Taken { .. }), "{error}");
    assert!(error.hint().starts_with("hosts take turns with a state folder"), "{}", error.hint());
    open(folder.path(), "other").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_with_one_folder_take_turns_and_see_what_the_other_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let patience = Duration::from_secs(20);
    let opened = |name: &'static str| {
        let folder = folder.path().to_owned();
        tokio::task::spawn_blocking(move || ComponentStore::open(&folder, name, patience).unwrap())
    };
    let hosts = [Arc::new(opened("notes").await.unwrap()), Arc::new(opened("notes").await.unwrap())];
    let calls = (0..10).map(|number| {
        let host = Arc::clone(&hosts[number % 2]);
        tokio::task::spawn_blocking(move || {
            let _visit = host.enter().unwrap();
            let (_, mark) = host.increment(&shared(), &ROOMY, "n", 1).unwrap();
            host.settle(mark).unwrap();
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    for host in &hosts {
        let host = Arc::clone(host);
        let seen = tokio::task::spawn_blocking(move || {
            let _visit = host.enter().unwrap();
            get(&host, &shared(), "n")
        });
        assert_eq!(seen.await.unwrap().as_deref(), Some("10"));
    }
}

/// Adds to a number and settles it, as a call does.
fn count(store: &ComponentStore, key: &str) -> u64 {
    let visit = store.enter().unwrap();
    let (number, mark) = store.increment(&shared(), &ROOMY, key, 1).unwrap();
    drop(visit);
    store.settle(mark).unwrap();
    number
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_writes_all_the_time_lets_others_have_their_turns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let take_turns = tokio::task::spawn_blocking(move || {
        let patience = Duration::from_secs(30);
        let busy = ComponentStore::open(&path, "notes", patience).unwrap();
        let other = ComponentStore::open(&path, "notes", patience).unwrap();
        let done = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let runtime = tokio::runtime::Handle::current();
        std::thread::scope(|scope| {
            // Two at once, so that there is nearly always an operation.
            for _ in 0..2 {
                scope.spawn(|| {
                    let _inside = runtime.enter();
                    while !stop.load(Ordering::Relaxed) {
                        count(&busy, "busy");
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for number in 1..=10 {
                assert_eq!(count(&other, "other"), number);
                // The busy one has its turn before the next.
                let seen = done.load(Ordering::Relaxed);
                while done.load(Ordering::Relaxed) == seen {
                    std::thread::yield_now();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        let _visit = other.enter().unwrap();
        let counted = get(&other, &shared(), "busy").unwrap();
        assert_eq!(counted, done.load(Ordering::Relaxed).to_string(), "nothing that was settled is lost");
    });
    take_turns.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_does_not_get_its_turn_tells_the_guest_to_try_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let turns = tokio::task::spawn_blocking(move || {
        let second = store(&path);
        // Waits until the second has closed it, as no call uses it there.
        let first = ComponentStore::open(&path, "notes", Duration::from_secs(20)).unwrap();
        let visit = first.enter().unwrap();
        let refusal = second.enter().unwrap_err();
        assert!(refusal.to_string().starts_with("busy: "), "{refusal}");
        drop((visit, first));
        set(&second, &shared(), &ROOMY, "a", "1")
    });
    // The first closes it when it is dropped, or a moment later where that is under way already.
    let last = turns.await.unwrap();
    assert!(matches!(last, Ok(()) | Err(StateRefusal::Busy)), "{last:?}");
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(format!("{name}.redb"));
    std::fs::write(folder.path().join("target"), "").unwrap();
    std::os::unix::fs::symlink(folder.path().join("target"), at("link")).unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    for name in ["link", "folder", "fifo"] {
        let error = open(folder.path(), name).unwrap_err();
        assert!(matches!(error, StateOpenError::File { .. }), "{name}: {error}");
    }
    let error = open(folder.path(), "link").unwrap_err();
    assert!(error.to_string().ends_with("cannot be opened: it is a link"), "{error}");
    assert!(error.hint().starts_with("put a regular file there"));
    assert_eq!(std::fs::read(folder.path().join("target")).unwrap(), b"");
    std::fs::write(folder.path().join("plain"), "").unwrap();
    let error = open(&folder.path().join("plain"), "notes").unwrap_err();
    assert!(matches!(error, StateOpenError::Folder { .. }), "{error}");
}

#[test]
fn a_damaged_file_is_a_clear_error_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.redb");
    let first = store(folder.path());
    let pairs: Vec<_> = (0..200).map(|n| (format!("key{n}"), vec![b'v'; 500])).collect();
    let mark = first.set_many(&shared(), &ROOMY, &pairs).unwrap();
    first.settle(mark).unwrap();
    drop(first);
    let good = std::fs::read(&path).unwrap();
    let place_of_value = good.windows(500).position(|window| window == [b'v'; 500]).unwrap();
    let mut flipped = good.clone();
    flipped[place_of_value + 100] ^= 1;
    let mut no_magic = good.clone();
    no_magic[0] ^= 1;
    let damages: [(&str, Vec<u8>); 5] = [
        ("one bit of a value", flipped),
        ("another kind of file", b"# my notes\n".repeat(1000)),
        ("the first byte", no_magic),
        ("cut off", good[..good.len() / 2].to_vec()),
        ("zeroes after the header", [&good[..4096], &vec![0; good.len() - 4096][..]].concat()),
    ];
    for (name, bytes) in damages {
        std::fs::write(&path, &bytes).unwrap();
        let error = match open(folder.path(), "notes") {
            Ok(_) => panic!("{name}: opened"),
            Err(error) => error,
        };
        assert!(matches!(error, StateOpenError::Damaged { .. }), "{name}: {error}");
        assert!(path.exists(), "{name}");
    }
    std::fs::write(&path, &good).unwrap();
    assert_eq!(all_keys(&store(folder.path()), &shared()).len(), 200);
}

#[test]
fn a_file_of_a_later_format_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.redb");
    drop(store(folder.path()));
    let database = redb::Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(super::tables::ABOUT).unwrap().insert("format", 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(matches!(open(folder.path(), "notes"), Err(StateOpenError::Format { format: 2 })));
}
