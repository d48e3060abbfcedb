//! How a component's instances come to be and end: one for each call, made ready ahead of it, or one for each caller.
//! Must not hold: how they are read, or how instances are made and kept.

use std::time::Duration;

use crate::limits::{Spec, Unit};

/// Which calls of a tool share an instance. `instance` in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstancePolicy {
    /// `"per-call"`, the default: each call has an instance of its own, and nothing a call leaves in memory reaches
    /// another.
    #[default]
    PerCall,
    /// `"per-caller"`: the calls of one tool by one caller share an instance, one after the other.
    PerCaller {
        /// `instance_idle`: how long an instance waits for its caller's next call before it is given up; `5m` by
        /// default, `1s` to `24h`.
        idle: Duration,
        /// `instance_lifetime`: how old an instance becomes at most; `1h` by default, `1s` to `24h`.
        lifetime: Duration,
    },
}

pub(crate) const PREWARM: Spec = Spec {
    key: "prewarm",
    unit: Unit::Count,
    default: 4,
    // None: each call makes its own.
    min: 0,
    max: 64,
    reason: "Instances kept ready for each tool in use, so that a call does not wait for instantiation. The default \
             covers calls that come together; a tool's are given up after ten seconds without a call.",
};

pub(crate) const INSTANCE_IDLE: Spec = Spec {
    key: "instance_idle",
    unit: Unit::Millis,
    default: 300_000,
    // Less would end the instance between two calls of one conversation.
    min: 1_000,
    max: 86_400_000,
    reason: "How long a caller's instance waits for the next call. The default outlasts the pause of a model that \
             thinks; whoever comes back later finds a fresh instance.",
};

pub(crate) const INSTANCE_LIFETIME: Spec = Spec {
    key: "instance_lifetime",
    unit: Unit::Millis,
    default: 3_600_000,
    min: 1_000,
    max: 86_400_000,
    reason: "How old a caller's instance becomes, however often it is called: what a call has left in its memory ends \
             with it.",
};

impl InstancePolicy {
    /// The name in the manifest: `per-call` or `per-caller`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerCall => PER_CALL,
            Self::PerCaller { .. } => PER_CALLER,
        }
    }
}

/// What `instance` may be.
pub(crate) const PER_CALL: &str = "per-call";
/// The other.
pub(crate) const PER_CALLER: &str = "per-caller";
