//! State of the last build.
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
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
        *self.0.lock() = BuildState::Building;
    }

    /// Notes that the build succeeded.
    pub fn built(&self, took: Duration) {
        *self.0.lock() = BuildState::Built(took);
    }

    /// Notes that the build failed with this output.
    pub fn failed(&self, output: &str, took: Duration) {
        *self.0.lock() = BuildState::Failed(output.to_owned(), took);
    }

    /// The last build, for the status.
    pub fn to_json(&self) -> Value {
        let took_ms = |took: &Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match &*self.0.lock() {
            BuildState::Waiting => json!({"state": "waiting"}),
            BuildState::Building => json!({"state": "building"}),
            BuildState::Built(took) => json!({"state": "built", "took_ms": took_ms(took)}),
            BuildState::Failed(output, took) => json!({"state": "failed", "took_ms": took_ms(took), "output": output}),
        }
    }
}
