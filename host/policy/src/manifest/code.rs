//! The section `[code]`: scripts that call tools. It stands for one more component, whose code is
//! the engine that comes with this program, and whose one right is `calls`.

use crate::limits::{LIMITS, Limit, Limits, PlacedLimits};
use crate::manifest::ComponentPolicy;
use crate::manifest::approval::{ApprovalPolicy, REMEMBER};
use crate::quantity::{MIB, MINUTE};
use crate::table::{Keys, table};
use crate::words::Word as _;

/// The name of the component that the section stands for.
pub const CODE: &str = "code";

/// Levels of calls beneath a script: what it calls calls nothing.
const CALL_DEPTH: u64 = 1;

/// The wall clock of a script. Longer than that of a tool: a script is several calls.
const DEADLINE_MS: u64 = 2 * MINUTE;

/// Bytes of a script's result at most that are kept for its client, where it is longer than an
/// answer may be. 4 MiB: half of what a client has of the resources of one component.
pub const SCRIPT_RESULT_BYTES: u64 = 4 * MIB;

/// Bytes of all that a script gives back: its result as text and as JSON, and what it wrote.
const RETURNED_BYTES: u64 = 2 * SCRIPT_RESULT_BYTES + MIB;

table! {
    /// Scripts: adds the tool `run_code`, which runs JavaScript that calls tools.
    pub(crate) SCRIPTS "Code" {
        /// The engine of scripts, relative to the manifest; by default the program's own.
        "engine": Text, {"minLength": 1, "examples": ["components/toolcell-code.wasm"]};
        /// Limits of each script; they win over `defaults.limits`. By default a script has two
        /// minutes, and a `call_depth` of 1.
        "limits": Table(&LIMITS), {};
    }
    and Keys::OfRights(|right| if right.section == "calls" { right.keys } else { &[] });
    {
        /// Scripts that a person confirms through the client before they run. What they call is
        /// confirmed by its own rules.
        "approval": Words(ApprovalPolicy::WORDS),
            {"default": "never", "examples": ["always"]};
        /// The time for which a confirmation holds for further scripts of the same caller.
        "remember": Optional(&REMEMBER), {"examples": ["10m"]};
        /// Scripts that become tasks, for clients that can take one.
        "task": Text, {"default": "never", "examples": ["2s", "always"]};
        /// False leaves `run_code` out of the list with `discovery = "search"` in `[server]`.
        "listed": Flag, {"default": true, "examples": [false]};
    }
    other names { "source" => "engine", "tools" => "calls", "allow" => "calls" }
}

/// The limits of scripts under those of all components.
pub(crate) fn limits(defaults: &PlacedLimits) -> PlacedLimits {
    let mut placed = defaults.clone();
    placed.limits.set(Limit::CallDepth, CALL_DEPTH);
    if placed.places.of(Limit::Deadline).is_none() {
        placed.limits.set(Limit::Deadline, DEADLINE_MS);
    }
    placed
}

impl ComponentPolicy {
    /// The limits under which a tool's guest returns. A script may return more than its `output`:
    /// the host then keeps the result, and answers with where to read it.
    #[must_use]
    pub fn returning(&self, limits: &Limits) -> Limits {
        let mut limits = *limits;
        if self.name == CODE {
            limits.set(Limit::Output, limits.output_bytes().max(RETURNED_BYTES));
        }
        limits
    }
}
