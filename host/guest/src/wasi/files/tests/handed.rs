//! Mounts that a host handed over behave as in the host itself.
//!
//! Promise: behind a wall only the mounts are reached.
//! Promise: folders are bounded behind walls too.
//! Promise: scratch space stays nowhere.
use super::super::ledger::Account;
use super::*;
use toolcell_sandbox::ScratchHome;

const TABLE: &str = r#"
"/data" = { path = "data" }
"/out" = { path = "out", access = "write", quota = "1KiB", files = 4, create = true }
"/one" = { path = "one" }
"/two" = { path = "two", access = "write", quota = "1KiB" }
"#;

fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("data/.toolcell")).unwrap();
    for (path, text) in [("data/a", "alpha"), ("one", "first"), ("two", "second"), ("beside", "no")] {
        std::fs::write(folder.path().join(path), text).unwrap();
    }
    folder
}

/// The host's side of a table.
fn capabilities(folder: &Path, table: &str) -> Arc<GrantedCapabilities> {
    opened(folder, table).unwrap_or_else(|problems| panic!("{:?}", problems[0].message))
}

#[test]
fn handed_mounts_are_read_and_written_as_in_the_host() {
    let folder = filled();
    let host = capabilities(folder.path(), TABLE);
    let mut guest = Guest::of(&handed(&GrantedFiles::of([&*host]), TABLE, None));
    let data = guest.root("/data");
    let out = guest.root("/out");
    let root = guest.root("/");
    assert_eq!(guest.list(root).unwrap(), ["data", "one", "out", "two"]);
    let file = guest.open(data, "a").unwrap();
    assert_eq!(guest.read(file).unwrap(), b"alpha");
    assert_eq!(guest.create(data, "b"), Err(ErrorCode::ReadOnly));
    assert_eq!(guest.denied().len(), 1);
    assert_eq!(guest.open(data, "../beside"), Err(ErrorCode::NotPermitted));
    let made = guest.create(out, "made").unwrap();
    assert_eq!(guest.write(made, 1024, 0), Ok(1024));
    assert_eq!(guest.write(made, 1, 1024), Err(ErrorCode::InsufficientSpace));
    assert_eq!(std::fs::read(folder.path().join("out/made")).unwrap().len(), 1024);
}

#[test]
fn a_single_file_is_the_one_that_was_there_when_it_was_handed_over() {
    let folder = filled();
    let host = capabilities(folder.path(), TABLE);
    let files = GrantedFiles::of([&*host]);
    let before: Vec<_> = files.single_files().collect();
    let mut guest = Guest::of(&handed(&files, TABLE, None));
    let root = guest.root("/");
    let one = guest.open(root, "one").unwrap();
    assert_eq!(guest.read(one).unwrap(), b"first");
    assert_eq!(guest.size(one), 5);
    let two = guest.create(root, "two").unwrap();
    assert_eq!(guest.write(two, 7, 0), Ok(7));
    assert_eq!(std::fs::read(folder.path().join("two")).unwrap(), b"xxxxxxx");
    assert_eq!(guest.ask(|view| view.set_size(&at(two), 1025)), Err(ErrorCode::InsufficientSpace));
    for refused in [guest.open(root, "one/x"), guest.open(root, "one/")] {
        assert_eq!(refused, Err(ErrorCode::NotDirectory));
    }
    assert_eq!(guest.unlink(root, "two"), Err(ErrorCode::Busy));
    assert_eq!(guest.mkdir(root, "two"), Err(ErrorCode::Exist));
    assert_eq!(guest.rename(root, "two", "three"), Err(ErrorCode::NoEntry));
    assert_eq!(guest.ask(|view| view.readlink_at(at(root), "one".to_owned())), Err(ErrorCode::Invalid));
    assert_eq!(guest.create(root, "one"), Err(ErrorCode::ReadOnly));
    // Another file replaces it, then none.
    std::fs::write(folder.path().join("next"), "third").unwrap();
    std::fs::rename(folder.path().join("next"), folder.path().join("one")).unwrap();
    let after: Vec<_> = files.single_files().collect();
    assert!(before != after && before.len() == 2 && after.iter().all(Option::is_some));
    let mut later = Guest::of(&handed(&files, TABLE, None));
    let root = later.root("/");
    let one = later.open(root, "one").unwrap();
    assert_eq!(later.read(one).unwrap(), b"third");
    std::fs::remove_file(folder.path().join("one")).unwrap();
    std::fs::remove_file(folder.path().join("two")).unwrap();
    assert_eq!(files.single_files().collect::<Vec<_>>(), [None, None]);
    let mut without = Guest::of(&handed(&files, TABLE, None));
    let root = without.root("/");
    assert_eq!(without.open(root, "one"), Err(ErrorCode::NoEntry));
    assert_eq!(
        without.create(root, "two"),
        Err(ErrorCode::NoEntry),
        "nothing is made in a folder that was not granted"
    );
    std::os::unix::fs::symlink("beside", folder.path().join("one")).unwrap();
    let mut linked = Guest::of(&handed(&files, TABLE, None));
    let root = linked.root("/");
    assert_eq!(linked.open(root, "one"), Err(ErrorCode::NoEntry), "a link is not followed");
}

