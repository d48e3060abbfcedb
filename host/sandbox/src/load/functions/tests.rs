//! Tests of the store as wasmtime sees it, and of its files as somebody else could change them.
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;

const CODE: &[u8] = b"machine code, or what becomes it";

fn key(number: u8) -> [u8; 32] {
    [number; 32]
}

fn store_with(root: &Path, engine: &str, bounds: Bounds) -> FunctionStore {
    let cache = CodeCache::open(&root.join("code"), &root.join("state/key"), 1 << 20).unwrap();
    let store = FunctionStore { bounds, ..FunctionStore::new(Arc::new(cache)) };
    store.set_engine(engine.to_owned());
    store
}

fn store(root: &Path) -> FunctionStore {
    store_with(root, "engine", Bounds::default())
}

/// One compilation that adds these functions.
fn compile(store: &FunctionStore, numbers: impl IntoIterator<Item = u8>) {
    let _session = store.open();
    for number in numbers {
        assert!(store.insert(&key(number), CODE.to_vec()), "{number}");
    }
}

fn has(store: &FunctionStore, number: u8) -> bool {
    let _session = store.open();
    let found = store.get(&key(number));
    assert!(found.as_deref().is_none_or(|code| code == CODE));
    found.is_some()
}

fn files(root: &Path) -> Vec<PathBuf> {
    fs::read_dir(root.join("code")).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

fn rewrite(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap_or_default();
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap();
}

#[test]
fn a_function_is_found_by_the_next_compilation_of_any_process_of_the_same_engine() {
    let root = tempfile::tempdir().unwrap();
    compile(&store(root.path()), [1, 2]);
    assert!(has(&store(root.path()), 1) && has(&store(root.path()), 2));
    assert!(!has(&store(root.path()), 3));
    assert!(!has(&store_with(root.path(), "another", Bounds::default()), 1));
    assert_eq!(files(root.path()).len(), 1);
}

#[test]
fn compilations_at_the_same_time_share_what_they_find_and_write_one_file() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    let (first, second) = (store.open(), store.open());
    assert!(store.insert(&key(1), CODE.to_vec()));
    drop(first);
    assert!(store.get(&key(1)).is_some() && files(root.path()).iter().all(|file| !ends_with_suffix(file)));
    assert!(!store.insert(&key(1), CODE.to_vec()), "it is there");
    drop(second);
    assert!(files(root.path()).iter().all(|file| ends_with_suffix(file)) && has(&store, 1));
}

fn ends_with_suffix(path: &Path) -> bool {
    path.display().to_string().ends_with(SUFFIX)
}

#[test]
fn nothing_is_found_or_kept_outside_of_a_compilation_or_before_the_engine_is_named() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    compile(&store, [1]);
    assert!(store.get(&key(1)).is_none() && !store.insert(&key(2), CODE.to_vec()));
    let nameless = FunctionStore::new(Arc::clone(&store.cache));
    let _session = nameless.open();
    assert!(nameless.get(&key(1)).is_none() && !nameless.insert(&key(2), CODE.to_vec()));
}

#[test]
fn a_compilation_that_adds_nothing_writes_nothing() {
    let root = tempfile::tempdir().unwrap();
    compile(&store(root.path()), []);
    assert_eq!(files(root.path()), Vec::<PathBuf>::new());
}

#[test]
fn no_changed_byte_of_a_file_gives_other_code_and_a_wrong_file_goes() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    compile(&store, 1..=3);
    let path = files(root.path()).remove(0);
    let untouched = fs::read(&path).unwrap();
    for at in 0..untouched.len() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = untouched.clone();
            bytes[at] ^= change;
            rewrite(&path, &bytes);
            // `has` asserts that what is found is what was kept.
            let found = {
                let _session = store.open();
                [1, 2, 3].map(|number| store.get(&key(number)).map(|code| assert_eq!(&*code, CODE)).is_some())
            };
            if at >= 8 && at < 8 + 3 * (CODE.len() + 32) {
                assert_eq!(found.iter().filter(|found| **found).count(), 2, "byte {at}: one function is lost");
                assert!(!path.exists(), "byte {at}");
            }
        }
    }
    rewrite(&path, &untouched);
    assert!(has(&store, 1));
}

