//! Files of a mount as resources: addresses, listing, reading, bounds and news of changes.
//!
//! Promise: a link shows no hidden file.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::mpsc::channel;
use std::time::Duration;

use toolcell_policy::{Source, parse};

use toolcell_mcp::ResourceNews;

use super::watch::FolderChanges;
use super::*;
use crate::files::Watch;

/// A folder `docs` in a temporary one, as a manifest with these further keys has it.
fn served(keys: &str) -> (tempfile::TempDir, Folder) {
    let base = tempfile::tempdir().unwrap();
    fs::create_dir(base.path().join("docs")).unwrap();
    let folder = opened(base.path(), keys);
    (base, folder)
}

fn opened(base: &Path, keys: &str) -> Folder {
    let text = format!(
        "version = 1\n[components.a]\nsource = 'a.wasm'\n[components.a.filesystem]\n'/docs' = {{ path = 'docs' }}\n\
         [components.a.resources]\n'file:///docs/{{+path}}' = {{ mount = '/docs'{keys} }}\n"
    );
    let manifest = parse(&Source { name: "m.toml", text: &text }).unwrap().manifest;
    let places = FolderPlaces { base: base.to_owned(), state: "docs/state".into() };
    Folder::open(&manifest.components()[0].resources()[0], &places).unwrap()
}

fn uris(folder: &Folder) -> Vec<String> {
    folder.entries(None, 100).into_iter().map(|entry| entry.uri).collect()
}

#[test]
fn an_address_stands_for_one_path_beneath_the_folder() {
    let (_base, folder) = served("");
    for (rest, path) in [
        ("a.md", Some("a.md")),
        ("a%20b/c.md", Some("a b/c.md")),
        ("[id]", Some("[id]")),
        ("%c3%a4", Some("ä")),
        ("a%3Fb%23c%25", Some("a?b#c%")),
        ("", None),
        ("/a", None),
        ("a//b", None),
        ("a/", None),
        (".", None),
        ("..", None),
        ("../a", None),
        ("a/../b", None),
        ("%2e%2e/a", None),
        ("%2E./a", None),
        ("a/%2e", None),
        (".git/config", None),
        ("a%2Fb", None),
        ("a%2fb", None),
        ("%252e%252e/a", Some("%2e%2e/a")),
        ("a%00b", None),
        ("a%0Ab", None),
        ("a?b", None),
        ("a#b", None),
        ("a%", None),
        ("a%zz", None),
        ("%ff", None),
        ("..%5c", None),
    ] {
        let found = folder.path_of(&format!("file:///docs/{rest}"));
        assert_eq!(found.as_deref(), path, "{rest}");
        if let Some(path) = path {
            assert_eq!(folder.path_of(&uri_of("file:///docs/", path)).as_deref(), Some(path), "{rest}");
        }
    }
    assert_eq!(folder.path_of("file:///other/a"), None);
    assert_eq!(folder.path_of(&format!("file:///docs/{}", "a/".repeat(DEPTH_MAX) + "a")), None);
    assert_eq!(folder.path_of(&format!("file:///docs/{}", "a".repeat(URI_BYTES_MAX))), None);
}

