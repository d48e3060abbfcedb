//! The command lines that edit a manifest: `grant` and `revoke`.
use clap::Args as ClapArgs;
use toolcell_policy::rights;

use super::ManifestArg;

/// Consent to write a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The command line said yes.
    Given,
    /// A person is asked on the terminal. Without one, nothing is written.
    Asked,
}

/// Whether a person is asked before the manifest is written.
#[derive(Debug, ClapArgs)]
pub struct ConsentArg {
    /// Write the change without asking
    #[arg(long, short)]
    pub yes: bool,
}

impl ConsentArg {
    /// As an edit takes it.
    pub fn consent(&self) -> Consent {
        if self.yes { Consent::Given } else { Consent::Asked }
    }
}

/// `toolcell grant`.
#[derive(Debug, ClapArgs)]
#[command(after_help = grant_help())]
pub struct GrantArgs {
    /// The component, as the manifest names it
    pub component: String,
    /// What it may do from now on
    #[arg(required = true, value_name = "RIGHT")]
    pub rights: Vec<String>,
    /// Give it back to this one tool, by its own name, from which it was revoked
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub consent: ConsentArg,
}

fn grant_help() -> String {
    format!(
        "\
Examples:
  toolcell grant weather \"GET https://api.example.com/v1/*\"
  toolcell grant notes \"write /notes = ./notes\"
  toolcell grant search \"tcp db.example.com:5432\" \"env UNITS = metric\" keyvalue

Rights:
{}
A tool has the rights of its component, but for those that were revoked with --tool. Comments and order of the manifest
stay. What would not load is refused with the reason. The change is shown first.",
        rights::help()
    )
}

/// `toolcell revoke`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell revoke weather \"GET https://api.example.com/v1/*\"    as it is there
  toolcell revoke notes \"write /notes\" \"env UNITS\" keyvalue
  toolcell revoke notes \"write /notes\" --tool find   that tool alone loses it

Rights are named as for `toolcell grant`; folders and values need not be.")]
pub struct RevokeArgs {
    /// The component, as the manifest names it
    pub component: String,
    /// What it may do no longer
    #[arg(required = true, value_name = "RIGHT")]
    pub rights: Vec<String>,
    /// Take it from this one tool, by its own name
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub consent: ConsentArg,
}
