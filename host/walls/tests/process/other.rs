//! The other process of the tests.

use std::{env, fs, io::Write, os::fd::AsFd};

use toolcell_walls::link::{self, Receiver, Sender};

#[test]
#[ignore = "is the other process of the tests, which they start"]
fn other_process() {
    let role = env::var("ROLE").expect("a role");
    let inventory = inventory();
    toolcell_walls::kernel::end_on_abort().expect("a handler");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stdin = std::io::stdin();
        let link = stdin.as_fd().try_clone_to_owned().expect("a descriptor");
        let (sender, receiver) = link::join(link).await.expect("a link");
        match role.as_str() {
            "echo" => echo(sender, receiver).await,
            "inventory" => say(sender, receiver, &inventory).await,
            "last" => {
                sender.send(b"last", &[]).expect("room");
                std::process::abort();
            }
            "abort" => {
                eprintln!("the last words");
                std::process::abort();
            }
            "ids" => {
                let ids = format!("{} {}", std::process::id(), std::os::unix::process::parent_id());
                say(sender, receiver, &ids).await;
            }
            "write" => write(),
            "flood" => flood(&sender),
            "grow" => grow(sender, receiver).await,
            "take" => take(sender, receiver).await,
            other => panic!("no role is called {other}"),
        }
    });
}

async fn echo(sender: Sender, mut receiver: Receiver) {
    while let Ok(frame) = receiver.receive().await {
        if sender.room().await.is_err() || sender.send(&frame.bytes, &[]).is_err() {
            break;
        }
    }
    // Without the summary of the tests.
    std::process::exit(0);
}

async fn say(sender: Sender, mut receiver: Receiver, text: &str) {
    sender.send(text.as_bytes(), &[]).expect("room");
    let _ = receiver.receive().await;
}

/// Descriptors, variables and the folder of this process.
fn inventory() -> String {
    let open = fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    let mut lines: Vec<_> = open.filter_map(|entry| fd(&entry)).collect();
    lines.extend(env::vars().map(|(name, value)| format!("{name}={value}")));
    lines.push(format!("folder {}", env::current_dir().expect("a folder").display()));
    lines.join("\n")
}

/// One descriptor, but not the one of the listing itself.
fn fd(entry: &fs::DirEntry) -> Option<String> {
    let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
    let kind = match target.as_str() {
        "/dev/null" => "null",
        other if other.starts_with("/proc/") => return None,
        other => other.split(':').next()?,
    };
    Some(format!("fd {} {kind}", entry.file_name().display()))
}

fn write() {
    let mut stderr = std::io::stderr();
    stderr.write_all(&[b'x'; 200_000]).expect("a pipe");
    stderr.write_all(b"the end").expect("a pipe");
    std::process::exit(3);
}

fn flood(sender: &Sender) {
    sender.send(b"flooding", &[]).expect("room");
    let mut stderr = std::io::stderr();
    while stderr.write_all(&[b'x'; 65_536]).is_ok() {}
}

async fn grow(sender: Sender, mut receiver: Receiver) {
    sender.send(b"small", &[]).expect("room");
    receiver.receive().await.expect("a frame");
    let grown = vec![1_u8; 64 << 20];
    sender.send(b"large", &[]).expect("room");
    let _ = receiver.receive().await;
    drop(grown);
}

/// Takes as many MiB as each frame says.
async fn take(sender: Sender, mut receiver: Receiver) {
    let mut taken = Vec::new();
    sender.send(b"ready", &[]).expect("room");
    while let Ok(frame) = receiver.receive().await {
        let mebibytes: usize = String::from_utf8(frame.bytes).expect("a text").parse().expect("a number");
        taken.push(vec![1_u8; mebibytes << 20]);
        sender.send(b"taken", &[]).expect("room");
    }
    drop(taken);
    std::process::exit(0);
}