#[test]
fn regular_files_beneath_are_listed_and_read_and_nothing_else() {
    let base = tempfile::tempdir().unwrap();
    let docs = base.path().join("docs");
    fs::create_dir_all(docs.join("deep/er")).unwrap();
    fs::create_dir(docs.join(".git")).unwrap();
    fs::create_dir(docs.join("state")).unwrap();
    fs::write(docs.join("state/kept"), "of tools").unwrap();
    symlink("state", docs.join("deep/state")).unwrap();
    symlink("../state/kept", docs.join("deep/kept")).unwrap();
    fs::write(base.path().join("secret"), "outside").unwrap();
    for (name, text) in [("b.md", "b"), ("deep/er/c.json", "{}"), (".hidden", "x"), (".git/config", "x"), ("a b", "ab")]
    {
        fs::write(docs.join(name), text).unwrap();
    }
    fs::write(docs.join("raw"), b"a\0b").unwrap();
    symlink("b.md", docs.join("link")).unwrap();
    symlink("../secret", docs.join("out")).unwrap();
    symlink("/etc/passwd", docs.join("away")).unwrap();
    symlink("..", docs.join("up")).unwrap();
    symlink("deep", docs.join("folder")).unwrap();
    for (target, name) in [(".hidden", "shown"), ("shown", "shown2"), (".git/config", "config"), (".git", "git")] {
        symlink(target, docs.join(name)).unwrap();
    }
    symlink("../.hidden", docs.join("deep/shown")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, docs.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(docs.join("socket")).unwrap();
    let folder = opened(base.path(), "");
    let listed: Vec<String> =
        ["a%20b", "b.md", "deep/er/c.json", "link", "raw"].map(|path| format!("file:///docs/{path}")).into();
    assert_eq!(uris(&folder), listed);
    let text = |path: &str| folder.read(path).map(|file| (file.mime_type, file.content));
    for (path, mime_type, content) in [
        ("b.md", "text/markdown", Ok("b")),
        ("link", "text/plain", Ok("b")),
        ("deep/er/c.json", "application/json", Ok("{}")),
        ("folder/er/c.json", "application/json", Ok("{}")),
        ("a b", "text/plain", Ok("ab")),
        ("raw", "application/octet-stream", Err(b"a\0b".to_vec())),
    ] {
        assert_eq!(text(path), Ok((mime_type.to_owned(), content.map(str::to_owned))), "{path}");
    }
    for path in [
        "out",
        "away",
        "up/secret",
        "pipe",
        "socket",
        "deep",
        "none",
        "state/kept",
        "deep/kept",
        "/etc/passwd",
        "../secret",
        "shown",
        "shown2",
        "config",
        "git/config",
        "deep/shown",
    ] {
        assert_eq!(text(path), Err(ReadProblem::Missing), "{path}");
    }
}

#[test]
fn files_are_bounded_in_size_and_number() {
    let (base, _) = served("");
    for name in ["1", "2", "3"] {
        fs::write(base.path().join("docs").join(name), "x".repeat(8)).unwrap();
    }
    fs::write(base.path().join("docs/4"), "x".repeat(9)).unwrap();
    let folder = opened(base.path(), ", file_size = '8B', files = 3, mime_type = 'a/b'");
    assert_eq!(uris(&folder), ["1", "2", "3"].map(|name| format!("file:///docs/{name}")));
    assert_eq!(folder.entries(Some("file:///docs/1"), 1)[0].uri, "file:///docs/2");
    assert_eq!(folder.read("3").unwrap().mime_type, "a/b");
    assert_eq!(folder.read("4"), Err(ReadProblem::TooLarge(8)));
}

#[test]
fn changes_are_told_by_address_and_the_list_where_it_differs() {
    for watch in [Watch::Native, Watch::Poll] {
        let (base, folder) = served("");
        let docs = base.path().join("docs");
        let folder = Arc::new(folder);
        let (told, heard) = channel();
        let own = Arc::clone(&folder);
        let waits = Duration::from_secs(30);
        let changes = FolderChanges {
            folders: Box::new(move || vec![Arc::clone(&own)]),
            tell: Box::new(move |news| told.send(news).unwrap()),
        };
        let _watch = FolderWatch::start(watch, changes).unwrap();
        // The change is repeated until it is seen: what was there before the first poll does not
        // count as news.
        let expect = |change: &dyn Fn(), is_it: &dyn Fn(&ResourceNews) -> bool| {
            change();
            while !is_it(&heard.recv_timeout(waits).expect("no news")) {}
        };
        let has = |uri: &'static str| move |news: &ResourceNews| news.updated.contains_key(uri);
        fs::create_dir(docs.join("new")).unwrap();
        expect(&|| fs::write(docs.join("new/a"), "1").unwrap(), &|news| has("file:///docs/new/a")(news) && news.list);
        expect(&|| fs::write(docs.join("new/a"), "22").unwrap(), &|news| has("file:///docs/new/a")(news) && !news.list);
        expect(&|| fs::remove_file(docs.join("new/a")).unwrap(), &|news| has("file:///docs/new/a")(news) && news.list);
        assert_eq!(uris(&folder), [""; 0]);
    }
}

#[test]
fn reads_that_wait_are_bounded() {
    let (base, _) = served("");
    fs::write(base.path().join("docs/a"), "a").unwrap();
    let folder = Arc::new(opened(base.path(), ""));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let reads = FileReads::new(runtime.handle().clone());
    let read = || runtime.block_on(reads.read(&folder, "a".to_owned()));
    assert_eq!(read().unwrap().content, Ok("a".to_owned()));
    let held = reads.fill();
    assert_eq!(read(), Err(ReadProblem::Late), "it is answered at once");
    drop(held);
    assert_eq!(read().unwrap().content, Ok("a".to_owned()));
}
