//! Rights that were given up, and parts of the kernel that nobody needs.
use serde_json::json;

use crate::row::End::Killed;
use crate::row::{Row, holds, only, row, sealed};

/// The attacks.
pub const ROWS: &[Row] = &[
    row("become root", |_| only("setuid", json!([0])), Killed),
    sealed("become root without any grant", |_| only("setuid", json!([0])), Killed),
    row("gain a capability", |_| only("capset", json!([{"words": [0x2008_0522]}, {"words": [-1, -1, -1]}])), Killed),
    row("outlive the host", |_| only("prctl", json!([1, 0, 0, 0, 0])), Killed),
    row("let others read it", |_| only("prctl", json!([4, 1, 0, 0, 0])), Killed),
    row("take back that it gains no rights", |_| only("prctl", json!([38, 0, 0, 0, 0])), Killed),
    row("add a filter", |_| only("seccomp", json!([1, 0, 0])), Killed),
    row("begin other rules of files", |_| only("landlock_create_ruleset", json!([0, 0, 1])), Killed),
    row("enter namespaces of the host", |_| only("setns", json!([0, 0])), Killed),
    row("make namespaces", |_| only("unshare", json!([0x1000_0000])), Killed),
    row("mount the machine's processes", |_| only("mount", json!(["proc", "/", "proc", 0, 0])), Killed),
    row("take a mount away", |_| only("umount2", json!(["/", 2])), Killed),
    row("change the root", |_| only("pivot_root", json!([".", "."])), Killed),
    row("take a tree of files along", |_| only("open_tree", json!([-100, "/", 1])), Killed),
    row("raise a limit", |_| only("setrlimit", json!([2, {"words": [-1, -1]}])), Killed),
    row("raise it by the other call", |_| only("prlimit64", json!([0, 2, {"words": [-1, -1]}, 0])), Killed),
    row("change the personality", |_| only("personality", json!([0x0040_0000])), Killed),
    row("load a program into the kernel", |_| only("bpf", json!([5, {"room": 128}, 128])), Killed),
    row("load a module", |_| only("init_module", json!(["x", 1, ""])), Killed),
    row("load a module from a file", |_| only("finit_module", json!([0, "", 0])), Killed),
    row("read the user's keys", |_| only("keyctl", json!([11, -3, {"room": 64}, 64])), Killed),
    row("add a key", |_| only("add_key", json!(["user", "x", "y", 1, -3])), Killed),
    row("ask for a key", |_| only("request_key", json!(["user", "x", 0, 0])), Killed),
    row("read the kernel's log", |_| only("syslog", json!([3, {"room": 4096}, 4096])), Killed),
    row("set the clock", |_| only("clock_settime", json!([0, {"words": [0, 0]}])), Killed),
    row("restart the machine", |_| only("reboot", json!([0, 0, 0, 0])), Killed),
    row("ask for the machine's name", |_| only("uname", json!([{"room": 512}])), Killed),
    row("type into a terminal", |_| only("ioctl", json!([2, 0x5412, "x"])), Killed),
    row("have signals sent by a descriptor", |_| only("fcntl", json!([0, 8, 1])), Killed),
    row("give work to the kernel past the filter", |_| only("io_uring_setup", json!([8, {"room": 128}])), Killed),
    row("handle faults of its own", |_| only("userfaultfd", json!([0])), Killed),
    row("make a pipe", |_| only("pipe2", json!([{"room": 8}, 0])), Killed),
    row("hand pages to a descriptor", |_| only("vmsplice", json!([0, 0, 0, 0])), Killed),
    row("copy between descriptors", |_| only("splice", json!([0, 0, 1, 0, 4096, 0])), Killed),
    row("have every disk written", |_| only("sync", json!([])), Killed),
    row("share memory by the old way", |_| only("shmget", json!([0, 4096, 0o1666])), Killed),
    row("keep memory in memory", |_| only("mlock", json!([0, 4096])), Killed),
];

#[test]
fn rights_that_were_given_up_stay_given_up() {
    holds(ROWS);
}
