//! What the tools of one component can reach, made ready at load.
use std::path::Path;
use std::sync::Arc;

use toolcell_policy::{ComponentPolicy, Diagnostic, Server};
use toolcell_sandbox::{Note, Reach, ReachProblem, Sandbox, Setting};

use crate::secrets;

/// Where grants are made ready.
pub struct Site<'a> {
    /// Where the manifest's relative paths start.
    pub folder: &'a Path,
    pub server: &'a Server,
    pub sandbox: &'a Sandbox,
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
        let Site { folder, server, sandbox } = self.site;
        let setting = Setting {
            folder,
            variable: &|name| std::env::var(name).ok(),
            secret: &|source| secrets::read(source, folder),
            state_folder: &folder.join(server.state()),
            name_servers: server.dns(),
            sandbox,
        };
        // Tools that inherit the same grant have the same problem.
        let mut add = |problem: Diagnostic| {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        };
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

    fn note(&self, note: &Note) -> Diagnostic {
        let message = format!("component \"{}\": {}", self.policy.name(), note.message);
        Diagnostic::warning("grants::note", message).at(note.span.clone())
    }

    fn problem(&self, problem: &ReachProblem) -> Diagnostic {
        let message = format!("component \"{}\": {}", self.policy.name(), problem.message);
        Diagnostic::error("grants::host", message).at(problem.span.clone()).hint(&problem.hint)
    }
}
