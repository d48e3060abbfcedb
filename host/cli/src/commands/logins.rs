//! `toolcell logins`: shows and revokes the logins that callers have of their own.
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Runtime;
use toolcell_audit::{Clipped, Event, LoginChanged};
use toolcell_mcp::sanitize;
use toolcell_policy::{LoginPolicy, Manifest};
use toolcell_server::catalog::folder_of;
use toolcell_server::login::{CallerLogins, ListedLogin, LoginError};
use toolcell_server::secret_store::GivenSecret;
use toolcell_server::{caller_logins, open_audit};

use crate::args::{
    LoginsArgs, LoginsCommand, LoginsListArgs, LoginsRevokeArgs, LoginsSetArgs, ManifestArg, manifest_words,
};
use crate::exit::{Exit, Failure};
use crate::{manifest, terminal};

/// Runs one of its commands.
pub fn run(args: &LoginsArgs) -> anyhow::Result<Exit> {
    match &args.command {
        LoginsCommand::List(args) => list(args),
        LoginsCommand::Set(args) => set(args),
        LoginsCommand::Revoke(args) => revoke(args),
    }
}

/// The logins of a manifest's callers.
pub struct OpenedLogins {
    pub manifest: Manifest,
    pub logins: CallerLogins,
    /// The manifest's folder.
    folder: PathBuf,
    runtime: Runtime,
}

impl OpenedLogins {
    /// Those of this manifest. Fails with a message for the person.
    pub fn open(manifest: &ManifestArg) -> anyhow::Result<Self> {
        let path = &manifest.manifest;
        let file = manifest::read(path)?;
        let words = manifest_words(path);
        let shows = format!("`toolcell check{words}` shows them");
        let wrong = |_| Failure::at_fault(format!("{} has problems", path.display()), shows);
        let manifest = toolcell_policy::parse(&file.source()).map_err(wrong)?.manifest;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let failed = |error: toolcell_server::StartError| Failure::at_fault(error.to_string(), "");
        let folder = folder_of(path);
        let logins = caller_logins(&manifest, &folder, runtime.handle()).map_err(failed)?;
        Ok(Self { manifest, logins, folder, runtime })
    }

    /// Runs an operation to its end.
    pub fn run<T>(&self, operation: impl Future<Output = T>) -> T {
        self.runtime.block_on(operation)
    }

    /// Records a change that a command made to a caller's login, if the manifest names an audit. A
    /// server that runs has a chain of its own there. What cannot be recorded has been done all the
    /// same, and is a warning.
    pub fn record(&self, login: &str, caller: &str, change: &str, detail: Option<&str>) {
        let event = || {
            Event::LoginChanged(LoginChanged {
                login,
                caller: Clipped(caller),
                change,
                by: "operator",
                component: None,
                detail: detail.map(Clipped),
            })
        };
        let opened = open_audit(None, self.manifest.audit(), &self.folder);
        let recorded = opened.and_then(|sink| sink.record(event).map_err(|error| error.to_string()));
        if let Err(problem) = recorded {
            terminal::warning(&format!("the change is missing from the audit: {problem}"));
        }
    }

    /// Removes this login of a caller, and records that. False if there was none; the second value
    /// says why the server did not take the tokens back.
    ///
    /// # Errors
    /// The store cannot be used.
    pub fn revoke(&self, policy: &Arc<LoginPolicy>, caller: &str) -> Result<(bool, Option<LoginError>), LoginError> {
        let revoked = self.run(self.logins.revoke(policy, caller))?;
        if let (true, failed) = &revoked {
            let detail = failed.as_ref().map(|error| format!("the server did not take the tokens back: {error}"));
            self.record(policy.name(), caller, "revoked", detail.as_deref());
        }
        Ok(revoked)
    }

    /// Removes a login of a caller that the manifest no longer has, and records that. False if
    /// there was none.
    fn remove(&self, login: &str, caller: &str) -> Result<bool, LoginError> {
        let removed = self.run(self.logins.remove(login, caller))?;
        if removed {
            self.record(login, caller, "revoked", Some("the manifest has no such login"));
        }
        Ok(removed)
    }

    /// The logins of which each caller has one.
    pub fn of_callers(&self) -> Vec<Arc<LoginPolicy>> {
        self.manifest.caller_logins()
    }
}

