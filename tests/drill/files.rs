//! Files of the host, of the machine and of other components.
use serde_json::{Value, json};

use crate::row::End::{AllFailFrom, Answers, Ended, Fails, Fills, Killed};
use crate::row::errors::{ACCES, BADF, FAULT, INVAL, LOOP, NODEV, NOENT, NOTDIR, PERM, ROFS, SPIPE, XDEV};
use crate::row::{
    CREATE, HERE, NO_PATH, Row, answers, call, data, hold_without, holds, of_own, only, open, read, row, sealed,
};
use crate::site::Site;

/// `O_RDWR`, `O_DIRECTORY`, `O_PATH`, `O_TMPFILE`.
const READ_WRITE: u32 = 0o2;
const DIRECTORY: u32 = 0o200_000;
const PATH: u32 = 0o10_000_000;
const TEMPORARY: u32 = 0o20_200_000;

/// Descriptors that are tried: more than a process of this manifest has.
const DESCRIPTORS: std::ops::Range<u32> = 0..40;

/// Its standard error, a pipe to the host.
const ERRORS: u32 = 2;

/// The steps for each descriptor that a process might have.
fn each(step: impl Fn(u32) -> Value) -> Value {
    DESCRIPTORS.map(step).collect()
}

/// A component whose processes write for another one: to a folder, and to scratch space. The host
/// counts every ten seconds while none has a call, so its own calls have longer than that.
const WRITES: &str = "limits.deadline = \"1m\"\nwall = \"both\"\n\
    [components.writes]\nsource = \"components/reach_files.wasm\"\nprefix = \"writes_\"\nwall = \"both\"\n\
    [components.writes.filesystem]\n\"/out\" = { path = \"out\", access = \"write\", quota = \"64MiB\" }\n";
const SCRATCH: &str = "limits.deadline = \"1m\"\nwall = \"both\"\n\
    [components.writes]\nsource = \"components/reach_files.wasm\"\nprefix = \"writes_\"\nwall = \"both\"\n\
    [components.writes.filesystem]\n\"/tmp\" = { scratch = \"64MiB\" }\n";

/// Files as long as a quota, in every folder that a process might hold.
fn fill_folders() -> Value {
    let names = 0..8;
    let bytes = 64 << 20;
    let files = DESCRIPTORS.flat_map(|fd| names.clone().map(move |name| (fd, format!("fill-{name}"))));
    let steps = files.enumerate().flat_map(|(at, (fd, name))| {
        let makes = call("openat2", json!([fd, name, {"words": [CREATE | READ_WRITE, 0o600, 0]}, 24]));
        let of_file = json!({"answer": at * 3});
        [makes, call("ftruncate", json!([of_file, bytes])), call("close", json!([of_file]))]
    });
    steps.chain([json!("spin")]).collect()
}

fn of_host(site: &Site, name: &str) -> Value {
    read(&format!("/proc/{}/{name}", site.host_id()))
}

