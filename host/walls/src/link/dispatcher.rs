//! Frames dispatched as they arrive, by a background task or by the thread that waits for one.

use std::{
    fmt,
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use super::{
    Frame, LinkError, Receiver, Sender,
    sender::errno,
    socket,
    turn::{TakenTurn, Turn},
};

/// Frames dispatched before others get a turn: a flood on one link must not hold up the tasks of
/// others, and the clock is checked in between.
const FRAMES_AT_ONCE: usize = 64;

/// Receives on a link and passes each frame to a function, one at a time and in order.
///
/// [`run`](Self::run) does that in the background. A thread that has sent a request may do it for a
/// short time with [`drive`](Self::drive), so that no other thread is woken for the reply.
pub struct Dispatcher<F> {
    sender: Sender,
    receiver: Mutex<Receiver>,
    reading: Turn,
    /// Wakes the background task for what the watch will not report again.
    handed_over: Notify,
    dispatch: F,
}

impl<F: Fn(Frame) + Send + Sync> Dispatcher<F> {
    /// Takes the receiving half. The function must not block; it may send.
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

    /// Receives until the link ends, and returns why it did. One task does this.
    pub async fn run(&self) -> LinkError {
        loop {
            self.sender.0.flush();
            match self.read() {
                Ok(false) => self.wait().await,
                Ok(true) => tokio::task::yield_now().await,
                Err(reason) => return reason,
            }
        }
    }

    /// Receives on this thread until `until` is true, for at most `limit`. The rest, and what comes
    /// later, goes to the background task. Returns the last value of `until`.
    ///
    /// It polls for up to [`POLL_TIME_MAX`](super::POLL_TIME_MAX) if that paid lately, and sleeps
    /// for the rest. While another thread receives it does nothing: that thread dispatches the
    /// frames for all.
    pub fn drive(&self, limit: Duration, until: impl Fn() -> bool) -> bool {
        if let Some(turn) = self.reading.try_enter() {
            let mut driving = Driving { dispatcher: self, turn: Some(turn), unwatched: false };
            driving.drive(limit, &until);
            driving.end();
        }
        until()
    }

    /// Dispatches what is there, and is true if more is. While another thread receives, that one
    /// polls again instead. If no more is there, the background task is notified of the next frame.
    fn read(&self) -> Result<bool, LinkError> {
        let mut turn = self.reading.enter();
        while let Some(taken) = turn {
            if self.hand_out(FRAMES_AT_ONCE, Receiver::try_receive)? == FRAMES_AT_ONCE {
                return Ok(true);
            }
            turn = taken.leave();
        }
        Ok(false)
    }

    /// Polls for one frame. `again` is true if the caller will poll again, false if it sleeps next.
    fn poll(&self, again: bool) -> Result<bool, LinkError> {
        let look = if again { Receiver::poll_again } else { Receiver::try_receive_before_poll };
        Ok(self.hand_out(1, look)? == 1)
    }

    /// Dispatches what this finds, up to so many frames. Returns their number.
    fn hand_out(
        &self,
        frames: usize,
        look: impl Fn(&mut Receiver) -> Result<Option<Frame>, LinkError>,
    ) -> Result<usize, LinkError> {
        let mut receiver = self.receiver();
        for at in 0..frames {
            match look(&mut receiver)? {
                Some(frame) => (self.dispatch)(frame),
                None => return Ok(at),
            }
        }
        Ok(frames)
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

    /// Only called by the holder of the turn.
    fn receiver(&self) -> MutexGuard<'_, Receiver> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that receives. It is not notified of frames in the shared memory, which it polls; those
/// on the socket wake the background task until the watch is switched off.
struct Driving<'a, F: Fn(Frame) + Send + Sync> {
    dispatcher: &'a Dispatcher<F>,
    turn: Option<TakenTurn<'a>>,
    unwatched: bool,
}

impl<F: Fn(Frame) + Send + Sync> Driving<'_, F> {
    /// Errors are ignored here: the background task meets the same one and reports it.
    fn drive(&mut self, limit: Duration, until: &impl Fn() -> bool) {
        let begun = Instant::now();
        let dispatcher = self.dispatcher;
        let (mut wait, has_memory) = {
            let receiver = dispatcher.receiver();
            (receiver.pace.wait(begun), receiver.has_memory())
        };
        while !until() {
            if !(wait.polls() && has_memory) {
                self.unwatch();
            }
            let Ok(found) = dispatcher.poll(wait.polls()) else {
                return;
            };
            let now = Instant::now();
            let left = limit.saturating_sub(now - begun);
            if left.is_zero() {
                return;
            }
            if found {
                continue;
            }
            if !wait.polls() {
                if socket::sleep(dispatcher.sender.0.watch.socket(), left).is_err() {
                    return;
                }
            } else {
                dispatcher.receiver().pace.stays(&mut wait);
            }
        }
        dispatcher.receiver().pace.ended(&wait, Instant::now());
    }

    fn unwatch(&mut self) {
        if !std::mem::replace(&mut self.unwatched, true) {
            self.dispatcher.watch(false);
        }
    }

    /// Dispatches whatever came before the background task gets notified again, or notifies the
    /// task now.
    fn end(mut self) {
        let dispatcher = self.dispatcher;
        if self.unwatched {
            dispatcher.watch(true);
        }
        // The background task handles frames that come over the socket, if its watch was always on.
        let look = if self.unwatched { Receiver::try_receive } else { Receiver::poll_memory_last };
        let all = dispatcher.hand_out(FRAMES_AT_ONCE, look).is_ok_and(|frames| frames < FRAMES_AT_ONCE);
        let asked = self.turn.take().is_some_and(TakenTurn::leave_anyway);
        if asked || !all {
            dispatcher.handed_over.notify_one();
        }
    }
}

impl<F: Fn(Frame) + Send + Sync> Drop for Driving<'_, F> {
    /// If the function that gets frames panicked, the background task continues.
    fn drop(&mut self) {
        if self.turn.take().is_some() {
            self.dispatcher.watch(true);
            self.dispatcher.handed_over.notify_one();
        }
    }
}

