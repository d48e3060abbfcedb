//! A component's policy as one text that does not depend on how the manifest was written. Must not
//! hold: digests of the text.

mod grants;
mod program;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

pub(crate) use grants::{is_empty, sorted};

use crate::grants::Grants;
use crate::limits::{Limit, Limits, LoadLimit, Spec, Unit};
use crate::manifest::wasi::LATER;
use crate::manifest::{
    Approval, ApprovalPolicy, ComponentPolicy, InstancePolicy, RecordRule, ResourceRule, TaskRule, ToolPolicy,
};

/// The version of the form. It changes when the same keys are written differently; a new key
/// changes the text anyway.
const FORM: u32 = 5;

#[derive(Serialize)]
struct Canonical<'a> {
    form: u32,
    component: &'a str,
    prefix: Option<&'a str>,
    /// Only if warnings about unsupported functions are off.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    skip_unsupported: bool,
    /// The functions that are tools, if the manifest names them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    exports: BTreeMap<&'a str, &'a str>,
    /// Texts of functions and types; omitted if empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    describe: BTreeMap<&'a str, &'a str>,
    limits: CanonicalTable,
    load: CanonicalTable,
    instance: Instance,
    /// Instances kept ready for each tool in use.
    prewarm: usize,
    /// Only if the manifest names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    wall: Option<&'a str>,
    /// Only if the component may import WASI 0.3.
    #[serde(skip_serializing_if = "Option::is_none")]
    wasi: Option<&'static str>,
    /// Null for a component without grants.
    #[serde(skip_serializing_if = "serde_json::Value::is_null")]
    grants: serde_json::Value,
    /// Omitted if no call is confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Confirmed>,
    /// Only if calls become tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// Only if calls are recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    /// Resources that its tools read, by address; omitted if empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<&'a str, Resource<'a>>,
    /// Only the tools that differ from the component.
    tools: BTreeMap<&'a str, Tool>,
}

/// A resource and the tool, the mount or the state that it is read from.
#[derive(Serialize)]
struct Resource<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<CanonicalFiles<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keyvalue: Option<CanonicalEntries<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    values: &'a BTreeMap<String, Vec<String>>,
}

/// Files of a mount; the mount itself is among the grants.
#[derive(Serialize)]
struct CanonicalFiles<'a> {
    mount: &'a str,
    file_size: u64,
    files: usize,
}

/// Entries of state; the state itself is among the grants.
#[derive(Serialize)]
struct CanonicalEntries<'a> {
    bucket: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

/// The part of a tool's policy that differs from its component's.
#[derive(Default, PartialEq, Serialize)]
struct Tool {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Its behaviour.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    hints: BTreeMap<&'static str, bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<CanonicalTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grants: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Confirmed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    /// The view of its results, and who calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    view: Option<serde_json::Map<String, serde_json::Value>>,
    /// Conditions on its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<serde_json::Value>,
}

/// The calls that are confirmed, and for how long a confirmation holds, in milliseconds, if for
/// more than one call.
#[derive(PartialEq, Serialize)]
struct Confirmed {
    policy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remember: Option<u64>,
}

/// The calls that share an instance, and its times in milliseconds if some do.
#[derive(Serialize)]
struct Instance {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lifetime: Option<u64>,
}

type CanonicalTable = BTreeMap<&'static str, Value>;

/// A limit's value: rates as texts, everything else as a number.
#[derive(PartialEq, Serialize)]
#[serde(untagged)]
enum Value {
    Number(u64),
    Rate(String),
}

impl Grants {
    /// The grants as JSON with sorted keys: equal grants give equal values, whatever the manifest's
    /// order; null without any. It contains no secret's value.
    #[must_use]
    pub fn canonical(&self) -> serde_json::Value {
        grants::form(self)
    }
}

