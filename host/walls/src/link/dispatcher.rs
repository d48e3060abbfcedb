//! Frames handed out as they come, by a background task or by the thread that waits for one. Must
//! not hold: what frames mean.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use super::{
    Frame, LinkError, Receiver, Sender,
    sender::errno,
    turn::{Taken, Turn},
};

/// Frames handed out before others get a turn: a flood on one link does not hold up the tasks of
/// others, and the clock is looked at in between.
const FRAMES_AT_ONCE: usize = 64;

/// Receives on a link and hands each frame to a function, one at a time and in order.
///
/// [`run`](Self::run) does so in the background. A thread that has sent a request may do it too,
/// for a short time, with [`drive`](Self::drive): then nobody has to be woken for the reply.
pub struct Dispatcher<F> {
    sender: Sender,
    receiver: Mutex<Receiver>,
    reading: Turn,
    /// Wakes the background task for what the watch will not tell again.
    handed_over: Notify,
    dispatch: F,
}

/// The end of a turn of reading.
enum Read {
    /// Nothing more is there.
    All,
    /// More is there.
    More,
}

impl<F: Fn(Frame) + Send + Sync> Dispatcher<F> {
    /// Takes the receiving half. The function must not wait; it may send.
    pub fn new(receiver: Receiver, dispatch: F) -> Self {
        Self {
            sender: receiver.sender().clone(),
            receiver: Mutex::new(receiver),
            reading: Turn::default(),
            handed_over: Notify::new(),
            dispatch,
        }
    }

    /// The half that sends.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Receives until the link ends, and says why it did. One task does this.
    pub async fn run(&self) -> LinkError {
        loop {
            self.sender.0.flush();
            match self.read() {
                Ok(Read::All) => self.wait().await,
                Ok(Read::More) => tokio::task::yield_now().await,
                Err(reason) => return reason,
            }
        }
    }

    /// Receives on this thread until `until` is true, for at most `limit`; what is there by then,
    /// and what comes later, goes to the background task. Returns what `until` says.
    ///
    /// Does nothing while another thread receives: that one hands out the frames of all.
    pub fn drive(&self, limit: Duration, until: impl Fn() -> bool) -> bool {
        if let Some(turn) = self.reading.try_enter() {
            let begun = Instant::now();
            self.watch(false);
            while !until() && begun.elapsed() < limit {
                match self.read_within(1) {
                    Ok(Read::More) => {}
                    Ok(Read::All) => std::hint::spin_loop(),
                    Err(_) => break,
                }
            }
            self.watch(true);
            self.hand_over(turn);
        }
        until()
    }

    /// After the watch was switched on again: whatever came before is handed out here, or the
    /// background task is told.
    fn hand_over(&self, turn: Taken<'_>) {
        let all = matches!(self.read_within(FRAMES_AT_ONCE), Ok(Read::All));
        let asked = turn.leave_anyway();
        if asked || !all {
            self.handed_over.notify_one();
        }
    }

    /// Hands out what is there. While another thread receives, that one looks again instead.
    fn read(&self) -> Result<Read, LinkError> {
        let mut turn = self.reading.enter();
        while let Some(taken) = turn {
            if let Read::More = self.read_within(FRAMES_AT_ONCE)? {
                return Ok(Read::More);
            }
            turn = taken.leave();
        }
        Ok(Read::All)
    }

    /// Hands out up to `frames` frames.
    fn read_within(&self, frames: usize) -> Result<Read, LinkError> {
        let mut receiver = self.receiver();
        for _ in 0..frames {
            match receiver.try_receive()? {
                Some(frame) => (self.dispatch)(frame),
                None => return Ok(Read::All),
            }
        }
        Ok(Read::More)
    }

    async fn wait(&self) {
        let watch = &self.sender.0.watch;
        tokio::select! {
            ready = watch.ready() => if let Err(error) = ready {
                self.sender.0.end(LinkError::Io(errno(&error)));
            },
            () = self.handed_over.notified() => {}
        }
    }

    fn watch(&self, on: bool) {
        if let Err(error) = self.sender.0.watch.want_read(on) {
            self.sender.0.end(LinkError::Io(errno(&error)));
        }
    }

    /// Only who has the turn comes here.
    fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> fmt::Debug for Dispatcher<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Dispatcher").field("sender", &self.sender).finish_non_exhaustive()
    }
}
