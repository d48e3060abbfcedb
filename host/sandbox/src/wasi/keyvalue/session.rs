//! One call's use of its component's state: its writes are settled when it ends, before its answer
//! is given.
use std::sync::Arc;

use super::database::Mark;
use super::error::Fault;
use super::store::Store;

/// Nothing until the call writes. A component has one store, so there is one mark.
#[derive(Debug, Default)]
pub(crate) struct Session {
    wrote: Option<(Arc<Store>, Mark)>,
}

impl Session {
    /// The call wrote.
    pub(super) fn wrote(&mut self, store: &Arc<Store>, mark: Mark) {
        let mark = self.wrote.take().map_or(mark, |(_, before)| before.and(mark));
        self.wrote = Some((Arc::clone(store), mark));
    }

    /// The call has ended. Returns once the disk has all that it wrote; waits on a thread that
    /// guests do not run on.
    ///
    /// # Errors
    /// [`Fault`] where the disk has not: the call's answer must not be given.
    pub(crate) async fn settle(&mut self) -> Result<(), Fault> {
        let Some((store, mark)) = self.wrote.take() else { return Ok(()) };
        settled(store, mark).await
    }

    /// The call has ended without an answer. Its writes are kept as well, but nobody waits for the
    /// disk.
    pub(crate) fn abandon(&mut self) {
        if let Some((store, mark)) = self.wrote.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // There is nobody left to tell.
            runtime.spawn(async move { drop(settled(store, mark).await) });
        }
    }
}

async fn settled(store: Arc<Store>, mark: Mark) -> Result<(), Fault> {
    // The call that had the turn before may have made everything durable.
    let turn = store.turn().await;
    if store.is_settled(mark) {
        return Ok(());
    }
    let settling = tokio::task::spawn_blocking(move || {
        let settled = store.settle(mark);
        drop(turn);
        settled
    });
    settling.await.unwrap_or_else(|error| Err(Fault::Closed(error.to_string())))
}

impl Drop for Session {
    fn drop(&mut self) {
        self.abandon();
    }
}
