//! The section `[paused]`: runs that wait for a person between two rounds.

use crate::quantity::{GIB, KIB, MIB};
use crate::settings::settings;

settings! {
    /// Paused runs: calls of tools that call others, whose client answers a question by calling
    /// again. The results of their calls are kept, so that none runs twice. The tool's `ask_wait`
    /// says for how long.
    PausedPolicy PAUSED "Paused" {
        /// Paused runs of one caller.
        caller_max: usize => usize = "caller_max" (
            Count { min: 1, default: 64, max: 10_000 },
            "A person answers one after the other. The default stops a client that asks and never comes back."
        ), {"examples": [16]};
        /// Paused runs of all callers.
        all_max: usize => usize = "all_max" (
            Count { min: 1, default: 1_024, max: 100_000 },
            "Each takes about a kilobyte besides its log, and a small file."
        ), {"examples": [4_096]};
        /// The result of one call in a log. A run with a longer one cannot pause any more.
        result_bytes: usize => usize = "result" (
            Bytes { min: KIB, default: MIB, max: 64 * MIB },
            "As much as a tool gives by default."
        ), {"examples": ["64KiB"]};
        /// The log of one run. A run with a longer one cannot pause any more.
        log_bytes: usize => usize = "log" (
            Bytes { min: KIB, default: 4 * MIB, max: 64 * MIB },
            "A run keeps it in memory while its client may be asked: four of the longest results, or two hundred of \
             20 KiB."
        ), {"examples": ["1MiB"]};
        /// Logs of all paused runs of one caller.
        caller_bytes: usize => usize = "caller_bytes" (
            Bytes { min: KIB, default: 16 * MIB, max: 4 * GIB },
            "Four of the longest logs, or thousands of common ones."
        ), {"examples": ["8MiB"]};
        /// Logs of all paused runs.
        all_bytes: usize => usize = "all_bytes" (
            Bytes { min: KIB, default: 64 * MIB, max: 16 * GIB },
            "The process keeps them in memory, or the server that replicas share does."
        ), {"examples": ["256MiB"]};
    }
    other names { "result_bytes" => "result", "log_bytes" => "log", "max" => "all_max" }
}
