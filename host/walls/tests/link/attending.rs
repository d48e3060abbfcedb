//! A thread that attends to a link dispatches its frames along with other work, and the background
//! task continues where it stops.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use toolcell_walls::link::{Attending, Dispatcher, Frame, LinkError, Receiver, Sender};

use super::{Ends, ends, soon};

/// Long enough that no reply takes longer.
const LIMIT: Duration = Duration::from_secs(60);

type Dispatch = Box<dyn Fn(Frame) + Send + Sync>;

/// Frames that were handed out, by their first number.
#[derive(Default)]
struct Handed {
    numbers: Mutex<VecDeque<u32>>,
    count: AtomicU32,
}

impl Handed {
    fn dispatcher(self: &Arc<Self>, receiver: Receiver) -> Arc<Dispatcher<Dispatch>> {
        let handed = Arc::clone(self);
        let dispatch: Dispatch = Box::new(move |frame| {
            let number = u32::from_le_bytes(frame.bytes[..4].try_into().unwrap());
            handed.numbers.lock().unwrap().push_back(number);
            handed.count.fetch_add(1, Ordering::Release);
        });
        Arc::new(Dispatcher::new(receiver, dispatch))
    }

    fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }
}

/// Dispatches frames until this many have come, sleeping when nothing is there.
fn attend(link: &Attending<Dispatch>, handed: &Handed, until: u32) -> Result<(), LinkError> {
    while handed.count() < until {
        if link.poll()? || link.arm()? {
            continue;
        }
        let time = Timespec::try_from(LIMIT).unwrap();
        let ready = poll(&mut [PollFd::from_borrowed_fd(link.socket(), PollFlags::IN)], Some(&time)).unwrap();
        assert_eq!(ready, 1, "a frame was not told");
        link.read()?;
    }
    Ok(())
}

/// Sends each frame back. Several at once cause one wake-up.
async fn echo(sender: Sender, mut receiver: Receiver) {
    loop {
        if receiver.has_more().is_ok_and(|more| more) {
            sender.wake_later();
        } else {
            sender.wake();
        }
        let Ok(frame) = receiver.receive().await else { return };
        sender.room().await.expect("the link lives");
        sender.send(&frame.bytes, &[]).expect("room");
    }
}

/// Requests in bursts of one to five, each with some bytes behind its number: some go through the
/// memory and some over the socket. Every third burst is waited for by the background task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reply_comes_once_and_in_order_whoever_hands_it_out() {
    const BURSTS: u32 = 5_000;
    let Ends { here, there } = ends().await;
    let handed = Arc::new(Handed::default());
    let dispatcher = handed.dispatcher(here.1);
    let run = tokio::spawn({
        let dispatcher = dispatcher.clone();
        async move { dispatcher.run().await }
    });
    let there = tokio::spawn(echo(there.0, there.1));
    let asking = {
        let handed = handed.clone();
        tokio::task::spawn_blocking(move || {
            let mut sent = 0_u32;
            let mut attending = None;
            for burst in 0..BURSTS {
                if burst % 3 == 2 {
                    attending = None;
                } else if attending.is_none() {
                    attending = Attending::begin(&dispatcher);
                }
                for _ in 0..=burst % 5 {
                    let bytes = if sent.is_multiple_of(97) { 10_000 } else { 4 + sent as usize % 200 };
                    let mut frame = vec![7; bytes];
                    frame[..4].copy_from_slice(&sent.to_le_bytes());
                    dispatcher.sender().send(&frame, &[]).expect("room");
                    sent += 1;
                }
                match &attending {
                    Some(link) => attend(link, &handed, sent).expect("the link lives"),
                    // Its turn may not have ended yet, or it dispatches them.
                    None => {
                        let begun = std::time::Instant::now();
                        while handed.count() < sent {
                            assert!(begun.elapsed() < LIMIT, "a reply was lost");
                            std::thread::yield_now();
                        }
                    }
                }
            }
            drop(attending);
            sent
        })
    };
    let sent = soon(asking).await.expect("a thread");
    let numbers: Vec<u32> = handed.numbers.lock().unwrap().iter().copied().collect();
    assert!(numbers.iter().copied().eq(0..sent), "{} of {sent} came, or not in order", numbers.len());
    there.abort();
    assert_eq!(soon(run).await.expect("a task"), LinkError::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_that_were_there_before_and_come_after_are_handed_out() {
    let Ends { here, there } = ends().await;
    let handed = Arc::new(Handed::default());
    let dispatcher = handed.dispatcher(here.1);
    there.0.send(&0_u32.to_le_bytes(), &[]).expect("room");
    let link = Attending::begin(&dispatcher).expect("nobody receives");
    assert!(Attending::begin(&dispatcher).is_none(), "one at a time");
    attend(&link, &handed, 1).expect("the link lives");
    let run = tokio::spawn({
        let dispatcher = dispatcher.clone();
        async move { dispatcher.run().await }
    });
    there.0.send(&1_u32.to_le_bytes(), &[]).expect("room");
    drop(link);
    let came = async {
        while handed.count() < 2 {
            tokio::task::yield_now().await;
        }
    };
    soon(came).await;
    drop(there);
    assert_eq!(soon(run).await.expect("a task"), LinkError::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_ends_while_it_is_attended_to_is_told_to_both() {
    let Ends { here, there } = ends().await;
    let handed = Arc::new(Handed::default());
    let dispatcher = handed.dispatcher(here.1);
    let link = Attending::begin(&dispatcher).expect("nobody receives");
    let run = tokio::spawn({
        let dispatcher = dispatcher.clone();
        async move { dispatcher.run().await }
    });
    drop(there);
    let attended = tokio::task::spawn_blocking(move || attend(&link, &handed, 1));
    assert_eq!(soon(attended).await.expect("a thread"), Err(LinkError::Closed));
    assert_eq!(soon(run).await.expect("a task"), LinkError::Closed);
}

#[tokio::test]
async fn who_sleeps_is_woken_for_frames_that_were_to_be_told_later() {
    let Ends { here, there: (_sender, mut receiver) } = ends().await;
    // It asks to be woken.
    assert!(receiver.try_receive().expect("the link lives").is_none());
    here.0.wake_later();
    here.0.send(b"one", &[]).expect("room");
    here.0.send(b"two", &[]).expect("room");
    here.0.wake();
    assert_eq!(soon(receiver.receive()).await.expect("a frame").bytes, b"one");
    assert_eq!(soon(receiver.receive()).await.expect("a frame").bytes, b"two");
    // From then on each one wakes.
    assert!(receiver.try_receive().expect("the link lives").is_none());
    here.0.send(b"three", &[]).expect("room");
    assert_eq!(soon(receiver.receive()).await.expect("a frame").bytes, b"three");
}