#[test]
fn a_file_that_was_cut_or_lengthened_anywhere_gives_nothing_wrong() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    compile(&store, 1..=3);
    let path = files(root.path()).remove(0);
    let untouched = fs::read(&path).unwrap();
    for bytes in 0..untouched.len() {
        rewrite(&path, &untouched[..bytes]);
        assert!(!has(&store, 1), "{bytes} bytes left");
        assert!(!path.exists());
    }
    rewrite(&path, &[&untouched[..], b"more"].concat());
    assert!(!has(&store, 1));
}

#[test]
fn an_index_that_claims_too_much_is_not_believed() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    compile(&store, [1]);
    let path = files(root.path()).remove(0);
    let untouched = fs::read(&path).unwrap();
    let index = untouched.len() - 16 - 44;
    let patched = |at: usize, value: &[u8]| {
        let mut bytes = untouched.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    let wrong = [
        patched(index + 32, &u64::MAX.to_le_bytes()),
        patched(index + 40, &u32::MAX.to_le_bytes()),
        patched(index + 44, &u64::MAX.to_le_bytes()),
        patched(index + 44, &2_u64.to_le_bytes()),
        patched(index + 44, &(u64::MAX / 44).to_le_bytes()),
    ];
    for bytes in wrong {
        rewrite(&path, &bytes);
        assert!(!has(&store, 1));
        assert!(!path.exists());
    }
}

#[test]
fn code_under_another_key_or_for_another_engine_or_function_is_not_used() {
    let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let own = store(root.path());
    compile(&own, [1]);
    let path = files(root.path()).remove(0);
    let untouched = fs::read(&path).unwrap();

    compile(&store(other.path()), [1]);
    fs::remove_file(&path).unwrap();
    fs::copy(files(other.path()).remove(0), &path).unwrap();
    assert!(!has(&own, 1), "a MAC under another key");

    let engine = store_with(root.path(), "english", Bounds::default());
    let stolen = path.with_file_name(path.file_name().unwrap().to_str().unwrap().replacen("engine", "english", 1));
    rewrite(&stolen, &untouched);
    assert!(!has(&engine, 1), "a MAC for another engine");

    let mut bytes = untouched;
    let index = bytes.len() - 16 - 44;
    bytes[index..index + 32].copy_from_slice(&key(2));
    rewrite(&path, &bytes);
    assert!(!has(&own, 2), "a MAC for another function");
}

#[test]
fn a_file_that_others_may_write_a_link_and_a_fifo_are_not_read() {
    let root = tempfile::tempdir().unwrap();
    let own = store(root.path());
    let spoil: [fn(&Path, &Path); 3] = [
        |path, _| fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap(),
        |path, elsewhere| {
            fs::rename(path, elsewhere).unwrap();
            std::os::unix::fs::symlink(elsewhere, path).unwrap();
        },
        |path, _| {
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            fs::remove_file(path).unwrap();
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        },
    ];
    for spoil in spoil {
        compile(&own, [1]);
        let path = files(root.path()).remove(0);
        spoil(&path, &root.path().join("elsewhere"));
        assert!(!has(&own, 1));
        assert!(!path.exists());
    }
}

#[test]
fn one_compilation_adds_half_of_what_is_kept_at_most() {
    let root = tempfile::tempdir().unwrap();
    let entry = CODE.len() as u64 + 32;
    let by_bytes = Bounds { bytes_max: 2 * (8 + 3 * entry), ..Bounds::default() };
    let by_number = Bounds { functions_max: 6, ..Bounds::default() };
    for (bounds, engine) in [(by_bytes, "bytes"), (by_number, "number")] {
        let store = store_with(root.path(), engine, bounds);
        let session = store.open();
        let kept = (0..10).filter(|number| store.insert(&key(*number), CODE.to_vec())).count();
        drop(session);
        assert_eq!(kept, 3, "{engine}");
        let _session = store.open();
        assert_eq!((0..10).filter(|number| store.get(&key(*number)).is_some()).count(), 3, "{engine}");
    }
    let small = Bounds { function_bytes_max: CODE.len() - 1, ..Bounds::default() };
    let store = store_with(root.path(), "small", small);
    let _session = store.open();
    assert!(!store.insert(&key(1), CODE.to_vec()));
}

