//! Mounts: folders, single files, mounts inside others, and parts of the host that cannot be
//! mounted.
//!
//! Promise: a read-only mount is not written.
//! Promise: scratch space is the call's own.
use super::*;
use crate::wasi::files::mount::PATH_BYTES_MAX;

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn text(guest: &mut Guest, folder: u32, path: &str) -> Result<String, ErrorCode> {
    let file = guest.open(folder, path)?;
    let bytes = guest.read(file)?;
    guest.close(file);
    Ok(String::from_utf8(bytes).unwrap())
}

#[test]
fn the_longest_path_wins() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("data/a", "a"), ("data/out/hidden", "below"), ("data/sub/x", "x"), ("out/b", "b")]);
    std::os::unix::fs::symlink("out", folder.path().join("data/link")).unwrap();
    let table = r#"
        "/data" = { path = "data", access = "read" }
        "/data/out" = { path = "out", access = "write" }
    "#;
    let mut guest = Guest::with(folder.path(), table);
    assert_eq!(guest.roots(), ["/data", "/data/out"]);
    let data = guest.root("/data");
    assert_eq!(text(&mut guest, data, "a").unwrap(), "a");
    assert_eq!(text(&mut guest, data, "out/b").unwrap(), "b");
    assert_eq!(text(&mut guest, data, "sub/../out/./b").unwrap(), "b");
    assert_eq!(text(&mut guest, data, "out/hidden"), Err(ErrorCode::NoEntry));
    assert_eq!(text(&mut guest, data, "link/hidden"), Err(ErrorCode::Loop), "a link cannot lead around a mount");
    assert_eq!(guest.list(data).unwrap(), ["a", "link", "out", "sub"]);
    let sub = guest.open(data, "sub").unwrap();
    assert_eq!(text(&mut guest, sub, "x").unwrap(), "x");
    assert_eq!(text(&mut guest, sub, "../out/b"), Err(ErrorCode::NotPermitted), "a folder is left by no path");
    guest.create(data, "out/new").unwrap();
    assert!(folder.path().join("out/new").exists());
    assert_eq!(guest.create(data, "new"), Err(ErrorCode::ReadOnly));
    let out = guest.open(data, "out").unwrap();
    assert_eq!(guest.list(out).unwrap(), ["b", "new"]);
    guest.unlink(out, "new").unwrap();
}

#[test]
fn a_read_only_mount_inside_a_writable_one_is_not_written_around() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("work/deep/config/key", "kept"), ("work/file", "")]);
    let table = r#"
        "/work" = { path = "work", access = "write" }
        "/work/deep/config" = { path = "work/deep/config", access = "read" }
    "#;
    let mut guest = Guest::with(folder.path(), table);
    let work = guest.root("/work");
    let deep = guest.open(work, "deep").unwrap();
    let no = Err(ErrorCode::ReadOnly);
    assert_eq!(guest.open_as(work, "deep/config/key", FOLLOW, as_is(), WRITE), no);
    assert_eq!(guest.open_as(deep, "config/key", FOLLOW, as_is(), WRITE), no);
    assert_eq!(guest.unlink(deep, "config/key").map(|()| 0), no);
    assert_eq!(guest.rename(work, "deep", "moved"), Err(ErrorCode::Busy));
    assert_eq!(guest.rename(work, "file", "deep"), Err(ErrorCode::Busy));
    assert_eq!(guest.rename(work, "deep/config", "moved").map(|()| 0), no);
    assert_eq!(guest.ask(|view| view.remove_directory_at(at(work), "deep".to_owned())), Err(ErrorCode::Busy));
    guest.symlink(work, "deep", "link").unwrap();
    assert_eq!(guest.open_as(work, "link/config/key", FOLLOW, as_is(), WRITE), Err(ErrorCode::Loop));
    assert_eq!(guest.link(work, "deep/config/key", "hard").map(|()| 0), no);
    assert_eq!(std::fs::read_to_string(folder.path().join("work/deep/config/key")).unwrap(), "kept");
    guest.rename(work, "file", "deep/file").unwrap();
}

