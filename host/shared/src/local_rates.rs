//! Rates and concurrency while shared state is unreachable: each process counts its own calls
//! meanwhile.
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{AllowanceName, Away, Begun, Claim, Claimed, Embedded, Place, Posted, Request, SharedState, Taken};

/// Shared state whose rates and running calls are counted in this process while it is unreachable.
#[derive(Debug)]
pub struct LocalRatesWhileAway {
    state: Arc<dyn SharedState>,
    here: Embedded,
}

impl LocalRatesWhileAway {
    /// Wraps this state.
    #[must_use]
    pub fn new(state: Arc<dyn SharedState>) -> Self {
        Self { state, here: Embedded::default() }
    }
}

#[async_trait]
impl SharedState for LocalRatesWhileAway {
    async fn take(&self, caller: &str, allowances: &[AllowanceName<'_>]) -> Result<Taken, Away> {
        match self.state.take(caller, allowances).await {
            Err(_) => self.here.take(caller, allowances).await,
            taken => taken,
        }
    }

    async fn enter(&self, name: &str, most: usize) -> Result<Option<Place>, Away> {
        match self.state.enter(name, most).await {
            Err(_) => self.here.enter(name, most).await,
            entered => entered,
        }
    }

    async fn wait(&self, name: &str, most: usize) -> Result<Place, Away> {
        match self.state.wait(name, most).await {
            Err(_) => self.here.wait(name, most).await,
            waited => waited,
        }
    }

    async fn claim(&self, caller: &str, name: &str, time: Duration) -> Result<Claimed, Away> {
        self.state.claim(caller, name, time).await
    }

    async fn give_back(&self, claim: Claim) -> Result<(), Away> {
        self.state.give_back(claim).await
    }

    async fn begin(&self, request: &Request<'_>, time: Duration) -> Result<Begun, Away> {
        self.state.begin(request, time).await
    }

    async fn end(&self, request: Claim, answer: &str, time: Duration) -> Result<(), Away> {
        self.state.end(request, answer, time).await
    }

    async fn note(&self, name: &str, time: Duration) -> Result<(), Away> {
        self.state.note(name, time).await
    }

    async fn is_noted(&self, name: &str) -> Result<bool, Away> {
        self.state.is_noted(name).await
    }

    async fn post(&self, set: &str, entry: &str, time: Duration) -> Result<bool, Away> {
        self.state.post(set, entry, time).await
    }

    async fn take_down(&self, set: &str, entry: &str) -> Result<(), Away> {
        self.state.take_down(set, entry).await
    }

    async fn posted(&self, set: &str) -> Result<Vec<Posted>, Away> {
        self.state.posted(set).await
    }
}
