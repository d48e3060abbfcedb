//! Frames and descriptors arrive whole, in order and once.

use toolcell_walls::link::{FRAME_BYTES_MAX, FRAME_FDS_MAX, LinkError, SendError};

use super::{borrowed, ends, file, soon, texts};

#[tokio::test]
async fn frames_of_every_size_arrive() {
    let mut ends = ends().await;
    let mut sent = Vec::new();
    for length in [0, 1, 7, 8, 9, 4096, 65_535, 65_536, 65_537, 1 << 20, FRAME_BYTES_MAX] {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 31 % 251) as u8).collect();
        ends.here.0.send(&bytes, &[]).expect("the queue has room");
        let (frame, _) = soon(both(ends.there.1.receive(), ends.here.1.receive())).await;
        assert!(frame.bytes == bytes, "{length} bytes");
        sent.push(length);
    }
    assert_eq!(ends.there.1.try_receive().map(|frame| frame.is_none()), Ok(true));
}

/// Waits for a frame while the other end is polled too, and so writes what waits there.
async fn both<A, B>(
    awaited: impl Future<Output = Result<A, LinkError>>,
    polled: impl Future<Output = B>,
) -> (A, Option<B>) {
    tokio::select! {
        frame = awaited => (frame.expect("a frame"), None),
        _ = polled => panic!("nobody sent this way"),
    }
}

#[tokio::test]
async fn a_frame_that_is_too_large_is_not_sent_and_the_link_goes_on() {
    let mut ends = ends().await;
    let bytes = vec![0; FRAME_BYTES_MAX + 1];
    let refused = ends.here.0.send(&bytes, &[]);
    assert_eq!(refused, Err(SendError::TooLarge(FRAME_BYTES_MAX + 1)));
    ends.here.0.send(b"next", &[]).expect("the link goes on");
    assert_eq!(soon(ends.there.1.receive()).await.expect("a frame").bytes, b"next");
}

#[tokio::test]
async fn descriptors_arrive_with_their_frame_and_in_order() {
    let mut ends = ends().await;
    let names: Vec<String> = (0..FRAME_FDS_MAX).map(|at| format!("file {at}")).collect();
    let files: Vec<_> = names.iter().map(|name| file(name)).collect();
    let all = borrowed(&files);
    for (at, fds) in [&all[..0], &all[..1], &all[1..4], &all[..0], &all[4..5], &all[..]].into_iter().enumerate() {
        ends.here.0.send(&[at as u8], fds).expect("the queue has room");
    }
    drop(files);
    for (at, expected) in
        [&names[..0], &names[..1], &names[1..4], &names[..0], &names[4..5], &names[..]].into_iter().enumerate()
    {
        let frame = soon(ends.there.1.receive()).await.expect("a frame");
        assert_eq!(frame.bytes, [at as u8]);
        assert_eq!(texts(frame), expected);
    }
}

#[tokio::test]
async fn more_descriptors_than_a_frame_may_have_are_not_sent() {
    let ends = ends().await;
    let files: Vec<_> = (0..=FRAME_FDS_MAX).map(|_| file("one")).collect();
    let refused = ends.here.0.send(b"", &borrowed(&files));
    assert_eq!(refused, Err(SendError::TooManyFds(FRAME_FDS_MAX + 1)));
}

#[tokio::test]
async fn descriptors_wait_with_their_frame_in_the_queue() {
    let mut ends = ends().await;
    let large = vec![1; 1 << 20];
    ends.here.0.send(&large, &[]).expect("the queue has room");
    for name in ["a", "b", "c"] {
        ends.here.0.send(name.as_bytes(), &borrowed(&[file(name)])).expect("the queue has room");
        ends.here.0.send(b"none", &[]).expect("the queue has room");
    }
    assert!(ends.here.0.waiting_bytes() > 0, "the socket took all, so nothing waited");
    let received = async {
        assert_eq!(ends.there.1.receive().await.expect("a frame").bytes.len(), 1 << 20);
        for name in ["a", "b", "c"] {
            let frame = ends.there.1.receive().await.expect("a frame");
            assert_eq!(frame.bytes, name.as_bytes());
            assert_eq!(texts(frame), [name]);
            let frame = ends.there.1.receive().await.expect("a frame");
            assert_eq!((frame.bytes.as_slice(), frame.fds.len()), (b"none".as_slice(), 0));
        }
        Ok(())
    };
    soon(both(received, ends.here.1.receive())).await;
    assert_eq!(ends.here.0.waiting_bytes(), 0);
}

