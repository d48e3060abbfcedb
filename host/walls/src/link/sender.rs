//! Sending without blocking, and the bounded queue behind it.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::io::Errno;
use tokio::sync::Notify;

use super::{
    FRAME_BYTES_MAX, FRAME_FDS_MAX, LinkError, QUEUE_BYTES_MAX, QUEUE_FDS_MAX, SendError, frame,
    ring::{Outlet, RING_FRAME_BYTES_MAX},
    socket,
    turn::{TakenTurn, Turn},
    watch::Watch,
};

/// Memory of a queued frame in addition to its bytes, counted so that many empty ones are bounded,
/// too.
const WAITING_BYTES: usize = 128;

/// Frames written with one system call. The kernel takes up to 1,024 pieces.
const BATCH_FRAMES: usize = 64;

/// The half of a link that sends. Clones send on the same link, from any thread.
#[derive(Debug, Clone)]
pub struct Sender(pub(super) Arc<End>);

/// One end of a link.
#[derive(Debug)]
pub(super) struct End {
    pub(super) watch: Watch,
    queue: Mutex<SenderQueue>,
    writing: Turn,
    /// Small frames go this way while the queue is empty. Only the holder of the writing turn uses
    /// it.
    outlet: OnceLock<Mutex<Outlet>>,
    room: Notify,
    ended: OnceLock<LinkError>,
    /// True while sending does not wake the receiver.
    wakes_later: AtomicBool,
    owes_wake: AtomicBool,
}

/// Frames that wait until the socket accepts them.
#[derive(Debug, Default)]
struct SenderQueue {
    frames: VecDeque<WaitingFrame>,
    bytes: usize,
    fds: usize,
    /// Frames that went over the socket, or wait for it.
    by_socket: u64,
    /// True if the watch reports when the socket is writable.
    watched: bool,
    closed: Option<LinkError>,
}

#[derive(Debug)]
struct WaitingFrame {
    /// Header and body, without what was already sent.
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<OwnedFd>,
}

impl Sender {
    /// Sends a frame without ever blocking: the socket takes what it has room for, the rest waits
    /// in a bounded queue. The task that polls the [`Receiver`](super::Receiver) or the
    /// [`Dispatcher`](super::Dispatcher) writes it later.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), SendError> {
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(SendError::TooLarge(bytes.len()));
        }
        if fds.len() > FRAME_FDS_MAX {
            return Err(SendError::TooManyFds(fds.len()));
        }
        self.0.send(bytes, fds)
    }

    /// Waits until at most half of the queue is used.
    pub async fn room(&self) -> Result<(), LinkError> {
        loop {
            let told = self.0.room.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            {
                let queue = self.0.queue();
                match queue.closed {
                    Some(reason) => return Err(reason),
                    None if queue.bytes <= QUEUE_BYTES_MAX / 2 => return Ok(()),
                    None => {}
                }
            }
            told.await;
        }
    }

    /// From now on, frames that go through shared memory do not wake the receiver until
    /// [`wake`](Self::wake) is called: for sending several in a row.
    pub fn wake_later(&self) {
        self.0.wakes_later.store(true, Ordering::Relaxed);
    }

    /// Wakes the other process for what was sent since [`wake_later`](Self::wake_later).
    pub fn wake(&self) {
        self.0.wakes_later.store(false, Ordering::Relaxed);
        if self.0.owes_wake.load(Ordering::Acquire) {
            self.0.flush();
        }
    }

    /// Bytes that wait until the other process reads, including the overhead of each frame.
    pub fn waiting_bytes(&self) -> usize {
        self.0.queue().bytes
    }

    /// Ends the link: the other process reads the end, and both halves here return it.
    pub fn close(&self) {
        self.0.end(LinkError::ClosedHere);
    }

    /// Why the link ended, if it did.
    pub fn ended(&self) -> Option<LinkError> {
        self.0.ended()
    }
}

