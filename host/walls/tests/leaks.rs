//! Processes that were started and have ended leave nothing behind. The only test of its program,
//! since it counts descriptors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{fs, path::Path, time::Duration};

use toolcell_walls::{
    link,
    process::{Command, Starter},
};

/// Descriptors of this process.
fn fds() -> usize {
    fs::read_dir("/proc/self/fd").expect("a list of descriptors").count()
}

#[tokio::test]
async fn a_hundred_processes_leave_no_zombie_and_no_descriptor() {
    let waits = Command::program("/bin/sh").argument("-c").argument("read line");
    let before = fds();
    let mut pids = Vec::new();
    {
        let starter = Starter::new().expect("a thread");
        for round in 0..100 {
            let (process, link) = starter.start(waits.clone()).await.expect("a process");
            let (sender, receiver) = link::open(link).expect("a link");
            pids.push(process.pid());
            match round % 4 {
                0 => drop(process),
                1 => {
                    process.kill();
                    let ended = tokio::time::timeout(Duration::from_secs(60), process.ended());
                    assert_eq!(ended.await.expect("it ends").signal(), Some(9));
                }
                2 => sender.close(),
                _ => drop(receiver),
            }
        }
    }
    assert_eq!(fds(), before);
    let left: Vec<_> = pids.into_iter().filter(|pid| Path::new(&format!("/proc/{pid}")).exists()).collect();
    assert!(left.is_empty(), "{left:?}");
}