/// A thread that receives on a link along with its other work, for as long as this lives. No other
/// thread is woken meanwhile.
///
/// It must call [`poll`](Self::poll) repeatedly. Before it sleeps it must [`arm`](Self::arm), and
/// poll the [`socket`](Self::socket). Once that is readable it must [`read`](Self::read).
pub struct Attending<F: Fn(Frame) + Send + Sync>(Arc<Dispatcher<F>>);

impl<F: Fn(Frame) + Send + Sync> Attending<F> {
    /// `None` while another thread receives.
    pub fn begin(dispatcher: &Arc<Dispatcher<F>>) -> Option<Self> {
        dispatcher.reading.try_take().then(|| {
            dispatcher.watch(false);
            Self(Arc::clone(dispatcher))
        })
    }

    /// The dispatcher.
    pub fn dispatcher(&self) -> &Arc<Dispatcher<F>> {
        &self.0
    }

    /// Readable once something came over the socket, or the other process woke this one.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.0.sender.0.watch.socket().as_fd()
    }

    /// Dispatches what came through the shared memory. True if something did.
    ///
    /// # Errors
    /// The link ended. The background task returns the error, too, once this is dropped.
    pub fn poll(&self) -> Result<bool, LinkError> {
        self.hand_out(Receiver::poll_memory)
    }

    /// Polls the shared memory once more, and asks to be woken for the next frame. True if
    /// something came; then it did not ask.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    pub fn arm(&self) -> Result<bool, LinkError> {
        self.hand_out(Receiver::poll_memory_last)
    }

    /// Dispatches all that came, including over the socket. True if something did.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    pub fn read(&self) -> Result<bool, LinkError> {
        self.0.sender.0.flush();
        self.hand_out(Receiver::try_receive_before_poll)
    }

    fn hand_out(&self, look: impl Fn(&mut Receiver) -> Result<Option<Frame>, LinkError>) -> Result<bool, LinkError> {
        Ok(self.0.hand_out(FRAMES_AT_ONCE, look)? > 0)
    }
}

impl<F: Fn(Frame) + Send + Sync> Drop for Attending<F> {
    /// The background task polls for what came before the watch was on again.
    fn drop(&mut self) {
        self.0.watch(true);
        self.0.reading.give_back();
        self.0.handed_over.notify_one();
    }
}

impl<F> fmt::Debug for Dispatcher<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Dispatcher").field("sender", &self.sender).finish_non_exhaustive()
    }
}
