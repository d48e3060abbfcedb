//! Threads with other duties: those that read the protocol and drive connections run a guest only
//! as long as that takes next to nothing. A host call that may take longer leaves them first.
use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use std::thread::LocalKey;

thread_local! {
    /// True if this thread has other duties than the guest that it polls.
    static HAS_DUTIES: Cell<bool> = const { Cell::new(false) };
    /// True if a call that is sent from here must not wait here for its answer.
    static HURRIES: Cell<bool> = const { Cell::new(false) };
    /// True if a host call asked for another thread.
    static LEAVES: Cell<bool> = const { Cell::new(false) };
}

/// Does this on a thread that has other duties. Host calls that may take more than 100 µs wait
/// there until their guest is polled elsewhere. The code that polls the guest asks [`leaves`]
/// afterwards.
pub fn with_other_duties<T>(work: impl FnOnce() -> T) -> T {
    with_flag(&HAS_DUTIES, work)
}

/// Does this on a thread that others wait for: calls that it sends do not wait here for their
/// answers, not even for the moment after which most come.
pub fn without_waiting<T>(work: impl FnOnce() -> T) -> T {
    with_flag(&HURRIES, work)
}

/// Does this while a flag of the thread is set.
fn with_flag<T>(flag: &'static LocalKey<Cell<bool>>, work: impl FnOnce() -> T) -> T {
    /// Restores the flag, however the work ends.
    struct FlaggedWork {
        flag: &'static LocalKey<Cell<bool>>,
        before: bool,
    }
    impl Drop for FlaggedWork {
        fn drop(&mut self) {
            self.flag.set(self.before);
        }
    }
    let _restores = FlaggedWork { flag, before: flag.replace(true) };
    work()
}

/// True if a call may wait a moment on this thread.
pub(super) fn may_wait() -> bool {
    !HURRIES.get()
}

/// True if the guest that was just polled must continue on another thread, and stay there. It has
/// been woken, and makes no progress here. Asking resets the answer.
#[must_use]
pub fn leaves() -> bool {
    LEAVES.take()
}

/// Returns on a thread without other duties. The code that polls this asks [`leaves`] and moves it.
pub async fn leave() {
    poll_fn(|context| {
        if !HAS_DUTIES.get() {
            return Poll::Ready(());
        }
        LEAVES.set(true);
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn who_leaves_goes_on_where_nothing_else_is_to_be_done() {
        let mut left = pin!(leave());
        let context = &mut Context::from_waker(Waker::noop());
        for _ in 0..2 {
            assert!(with_other_duties(|| left.as_mut().poll(context)).is_pending());
            assert!(leaves() && !leaves(), "it is said once");
        }
        assert!(left.poll(context).is_ready());
        assert!(!leaves());
    }

    #[test]
    fn calls_may_wait_but_where_others_wait_for_the_thread() {
        assert!(may_wait());
        let inner = without_waiting(|| [may_wait(), without_waiting(may_wait), may_wait()]);
        assert_eq!((inner, may_wait()), ([false; 3], true));
        let panicked = std::panic::catch_unwind(|| without_waiting(|| std::panic::resume_unwind(Box::new(()))));
        assert!(panicked.is_err() && may_wait());
    }

    #[test]
    fn duties_end_with_a_panic_too() {
        let panicked = std::panic::catch_unwind(|| with_other_duties(|| std::panic::resume_unwind(Box::new(()))));
        assert!(panicked.is_err() && !HAS_DUTIES.get());
    }
}