#[test]
fn the_hidden_folder_of_the_host_is_hidden_there_as_well() {
    let folder = filled();
    let table = r#""/all" = { path = "." }"#;
    std::fs::create_dir_all(folder.path().join(".toolcell")).unwrap();
    let host = capabilities(folder.path(), table);
    let mut guest = Guest::of(&handed(&GrantedFiles::of([&*host]), table, None));
    let all = guest.root("/all");
    assert!(!guest.list(all).unwrap().contains(&".toolcell".to_owned()));
    assert_eq!(guest.open(all, ".toolcell"), Err(ErrorCode::NoEntry));
    assert!(guest.open(all, "beside").is_ok());
}

#[test]
fn processes_count_one_folder_together() {
    let folder = filled();
    let table = r#""/out" = { path = "out", access = "write", quota = "1KiB", create = true }"#;
    let host = capabilities(folder.path(), table);
    let files = GrantedFiles::of([&*host]);
    let mut ours = Guest::of(&handed(&files, table, None));
    ours.files.prepared().accounts().for_each(Account::leave_to_another_process);
    let mut one = Guest::of(&handed(&files, table, None));
    let mut other = Guest::of(&handed(&files, table, None));
    for (guest, name) in [(&mut ours, "a"), (&mut one, "b"), (&mut other, "c")] {
        let out = guest.root("/out");
        let file = guest.create(out, name).unwrap();
        assert_eq!(guest.write(file, 300, 0), Ok(300));
    }
    let out = one.root("/out");
    let more = one.create(out, "d").unwrap();
    assert_eq!(one.write(more, 125, 0), Err(ErrorCode::InsufficientSpace));
    assert_eq!(one.write(more, 124, 0), Ok(124));
    let out = ours.root("/out");
    assert_eq!(ours.unlink(out, "c"), Ok(()), "and it is open elsewhere");
    assert_eq!(one.write(more, 300, 124), Ok(300));
}

#[test]
fn tools_of_a_component_share_its_mounts_with_the_most_that_any_has() {
    let folder = filled();
    let wide = capabilities(folder.path(), TABLE);
    let narrow = capabilities(folder.path(), "\"/out\" = { path = \"out\" }\n\"/data\" = { path = \"data\" }");
    let files = GrantedFiles::of([&*narrow, &*wide]);
    assert!(files.writes());
    let mut guest = Guest::of(&handed(&files, TABLE, None));
    let out = guest.root("/out");
    assert!(guest.create(out, "made").is_ok());
    let only = GrantedFiles::of([&*narrow]);
    assert!(!only.writes() && only != files);
    let alone = HandedFiles::new(only.hand_over().unwrap(), None).unwrap();
    let refused = Prepared::handed(&grants(TABLE), &alone, None).unwrap_err();
    assert_eq!(refused, r#""/one" was not handed over"#);
}

#[test]
fn scratch_space_lies_where_the_host_removes_it() {
    let base = tempfile::tempdir().unwrap();
    let home = ScratchHome::at(&base.path().join("toolcell-test")).unwrap();
    let process = home.of_process().unwrap();
    let table = r#""/tmp" = { scratch = "4KiB" }"#;
    let scratch = ScratchFolder::handed(process.dir().try_clone().unwrap().into());
    let mut guest = Guest::of(&handed(&GrantedFiles::default(), table, Some(scratch)));
    let tmp = guest.root("/tmp");
    let file = guest.create(tmp, "file").unwrap();
    assert_eq!(guest.write(file, 4096, 0), Ok(4096));
    assert_eq!(guest.write(file, 1, 4096), Err(ErrorCode::InsufficientSpace));
    assert_eq!(process.dir().entries().unwrap().count(), 1);
    guest.close(file);
    guest.files.end_call();
    assert_eq!(process.dir().entries().unwrap().count(), 0, "gone with the call");
    let tmp = guest.root("/tmp");
    guest.create(tmp, "left").unwrap();
    process.remove();
    drop(guest);
    drop(process);
    drop(home);
    let left = std::fs::read_dir(base.path().join("toolcell-test")).unwrap().count();
    assert_eq!(left, 1, "nothing but the lock of the place stays");
}
