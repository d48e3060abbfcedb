//! `toolcell pull`: pulls the components that a manifest needs from registries into the store.
use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::{AdvisedFault, Reference};
use toolcell_server::catalog::folder_of;
use toolcell_server::registries::{self, Pulled, Registries};
use toolcell_server::shell;

use super::registries::{json_of, left_out_lines, pull, read_manifest, signers};
use crate::args::PullArgs;
use crate::exit::{Exit, Failure, reported};
use crate::terminal;

/// A component, its signers, and true if a registry was asked.
struct PullOutcome<'m> {
    name: &'m str,
    reference: &'m Reference,
    found: Result<(Pulled, bool), AdvisedFault>,
}

/// Pulls what is missing. A failure does not stop the others.
pub fn run(args: &PullArgs) -> anyhow::Result<Exit> {
    reported(pull_all(args), args.json)
}

fn pull_all(args: &PullArgs) -> anyhow::Result<Exit> {
    let path = args.manifest.manifest.as_path();
    let (file, manifest) = read_manifest(path)?;
    let folder = folder_of(path);
    let registries = Registries::open(&manifest, &folder).map_err(Failure::from)?;
    let mut outcomes = Vec::new();
    for (name, reference) in registries::components(&manifest) {
        // A trusted component in the store needs no registry.
        let found = match registries.read(reference) {
            Ok(pulled) => Ok((pulled, false)),
            Err(_) => pull(&registries, reference).map(|pulled| (pulled, true)),
        };
        let outcome = PullOutcome { name, reference, found };
        if !args.json {
            outcome.print()?;
        }
        outcomes.push(outcome);
    }
    let is_done = outcomes.iter().all(|outcome| outcome.found.is_ok());
    if args.json {
        let components: Vec<Value> = outcomes.iter().map(PullOutcome::json).collect();
        terminal::print(&format!("{:#}\n", json!({"ok": is_done, "components": components})))?;
    } else if outcomes.is_empty() {
        terminal::eprint(&format!("{}: no component comes from a registry\n", file.name()));
    }
    Ok(if is_done { Exit::Done } else { Exit::AtFault })
}

impl PullOutcome<'_> {
    fn print(&self) -> anyhow::Result<()> {
        let name = self.name;
        match &self.found {
            Ok((pulled, is_new)) => {
                let what = if *is_new { "pulled" } else { "is in the store" };
                let bytes = pulled.component.bytes.len();
                terminal::print(&format!("{name}: {what}, {bytes} bytes, {}\n", pulled.component.layer))?;
                for line in signers(pulled).iter().chain(&left_out_lines(&pulled.left_out)) {
                    terminal::print(&format!("  {}\n", sanitize::line(line)))?;
                }
            }
            Err(fault) => {
                terminal::error(&format!("{name}: {}: {}", self.reference, fault.problem), fault.hint());
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        match &self.found {
            Ok((pulled, is_new)) => {
                let mut json = json_of(self.reference, pulled);
                if let Some(members) = json.as_object_mut() {
                    members.insert("name".to_owned(), self.name.into());
                    members.insert("ok".to_owned(), true.into());
                    members.insert("pulled".to_owned(), (*is_new).into());
                }
                json
            }
            Err(fault) => json!({
                "name": self.name, "ok": false, "source": self.reference.to_string(), "problem": fault.problem,
                "hint": fault.hint().map(shell::named),
            }),
        }
    }
}
