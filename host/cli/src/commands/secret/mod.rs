//! `toolcell secret`: keeps, lists and removes the values of secrets that a manifest names, and
//! manages logins. A value is never printed.
mod list;
mod login;
mod remove;
mod set;

use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::{Manifest, SecretSource, parse, render_all};
use toolcell_server::ManifestFile;

use crate::args::{SecretArgs, SecretCommand};
use crate::edit;
use crate::exit::{Exit, Failure};
use crate::terminal;

/// Runs one of its commands.
pub fn run(args: &SecretArgs) -> anyhow::Result<Exit> {
    match &args.command {
        SecretCommand::Set(args) => set::run(args),
        SecretCommand::List(args) => list::run(args),
        SecretCommand::Remove(args) => remove::run(args),
        SecretCommand::Login(args) => login::run(args),
        SecretCommand::Logout(args) => login::log_out(args),
    }
}

/// The folder of files with secrets, in the folder of states.
const FOLDER: &str = "secrets";

/// A manifest to edit, with its parsed form.
struct Edited {
    file: ManifestFile,
    edit: ManifestEdit,
    manifest: Manifest,
}

impl Edited {
    fn read(path: &std::path::Path) -> Result<Self, Failure> {
        let (file, edit) = edit::read(path)?;
        match parse(&file.source()) {
            Ok(parsed) => Ok(Self { manifest: parsed.manifest, file, edit }),
            Err(problems) => {
                terminal::eprint(&render_all(&file.source(), &problems, terminal::stderr_style()));
                Err(Failure::at_fault(format!("{} has these problems", file.name()), "mend them first"))
            }
        }
    }

    /// The component of a secret: the named one, or the only one that has it, or the only one of
    /// the manifest.
    fn component(&self, secret: &str, named: Option<&str>) -> Result<String, Failure> {
        if let Some(named) = named {
            edit::check_known(&self.file, &self.edit, named)?;
            return Ok(named.to_owned());
        }
        let all = self.edit.components();
        let having: Vec<&String> =
            all.iter().filter(|component| self.edit.secret_source(component, secret).is_some()).collect();
        match (having.as_slice(), all.as_slice()) {
            ([only], _) => Ok((*only).clone()),
            ([], [only]) => Ok(only.clone()),
            ([], _) => Err(Failure::usage(
                format!("{} names no secret {secret}", self.file.name()),
                format!("say whose it is with --component; there are: {}", all.join(", ")),
            )),
            (several, _) => {
                let several: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
                let problem = format!("several components have a secret {secret}: {}", several.join(", "));
                Err(Failure::usage(problem, "say which with --component"))
            }
        }
    }

    /// Where a secret's value is kept. `None` if the manifest does not name it.
    fn place(&self, component: &str, secret: &str) -> Option<&SecretSource> {
        let secrets = self.manifest.component(component)?.grants().secrets();
        secrets.iter().find(|other| other.name() == secret).map(|secret| secret.source())
    }

    /// Default path of the file of a secret, relative to the manifest.
    fn usual_file(&self, component: &str, secret: &str) -> String {
        format!("{}/{FOLDER}/{component}.{secret}", self.manifest.server().state())
    }
}
