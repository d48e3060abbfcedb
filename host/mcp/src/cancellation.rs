//! The flag that stops a call. It can be read and awaited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;
use toolcell_schema::GivenUp;

/// Signals one call that its caller has given up, or that the server is shutting down. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    shared: Arc<CancelState>,
}

#[derive(Debug, Default)]
struct CancelState {
    cancelled: AtomicBool,
    notify: Notify,
}

impl Cancellation {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// True once the call was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    /// True if both are the same flag.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Waits for the cancellation; returns at once if it has happened.
    pub async fn cancelled(&self) {
        // Created before the flag is read, so that a cancellation in between is not missed.
        let notified = self.shared.notify.notified();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    /// The flag in the form that checks of arguments and results take.
    #[must_use]
    pub fn given_up(&self) -> Arc<dyn GivenUp> {
        Arc::<CancelState>::clone(&self.shared)
    }

    /// Cancels the call. Cannot be undone.
    pub fn cancel(&self) {
        if !self.shared.cancelled.swap(true, Ordering::AcqRel) {
            self.shared.notify.notify_waiters();
        }
    }
}

impl GivenUp for CancelState {
    fn is_given_up(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}