/// The attacks.
pub const ROWS: &[Row] = &[
    row("read the manifest", |s| read(&s.path("toolcell.toml")), NO_PATH),
    sealed("read it without any grant", |s| read(&s.path("toolcell.toml")), NO_PATH),
    row("read the manifest by the old call", |s| only("openat", json!([HERE, s.path("toolcell.toml"), 0])), NO_PATH),
    row("read the audit", |s| read(&s.path("audit.jsonl")), NO_PATH),
    row("write to the audit", |s| json!([open(&s.path("audit.jsonl"), READ_WRITE)]), NO_PATH),
    row("read tokens", |s| read(&s.path("tokens.jsonl")), NO_PATH),
    row("read a key of ssh", |s| read(&s.path("home/.ssh/id_ed25519")), NO_PATH),
    row("read what another component keeps", |s| read(&s.state()), NO_PATH),
    row("read the mount of another component", |s| read(&s.path("data/file")), NO_PATH),
    row("read the code of another component", |s| read(&s.path("components/good.wasm")), NO_PATH),
    row("replace that code", |s| json!([open(&s.path("components/good.wasm"), CREATE | READ_WRITE)]), NO_PATH),
    row("read the machine's passwords", |_| read("/etc/shadow"), NO_PATH),
    row("read the machine's memory", |_| read("/dev/mem"), NO_PATH),
    row("read the host's environment", |s| of_host(s, "environ"), NO_PATH),
    row("read the host's memory", |s| of_host(s, "mem"), NO_PATH),
    row("read where that lies", |s| of_host(s, "maps"), NO_PATH),
    row("open the host's descriptors", |s| of_host(s, "fd/0"), NO_PATH),
    row("read its own memory as a file", |_| read("/proc/self/mem"), NO_PATH),
    row("read the program", |_| read("/proc/self/exe"), NO_PATH),
    row("go through the host's root", |s| read(&format!("/proc/{}/root/etc/passwd", s.host_id())), NO_PATH),
    row("list the root folder", |_| json!([open("/", DIRECTORY)]), Fails(&[ACCES])),
    row("list its descriptors", |_| json!([open("/proc/self/fd", DIRECTORY)]), Fails(&[ACCES])),
    row(
        "list the root by a handle",
        |_| json!([open("/", PATH), call("getdents64", json!([{"answer": 0}, {"room": 4096}, 4096]))]),
        Fails(&[BADF]),
    ),
    row(
        "go up from there",
        |_| {
            let up = json!([{"answer": 0}, "../../../../etc/passwd", {"words": [0, 0, 0]}, 24]);
            json!([open("/", PATH), call("openat2", up)])
        },
        Fails(&[NOENT, ACCES]),
    ),
    row(
        "go up from each descriptor",
        |_| each(|fd| call("openat2", json!([fd, "../../../../../../etc/passwd", {"words": [0, 0, 0]}, 24]))),
        AllFailFrom(0, &[NOTDIR, BADF, NOENT, ACCES]),
    ),
    row(
        "open the file of each descriptor to write",
        |_| DESCRIPTORS.filter(|fd| *fd != ERRORS).map(|fd| open(&format!("/proc/self/fd/{fd}"), READ_WRITE)).collect(),
        AllFailFrom(0, &[ACCES, NOENT, NODEV, PERM, XDEV, LOOP, 6]),
    ),
    row(
        "write over the code that it runs",
        |_| each(|fd| call("pwrite64", json!([fd + 3, "overwritten", 11, 0]))),
        AllFailFrom(0, &[BADF, SPIPE, INVAL, PERM, ACCES]),
    ),
    row(
        "make that code shorter",
        |_| each(|fd| call("ftruncate", json!([fd + 3, 0]))),
        AllFailFrom(0, &[BADF, INVAL, PERM]),
    ),
    row(
        "learn where its files lie",
        |_| each(|fd| call("readlinkat", json!([HERE, format!("/proc/self/fd/{fd}"), {"room": 256}, 256]))),
        Answers(|site, answer| {
            let folder = site.host.folder().path().to_str().unwrap().to_owned();
            !answer.is_error() && !answer.everything().contains(&folder)
        }),
    ),
    row("create a file", |_| json!([open("/x", CREATE | READ_WRITE)]), Fails(&[ROFS, ACCES])),
    row("create one next to the manifest", |s| json!([open(&s.path("x"), CREATE | READ_WRITE)]), NO_PATH),
    row("create one without a name", |_| json!([open("/", TEMPORARY | READ_WRITE)]), Fails(&[ROFS, ACCES, 95])),
    row("make a folder", |_| only("mkdirat", json!([HERE, "/x", 0o777])), Fails(&[ROFS, ACCES])),
    row(
        "make a link to a secret",
        |s| only("symlinkat", json!([s.path("tokens.jsonl"), HERE, "/x"])),
        Fails(&[ROFS, ACCES]),
    ),
    row(
        "give a secret another name",
        |s| only("linkat", json!([HERE, s.path("tokens.jsonl"), HERE, "/x", 0])),
        Fails(&[NOENT, ACCES, XDEV, ROFS]),
    ),
    row(
        "move the audit away",
        |s| only("renameat2", json!([HERE, s.path("audit.jsonl"), HERE, s.path("away"), 0])),
        Fails(&[NOENT, ACCES, XDEV, ROFS]),
    ),
    row(
        "remove the audit",
        |s| only("unlinkat", json!([HERE, s.path("audit.jsonl"), 0])),
        Fails(&[NOENT, ACCES, ROFS]),
    ),
    row("say that the audit is old", |s| only("utimensat", json!([HERE, s.path("audit.jsonl"), 0, 0])), Killed),
    row(
        "look for the audit",
        |s| only("newfstatat", json!([HERE, s.path("audit.jsonl"), {"room": 256}, 0])),
        Fails(&[NOENT, ACCES]),
    ),
    row("empty the audit", |s| only("truncate", json!([s.path("audit.jsonl"), 0])), Killed),
    row(
        "name a file for later",
        |_| only("name_to_handle_at", json!([HERE, "/", {"room": 256}, {"room": 8}, 0])),
        Killed,
    ),
    row("open a file by such a name", |_| only("open_by_handle_at", json!([0, {"room": 256}, 0])), Killed),
    row("make a file of memory", |_| only("memfd_create", json!(["x", 0])), Killed),
    row("watch the folder", |_| only("inotify_init1", json!([0])), Killed),
    row("change the working folder", |s| only("chdir", json!([s.path("")])), Killed),
    row("change rights of the manifest", |s| only("fchmodat", json!([HERE, s.path("toolcell.toml"), 0o777])), Killed),
    row("change its owner", |s| only("fchownat", json!([HERE, s.path("toolcell.toml"), 0, 0, 0])), Killed),
    row("fill the disk", |_| each(|fd| call("fallocate", json!([fd, 0, 0, 1_i64 << 40]))), Killed),
    of_own("fill a folder with many files", WRITES, |_| fill_folders(), Fills("grew by more than its quota", "out")),
    of_own("fill scratch space with them", SCRATCH, |_| fill_folders(), Ended("grew by more than its quota")),
    row("read its own environment", |_| read("/proc/self/environ"), NO_PATH),
    row(
        "read what lies at the kernel's addresses",
        |_| json!([call("write", json!([1, -4096_i64, 16]))]),
        Answers(|_, answer| {
            // Output goes nowhere, so nothing is read for it; a copy by the kernel would fault.
            data(answer).is_empty() && answers(answer).iter().all(|it| it["error"] == FAULT || it["answer"].is_i64())
        }),
    ),
];

#[test]
fn files_of_others_stay_out_of_reach() {
    holds(ROWS);
}

/// A container whose own filter refuses namespaces.
const CONTAINER: &str = "user-namespace,mount-namespace,network-namespace,ipc-namespace,pid-namespace";

#[test]
fn files_stay_out_of_reach_in_a_container_without_namespaces() {
    // Landlock checks who opens a file, not who looks at it.
    hold_without(CONTAINER, ROWS, &["look for the audit"]);
}

#[test]
fn files_stay_out_of_reach_on_a_kernel_without_landlock() {
    // The root folder holds the process's own descriptors and nothing else: code, which is sealed.
    let own = ["list the root folder", "list its descriptors", "open the file of each descriptor to write"];
    hold_without("landlock", ROWS, &own);
}
