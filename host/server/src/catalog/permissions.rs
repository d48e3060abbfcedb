//! Capabilities of the tools of one component, prepared at load.
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcell_policy::{ComponentPolicy, Diagnostic, Grants, MountKind, Server, Span};
use toolcell_sandbox::{GrantNote, GrantProblem, GrantSources, GrantedCapabilities};

use crate::error::StartError;
use crate::files::{blocking_files, file};
use crate::identity::secrets;
use crate::state::shared::SharedKept;

/// Bytes read from a certificate file to check that it can be read: as many as it may have.
const READ_BYTES_MAX: u64 = 1 << 20;

/// Code of the problem that a variable or a secret has no value for this process. Another process
/// with the same manifest may have one.
pub const VALUE_MISSING: &str = "grants::value";

/// Context in which grants are prepared.
pub struct GrantContext<'a> {
    /// Folder that the manifest's relative paths start from.
    pub folder: &'a Path,
    pub server: &'a Server,
    /// State of tools, where replicas share it.
    pub kept: &'a SharedKept,
    /// True if attempts of guests are observed.
    pub observing: bool,
}

/// Prepares capabilities for the tools of one component, each with its own name in denials.
pub struct ToolCapabilities<'a> {
    policy: &'a ComponentPolicy,
    context: &'a GrantContext<'a>,
}

impl<'a> ToolCapabilities<'a> {
    pub fn new(policy: &'a ComponentPolicy, context: &'a GrantContext<'a>) -> Self {
        Self { policy, context }
    }

    /// Capabilities of this tool, by its own name. Anything that is missing becomes a problem, and
    /// the tool gets no grants. A catalog with such a problem is not served.
    pub fn of_tool(&self, tool: &str, problems: &mut Vec<Diagnostic>) -> Arc<GrantedCapabilities> {
        let grants = self.policy.tool_grants(tool);
        let GrantContext { folder, server, kept, observing } = self.context;
        let state = folder.join(server.state());
        let setting = GrantSources {
            folder,
            variable: &|name| std::env::var(name).ok(),
            secret: &|source| secrets::hold(source, folder, &state),
            state_folder: &state,
            shared_state: None,
            name_servers: server.dns(),
            observing: *observing,
        };
        // Tools that inherit a grant have the same problem.
        let mut add = |problem: Diagnostic| {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        };
        let silent = self.silent(&grants);
        if !silent.is_empty() {
            silent.into_iter().for_each(&mut add);
            return GrantedCapabilities::sealed(self.policy.name());
        }
        let shared_state = match grants.keyvalue().map_or(Ok(None), |_| kept.get()) {
            Ok(shared_state) => shared_state,
            Err(error) => {
                add(self.unshared(&grants, error));
                return GrantedCapabilities::sealed(self.policy.name());
            }
        };
        let setting = GrantSources { shared_state, ..setting };
        match GrantedCapabilities::prepare(&grants, &setting) {
            Ok(capabilities) => {
                capabilities.notes().iter().map(|note| self.note(note)).for_each(add);
                capabilities
            }
            Err(found) => {
                found.iter().map(|problem| self.problem(problem)).for_each(&mut add);
                GrantedCapabilities::sealed(self.policy.name())
            }
        }
    }

    /// Files and folders of the grant that do not respond. Preparing them would block forever.
    fn silent(&self, grants: &Grants) -> Vec<Diagnostic> {
        let certificates = grants.network().ca().iter().map(|file| (file.path(), file.span()));
        let folders = grants.files().iter().filter_map(|mount| match mount.kind() {
            MountKind::Host { path, .. } => Some((path.as_str(), mount.span())),
            _ => None,
        });
        let named: Vec<(PathBuf, &str, Span)> = certificates
            .chain(folders)
            .map(|(written, span)| (self.context.folder.join(written), written, span))
            .collect();
        let paths: BTreeSet<PathBuf> = named.iter().map(|(path, ..)| path.clone()).collect();
        let answers: BTreeMap<PathBuf, Option<()>> = blocking_files::each(paths, read_beginning).into_iter().collect();
        let silent = named.into_iter().filter(|(path, ..)| answers.get(path).is_none_or(Option::is_none));
        let problem = |(_, written, span): (PathBuf, &str, Span)| {
            let message = format!("component \"{}\": {written:?} does not answer", self.policy.name());
            let hint = "is it on a network mount that hangs? everything else stays as it was until it answers";
            Diagnostic::error("grants::host", message).at(span).hint(hint)
        };
        silent.map(problem).collect()
    }

    /// Problem: the shared server can never be used for this grant.
    fn unshared(&self, grants: &Grants, error: &StartError) -> Diagnostic {
        let message = format!("component \"{}\" keeps state where it cannot: {error}", self.policy.name());
        let problem = Diagnostic::error("grants::host", message).at(grants.keyvalue_span());
        match error {
            StartError::Refused { hint: Some(hint), .. } => problem.hint(hint),
            _ => problem,
        }
    }

    fn note(&self, note: &GrantNote) -> Diagnostic {
        let message = format!("component \"{}\": {}", self.policy.name(), note.message);
        Diagnostic::warning("grants::note", message).at(note.span.clone())
    }

    fn problem(&self, problem: &GrantProblem) -> Diagnostic {
        let message = format!("component \"{}\": {}", self.policy.name(), problem.message);
        let code = if problem.is_value { VALUE_MISSING } else { "grants::host" };
        Diagnostic::error(code, message).at(problem.span.clone()).hint(&problem.hint)
    }
}

/// Opens and reads a granted path, ignoring errors: preparing the grant reports them.
fn read_beginning(path: &Path) {
    match file::open(path) {
        Ok((opened, _)) => {
            let _ = std::io::copy(&mut opened.take(READ_BYTES_MAX), &mut std::io::sink());
        }
        Err(_) => {
            let _ = std::fs::metadata(path);
        }
    }
}
