//! The life of a component's instances: one for each call, made ready ahead of it, or one for each
//! caller.

use std::time::Duration;

use crate::diagnostic::Diagnostic;
use crate::limits::{Spec, spec};
use crate::read::{Entry, Problems, Section};

/// The calls of a tool that share an instance. `instance` in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstancePolicy {
    /// `"per-call"`, the default: each call has an instance of its own, and nothing a call leaves
    /// in memory reaches another.
    #[default]
    PerCall,
    /// `"per-caller"`: the calls of one tool by one caller share an instance, one after the other.
    PerCaller {
        /// `instance_idle`: how long an instance waits for its caller's next call before it is
        /// given up; `5m` by default, `1s` to `24h`.
        idle: Duration,
        /// `instance_lifetime`: how old an instance becomes at most; `1h` by default, `1s` to
        /// `24h`.
        lifetime: Duration,
    },
}

pub(crate) const PREWARM: Spec = spec! {
    // None: each call makes its own.
    "prewarm" Count { min: 0, default: 4, max: 64 }, "The default covers calls that come together."
};

pub(crate) const INSTANCE_IDLE: Spec = spec! {
    // Less would end the instance between two calls of one conversation.
    "instance_idle" Millis { min: 1_000, default: 300_000, max: 86_400_000 },
    "The default outlasts the pause of a model that thinks. A later call finds a fresh instance."
};

pub(crate) const INSTANCE_LIFETIME: Spec = spec! {
    "instance_lifetime" Millis { min: 1_000, default: 3_600_000, max: 86_400_000 },
    "Whatever calls leave in the instance's memory ends with it."
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

/// The words for `instance`.
pub(crate) const PER_CALL: &str = "per-call";
/// The other.
pub(crate) const PER_CALLER: &str = "per-caller";

/// The calls that share an instance, and the number of instances kept ready.
pub(crate) fn read(section: &Section<'_>, problems: &mut Problems) -> (InstancePolicy, usize) {
    let per_caller = match section.get("instance") {
        None => Some(false),
        Some(entry) => is_per_caller(&entry, problems),
    };
    let [idle, lifetime, prewarm] = [&INSTANCE_IDLE, &INSTANCE_LIFETIME, &PREWARM]
        .map(|spec| section.number(spec, problems).unwrap_or(spec.default));
    match per_caller {
        // Invalid, and reported: whether the other keys apply is unknown.
        None => (InstancePolicy::PerCall, 0),
        Some(false) => {
            refuse_times(section, problems);
            (InstancePolicy::PerCall, usize::try_from(prewarm).unwrap_or(usize::MAX))
        }
        Some(true) => {
            refuse_prewarm(section, problems);
            warn_of_unreachable_idle(section, idle, lifetime, problems);
            let idle = Duration::from_millis(idle);
            let lifetime = Duration::from_millis(lifetime);
            (InstancePolicy::PerCaller { idle, lifetime }, 0)
        }
    }
}

fn is_per_caller(entry: &Entry<'_>, problems: &mut Problems) -> Option<bool> {
    match entry.string(problems)? {
        PER_CALL => Some(false),
        PER_CALLER => Some(true),
        other => {
            let message = format!("instance must be \"{PER_CALL}\" or \"{PER_CALLER}\", not {other:?}");
            problems.refuse(entry.error("components::instance", message))
        }
    }
}

/// Reports times of an instance that lives for one call only.
fn refuse_times(section: &Section<'_>, problems: &mut Problems) {
    for entry in [&INSTANCE_IDLE, &INSTANCE_LIFETIME].into_iter().filter_map(|spec| section.get(spec.key)) {
        let message = format!("{} without instance = \"{PER_CALLER}\" can never apply", entry.key);
        problems.add(
            entry
                .key_error("components::instance", message)
                .label("each call has an instance of its own")
                .hint(format!("remove it, or set instance = \"{PER_CALLER}\"")),
        );
    }
}

/// Reports prewarming with `per-caller`: those instances are made when the caller first calls.
fn refuse_prewarm(section: &Section<'_>, problems: &mut Problems) {
    let Some(entry) = section.get(PREWARM.key) else { return };
    let message = format!("prewarm with instance = \"{PER_CALLER}\" can never apply");
    problems.add(
        entry
            .key_error("components::instance", message)
            .label("no instance is kept ready for callers to come")
            .hint(format!("remove it, or set instance = \"{PER_CALL}\"")),
    );
}

fn warn_of_unreachable_idle(section: &Section<'_>, idle: u64, lifetime: u64, problems: &mut Problems) {
    let Some(entry) = section.get(INSTANCE_IDLE.key) else { return };
    if idle <= lifetime {
        return;
    }
    let idle = INSTANCE_IDLE.show(idle);
    let lifetime = INSTANCE_LIFETIME.show(lifetime);
    let message = format!("instance_idle of {idle} can never be reached: instance_lifetime is {lifetime}");
    problems.add(
        Diagnostic::warning("limits::unreachable", message)
            .at(entry.span)
            .hint("raise instance_lifetime or lower instance_idle"),
    );
}
