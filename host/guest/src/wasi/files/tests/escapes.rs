//! Path tricks: no path of a guest reads, writes, makes, examines or lists anything outside of its
//! mount.
//!
//! Promise: no path leads out of a mount.
//! Promise: only files and folders are opened.
//! Promise: other programs are not led out of a mount.
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::super::bindings::types::{DescriptorType, NewTimestamp};
use super::super::facts;
use super::*;
use toolcell_walls::folder::Facts;

/// The content of every file outside of the mount.
const SECRET: &str = "nobody may read this";

/// A mount next to folders that are not granted.
struct Ground {
    base: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let ground = Self { base: tempfile::tempdir().unwrap() };
        let outside = ground.outside();
        std::fs::create_dir_all(outside.join("folder")).unwrap();
        std::fs::create_dir(ground.manifest()).unwrap();
        std::fs::write(outside.join("secret"), SECRET).unwrap();
        std::fs::write(outside.join("folder/secret"), SECRET).unwrap();
        ground.fill();
        ground
    }

    fn outside(&self) -> PathBuf {
        self.base.path().join("outside")
    }

    /// The manifest's folder.
    fn manifest(&self) -> PathBuf {
        self.base.path().join("manifest")
    }

    fn inside(&self) -> PathBuf {
        self.base.path().join("inside")
    }

    /// Restores the mount's folder, with links of all kinds that the host put there.
    fn fill(&self) {
        let inside = self.inside();
        let _ = std::fs::remove_dir_all(&inside);
        std::fs::create_dir_all(inside.join("a/b/c")).unwrap();
        for file in ["file", "a/file", "a/b/c/file", "back\\slash", "..\\outside", "ünï", "\u{202e}txt", "..."] {
            std::fs::write(inside.join(file), "inside").unwrap();
        }
        let outside = self.outside();
        let links: &[(&Path, &str)] = &[
            (&outside, "absolute"),
            (&outside.join("secret"), "absolute-file"),
            (Path::new("../outside"), "relative"),
            (Path::new("../outside/secret"), "relative-file"),
            (Path::new("../../../outside/secret"), "a/b/deep"),
            (Path::new("relative"), "chain"),
            (Path::new("chain"), "longer-chain"),
            (Path::new(".."), "up"),
            (Path::new("a/../.."), "around"),
            (Path::new("loop-b"), "loop-a"),
            (Path::new("loop-a"), "loop-b"),
            (Path::new("self"), "self"),
            (Path::new("/"), "root"),
            (Path::new("/proc/self/root"), "proc-root"),
            (Path::new("/proc/self/cwd"), "proc-cwd"),
            (Path::new("/proc/self/fd"), "proc-fd"),
            (Path::new("/dev/zero"), "zero"),
            (Path::new("../outside/new"), "dangling-out"),
            (Path::new("a/b"), "in"),
            (Path::new("nothing"), "dangling"),
            (Path::new("."), "here"),
        ];
        for (target, link) in links {
            symlink(target, inside.join(link)).unwrap();
        }
    }

    /// Everything outside: names, kinds, contents, times.
    fn trace(&self) -> BTreeSet<String> {
        let mut trace = BTreeSet::new();
        let mut left = vec![self.base.path().to_owned(), self.outside()];
        while let Some(folder) = left.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let data = std::fs::symlink_metadata(&path).unwrap();
                if path.starts_with(self.outside()) {
                    let text = std::fs::read_to_string(&path).unwrap_or_default();
                    trace.insert(format!("{path:?} {:?} {:?} {text}", data.file_type(), data.modified().unwrap()));
                    if data.is_dir() && path != self.outside() {
                        left.push(path);
                    }
                } else {
                    trace.insert(format!("{path:?}"));
                }
            }
        }
        trace
    }

    /// The hashes that a guest would get for things outside.
    fn hashes_outside(&self) -> BTreeSet<u64> {
        let outside = self.outside();
        let own = [outside.clone(), outside.join("secret"), outside.join("folder"), outside.join("folder/secret")];
        let others = ["/", "/etc", "/etc/passwd", "/proc", "/proc/self", "/dev", "/dev/zero", "/dev/null", "/tmp"];
        own.into_iter()
            .chain(others.map(PathBuf::from))
            .chain([self.base.path().to_owned()])
            .filter_map(|path| std::fs::File::open(path).ok())
            .map(|file| facts::hash(&Facts::of(&file).unwrap().identity).lower)
            .collect()
    }
}

