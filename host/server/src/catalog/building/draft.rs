//! The catalog while it grows: components and their entries are added one by one.
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use toolcell_mcp::{CALL_TOOL, DefinitionProblem, FIND_TOOLS, McpTool};
use toolcell_policy::{
    Approval, CallingTool, Capability, ComponentPolicy, Diagnostic, Discovery, Manifest, Program, Span, check_calls,
};
use toolcell_sandbox::{ComponentDigest, GrantedCapabilities, ListedBeside, ShapeName, contract, export};
use toolcell_schema::ToolFindings;

use super::super::arguments::{ArgumentChecks, CallerRules, budget};
use super::super::definition::{self, ListingStop};
use super::super::entry::{CatalogEntry, EntryKind, targets};
use super::super::instances::InstancesByCaller;
use super::super::narrowing::ToolNarrowing;
use super::super::permissions::{GrantContext, ToolCapabilities};
use super::super::queue::Admission;
use super::super::texts::{TEXTS, TextPrompt};
use super::super::{
    CallTarget, Catalog, CatalogParts, DenialCounts, LoadedComponent, guest_resources, meters, program, resources,
};
use super::problems::{
    PROBLEMS_PER_COMPONENT_MAX, broken, broken_resource, check_count, misnamed, not_applied, not_pooled,
    schemas_too_slow,
};
use super::{Basis, ListedComponent, typed};
use crate::fetching::requested_permissions;

/// A component whose tools are being added.
struct ComponentDraft<'a> {
    loaded: Arc<LoadedComponent>,
    capabilities: ToolCapabilities<'a>,
    /// The instances that calls share, one set for each set of grants: an instance may hold data
    /// that other tools must not see.
    shared: Vec<(Arc<GrantedCapabilities>, Arc<InstancesByCaller>)>,
}

impl ComponentDraft<'_> {
    /// The instances that a tool's callers keep; `None` if each call has its own.
    fn instances(
        &mut self,
        policy: &ComponentPolicy,
        capabilities: &Arc<GrantedCapabilities>,
    ) -> Option<Arc<InstancesByCaller>> {
        if let Some((_, shared)) =
            self.shared.iter().find(|(other, _)| other.grants().reaches_like(capabilities.grants()))
        {
            return Some(Arc::clone(shared));
        }
        let shared = InstancesByCaller::of(policy)?;
        self.shared.push((Arc::clone(capabilities), Arc::clone(&shared)));
        Some(shared)
    }
}

/// An entry that is added: its definition, its path in the component, and its rules.
struct NewEntry {
    entry: McpTool,
    name: String,
    program: Option<Arc<Program>>,
    approval: Option<Approval>,
}

/// The catalog while it grows.
pub(super) struct CatalogDraft<'a> {
    pub(super) parts: CatalogParts,
    /// For each tool: its name for clients, the component's name, and its place in the manifest.
    pub(super) origins: Vec<(String, String, Span)>,
    pub(super) basis: &'a Basis<'a>,
    /// Rules for callers.
    pub(super) callers: &'a Arc<CallerRules>,
}

