//! `toolcell token`: makes, lists and revokes the tokens of callers over HTTP.
use std::time::SystemTime;

use toolcell_audit::timestamp;
use toolcell_server::catalog::folder_of;
use toolcell_server::identity::{NewToken, TokenEntry, TokenFile};
use toolcell_server::shell;

use crate::args::{TokenArgs, TokenCommand, TokenFileArg};
use crate::commands::logins::OpenedLogins;
use crate::exit::{Exit, Failure};
use crate::{manifest, terminal};

/// Runs one of its commands.
pub fn run(args: &TokenArgs) -> anyhow::Result<Exit> {
    let done = match &args.command {
        TokenCommand::New { name, scopes, expires, file } => new(&NewToken { name, scopes, lifetime: *expires }, file),
        TokenCommand::List { file } => list(file),
        TokenCommand::Revoke { name, older, file } => revoke(name, *older, file),
    };
    terminal::print(&done.map_err(|problem| Failure::at_fault(problem, ""))?)?;
    Ok(Exit::Done)
}

fn new(new: &NewToken<'_>, file: &TokenFileArg) -> Result<String, String> {
    let file = opened(file)?;
    let token = file.add(new)?;
    let name = new.name;
    let path = file.path().display();
    terminal::eprint(&format!("the token of {name}, which is shown only now; {path} keeps its hash:\n"));
    if file.read()?.iter().filter(|entry| entry.name == name).count() > 1 {
        let text = format!("the one before holds until `toolcell token revoke {name} --older`\n");
        terminal::eprint(&shell::named(&text));
    }
    Ok(format!("{token}\n"))
}

fn list(file: &TokenFileArg) -> Result<String, String> {
    let now = SystemTime::now();
    Ok(opened(file)?.read()?.iter().map(|entry| listed(entry, now)).collect())
}

/// A line of the list: name, scopes, and the expiry, if any.
fn listed(entry: &TokenEntry, now: SystemTime) -> String {
    let word = if entry.has_ended(now) { "ended" } else { "ends" };
    let end = entry.expires().map(|end| {
        let time = timestamp(end);
        format!("\t{word} {}Z", time.split('.').next().unwrap_or_default())
    });
    format!("{}\t{}{}\n", entry.name, entry.scopes.join(" "), end.unwrap_or_default())
}

fn revoke(name: &str, older: bool, arg: &TokenFileArg) -> Result<String, String> {
    let file = opened(arg)?;
    if !file.path().exists() {
        // Reports a missing file without creating a lock.
        file.read()?;
    }
    let which = if older { "older token" } else { "token" };
    let mut text = match file.revoke(name, older)? {
        0 => return Err(format!("{name} has no {which} in {}", file.path().display())),
        1 => format!("the {which} of {name} is revoked\n"),
        count => format!("{count} tokens of {name} are revoked\n"),
    };
    // Without a token, the caller makes no call that could use a login.
    if arg.file.is_none() && file.read()?.iter().all(|entry| entry.name != name) {
        text.push_str(&revoke_logins(name, arg));
    }
    Ok(text)
}

/// Revokes the logins of a caller who has no token any more. A login that stays is a warning: the
/// tokens are revoked all the same.
fn revoke_logins(name: &str, arg: &TokenFileArg) -> String {
    let opened = match OpenedLogins::open(&arg.manifest) {
        Ok(opened) => opened,
        Err(error) => {
            terminal::warning(&format!("the logins of {name} are not revoked: {error}"));
            return String::new();
        }
    };
    let mut text = String::new();
    for policy in opened.of_callers() {
        match opened.revoke(&policy, name) {
            Ok((true, _)) => text.push_str(&format!("the login {} of {name} is revoked\n", policy.name())),
            Ok((false, _)) => {}
            Err(error) => terminal::warning(&format!("the login {} stays: {error}", policy.name())),
        }
    }
    text
}

/// The named file, or else the manifest's.
fn opened(arg: &TokenFileArg) -> Result<TokenFile, String> {
    if let Some(path) = &arg.file {
        return Ok(TokenFile::at(path.clone()));
    }
    let manifest = manifest::checked(&arg.manifest.manifest)?;
    let named = manifest.http().and_then(|http| http.tokens().map(str::to_owned));
    let named =
        named.ok_or("the manifest names no file of tokens; write [http] tokens = \"tokens.jsonl\", or --file")?;
    Ok(TokenFile::at(folder_of(&arg.manifest.manifest).join(named)))
}
