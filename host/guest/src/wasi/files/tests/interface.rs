//! The interface itself: each function's answer to an honest guest, and its errors.
//!
//! Promise: a read-only mount is not written.
//! Promise: files are bounded.
use super::super::bindings::types::{Advice, DescriptorType, NewTimestamp};
use super::*;

fn guest(access: &str) -> (tempfile::TempDir, Guest, u32) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("data/sub")).unwrap();
    std::fs::write(folder.path().join("data/file"), "hello").unwrap();
    std::os::unix::fs::symlink("file", folder.path().join("data/link")).unwrap();
    let mut guest = Guest::with(folder.path(), &format!(r#""/data" = {{ path = "data", access = "{access}" }}"#));
    let data = guest.root("/data");
    (folder, guest, data)
}

#[test]
fn a_read_mount_reads_and_changes_nothing() {
    let (folder, mut guest, data) = guest("read");
    let file = guest.open(data, "file").unwrap();
    assert_eq!(guest.read(file).unwrap(), b"hello");
    assert_eq!(guest.list(data).unwrap(), ["file", "link", "sub"]);
    let no = Err(ErrorCode::ReadOnly);
    assert_eq!(guest.create(data, "new").map(|_| ()), no);
    assert_eq!(guest.create(data, "file").map(|_| ()), no);
    assert_eq!(guest.open_as(data, "file", FOLLOW, as_is(), WRITE).map(|_| ()), no);
    assert_eq!(guest.open_as(data, "file", FOLLOW, OpenFlags::TRUNCATE, READ).map(|_| ()), no);
    assert_eq!(guest.open_as(data, "sub", FOLLOW, as_is(), DescriptorFlags::MUTATE_DIRECTORY).map(|_| ()), no);
    assert_eq!(guest.write(file, 1, 0).map(|_| ()), no);
    assert_eq!(guest.ask(|view| view.set_size(&at(file), 0)), no);
    assert_eq!(guest.writer(file, 0).map(|_| ()), no);
    assert_eq!(guest.appender(file).map(|_| ()), no);
    assert_eq!(guest.ask(|view| view.set_times(at(file), NewTimestamp::Now, NewTimestamp::Now)), no);
    assert_eq!(guest.ask(|view| view.set_times(at(data), NewTimestamp::Now, NewTimestamp::Now)), no);
    let time = || NewTimestamp::Now;
    assert_eq!(
        guest.ask(|view| view.set_times_at(
            at(data),
            stay(),
            "file".to_owned(),
            NewTimes { accessed: time(), modified: time() }
        )),
        no
    );
    assert_eq!(guest.mkdir(data, "new"), no);
    assert_eq!(guest.unlink(data, "file"), no);
    assert_eq!(guest.ask(|view| view.remove_directory_at(at(data), "sub".to_owned())), no);
    assert_eq!(guest.rename(data, "file", "new"), no);
    assert_eq!(guest.link(data, "file", "new"), no);
    assert_eq!(guest.symlink(data, "file", "new"), no);
    assert_eq!(guest.ask(|view| view.get_flags(at(file))), Ok(READ));
    assert_eq!(guest.ask(|view| view.get_flags(at(data))), Ok(READ));
    assert_eq!(std::fs::read(folder.path().join("data/file")).unwrap(), b"hello");
    assert_eq!(guest.list(data).unwrap(), ["file", "link", "sub"]);
    let host = folder.path().to_str().unwrap();
    let denied = guest.denied();
    assert_eq!(denied.len(), 16, "the first of them are kept");
    for denial in &denied {
        assert!(!denial.to_string().contains(host), "{denial}");
    }
    assert_eq!(denied[0].asked(), "create /data/new");
    assert_eq!(denied[5].asked(), "write /data/file", "what was opened is named by its path");
}

#[test]
fn a_write_mount_does_what_a_program_expects() {
    let (_folder, mut guest, data) = guest("write");
    assert_eq!(guest.ask(|view| view.get_flags(at(data))), Ok(READ | DescriptorFlags::MUTATE_DIRECTORY));
    let file = guest.create(data, "sub/new").unwrap();
    assert_eq!(guest.ask(|view| view.get_flags(at(file))), Ok(READ | WRITE));
    assert_eq!(guest.write(file, 5, 3), Ok(5));
    assert_eq!(guest.read(file).unwrap(), b"\0\0\0xxxxx");
    assert_eq!(guest.ask(|view| view.read(at(file), 3, 8)), Ok((Vec::new(), true)));
    assert_eq!(guest.ask(|view| view.read(at(file), 0, 0)), Ok((Vec::new(), false)));
    assert_eq!(guest.write(file, 200_000, 0), Ok(65_536), "a piece at a time");
    let sub = guest.open(data, "sub").unwrap();
    guest.mkdir(sub, "deeper").unwrap();
    guest.mkdir(sub, "slashed/").unwrap();
    guest.rename(sub, "new", "deeper/moved").unwrap();
    assert_eq!(guest.list(sub).unwrap(), ["deeper", "slashed"]);
    guest.ask(|view| view.rename_at(at(sub), "deeper/moved".to_owned(), at(data), "top".to_owned())).unwrap();
    assert_eq!(guest.size(file), 65_536);
    assert_eq!(guest.ask(|view| view.remove_directory_at(at(data), "sub".to_owned())), Err(ErrorCode::NotEmpty));
    assert_eq!(guest.unlink(data, "sub"), Err(ErrorCode::IsDirectory));
    assert_eq!(guest.ask(|view| view.remove_directory_at(at(data), "top".to_owned())), Err(ErrorCode::NotDirectory));
    guest.unlink(data, "top").unwrap();
    assert_eq!(guest.open(data, "top"), Err(ErrorCode::NoEntry));
    assert!(guest.denied().is_empty());
}

#[test]
fn opening_says_what_is_wrong() {
    let (_folder, mut guest, data) = guest("write");
    let directory = OpenFlags::DIRECTORY;
    let exclusive = CREATE | OpenFlags::EXCLUSIVE;
    let table = [
        ("missing", (FOLLOW, as_is(), READ), ErrorCode::NoEntry),
        ("file/below", (FOLLOW, as_is(), READ), ErrorCode::NotDirectory),
        ("file/", (FOLLOW, as_is(), READ), ErrorCode::NotDirectory),
        ("file", (FOLLOW, directory, READ), ErrorCode::NotDirectory),
        ("sub", (FOLLOW, as_is(), WRITE), ErrorCode::IsDirectory),
        ("sub", (FOLLOW, OpenFlags::TRUNCATE, READ), ErrorCode::IsDirectory),
        ("file", (FOLLOW, exclusive, WRITE), ErrorCode::Exist),
        ("link", (FOLLOW, exclusive, WRITE), ErrorCode::Exist),
        ("new", (FOLLOW, CREATE | directory, WRITE), ErrorCode::Invalid),
        ("link", (stay(), as_is(), READ), ErrorCode::Loop),
        ("link", (stay(), CREATE, WRITE), ErrorCode::Loop),
        ("file", (FOLLOW, as_is(), READ | DescriptorFlags::FILE_INTEGRITY_SYNC), ErrorCode::Unsupported),
        ("", (FOLLOW, as_is(), READ), ErrorCode::NoEntry),
        ("/file", (FOLLOW, as_is(), READ), ErrorCode::NotPermitted),
        ("../data/file", (FOLLOW, as_is(), READ), ErrorCode::NotPermitted),
        ("fi\0le", (FOLLOW, as_is(), READ), ErrorCode::Invalid),
    ];
    for (path, how, code) in table {
        assert_eq!(guest.open_as(data, path, how.0, how.1, how.2), Err(code), "{path:?} {how:?}");
    }
    for path in ["file", "./file", "sub/../file", "sub//..//file", "link"] {
        let file = guest.open(data, path).unwrap();
        assert_eq!(guest.read(file).unwrap(), b"hello", "{path}");
    }
    let file = guest.open(data, "file").unwrap();
    assert_eq!(guest.open(file, "x"), Err(ErrorCode::NotDirectory));
    assert_eq!(guest.write(file, 1, 0), Err(ErrorCode::BadDescriptor), "it was opened to be read");
    assert_eq!(guest.read(data), Err(ErrorCode::IsDirectory));
    let written = guest.open_as(data, "file", FOLLOW, as_is(), WRITE).unwrap();
    assert_eq!(guest.read(written), Err(ErrorCode::BadDescriptor));
    assert_eq!(guest.ask(|view| view.advise(at(file), 0, 5, Advice::WillNeed)), Ok(()));
    assert_eq!(guest.ask(|view| view.advise(at(data), 0, 5, Advice::WillNeed)), Err(ErrorCode::BadDescriptor));
}

#[test]
fn looking_tells_kinds_links_sizes_and_times() {
    let (_folder, mut guest, data) = guest("write");
    let look = |guest: &mut Guest, flags, path: &str| {
        let path = path.to_owned();
        guest.ask(|view| view.stat_at(at(data), flags, path)).map(|stat| (stat.type_, stat.link_count, stat.size))
    };
    assert_eq!(look(&mut guest, FOLLOW, "link"), Ok((DescriptorType::RegularFile, 1, 5)));
    assert_eq!(look(&mut guest, stay(), "link"), Ok((DescriptorType::SymbolicLink, 1, 4)));
    assert_eq!(look(&mut guest, stay(), "sub").unwrap().0, DescriptorType::Directory);
    assert_eq!(look(&mut guest, stay(), ".").unwrap().0, DescriptorType::Directory);
    assert_eq!(guest.ask(|view| view.readlink_at(at(data), "link".to_owned())).unwrap(), "file");
    assert_eq!(guest.ask(|view| view.readlink_at(at(data), "file".to_owned())), Err(ErrorCode::Invalid));

    let moment = super::super::super::files::bindings::types::Datetime { seconds: 1_000_000, nanoseconds: 5 };
    let stays = NewTimestamp::NoChange;
    let set = NewTimestamp::Timestamp(moment);
    guest
        .ask(|view| view.set_times_at(at(data), FOLLOW, "link".to_owned(), NewTimes { accessed: stays, modified: set }))
        .unwrap();
    let stat = guest.ask(|view| view.stat_at(at(data), stay(), "file".to_owned())).unwrap();
    let modified = stat.data_modification_timestamp.unwrap();
    assert_eq!((modified.seconds, modified.nanoseconds), (1_000_000, 5));
    let never = super::super::super::files::bindings::types::Datetime { seconds: u64::MAX, nanoseconds: 2_000_000_000 };
    let file = guest.open(data, "file").unwrap();
    let refused = guest.ask(|view| view.set_times(at(file), NewTimestamp::Timestamp(never), NewTimestamp::NoChange));
    assert_eq!(refused, Err(ErrorCode::Overflow));

    let hash = |guest: &mut Guest, path: &str| {
        let path = path.to_owned();
        let hash = guest.ask(|view| view.metadata_hash_at(at(data), FOLLOW, path)).unwrap();
        (hash.lower, hash.upper)
    };
    assert_eq!(hash(&mut guest, "link"), hash(&mut guest, "file"));
    assert_ne!(hash(&mut guest, "sub"), hash(&mut guest, "file"));
    let again = guest.open(data, "link").unwrap();
    let mut view = guest.view();
    assert!(view.is_same_object(at(file), at(again)).unwrap());
    assert!(!view.is_same_object(at(file), at(data)).unwrap());
}

#[test]
fn a_slash_behind_a_link_follows_it() {
    let (folder, mut guest, data) = guest("write");
    for (target, name) in [("sub", "sub_link"), ("nowhere", "dead_link"), ("sub_link", "second_link")] {
        std::os::unix::fs::symlink(target, folder.path().join("data").join(name)).unwrap();
    }
    for flags in [stay(), FOLLOW] {
        let mut kind = |path: &str| {
            let path = path.to_owned();
            guest.ask(|view| view.stat_at(at(data), flags, path)).map(|stat| stat.type_)
        };
        assert_eq!(kind("sub/"), Ok(DescriptorType::Directory));
        assert_eq!(kind("sub_link/"), Ok(DescriptorType::Directory));
        assert_eq!(kind("second_link//"), Ok(DescriptorType::Directory));
        assert_eq!(kind("link/"), Err(ErrorCode::NotDirectory), "it leads to a file");
        assert_eq!(kind("dead_link/"), Err(ErrorCode::NoEntry));
    }
    let mut hash = |path: &str| {
        let path = path.to_owned();
        guest.ask(|view| view.metadata_hash_at(at(data), stay(), path)).map(|hash| (hash.lower, hash.upper))
    };
    assert_eq!(hash("sub_link/"), hash("sub"));
    assert_ne!(hash("sub_link"), hash("sub"));
    let sub = guest.open_as(data, "sub_link/", stay(), as_is(), READ).unwrap();
    assert_eq!(guest.list(sub).unwrap(), Vec::<String>::new());
    assert_eq!(guest.open_as(data, "sub_link", stay(), as_is(), READ), Err(ErrorCode::Loop));
    assert_eq!(guest.open_as(data, "link/", stay(), as_is(), READ), Err(ErrorCode::NotDirectory));
    assert_eq!(guest.ask(|view| view.readlink_at(at(data), "sub_link/".to_owned())), Err(ErrorCode::Invalid));
    let now = || NewTimes { accessed: NewTimestamp::Now, modified: NewTimestamp::Now };
    let mut times = |path: &str| {
        let path = path.to_owned();
        guest.ask(|view| view.set_times_at(at(data), stay(), path, now()))
    };
    assert_eq!(times("sub_link/"), Ok(()));
    assert_eq!(times("sub_link"), Err(ErrorCode::Unsupported));
}

#[tokio::test]
async fn syncing_waits_for_the_disk() {
    let (_folder, mut guest, data) = guest("write");
    let file = guest.create(data, "new").unwrap();
    guest.write(file, 10, 0).unwrap();
    let mut view = guest.view();
    for descriptor in [file, data] {
        view.sync(at(descriptor)).await.unwrap();
        view.sync_data(at(descriptor)).await.unwrap();
    }
}

#[tokio::test]
async fn streams_read_to_the_end_and_write_in_order() {
    let (_folder, mut guest, data) = guest("write");
    let file = guest.create(data, "big").unwrap();
    let mut writer = guest.writer(file, 0).unwrap();
    let bytes: Vec<u8> = (0..200_000_u32).map(|count| count as u8).collect();
    for piece in bytes.chunks(65_536) {
        writer.blocking_write_and_flush(piece.to_vec().into()).await.unwrap();
    }
    let mut reader = guest.reader(file, 10).unwrap();
    let mut read = Vec::new();
    loop {
        match reader.blocking_read(1 << 20).await {
            Ok(piece) => read.extend_from_slice(&piece),
            Err(error) => {
                assert!(matches!(error, wasmtime_wasi::p2::StreamError::Closed));
                break;
            }
        }
    }
    assert_eq!(read, bytes[10..]);
}

#[test]
fn one_call_has_only_so_much_open() {
    let (_folder, mut guest, data) = guest("read");
    let mut open = Vec::new();
    let refused = loop {
        match guest.open(data, "file") {
            Ok(file) => open.push(file),
            Err(code) => break code,
        }
    };
    assert_eq!((refused, open.len()), (ErrorCode::InsufficientMemory, 128));
    assert_eq!(guest.list(data), Err(ErrorCode::InsufficientMemory));
    guest.close(open.pop().unwrap());
    guest.open(data, "file").unwrap();
}

#[test]
fn a_listing_looks_at_so_many_names_at_once_and_shows_every_one_that_it_can() {
    use std::os::unix::ffi::OsStrExt as _;
    let (folder, mut guest, data) = guest("read");
    for number in 0..1_000 {
        let name = [&b"\xff"[..], number.to_string().as_bytes()].concat();
        std::fs::write(folder.path().join("data").join(std::ffi::OsStr::from_bytes(&name)), "").unwrap();
    }
    let listing = guest.ask(|view| view.read_directory(at(data))).unwrap().rep();
    let mut names = Vec::new();
    let mut more = 0;
    loop {
        match guest.ask(|view| view.step(&Resource::new_borrow(listing))).unwrap() {
            ListingStep::Entry(entry) => names.push(entry.name),
            ListingStep::More => more += 1,
            ListingStep::End => break,
        }
    }
    names.sort();
    assert_eq!(names, ["file", "link", "sub"]);
    assert!(more >= 10, "{more}");
}
