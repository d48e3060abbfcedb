//! The clock that makes computing guests yield. It ticks only while calls run.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a guest computes, roughly, before it yields its worker thread. One millisecond keeps a
/// short call behind eight endless loops on two workers in the low milliseconds. A tick costs a
/// thread wake-up and one atomic add.
const TICK: Duration = Duration::from_millis(1);

/// Ticks without a call after which the clock stops until the next call. So a host that answers one
/// call after the other does not wake the clock for each.
const IDLE_TICKS: u32 = 100;

struct ClockShared {
    calls: AtomicUsize,
    state: Mutex<ClockState>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClockState {
    Asleep,
    Ticking,
    Closed,
}

/// Owns the ticking thread; dropping it ends the thread.
pub(crate) struct EpochClock {
    shared: Arc<ClockShared>,
    thread: Option<JoinHandle<()>>,
}

/// The clock ticks while one of these lives, unless a [`Resting`] of it lives too.
pub(crate) struct Running(Arc<ClockShared>);

/// While one of these lives, its [`Running`] does not count.
pub(crate) struct Resting(Arc<ClockShared>);

/// The clock of a running call, for code that lets the call rest.
#[derive(Clone)]
pub(crate) struct RunningAt(Arc<ClockShared>);

impl EpochClock {
    pub(crate) fn start(tick: impl Fn() + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(ClockShared {
            calls: AtomicUsize::new(0),
            state: Mutex::new(ClockState::Asleep),
            changed: Condvar::new(),
        });
        let ticking = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("toolcell-epoch".to_owned())
            .spawn(move || tick_while_open(&ticking, &tick))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Marks one call as running.
    pub(crate) fn running(&self) -> Running {
        self.shared.begin();
        Running(Arc::clone(&self.shared))
    }
}

impl ClockShared {
    fn begin(&self) {
        if self.calls.fetch_add(1, Ordering::SeqCst) == 0 {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if *state == ClockState::Asleep {
                *state = ClockState::Ticking;
                self.changed.notify_one();
            }
        }
    }
}

impl Running {
    /// A handle for letting the call rest.
    pub(crate) fn place(&self) -> RunningAt {
        RunningAt(Arc::clone(&self.0))
    }
}

impl RunningAt {
    /// Marks the call as waiting, perhaps for minutes: it computes nothing until the result is
    /// dropped. Its [`Running`] must outlive the result.
    pub(crate) fn rest(&self) -> Resting {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
        Resting(Arc::clone(&self.0))
    }
}

impl Drop for Resting {
    fn drop(&mut self) {
        self.0.begin();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for EpochClock {
    fn drop(&mut self) {
        *self.shared.state.lock().unwrap_or_else(PoisonError::into_inner) = ClockState::Closed;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // If the thread panicked there is nothing left to end.
            let _ = thread.join();
        }
    }
}

fn tick_while_open(shared: &ClockShared, tick: &dyn Fn()) {
    let mut idle = 0;
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        state = match *state {
            ClockState::Closed => return,
            ClockState::Asleep => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            ClockState::Ticking => shared.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0,
        };
        if *state == ClockState::Ticking {
            tick();
            idle = if shared.calls.load(Ordering::SeqCst) == 0 { idle + 1 } else { 0 };
            // The state changes under the lock that `running` takes after counting itself. So a
            // call that starts here either is seen in `calls` or wakes the clock again.
            if idle >= IDLE_TICKS {
                *state = ClockState::Asleep;
                idle = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::EpochClock;

    #[test]
    fn the_clock_ticks_while_a_call_runs_and_ends_with_its_owner() {
        let (ticked, ticks) = mpsc::channel();
        let clock = EpochClock::start(move || ticked.send(()).unwrap_or_default()).unwrap();
        assert!(ticks.try_recv().is_err(), "no call, no tick");
        let running = clock.running();
        ticks.recv().unwrap();
        ticks.recv().unwrap();
        drop(running);
        drop(clock);
        assert!(ticks.iter().count() < 1_000, "the thread that held the sender is gone");
    }
}
