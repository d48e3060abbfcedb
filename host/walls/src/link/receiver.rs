//! Frames received by one task. Must not hold: what is done with them.

use std::{
    collections::VecDeque,
    os::fd::{AsFd, OwnedFd},
    time::Instant,
};

use super::{
    Frame, LinkError, READ_BYTES, Sender,
    frame::Assembler,
    pace::{Pace, Wait},
    sender::errno,
    socket,
};

/// The half of a link that receives. Dropping it ends the link.
#[derive(Debug)]
pub struct Receiver {
    sender: Sender,
    assembler: Assembler,
    fds: VecDeque<OwnedFd>,
    /// Bytes that were read; those from `begin` to `end` are not yet part of a frame.
    read: Box<[u8]>,
    begin: usize,
    end: usize,
    pub(super) pace: Pace,
    /// The wait for the next frame, once nothing was there.
    wait: Option<Wait>,
}

impl Receiver {
    pub(super) fn new(sender: Sender) -> Self {
        Self {
            sender,
            assembler: Assembler::default(),
            fds: VecDeque::new(),
            read: vec![0; READ_BYTES].into_boxed_slice(),
            begin: 0,
            end: 0,
            pace: Pace::default(),
            wait: None,
        }
    }

    /// The half that sends on the same link.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Waits for the next frame, and writes meanwhile what waits to be sent. May be dropped and
    /// called again: nothing is lost.
    ///
    /// Where frames came at short distance lately, it looks again for a short time, letting other
    /// tasks run between, before it sleeps.
    pub async fn receive(&mut self) -> Result<Frame, LinkError> {
        loop {
            if let Some(frame) = self.try_receive()? {
                if let Some(wait) = self.wait.take() {
                    self.pace.ended(&wait, Instant::now());
                }
                return Ok(frame);
            }
            let wait = self.wait.get_or_insert_with(|| self.pace.wait(Instant::now()));
            if self.pace.looks_again(wait, Instant::now()) {
                // The core, if the one that is to send waits for it, and then this thread's tasks.
                std::thread::yield_now();
                tokio::task::yield_now().await;
            } else {
                self.ready().await?;
            }
        }
    }

    /// Waits until a look may find something, and writes what waits to be sent.
    pub(super) async fn ready(&self) -> Result<(), LinkError> {
        let end = &self.sender.0;
        let ready = end.watch.ready().await;
        ready.map_err(|error| end.end(LinkError::Io(errno(&error))))?;
        end.flush();
        Ok(())
    }

    /// The next frame if it is there.
    pub fn try_receive(&mut self) -> Result<Option<Frame>, LinkError> {
        if let Some(reason) = self.sender.ended() {
            return Err(reason);
        }
        self.look().map_err(|reason| self.sender.0.end(reason))
    }

    fn look(&mut self) -> Result<Option<Frame>, LinkError> {
        loop {
            let mut input = self.read.get(self.begin..self.end).unwrap_or_default();
            let before = input.len();
            let frame = self.assembler.feed(&mut input, &mut self.fds)?;
            self.begin += before - input.len();
            if frame.is_some() {
                return Ok(frame);
            }
            self.assembler.check_fds(self.fds.len())?;
            let socket = self.sender.0.watch.socket().as_fd();
            match socket::read(socket, &mut self.read, &mut self.fds)? {
                None => return Ok(None),
                Some(0) if self.assembler.is_empty() => return Err(LinkError::Closed),
                Some(0) => return Err(LinkError::CutShort),
                Some(count) => (self.begin, self.end) = (0, count),
            }
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.sender.close();
    }
}
