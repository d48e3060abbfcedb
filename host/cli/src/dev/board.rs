//! How the last build went, for whoever asks. Must not hold: how it is shown.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell_server::BuildStatus;

/// How the last build went. Cheap to clone.
#[derive(Clone, Default)]
pub struct Board(Arc<Mutex<State>>);

#[derive(Clone, Default)]
enum State {
    #[default]
    Waiting,
    Building,
    Built(Duration),
    Failed(String, Duration),
}

impl Board {
    /// One is under way.
    pub fn building(&self) {
        *self.state() = State::Building;
    }

    /// The last one went well.
    pub fn built(&self, took: Duration) {
        *self.state() = State::Built(took);
    }

    /// The last one did not; this is what it wrote.
    pub fn failed(&self, output: &str, took: Duration) {
        *self.state() = State::Failed(output.to_owned(), took);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BuildStatus for Board {
    fn to_json(&self) -> Value {
        let took_ms = |took: &Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match &*self.state() {
            State::Waiting => json!({"state": "waiting"}),
            State::Building => json!({"state": "building"}),
            State::Built(took) => json!({"state": "built", "took_ms": took_ms(took)}),
            State::Failed(output, took) => json!({"state": "failed", "took_ms": took_ms(took), "output": output}),
        }
    }
}
