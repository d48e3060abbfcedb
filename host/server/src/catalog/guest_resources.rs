//! Resources that components declare: their definitions in the protocol's terms, checked.
use std::collections::{BTreeMap, HashSet};

use toolcell_mcp::{DeclaredResource, DefinitionProblem, ResourceMore, ResourceReader, Revision};
use toolcell_policy::{LoadLimits, UriTemplate};
use toolcell_sandbox::contract;

use super::{content, definition};

/// Templates of one component. Each is matched against every address that is read.
const TEMPLATES_MAX: usize = 32;

/// The scheme of views of MCP Apps.
const VIEWS: &str = "ui://";

#[derive(Clone, Debug)]
pub struct GuestResource {
    pub address: UriTemplate,
    pub declared: DeclaredResource,
}

/// The resources that a component lists. Problems stand with the address.
pub fn of_component(
    listed: Vec<contract::ListedResource>,
    limits: &LoadLimits,
) -> Result<Vec<GuestResource>, Vec<(String, DefinitionProblem)>> {
    let mut all = Vec::with_capacity(listed.len());
    let mut problems = Vec::new();
    let mut templates = 0;
    let mut seen = HashSet::with_capacity(listed.len());
    for resource in listed {
        let uri = resource.uri.clone();
        if !seen.insert(uri.clone()) {
            problems.push((uri, DefinitionProblem::new("uri", "is listed twice")));
            continue;
        }
        match one(resource, limits) {
            Ok(resource) => {
                templates += usize::from(resource.declared.is_template);
                all.push(resource);
            }
            Err(found) => problems.extend(found.into_iter().map(|problem| (uri.clone(), problem))),
        }
    }
    if templates > TEMPLATES_MAX {
        let message = format!("is one of {templates} templates; a component may list {TEMPLATES_MAX}");
        problems.push((String::new(), DefinitionProblem::new("uri", message)));
    }
    if problems.is_empty() { Ok(all) } else { Err(problems) }
}

fn one(resource: contract::ListedResource, limits: &LoadLimits) -> Result<GuestResource, Vec<DefinitionProblem>> {
    if weigh(&resource) > limits.definition_bytes() {
        return Err(vec![definition::too_large(limits)]);
    }
    let contract::ListedResource {
        uri,
        name,
        title,
        description,
        mime_type,
        size,
        annotations,
        icons,
        meta_json,
        variables,
    } = resource;
    let address = UriTemplate::parse(&uri).map_err(|wrong| vec![DefinitionProblem::new("uri", wrong)])?;
    let problem = |field: &str, message: String| vec![DefinitionProblem::new(field, message)];
    let mut meta = content::meta(meta_json).map_err(|message| problem("meta-json", message))?;
    if uri.get(..VIEWS.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(VIEWS)) {
        // Only the manifest decides what a view may reach.
        meta.remove("ui");
    }
    let mut values: BTreeMap<String, Vec<String>> =
        variables.into_iter().map(|variable| (variable.name, variable.values)).collect();
    let variables = address.variables();
    let variables = variables.map(|name| (name.to_owned(), values.remove(name).unwrap_or_default())).collect();
    if let Some(other) = values.keys().next() {
        return Err(problem("variables", format!("{other:?} is not a variable of the address")));
    }
    let declared = DeclaredResource {
        is_template: address.has_variables(),
        uri,
        name,
        title,
        description,
        mime_type,
        reader: ResourceReader::Host { tools: Vec::new() },
        variables,
        more: ResourceMore {
            size_bytes: size.filter(|_| !address.has_variables()),
            annotations: annotations.map(content::annotations),
            icons: content::icons(icons),
            meta,
        },
    };
    Ok(GuestResource { declared: declared.checked()?, address })
}

/// Bytes of all texts of a definition.
fn weigh(resource: &contract::ListedResource) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let values = resource
        .variables
        .iter()
        .map(|variable| variable.name.len() + variable.values.iter().map(String::len).sum::<usize>());
    let texts = [&resource.title, &resource.description, &resource.mime_type, &resource.meta_json];
    resource.uri.len()
        + resource.name.len()
        + texts.into_iter().map(optional).sum::<usize>()
        + resource.annotations.as_ref().map_or(0, |annotations| annotations.audience.len())
        + resource.icons.iter().map(definition::icon_bytes).sum::<usize>()
        + values.sum::<usize>()
}

/// All of them as clients see them, for the lock.
pub fn pinned(resources: &[GuestResource]) -> serde_json::Value {
    let definition = |resource: &GuestResource| -> serde_json::Value {
        let json = Revision::V2026_07_28.resource_json(&resource.declared);
        let mut definition: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        let known: BTreeMap<_, _> =
            resource.declared.variables.iter().filter(|(_, values)| !values.is_empty()).cloned().collect();
        if let Some(members) = definition.as_object_mut().filter(|_| !known.is_empty()) {
            members.insert("values".to_owned(), serde_json::json!(known));
        }
        definition
    };
    // Keyed by address, so that adding one changes no other line.
    let all: serde_json::Map<_, _> =
        resources.iter().map(|resource| (resource.declared.uri.clone(), definition(resource))).collect();
    serde_json::json!({
        "description": format!("{} resources and templates", resources.len()),
        "resources": all,
    })
}