#[test]
fn a_single_file_is_mounted_without_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("etc/app.conf", "conf"), ("etc/secret", "secret"), ("log", "one")]);
    let table = r#"
        "/etc/app.conf" = { path = "etc/app.conf", access = "read" }
        "/log.txt" = { path = "log", access = "write", quota = "8B" }
    "#;
    let mut guest = Guest::with(folder.path(), table);
    assert_eq!(guest.roots(), ["/", "/etc"]);
    let etc = guest.root("/etc");
    assert_eq!(guest.list(etc).unwrap(), ["app.conf"]);
    assert_eq!(text(&mut guest, etc, "app.conf").unwrap(), "conf");
    for path in ["secret", "app.conf/../secret", "app.conf/", "app.conf/x", "../etc/secret", "..", "./../log"] {
        assert!(guest.open(etc, path).is_err(), "{path}");
    }
    assert_eq!(guest.create(etc, "new"), Err(ErrorCode::NoEntry));
    let root = guest.root("/");
    assert_eq!(guest.list(root).unwrap(), ["etc", "log.txt"]);
    assert_eq!(text(&mut guest, root, "etc/app.conf").unwrap(), "conf");
    let through = guest.open(root, "etc").unwrap();
    assert_eq!(guest.list(through).unwrap(), ["app.conf"]);
    assert!(guest.view().is_same_object(at(root), at(root)).unwrap());
    assert_eq!(guest.mkdir(root, "etc"), Err(ErrorCode::ReadOnly));

    let log = guest.open_as(root, "log.txt", FOLLOW, as_is(), READ | WRITE).unwrap();
    assert_eq!(guest.write(log, 5, 3), Ok(5));
    assert_eq!(guest.write(log, 1, 8), Err(ErrorCode::InsufficientSpace));
    assert_eq!(guest.unlink(root, "log.txt"), Err(ErrorCode::Busy));
    assert_eq!(guest.rename(root, "log.txt", "log.txt"), Err(ErrorCode::Busy));
    assert_eq!(std::fs::read(folder.path().join("log")).unwrap(), b"onexxxxx");
}

