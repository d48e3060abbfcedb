//! Quotas: exactly full, one more, and released.
//!
//! Promise: other programs are not led out of a mount.
//! Promise: files are bounded.
//! Promise: scratch space is the call's own.
//! Promise: state and files hold nobody up.
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::bindings::types::HostDescriptor;
use super::super::ledger::Account;
use super::*;
use toolcell_walls::folder::Amount;

const TABLE: &str = r#""/out" = { path = "out", access = "write", quota = "1KiB", files = 4, create = true }"#;

fn guest() -> (tempfile::TempDir, Guest, u32) {
    let folder = tempfile::tempdir().unwrap();
    let mut guest = Guest::with(folder.path(), TABLE);
    let out = guest.root("/out");
    (folder, guest, out)
}

const FULL: ErrorCode = ErrorCode::InsufficientSpace;

#[test]
fn a_mount_is_filled_to_the_last_byte_and_not_beyond() {
    let (_folder, mut guest, out) = guest();
    let file = guest.create(out, "a").unwrap();
    assert_eq!(guest.write(file, 1023, 0), Ok(1023));
    assert_eq!(guest.write(file, 2, 1023), Err(FULL));
    assert_eq!(guest.size(file), 1023, "what does not fit is not begun");
    assert_eq!(guest.write(file, 1, 1023), Ok(1));
    assert_eq!(guest.write(file, 1, 1024), Err(FULL));
    assert_eq!(guest.write(file, 1024, 0), Ok(1024), "what is there can be written again");
    let other = guest.create(out, "b").unwrap();
    assert_eq!(guest.write(other, 1, 0), Err(FULL));
    assert_eq!(guest.write(other, 0, 5), Ok(0));
}

#[test]
fn a_hole_counts_as_if_it_were_written() {
    let (_folder, mut guest, out) = guest();
    let file = guest.create(out, "a").unwrap();
    assert_eq!(guest.write(file, 1, 1024), Err(FULL));
    assert_eq!(guest.ask(|view| view.set_size(&at(file), 1025)), Err(FULL));
    assert_eq!(guest.ask(|view| view.set_size(&at(file), 1 << 40)), Err(FULL));
    assert_eq!(guest.ask(|view| view.set_size(&at(file), u64::MAX)), Err(ErrorCode::FileTooLarge));
    assert_eq!(guest.write(file, 1, u64::MAX), Err(ErrorCode::FileTooLarge));
    assert_eq!(guest.ask(|view| view.set_size(&at(file), 1024)), Ok(()));
    let other = guest.create(out, "b").unwrap();
    assert_eq!(guest.write(other, 1, 0), Err(FULL));
    assert_eq!(guest.ask(|view| view.set_size(&at(file), 1023)), Ok(()));
    assert_eq!(guest.write(other, 1, 0), Ok(1));
}

#[test]
fn streams_count_as_writes_do() {
    let (_folder, mut guest, out) = guest();
    let file = guest.create(out, "a").unwrap();
    let mut writer = guest.writer(file, 0).unwrap();
    writer.write(vec![1; 1000].into()).unwrap();
    writer.flush().unwrap();
    let mut appender = guest.appender(file).unwrap();
    appender.write(vec![2; 24].into()).unwrap();
    assert_eq!(guest.size(file), 1024);
    let error = appender.write(vec![3; 1].into()).unwrap_err();
    assert_eq!(guest.code_of(error), Some(FULL));
    assert!(matches!(appender.check_write(), Err(wasmtime_wasi::p2::StreamError::Closed)));
    let error = writer.write(vec![3; 25].into()).unwrap_err();
    assert_eq!(guest.code_of(error), Some(FULL));
    let mut again = guest.writer(file, 1000).unwrap();
    again.write(vec![4; 24].into()).unwrap();
    assert_eq!(&guest.read(file).unwrap()[999..], [&[1_u8][..], &[4; 24]].concat());
}

#[test]
fn every_name_counts_as_a_file() {
    let (folder, mut guest, out) = guest();
    let file = guest.create(out, "file").unwrap();
    guest.write(file, 10, 0).unwrap();
    guest.mkdir(out, "folder").unwrap();
    guest.symlink(out, "file", "symlink").unwrap();
    guest.link(out, "file", "link").unwrap();
    assert_eq!(guest.create(out, "fifth"), Err(FULL));
    assert_eq!(guest.mkdir(out, "fifth"), Err(FULL));
    assert_eq!(guest.symlink(out, "file", "fifth"), Err(FULL));
    assert_eq!(guest.link(out, "file", "fifth"), Err(FULL));
    assert!(!folder.path().join("out/fifth").exists());
    guest.open_as(out, "file", FOLLOW, CREATE, READ).expect("what is there is opened, not made");
    guest.unlink(out, "symlink").unwrap();
    guest.mkdir(out, "folder/fifth").unwrap();
    assert_eq!(guest.mkdir(out, "sixth"), Err(FULL));
    guest.ask(|view| view.remove_directory_at(at(out), "folder/fifth".to_owned())).unwrap();
    guest.mkdir(out, "sixth").unwrap();
}