fn list(args: &LoginsListArgs) -> anyhow::Result<Exit> {
    let opened = OpenedLogins::open(&args.manifest)?;
    let policies = opened.of_callers();
    let found = opened.run(opened.logins.list(&policies)).map_err(Failure::from)?;
    let policy = |login: &ListedLogin| policies.iter().find(|policy| policy.name() == login.login).map(|it| &**it);
    let text = if args.json {
        let rows: Vec<Value> = found.iter().map(|login| login.to_json(policy(login))).collect();
        format!("{:#}\n", Value::from(rows))
    } else if found.is_empty() {
        "no caller is logged in\n".to_owned()
    } else {
        let row = |login: &ListedLogin| {
            let caller = sanitize::line(&login.caller);
            let state = login.state(policy(login));
            format!("{} of {caller}: {}\n", login.login, sanitize::line(&state))
        };
        found.iter().map(row).collect()
    };
    terminal::print(&text)?;
    Ok(Exit::Done)
}

/// Why no caller can have this name; `None` for one that a token, an issuer or `local` gives.
fn not_a_caller(name: &str) -> Option<String> {
    let shown = sanitize::line(name);
    if name.is_empty() || name.chars().any(|character| character.is_control() || character.is_whitespace()) {
        return Some(format!("{shown:?} is not the name of a caller: it is empty, or has blanks"));
    }
    let is_nobody = ["anyone", "console"].contains(&name);
    is_nobody.then(|| format!("{shown} stands for callers who have no logins of their own"))
}

fn set(args: &LoginsSetArgs) -> anyhow::Result<Exit> {
    if let Some(problem) = not_a_caller(&args.caller) {
        let hint = "name a caller as the audit does: of a token, ISSUER:SUBJECT, or local";
        return Err(Failure::usage(problem, hint).into());
    }
    let opened = OpenedLogins::open(&args.manifest)?;
    let policies = opened.of_callers();
    let Some(policy) = policies.iter().find(|policy| policy.name() == args.name && policy.pasted()) else {
        let hint = format!("a secret with from = \"caller:{}\" is one", args.name);
        return Err(Failure::at_fault(format!("no component has a key {:?} of each caller", args.name), hint).into());
    };
    let hint = "give it on stdin: toolcell logins set NAME --caller CALLER < key.txt";
    let given = GivenSecret::read(std::io::stdin().lock()).map_err(|problem| Failure::at_fault(problem, hint))?;
    opened.run(opened.logins.paste(policy, &args.caller, given.into_text(), None)).map_err(Failure::from)?;
    opened.record(policy.name(), &args.caller, "made", None);
    terminal::print(&format!("the key {} of {} is kept\n", args.name, sanitize::line(&args.caller)))?;
    Ok(Exit::Done)
}

fn revoke(args: &LoginsRevokeArgs) -> anyhow::Result<Exit> {
    let opened = OpenedLogins::open(&args.manifest)?;
    let policies = opened.of_callers();
    let named = |policy: &&Arc<LoginPolicy>| args.name.as_deref().is_none_or(|name| name == policy.name());
    let wanted: Vec<&Arc<LoginPolicy>> = policies.iter().filter(named).collect();
    if let (true, Some(name)) = (wanted.is_empty(), &args.name)
        && opened.remove(name, &args.caller).map_err(Failure::from)?
    {
        terminal::warning("the manifest has no such login, so its server did not take the tokens back");
        terminal::print(&format!("the login {name} of {} is removed\n", sanitize::line(&args.caller)))?;
        return Ok(Exit::Done);
    }
    if wanted.is_empty() {
        let name = args.name.as_deref().unwrap_or("NAME");
        let message = match &args.name {
            Some(name) => format!("the manifest has no login or key {name:?} of each caller"),
            None => "the manifest has no login or key of each caller".to_owned(),
        };
        return Err(Failure::at_fault(message, format!("write of = \"caller\" into [oauth.{name}]")).into());
    }
    let mut text = String::new();
    for policy in wanted {
        if let (true, failed) = opened.revoke(policy, &args.caller).map_err(Failure::from)? {
            if let Some(error) = failed {
                terminal::warning(&format!("the server did not take the tokens back: {error}"));
            }
            text.push_str(&format!("the login {} of {} is revoked\n", policy.name(), sanitize::line(&args.caller)));
        }
    }
    if text.is_empty() {
        return Err(Failure::at_fault(format!("{} is not logged in", sanitize::line(&args.caller)), "").into());
    }
    terminal::print(&text)?;
    Ok(Exit::Done)
}
