//! Links between two ends in one process. Must not hold: processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod attending;
mod dispatcher;
mod frames;
mod hostile;

use std::{
    fs::File,
    io::{Read, Seek},
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use toolcell_walls::link::{self, Frame, Receiver, Sender};

/// Two ends of one link.
struct Ends {
    here: (Sender, Receiver),
    there: (Sender, Receiver),
}

async fn ends() -> Ends {
    let (here, there) = link::pair().expect("a socket pair");
    let here = link::open(here).expect("an end");
    Ends { here, there: link::join(there).await.expect("an end") }
}

/// A file that says `text`, to be known again behind another descriptor.
fn file(text: &str) -> OwnedFd {
    let mut file = tempfile::tempfile().expect("a file");
    std::io::Write::write_all(&mut file, text.as_bytes()).expect("a small file");
    file.into()
}

fn text(fd: OwnedFd) -> String {
    let mut file = File::from(fd);
    let mut text = String::new();
    file.rewind().expect("a file");
    file.read_to_string(&mut text).expect("a text");
    text
}

fn texts(frame: Frame) -> Vec<String> {
    frame.fds.into_iter().map(text).collect()
}

/// Fails a test that would hang.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("nothing hangs")
}

fn borrowed(fds: &[OwnedFd]) -> Vec<std::os::fd::BorrowedFd<'_>> {
    fds.iter().map(AsFd::as_fd).collect()
}

/// Open descriptors of this process that are sockets or files, by what they lead to.
fn open_fds() -> Vec<String> {
    let folder = std::fs::read_dir("/proc/self/fd").expect("a list of descriptors");
    let targets = folder.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.map(|target| target.to_string_lossy().into_owned()).collect()
}