impl ComponentPolicy {
    /// The policy as JSON without spaces and with sorted keys: equal policies give equal texts,
    /// whatever the manifest's order, units and comments. Durations are milliseconds, sizes bytes,
    /// rates texts, rules in their normal form. It contains neither the source of the component's
    /// bytes nor any secret's value.
    #[must_use]
    pub fn canonical(&self) -> String {
        let grants = grants::form(self.grants());
        // A limit of a later version does not change policies that do not set it.
        let said =
            |limit: &LoadLimit| *limit != LoadLimit::CompileMemory || self.load().get(*limit) != limit.spec().default;
        let tools =
            self.tools().iter().filter_map(|tool| Some((tool.name(), differing(self, &grants, tool)?))).collect();
        let canonical = Canonical {
            form: FORM,
            component: self.name(),
            prefix: self.prefix(),
            skip_unsupported: self.typed().skip_unsupported(),
            exports: self.typed().exports().iter().map(|export| (export.function(), export.tool())).collect(),
            describe: self.typed().descriptions().iter().map(|text| (text.key(), text.text())).collect(),
            limits: table(self.limits()),
            load: LoadLimit::ALL
                .into_iter()
                .filter(said)
                .map(|limit| row(limit.spec(), self.load().get(limit)))
                .collect(),
            instance: instance(self.instance()),
            prewarm: self.prewarm(),
            wall: self.wall().name(),
            wasi: self.has_later_wasi().then_some(LATER),
            grants,
            approval: (self.approval().policy() != ApprovalPolicy::Never).then(|| confirmed(self.approval())),
            task: (self.task() != TaskRule::Never).then(|| self.task().show()),
            record: (self.record() != RecordRule::Never).then(|| self.record().show()),
            resources: self.resources().iter().map(|rule| (rule.uri().as_str(), resource(rule))).collect(),
            tools,
        };
        // Maps with text keys, integers and texts always serialize.
        serde_json::to_string(&canonical).unwrap_or_default()
    }
}

fn differing(component: &ComponentPolicy, granted: &serde_json::Value, tool: &ToolPolicy) -> Option<Tool> {
    let limits = (tool.limits() != component.limits()).then(|| table(tool.limits()));
    let grants = grants::form(tool.grants());
    let grants = (grants != *granted).then_some(grants);
    let title = tool.title().map(str::to_owned);
    let description = tool.description().map(str::to_owned);
    let hints: BTreeMap<_, _> = tool.hints().said().into_iter().collect();
    let program = tool.program().map(|program| program.canonical());
    let approval = (tool.approval() != component.approval()).then(|| confirmed(tool.approval()));
    let task = (tool.task() != component.task()).then(|| tool.task().show());
    let record = (tool.record() != component.record()).then(|| tool.record().show());
    let view = tool.view().is_said().then(|| tool.view().meta());
    let arguments = tool.arguments().map(|conditions| conditions.canonical());
    let tool = Tool { title, description, hints, program, limits, grants, approval, task, record, view, arguments };
    (tool != Tool::default()).then_some(tool)
}

fn resource(rule: &ResourceRule) -> Resource<'_> {
    let tool = rule.tool();
    let name = rule.name();
    let title = rule.title();
    let description = rule.description();
    let mime_type = rule.mime_type();
    let values = rule.values();
    let argument = (!rule.is_read_by_host()).then(|| rule.argument());
    let keyvalue =
        rule.entries().map(|entries| CanonicalEntries { bucket: &entries.bucket, key: entries.key.as_deref() });
    let files = rule.files().map(|files| CanonicalFiles {
        mount: files.mount(),
        file_size: files.file_bytes_max(),
        files: files.files_max(),
    });
    Resource { tool, argument, files, keyvalue, name, title, description, mime_type, values }
}

fn confirmed(approval: Approval) -> Confirmed {
    Confirmed { policy: approval.policy().name(), remember: approval.remember_ms }
}

fn instance(policy: InstancePolicy) -> Instance {
    // The longest possible time is a day.
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let (idle, lifetime) = match policy {
        InstancePolicy::PerCall => (None, None),
        InstancePolicy::PerCaller { idle, lifetime } => (Some(millis(idle)), Some(millis(lifetime))),
    };
    Instance { kind: policy.name(), idle, lifetime }
}

fn table(limits: &Limits) -> CanonicalTable {
    // A limit of a later version does not change policies that do not set it.
    let is_later = |limit: &Limit| matches!(limit, Limit::TaskDeadline | Limit::ConcurrencyShared);
    let said = |limit: &Limit| !is_later(limit) || limits.get(*limit) != limit.spec().default;
    Limit::ALL.into_iter().filter(said).map(|limit| row(limit.spec(), limits.get(limit))).collect()
}

fn row(spec: &Spec, value: u64) -> (&'static str, Value) {
    let value = if spec.unit == Unit::Rate { Value::Rate(spec.show(value)) } else { Value::Number(value) };
    (spec.key, value)
}
