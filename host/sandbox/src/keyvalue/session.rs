//! One call's use of its component's state: the file is kept open for it, and what it wrote is settled when it ends,
//! before its answer is given.
use std::sync::Arc;

use super::database::{Mark, Visit};
use super::error::{Fault, Refusal};
use super::store::Store;

/// Nothing until the call opens a bucket. A component has one store, so there is one visit and one mark.
#[derive(Debug, Default)]
pub(crate) struct Session {
    visit: Option<(Arc<Store>, Visit)>,
    mark: Option<Mark>,
}

impl Session {
    /// The call uses the store, which [`Session::entered`] was not told of: an instance that serves call after call has
    /// its buckets from an earlier one. Waits, on the guest's thread, where the file is closed.
    pub(super) fn enter(&mut self, store: &Arc<Store>) -> Result<(), Refusal> {
        if self.visit.is_none() {
            self.visit = Some((Arc::clone(store), store.enter()?));
        }
        Ok(())
    }

    /// The call uses the store, which was entered elsewhere.
    pub(super) fn entered(&mut self, store: &Arc<Store>, visit: Visit) {
        self.visit = Some((Arc::clone(store), visit));
    }

    /// Whether the call uses a store.
    pub(super) fn is_open(&self) -> bool {
        self.visit.is_some()
    }

    /// The call wrote.
    pub(super) fn wrote(&mut self, mark: Mark) {
        self.mark = Some(self.mark.map_or(mark, |before| before.and(mark)));
    }

    /// The call has ended. Returns once the disk has all that it wrote; waits on a thread that guests do not run on.
    ///
    /// # Errors
    /// [`Fault`] where the disk has not: the call's answer must not be given.
    pub(crate) async fn settle(&mut self) -> Result<(), Fault> {
        let (visit, mark) = (self.visit.take(), self.mark.take());
        let (Some((store, visit)), Some(mark)) = (visit, mark) else { return Ok(()) };
        let settled = tokio::task::spawn_blocking(move || {
            let settled = store.settle(mark);
            drop(visit);
            settled
        });
        settled.await.unwrap_or_else(|error| Err(Fault::Closed(error.to_string())))
    }
}

impl Drop for Session {
    /// A call that was given up keeps what it wrote as well, only nobody waits for it.
    fn drop(&mut self) {
        if let (Some((store, visit)), Some(mark)) = (self.visit.take(), self.mark.take())
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn_blocking(move || {
                // Nobody is left to be told.
                let _ = store.settle(mark);
                drop(visit);
            });
        }
    }
}
