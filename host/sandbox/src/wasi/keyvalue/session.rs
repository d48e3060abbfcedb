//! One call's use of its component's state. The file is kept open for it, and its writes are
//! settled when it ends, before its answer is given.
use std::sync::Arc;

use super::database::{Mark, Visit};
use super::error::Fault;
use super::store::Store;

/// Nothing until the call opens a bucket. A component has one store, so there is one visit and one
/// mark.
#[derive(Debug, Default)]
pub(crate) struct Session {
    visit: Option<(Arc<Store>, Arc<Visit>)>,
    mark: Option<Mark>,
}

impl Session {
    /// The call uses the store from now on.
    pub(super) fn entered(&mut self, store: &Arc<Store>, visit: Visit) {
        self.visit = Some((Arc::clone(store), Arc::new(visit)));
    }

    /// True if the call uses a store.
    pub(super) fn is_open(&self) -> bool {
        self.visit.is_some()
    }

    /// Keeps the file open for work done aside, should the call end before that.
    pub(super) fn visit(&self) -> Option<Arc<Visit>> {
        self.visit.as_ref().map(|(_, visit)| Arc::clone(visit))
    }

    /// The call wrote.
    pub(super) fn wrote(&mut self, mark: Mark) {
        self.mark = Some(self.mark.map_or(mark, |before| before.and(mark)));
    }

    /// The call has ended. Returns once the disk has all that it wrote; waits on a thread that
    /// guests do not run on.
    ///
    /// # Errors
    /// [`Fault`] where the disk has not: the call's answer must not be given.
    pub(crate) async fn settle(&mut self) -> Result<(), Fault> {
        let (visit, mark) = (self.visit.take(), self.mark.take());
        let (Some((store, visit)), Some(mark)) = (visit, mark) else { return Ok(()) };
        settled(store, visit, mark).await
    }

    /// The call has ended without an answer. Its writes are kept as well, but nobody waits for the
    /// disk.
    pub(crate) fn abandon(&mut self) {
        if let (Some((store, visit)), Some(mark)) = (self.visit.take(), self.mark.take())
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // There is nobody left to tell.
            runtime.spawn(async move { drop(settled(store, visit, mark).await) });
        }
    }
}

async fn settled(store: Arc<Store>, visit: Arc<Visit>, mark: Mark) -> Result<(), Fault> {
    // The call that had the turn before may have made everything durable.
    let turn = store.turn().await;
    if store.is_settled(mark) {
        return Ok(());
    }
    let settling = tokio::task::spawn_blocking(move || {
        let settled = store.settle(mark);
        drop((visit, turn));
        settled
    });
    settling.await.unwrap_or_else(|error| Err(Fault::Closed(error.to_string())))
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abandon();
    }
}
