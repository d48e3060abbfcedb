//! A peer that keeps to nothing: each way ends the link with its reason, in bounded memory.

use std::{
    io::{IoSlice, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
    os::unix::net::UnixStream,
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use toolcell_walls::link::{
    self, FRAME_BYTES_MAX, FRAME_FDS_MAX, LinkError, QUEUE_BYTES_MAX, QUEUE_FDS_MAX, Receiver, SendError, Sender,
};

use super::{borrowed, file, open_fds, soon};

/// An end of a link whose other end says what it likes.
fn victim() -> (Sender, Receiver, UnixStream) {
    let (ours, theirs) = link::pair().expect("a socket pair");
    let (sender, receiver) = link::open(ours).expect("an end");
    (sender, receiver, theirs.into())
}

fn head(fds: u8, bytes: u32) -> Vec<u8> {
    [b"tw\x01".as_slice(), &[fds], &bytes.to_le_bytes(), &[0; 8]].concat()
}

fn send_with(peer: &UnixStream, bytes: &[u8], fds: &[OwnedFd]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = borrowed(fds);
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    let sent = rustix::net::sendmsg(peer, &[IoSlice::new(bytes)], &mut control, SendFlags::empty());
    assert_eq!(sent, Ok(bytes.len()));
}

fn files(count: usize) -> Vec<OwnedFd> {
    (0..count).map(|_| file("hostile")).collect()
}

/// The link ends for this reason, says so each time, and sends nothing any more.
async fn ends_with(sender: Sender, mut receiver: Receiver, reason: LinkError) {
    let ended = loop {
        if let Err(reason) = soon(receiver.receive()).await {
            break reason;
        }
    };
    assert_eq!(ended, reason);
    assert_eq!(receiver.try_receive().err(), Some(reason));
    assert_eq!(sender.ended(), Some(reason));
    assert_eq!(sender.send(b"", &[]), Err(SendError::Ended(reason)));
}

#[tokio::test]
async fn garbage_ends_the_link() {
    for garbage in [b"GET / HTTP/1.1\r\n".as_slice(), &[0; 16], &[255; 16], b"tw\x02\0\0\0\0\0\0\0\0\0\0\0\0\0"] {
        let (sender, receiver, mut peer) = victim();
        peer.write_all(garbage).expect("a socket");
        ends_with(sender, receiver, LinkError::NotAFrame).await;
    }
}

#[tokio::test]
async fn an_oversize_length_ends_the_link() {
    for bytes in [FRAME_BYTES_MAX as u32 + 1, u32::MAX] {
        let (sender, receiver, mut peer) = victim();
        peer.write_all(&head(0, bytes)).expect("a socket");
        ends_with(sender, receiver, LinkError::FrameTooLarge(bytes)).await;
    }
}

#[tokio::test]
async fn half_a_frame_and_the_end_is_cut_short() {
    let whole = [head(0, 3), b"abc".to_vec()].concat();
    for end in 1..whole.len() {
        let (sender, receiver, mut peer) = victim();
        peer.write_all(&whole[..end]).expect("a socket");
        drop(peer);
        ends_with(sender, receiver, LinkError::CutShort).await;
    }
    let (sender, receiver, mut peer) = victim();
    peer.write_all(&whole).expect("a socket");
    drop(peer);
    ends_with(sender, receiver, LinkError::Closed).await;
}

#[tokio::test]
async fn descriptors_that_no_frame_announces_end_the_link() {
    for bytes in [[head(0, 1), b"a".to_vec()].concat(), head(0, 5), head(1, 5)] {
        let (sender, receiver, peer) = victim();
        send_with(&peer, &bytes, &files(2));
        ends_with(sender, receiver, LinkError::FdsUnasked).await;
    }
}

#[tokio::test]
async fn a_side_that_takes_no_descriptors_ends_the_link_at_the_first() {
    let (sender, mut receiver, peer) = victim();
    receiver.refuse_fds();
    send_with(&peer, &head(1, 0), &files(1));
    ends_with(sender, receiver, LinkError::FdsUnasked).await;
}

#[tokio::test]
async fn descriptors_collected_byte_by_byte_end_the_link() {
    let (sender, receiver, peer) = victim();
    for byte in &head(16, 0)[..3] {
        send_with(&peer, &[*byte], &files(FRAME_FDS_MAX));
    }
    ends_with(sender, receiver, LinkError::FdsUnasked).await;
}

#[tokio::test]
async fn announced_descriptors_that_do_not_come_end_the_link() {
    let (sender, receiver, mut peer) = victim();
    peer.write_all(&head(3, 0)).expect("a socket");
    ends_with(sender, receiver, LinkError::FdsMissing { announced: 3, came: 0 }).await;
    let (sender, receiver, peer) = victim();
    send_with(&peer, &head(3, 0), &files(2));
    ends_with(sender, receiver, LinkError::FdsMissing { announced: 3, came: 2 }).await;
}

#[tokio::test]
async fn a_peer_that_wakes_for_nothing_ends_the_link() {
    let (sender, receiver, mut peer) = victim();
    let wake = [b"tw!".as_slice(), &[0; 13]].concat();
    peer.write_all(&wake.repeat(4096)).expect("a socket");
    peer.write_all(&head(0, 0)).expect("a socket");
    let mut receiver = receiver;
    assert!(soon(receiver.receive()).await.is_ok(), "so many wakes are allowed");
    peer.write_all(&wake).expect("a socket");
    ends_with(sender, receiver, LinkError::Memory).await;
}

#[tokio::test]
async fn a_frame_with_a_place_where_nothing_is_ends_the_link() {
    for place in [1, 4096, u64::MAX] {
        let (sender, receiver, mut peer) = victim();
        let mut frame = head(0, 0);
        frame[8..].copy_from_slice(&place.to_le_bytes());
        peer.write_all(&frame).expect("a socket");
        ends_with(sender, receiver, LinkError::Memory).await;
    }
}

#[tokio::test]
async fn too_many_descriptors_end_the_link_and_are_closed() {
    let (sender, receiver, mut peer) = victim();
    peer.write_all(&head(17, 0)).expect("a socket");
    ends_with(sender, receiver, LinkError::TooManyFds).await;

    let (sender, receiver, peer) = victim();
    let marked = tempfile::Builder::new().prefix("counted").tempfile().expect("a file");
    let name = marked.path().to_string_lossy().into_owned();
    let files: Vec<OwnedFd> = (0..40).map(|_| marked.reopen().expect("the file again").into()).collect();
    send_with(&peer, &head(16, 0), &files);
    drop(files);
    ends_with(sender, receiver, LinkError::TooManyFds).await;
    drop(peer);
    let open = open_fds().into_iter().filter(|target| target.starts_with(&name)).count();
    assert_eq!(open, 1, "only the file itself is open");
}

#[tokio::test]
async fn descriptors_of_frames_that_nobody_took_are_closed() {
    let (sender, mut receiver, peer) = victim();
    let marked = tempfile::Builder::new().prefix("dropped").tempfile().expect("a file");
    let name = marked.path().to_string_lossy().into_owned();
    for _ in 0..3 {
        send_with(&peer, &head(1, 0), &[marked.reopen().expect("the file again").into()]);
    }
    assert_eq!(soon(receiver.receive()).await.expect("a frame").fds.len(), 1);
    drop((receiver, sender, peer));
    let open = open_fds().into_iter().filter(|target| target.starts_with(&name)).count();
    assert_eq!(open, 1, "only the file itself is open");
}

#[tokio::test]
async fn a_peer_that_never_reads_fills_a_bounded_queue() {
    let (sender, _receiver, peer) = victim();
    let frame = [3; 1000];
    let mut sent = 0;
    while sender.send(&frame, &[]).is_ok() {
        sent += 1;
        assert!(sender.waiting_bytes() <= QUEUE_BYTES_MAX);
    }
    assert_eq!(sender.send(&frame, &[]), Err(SendError::Full));
    assert!(sent * frame.len() <= QUEUE_BYTES_MAX + (1 << 20), "{sent} frames were taken");
    assert!(sent * frame.len() >= QUEUE_BYTES_MAX / 2, "{sent} frames were taken");
    drop(peer);
    // The first one goes to the queue, whose writing then fails.
    assert_eq!(sender.send(b"", &[]), Ok(()));
    assert_eq!(sender.waiting_bytes(), 0, "the queue is freed");
    assert_eq!(sender.send(b"", &[]), Err(SendError::Ended(LinkError::Closed)));
}

#[tokio::test]
async fn empty_frames_are_counted_too() {
    let (sender, _receiver, _peer) = victim();
    let mut sent = 0;
    while sender.send(&[], &[]).is_ok() {
        sent += 1;
    }
    assert!(sent < QUEUE_BYTES_MAX / 100, "{sent} empty frames wait");
}

#[tokio::test]
async fn waiting_descriptors_are_bounded() {
    let (sender, _receiver, peer) = victim();
    while sender.waiting_bytes() == 0 {
        sender.send(&[0; 65_536], &[]).expect("room");
    }
    let marked = tempfile::Builder::new().prefix("waiting").tempfile().expect("a file");
    let name = marked.path().to_string_lossy().into_owned();
    let mut sent = 0;
    while sender.send(b"", &[marked.as_file().as_fd()]).is_ok() {
        sent += 1;
    }
    assert_eq!(sent, QUEUE_FDS_MAX);
    sender.close();
    drop(peer);
    let open = open_fds().into_iter().filter(|target| target.starts_with(&name)).count();
    assert_eq!(open, 1, "only the file itself is open");
}

#[tokio::test]
async fn a_flood_waits_in_the_socket_while_nobody_receives() {
    let (_sender, mut receiver, peer) = victim();
    peer.set_nonblocking(true).expect("a socket");
    let frame = [head(0, 100), vec![1; 100]].concat();
    let mut peer_sent = 0;
    while let Ok(count) = (&peer).write(&frame) {
        peer_sent += count;
    }
    assert!(peer_sent < 1 << 20, "{peer_sent} bytes were taken of a peer that nobody reads");
    let mut received = 0;
    while receiver.try_receive().expect("frames").is_some() {
        received += 1;
    }
    assert_eq!(received, peer_sent / frame.len());
}

#[tokio::test]
async fn a_peer_that_reads_no_more_leaves_what_it_sent() {
    let (sender, mut receiver, mut peer) = victim();
    peer.write_all(&head(0, 0)).expect("a socket");
    peer.shutdown(std::net::Shutdown::Read).expect("a socket");
    assert_eq!(sender.send(b"", &[]), Err(SendError::Ended(LinkError::Closed)));
    assert_eq!(soon(receiver.receive()).await.expect("a frame").bytes.len(), 0);
    drop(peer);
    ends_with(sender, receiver, LinkError::Closed).await;
}
