//! `toolcell secret list`: secrets that the manifest names, and whether their values can be read.
use std::path::Path;

use serde_json::json;
use toolcell_mcp::sanitize;
use toolcell_policy::{Delivery, LoginOwner, Secret, SecretSource};
use toolcell_server::catalog::folder_of;
use toolcell_server::{login, secrets};

use super::Edited;
use crate::args::SecretListArgs;
use crate::exit::Exit;
use crate::terminal;

/// One secret, without its value.
struct SecretRow {
    component: String,
    name: String,
    from: String,
    goes: String,
    /// Why the value is missing.
    missing: Option<String>,
    /// The state in words if nothing is missing.
    ok: &'static str,
}

/// Prints the list. A missing value is not a failure of the command.
pub fn run(args: &SecretListArgs) -> anyhow::Result<Exit> {
    let edited = match Edited::read(&args.manifest.manifest) {
        Ok(edited) => edited,
        Err(failure) => return failure.report(args.json),
    };
    let folder = folder_of(edited.file.path());
    let state = folder.join(edited.manifest.server().state());
    let secrets = edited.manifest.components().iter().flat_map(|component| {
        let secrets = component.grants().secrets().iter();
        secrets.map(|secret| (component.name().to_owned(), secret))
    });
    let rows: Vec<SecretRow> = secrets
        .map(|(component, secret)| SecretRow {
            component,
            name: secret.name().to_owned(),
            from: secret.source().to_string(),
            goes: goes(secret),
            missing: missing(secret.source(), &folder, &state),
            ok: if is_of_callers(secret.source()) { "of each caller" } else { "ok" },
        })
        .collect();
    terminal::print(&if args.json { format!("{:#}\n", json(&rows)) } else { table(&rows) })?;
    Ok(Exit::Done)
}

/// True if each caller has a value of their own.
fn is_of_callers(source: &SecretSource) -> bool {
    matches!(source, SecretSource::Login(login) if login.owner() == LoginOwner::Caller)
}

/// Why the value is missing, if it is.
fn missing(source: &SecretSource, folder: &Path, state: &Path) -> Option<String> {
    if let SecretSource::Login(login) = source {
        if is_of_callers(source) {
            return None;
        }
        let found = login::state(login, state);
        return (!found.is_logged_in()).then(|| found.to_string());
    }
    secrets::read(source, folder).err().map(|fault| fault.problem)
}

/// Where a secret is used, in words.
fn goes(secret: &Secret) -> String {
    match secret.delivery() {
        Delivery::Header { name, target, .. } => format!("header {name} for {}", target.rule().text()),
        Delivery::Query { name, target } => format!("query {name} for {}", target.rule().text()),
        Delivery::Expose => "the component itself".to_owned(),
    }
}

fn json(rows: &[SecretRow]) -> serde_json::Value {
    let row = |row: &SecretRow| {
        json!({
            "component": row.component, "name": row.name, "from": row.from, "goes": row.goes,
            "ok": row.missing.is_none(), "problem": row.missing,
        })
    };
    rows.iter().map(row).collect()
}

fn table(rows: &[SecretRow]) -> String {
    if rows.is_empty() {
        return "the manifest names no secrets\n".to_owned();
    }
    let width =
        |cell: fn(&SecretRow) -> &str| rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or_default();
    let components = width(|row| &row.component);
    let names = width(|row| &row.name);
    let line = |row: &SecretRow| {
        let state = row.missing.as_ref().map_or_else(|| row.ok.to_owned(), |problem| format!("missing: {problem}"));
        format!(
            "{:components$}  {:names$}  {}  {}  {}\n",
            row.component,
            row.name,
            sanitize::line(&row.from),
            sanitize::line(&row.goes),
            sanitize::line(&state)
        )
    };
    rows.iter().map(line).collect()
}
