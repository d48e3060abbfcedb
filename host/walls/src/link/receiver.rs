//! Frames received by one task.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, OwnedFd},
    time::Instant,
};

use super::{
    Frame, LinkError, READ_BYTES, Sender,
    frame::{Assembler, Came},
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
    /// Bytes that were read; those from `begin` to `end` are not yet part of a frame.
    read: Box<[u8]>,
    begin: usize,
    end: usize,
    /// The shared memory, if there is one.
    inlet: Option<Inlet>,
    /// A frame from the socket, with its place behind those of the shared memory.
    held: Option<(Frame, u64)>,
    pub(super) pace: Pace,
    /// The wait for the next frame, once nothing was there.
    wait: Option<Wait>,
}

/// Looks in the shared memory between two looks at the socket, each of which is a system call.
const LOOKS_IN_MEMORY: usize = 64;

/// Where a look looks, and whether it is the last before somebody sleeps.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Reads of the socket that take all there is.
    reads: u8,
    last: bool,
}

impl Look {
    /// Who waits for news of the socket is told of what comes after a read that took all there was.
    /// The other side may have closed the link before that read, and the news of its last bytes and
    /// of its end may have been one: nothing more would come. The second read finds the end.
    const LAST: Self = Self { reads: 2, last: true };
    /// Who asks the kernel if the socket can be read, before it sleeps, is told of the end too.
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
    /// that may send one whose mere closing takes long.
    pub fn refuse_fds(&mut self) {
        self.takes_fds = false;
    }

    /// From now on frames come through shared memory too.
    pub(super) fn attach(&mut self, inlet: Inlet) {
        self.inlet = Some(inlet);
    }

    /// Waits for the next frame, and writes meanwhile what waits to be sent. May be dropped and
    /// called again: nothing is lost.
    ///
    /// Where frames came at short distance lately, it looks again for a short time, letting other
    /// tasks run between, before it sleeps.
    pub async fn receive(&mut self) -> Result<Frame, LinkError> {
        loop {
            // Who sleeps next has asked to be woken before its last look.
            let frame = match &self.wait {
                None => self.look_in_memory()?,
                Some(wait) if wait.looks() => self.look_again()?,
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
            if wait.looks() && self.pace.stays(wait) {
                tokio::task::yield_now().await;
                if let Some(wait) = &mut self.wait {
                    wait.goes_on(Instant::now());
                }
            }
        }
    }

    /// Waits until a look may find something, and writes what waits to be sent.
    async fn ready(&self) -> Result<(), LinkError> {
        let end = &self.sender.0;
        let ready = end.watch.ready().await;
        ready.map_err(|error| end.end(LinkError::Io(errno(&error))))?;
        end.flush();
        Ok(())
    }

    /// The next frame if it is there. Where none is, the other side wakes whoever waits for it.
    pub fn try_receive(&mut self) -> Result<Option<Frame>, LinkError> {
        self.look(Look::LAST)
    }

    /// Is a frame there that came through shared memory?
    ///
    /// # Errors
    /// The memory is broken.
    pub fn has_more(&mut self) -> Result<bool, LinkError> {
        self.inlet.as_mut().map(Inlet::has_more).transpose().map(Option::unwrap_or_default)
    }

    /// As [`try_receive`](Self::try_receive), by one who sleeps until the socket can be read.
    pub(super) fn try_receive_before_poll(&mut self) -> Result<Option<Frame>, LinkError> {
        self.look(Look::ASKS)
    }

    /// A look in the shared memory alone, by one who will look again.
    pub(super) fn look_in_memory(&mut self) -> Result<Option<Frame>, LinkError> {
        self.look(Look::MEMORY)
    }

    /// Do small frames come through shared memory?
    pub(super) fn has_memory(&self) -> bool {
        self.inlet.is_some()
    }

    /// Some looks in a row, by one who will look again. Nobody is woken for what comes.
    pub(super) fn look_again(&mut self) -> Result<Option<Frame>, LinkError> {
        if self.inlet.is_some() {
            for _ in 0..LOOKS_IN_MEMORY {
                if let Some(frame) = self.look(Look::MEMORY)? {
                    return Ok(Some(frame));
                }
                std::hint::spin_loop();
            }
        }
        self.look(Look::SOCKET)
    }

    /// The last look in the shared memory by one who looked there, but left the socket to others.
    pub(super) fn look_in_memory_last(&mut self) -> Result<Option<Frame>, LinkError> {
        self.look(Look::MEMORY_LAST)
    }

    fn look(&mut self, look: Look) -> Result<Option<Frame>, LinkError> {
        if let Some(reason) = self.sender.ended() {
            return Err(reason);
        }
        self.look_within(look).map_err(|reason| self.sender.0.end(reason))
    }

    fn look_within(&mut self, look: Look) -> Result<Option<Frame>, LinkError> {
        if let Some(inlet) = &mut self.inlet
            && !look.last
        {
            inlet.disarm()?;
        }
        let mut reads = look.reads;
        loop {
            if let Some(frame) = self.next_there()? {
                return Ok(Some(frame));
            }
            if look.last
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
            // A read ends at descriptors as well.
            let took_all = self.end < self.read.len() && self.end > 0 && self.fds.is_empty();
            reads -= u8::from(took_all);
        }
    }

    /// The next frame of those that are in the shared memory, or were read from the socket.
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
                Some(Came::Frame { frame, place }) => self.held = Some((frame, place)),
                Some(Came::Wake) => {
                    self.inlet.as_mut().ok_or(LinkError::NotAFrame)?.was_woken()?;
                }
            }
        }
    }

    fn pop(&mut self) -> Result<Option<Frame>, LinkError> {
        let bytes = self.inlet.as_mut().map(Inlet::pop).transpose()?.flatten();
        Ok(bytes.map(|bytes| Frame { bytes, fds: Vec::new() }))
    }

    /// A frame from the socket, once all before it was taken out of the shared memory.
    fn in_place(&mut self, frame: Frame, place: u64) -> Result<Frame, LinkError> {
        if place != self.inlet.as_ref().map_or(0, Inlet::position) {
            return Err(LinkError::Memory);
        }
        self.inlet.as_mut().map(Inlet::took_from_socket).transpose()?;
        Ok(frame)
    }

    fn assemble(&mut self) -> Result<Option<Came>, LinkError> {
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
            // It was closed with something unread on the other side.
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

    /// The wake for the last frame and the end come at once.
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

    /// Whatever looking was worth before, who sleeps is woken.
    #[tokio::test]
    async fn a_receiver_that_may_look_no_more_is_woken() {
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
