//! Frames received by one task.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, OwnedFd},
    time::Instant,
};

use super::{
    Frame, LinkError, READ_BYTES, Sender,
    frame::{Assembler, FrameCame},
    pace::{Pace, Wait},
    ring::Inlet,
    sender::errno,
    socket,
};

/// The half of a link that receives. Dropping it ends the link.
#[derive(Debug)]
pub struct Receiver {
    sender: Sender,
    assembler: Assembler,
    fds: VecDeque<OwnedFd>,
    takes_fds: bool,
    /// Bytes that were read. Those from `begin` to `end` are not part of a frame yet.
    read: Box<[u8]>,
    begin: usize,
    end: usize,
    /// The shared memory, if there is one.
    inlet: Option<Inlet>,
    /// A frame from the socket, with its place relative to the shared memory.
    held: Option<(Frame, u64)>,
    pub(super) pace: Pace,
    /// The wait for the next frame, after a poll found nothing.
    wait: Option<Wait>,
}

/// Polls of the shared memory between two polls of the socket, which are system calls.
const POLLS_OF_MEMORY: usize = 64;

/// What a poll reads, and whether the caller sleeps next.
#[derive(Debug, Clone, Copy)]
struct Poll {
    /// Reads of the socket that drain it.
    reads: u8,
    last: bool,
}

impl Poll {
    /// With edge-triggered readiness, only what comes after a complete read is reported. The other
    /// side may have closed the link before that read, with one event for its last bytes and its
    /// end: then no more events would come. The second read finds the end.
    const LAST: Self = Self { reads: 2, last: true };
    /// Asking the kernel for readability before sleeping also reports the end.
    const ASKS: Self = Self { reads: 1, last: true };
    const SOCKET: Self = Self { reads: 1, last: false };
    const MEMORY: Self = Self { reads: 0, last: false };
    const MEMORY_LAST: Self = Self { reads: 0, last: true };
}

impl Receiver {
    pub(super) fn new(sender: Sender) -> Self {
        Self {
            sender,
            assembler: Assembler::default(),
            fds: VecDeque::new(),
            takes_fds: true,
            read: vec![0; READ_BYTES].into_boxed_slice(),
            begin: 0,
            end: 0,
            inlet: None,
            held: None,
            pace: Pace::default(),
            wait: None,
        }
    }

    /// The half that sends on the same link.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Ends the link as soon as a descriptor comes: for a side that expects none, from a process
    /// that may send one that takes long to close.
    pub fn refuse_fds(&mut self) {
        self.takes_fds = false;
    }

    /// From now on frames also come through shared memory.
    pub(super) fn attach(&mut self, inlet: Inlet) {
        self.inlet = Some(inlet);
    }

    /// Waits for the next frame, and writes queued frames meanwhile. Cancel safe.
    ///
    /// If frames came in quick succession lately, it polls for a short time before it sleeps,
    /// letting other tasks run in between.
    pub async fn receive(&mut self) -> Result<Frame, LinkError> {
        loop {
            // Before sleeping it asks to be woken, then polls a last time.
            let frame = match &self.wait {
                None => self.poll_memory()?,
                Some(wait) if wait.polls() => self.poll_again()?,
                Some(_) => match self.try_receive()? {
                    None => {
                        self.ready().await?;
                        continue;
                    }
                    frame => frame,
                },
            };
            if let Some(frame) = frame {
                if let Some(wait) = self.wait.take() {
                    self.pace.ended(&wait, Instant::now());
                }
                return Ok(frame);
            }
            let wait = self.wait.get_or_insert_with(|| self.pace.wait(Instant::now()));
            if wait.polls() && self.pace.stays(wait) {
                tokio::task::yield_now().await;
                if let Some(wait) = &mut self.wait {
                    wait.goes_on(Instant::now());
                }
            }
        }
    }

    /// Waits until polling may find something, and writes queued frames.
    async fn ready(&self) -> Result<(), LinkError> {
        let end = &self.sender.0;
        let ready = end.watch.ready().await;
        ready.map_err(|error| end.end(LinkError::Io(errno(&error))))?;
        end.flush();
        Ok(())
    }

    /// The next frame if it is there. Otherwise the other side will wake the caller for it.
    pub fn try_receive(&mut self) -> Result<Option<Frame>, LinkError> {
        self.poll(Poll::LAST)
    }

    /// True if a frame is in the shared memory.
    ///
    /// # Errors
    /// The memory is broken.
    pub fn has_more(&mut self) -> Result<bool, LinkError> {
        self.inlet.as_mut().map(Inlet::has_more).transpose().map(Option::unwrap_or_default)
    }

    /// Like [`try_receive`](Self::try_receive), for a caller that sleeps until the socket is
    /// readable.
    pub(super) fn try_receive_before_poll(&mut self) -> Result<Option<Frame>, LinkError> {
        self.poll(Poll::ASKS)
    }

    /// Polls only the shared memory, for a caller that will poll again.
    pub(super) fn poll_memory(&mut self) -> Result<Option<Frame>, LinkError> {
        self.poll(Poll::MEMORY)
    }

    /// True if small frames come through shared memory.
    pub(super) fn has_memory(&self) -> bool {
        self.inlet.is_some()
    }

    /// Polls several times, for a caller that will poll again. It does not ask to be woken.
    pub(super) fn poll_again(&mut self) -> Result<Option<Frame>, LinkError> {
        if self.inlet.is_some() {
            for _ in 0..POLLS_OF_MEMORY {
                if let Some(frame) = self.poll(Poll::MEMORY)? {
                    return Ok(Some(frame));
                }
                std::hint::spin_loop();
            }
        }
        self.poll(Poll::SOCKET)
    }

