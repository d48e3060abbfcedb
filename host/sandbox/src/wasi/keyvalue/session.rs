//! One call's use of its component's state: its writes are settled when it ends, before its answer
//! is given.
use std::sync::Arc;

use super::database::WriteMark;
use super::error::StateFault;
use super::store::ComponentStore;

/// No store until the call writes. A component has one store, so there is one mark.
#[derive(Debug, Default)]
pub(crate) struct StateSession {
    wrote: Option<(Arc<ComponentStore>, WriteMark)>,
}

impl StateSession {
    /// The call wrote.
    pub(super) fn wrote(&mut self, store: &Arc<ComponentStore>, mark: WriteMark) {
        let mark = self.wrote.take().map_or(mark, |(_, before)| before.and(mark));
        self.wrote = Some((Arc::clone(store), mark));
    }

    /// Ends the call. Returns once its writes are on the disk; waits on a thread that runs no
    /// guests.
    ///
    /// # Errors
    /// [`StateFault`] if they are not on the disk. The call's answer must not be sent then.
    pub(crate) async fn settle(&mut self) -> Result<(), StateFault> {
        let Some((store, mark)) = self.wrote.take() else { return Ok(()) };
        settled(store, mark).await
    }

    /// Ends the call without an answer. Its writes are kept, too, but nobody waits for the disk.
    pub(crate) fn abandon(&mut self) {
        if let Some((store, mark)) = self.wrote.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // Nobody is left to get the result.
            runtime.spawn(async move { drop(settled(store, mark).await) });
        }
    }
}

async fn settled(store: Arc<ComponentStore>, mark: WriteMark) -> Result<(), StateFault> {
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
    settling.await.unwrap_or_else(|error| Err(StateFault::Closed(error.to_string())))
}

impl Drop for StateSession {
    fn drop(&mut self) {
        self.abandon();
    }
}
