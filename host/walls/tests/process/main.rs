//! Processes started, killed and reaped.
//!
//! The other process is this test program again: it runs the ignored test `other_process`, which
//! does as the variable `ROLE` says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod other;

use std::{fs, os::fd::OwnedFd, path::Path, time::Duration};

use toolcell_walls::{
    link::{self, LinkError, Receiver, Sender},
    process::{Command, LAST_WORDS_BYTES_MAX, Process, Program, Starter, Threads},
};

/// Fails a test that would hang.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("nothing hangs")
}

fn command(role: &str) -> Command {
    Command::this_program("toolcell-test")
        .expect("this program")
        .argument("--exact")
        .argument("other::other_process")
        .argument("--ignored")
        .argument("--nocapture")
        .variable("ROLE", role)
}

async fn start(starter: &Starter, role: &str) -> (Process, Sender, Receiver) {
    let (process, link) = starter.start(command(role)).await.expect("a process");
    let (sender, receiver) = link::open(link).expect("a link");
    (process, sender, receiver)
}

/// The first frame of the other process.
async fn first_word(receiver: &mut Receiver) -> String {
    let frame = soon(receiver.receive()).await.expect("a frame");
    String::from_utf8(frame.bytes).expect("a text")
}

fn is_a_process(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn frames_go_to_a_process_and_back() {
    let starter = Starter::new().expect("a thread");
    let (process, sender, mut receiver) = start(&starter, "echo").await;
    for length in [0, 1, 100, 1 << 20] {
        let bytes = vec![8; length];
        sender.send(&bytes, &[]).expect("room");
        assert!(soon(receiver.receive()).await.expect("a frame").bytes == bytes);
    }
    drop((sender, receiver));
    let end = soon(process.ended()).await;
    assert_eq!((end.status.and_then(|status| status.code()), end.signal()), (Some(0), None));
}

#[tokio::test]
async fn a_process_has_the_link_and_the_named_environment_only() {
    let starter = Starter::new().expect("a thread");
    let held: Vec<OwnedFd> = (0..8).map(|_| link::pair().expect("a pair").0).collect();
    let other = start(&starter, "echo").await;
    let (_process, _sender, mut receiver) = start(&starter, "inventory").await;
    let inventory = first_word(&mut receiver).await;
    drop((held, other));
    let inherited = inherited_fds();
    let foreign = |line: &&str| {
        // Where the machine refuses a namespace, the process learns why.
        if line.starts_with("TOOLCELL_PROCESS_IDS_REFUSED=") {
            return true;
        }
        let number = line.strip_prefix("fd ").and_then(|line| line.split(' ').next());
        number.is_some_and(|number| inherited.iter().any(|fd| fd == number))
    };
    let mut lines: Vec<_> = inventory.lines().filter(|line| !foreign(line)).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["ROLE=inventory", "fd 0 socket", "fd 1 null", "fd 2 pipe", "folder /"]);
}

/// Descriptors that anyone who started this program left open for every program after it. None is
/// of this program's own making, and closing them is up to the walls that a process puts around
/// itself.
fn inherited_fds() -> Vec<String> {
    const CLOSED_ON_EXEC: u32 = 0o2_000_000;
    let infos = fs::read_dir("/proc/self/fdinfo").expect("a list of descriptors").flatten();
    infos
        .filter_map(|entry| {
            let info = fs::read_to_string(entry.path()).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
            let number = entry.file_name().into_string().ok()?;
            let standard = ["0", "1", "2"].contains(&number.as_str());
            (flags & CLOSED_ON_EXEC == 0 && !standard).then_some(number)
        })
        .collect()
}

