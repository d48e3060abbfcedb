//! The manifest that is asked about, and whose grants a tool's name stands for.
use std::path::Path;
use std::sync::Arc;

use toolcell_audit::Sink;
use toolcell_policy::{Diagnostic, Grants, Manifest, parse, render_all};
use toolcell_server::ManifestFile;
use toolcell_server::catalog::{Builder, folder_of};
use toolcell_server::machine::Machine;

use crate::args::CodeCacheArgs;
use crate::manifest::say_note;
use crate::terminal;

/// A checked manifest. Its components are only loaded where a name cannot be understood without them.
pub struct Subjects<'a> {
    pub file: ManifestFile,
    manifest: Manifest,
    code: &'a CodeCacheArgs,
    /// Component, tool and the name clients see, of every tool; once it was needed.
    listed: Option<Vec<[String; 3]>>,
}

impl<'a> Subjects<'a> {
    /// Reads the manifest, or says on stderr what is wrong with it.
    pub fn open_or_say(path: &Path, code: &'a CodeCacheArgs) -> Option<Self> {
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
                say(&file, &problems);
                None
            }
        }
    }

    /// The grants of a tool: by the name clients see, or as `COMPONENT/TOOL`, or of a whole component by its name.
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
        let listed = match self.listed.take() {
            Some(listed) => listed,
            None => self.list()?,
        };
        let found = listed.iter().find(|[_, _, exposed]| exposed == name);
        let grants = found
            .and_then(|[component, tool, _]| self.manifest.component(component).map(|found| found.tool_grants(tool)));
        self.listed = Some(listed);
        Ok(grants)
    }

    /// Asks every component for its tools. One that cannot be loaded is said, and has none.
    fn list(&self) -> anyhow::Result<Vec<[String; 3]>> {
        let machine = Machine::start(&self.code.options(), Some(self.manifest.server()))?;
        machine.notes.iter().for_each(say_note);
        let builder = Builder::new(&machine, Arc::new(Sink::disabled()));
        let (names, problems) = builder.names(&self.manifest, &folder_of(self.file.path()));
        say(&self.file, &problems);
        Ok(names)
    }
}

fn say(file: &ManifestFile, problems: &[Diagnostic]) {
    if !problems.is_empty() {
        terminal::say(&render_all(&file.source(), problems, terminal::stderr_style()));
    }
}
