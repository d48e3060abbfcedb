//! Command-line arguments.

use serde_json::json;

use super::Right;
use super::values::{ENTRIES_MAX, value_error, value_problem};
use crate::capabilities::ReachRow;
use crate::grants::Capability;
use crate::table::{Key, keys};

/// Imports that give arguments, and variables as well.
pub(super) const IMPORTS: &[&str] = &["wasi:cli/environment@"];

/// A component's key.
pub(crate) static KEYS: &[Key] = keys! {
    /// Command-line arguments; none by default.
    "args": List(&Text), {"maxItems": ENTRIES_MAX, "examples": [["--fast"]]};
};

/// Command-line arguments of a component; those of a program's tool are separate.
pub(crate) static ARGS: Right = Right {
    section: "args",
    read: |_, entry, _, grants, problems| {
        for (text, span) in entry.strings(ENTRIES_MAX, problems).unwrap_or_default() {
            match value_problem(text, true) {
                Some(wrong) => problems.add(value_error("args", &wrong, span)),
                None => grants.args.push(text.to_owned()),
            }
        }
    },
    canonical: |_, grants| json!(grants.args()),
    reach: |right, grants| {
        let row = || ReachRow::new(Capability::Args, grants.args().join(" "), grants.place(right.section));
        (!grants.args().is_empty()).then(row).into_iter().collect()
    },
    lock_lines: |_, grants| {
        (!grants.args().is_empty()).then(|| format!("arguments {:?}", grants.args())).into_iter().collect()
    },
    what: "arguments",
    imports: IMPORTS,
    ..Right::NONE
};
