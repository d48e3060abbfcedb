//! What a component's policy is, as one text that does not depend on how the manifest was written. Must not hold: how
//! the text is digested.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::limits::{Limit, Limits};
use crate::manifest::ComponentPolicy;

/// The version of the text's form; changes whenever the same policy would give another text.
const FORM: u32 = 1;

#[derive(Serialize)]
struct Canonical<'a> {
    form: u32,
    component: &'a str,
    prefix: Option<&'a str>,
    limits: BTreeMap<&'static str, u64>,
    /// Only the tools whose limits differ from the component's.
    tools: BTreeMap<&'a str, BTreeMap<&'static str, u64>>,
}

impl ComponentPolicy {
    /// The policy as JSON without spaces and with sorted keys: equal policies give equal texts, whatever the
    /// manifest's order, units and comments. Durations are milliseconds, sizes bytes. Where the bytes come from is no
    /// part of it.
    #[must_use]
    pub fn canonical(&self) -> String {
        let differing = self.tools().iter().filter(|tool| tool.limits() != self.limits());
        let canonical = Canonical {
            form: FORM,
            component: self.name(),
            prefix: self.prefix(),
            limits: numbers(self.limits()),
            tools: differing.map(|tool| (tool.name(), numbers(tool.limits()))).collect(),
        };
        // Maps with text keys and integers always serialize.
        serde_json::to_string(&canonical).unwrap_or_default()
    }
}

fn numbers(limits: &Limits) -> BTreeMap<&'static str, u64> {
    Limit::ALL.into_iter().map(|limit| (limit.spec().key, limits.get(limit))).collect()
}