fn age(path: &Path, hours: u64) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(hours * 3_600);
    File::open(path).unwrap().set_modified(then).unwrap();
}

#[test]
fn past_the_bounds_the_files_used_last_stay() {
    let root = tempfile::tempdir().unwrap();
    let file_bytes = 8 + CODE.len() as u64 + 32 + 44 + 16;
    let by_bytes = Bounds { bytes_max: 3 * file_bytes, ..Bounds::default() };
    let by_number = Bounds { functions_max: 3, ..Bounds::default() };
    for (bounds, engine) in [(by_bytes, "bytes"), (by_number, "number")] {
        files(root.path()).iter().for_each(|path| fs::remove_file(path).unwrap());
        let store = store_with(root.path(), engine, bounds);
        for number in 1..=4 {
            // The first is the oldest, but it is used again: that counts once a day.
            files(root.path()).iter().for_each(|path| age(path, if has_in(path, 1) { 50 } else { 30 }));
            assert!(number == 1 || has(&store, 1), "{engine} {number}");
            // One compilation may add half: bounds for the test leave one function.
            compile(&store, [number]);
        }
        assert!(has(&store, 1) && has(&store, 4), "{engine}");
        let kept: u64 = files(root.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
        assert!(kept <= 3 * file_bytes, "{engine}: {kept} bytes");
    }
}

fn has_in(path: &Path, number: u8) -> bool {
    fs::read(path).unwrap().windows(32).any(|bytes| bytes == key(number))
}

#[test]
fn many_small_files_are_joined_and_nothing_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let store = store_with(root.path(), "engine", Bounds { small_files_max: 4, ..Bounds::default() });
    for number in 1..=20 {
        compile(&store, [number]);
        assert!(files(root.path()).len() <= 4, "after {number}");
    }
    assert!((1..=20).all(|number| has(&store, number)));
}

#[test]
fn a_draft_that_cannot_be_finished_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    let session = store.open();
    assert!(store.insert(&key(1), CODE.to_vec()));
    // As a process stopped half-way leaves it.
    let draft = files(root.path()).remove(0);
    let abandoned = root.path().join("code/engine.2000000000-1.new");
    fs::copy(&draft, &abandoned).unwrap();
    fs::remove_file(&draft).unwrap();
    drop(session);
    assert_eq!(files(root.path()), std::slice::from_ref(&abandoned));
    drop(CodeCache::open(&root.path().join("code"), &root.path().join("state/key"), 1).unwrap());
    assert!(files(root.path()).is_empty());
    assert!(!has(&store, 1));
}

#[test]
fn a_folder_that_is_gone_costs_nothing_but_the_functions() {
    let root = tempfile::tempdir().unwrap();
    let store = store(root.path());
    fs::remove_dir(root.path().join("code")).unwrap();
    let _session = store.open();
    assert!(!store.insert(&key(1), CODE.to_vec()) && store.get(&key(1)).is_none());
}

#[test]
fn many_processes_add_and_join_at_once_and_each_finds_only_what_was_kept() {
    let root = tempfile::tempdir().unwrap();
    let bounds = Bounds { small_files_max: 3, ..Bounds::default() };
    std::thread::scope(|scope| {
        for process in 0..4 {
            let store = store_with(root.path(), "engine", bounds);
            scope.spawn(move || {
                for round in 0..20 {
                    let number = process * 20 + round;
                    compile(&store, [number]);
                    for number in 0..80 {
                        has(&store, number);
                    }
                }
            });
        }
    });
    let store = store_with(root.path(), "engine", bounds);
    assert!((0..80).filter(|number| has(&store, *number)).count() >= 40);
}