impl CatalogDraft<'_> {
    /// Adds a component of an earlier catalog, and repeats its warnings.
    pub(super) fn take_over(
        &mut self,
        policy: &ComponentPolicy,
        catalog: &Catalog,
        loaded: &Arc<LoadedComponent>,
        problems: &mut Vec<Diagnostic>,
    ) {
        let own = catalog.offers().filter(|offer| Arc::ptr_eq(offer.component(), loaded));
        let names: Vec<&str> = own.map(|offer| offer.own_name()).collect();
        problems.extend(policy.check_exports(&names));
        problems.extend(policy.check_imports(loaded.inspection().imports()));
        problems.extend(typed::check(policy, &loaded.component));
        problems.extend(requested_permissions::check(policy, loaded.component.requested()));
        if !loaded.component.is_pooled() {
            problems.push(not_pooled(policy));
        }
        let own = catalog.offers().filter(|offer| Arc::ptr_eq(offer.component(), loaded));
        problems.extend(not_applied(policy, own.map(|offer| &**offer.tool())));
        for exposed in catalog.tools_of(loaded) {
            self.origins.push((exposed.to_owned(), policy.name().to_owned(), policy.name_span()));
        }
        self.parts.take_over(catalog, loaded, Some(self.callers));
    }

    /// Adds the manifest's prompts, after those of components.
    pub(super) fn add_texts(&mut self, texts: Vec<Arc<TextPrompt>>, manifest: &Manifest) {
        for (text, rule) in texts.into_iter().zip(manifest.prompts()) {
            self.origins.push((text.entry.definition().name.clone(), TEXTS.to_owned(), rule.span()));
            self.push(EntryKind::Text(text));
        }
    }

    /// Adds the skills, which come last.
    pub(super) fn add_skills(&mut self) {
        let skills = Arc::clone(&self.parts.skills);
        skills.entries.iter().for_each(|entry| self.push(EntryKind::Skill(Arc::clone(entry))));
    }

    fn push(&mut self, kind: EntryKind) {
        self.parts.entries.push(CatalogEntry { kind, rules: Arc::clone(self.callers) });
    }

    /// Keeps a component as it is served now, if it is.
    pub(super) fn hold(&mut self, policy: &ComponentPolicy) {
        let Some((catalog, loaded)) = self.basis.serving(policy.name()) else { return };
        for exposed in catalog.tools_of(loaded) {
            self.origins.push((exposed.to_owned(), policy.name().to_owned(), policy.name_span()));
        }
        self.parts.take_over(catalog, loaded, None);
    }

    pub(super) fn add(
        &mut self,
        policy: &ComponentPolicy,
        context: &GrantContext<'_>,
        listed: ListedComponent,
        problems: &mut Vec<Diagnostic>,
    ) {
        let before = problems.len();
        let ListedComponent { component, policy_digest, signed, side_files, dev_source, tools, beside, schemas } =
            listed;
        let ListedBeside { prompts, resources } = beside;
        problems.extend(typed::check(policy, &component));
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        problems.extend(policy.check_exports(&names));
        problems.extend(program::check(policy, &component));
        problems.extend(resources::check(policy, &tools));
        let what = if prompts.is_empty() && resources.is_empty() { "tools" } else { "tools, prompts and resources" };
        let count = tools.len() + prompts.len() + resources.len();
        let Ok(()) = check_count(policy, count, what).map_err(|problem| problems.push(problem)) else {
            return;
        };
        let resources = guest_resources::of_component(resources, policy.load()).unwrap_or_else(|found| {
            let found = found.iter().take(PROBLEMS_PER_COMPONENT_MAX);
            problems.extend(found.map(|(uri, problem)| broken_resource(policy, uri, problem)));
            Vec::new()
        });
        let loaded = Arc::new(LoadedComponent {
            policy: policy.clone(),
            digest: component.digest().to_string(),
            policy_digest,
            signed,
            resources,
            side_files,
            dev_source,
            component,
            denied: self
                .basis
                .loaded(policy.name())
                .map_or_else(|| Arc::new(DenialCounts::new(&Capability::ALL)), |loaded| Arc::clone(&loaded.denied)),
        });
        if !loaded.component.is_pooled() {
            problems.push(not_pooled(policy));
        }
        problems.extend(policy.check_imports(loaded.inspection().imports()));
        let mut draft = ComponentDraft {
            loaded: Arc::clone(&loaded),
            capabilities: ToolCapabilities::new(policy, context),
            shared: Vec::new(),
        };
        let mut schemas = schemas;
        for (place, tool) in tools.into_iter().enumerate() {
            let many = problems.len() - before >= PROBLEMS_PER_COMPONENT_MAX;
            let found = match definition::found(&mut schemas, place) {
                Err(ListingStop::TooLate) => {
                    problems.push(schemas_too_slow(policy));
                    break;
                }
                Ok(found) if !many => found,
                Ok(_) | Err(ListingStop::Problems) => {
                    let message = format!("component \"{}\" has more problems; these come first", policy.name());
                    problems.push(Diagnostic::error("tools::more", message).at(policy.source_span()));
                    break;
                }
            };
            self.add_tool(policy, &mut draft, tool, found, problems);
        }
        for prompt in prompts {
            if problems.len() - before >= PROBLEMS_PER_COMPONENT_MAX {
                break;
            }
            self.add_prompt(policy, &mut draft, prompt, problems);
        }
        if loaded.component.inspection().completes() {
            let entry = definition::completion(policy.name(), policy.load());
            self.add_unlisted(policy, &mut draft, export::COMPLETION, entry, problems);
        }
        if loaded.component.inspection().has_resources() {
            let entry = definition::reading(policy.name(), policy.load());
            self.add_unlisted(policy, &mut draft, export::RESOURCES, entry, problems);
        }
        problems.extend(requested_permissions::check(policy, loaded.component.requested()));
        let own = self.parts.entries.iter().filter(|entry| entry.is_of(&loaded));
        problems.extend(not_applied(policy, own.map(|entry| entry.tool().as_ref())));
        self.parts.components.push(loaded);
    }

    fn add_tool(
        &mut self,
        policy: &ComponentPolicy,
        draft: &mut ComponentDraft<'_>,
        mut tool: contract::GuestTool,
        found: ToolFindings,
        problems: &mut Vec<Diagnostic>,
    ) {
        let name = tool.name.clone();
        if let Some(said) = policy.tool(&name) {
            definition::overrule(&mut tool, said);
        }
        let program = program::of_tool(policy, &name, &draft.loaded.component);
        let exposed = match policy.exposed_name(&name) {
            Ok(exposed) => exposed,
            Err(error) => return problems.push(misnamed(policy, &name, &error)),
        };
        match definition::compile(exposed.clone(), tool, policy.load(), found) {
            Ok(tool) => {
                // The guest refuses arguments that do not convert, with their path; the schema
                // accepts exactly those that do.
                let is_function = draft.loaded.component.shape() == ShapeName::Typed && program.is_none();
                let tool = if is_function { tool.checking_its_own_arguments() } else { tool };
                let tool = tool.in_tasks(definition::task_plan(policy.tool_task(&name)));
                let hints = &tool.definition().hints;
                let asks = |approval: &Approval| approval.policy().asks(hints.read_only, hints.destructive);
                let approval = Some(policy.tool_approval(&name)).filter(asks);
                self.add_entry(policy, draft, NewEntry { entry: tool, name, program, approval }, problems);
            }
            Err(found) => problems.extend(found.iter().map(|problem| broken(policy, &name, problem))),
        }
    }

    fn add_prompt(
        &mut self,
        policy: &ComponentPolicy,
        draft: &mut ComponentDraft<'_>,
        prompt: contract::GuestPrompt,
        problems: &mut Vec<Diagnostic>,
    ) {
        let path = export::prompt(&prompt.name);
        let exposed = match policy.exposed_name(&prompt.name) {
            Ok(exposed) => exposed,
            Err(error) => return problems.push(misnamed(policy, &path, &error)),
        };
        match definition::prompt(exposed, prompt, policy.load()) {
            Ok(entry) => {
                let approval = Some(policy.tool_approval(&path));
                let approval = approval.filter(|approval| approval.policy().asks(None, None));
                self.add_entry(policy, draft, NewEntry { entry, name: path, program: None, approval }, problems);
            }
            Err(found) => problems.extend(found.iter().map(|problem| broken(policy, &path, problem))),
        }
    }

    /// Adds an entry that no client lists. Completion runs at each keystroke, so it needs no
    /// approval.
    fn add_unlisted(
        &mut self,
        policy: &ComponentPolicy,
        draft: &mut ComponentDraft<'_>,
        path: &str,
        entry: Result<McpTool, Vec<DefinitionProblem>>,
        problems: &mut Vec<Diagnostic>,
    ) {
        match entry {
            Ok(entry) => {
                let approval = Some(policy.tool_approval(path)).filter(|_| path != export::COMPLETION);
                let approval = approval.filter(|approval| approval.policy().asks(None, None));
                let name = path.to_owned();
                self.add_entry(policy, draft, NewEntry { entry, name, program: None, approval }, problems);
            }
            Err(found) => problems.extend(found.iter().map(|problem| broken(policy, path, problem))),
        }
    }

    /// Adds an entry with everything that its calls need.
    fn add_entry(
        &mut self,
        policy: &ComponentPolicy,
        draft: &mut ComponentDraft<'_>,
        new: NewEntry,
        problems: &mut Vec<Diagnostic>,
    ) {
        let NewEntry { entry, name, program, approval } = new;
        let limits = *policy.tool_limits(&name);
        let record = policy.tool_record(&name);
        let meters = meters::continued(self.basis.meters(policy.name(), &name));
        let admission = self.basis.admission(policy, &name, &limits);
        let admission =
            admission.unwrap_or_else(|| Arc::new(Admission::new(&limits, policy.name(), &name).counting(&meters)));
        let component = Arc::clone(&draft.loaded);
        let capabilities = draft.capabilities.of_tool(&name, problems);
        let instances = draft.instances(policy, &capabilities);
        let approved_as = approval.map(|rule| approved_as(&capabilities, rule)).unwrap_or_default();
        self.origins.push((entry.definition().name.clone(), policy.name().to_owned(), policy.name_span()));
        let narrowed = (!capabilities.grants().is_sealed()).then(ToolNarrowing::new);
        let arguments = argument_checks(policy, &name, &entry, problems);
        let shown = arguments.as_ref().and_then(|checks| entry.narrowed(checks.narrowing()));
        let target = CallTarget {
            tool: Arc::new(shown.unwrap_or(entry)),
            component,
            name,
            program,
            limits,
            capabilities,
            admission,
            instances,
            approval,
            record,
            approved_as,
            narrowed,
            meters,
            arguments,
        };
        self.push(EntryKind::Export(Arc::new(target)));
    }

    /// Reports rules for callers that match no tool. If tools are missing for another reason, this
    /// cannot be known.
    pub(super) fn check_callers(&self, complete: bool) -> Vec<Diagnostic> {
        if !complete {
            return Vec::new();
        }
        let is_named = |entry: &&CatalogEntry| entry.target().is_none_or(|target| target.is_named());
        let names: Vec<_> = self.parts.entries.iter().filter(is_named).map(CatalogEntry::called).collect();
        let mut problems = self.callers.check_tools(&names);
        for entry in self.parts.entries.iter().filter(is_named) {
            let name = entry.called();
            let conditions = self.callers.rules().iter().filter_map(|rule| rule.conditions(&name));
            problems.extend(conditions.flat_map(|conditions| ArgumentChecks::never(conditions, entry.tool())));
        }
        problems
    }

    /// Rules for calls that take no tool, and tools that reach themselves. If tools are missing for
    /// another reason, only the latter can be known.
    pub(super) fn check_calls(&self, complete: bool) -> Vec<Diagnostic> {
        fn calling(target: &Arc<CallTarget>) -> CallingTool<'_> {
            CallingTool {
                name: &target.tool.definition().name,
                is_tool: target.tool.is_tool(),
                grants: target.capabilities.grants(),
            }
        }
        let tools: Vec<_> = targets(&self.parts.entries).map(calling).collect();
        check_calls(&tools, complete)
    }

    /// Removes a component with its tools.
    pub(super) fn take_away(&mut self, component: &str) {
        self.origins.retain(|(_, of, _)| of != component);
        self.parts.take_away(component);
    }

    /// Finds tools with names that the host reserves, each with its component.
    pub(super) fn check_own_names(&self, manifest: &Manifest) -> Vec<(String, Diagnostic)> {
        let mut problems = Vec::new();
        if manifest.server().discovery() != Discovery::Search {
            return problems;
        }
        let taken = self.origins.iter().filter(|(exposed, ..)| [FIND_TOOLS, CALL_TOOL].contains(&exposed.as_str()));
        for (exposed, component, span) in taken {
            let message = format!(
                "component \"{component}\" has a tool \"{exposed}\", and with discovery = \"search\" the host has one"
            );
            let problem = Diagnostic::error("tools::collision", message).at(span.clone());
            problems.push((component.clone(), problem.hint("give the component a `prefix`")));
        }
        problems
    }

    /// Finds names that several tools would have, each with the later component.
    pub(super) fn check_collisions(&self) -> Vec<(String, Diagnostic)> {
        let mut problems = Vec::new();
        let mut first: HashMap<&str, &str> = HashMap::new();
        for (exposed, component, span) in &self.origins {
            let Some(earlier) = first.insert(exposed, component) else { continue };
            let (message, hint) = if earlier == component {
                (
                    format!("component \"{component}\" lists the tool \"{exposed}\" twice"),
                    "a component names each of its tools once",
                )
            } else {
                let message = format!("components \"{earlier}\" and \"{component}\" both have a tool \"{exposed}\"");
                (message, "give one of them a `prefix`")
            };
            let problem = Diagnostic::error("tools::collision", message).at(span.clone()).hint(hint);
            problems.push((component.clone(), problem));
        }
        problems
    }
}

/// The conditions on a tool's arguments that hold for all callers, compiled.
fn argument_checks(
    policy: &ComponentPolicy,
    name: &str,
    tool: &McpTool,
    problems: &mut Vec<Diagnostic>,
) -> Option<Arc<ArgumentChecks>> {
    let conditions = policy.tool(name)?.arguments()?;
    problems.extend(ArgumentChecks::never(conditions, tool));
    match ArgumentChecks::compile(conditions, &mut budget()) {
        Ok(checks) => Some(Arc::new(checks)),
        Err(found) => {
            problems.extend(found);
            None
        }
    }
}

/// The digest of all that a person confirms besides a call. The tool's code is not part of it: the
/// lock decides which code runs.
fn approved_as(capabilities: &GrantedCapabilities, rule: Approval) -> String {
    let confirmed = json!([capabilities.grants().canonical(), rule.policy().name(), rule.remember()]);
    ComponentDigest::of(confirmed.to_string().as_bytes()).to_string()
}
