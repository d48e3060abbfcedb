//! Resources that the manifest declares, and the tool that reads each address. Must not hold: how
//! they are read.
use std::sync::Arc;

use serde_json::{Map, Value};
use toolcell_mcp::{DeclaredResource, ToolList};
use toolcell_policy::{ComponentPolicy, Diagnostic, ResourceRule, ToolArguments, UriTemplate};
use toolcell_sandbox::contract;

use super::CallTarget;

/// All declared resources of a catalog.
#[derive(Default)]
pub struct DeclaredResources {
    /// In the order of [`all`](Self::all).
    addresses: Vec<UriTemplate>,
    all: Vec<DeclaredResource>,
}

impl DeclaredResources {
    /// Resources of the components that have these tools.
    pub fn of(targets: &[Arc<CallTarget>], tools: &ToolList) -> Self {
        let mut declared = Self::default();
        for (target, tool) in targets.iter().zip(tools.tools()) {
            let own = target.component.policy.resources().iter().filter(|rule| rule.tool() == target.name);
            for rule in own {
                declared.addresses.push(rule.uri().clone());
                declared.all.push(resource(rule, &tool.definition().name));
            }
        }
        declared
    }

    /// All declared resources.
    pub fn all(&self) -> &[DeclaredResource] {
        &self.all
    }

    /// The first resource that matches this address. One without variables wins.
    pub fn reader(&self, uri: &str) -> Option<&DeclaredResource> {
        let fitting = || self.addresses.iter().zip(&self.all).filter(|(address, _)| address.matches(uri));
        let exact = fitting().find(|(address, _)| !address.has_variables());
        exact.or_else(|| fitting().next()).map(|(_, declared)| declared)
    }
}

fn resource(rule: &ResourceRule, tool: &str) -> DeclaredResource {
    let uri = rule.uri().as_str();
    let last = || uri.trim_end_matches('/').rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(uri);
    DeclaredResource {
        uri: uri.to_owned(),
        is_template: rule.uri().has_variables(),
        name: rule.name().unwrap_or_else(last).to_owned(),
        title: rule.title().map(str::to_owned),
        description: rule.description().map(str::to_owned),
        mime_type: rule.mime_type().map(str::to_owned),
        tool: tool.to_owned(),
        argument: rule.argument().to_owned(),
    }
}

/// Declared resources that do not fit the tools of the component.
pub fn check(policy: &ComponentPolicy, tools: &[contract::Tool]) -> Vec<Diagnostic> {
    if policy.resources().is_empty() {
        return Vec::new();
    }
    let listed: Vec<ToolArguments<'_>> = tools.iter().map(takes).collect();
    policy.resources().iter().filter_map(|rule| rule.check(policy.name(), &listed)).collect()
}

/// The arguments that a tool's schema names.
fn takes(tool: &contract::Tool) -> ToolArguments<'_> {
    let schema: Map<String, Value> = serde_json::from_str(&tool.input_schema_json).unwrap_or_default();
    let known = schema.get("properties").and_then(Value::as_object).map(|known| known.keys().cloned().collect());
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.map(|required| required.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    ToolArguments { name: &tool.name, known: known.unwrap_or_default(), required: required.unwrap_or_default() }
}
