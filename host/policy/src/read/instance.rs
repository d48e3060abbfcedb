//! Reads the keys of a component's instances: `instance`, `instance_idle`, `instance_lifetime` and `prewarm`. Must not
//! hold: what instances are.

use std::time::Duration;

use super::{Entry, Problems, Section};
use crate::diagnostic::Diagnostic;
use crate::manifest::InstancePolicy;
use crate::manifest::instance::{INSTANCE_IDLE, INSTANCE_LIFETIME, PER_CALL, PER_CALLER, PREWARM};

/// Which calls share an instance, and how many instances are kept ready.
pub(crate) fn read(section: &Section<'_>, problems: &mut Problems) -> (InstancePolicy, usize) {
    let per_caller = match section.get("instance") {
        None => Some(false),
        Some(entry) => is_per_caller(&entry, problems),
    };
    let [idle, lifetime, prewarm] = [&INSTANCE_IDLE, &INSTANCE_LIFETIME, &PREWARM]
        .map(|spec| section.number(spec, problems).unwrap_or(spec.default));
    match per_caller {
        // Wrong, and noted: whether the other keys apply is not known.
        None => (InstancePolicy::PerCall, 0),
        Some(false) => {
            refuse_times(section, problems);
            (InstancePolicy::PerCall, usize::try_from(prewarm).unwrap_or(usize::MAX))
        }
        Some(true) => {
            refuse_prewarm(section, problems);
            warn_of_unreachable_idle(section, idle, lifetime, problems);
            let (idle, lifetime) = (Duration::from_millis(idle), Duration::from_millis(lifetime));
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
            problems.add(Diagnostic::error("components::instance", message).at(entry.span.clone()));
            None
        }
    }
}

/// Times of an instance that each call has anew can never pass.
fn refuse_times(section: &Section<'_>, problems: &mut Problems) {
    for entry in [&INSTANCE_IDLE, &INSTANCE_LIFETIME].into_iter().filter_map(|spec| section.get(spec.key)) {
        let message = format!("{} without instance = \"{PER_CALLER}\" can never apply", entry.key);
        problems.add(
            Diagnostic::error("components::instance", message)
                .at(entry.key_span)
                .label("each call has an instance of its own")
                .hint(format!("remove it, or set instance = \"{PER_CALLER}\"")),
        );
    }
}

/// Instances kept ready are for any caller's next call; those of a caller are made when the caller first calls.
fn refuse_prewarm(section: &Section<'_>, problems: &mut Problems) {
    let Some(entry) = section.get(PREWARM.key) else { return };
    let message = format!("prewarm with instance = \"{PER_CALLER}\" can never apply");
    problems.add(
        Diagnostic::error("components::instance", message)
            .at(entry.key_span)
            .label("no instance is kept ready for callers to come")
            .hint(format!("remove it, or set instance = \"{PER_CALL}\"")),
    );
}

fn warn_of_unreachable_idle(section: &Section<'_>, idle: u64, lifetime: u64, problems: &mut Problems) {
    let Some(entry) = section.get(INSTANCE_IDLE.key) else { return };
    if idle <= lifetime {
        return;
    }
    let (idle, lifetime) = (INSTANCE_IDLE.show(idle), INSTANCE_LIFETIME.show(lifetime));
    let message = format!("instance_idle of {idle} can never be reached: instance_lifetime is {lifetime}");
    problems.add(
        Diagnostic::warning("limits::unreachable", message)
            .at(entry.span)
            .hint("raise instance_lifetime or lower instance_idle"),
    );
}
