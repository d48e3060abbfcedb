//! State of the last build.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// State of the last build. Cheap to clone.
#[derive(Clone, Default)]
pub struct LastBuild(Arc<Mutex<BuildState>>);

#[derive(Clone, Default)]
enum BuildState {
    #[default]
    Waiting,
    Building,
    Built(Duration),
    Failed(String, Duration),
}

impl LastBuild {
    /// Notes that a build runs.
    pub fn building(&self) {
        *self.state() = BuildState::Building;
    }

    /// Notes that the build succeeded.
    pub fn built(&self, took: Duration) {
        *self.state() = BuildState::Built(took);
    }

    /// Notes that the build failed with this output.
    pub fn failed(&self, output: &str, took: Duration) {
        *self.state() = BuildState::Failed(output.to_owned(), took);
    }

    fn state(&self) -> MutexGuard<'_, BuildState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last build, for the status.
    pub fn to_json(&self) -> Value {
        let took_ms = |took: &Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match &*self.state() {
            BuildState::Waiting => json!({"state": "waiting"}),
            BuildState::Building => json!({"state": "building"}),
            BuildState::Built(took) => json!({"state": "built", "took_ms": took_ms(took)}),
            BuildState::Failed(output, took) => json!({"state": "failed", "took_ms": took_ms(took), "output": output}),
        }
    }
}
