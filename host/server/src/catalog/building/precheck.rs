//! Problems that are found before anything is compiled: files, secrets, folders, grants that the
//! component cannot use.
//!
//! The check runs once per build, before its first long compilation. The whole build would find
//! each of them as well, with the same text.
use std::path::Path;
use std::sync::OnceLock;

use toolcell_policy::{ComponentPolicy, Diagnostic, Manifest, Server, Severity};
use toolcell_sandbox::ComponentDigest;

use super::super::permissions::{GrantContext, ToolCapabilities};
use super::super::side_files;
use super::code::{Code, CodePlaces};
use super::{Basis, typed};
use crate::state::shared::SharedKept;

/// Finds the problems of a build before anything is compiled.
pub(super) struct Precheck<'a> {
    folder: &'a Path,
    code: &'a CodePlaces<'a>,
    basis: &'a Basis<'a>,
    server: &'a Server,
    kept: &'a SharedKept,
    policies: &'a [ComponentPolicy],
    found: OnceLock<PrecheckFound>,
}

/// What was found.
#[derive(Default)]
struct PrecheckFound {
    problems: Vec<Diagnostic>,
    /// Components whose bytes the lock does not pin.
    withheld: usize,
}

impl<'a> Precheck<'a> {
    pub(super) fn new(
        manifest: &'a Manifest,
        folder: &'a Path,
        code: &'a CodePlaces<'a>,
        kept: &'a SharedKept,
        basis: &'a Basis<'a>,
    ) -> Self {
        let server = manifest.server();
        let policies = manifest.components();
        Self { folder, code, basis, server, kept, policies, found: OnceLock::new() }
    }

    /// True if the build fails regardless of what is compiled. The first call runs the check.
    pub(super) fn fails(&self) -> bool {
        let found = self.found.get_or_init(|| self.run());
        // A start serves everything that the lock pins, or fails.
        let drifts = found.withheld > 0 && !self.basis.serves_meanwhile();
        drifts || found.problems.iter().any(|problem| problem.severity() == Severity::Error)
    }

    /// The errors that were found, if the check ran.
    pub(super) fn into_errors(self) -> Vec<Diagnostic> {
        let problems = self.found.into_inner().unwrap_or_default().problems;
        problems.into_iter().filter(|problem| problem.severity() == Severity::Error).collect()
    }

    fn run(&self) -> PrecheckFound {
        let mut found = PrecheckFound::default();
        for policy in self.policies {
            self.check_component(policy, &mut found);
        }
        found
    }

    fn check_component(&self, policy: &ComponentPolicy, found: &mut PrecheckFound) {
        let read = match self.basis.approved(policy) {
            Some(approved) => Code::approved(approved),
            None => match self.code.read(policy) {
                Ok(code) => code,
                Err(problem) => return found.problems.push(problem),
            },
        };
        let digest = ComponentDigest::of(&read.bytes).to_string();
        if self.basis.withholds(policy, &digest) {
            found.withheld += 1;
            return;
        }
        let policy_digest = ComponentDigest::of(policy.canonical().as_bytes()).to_string();
        let side_files = side_files::stamps(policy, self.folder);
        if self.basis.unchanged(policy, &digest, &read, &policy_digest, &side_files).is_some() {
            return;
        }
        found.problems.extend(typed::written(policy, self.folder, None).err());
        let context = GrantContext { folder: self.folder, server: self.server, kept: self.kept, observing: false };
        let capabilities = ToolCapabilities::new(policy, &context);
        // A tool that the component does not have is an error anyway. Without tables of tools, all
        // of them have the component's grants, whatever their names.
        let names: Vec<&str> = policy.tools().iter().map(|tool| tool.name()).collect();
        let names = if names.is_empty() { vec![policy.name()] } else { names };
        names.into_iter().for_each(|name| drop(capabilities.of_tool(name, &mut found.problems)));
    }
}