#[test]
fn what_is_refused_for_another_reason_counts_for_nothing() {
    let (_folder, mut guest, out) = guest();
    guest.mkdir(out, "a").unwrap();
    for _ in 0..10 {
        assert_eq!(guest.mkdir(out, "a"), Err(ErrorCode::Exist));
        assert_eq!(guest.create(out, "missing/b"), Err(ErrorCode::NoEntry));
        assert_eq!(guest.symlink(out, "x", "a"), Err(ErrorCode::Exist));
        assert_eq!(guest.link(out, "nothing", "b"), Err(ErrorCode::NoEntry));
        assert_eq!(guest.unlink(out, "nothing"), Err(ErrorCode::NoEntry));
    }
    for name in ["b", "c", "d"] {
        guest.mkdir(out, name).unwrap();
    }
    assert_eq!(guest.mkdir(out, "e"), Err(FULL));
}

#[test]
fn removing_truncating_and_replacing_give_back() {
    let (_folder, mut guest, out) = guest();
    let fill = |guest: &mut Guest, name: &str| {
        let file = guest.create(out, name).unwrap();
        let written = guest.write(file, 1024, 0);
        guest.close(file);
        written
    };
    for _ in 0..3 {
        assert_eq!(fill(&mut guest, "a"), Ok(1024));
        guest.unlink(out, "a").unwrap();
    }
    fill(&mut guest, "a").unwrap();
    let truncated = guest.open_as(out, "a", FOLLOW, OpenFlags::TRUNCATE, WRITE).unwrap();
    guest.close(truncated);
    fill(&mut guest, "b").unwrap();
    assert_eq!(fill(&mut guest, "a"), Err(FULL));
    guest.rename(out, "a", "b").unwrap();
    assert_eq!(fill(&mut guest, "b"), Ok(1024));
    for name in ["c", "d", "e"] {
        guest.create(out, name).unwrap();
    }
    assert_eq!(guest.create(out, "f"), Err(FULL));
}

#[test]
fn a_file_without_a_name_counts_until_it_is_closed() {
    let (_folder, mut guest, out) = guest();
    let first = guest.create(out, "a").unwrap();
    let second = guest.open(out, "a").unwrap();
    guest.write(first, 500, 0).unwrap();
    guest.unlink(out, "a").unwrap();
    guest.write(first, 500, 500).unwrap();
    let other = guest.create(out, "b").unwrap();
    assert_eq!(guest.write(other, 25, 0), Err(FULL));
    guest.close(first);
    assert_eq!(guest.write(other, 25, 0), Err(FULL));
    guest.close(second);
    assert_eq!(guest.write(other, 1024, 0), Ok(1024));
    let replaced = guest.create(out, "c").unwrap();
    guest.rename(out, "c", "b").unwrap();
    assert_eq!(guest.write(replaced, 1, 0), Err(FULL), "what was replaced is still open");
    guest.close(other);
    assert_eq!(guest.write(replaced, 1024, 0), Ok(1024));
}

#[test]
fn renaming_one_name_of_a_file_to_another_changes_nothing() {
    let (_folder, mut guest, out) = guest();
    let file = guest.create(out, "a").unwrap();
    guest.write(file, 512, 0).unwrap();
    guest.link(out, "a", "b").unwrap();
    guest.rename(out, "a", "b").unwrap();
    let other = guest.create(out, "c").unwrap();
    assert_eq!(guest.write(other, 1, 0), Err(FULL), "both names are still there and counted");
}

