//! The manifest in question, and the grants of a tool.
use std::path::Path;
use std::sync::Arc;

use toolcell_mcp::Caller;
use toolcell_policy::{Ask, Diagnostic, Explanation, Grants, Manifest, parse, render_all};
use toolcell_server::ManifestFile;
use toolcell_server::catalog::arguments::{AskedCall, explain_call};
use toolcell_server::catalog::{BuilderOptions, CatalogBuilder, folder_of};
use toolcell_server::machine::Machine;

use crate::args::CodeCacheArgs;
use crate::manifest::report_note;
use crate::sandbox_process;
use crate::terminal;

/// The answer to a question about a call.
pub enum AskedAnswer {
    Answer(Explanation),
    /// There is no such tool.
    NoTool,
    /// Conditions of the manifest do not compile; the problems are printed.
    Broken,
}

/// A checked manifest. Its components are only loaded if a name requires it.
pub struct Subjects<'a> {
    pub file: ManifestFile,
    manifest: Manifest,
    code: &'a CodeCacheArgs,
    /// Component, own name and name for clients of every tool, loaded when needed.
    listed: Option<Vec<[String; 3]>>,
}

impl<'a> Subjects<'a> {
    /// Reads the manifest, or prints its problems.
    pub fn open_or_report(path: &Path, code: &'a CodeCacheArgs) -> Option<Self> {
        let file = match ManifestFile::read(path) {
            Ok(file) => file,
            Err(problem) => {
                terminal::error(&problem, Some("name the manifest with --manifest, or run this in its folder"));
                return None;
            }
        };
        match parse(&file.source()) {
            Ok(parsed) => Some(Self { manifest: parsed.manifest, file, code, listed: None }),
            Err(problems) => {
                print_problems(&file, &problems);
                None
            }
        }
    }

    /// Grants of a tool, by its name for clients or as `COMPONENT/TOOL`; or of a component by its
    /// name.
    pub fn grants(&mut self, name: &str) -> anyhow::Result<Option<Arc<Grants>>> {
        if let Some((component, tool)) = name.split_once('/') {
            return Ok(self.manifest.component(component).map(|component| component.tool_grants(tool)));
        }
        if let Some(grants) = self.of_listed(name)? {
            return Ok(Some(grants));
        }
        Ok(self.manifest.component(name).map(|component| Arc::clone(component.grants())))
    }

    fn of_listed(&mut self, name: &str) -> anyhow::Result<Option<Arc<Grants>>> {
        let found = self.found(name)?;
        Ok(found.and_then(|[component, tool]| Some(self.manifest.component(&component)?.tool_grants(&tool))))
    }

    /// The component and the own name of the tool that clients see by this name.
    fn found(&mut self, name: &str) -> anyhow::Result<Option<[String; 2]>> {
        let listed = match self.listed.take() {
            Some(listed) => listed,
            None => self.list()?,
        };
        let found = listed.iter().find(|[_, _, exposed]| exposed == name);
        let found = found.map(|[component, tool, _]| [component.clone(), tool.clone()]);
        self.listed = Some(listed);
        Ok(found)
    }

    /// Whether this caller may call a tool as asked. The tool is named as for
    /// [`grants`](Self::grants).
    pub fn call(&mut self, name: &str, ask: &Ask, caller: &Caller) -> anyhow::Result<AskedAnswer> {
        let found = match name.split_once('/') {
            Some((component, tool)) => Some([component.to_owned(), tool.to_owned()]),
            None => self.found(name)?,
        };
        let Some([component, tool]) = found else { return Ok(AskedAnswer::NoTool) };
        let (Some(component), Ask::Call(arguments)) = (self.manifest.component(&component), ask) else {
            return Ok(AskedAnswer::NoTool);
        };
        let call = AskedCall { component, tool: &tool, caller, arguments };
        Ok(match explain_call(&self.manifest, ask, call) {
            Ok(answer) => AskedAnswer::Answer(answer),
            Err(problems) => {
                print_problems(&self.file, &problems);
                AskedAnswer::Broken
            }
        })
    }

    /// Lists the tools of every component. One that cannot be loaded is reported, and skipped.
    fn list(&self) -> anyhow::Result<Vec<[String; 3]>> {
        let machine = Machine::start(&self.code.options(), Some(self.manifest.server()), &sandbox_process::guests())?;
        machine.notes.iter().for_each(report_note);
        let builder = CatalogBuilder::new(&machine, BuilderOptions::default());
        let (names, problems) = builder.names(&self.manifest, &folder_of(self.file.path()));
        print_problems(&self.file, &problems);
        Ok(names)
    }
}

fn print_problems(file: &ManifestFile, problems: &[Diagnostic]) {
    if !problems.is_empty() {
        terminal::eprint(&render_all(&file.source(), problems, terminal::stderr_style()));
    }
}
