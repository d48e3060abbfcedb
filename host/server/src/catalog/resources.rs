//! Resources that the manifest or components declare, and what each address is read from.
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use toolcell_mcp::{Completions, DeclaredResource, ResourceMore, ResourceReader, ToolList};
use toolcell_policy::{ComponentPolicy, Diagnostic, ResourceRule, ToolArguments, UriTemplate};
use toolcell_sandbox::{contract, export};

use super::entry::targets;
use super::held::{HeldFile, HeldFiles};
use super::{CallTarget, CatalogParts, LoadedComponent};
use crate::resources::folders::{Folder, FolderPlaces};
use crate::resources::kept_entries::KeptEntries;

/// Values of a variable that a tool's schema names. Clients show a hundred at once.
const VALUES_MAX: usize = 1_000;

/// The argument of the entry that reads a component's own resources.
const ADDRESS: &str = "uri";

/// All declared resources of a catalog: those of the manifest, then those of components.
pub struct DeclaredResources {
    /// Those of the components, in the order of [`all`](Self::all).
    origins: Vec<DeclaredOrigin>,
    /// Resources of components, and after them those of kept files.
    all: Vec<DeclaredResource>,
    /// The number of those of the manifest.
    operators: usize,
    /// Those without variables, by address.
    exact: HashMap<String, usize>,
    /// Addresses that several components declare: they belong to none of them.
    disputed: Disputed,
    /// Files of skills and views.
    held: HeldFiles,
}

/// Addresses and templates that are not served.
#[derive(Default)]
struct Disputed {
    exact: HashSet<String>,
    templates: Vec<UriTemplate>,
}

/// The origin of one declared resource.
pub struct DeclaredOrigin {
    address: UriTemplate,
    /// The component that declares it, or that the manifest declares it for.
    pub component: Arc<LoadedComponent>,
    /// The source that the host reads, if no call does.
    pub source: Option<HostSource>,
}

/// A source that the host reads by itself.
pub enum HostSource {
    /// Files of a folder.
    Folder(Arc<Folder>),
    Entries(Arc<KeptEntries>),
}

impl DeclaredResources {
    /// Resources of these components, and the kept files of skills and views, for callers of these
    /// tools.
    pub(super) fn of(parts: &CatalogParts, tools: &ToolList, places: &FolderPlaces) -> Self {
        let (origins, all, exact, disputed) = Default::default();
        let mut held = parts.skills.held();
        held.extend(parts.apps.held(tools));
        let mut declared = Self { origins, all, operators: 0, exact, disputed, held };
        let targets = || targets(&parts.entries);
        let mut components: Vec<&Arc<LoadedComponent>> = Vec::new();
        for target in targets() {
            let component = &target.component;
            let rules = || component.policy.resources().iter();
            for rule in rules().filter(|rule| !rule.is_read_by_host() && rule.tool() == Some(&target.name)) {
                declared.add_read_by_tool(rule, target);
            }
            if components.iter().any(|known| Arc::ptr_eq(known, component)) {
                continue;
            }
            components.push(component);
            let own: Vec<_> = targets().filter(|target| Arc::ptr_eq(&target.component, component)).collect();
            for rule in rules() {
                declared.add_read_by_host(rule, component, &own, places);
            }
        }
        declared.operators = declared.all.len();
        let reads = |component: &Arc<LoadedComponent>| {
            let reads = |target: &&Arc<CallTarget>| {
                target.name == export::RESOURCES && Arc::ptr_eq(&target.component, component)
            };
            targets().find(reads).map(|target| target.tool.definition().name.as_str())
        };
        declared.add_guests(components.into_iter().filter_map(|component| Some((component, reads(component)?))));
        declared.all.extend(declared.held.declared.iter().cloned());
        declared
    }

    fn add_read_by_tool(&mut self, rule: &ResourceRule, target: &CallTarget) {
        if !target.is_named() {
            return;
        }
        let tool = &target.tool.definition().name;
        let reader = ResourceReader::Tool { tool: tool.clone(), argument: rule.argument().to_owned() };
        let mut resource = resource(rule, reader, tool);
        // If the manifest names no values, the schema may.
        if let [(_, values)] = resource.variables.as_mut_slice()
            && values.is_empty()
        {
            *values = named_by_schema(rule, &target.tool.definition().input_schema);
        }
        self.push(rule.uri(), &target.component, None, resource);
    }