#[test]
fn a_file_of_several_names_is_not_written() {
    let (folder, mut guest, out) = guest();
    let outside = folder.path().join("outside");
    std::fs::write(&outside, "kept").unwrap();
    std::fs::hard_link(&outside, folder.path().join("out/hard")).unwrap();
    let no = Err(ErrorCode::NotPermitted);
    assert_eq!(guest.open_as(out, "hard", FOLLOW, as_is(), WRITE), no);
    assert_eq!(guest.open_as(out, "hard", FOLLOW, OpenFlags::TRUNCATE, READ), no);
    let now = || super::super::bindings::types::NewTimestamp::Now;
    assert_eq!(
        guest
            .ask(|view| view.set_times_at(
                at(out),
                FOLLOW,
                "hard".to_owned(),
                NewTimes { accessed: now(), modified: now() }
            ))
            .map(|()| 0),
        no
    );
    let file = guest.create(out, "own").unwrap();
    guest.write(file, 4, 0).unwrap();
    guest.link(out, "own", "second").unwrap();
    assert_eq!(guest.write(file, 1, 0).map(|_| 0), no, "as well through what was opened before");
    assert_eq!(guest.ask(|view| view.set_size(&at(file), 0)).map(|()| 0), no);
    guest.unlink(out, "second").unwrap();
    assert_eq!(guest.write(file, 1, 0), Ok(1));
    assert_eq!(std::fs::read(&outside).unwrap(), b"kept");
}

#[test]
fn writers_at_once_never_exceed_the_quota_together() {
    let folder = tempfile::tempdir().unwrap();
    let table = r#""/out" = { path = "out", access = "write", quota = "100KiB", files = 40, create = true }"#;
    let prepared = prepare(folder.path(), table).unwrap();
    let place = &folder.path().join("out");
    // None of them renames while another counts, or a file would count under both names.
    let all = &Barrier::new(8);
    let most = &AtomicU64::new(0);
    let written: u64 = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|call| {
                let prepared = &prepared;
                scope.spawn(move || {
                    let mut guest = Guest::of(&prepared.prepared);
                    let out = guest.root("/out");
                    let mut written = 0;
                    let shared = guest.create(out, "shared").unwrap();
                    for round in 0..400 {
                        if round % 20 == 0 {
                            if all.wait().is_leader() {
                                most.fetch_max(held(place).files, Ordering::SeqCst);
                            }
                            all.wait();
                        }
                        let Ok(own) = guest.create(out, &format!("{call}-{}", round % 9)) else { continue };
                        written += guest.write(own, 700, round * 100).unwrap_or(0);
                        let _ = guest.write(shared, 900, round * 300);
                        let _ = guest.ask(|view| view.set_size(&at(own), 50 * round));
                        if round % 7 == 0 {
                            let _ = guest.unlink(out, &format!("{}-{}", (call + 1) % 8, round % 9));
                        }
                        if round % 11 == 0 {
                            let _ = guest.rename(out, &format!("{call}-1"), &format!("{}-2", (call + 3) % 8));
                        }
                        guest.close(own);
                    }
                    written
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).sum()
    });
    assert!(written > 0);
    let most = most.load(Ordering::SeqCst);
    assert!((1..=40).contains(&most), "{most}");
    let account = prepared.prepared.mounts()[0].account.as_ref().unwrap();
    let counted = account.used().unwrap();
    let held = held(place);
    assert!(held.bytes <= 100 << 10, "{held:?}");
    assert_eq!(counted, held, "what was counted is what is there");
}

/// The amount there, counted from the outside.
fn held(place: &Path) -> Amount {
    loop {
        let dir = cap_std::fs::Dir::open_ambient_dir(place, cap_std::ambient_authority()).unwrap();
        // A name may vanish during the count.
        if let Ok(Some(amount)) = toolcell_walls::folder::folder(&dir, 1_000) {
            return amount;
        }
    }
}

#[test]
fn what_is_there_at_load_counts_and_so_does_what_others_remove() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("out/sub")).unwrap();
    std::fs::write(folder.path().join("out/sub/big"), vec![0; 1000]).unwrap();
    std::os::unix::fs::symlink("/", folder.path().join("out/root")).unwrap();
    let mut guest = Guest::with(folder.path(), TABLE);
    let out = guest.root("/out");
    let file = guest.create(out, "a").unwrap();
    assert_eq!(guest.create(out, "b"), Err(FULL));
    assert_eq!(guest.write(file, 24, 0), Err(FULL), "the link's text counts one byte");
    assert_eq!(guest.write(file, 23, 0), Ok(23));
    std::fs::remove_file(folder.path().join("out/sub/big")).unwrap();
    assert_eq!(guest.write(file, 1023, 0), Err(FULL), "it is not counted at every write");
    let again = prepare(folder.path(), TABLE).unwrap();
    again.prepared.mounts()[0].account.as_ref().unwrap().count(std::time::Duration::ZERO).unwrap();
    assert_eq!(guest.write(file, 1023, 0), Ok(1023), "a later count is seen by running calls as well");
}

