//! The state of a component in its file: the call's session, and the threads that wait for the
//! disk.
use std::sync::Arc;

use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::state::{StateOperation, StateOutcome};

use super::database::WriteMark;
use super::error::{StateFault, StateRefusal};
use super::keeper::{BucketPlace, Performing, StateKeeper};
use super::session::StateSession;
use super::store::{ComponentStore, StateWrite, StopFlag};

/// Keys of one operation that are read on the current thread: within a hundred microseconds.
const KEYS_HERE_MAX: usize = 16;

/// Bytes of a value that is read on the current thread.
const VALUE_HERE_BYTES_MAX: u64 = 1 << 20;

/// A component's state in its file.
#[derive(Debug)]
pub(super) struct InFile(pub(super) Arc<ComponentStore>);

impl StateKeeper for InFile {
    fn perform<'a>(
        &'a self,
        session: &'a mut StateSession,
        place: BucketPlace,
        operation: StateOperation,
    ) -> Performing<'a> {
        Box::pin(Performance { store: Arc::clone(&self.0), session }.perform(place, operation))
    }
}

/// One operation of a call.
struct Performance<'s> {
    store: Arc<ComponentStore>,
    session: &'s mut StateSession,
}

impl Performance<'_> {
    async fn perform(mut self, place: BucketPlace, operation: StateOperation) -> Result<StateOutcome, StateRefusal> {
        match operation {
            StateOperation::Open => self.enter().await.map(|()| StateOutcome::Done),
            StateOperation::Get(key) => {
                let value = self.read(place, true, move |store, place, _| store.get(&place.path, &key)).await?;
                Ok(StateOutcome::Value(value.map(Blob)))
            }
            StateOperation::Exists(key) => {
                let found = self.read(place, true, move |store, place, _| store.exists(&place.path, &key)).await?;
                Ok(StateOutcome::Exists(found))
            }
            StateOperation::List(cursor) => {
                let page = self.read(place, true, move |store, place, _| store.keys(&place.path, cursor)).await?;
                Ok(StateOutcome::Page(page.keys, page.cursor))
            }
            StateOperation::Add(key, delta) => {
                let number = self.write(place, move |store, change| store.add(change, &key, delta)).await?;
                Ok(StateOutcome::Number(number))
            }
            StateOperation::GetMany(keys) => {
                let short = keys.len() <= KEYS_HERE_MAX;
                let found = self.read(place, short, move |store, place, stop| {
                    store.get_all(&place.path, keys, place.answer_bytes_max(), stop)
                });
                let found = found.await?.into_iter().map(|pair| pair.map(|(key, value)| (key, Blob(value))));
                Ok(StateOutcome::Values(found.collect()))
            }
            StateOperation::SetMany(pairs) => {
                let pairs: Vec<_> = pairs.into_iter().map(|(key, Blob(value))| (key, value)).collect();
                let set =
                    move |store: &ComponentStore, change: StateWrite<'_>| Ok(((), store.set_all(change, &pairs)?));
                self.write(place, set).await.map(|()| StateOutcome::Done)
            }
            StateOperation::DeleteMany(keys) => {
                let delete =
                    move |store: &ComponentStore, change: StateWrite<'_>| Ok(((), store.delete_all(change, &keys)?));
                self.write(place, delete).await.map(|()| StateOutcome::Done)
            }
        }
    }

    /// Opens the file if it is closed. Waits for that, and for another process that has it open, on
    /// a thread for blocking work.
    async fn enter(&mut self) -> Result<(), StateRefusal> {
        if self.store.enter_open().is_none() {
            let store = Arc::clone(&self.store);
            aside(move || store.enter().map(drop)).await?;
        }
        Ok(())
    }

    /// Reads on this thread if the read is short and does not wait, otherwise on one for blocking
    /// work.
    async fn read<T: Send + 'static>(
        &mut self,
        place: BucketPlace,
        short: bool,
        read: impl FnOnce(&ComponentStore, &BucketPlace, &StopFlag) -> Result<T, StateRefusal> + Send + 'static,
    ) -> Result<T, StateRefusal> {
        let stop = StopFlag::default();
        if short
            && place.bounds.value_bytes <= VALUE_HERE_BYTES_MAX
            && let Some(_visit) = self.store.enter_open()
        {
            return read(&self.store, &place, &stop);
        }
        let _waiter = stop.waiter();
        let store = Arc::clone(&self.store);
        aside(move || {
            let _visit = store.enter()?;
            read(&store, &place, &stop)
        })
        .await
    }

    /// Writes on a thread for blocking work when it is the call's turn, and notes the mark.
    async fn write<T: Send + 'static>(
        &mut self,
        place: BucketPlace,
        write: impl FnOnce(&ComponentStore, StateWrite<'_>) -> Result<(T, WriteMark), StateRefusal> + Send + 'static,
    ) -> Result<T, StateRefusal> {
        let turn = self.store.turn().await;
        let stop = StopFlag::default();
        let _waiter = stop.waiter();
        let store = Arc::clone(&self.store);
        let (value, mark) = aside(move || {
            let _until_it_ends = turn;
            let _visit = store.enter()?;
            write(&store, StateWrite { place: &place.path, bounds: &place.bounds, stop: &stop })
        })
        .await?;
        self.session.wrote(&self.store, mark);
        Ok(value)
    }
}

/// Does this on a thread that runs no guests.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StateRefusal> + Send + 'static,
) -> Result<T, StateRefusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(StateFault::Closed(error.to_string()).into()),
    }
}
