//! Standard input.

use serde_json::json;

use super::{Right, values};
use crate::capabilities::ReachRow;
use crate::grants::Capability;
use crate::quantity::show_bytes;
use crate::table::{Key, keys};

/// A component's key.
pub(crate) static KEYS: &[Key] = keys! {
    /// Standard input; closed by default.
    "stdin": Text, {"examples": ["text"]};
};

/// Standard input of a component; that of a program's tool is separate.
pub(crate) static STDIN: Right = Right {
    section: "stdin",
    read: |_, entry, _, grants, problems| {
        grants.stdin = values::text(entry, problems, false);
    },
    canonical: |_, grants| json!(grants.stdin()),
    reach: |right, grants| {
        let place = grants.place(right.section);
        let row = |text: &str| ReachRow::new(Capability::Stdin, show_bytes(text.len() as u64), place);
        grants.stdin().map(row).into_iter().collect()
    },
    lock_lines: |_, grants| grants.stdin().map(|text| format!("stdin {text:?}")).into_iter().collect(),
    what: "standard input",
    imports: &["wasi:cli/stdin@"],
    ..Right::NONE
};
