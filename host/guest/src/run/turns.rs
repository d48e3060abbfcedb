//! Turns of async guests. A task that yields computes next to nothing, but each time costs the host
//! about a microsecond, like a call of a host function. So a call has as many turns as calls of
//! host functions.
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use toolcell_policy::Limits;
use toolcell_wall::load::facts::GuestEngine;
use wasmtime::Trap;

use crate::engine::fuel::HOST_CALL_FUEL;

/// The turns of one call.
pub(crate) struct Turns {
    taken: AtomicU64,
    /// `None` in the engine without tasks. There a guest gives its thread back to wait for a host
    /// function, which has its price already.
    max: Option<u64>,
}

impl Turns {
    pub(crate) fn of(engine: GuestEngine, limits: &Limits) -> Self {
        let max = (engine == GuestEngine::Async).then(|| limits.fuel() / HOST_CALL_FUEL);
        Self { taken: AtomicU64::new(0), max }
    }

    /// The fuel of all turns, if they ended the call. Otherwise nobody pays for them, since their
    /// number depends on the machine.
    pub(crate) fn fuel(&self) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        let ended = self.max.is_some_and(|max| taken > max);
        if ended { taken.saturating_mul(HOST_CALL_FUEL) } else { 0 }
    }

    /// Does the work of the guest.
    ///
    /// # Errors
    /// Its own, or the call took more turns than its whole fuel allows.
    pub(crate) async fn counted<T>(&self, work: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
        let Some(max) = self.max else { return work.await };
        let mut work = pin!(work);
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Pending if self.taken.fetch_add(1, Ordering::Relaxed) >= max => {
                Poll::Ready(Err(Trap::OutOfFuel.into()))
            }
            polled => polled,
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use toolcell_policy::Limit;

    use super::*;

    /// The result of work that takes this many turns, with fuel for ten.
    async fn after(turns: u64, engine: GuestEngine) -> (bool, u64) {
        let limits = Limits::default().with(Limit::Fuel, 10 * HOST_CALL_FUEL).unwrap();
        let counted = Turns::of(engine, &limits);
        let work = async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            Ok(())
        };
        (counted.counted(work).await.is_ok(), counted.fuel())
    }

    #[tokio::test]
    async fn an_async_guest_has_as_many_turns_as_host_calls() {
        assert_eq!(after(10, GuestEngine::Async).await, (true, 0));
        assert_eq!(after(11, GuestEngine::Async).await, (false, 11 * HOST_CALL_FUEL));
        assert_eq!(after(100, GuestEngine::Sync).await, (true, 0));
    }
}