/// A few hundred paths.
fn tricks(ground: &Ground) -> Vec<String> {
    let base = ground.base.path().to_str().unwrap();
    let outside = format!("{base}/outside");
    let doors = [
        "..",
        "../..",
        "../../../../../../../../../../../..",
        "a/../..",
        "a/b/c/../../../..",
        "./..",
        ".//..",
        "..//..",
        "a/./../..",
        "a/b/../../..",
        "file/..",
        "file/../..",
        "missing/../..",
        "up",
        "up/..",
        "around",
        "relative/..",
        "absolute/..",
        "in/../../..",
        "in/../..",
        "here/..",
        "here/here/../..",
        "root",
        "root/.",
        "proc-root",
        "proc-cwd",
        "proc-fd",
        "proc-fd/0",
        "proc-fd/3",
        "proc-fd/4",
        "proc-fd/5",
        "longer-chain/..",
        "",
        "/",
        "//",
        "/..",
        "a/b/deep/..",
        "loop-a/..",
        "self/..",
    ];
    let goals =
        ["outside", "outside/secret", "outside/folder", "outside/folder/secret", "outside/new", "etc/passwd", "."];
    let mut tricks: Vec<String> = doors.iter().map(|door| (*door).to_owned()).collect();
    for door in doors {
        for goal in goals {
            tricks.push(format!("{door}/{goal}"));
        }
    }
    for end in ["", "/", "/.", "//", "/secret", "/folder/secret", "/new", "/../outside/secret"] {
        for link in ["absolute", "relative", "chain", "longer-chain", "dangling-out", "up/outside", "around/outside"] {
            tricks.push(format!("{link}{end}"));
        }
    }
    for file in ["absolute-file", "relative-file", "a/b/deep", "zero", "loop-a", "self", "dangling", "root/dev/zero"] {
        tricks.extend([file.to_owned(), format!("{file}/"), format!("./{file}"), format!("a/../{file}")]);
    }
    tricks.extend([
        outside.clone(),
        format!("{outside}/secret"),
        format!("/{outside}/secret"),
        format!("./{outside}/secret"),
        format!("a/{outside}/secret"),
        "/proc/self/fd/0".to_owned(),
        "/dev/zero".to_owned(),
        "/etc/passwd".to_owned(),
        "file:///etc/passwd".to_owned(),
        "~/secret".to_owned(),
        "~root".to_owned(),
        "$HOME/secret".to_owned(),
        "..\\outside\\secret".to_owned(),
        "..\\..\\outside".to_owned(),
        "a\\..\\..\\outside\\secret".to_owned(),
        "C:\\outside".to_owned(),
        "\\\\?\\C:\\".to_owned(),
        "%2e%2e/outside/secret".to_owned(),
        "..%2foutside%2fsecret".to_owned(),
        "\u{2025}/outside/secret".to_owned(),
        "\u{ff0e}\u{ff0e}/outside/secret".to_owned(),
        "\u{2024}\u{2024}\u{2215}outside".to_owned(),
        "../outside/secret\0".to_owned(),
        "file\0/../../outside/secret".to_owned(),
        "\0../outside/secret".to_owned(),
        "..\u{200b}/outside/secret".to_owned(),
        ".. /outside/secret".to_owned(),
        "../outside/secret ".to_owned(),
        " ../outside/secret".to_owned(),
        "...".to_owned(),
        "..../outside".to_owned(),
        "\u{202e}terces/edistuo/..".to_owned(),
        format!("{}../outside/secret", "a/../".repeat(500)),
        format!("{}../outside/secret", "./".repeat(1_500)),
        format!("{}outside/secret", "../".repeat(1_300)),
        format!("{}outside/secret", "here/".repeat(45)),
        format!("{}secret", "x".repeat(255)),
        "x".repeat(256),
        "x".repeat(5_000),
        format!("{}../outside/secret", "x/".repeat(100_000)),
        format!("a/{}", "é".repeat(2_000)),
    ]);
    tricks
}

/// Does everything that the interface can do with a path.
fn do_everything(guest: &mut Guest, root: u32, path: &str, outside: &BTreeSet<u64>) {
    let text = || path.to_owned();
    for follow in [FOLLOW, stay()] {
        if let Ok(hash) = guest.ask(|view| view.metadata_hash_at(at(root), follow, text())) {
            assert!(!outside.contains(&hash.lower), "looked at: {path:?}");
        }
        if let Ok(stat) = guest.ask(|view| view.stat_at(at(root), follow, text())) {
            let told = stat.type_ == DescriptorType::RegularFile && stat.size == SECRET.len() as u64;
            assert!(!told, "looked at: {path:?}");
        }
        for how in [
            (as_is(), READ),
            (as_is(), WRITE),
            (CREATE, READ | WRITE),
            (OpenFlags::TRUNCATE, WRITE),
            (CREATE | OpenFlags::EXCLUSIVE, WRITE),
        ] {
            let Ok(opened) = guest.open_as(root, path, follow, how.0, how.1) else { continue };
            let hash = guest.ask(|view| view.metadata_hash(at(opened))).unwrap();
            assert!(!outside.contains(&hash.lower), "opened: {path:?}");
            if let Ok(bytes) = guest.read(opened) {
                assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "read: {path:?}");
            }
            if let Ok(names) = guest.list(opened) {
                assert!(
                    !names.iter().any(|name| ["secret", "outside", "passwd", "etc"].contains(&name.as_str())),
                    "listed: {path:?}"
                );
            }
            let _ = guest.write(opened, 3, 0);
            let _ = guest.open(opened, "../../outside/secret").map(|_| panic!("opened from {path:?}"));
            guest.close(opened);
        }
        let now = || NewTimestamp::Now;
        let _ = guest
            .ask(|view| view.set_times_at(at(root), follow, text(), NewTimes { accessed: now(), modified: now() }));
    }
    if let Ok(target) = guest.ask(|view| view.readlink_at(at(root), text())) {
        assert!(!target.starts_with('/'), "read a link of the host: {path:?}");
    }
    let _ = guest.link(root, path, "linked");
    let _ = guest.link(root, "file", path);
    let _ = guest.mkdir(root, path);
    let _ = guest.symlink(root, "file", path);
    if guest.symlink(root, path, "pointer").is_ok() {
        assert!(!path.starts_with('/') && !path.split('/').any(|name| name == ".."), "points out: {path:?}");
    }
    let _ = guest.rename(root, path, "taken");
    let _ = guest.rename(root, "file", path);
    let _ = guest.rename(root, "a", path);
    let _ = guest.unlink(root, path);
    let _ = guest.ask(|view| view.remove_directory_at(at(root), text()));
}