#[tokio::test]
async fn a_process_killed_while_frames_are_under_way_ends_the_link() {
    let starter = Starter::new().expect("a thread");
    let (process, sender, mut receiver) = start(&starter, "echo").await;
    for _ in 0..1000 {
        sender.send(&[1; 1000], &[]).expect("room");
    }
    assert_eq!(first_word(&mut receiver).await.len(), 1000);
    process.kill();
    let reason = loop {
        if let Err(reason) = soon(receiver.receive()).await {
            break reason;
        }
    };
    assert!(matches!(reason, LinkError::Closed | LinkError::CutShort), "{reason}");
    assert!(sender.send(b"", &[]).is_err());
    let end = soon(process.ended()).await;
    assert_eq!(end.signal(), Some(9));
    assert_eq!(soon(process.ended()).await, end, "the end stays the same");
    assert_eq!(process.end(), Some(&end));
    assert!(!is_a_process(process.pid()));
    assert_eq!(process.memory(), None);
    assert_eq!(process.waited(), None);
    process.kill();
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed() {
    let starter = Starter::new().expect("a thread");
    let shell = Command::program("/bin/sh")
        .argument("-c")
        .argument("trap '' TERM; kill -TERM $$; echo still here >&2; read line");
    let (process, _link) = starter.start(shell).await.expect("a process");
    process.kill();
    assert_eq!(soon(process.ended()).await.signal(), Some(9));
}

#[tokio::test]
async fn a_crash_leaves_its_signal_and_its_last_words() {
    let starter = Starter::new().expect("a thread");
    let (process, _sender, mut receiver) = start(&starter, "abort").await;
    assert_eq!(soon(receiver.receive()).await.err(), Some(LinkError::Closed));
    let end = soon(process.ended()).await;
    assert_eq!(end.signal(), Some(6));
    assert!(end.last_words.contains("the last words"), "{}", end.last_words);
    assert!(end.to_string().contains("SIGABRT"), "{end}");
}

#[tokio::test]
async fn a_process_has_ids_of_its_own_or_those_of_its_host() {
    let starter = Starter::new().expect("a thread");
    let (process, link) = starter.start(command("ids").shares_process_ids()).await.expect("a process");
    let (_sender, mut receiver) = link::open(link).expect("a link");
    let shared = format!("{} {}", process.pid(), std::process::id());
    assert_eq!(first_word(&mut receiver).await, shared);
    let (process, _sender, mut receiver) = start(&starter, "ids").await;
    let own = first_word(&mut receiver).await;
    let shared = format!("{} {}", process.pid(), std::process::id());
    assert!(own == "1 0" || own == shared, "{own}");
    assert!(is_a_process(process.pid()));
}

#[tokio::test]
async fn the_last_frame_of_a_process_that_crashes_arrives() {
    let starter = Starter::new().expect("a thread");
    for _ in 0..20 {
        let (_process, _sender, mut receiver) = start(&starter, "last").await;
        assert_eq!(first_word(&mut receiver).await, "last");
        assert_eq!(soon(receiver.receive()).await.err(), Some(LinkError::Closed));
    }
}

#[tokio::test]
async fn only_the_end_of_what_a_process_writes_is_kept() {
    let starter = Starter::new().expect("a thread");
    let (process, _sender, _receiver) = start(&starter, "write").await;
    let end = soon(process.ended()).await;
    assert_eq!(end.status.and_then(|status| status.code()), Some(3));
    assert_eq!(end.last_words.len(), LAST_WORDS_BYTES_MAX);
    assert!(end.last_words.ends_with("the end"), "{}", end.last_words);
}

#[tokio::test]
async fn a_process_that_writes_without_end_is_killed_like_any_other() {
    let starter = Starter::new().expect("a thread");
    let (process, _sender, mut receiver) = start(&starter, "flood").await;
    assert_eq!(first_word(&mut receiver).await, "flooding");
    let (other, sender, mut echoed) = start(&starter, "echo").await;
    sender.send(b"beside", &[]).expect("room");
    assert_eq!(first_word(&mut echoed).await, "beside");
    process.kill();
    assert_eq!(soon(process.ended()).await.signal(), Some(9));
    drop(other);
}

#[tokio::test]
async fn memory_grows_with_what_a_process_takes() {
    let starter = Starter::new().expect("a thread");
    let (process, sender, mut receiver) = start(&starter, "grow").await;
    assert_eq!(first_word(&mut receiver).await, "small");
    let before = process.memory().expect("the system says");
    let waited = process.waited().expect("the system says");
    sender.send(b"grow", &[]).expect("room");
    assert_eq!(first_word(&mut receiver).await, "large");
    let after = process.memory().expect("the system says");
    assert!(after.own >= before.own + (64 << 20), "{before:?} {after:?}");
    assert!(after.resident >= after.own, "{after:?}");
    assert!(process.waited().expect("the system says") >= waited);
}

#[tokio::test]
async fn the_kernel_ends_a_process_before_its_host_where_memory_runs_out() {
    let starter = Starter::new().expect("a thread");
    let (beside, _link) = starter.start(command("echo").shares_process_ids()).await.expect("a process");
    let (own, _sender, _receiver) = start(&starter, "echo").await;
    for process in [beside, own] {
        let score = fs::read_to_string(format!("/proc/{}/oom_score_adj", process.pid())).expect("a score");
        assert_eq!(score.trim(), "1000");
    }
}

#[tokio::test]
async fn of_processes_that_take_too_much_together_the_largest_is_ended() {
    const BYTES_MAX: u64 = 256 << 20;
    let starter = Starter::bounded(BYTES_MAX).expect("a thread");
    let (largest, largest_sender, mut largest_receiver) = start(&starter, "take").await;
    let (other, sender, mut receiver) = start(&starter, "take").await;
    assert_eq!([first_word(&mut largest_receiver).await, first_word(&mut receiver).await], ["ready", "ready"]);
    largest_sender.send(b"140", &[]).expect("room");
    assert_eq!(first_word(&mut largest_receiver).await, "taken");
    sender.send(b"20", &[]).expect("room");
    assert_eq!(first_word(&mut receiver).await, "taken");
    assert!([&largest, &other].iter().all(|process| process.end().is_none()), "together they fit");
    sender.send(b"110", &[]).expect("room");
    let end = soon(largest.ended()).await;
    assert_eq!((end.signal(), end.made_room), (Some(9), Some(BYTES_MAX)));
    assert!(end.to_string().contains("together took more memory than 256 MiB"), "{end}");
    assert_eq!(first_word(&mut receiver).await, "taken", "the other lives");
    // So it does until files that it fills take it past the bound alone.
    other.holds_beside(BYTES_MAX);
    assert_eq!(soon(other.ended()).await.made_room, Some(BYTES_MAX));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error() {
    let starter = Starter::new().expect("a thread");
    let missing = starter.start(Command::program("/nonexistent/program")).await;
    assert_eq!(missing.err().map(|error| error.kind()), Some(std::io::ErrorKind::NotFound));
}

#[tokio::test]
async fn the_starter_takes_its_processes_along() {
    let starter = Starter::new().expect("a thread");
    let (first, ..) = start(&starter, "echo").await;
    let (second, _sender, _receiver) = start(&starter, "flood").await;
    drop(starter);
    for process in [first, second] {
        assert!(process.end().is_some(), "it is reaped");
        assert!(!is_a_process(process.pid()));
    }
}

/// A thread instead of a process, which sends back what it gets.
fn echoing() -> Program {
    Program::Thread(Threads::new(|socket| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (sender, mut receiver) = link::join(socket).await.map_err(|error| error.to_string())?;
            while let Ok(frame) = receiver.receive().await {
                match frame.bytes.as_slice() {
                    b"end" => return Err("it was told to".to_owned()),
                    b"panic" => panic!("on purpose"),
                    bytes => sender.send(bytes, &[]).expect("room"),
                }
            }
            Ok(())
        })
    }))
}

