//! The manifest in question, and the grants of a tool.
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use toolcell_mcp::Caller;
use toolcell_policy::{Ask, Diagnostic, Explanation, Grants, Manifest, render_all};
use toolcell_server::ManifestFile;
use toolcell_server::catalog::ListedNames;
use toolcell_server::catalog::arguments::{AskedCall, explain_call};

use crate::args::CodeCacheArgs;
use crate::commands::registries::read_manifest;
use crate::exit::{Exit, Failure};
use crate::listed::{self, Unlisted};
use crate::terminal;

/// A checked manifest. A component is only loaded if a name requires it.
pub struct Subjects<'a> {
    pub file: ManifestFile,
    manifest: Manifest,
    code: &'a CodeCacheArgs,
    /// What each component lists that was loaded; `None` if it cannot be loaded.
    components: HashMap<String, Option<ListedNames>>,
    /// Every tool, once a name for clients was looked up.
    exposed: Option<Vec<ExposedTool>>,
}

/// A tool, as clients see it.
struct ExposedTool {
    name: String,
    tool: NamedTool,
}

/// A tool by its own name in its component.
#[derive(Clone)]
struct NamedTool {
    component: String,
    own: String,
}

impl<'a> Subjects<'a> {
    /// Reads the manifest; its problems are printed.
    pub fn open(path: &Path, code: &'a CodeCacheArgs) -> Result<Self, Failure> {
        let (file, manifest) = read_manifest(path)?;
        Ok(Self { manifest, file, code, components: HashMap::new(), exposed: None })
    }

    /// Grants of a tool, by its name for clients or as `COMPONENT/TOOL`; or of a component by its
    /// name; or of its resources as `resources/COMPONENT`.
    pub fn grants(&mut self, name: &str) -> anyhow::Result<Option<Arc<Grants>>> {
        if let Some(NamedTool { component, own }) = self.found(name)? {
            return Ok(self.manifest.component(&component).map(|component| component.tool_grants(&own)));
        }
        Ok(self.manifest.component(name).map(|component| Arc::clone(component.grants())))
    }

    /// The tool that clients see by this name, or that is `COMPONENT/TOOL`; or what records name
    /// `resources/COMPONENT`. Where the component cannot be loaded, any tool may be its own.
    fn found(&mut self, name: &str) -> anyhow::Result<Option<NamedTool>> {
        if let Some((component, own)) = name.split_once('/') {
            if self.has(component, own)? {
                return Ok(Some(NamedTool { component: component.to_owned(), own: own.to_owned() }));
            }
            let unlisted = listed::unlisted(name).filter(|found| self.manifest.component(found.component).is_some());
            return Ok(unlisted.map(|Unlisted { export, component }| NamedTool {
                component: component.to_owned(),
                own: export.to_owned(),
            }));
        }
        let exposed = match self.exposed.take() {
            Some(exposed) => exposed,
            None => self.list()?,
        };
        let found = exposed.iter().find(|exposed| exposed.name == name).map(|exposed| exposed.tool.clone());
        self.exposed = Some(exposed);
        Ok(found)
    }

    /// True if a component has this tool, or cannot be loaded.
    fn has(&mut self, component: &str, own: &str) -> anyhow::Result<bool> {
        if self.manifest.component(component).is_none() {
            return Ok(false);
        }
        let listed = self.listed(component)?;
        Ok(listed.is_none_or(|listed| listed::has(listed, own)))
    }

    /// Whether this caller may call a tool as asked; `None` if there is no such tool. The tool is
    /// named as for [`grants`](Self::grants).
    pub fn call(&mut self, name: &str, ask: &Ask, caller: &Caller) -> anyhow::Result<Option<Explanation>> {
        let Some(NamedTool { component, own }) = self.found(name)? else { return Ok(None) };
        let (Some(component), Ask::Call(arguments)) = (self.manifest.component(&component), ask) else {
            return Ok(None);
        };
        let call = AskedCall { component, tool: &own, caller, arguments };
        let answer = explain_call(&self.manifest, ask, call).map_err(|problems| {
            print_problems(&self.file, &problems);
            Failure::said(Exit::AtFault)
        })?;
        Ok(Some(answer))
    }

    /// The interfaces that a component imports; `None` if it cannot be loaded.
    pub fn imports(&mut self, component: &str) -> anyhow::Result<Option<&[String]>> {
        Ok(self.listed(component)?.map(|listed| listed.imports.as_slice()))
    }

    /// What a component of the manifest lists; `None` if it cannot be loaded.
    fn listed(&mut self, component: &str) -> anyhow::Result<Option<&ListedNames>> {
        if !self.components.contains_key(component) {
            let Some(policy) = self.manifest.component(component) else { return Ok(None) };
            let listed = listed::names_of(&self.file, &self.manifest, policy, &self.code.options())?;
            self.components.insert(component.to_owned(), listed);
        }
        Ok(self.components.get(component).and_then(Option::as_ref))
    }

    /// Lists the tools of every component. One that cannot be loaded is reported, and skipped.
    fn list(&mut self) -> anyhow::Result<Vec<ExposedTool>> {
        let mut exposed = Vec::new();
        let mut problems = Vec::new();
        let components = self.manifest.components();
        for names in listed::names(&self.file, &self.manifest, components, &self.code.options())? {
            let listed = names.listed.map_err(|problem| problems.push(problem)).ok();
            exposed.extend(listed.iter().flat_map(|listed| &listed.tools).map(|tool| ExposedTool {
                name: tool.exposed.clone(),
                tool: NamedTool { component: names.component.clone(), own: tool.own.clone() },
            }));
            self.components.insert(names.component, listed);
        }
        print_problems(&self.file, &problems);
        Ok(exposed)
    }
}

fn print_problems(file: &ManifestFile, problems: &[Diagnostic]) {
    if !problems.is_empty() {
        terminal::eprint(&render_all(&file.source(), problems, terminal::stderr_style()));
    }
}