#[test]
fn no_path_leads_out_of_a_mount() {
    let ground = Ground::new();
    let tricks = tricks(&ground);
    assert!(tricks.len() > 400, "{}", tricks.len());
    let outside = ground.hashes_outside();
    for access in ["read", "write"] {
        let table = format!(r#""/in" = {{ path = "../inside", access = "{access}" }}"#);
        for path in &tricks {
            if access == "write" {
                ground.fill();
            }
            let before = ground.trace();
            let mut guest = Guest::with(&ground.manifest(), &table);
            let root = guest.root("/in");
            do_everything(&mut guest, root, path, &outside);
            assert_eq!(ground.trace(), before, "something outside changed: {path:?}");
        }
    }
}

/// The escapes once more with paths resolved as text, because another mount lies inside.
#[test]
fn no_path_leads_out_of_a_mount_that_holds_another() {
    let ground = Ground::new();
    let outside = ground.hashes_outside();
    std::fs::create_dir(ground.base.path().join("other")).unwrap();
    let table = r#"
        "/in" = { path = "../inside", access = "write" }
        "/in/a/other" = { path = "../other", access = "read" }
        "/in/only" = { path = "../inside/a/file", access = "read" }
    "#;
    for path in tricks(&ground) {
        ground.fill();
        let before = ground.trace();
        let mut guest = Guest::with(&ground.manifest(), table);
        let root = guest.root("/in");
        do_everything(&mut guest, root, &path, &outside);
        let inner = guest.root("/in/a/other");
        do_everything(&mut guest, inner, &path, &outside);
        assert_eq!(ground.trace(), before, "something outside changed: {path:?}");
    }
}

#[test]
fn pipes_sockets_and_devices_are_neither_opened_nor_waited_for() {
    let base = tempfile::tempdir().unwrap();
    let inside = base.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, inside.join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(inside.join("socket")).unwrap();
    symlink("pipe", inside.join("to-pipe")).unwrap();
    let device = rustix::fs::mknodat(
        rustix::fs::CWD,
        inside.join("zero"),
        rustix::fs::FileType::CharacterDevice,
        mode,
        rustix::fs::makedev(1, 5),
    );
    let started = Instant::now();
    for access in ["read", "write"] {
        let mut guest = Guest::with(base.path(), &format!(r#""/in" = {{ path = "inside", access = "{access}" }}"#));
        let root = guest.root("/in");
        let mut names = vec!["pipe", "socket", "to-pipe"];
        names.extend(device.is_ok().then_some("zero"));
        for name in names {
            for (open, flags) in [
                (as_is(), READ),
                (as_is(), WRITE),
                (as_is(), READ | WRITE),
                (OpenFlags::TRUNCATE, WRITE),
                (CREATE, WRITE),
            ] {
                let expected = if access == "read" && (flags.contains(WRITE)) {
                    ErrorCode::ReadOnly
                } else {
                    ErrorCode::NotPermitted
                };
                assert_eq!(guest.open_as(root, name, FOLLOW, open, flags), Err(expected), "{name} {flags:?}");
            }
        }
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_guest_makes_no_link_that_leads_out() {
    let ground = Ground::new();
    let mut guest = Guest::with(&ground.manifest(), r#""/in" = { path = "../inside", access = "write" }"#);
    let root = guest.root("/in");
    for target in ["/etc/passwd", "/", "..", "../x", "a/..", "a/../..", "./..", "..//", "a/b/../file"] {
        assert_eq!(guest.symlink(root, target, "new"), Err(ErrorCode::NotPermitted), "{target}");
    }
    for target in ["file", "a/b", "./file", "...", "a..", "missing"] {
        guest.symlink(root, target, "new").unwrap();
        guest.unlink(root, "new").unwrap();
    }
    assert_eq!(guest.link(root, "relative-file", "new"), Err(ErrorCode::NotPermitted), "a link is not a file");
    assert_eq!(guest.link(root, "a", "new"), Err(ErrorCode::NotPermitted));
}