    /// `own` are the targets of the component.
    fn add_read_by_host(
        &mut self,
        rule: &ResourceRule,
        component: &Arc<LoadedComponent>,
        own: &[&Arc<CallTarget>],
        places: &FolderPlaces,
    ) {
        let keeps = || own.iter().find(|target| target.capabilities.keeps_state());
        let folder = Folder::open(rule, places).map(|folder| HostSource::Folder(Arc::new(folder)));
        let entries = || KeptEntries::of(rule, &keeps()?.capabilities);
        let Some(source) = folder.or_else(|| Some(HostSource::Entries(Arc::new(entries()?)))) else { return };
        // Adds what components declare. The manifest's declaration of an address wins; an address
        // that several components declare belongs to none.
        let needed = own.iter().filter(|target| target.is_named());
        let needed = needed.filter(|target| rule.tool().is_none_or(|tool| tool == target.name));
        let tools = needed.map(|target| target.tool.definition().name.clone()).collect();
        let resource = resource(rule, ResourceReader::Host { tools }, component.name());
        self.push(rule.uri(), component, Some(source), resource);
    }

    /// Adds what components declare. What the manifest declares as well is the manifest's, and what
    /// several components declare is neither's.
    fn add_guests<'c>(&mut self, components: impl Iterator<Item = (&'c Arc<LoadedComponent>, &'c str)> + Clone) {
        let mut times: HashMap<String, usize> = self.all.iter().map(|declared| (declared.uri.clone(), 1)).collect();
        for (component, _) in components.clone() {
            for guest in &component.resources {
                *times.entry(guest.declared.uri.clone()).or_default() += 1;
            }
        }
        let operators: HashSet<String> = self.all.iter().map(|declared| declared.uri.clone()).collect();
        for (component, entry) in components {
            for guest in &component.resources {
                if times.get(&guest.declared.uri) != Some(&1) {
                    if !operators.contains(&guest.declared.uri) {
                        self.disputed.add(&guest.address);
                    }
                    tracing::warn!(
                        component = component.name(),
                        "its resource {} is left out: the manifest or another component declares the address",
                        guest.declared.uri
                    );
                    continue;
                }
                let reader = ResourceReader::Tool { tool: entry.to_owned(), argument: ADDRESS.to_owned() };
                let declared = DeclaredResource { reader, ..guest.declared.clone() };
                self.push(&guest.address, component, None, declared);
            }
        }
    }

    fn push(
        &mut self,
        address: &UriTemplate,
        component: &Arc<LoadedComponent>,
        source: Option<HostSource>,
        resource: DeclaredResource,
    ) {
        if !resource.is_template {
            self.exact.entry(resource.uri.clone()).or_insert(self.all.len());
        }
        let address = address.clone();
        let component = Arc::clone(component);
        self.origins.push(DeclaredOrigin { address, component, source });
        self.all.push(resource);
    }

    /// The kept file at an address, with its resource.
    pub fn held(&self, uri: &str) -> Option<(&DeclaredResource, &HeldFile)> {
        self.held.find(uri)
    }

    /// All declared resources.
    pub fn all(&self) -> &[DeclaredResource] {
        &self.all
    }

    /// The folders whose files are resources.
    pub fn folders(&self) -> Vec<Arc<Folder>> {
        self.origins.iter().filter_map(|origin| origin.folder().cloned()).collect()
    }

    /// The folder of a declared resource.
    pub fn folder_of(&self, declared: &DeclaredResource) -> Option<&Arc<Folder>> {
        let place = self.all.iter().position(|known| std::ptr::eq(known, declared))?;
        self.origins.get(place)?.folder()
    }

    /// Entries of this component's state that are resources.
    pub fn entries_of<'r>(&'r self, component: &'r str) -> impl Iterator<Item = &'r Arc<KeptEntries>> {
        let own = self.origins.iter().take(self.operators).filter(move |origin| origin.component.name() == component);
        own.filter_map(|origin| match &origin.source {
            Some(HostSource::Entries(entries)) => Some(entries),
            Some(HostSource::Folder(_)) | None => None,
        })
    }

    /// Paths of files that complete the variable of this template; `None` if it does not stand for
    /// files.
    pub fn complete(&self, template: &str, typed: &str) -> Option<Completions> {
        let place = self.all.iter().position(|declared| declared.uri == template)?;
        Some(self.origins.get(place)?.folder()?.complete(typed))
    }

    /// The resource that this address means, with its origin. The manifest's come first, and exact
    /// addresses before templates. Addresses that several components declare mean none.
    pub fn reader(&self, uri: &str) -> Option<(&DeclaredResource, &DeclaredOrigin)> {
        let at = |place: usize| self.all.get(place).zip(self.origins.get(place));
        let exact = self.exact.get(uri).copied();
        if let Some(place) = exact.filter(|place| *place < self.operators) {
            return at(place);
        }
        let fitting = |(declared, origin): &(&DeclaredResource, &DeclaredOrigin)| {
            declared.is_template && origin.address.matches(uri)
        };
        let mut templates = self.all.iter().zip(&self.origins);
        if let Some(found) = templates.by_ref().take(self.operators).find(fitting) {
            return Some(found);
        }
        if self.disputed.has(uri) {
            return None;
        }
        let guests = self.all.iter().zip(&self.origins).skip(self.operators).filter(fitting);
        let mut found: Option<(&DeclaredResource, &DeclaredOrigin)> = exact.and_then(at);
        for (declared, origin) in guests {
            match found {
                None => found = Some((declared, origin)),
                Some((_, first)) if Arc::ptr_eq(&first.component, &origin.component) => {}
                Some(_) => return None,
            }
        }
        found
    }
}

