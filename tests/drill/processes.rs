//! Other processes, and more of its own.
use serde_json::json;

use toolcell_tests::Command;

use crate::row::End::{Answers, Ended, Fails, Killed};
use crate::row::errors::{AGAIN, NOSYS, SRCH};
use crate::row::{Row, call, hold_without, holds, often, only, results, row, sealed};

/// `SIGABRT` and `SIGKILL`, and flags of `clone`.
const ABORT: i32 = 6;
const KILL: i32 = 9;
const CHILD: i32 = 17;
const THREAD: u32 = 0x007d_0f00;

/// The attacks.
pub const ROWS: &[Row] = &[
    row("start a program", |_| only("execve", json!(["/bin/sh", {"words": [0]}, {"words": [0]}])), Killed),
    sealed("start one without any grant", |_| only("execve", json!(["/bin/sh", 0, 0])), Killed),
    row("start the program that it is", |_| only("execveat", json!([0, "", 0, 0, 0x1000])), Killed),
    row("fork", |_| only("clone", json!([CHILD, 0, 0, 0, 0])), Killed),
    row("fork again and again", |_| json!([often("clone", json!([CHILD, 0, 0, 0, 0]), 10_000)]), Killed),
    row("fork by the newer call", |_| only("clone3", json!([{"room": 88}, 88])), Fails(&[NOSYS])),
    row(
        "start threads again and again",
        |_| json!([often("clone", json!([THREAD, 0, 0, 0, 0]), 10_000)]),
        Fails(&[AGAIN]),
    ),
    row("fork into new users", |_| only("clone", json!([0x1000_0000 | CHILD, 0, 0, 0, 0])), Killed),
    row("kill the host", |s| only("kill", json!([s.host_id(), KILL])), Killed),
    row("kill the first process", |_| only("kill", json!([1, KILL])), Killed),
    row("kill every process", |_| only("kill", json!([-1, KILL])), Killed),
    row(
        "kill a thread of the host as one of its own",
        |s| json!([call("getpid", json!([])), call("tgkill", json!([{"answer": 0}, s.host_id(), ABORT]))]),
        Fails(&[SRCH]),
    ),
    row("kill a thread of the host", |s| only("tgkill", json!([s.host_id(), s.host_id(), KILL])), Killed),
    row("kill by the number of a thread", |s| only("tkill", json!([s.host_id(), KILL])), Killed),
    row("queue a signal to the host", |s| only("rt_sigqueueinfo", json!([s.host_id(), KILL, {"room": 128}])), Killed),
    row("trace the host", |s| only("ptrace", json!([0x4206, s.host_id(), 0, 0])), Killed),
    row(
        "read the host by its number",
        |s| only("process_vm_readv", json!([s.host_id(), {"words": [{"room": 8}, 8]}, 1, {"words": [4096, 8]}, 1, 0])),
        Killed,
    ),
    row(
        "write to the host by its number",
        |s| only("process_vm_writev", json!([s.host_id(), {"words": ["x", 1]}, 1, {"words": [4096, 1]}, 1, 0])),
        Killed,
    ),
    row("hold the host", |s| only("pidfd_open", json!([s.host_id(), 0])), Killed),
    row("signal what it holds", |_| only("pidfd_send_signal", json!([0, KILL, 0, 0])), Killed),
    row("take a descriptor of another process", |_| only("pidfd_getfd", json!([0, 0, 0])), Killed),
    row("compare with the host", |s| only("kcmp", json!([s.host_id(), 0, 0, 0, 0])), Killed),
    row("read the host's limits", |s| only("prlimit64", json!([s.host_id(), 7, 0, {"room": 16}])), Killed),
    row("make the host slow", |s| only("setpriority", json!([0, s.host_id(), 19])), Killed),
    row("move the host to one core", |s| only("sched_setaffinity", json!([s.host_id(), 8, {"words": [1]}])), Killed),
    row("ask who started it", |_| only("getppid", json!([])), Killed),
    row("wait for a child", |_| only("wait4", json!([-1, 0, 0, 0])), Killed),
    row("count what the machine does", |_| only("perf_event_open", json!([{"room": 128}, 0, -1, -1, 0])), Killed),
    row("leave the group of the host", |_| only("setsid", json!([])), Killed),
    row(
        "ask for its own number",
        |_| only("getpid", json!([])),
        // Where the kernel gives no namespace of process ids, it is the one that the host knows.
        Answers(|site, answer| {
            let number = results(answer).and_then(|results| results.last().copied()?.ok());
            number.is_some_and(|number| number == 1 || site.has_started(number))
        }),
    ),
    row("end itself", |_| only("exit_group", json!([0])), Ended("")),
    row(
        "end itself by abort",
        |_| json!([call("getpid", json!([])), call("tgkill", json!([{"answer": 0}, {"answer": 0}, ABORT]))]),
        Ended("SIGABRT"),
    ),
    row(
        "end itself as if the system had ended it",
        |_| json!([call("getpid", json!([])), call("tgkill", json!([{"answer": 0}, {"answer": 0}, KILL]))]),
        Killed,
    ),
    row(
        "end itself by a fault",
        |_| json!([call("getpid", json!([])), {"peek": {"at": 8, "bytes": 1}}]),
        Ended("SIGSEGV"),
    ),
    row("never give the call back", |_| json!(["spin"]), Ended("it did not stop within its deadline")),
    row("wait without end", |_| only("ppoll", json!([0, 0, 0, 0, 0])), Ended("it did not stop within its deadline")),
];

