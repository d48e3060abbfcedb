//! What the tools of one component can reach, made ready at load.
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcell_policy::{ComponentPolicy, Diagnostic, Grants, MountKind, Server, Span};
use toolcell_sandbox::{Capabilities as Reach, GrantNote, GrantProblem, GrantSources};

use crate::{aside, file, secrets};

/// Bytes of a file of certificates that are read to see whether it answers: as many as one may have.
const LOOKED_AT_BYTES_MAX: u64 = 1 << 20;

/// Where grants are made ready.
pub struct Site<'a> {
    /// Where the manifest's relative paths start.
    pub folder: &'a Path,
    pub server: &'a Server,
}

/// What the tools of one component can reach, each with its own name in denials.
pub struct Reaches<'a> {
    policy: &'a ComponentPolicy,
    site: &'a Site<'a>,
}

impl<'a> Reaches<'a> {
    pub fn new(policy: &'a ComponentPolicy, site: &'a Site<'a>) -> Self {
        Self { policy, site }
    }

    /// What this tool, by its own name, can reach. What the host lacks is a problem; the tool is sealed then, in a catalog
    /// that is not served.
    pub fn of_tool(&self, tool: &str, problems: &mut Vec<Diagnostic>) -> Arc<Reach> {
        let grants = self.policy.tool_grants(tool);
        let Site { folder, server } = self.site;
        let setting = GrantSources {
            folder,
            variable: &|name| std::env::var(name).ok(),
            secret: &|source| secrets::read(source, folder),
            state_folder: &folder.join(server.state()),
            name_servers: server.dns(),
        };
        // Tools that inherit the same grant have the same problem.
        let mut add = |problem: Diagnostic| {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        };
        let silent = self.silent(&grants);
        if !silent.is_empty() {
            silent.into_iter().for_each(&mut add);
            return Reach::sealed(self.policy.name());
        }
        match Reach::prepare(&grants, &setting) {
            Ok(reach) => {
                reach.notes().iter().map(|note| self.note(note)).for_each(add);
                reach
            }
            Err(found) => {
                found.iter().map(|problem| self.problem(problem)).for_each(&mut add);
                Reach::sealed(self.policy.name())
            }
        }
    }

    /// What of the grant does not answer: nothing else would ever be made ready behind it.
    fn silent(&self, grants: &Grants) -> Vec<Diagnostic> {
        let certificates = grants.network().ca().iter().map(|file| (file.path(), file.span()));
        let folders = grants.files().iter().filter_map(|mount| match mount.kind() {
            MountKind::Host { path, .. } => Some((path.as_str(), mount.span())),
            _ => None,
        });
        let named: Vec<(PathBuf, &str, Span)> = certificates
            .chain(folders)
            .map(|(written, span)| (self.site.folder.join(written), written, span))
            .collect();
        let paths: BTreeSet<PathBuf> = named.iter().map(|(path, ..)| path.clone()).collect();
        let answers: BTreeMap<PathBuf, Option<()>> = aside::each(paths, look).into_iter().collect();
        let silent = named.into_iter().filter(|(path, ..)| answers.get(path).is_none_or(Option::is_none));
        let problem = |(_, written, span): (PathBuf, &str, Span)| {
            let message = format!("component \"{}\": {written:?} does not answer", self.policy.name());
            let hint = "is it on a network mount that hangs? everything else stays as it was until it answers";
            Diagnostic::error("grants::host", message).at(span).hint(hint)
        };
        silent.map(problem).collect()
    }

    fn note(&self, note: &GrantNote) -> Diagnostic {
        let message = format!("component \"{}\": {}", self.policy.name(), note.message);
        Diagnostic::warning("grants::note", message).at(note.span.clone())
    }

    fn problem(&self, problem: &GrantProblem) -> Diagnostic {
        let message = format!("component \"{}\": {}", self.policy.name(), problem.message);
        Diagnostic::error("grants::host", message).at(problem.span.clone()).hint(&problem.hint)
    }
}

/// Looks at what a grant names, as far as it will be: what is wrong with it is found out later.
fn look(path: &Path) {
    match file::open(path) {
        Ok((opened, _)) => {
            let _ = std::io::copy(&mut opened.take(LOOKED_AT_BYTES_MAX), &mut std::io::sink());
        }
        Err(_) => {
            let _ = std::fs::metadata(path);
        }
    }
}
