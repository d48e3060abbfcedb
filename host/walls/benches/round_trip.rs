//! A frame of 100 bytes to another process and back, compared with a bare pipe, in one run.
//!
//! `cargo bench -p toolcell-walls` prints a table. The other process is this program again.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout)]

use std::{
    env,
    io::{Read, Write, stdin, stdout},
    os::fd::AsFd,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{runtime, sync::Semaphore};
use toolcell_walls::{
    link::{self, Dispatcher, Frame},
    process::{Command, Process, Starter},
};

const FRAME: [u8; 100] = [7; 100];
/// Round trips of one row.
const ROUNDS: usize = 20_000;
/// How long a caller waits on its own thread.
const DRIVE_TIME: Duration = Duration::from_millis(1);
/// Frames in flight at once in the rows of throughput.
const UNDER_WAY: usize = 64;

fn main() {
    match env::args().nth(1).as_deref() {
        Some("echo frames") => echo_frames(),
        Some("echo bytes") => echo_bytes(),
        _ => measure(),
    }
}

fn measure() {
    println!("| round trip of 100 bytes | gap | p50 µs | p90 µs | p99 µs |");
    println!("|---|---|---|---|---|");
    for gap in [0, 100, 1000].map(Duration::from_micros) {
        row("bare pipe", gap, &mut pipe());
        let host = Host::start();
        row("link, the caller drives", gap, &mut || host.drive());
        row("link, the background task wakes the caller", gap, &mut || host.wait());
    }
    let mut starts: Vec<_> = (0..50).map(|_| started()).collect();
    starts.sort_unstable();
    println!("\n| a process started, and a frame there and back | p50 {:?} |", starts[25]);
    let host = Host::start();
    println!("\n| {UNDER_WAY} frames under way | frames/s |");
    println!("|---|---|");
    println!("| link | {:.0} |", host.pipelined());
}

fn started() -> Duration {
    let begun = Instant::now();
    let host = Host::start();
    host.wait();
    begun.elapsed()
}

fn row(name: &str, gap: Duration, round: &mut dyn FnMut()) {
    (0..200).for_each(|_| round());
    let rounds = if gap.is_zero() { ROUNDS } else { ROUNDS / 10 };
    let mut times: Vec<_> = (0..rounds)
        .map(|_| {
            if !gap.is_zero() {
                thread::sleep(gap);
            }
            let begun = Instant::now();
            round();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100].as_nanos() as f64 / 1000.0;
    println!("| {name} | {gap:?} | {:.1} | {:.1} | {:.1} |", at(50), at(90), at(99));
}

/// Round trips through two pipes, both ends blocking. The other process ends with its input.
#[allow(clippy::zombie_processes)]
fn pipe() -> impl FnMut() {
    let mut child = std::process::Command::new(env::current_exe().unwrap())
        .arg("echo bytes")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut from = child.stdout.take().unwrap();
    move || {
        to.write_all(&FRAME).unwrap();
        from.read_exact(&mut [0; FRAME.len()]).unwrap();
    }
}

fn echo_bytes() {
    let mut bytes = FRAME;
    while stdin().read_exact(&mut bytes).is_ok() {
        stdout().write_all(&bytes).unwrap();
        stdout().flush().unwrap();
    }
}

type Dispatch = Box<dyn Fn(Frame) + Send + Sync>;

/// This end of a link, with the runtime of its background task.
struct Host {
    runtime: runtime::Runtime,
    dispatcher: Arc<Dispatcher<Dispatch>>,
    sent: AtomicU64,
    received: Arc<AtomicU64>,
    woken: Arc<Semaphore>,
    _process: Process,
    _starter: Starter,
}

impl Host {
    fn start() -> Self {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let starter = Starter::new().unwrap();
        let command = Command::this_program("echo").unwrap().argument("echo frames");
        let received = Arc::new(AtomicU64::new(0));
        let woken = Arc::new(Semaphore::new(0));
        let counts = (received.clone(), woken.clone());
        let dispatch: Dispatch = Box::new(move |_| {
            counts.0.fetch_add(1, Ordering::Release);
            counts.1.add_permits(1);
        });
        let (process, dispatcher) = runtime.block_on(async {
            let (process, link) = starter.start(command).await.unwrap();
            let (_, receiver) = link::open(link).unwrap();
            (process, Arc::new(Dispatcher::new(receiver, dispatch)))
        });
        let background = dispatcher.clone();
        runtime.spawn(async move { background.run().await });
        let sent = AtomicU64::new(0);
        Self { runtime, dispatcher, sent, received, woken, _process: process, _starter: starter }
    }

    fn send(&self) -> u64 {
        self.dispatcher.sender().send(&FRAME, &[]).unwrap();
        self.sent.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn drive(&self) {
        let sent = self.send();
        let came = || self.received.load(Ordering::Acquire) == sent;
        self.dispatcher.drive(DRIVE_TIME, came);
        self.runtime.block_on(self.woken.acquire()).unwrap().forget();
    }

    fn wait(&self) {
        self.send();
        self.runtime.block_on(self.woken.acquire()).unwrap().forget();
    }

    fn pipelined(&self) -> f64 {
        let begun = Instant::now();
        for _ in 0..UNDER_WAY {
            self.send();
        }
        for _ in UNDER_WAY..ROUNDS * 10 {
            self.runtime.block_on(self.woken.acquire()).unwrap().forget();
            self.send();
        }
        let rest = u32::try_from(UNDER_WAY).unwrap();
        self.runtime.block_on(self.woken.acquire_many(rest)).unwrap().forget();
        (ROUNDS * 10) as f64 / begun.elapsed().as_secs_f64()
    }
}

fn echo_frames() {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let link = stdin().as_fd().try_clone_to_owned().unwrap();
        let (sender, mut receiver) = link::join(link).await.unwrap();
        while let Ok(frame) = receiver.receive().await {
            sender.send(&frame.bytes, &[]).unwrap();
        }
    });
}