impl End {
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            watch: Watch::new(socket)?,
            queue: Mutex::default(),
            writing: Turn::default(),
            outlet: OnceLock::new(),
            room: Notify::new(),
            ended: OnceLock::new(),
            wakes_later: AtomicBool::new(false),
            owes_wake: AtomicBool::new(false),
        })
    }

    pub(super) fn ended(&self) -> Option<LinkError> {
        self.ended.get().copied()
    }

    /// Ends the link for a reason; the first one stays. Wakes all that wait for it.
    pub(super) fn end(&self, reason: LinkError) -> LinkError {
        let reason = *self.ended.get_or_init(|| reason);
        self.close_queue(reason);
        socket::shut(self.watch.socket());
        reason
    }

    /// Writes queued frames, as far as the socket accepts them.
    pub(super) fn flush(&self) {
        if let Some(turn) = self.writing.enter() {
            self.flush_within(turn);
        }
    }

    /// From now on small frames go through shared memory. The other side has it before it receives
    /// the first frame from the socket.
    pub(super) fn attach(&self, outlet: Outlet) {
        // It is attached once, when the link is opened.
        let _ = self.outlet.set(Mutex::new(outlet));
    }

    fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), SendError> {
        let Some(turn) = self.writing.try_enter() else {
            // Another thread is writing: a note, left after the frame is queued, makes it check
            // again.
            self.queue().push(bytes, fds)?;
            self.flush();
            return Ok(());
        };
        let sent = self.send_within(bytes, fds);
        self.flush_within(turn);
        sent
    }

    /// Sends a frame directly if the queue is empty, or queues it.
    fn send_within(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), SendError> {
        let by_socket = {
            let mut queue = self.queue();
            if queue.closed.is_some() || !queue.frames.is_empty() {
                return queue.push(bytes, fds);
            }
            queue.by_socket
        };
        let small = fds.is_empty() && bytes.len() <= RING_FRAME_BYTES_MAX;
        if small && self.send_by_memory(bytes, by_socket)? {
            return Ok(());
        }
        let head = frame::header(bytes.len(), fds.len(), self.place());
        self.send_by_socket([&head, bytes], fds)?;
        self.queue().by_socket += 1;
        Ok(())
    }

    /// False if the frame must go over the socket: no memory is shared, it is full, or the receiver
    /// has not taken everything that was sent over the socket before.
    fn send_by_memory(&self, bytes: &[u8], by_socket: u64) -> Result<bool, LinkError> {
        let Some(mut outlet) = self.outlet() else {
            return Ok(false);
        };
        let pushed = outlet.socket_is_taken(by_socket) && outlet.push(bytes).map_err(|reason| self.end(reason))?;
        drop(outlet);
        if pushed && self.wakes_later.load(Ordering::Relaxed) {
            self.owes_wake.store(true, Ordering::Release);
        } else if pushed {
            self.wake_sleeper()?;
        }
        Ok(pushed)
    }

    /// Wakes the receiver for earlier frames in the shared memory. Frames queued for the socket
    /// wake it anyway, and a receiver notices when the link ends.
    fn wake_owed(&self) {
        if self.queue().frames.is_empty() {
            let _ = self.wake_sleeper();
        }
    }

    /// Wakes the receiver if it sleeps.
    fn wake_sleeper(&self) -> Result<(), LinkError> {
        let must_wake = self.outlet().map(|outlet| outlet.must_wake()).transpose();
        if must_wake.map_err(|reason| self.end(reason))?.unwrap_or_default() {
            self.wake()?;
        }
        Ok(())
    }

    /// Wakes the receiver. A full socket wakes it anyway.
    fn wake(&self) -> Result<(), LinkError> {
        let head = frame::wake();
        match socket::write(self.watch.socket().as_fd(), &[IoSlice::new(&head)], &[]) {
            Ok(Some(sent)) if sent < head.len() => {
                // The rest is written before any frame.
                let _ = self.queue().push_rest(WaitingFrame::new([&head, &[]], sent, Vec::new()));
            }
            Ok(_) => {}
            Err(reason) => return Err(self.fail(reason)),
        }
        Ok(())
    }

    fn send_by_socket(&self, parts: [&[u8]; 2], fds: &[BorrowedFd<'_>]) -> Result<(), SendError> {
        let [head, body] = parts;
        let pieces = [IoSlice::new(head), IoSlice::new(body)];
        match socket::write(self.watch.socket().as_fd(), &pieces, fds) {
            Ok(Some(sent)) if sent == head.len() + body.len() => Ok(()),
            Ok(Some(sent)) => self.queue().push_rest(WaitingFrame::new(parts, sent, Vec::new())),
            Ok(None) => {
                let waiting = WaitingFrame::new(parts, 0, owned(fds)?);
                self.queue().push_rest(waiting)
            }
            Err(reason) => Err(self.fail(reason).into()),
        }
    }

    /// The place in the shared memory of a frame that now goes over the socket.
    fn place(&self) -> u64 {
        self.outlet().map_or(0, |outlet| outlet.position())
    }

    fn outlet(&self) -> Option<MutexGuard<'_, Outlet>> {
        Some(self.outlet.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn flush_within(&self, turn: TakenTurn<'_>) {
        let mut turn = Some(turn);
        while let Some(taken) = turn {
            self.write_queue();
            if !self.wakes_later.load(Ordering::Relaxed) && self.owes_wake.swap(false, Ordering::AcqRel) {
                self.wake_owed();
            }
            turn = taken.leave();
        }
    }

    /// Writes frames until the queue is empty or the socket is full.
    fn write_queue(&self) {
        loop {
            let mut batch = self.queue().batch();
            let place = self.place();
            batch.iter_mut().for_each(|frame| frame.set_place(place));
            if batch.is_empty() {
                return self.stop_watching();
            }
            let pieces: Vec<_> = batch.iter().map(|frame| IoSlice::new(frame.rest())).collect();
            let fds = batch.first().map(|first| first.fds.as_slice()).unwrap_or_default();
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            let written = socket::write(self.watch.socket().as_fd(), &pieces, &fds);
            match written {
                Ok(Some(count)) => self.written(batch, count),
                Ok(None) => {
                    self.queue().put_back(batch);
                    if !self.start_watching() {
                        return;
                    }
                }
                Err(reason) => {
                    self.fail(reason);
                    return;
                }
            }
        }
    }

    /// After a write that the socket refused. True if it was not watched before: it may have become
    /// writable unnoticed, so the write must be retried.
    fn start_watching(&self) -> bool {
        let mut queue = self.queue();
        let before = std::mem::replace(&mut queue.watched, true);
        drop(queue);
        if before {
            return false;
        }
        match self.watch.want_write(true) {
            Ok(()) => true,
            Err(error) => {
                self.end(LinkError::Io(errno(&error)));
                false
            }
        }
    }

    fn stop_watching(&self) {
        if !std::mem::replace(&mut self.queue().watched, false) {
            return;
        }
        if let Err(error) = self.watch.want_write(false) {
            self.end(LinkError::Io(errno(&error)));
        }
    }

    /// Removes `count` bytes from a batch, and puts back the rest.
    fn written(&self, batch: Vec<WaitingFrame>, mut count: usize) {
        let mut left = Vec::with_capacity(batch.len());
        let mut queue = self.queue();
        for mut frame in batch {
            // Descriptors were sent with the first byte.
            queue.fds = queue.fds.saturating_sub(frame.fds.len());
            frame.fds.clear();
            let rest = frame.rest().len();
            if count >= rest {
                count -= rest;
                queue.bytes = queue.bytes.saturating_sub(frame.cost());
            } else {
                frame.sent += std::mem::take(&mut count);
                left.push(frame);
            }
        }
        queue.put_back(left);
        if queue.bytes <= QUEUE_BYTES_MAX / 2 {
            drop(queue);
            self.room.notify_waiters();
        }
    }

    /// Ends sending. What the other process sent before it closed can still be received.
    fn fail(&self, reason: LinkError) -> LinkError {
        if reason == LinkError::Closed {
            self.close_queue(reason);
            return reason;
        }
        self.end(reason)
    }

    fn close_queue(&self, reason: LinkError) {
        let mut queue = self.queue();
        queue.closed.get_or_insert(reason);
        queue.frames.clear();
        queue.bytes = 0;
        queue.fds = 0;
        drop(queue);
        self.room.notify_waiters();
    }

    fn queue(&self) -> MutexGuard<'_, SenderQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SenderQueue {
    /// Queues a frame, if there is room.
    fn push(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), SendError> {
        if let Some(reason) = self.closed {
            return Err(reason.into());
        }
        // Its place is known when it is written.
        let head = frame::header(bytes.len(), fds.len(), 0);
        let cost = WAITING_BYTES + head.len() + bytes.len();
        if self.bytes + cost > QUEUE_BYTES_MAX || self.fds + fds.len() > QUEUE_FDS_MAX {
            return Err(SendError::Full);
        }
        let waiting = WaitingFrame::new([&head, bytes], 0, owned(fds)?);
        self.by_socket += 1;
        self.count(&waiting);
        self.frames.push_back(waiting);
        Ok(())
    }

    /// Puts the unsent rest of a frame first, in any case: only this one may exceed the bound, and
    /// only one is sent at a time.
    fn push_rest(&mut self, waiting: WaitingFrame) -> Result<(), SendError> {
        if let Some(reason) = self.closed {
            return Err(reason.into());
        }
        self.count(&waiting);
        self.frames.push_front(waiting);
        Ok(())
    }

    fn count(&mut self, waiting: &WaitingFrame) {
        self.bytes += waiting.cost();
        self.fds += waiting.fds.len();
    }

    /// Takes the frames of one write. Descriptors can only go with the first byte of a write.
    fn batch(&mut self) -> Vec<WaitingFrame> {
        let later = self.frames.iter().skip(1).take(BATCH_FRAMES - 1);
        let plain = later.take_while(|frame| frame.fds.is_empty()).count();
        let count = (plain + 1).min(self.frames.len());
        self.frames.drain(..count).collect()
    }

    fn put_back(&mut self, batch: Vec<WaitingFrame>) {
        if self.closed.is_none() {
            batch.into_iter().rev().for_each(|frame| self.frames.push_front(frame));
        }
    }
}

impl WaitingFrame {
    fn new(parts: [&[u8]; 2], sent: usize, fds: Vec<OwnedFd>) -> Self {
        Self { bytes: parts.concat(), sent, fds }
    }

    /// A frame that was begun keeps its place.
    fn set_place(&mut self, place: u64) {
        if self.sent == 0 {
            frame::set_place(&mut self.bytes, place);
        }
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Bytes of memory while it is queued, including the part that was sent.
    fn cost(&self) -> usize {
        WAITING_BYTES + self.bytes.len()
    }
}

/// Copies of the descriptors, since the caller closes its own.
fn owned(fds: &[BorrowedFd<'_>]) -> Result<Vec<OwnedFd>, SendError> {
    let clones = fds.iter().map(BorrowedFd::try_clone_to_owned);
    clones.collect::<io::Result<_>>().map_err(|error| SendError::Fds(errno(&error)))
}

pub(super) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