#[test]
fn other_processes_are_not_there_and_none_is_started() {
    holds(ROWS);
}

/// Attacks on other processes where nothing is left but the namespace of process ids: it has none.
const ALONE: &[Row] = &[
    row("find the host by its number", |s| only("kill", json!([s.host_id(), 0])), Fails(&[SRCH])),
    row("kill the host alone", |s| only("kill", json!([s.host_id(), KILL])), Fails(&[SRCH])),
    row("kill everybody else", |_| only("kill", json!([-1, KILL])), Fails(&[SRCH])),
    row("trace it", |s| only("ptrace", json!([0x4206, s.host_id(), 0, 0])), Fails(&[SRCH])),
    row(
        "read it",
        |s| only("process_vm_readv", json!([s.host_id(), {"words": [{"room": 8}, 8]}, 1, {"words": [4096, 8]}, 1, 0])),
        Fails(&[SRCH]),
    ),
    row("hold it", |s| only("pidfd_open", json!([s.host_id(), 0])), Fails(&[SRCH])),
    // Some kernels are built without this call.
    row("compare with it", |s| only("kcmp", json!([s.host_id(), 1, 0, 0, 0])), Fails(&[SRCH, NOSYS])),
    row("read its limits", |s| only("prlimit64", json!([s.host_id(), 7, 0, {"room": 16}])), Fails(&[SRCH])),
    row("make it slow", |s| only("setpriority", json!([0, s.host_id(), 19])), Fails(&[SRCH])),
    row("move it to one core", |s| only("sched_setaffinity", json!([s.host_id(), 8, {"words": [1]}])), Fails(&[SRCH])),
    row(
        "learn who started it",
        |_| only("getppid", json!([])),
        Answers(|_, answer| results(answer).is_some_and(|results| results.last() == Some(&Ok(0)))),
    ),
];

#[test]
fn other_processes_have_no_number_in_its_namespace() {
    let walls = Command::toolcell(&["walls", "--json"]).run().json();
    let stands = |wall: &serde_json::Value| wall["wall"] == "pid-namespace" && wall["state"] == "stands";
    if !walls["walls"].as_array().unwrap().iter().any(stands) {
        eprintln!("not tried: this machine gives no namespace of process ids: {walls}");
        return;
    }
    hold_without("system-calls,landlock", ALONE, &[]);
}
