//! Tasks: the key `task` of components and tools, and the section `[tasks]`.

use std::time::Duration;

use crate::quantity::{DAY, GIB, HOUR, KIB, MIB, SECOND, parse_millis, show_millis};
use crate::read::{Entry, Problems, Section};
use crate::settings::settings;

/// Most time after which a call becomes a task, in milliseconds. Clients give up before.
const AFTER_MAX: u64 = HOUR;

/// The words for `task`, besides times.
const NEVER: &str = "never";
const ALWAYS: &str = "always";

settings! {
    /// Tasks: calls whose clients get a name at once, and the result later. Each tool's `task` says
    /// which calls become tasks.
    TasksPolicy TASKS "Tasks" {
        /// Time for which a task is kept, from its beginning.
        ttl: Duration => Duration = "ttl" (
            Millis { min: SECOND, default: HOUR, max: 7 * DAY },
            "A client that was closed comes back within it. A call that still runs then is ended."
        ), {"examples": ["15m"]};
        /// The longest time that a client of 2025-11-25 may have a task kept.
        ttl_max: Duration => Duration = "ttl_max" (
            Millis { min: SECOND, default: DAY, max: 7 * DAY },
            "Clients ask for a time of their own. A longer one is shortened to this."
        ), {"examples": ["2h"]};
        /// Time that clients are advised to wait before they ask again.
        poll: Duration => Duration = "poll" (
            Millis { min: SECOND / 100, default: SECOND, max: HOUR },
            "A person hardly notices a second, and a thousand tasks then cost a thousand short requests."
        ), {"examples": ["5s"]};
        /// Tasks of one caller, running and ended.
        caller_max: usize => usize = "caller_max" (
            Count { min: 1, default: 1_000, max: 100_000 },
            "A model begins a few. The default stops one that begins them in a loop."
        ), {"examples": [100]};
        /// Tasks of all callers.
        all_max: usize => usize = "all_max" (
            Count { min: 1, default: 16_384, max: 1_000_000 },
            "Each takes about a kilobyte besides its result, and a small file."
        ), {"examples": [50_000]};
        /// One task's result, as it goes to the client. A task with a longer one fails.
        result_bytes: usize => usize = "result" (
            Bytes { min: KIB, default: 2 * MIB, max: 64 * MIB },
            "Twice the default of a tool's `output`, as pictures grow by a third on their way."
        ), {"examples": ["256KiB"]};
        /// Arguments of running and results of ended tasks of one caller. Without room for its
        /// result a task fails.
        caller_bytes: usize => usize = "caller_bytes" (
            Bytes { min: KIB, default: 32 * MIB, max: 4 * GIB },
            "Sixteen of the longest results, or thousands of common ones."
        ), {"examples": ["8MiB"]};
        /// Arguments of the running and results of the ended tasks of all callers.
        all_bytes: usize => usize = "all_bytes" (
            Bytes { min: KIB, default: 128 * MIB, max: 16 * GIB },
            "The process keeps them in memory, or the server that replicas share does."
        ), {"examples": ["1GiB"]};
    }
    other names { "ttl_ms" => "ttl", "poll_interval" => "poll", "pollInterval" => "poll", "max" => "all_max" }
}

/// The calls of a tool that become tasks, for clients that can take one. `task` in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaskRule {
    /// `"never"`, the default: none.
    #[default]
    Never,
    /// A time, `"2s"`: those that run longer.
    After(Duration),
    /// `"always"`: each. A client that cannot take a task cannot call the tool.
    Always,
}

impl TaskRule {
    /// As a manifest would write it: `never`, `2s`, `always`.
    #[must_use]
    pub fn show(&self) -> String {
        match self {
            Self::Never => NEVER.to_owned(),
            Self::After(time) => show_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            Self::Always => ALWAYS.to_owned(),
        }
    }
}

/// The rule that holds here; `inherited` where the table says nothing.
pub(crate) fn read(section: &Section<'_>, inherited: TaskRule, problems: &mut Problems) -> TaskRule {
    let Some(entry) = section.get("task") else { return inherited };
    rule(&entry, problems).unwrap_or(inherited)
}

fn rule(entry: &Entry<'_>, problems: &mut Problems) -> Option<TaskRule> {
    let text = entry.string(problems)?;
    let after = || parse_millis(text).ok().filter(|millis| *millis <= AFTER_MAX);
    match text {
        NEVER => Some(TaskRule::Never),
        ALWAYS => Some(TaskRule::Always),
        _ => match after() {
            Some(millis) => Some(TaskRule::After(Duration::from_millis(millis))),
            None => {
                let problem = entry.error("tools::task", format!("{text:?} does not say which calls become tasks"));
                let hint = "write \"2s\" for those that run longer, of at most an hour, \"always\" or \"never\"";
                problems.refuse(problem.hint(hint))
            }
        },
    }
}