impl Disputed {
    fn add(&mut self, address: &UriTemplate) {
        if !address.has_variables() {
            self.exact.insert(address.as_str().to_owned());
        } else if !self.templates.contains(address) {
            self.templates.push(address.clone());
        }
    }

    fn has(&self, uri: &str) -> bool {
        self.exact.contains(uri) || self.templates.iter().any(|template| template.matches(uri))
    }
}

impl DeclaredOrigin {
    fn folder(&self) -> Option<&Arc<Folder>> {
        match &self.source {
            Some(HostSource::Folder(folder)) => Some(folder),
            Some(HostSource::Entries(_)) | None => None,
        }
    }

    /// True if callers read different content at an address.
    pub fn is_per_caller(&self) -> bool {
        matches!(&self.source, Some(HostSource::Entries(entries)) if entries.is_per_caller())
    }

    /// A text that changes when the address is read from something else.
    pub fn identity(&self) -> String {
        match &self.source {
            Some(HostSource::Folder(folder)) => folder.identity(),
            Some(HostSource::Entries(entries)) => entries.identity(),
            None => format!("{} {}", self.component.digest(), self.component.policy_digest),
        }
    }
}

fn resource(rule: &ResourceRule, reader: ResourceReader, named: &str) -> DeclaredResource {
    let uri = rule.uri().as_str();
    let last = || uri.trim_end_matches('/').rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(uri);
    let is_template = rule.uri().has_variables();
    // The last part of a template may be only a variable.
    let default = || if is_template { rule.title().unwrap_or(named) } else { last() };
    DeclaredResource {
        uri: uri.to_owned(),
        is_template,
        name: rule.name().unwrap_or_else(default).to_owned(),
        title: rule.title().map(str::to_owned),
        description: rule.description().map(str::to_owned),
        mime_type: rule.mime_type().map(str::to_owned),
        reader,
        variables: rule
            .uri()
            .variables()
            .map(|name| (name.to_owned(), rule.values().get(name).cloned().unwrap_or_default()))
            .collect(),
        more: ResourceMore::default(),
    }
}

/// Values of the address's only variable, if the schema of the tool's argument lists the addresses
/// (`enum`, `const`).
fn named_by_schema(rule: &ResourceRule, schema: &Value) -> Vec<String> {
    let argument = schema.get("properties").and_then(|properties| properties.get(rule.argument()));
    let Some((argument, (before, behind, slashes))) = argument.zip(rule.uri().around_variable()) else {
        return Vec::new();
    };
    let several = argument.get("enum").and_then(Value::as_array).into_iter().flatten();
    let addresses = several.chain(argument.get("const")).filter_map(Value::as_str);
    let values = addresses.filter_map(|uri| uri.strip_prefix(before)?.strip_suffix(behind));
    let fits = |value: &&str| !value.is_empty() && (slashes || !value.contains(['/', '?', '#']));
    values.filter(fits).take(VALUES_MAX).map(str::to_owned).collect()
}

/// Reports declared resources that do not fit the tools of the component.
pub fn check(policy: &ComponentPolicy, tools: &[contract::GuestTool]) -> Vec<Diagnostic> {
    if policy.resources().is_empty() {
        return Vec::new();
    }
    let listed: Vec<ToolArguments<'_>> = tools.iter().map(takes).collect();
    policy.resources().iter().filter_map(|rule| rule.check(policy.name(), &listed)).collect()
}

/// The arguments that a tool's schema names.
fn takes(tool: &contract::GuestTool) -> ToolArguments<'_> {
    let schema: Map<String, Value> = serde_json::from_str(&tool.input_schema_json).unwrap_or_default();
    let known = schema.get("properties").and_then(Value::as_object).map(|known| known.keys().cloned().collect());
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.map(|required| required.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    ToolArguments { name: &tool.name, known: known.unwrap_or_default(), required: required.unwrap_or_default() }
}