#[tokio::test]
async fn a_thread_serves_a_link_as_a_process_does_and_ends_with_it() {
    let starter = Starter::new().expect("a thread");
    for (last, reason) in [(&b"end"[..], "it was told to"), (b"panic", "it panicked")] {
        let (thread, socket) = starter.start(echoing()).await.expect("a thread");
        assert_eq!((thread.pid(), thread.memory(), thread.end().is_none()), (std::process::id(), None, true));
        let (sender, mut receiver) = link::open(socket).expect("a link");
        sender.send(b"word", &[]).expect("room");
        assert_eq!(first_word(&mut receiver).await, "word");
        sender.send(last, &[]).expect("room");
        let end = soon(thread.ended()).await;
        assert_eq!((end.to_string().as_str(), end.last_words.as_str()), ("its thread ended", reason));
        assert!(!end.is_from_outside());
    }
    // One that is killed sees its link closed.
    let (thread, socket) = starter.start(echoing()).await.expect("a thread");
    let (_sender, mut receiver) = link::open(socket).expect("a link");
    thread.kill();
    assert_eq!(soon(thread.ended()).await.last_words, "");
    assert!(soon(receiver.receive()).await.is_err());
}

#[tokio::test]
async fn threads_that_were_told_to_end_and_compute_on_are_bounded() {
    let starter = Starter::new().expect("a thread");
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let stuck = Program::Thread(Threads::new(move |_| {
        // Until it is released, it looks at no link.
        let _ = released.lock().expect("no panic").recv();
        Ok(())
    }));
    for _ in 0..4 {
        starter.start(stuck.clone()).await.expect("a thread").0.kill();
    }
    let refused = soon(async {
        loop {
            match starter.start(stuck.clone()).await {
                Ok(more) => more.0.kill(),
                Err(refused) => return refused.to_string(),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert!(refused.ends_with("threads that were asked to end still run"), "{refused}");
    let apart = starter.start(stuck.counted_apart()).await;
    assert!(apart.is_ok(), "others are not kept from starting");
    drop(release);
    soon(async {
        while starter.start(stuck.clone()).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
