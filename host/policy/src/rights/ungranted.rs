//! The answer to requests that no rule allows. It grants nothing by itself.

use serde_json::json;

use super::{Right, wider};
use crate::grants::Ungranted;
use crate::table::{Key, keys};
use crate::words::Word as _;

/// A component's key.
pub(crate) static KEYS: &[Key] = keys! {
    /// Requests that no rule allows are denied, or a person is asked through the client: HTTP
    /// requests, TCP connections and UDP.
    "ungranted": Words(Ungranted::WORDS), {"default": "deny", "examples": ["ask"]};
};

/// A tool's key.
pub(crate) static KEYS_OF_TOOL: &[Key] = keys! {
    /// `"deny"`: nobody is asked for what this tool is not granted.
    "ungranted": Words(Ungranted::WORDS), {"examples": ["deny"]};
};

/// The answer to requests that no rule allows.
pub(crate) static UNGRANTED: Right = Right {
    section: "ungranted",
    read: |_, entry, _, grants, problems| {
        grants.ungranted = entry.word(problems).unwrap_or_default();
    },
    narrow: |_, entry, grants, problems| {
        match entry.word(problems) {
            Some(Ungranted::Ask) if grants.ungranted == Ungranted::Deny => problems.add(wider(
                "the component does not ask",
                entry.span.clone(),
                &format!(
                    "add ungranted = \"ask\" to [components.{}], or leave it out here",
                    grants.subject.component()
                ),
            )),
            Some(answer) => grants.ungranted = answer,
            None => {}
        }
        // It concerns requests that the component is not granted either.
        false
    },
    canonical: |_, grants| json!((grants.ungranted() == Ungranted::Ask).then(|| grants.ungranted().name())),
    lock_lines: |_, grants| {
        let asks = grants.ungranted() == Ungranted::Ask;
        asks.then(|| "whatever else a person allows when asked".to_owned()).into_iter().collect()
    },
    ..Right::NONE
};
