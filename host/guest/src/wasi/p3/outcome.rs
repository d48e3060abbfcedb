//! How the streams of WASI 0.3 end: each has a future that tells it.
use std::task::Poll;

use tokio::sync::oneshot;
use wasmtime::AsContextMut;
use wasmtime::component::{FutureReader, Lift, Lower, StreamConsumer, StreamProducer, StreamReader, StreamResult};

use crate::wasi::state::CallState;

/// How a stream ended. One that is dropped before ended well.
pub(crate) type Ended<E> = FutureReader<Result<(), E>>;

/// Tells how a stream ended, unless it ended well.
pub(crate) struct Outcome<E>(Option<oneshot::Sender<E>>);

impl<E: Lift + Lower + Send + Sync + 'static> Outcome<E> {
    fn new(store: impl AsContextMut<Data = CallState>) -> wasmtime::Result<(Self, Ended<E>)> {
        let (sender, outcome) = oneshot::channel();
        let ended = FutureReader::new(store, async { wasmtime::error::Ok(outcome.await.map_or(Ok(()), Err)) })?;
        Ok((Self(Some(sender)), ended))
    }

    /// The stream ends with this error. A guest that dropped the future does not want to know.
    pub(crate) fn ends(&mut self, code: E) -> Poll<wasmtime::Result<StreamResult>> {
        if let Some(outcome) = self.0.take() {
            let _ = outcome.send(code);
        }
        Poll::Ready(Ok(StreamResult::Dropped))
    }
}

/// A stream that a guest reads, or an empty one that ends with this error.
pub(crate) fn to_guest<P, E>(
    mut store: impl AsContextMut<Data = CallState>,
    from: Result<impl FnOnce(Outcome<E>) -> P, E>,
) -> wasmtime::Result<(StreamReader<P::Item>, Ended<E>)>
where
    P: StreamProducer<CallState, Item: Lift + Lower + Send + Sync + Unpin + 'static>,
    E: Lift + Lower + Send + Sync + 'static,
{
    let (mut outcome, ended) = Outcome::new(&mut store)?;
    let stream = match from {
        Ok(from) => StreamReader::new(store, from(outcome))?,
        Err(code) => {
            let _ = outcome.ends(code);
            StreamReader::new(store, Vec::new())?
        }
    };
    Ok((stream, ended))
}

/// Takes a stream that a guest writes, or closes it with this error.
pub(crate) fn from_guest<C, E>(
    mut store: impl AsContextMut<Data = CallState>,
    mut data: StreamReader<u8>,
    to: Result<impl FnOnce(Outcome<E>) -> C, E>,
) -> wasmtime::Result<Ended<E>>
where
    C: StreamConsumer<CallState, Item = u8>,
    E: Lift + Lower + Send + Sync + 'static,
{
    let (mut outcome, ended) = Outcome::new(&mut store)?;
    match to {
        Ok(to) => data.pipe(store, to(outcome))?,
        Err(code) => {
            let _ = outcome.ends(code);
            data.close(store)?;
        }
    }
    Ok(ended)
}