#[test]
fn a_mounted_file_that_becomes_a_link_or_a_pipe_is_not_opened() {
    const TABLE: &str = r#""/conf" = { path = "conf" }"#;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("conf", "conf"), ("secret", "secret")]);
    let opened = opened(folder.path(), TABLE).unwrap();
    let files = GrantedFiles::of([&*opened]);
    let read = || {
        let mut guest = Guest::of(&handed(&files, TABLE, None));
        let root = guest.root("/");
        text(&mut guest, root, "conf")
    };
    std::fs::write(folder.path().join("next"), "newer").unwrap();
    std::fs::rename(folder.path().join("next"), folder.path().join("conf")).unwrap();
    assert_eq!(read().unwrap(), "newer", "a file that is replaced is read anew");
    std::fs::remove_file(folder.path().join("conf")).unwrap();
    std::os::unix::fs::symlink("secret", folder.path().join("conf")).unwrap();
    assert_eq!(read(), Err(ErrorCode::NoEntry), "a link is not followed");
    std::fs::remove_file(folder.path().join("conf")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let pipe = folder.path().join("conf");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(read(), Err(ErrorCode::NoEntry), "a pipe is not opened");
}

#[test]
fn the_hosts_own_folders_are_shown_by_no_mount() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[(".toolcell/db", "others' state"), ("note", "note")]);
    let mut guest = Guest::with(folder.path(), r#""/project" = { path = ".", access = "read" }"#);
    let project = guest.root("/project");
    assert_eq!(guest.list(project).unwrap(), ["note"]);
    assert_eq!(text(&mut guest, project, ".toolcell/db"), Err(ErrorCode::NoEntry));
    assert_eq!(text(&mut guest, project, "./.toolcell//db"), Err(ErrorCode::NoEntry));
    let problem = |table: &str| prepare(folder.path(), table).map(|_| ()).unwrap_err().remove(0).message;
    assert!(problem(r#""/s" = { path = ".toolcell", access = "read" }"#).contains("the host's own"));
    assert!(problem(r#""/p" = { path = ".", access = "write" }"#).contains("holds the manifest"));
    let above = format!(r#""/p" = {{ path = {:?}, access = "write" }}"#, folder.path().parent().unwrap());
    assert!(problem(&above).contains("holds the manifest"));
    let temporary = format!(r#""/t" = {{ path = {:?}, access = "read" }}"#, std::env::temp_dir());
    let mut guest = Guest::with(folder.path(), &format!("{temporary}\n\"/tmp\" = {{ scratch = \"4KiB\" }}"));
    let tmp = guest.root("/tmp");
    let all = guest.root("/t");
    guest.create(tmp, "private").unwrap();
    let own = toolcell_sandbox::scratch_place();
    let own = own.file_name().unwrap().to_str().unwrap();
    assert!(!guest.list(all).unwrap().iter().any(|name| name == own));
    assert_eq!(guest.open(all, own), Err(ErrorCode::NoEntry));
}

#[test]
fn what_cannot_be_mounted_is_a_problem_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    write(folder.path(), &[("file", "")]);
    std::fs::hard_link(folder.path().join("file"), folder.path().join("second")).unwrap();
    let table = [
        (r#""/a" = { path = "missing" }"#, "there is no \"missing\""),
        (r#""/a" = { path = "pipe" }"#, "neither a folder nor a regular file"),
        (r#""/a" = { path = "socket", access = "write" }"#, "neither a folder nor a regular file"),
        (r#""/a" = { path = "/dev/null" }"#, "neither a folder nor a regular file"),
        (r#""/a" = { path = "file/below" }"#, "\"file/below\" cannot be read"),
        (r#""/a" = { path = "file", access = "write" }"#, "several names"),
    ];
    for (line, message) in table {
        let problems = prepare(folder.path(), line).map(|_| ()).unwrap_err();
        assert_eq!(problems.len(), 1, "{line}");
        assert!(problems[0].message.contains(message), "{line}: {}", problems[0].message);
        assert!(!problems[0].hint.is_empty() && problems[0].span.start > 0, "{line}");
    }
    let both = prepare(folder.path(), "\"/a\" = { path = \"x\" }\n\"/b\" = { path = \"y\" }").map(|_| ()).unwrap_err();
    assert_eq!(both.len(), 2, "all problems at once");
}

#[test]
fn a_missing_folder_is_made_where_the_manifest_says_so_and_a_link_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let mut guest = Guest::with(folder.path(), r#""/out" = { path = "new/out", access = "write", create = true }"#);
    let out = guest.root("/out");
    guest.create(out, "file").unwrap();
    assert!(folder.path().join("new/out/file").exists());
    std::os::unix::fs::symlink("new/out", folder.path().join("link")).unwrap();
    let prepared = prepare(folder.path(), r#""/in" = { path = "link" }"#).unwrap();
    assert!(prepared.opened.notes()[0].message.contains("is a link"));
    std::fs::remove_file(folder.path().join("link")).unwrap();
    let mut guest = Guest::of(&prepared.prepared);
    let root = guest.root("/in");
    assert_eq!(guest.list(root).unwrap(), ["file"]);
}

#[test]
fn mounts_are_apart() {
    let folder = tempfile::tempdir().unwrap();
    let table = r#"
        "/a" = { path = "a", access = "write", create = true }
        "/b" = { path = "b", access = "write", create = true }
        "/tmp" = { scratch = "4KiB" }
    "#;
    let mut guest = Guest::with(folder.path(), table);
    let a = guest.root("/a");
    let b = guest.root("/b");
    let tmp = guest.root("/tmp");
    guest.create(a, "file").unwrap();
    for other in [b, tmp] {
        let moved = guest.ask(|view| view.rename_at(at(a), "file".to_owned(), at(other), "file".to_owned()));
        assert_eq!(moved, Err(ErrorCode::CrossDevice));
        let linked = guest.ask(|view| view.link_at(&at(a), "file", &at(other), "file"));
        assert_eq!(linked, Err(ErrorCode::CrossDevice));
    }
}

/// The folders of a call are opened when they are used, so that mounts cost next to nothing until
/// then.
#[test]
fn preopens_open_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let table = r#"
        "/a" = { path = ".", access = "read" }
        "/tmp" = { scratch = "4KiB" }
    "#;
    let mut guest = Guest::with(folder.path(), table);
    for path in guest.roots() {
        let root = guest.root(&path);
        assert!(matches!(guest.table.get(&at(root)).unwrap(), Descriptor::Folder(folder) if folder.open.is_none()));
    }
}

/// Four mounts cost a call microseconds. The bound is far above the measured time, as other tests
/// run at the same time.
#[test]
fn mounts_cost_a_call_little() {
    let folder = tempfile::tempdir().unwrap();
    let table: String = (0..3).map(|number| format!("\"/m{number}\" = {{ path = \".\" }}\n")).collect();
    let prepared = prepare(folder.path(), &format!("{table}\"/tmp\" = {{ scratch = \"4KiB\" }}")).unwrap();
    let best = (0..1_000).map(|_| {
        let started = std::time::Instant::now();
        let mut guest = Guest::of(&prepared.prepared);
        assert_eq!(guest.roots().len(), 4);
        drop(guest);
        started.elapsed()
    });
    let best = best.min().unwrap();
    eprintln!("four mounts cost {best:?}");
    assert!(best < std::time::Duration::from_micros(50), "{best:?}");
}

#[test]
fn a_folder_opened_from_itself_again_and_again_remembers_a_bounded_path() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[("data/a", "a")]);
    let long = "L".repeat(200);
    for name in ["L", long.as_str()] {
        std::os::unix::fs::symlink(".", folder.path().join("data").join(name)).unwrap();
    }
    for (name, opens) in [("L", 10_000), (long.as_str(), 100)] {
        let mut guest = Guest::with(folder.path(), "\"/data\" = { path = \"data\" }");
        let mut inner = guest.root("/data");
        for _ in 0..opens {
            let opened = guest.open(inner, &format!("{name}/{name}")).unwrap();
            guest.close(inner);
            inner = opened;
        }
        assert_eq!(text(&mut guest, inner, "a").unwrap(), "a");
        let Descriptor::Folder(opened) = guest.table.get(&at(inner)).unwrap() else { panic!("it is a folder") };
        let bytes: usize = opened.at.iter().map(|name| size_of::<String>() + name.len()).sum();
        assert!(bytes <= PATH_BYTES_MAX && bytes + size_of::<String>() + name.len() > PATH_BYTES_MAX, "{bytes}");
        assert!(opened.at.iter().all(|shown| shown == name));
    }
}