#[tokio::test]
async fn whoever_waits_for_room_is_told() {
    let mut ends = ends().await;
    let large = vec![1; FRAME_BYTES_MAX];
    while ends.here.0.send(&large, &[]) != Err(SendError::Full) {}
    let sender = ends.here.0.clone();
    let room = tokio::spawn(async move { sender.room().await });
    let received = async {
        let frame = ends.there.1.receive().await?;
        room.await.expect("the task ends")?;
        Ok(frame)
    };
    let (frame, _) = soon(both(received, ends.here.1.receive())).await;
    assert_eq!(frame.bytes.len(), FRAME_BYTES_MAX);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_senders_lose_and_mix_nothing() {
    const SENDERS: u32 = 8;
    const FRAMES: u32 = 5_000;
    let mut ends = ends().await;
    let here = tokio::spawn(async move { ends.here.1.receive().await.map(|frame| frame.bytes) });
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let link = ends.here.0.clone();
            tokio::spawn(async move {
                for number in 0..FRAMES {
                    let mut bytes = [sender.to_le_bytes(), number.to_le_bytes()].concat();
                    bytes.resize(8 + (number as usize * 7 + sender as usize) % 300, sender as u8);
                    link.room().await.expect("the link lives");
                    link.send(&bytes, &[]).expect("the queue has room");
                }
            })
        })
        .collect();
    let mut next = [0; SENDERS as usize];
    for _ in 0..SENDERS * FRAMES {
        let bytes = soon(ends.there.1.receive()).await.expect("a frame").bytes;
        let sender = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let number = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
        assert_eq!(number, next[sender as usize], "frames of one sender come in order");
        assert!(bytes[8..].iter().all(|byte| u32::from(*byte) == sender), "frames are not mixed");
        next[sender as usize] += 1;
    }
    for sender in senders {
        sender.await.expect("a sender");
    }
    drop(ends.there);
    assert_eq!(soon(here).await.expect("a task"), Err(LinkError::Closed));
}

/// Small frames overtake none of the large ones, nor those with descriptors, which go another way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_keep_their_order_on_both_ways() {
    const FRAMES: usize = 20_000;
    let length = |number: usize| match number % 50 {
        0 => 70_000,
        1..4 => 5_000,
        _ => number * 13 % 4_200,
    };
    let mut ends = ends().await;
    let sender = ends.here.0.clone();
    let polled = tokio::spawn(async move { ends.here.1.receive().await.map(|frame| frame.bytes) });
    let sending = tokio::spawn(async move {
        let file = file("any");
        for number in 0..FRAMES {
            sender.room().await.expect("the link lives");
            let bytes = [&number.to_le_bytes(), vec![number as u8; length(number)].as_slice()].concat();
            let fds = borrowed(std::slice::from_ref(&file));
            let fds = if number % 31 == 0 { fds.as_slice() } else { &[] };
            while sender.send(&bytes, fds) == Err(SendError::Full) {
                tokio::task::yield_now().await;
            }
        }
    });
    for number in 0..FRAMES {
        let frame = soon(ends.there.1.receive()).await.expect("a frame");
        assert_eq!(frame.bytes[..8], number.to_le_bytes());
        assert_eq!(frame.bytes.len(), 8 + length(number));
        assert!(frame.bytes[8..].iter().all(|byte| *byte == number as u8), "frame {number}");
        assert_eq!(frame.fds.len(), usize::from(number % 31 == 0));
    }
    sending.await.expect("all are sent");
    drop(ends.there);
    assert_eq!(soon(polled).await.expect("a task"), Err(LinkError::Closed));
}

#[tokio::test]
async fn what_was_sent_before_the_end_arrives() {
    for frames in [1, 5, 200] {
        let mut ends = ends().await;
        (0..frames).for_each(|_| ends.there.0.send(b"small", &[]).expect("room"));
        drop(ends.there);
        for _ in 0..frames {
            assert_eq!(soon(ends.here.1.receive()).await.expect("a frame").bytes, b"small");
        }
        assert_eq!(soon(ends.here.1.receive()).await.err(), Some(LinkError::Closed));
    }
}

#[test]
fn frames_are_sent_from_threads_outside_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut ends = runtime.block_on(ends());
    let link = ends.here.0.clone();
    let large = vec![5; FRAME_BYTES_MAX];
    std::thread::spawn(move || link.send(&large, &[])).join().unwrap().expect("room");
    assert!(ends.here.0.waiting_bytes() > 0);
    let (frame, _) = runtime.block_on(soon(both(ends.there.1.receive(), ends.here.1.receive())));
    assert_eq!(frame.bytes.len(), FRAME_BYTES_MAX);
}

#[tokio::test]
async fn a_closed_link_says_so_on_both_sides() {
    let mut ends = ends().await;
    ends.there.0.send(b"last", &[]).expect("room");
    ends.there.0.close();
    assert_eq!(soon(ends.there.1.receive()).await.err(), Some(LinkError::ClosedHere));
    assert_eq!(soon(ends.here.1.receive()).await.expect("a frame").bytes, b"last");
    assert_eq!(soon(ends.here.1.receive()).await.err(), Some(LinkError::Closed));
    assert_eq!(ends.here.0.send(b"", &[]), Err(SendError::Ended(LinkError::Closed)));
    assert_eq!(ends.here.0.ended(), Some(LinkError::Closed));
    assert_eq!(soon(ends.here.0.room()).await, Err(LinkError::Closed));
}

#[tokio::test]
async fn whoever_waits_is_woken_by_the_end() {
    let mut ends = ends().await;
    let closer = ends.here.0.clone();
    let waiting = tokio::spawn(async move { ends.here.1.receive().await.err() });
    tokio::task::yield_now().await;
    closer.close();
    assert_eq!(soon(waiting).await.expect("a task"), Some(LinkError::ClosedHere));
}