    /// The last poll of the shared memory by a caller that leaves the socket to others.
    pub(super) fn poll_memory_last(&mut self) -> Result<Option<Frame>, LinkError> {
        self.poll(Poll::MEMORY_LAST)
    }

    fn poll(&mut self, poll: Poll) -> Result<Option<Frame>, LinkError> {
        if let Some(reason) = self.sender.ended() {
            return Err(reason);
        }
        self.poll_within(poll).map_err(|reason| self.sender.0.end(reason))
    }

    fn poll_within(&mut self, poll: Poll) -> Result<Option<Frame>, LinkError> {
        if let Some(inlet) = &mut self.inlet
            && !poll.last
        {
            inlet.disarm()?;
        }
        let mut reads = poll.reads;
        loop {
            if let Some(frame) = self.next_there()? {
                return Ok(Some(frame));
            }
            if poll.last
                && let Some(inlet) = &mut self.inlet
            {
                inlet.arm()?;
                if let Some(frame) = self.pop()? {
                    return Ok(Some(frame));
                }
            }
            if reads == 0 || !self.read_socket()? {
                return Ok(None);
            }
            // A read also ends at descriptors.
            let took_all = self.end < self.read.len() && self.end > 0 && self.fds.is_empty();
            reads -= u8::from(took_all);
        }
    }

    /// The next frame from the shared memory, or from what was read from the socket.
    fn next_there(&mut self) -> Result<Option<Frame>, LinkError> {
        loop {
            if let Some(frame) = self.pop()? {
                return Ok(Some(frame));
            }
            if let Some((frame, place)) = self.held.take() {
                return self.in_place(frame, place).map(Some);
            }
            match self.assemble()? {
                None => return Ok(None),
                Some(FrameCame::Frame { frame, place }) => self.held = Some((frame, place)),
                Some(FrameCame::Wake) => {
                    self.inlet.as_mut().ok_or(LinkError::NotAFrame)?.was_woken()?;
                }
            }
        }
    }

    fn pop(&mut self) -> Result<Option<Frame>, LinkError> {
        let bytes = self.inlet.as_mut().map(Inlet::pop).transpose()?.flatten();
        Ok(bytes.map(|bytes| Frame { bytes, fds: Vec::new() }))
    }

    /// A frame from the socket, once all earlier ones were taken from the shared memory.
    fn in_place(&mut self, frame: Frame, place: u64) -> Result<Frame, LinkError> {
        if place != self.inlet.as_ref().map_or(0, Inlet::position) {
            return Err(LinkError::Memory);
        }
        self.inlet.as_mut().map(Inlet::took_from_socket).transpose()?;
        Ok(frame)
    }

    fn assemble(&mut self) -> Result<Option<FrameCame>, LinkError> {
        let mut input = self.read.get(self.begin..self.end).unwrap_or_default();
        let before = input.len();
        let came = self.assembler.feed(&mut input, &mut self.fds)?;
        self.begin += before - input.len();
        Ok(came)
    }

    /// Reads from the socket once. False if nothing is there.
    fn read_socket(&mut self) -> Result<bool, LinkError> {
        self.assembler.check_fds(self.fds.len())?;
        let socket = self.sender.0.watch.socket().as_fd();
        let count = match socket::read(socket, &mut self.read, &mut self.fds) {
            // The other side closed it with unread data.
            Err(LinkError::Closed) => 0,
            Err(reason) => return Err(reason),
            Ok(None) => return Ok(false),
            Ok(Some(count)) => count,
        };
        if !self.takes_fds && !self.fds.is_empty() {
            return Err(LinkError::FdsUnasked);
        }
        (self.begin, self.end) = (0, count);
        match count {
            // What was put into the shared memory before the end comes first.
            0 if self.inlet.as_mut().map(Inlet::has_more).transpose()?.unwrap_or(false) => Ok(true),
            0 if self.assembler.is_empty() => Err(LinkError::Closed),
            0 => Err(LinkError::CutShort),
            _ => Ok(true),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.sender.close();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::super::{join, open, pair};
    use super::*;

    /// The wake-up for the last frame and the end come at once.
    #[tokio::test]
    async fn who_is_woken_by_the_last_frame_is_told_of_the_end() {
        let (ours, theirs) = pair().unwrap();
        let (_sender, mut here) = open(ours).unwrap();
        let there = join(theirs).await.unwrap();
        // It sleeps before the other side begins, on the same thread.
        let ends = async {
            there.0.send(b"last", &[]).unwrap();
            drop(there);
        };
        let (last, ()) = tokio::join!(here.receive(), ends);
        assert_eq!(last.unwrap().bytes, b"last");
        let end = tokio::time::timeout(Duration::from_secs(60), here.receive()).await;
        assert_eq!(end.unwrap().err(), Some(LinkError::Closed));
    }

    /// Whatever polling was worth before, a sleeping receiver is woken.
    #[tokio::test]
    async fn a_receiver_that_may_poll_no_more_is_woken() {
        let (ours, theirs) = pair().unwrap();
        let (sender, _here) = open(ours).unwrap();
        let (_, mut there) = join(theirs).await.unwrap();
        for spent in [false, true] {
            there.pace = if spent { Pace::spent(Instant::now() + Duration::from_secs(3_600)) } else { Pace::default() };
            let receives = async { there.receive().await.map(|frame| frame.bytes) };
            let sends = async {
                // It sleeps by then.
                tokio::time::sleep(Duration::from_millis(20)).await;
                sender.send(b"late", &[]).unwrap();
            };
            let both = async { tokio::join!(receives, sends) };
            let (received, ()) = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
            assert_eq!(received.unwrap(), b"late");
        }
    }
}
