//! A thread that waits for its reply and the background task hand out frames together.

use std::{
    io::Write,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use toolcell_walls::link::{self, Dispatcher, LinkError, Receiver, Sender};

use super::{Ends, ends, soon};

/// Long enough that no reply takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// Sends each frame back.
async fn echo(sender: Sender, mut receiver: Receiver) {
    while let Ok(frame) = receiver.receive().await {
        sender.room().await.expect("the link lives");
        sender.send(&frame.bytes, &[]).expect("room");
    }
}

#[test]
fn a_driving_thread_needs_no_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Ends { here, there } = runtime.block_on(ends());
    let came = AtomicBool::new(false);
    let dispatcher = Dispatcher::new(here.1, |_| came.store(true, Ordering::Relaxed));
    there.0.send(b"reply", &[]).expect("room");
    assert!(dispatcher.drive(LIMIT, || came.load(Ordering::Relaxed)));
}

#[test]
fn driving_ends_at_its_limit() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Ends { here, there: _there } = runtime.block_on(ends());
    let dispatcher = Dispatcher::new(here.1, |_| panic!("nothing was sent"));
    let begun = Instant::now();
    assert!(!dispatcher.drive(Duration::from_millis(1), || false));
    assert!(begun.elapsed() >= Duration::from_millis(1));
}

#[test]
fn driving_ends_at_its_limit_while_other_frames_come_without_end() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (ours, theirs) = link::pair().expect("a socket pair");
    let (_sender, receiver) = runtime.block_on(async { link::open(ours) }).expect("an end");
    let dispatcher = Dispatcher::new(receiver, |_| ());
    let flood = std::thread::spawn(move || {
        let frames = [b"tw\x01".as_slice(), &[0; 13]].concat().repeat(1000);
        let mut peer = UnixStream::from(theirs);
        while peer.write_all(&frames).is_ok() {}
    });
    assert!(!dispatcher.drive(Duration::from_millis(20), || false));
    drop(dispatcher);
    flood.join().expect("the link ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_behind_the_awaited_one_reach_the_background() {
    let Ends { here, there: (sender, mut receiver) } = ends().await;
    let polled = tokio::spawn(async move { receiver.receive().await.err() });
    let (came, frames) = mpsc::channel();
    let dispatcher = Arc::new(Dispatcher::new(here.1, move |frame| {
        came.send(frame.bytes).expect("the test waits");
    }));
    for number in 0..1000_u32 {
        sender.send(&number.to_le_bytes(), &[]).expect("room");
    }
    assert!(dispatcher.drive(LIMIT, || true));
    let run = tokio::spawn({
        let dispatcher = dispatcher.clone();
        async move { dispatcher.run().await }
    });
    sender.send(&1000_u32.to_le_bytes(), &[]).expect("room");
    tokio::task::spawn_blocking(move || {
        for number in 0..=1000_u32 {
            assert_eq!(frames.recv_timeout(LIMIT), Ok(number.to_le_bytes().to_vec()));
        }
    })
    .await
    .expect("all frames");
    sender.close();
    assert_eq!(soon(polled).await.expect("a task"), Some(LinkError::ClosedHere));
    assert_eq!(soon(run).await.expect("a task"), LinkError::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_fails_while_a_thread_drives_ends_the_background() {
    let Ends { here, there } = ends().await;
    let dispatcher = Arc::new(Dispatcher::new(here.1, |_| ()));
    let run = tokio::spawn({
        let dispatcher = dispatcher.clone();
        async move { dispatcher.run().await }
    });
    let drive = tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        dispatcher.drive(LIMIT, || false);
        begun.elapsed()
    });
    drop(there);
    assert_eq!(soon(run).await.expect("a task"), LinkError::Closed);
    assert!(soon(drive).await.expect("a thread") < LIMIT);
}

/// Each of some threads sends its frames one by one, drives for the reply for a time that is too
/// short as often as not, and then waits until somebody hands it out. Every reply comes once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reply_is_handed_out_exactly_once() {
    const THREADS: u32 = 3;
    const FRAMES: u32 = 100_000 / THREADS;
    let Ends { here, there } = ends().await;
    let replies: Arc<Vec<(AtomicU32, AtomicU32)>> = Arc::new((0..THREADS).map(|_| Default::default()).collect());
    let (wakers, woken): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
    let handed = replies.clone();
    let dispatcher = Arc::new(Dispatcher::new(here.1, move |frame| {
        let thread = u32::from_le_bytes(frame.bytes[..4].try_into().unwrap()) as usize;
        let number = u32::from_le_bytes(frame.bytes[4..].try_into().unwrap());
        handed[thread].0.store(number, Ordering::Release);
        handed[thread].1.fetch_add(1, Ordering::Relaxed);
        wakers[thread].send(number).expect("the thread waits");
    }));
    let run = tokio::spawn({
        let dispatcher = dispatcher.clone();
        async move { dispatcher.run().await }
    });
    let there = tokio::spawn(echo(there.0, there.1));
    let threads: Vec<_> = woken
        .into_iter()
        .zip(0..)
        .map(|(woken, thread): (_, u32)| {
            let dispatcher = dispatcher.clone();
            let replies = replies.clone();
            std::thread::spawn(move || {
                for number in 1..=FRAMES {
                    let frame = [thread.to_le_bytes(), number.to_le_bytes()].concat();
                    dispatcher.sender().send(&frame, &[]).expect("room");
                    let limit = Duration::from_micros(u64::from(number % 10));
                    let reply = &replies[thread as usize].0;
                    dispatcher.drive(limit, || reply.load(Ordering::Acquire) == number);
                    assert_eq!(woken.recv_timeout(LIMIT), Ok(number), "a reply was lost");
                }
            })
        })
        .collect();
    let joined = tokio::task::spawn_blocking(|| threads.into_iter().try_for_each(|t| t.join()));
    joined.await.expect("a task").expect("no thread misses a reply");
    assert!(replies.iter().all(|(_, count)| count.load(Ordering::Relaxed) == FRAMES));
    there.abort();
    assert_eq!(soon(run).await.expect("a task"), LinkError::Closed);
}