/// A folder that another program fills and empties, once its count is old.
fn emptied() -> (tempfile::TempDir, Guest, u32) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("out")).unwrap();
    std::fs::write(folder.path().join("out/big"), vec![0; 1000]).unwrap();
    let mut guest = Guest::with(folder.path(), TABLE);
    let out = guest.root("/out");
    let file = guest.create(out, "a").unwrap();
    std::fs::remove_file(folder.path().join("out/big")).unwrap();
    guest.files.prepared().accounts().for_each(Account::forget_count);
    (folder, guest, file)
}

#[tokio::test]
async fn who_is_refused_room_has_it_counted_aside_and_then_has_it() {
    let (_folder, mut guest, file) = emptied();
    assert_eq!(guest.write(file, 1000, 0), Err(FULL), "nothing is counted on the guest's thread");
    let mut view = guest.view();
    let written = HostDescriptor::write(&mut view, at(file), vec![b'x'; 1000], 0).await;
    assert_eq!(written.unwrap(), 1000);
    let again = HostDescriptor::write(&mut view, at(file), vec![b'x'; 1000], 1000).await;
    assert!(matches!(again, Err(Refused::Code(ErrorCode::InsufficientSpace))));
}

#[tokio::test]
async fn a_stream_holds_what_found_no_room_until_it_was_counted() {
    let (_folder, mut guest, file) = emptied();
    let mut stream = guest.writer(file, 0).unwrap();
    assert!(matches!(stream.check_write(), Ok(1..)));
    stream.write(vec![b'x'; 1000].into()).unwrap();
    assert_eq!(stream.check_write().unwrap(), 0, "there is one piece at a time");
    stream.flush().unwrap();
    assert!(stream.write_ready().await.unwrap() > 0);
    stream.write(vec![b'y'; 24].into()).unwrap();
    assert_eq!(guest.size(file), 1024);
    let refused = stream.write(vec![b'z'; 1].into());
    let told = match refused {
        Ok(()) => stream.write_ready().await.map(drop),
        refused => refused,
    };
    assert_eq!(guest.code_of(told.unwrap_err()), Some(FULL));
    assert!(stream.check_write().is_err(), "a stream that failed is closed");
    assert_eq!(guest.size(file), 1024);
}

#[test]
fn two_mounts_of_one_folder_share_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let mut one = Guest::with(folder.path(), TABLE);
    let mut other = Guest::with(folder.path(), &TABLE.replace("/out", "/other").replace("1KiB", "2KiB"));
    let out = one.root("/out");
    let place = other.root("/other");
    let file = one.create(out, "a").unwrap();
    let second = other.create(place, "b").unwrap();
    one.write(file, 1000, 0).unwrap();
    assert_eq!(other.write(second, 1049, 0), Err(FULL));
    assert_eq!(other.write(second, 1048, 0), Ok(1048));
    assert_eq!(one.write(file, 1, 1000), Err(FULL));
}

#[test]
fn a_folder_that_holds_too_much_is_loaded_and_only_shrinks() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("out")).unwrap();
    for name in 0..6 {
        std::fs::write(folder.path().join(format!("out/{name}")), "x").unwrap();
    }
    let prepared = prepare(folder.path(), TABLE).unwrap();
    assert_eq!(prepared.opened.notes().len(), 1);
    let mut guest = Guest::of(&prepared.prepared);
    let out = guest.root("/out");
    assert_eq!(guest.create(out, "new"), Err(FULL));
    let file = guest.open_as(out, "1", FOLLOW, as_is(), WRITE).unwrap();
    assert_eq!(guest.write(file, 1, 0), Ok(1));
    assert_eq!(guest.write(file, 1, 1), Err(FULL));
    guest.unlink(out, "2").unwrap();
}

#[test]
fn scratch_is_bounded_and_private_to_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let prepared = prepare(folder.path(), r#""/tmp" = { scratch = "4KiB", files = 2 }"#).unwrap();
    let mut one = Guest::of(&prepared.prepared);
    let mut other = Guest::of(&prepared.prepared);
    let mine = one.root("/tmp");
    let theirs = other.root("/tmp");
    let file = one.create(mine, "a").unwrap();
    assert_eq!(one.write(file, 4096, 0), Ok(4096));
    assert_eq!(one.write(file, 1, 4096), Err(FULL));
    one.mkdir(mine, "b").unwrap();
    assert_eq!(one.mkdir(mine, "c"), Err(FULL));
    assert_eq!(other.list(theirs), Ok(Vec::new()));
    one.files.end_call();
    assert_eq!(one.list(mine), Ok(Vec::new()), "the same instance's next call begins anew");
    assert_eq!(one.create(mine, "a").map(|_| ()), Ok(()));
}
