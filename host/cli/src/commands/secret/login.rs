//! `toolcell secret login` and `secret logout`: a person logs in at an authorization server, and
//! the host keeps the tokens.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcell_audit::timestamp;
use toolcell_policy::names::did_you_mean;
use toolcell_policy::{LoginOwner, LoginPolicy};
use toolcell_server::ManifestFile;
use toolcell_server::login::{self, LoginError, Made, NewLogin, SendRequest};

use crate::args::{ManifestArg, SecretLoginArgs, SecretLogoutArgs, manifest_words};
use crate::commands::logins::OpenedLogins;
use crate::exit::Exit;
use crate::terminal;

/// The caller over stdio.
const LOCAL: &str = "local";

/// A login of the manifest, with its folders.
struct Named {
    policy: Arc<LoginPolicy>,
    folder: PathBuf,
    state: PathBuf,
}

/// Logs in.
pub fn run(args: &SecretLoginArgs) -> anyhow::Result<Exit> {
    let Some(named) = named_or_report(&args.name, &args.manifest) else { return Ok(Exit::AtFault) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let made = match caller_of(&named.policy, args.caller.as_deref()) {
        Err(exit) => return Ok(exit),
        Ok(None) => runtime.block_on(log_in(&named, args.device)),
        Ok(Some(caller)) => {
            let opened = OpenedLogins::open(&args.manifest)?;
            let made = opened.run(log_in_as(&opened, &named.policy, caller, args.device));
            match &made {
                Ok(_) => opened.record(&args.name, caller, "made", None),
                Err(error) => opened.record(&args.name, caller, "failed", Some(&error.to_string())),
            }
            made
        }
    };
    match made {
        Ok(made) => {
            if !made.scopes_missing.is_empty() {
                terminal::warning(&format!("the server did not give these scopes: {}", made.scopes_missing.join(" ")));
            }
            terminal::print(&format!("{}\n", summary(&args.name, &made)))?;
            Ok(Exit::Done)
        }
        Err(error) => Ok(report(&error)),
    }
}

/// Forgets a login.
pub fn log_out(args: &SecretLogoutArgs) -> anyhow::Result<Exit> {
    let Some(Named { policy, folder, state }) = named_or_report(&args.name, &args.manifest) else {
        return Ok(Exit::AtFault);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = match caller_of(&policy, args.caller.as_deref()) {
        Err(exit) => return Ok(exit),
        Ok(None) => runtime.block_on(async {
            let client = login::client(&policy)?;
            login::log_out(&policy, &folder, &state, &client).await
        }),
        Ok(Some(caller)) => {
            let opened = OpenedLogins::open(&args.manifest)?;
            opened.revoke(&policy, caller)
        }
    };
    match done {
        Ok((true, failed)) => {
            if let Some(error) = failed {
                terminal::warning(&format!("the server did not take the tokens back: {error}"));
            }
            terminal::print(&format!("the login {} is forgotten\n", args.name))?;
            Ok(Exit::Done)
        }
        Ok((false, _)) => {
            terminal::error(&format!("nobody is logged in to {}", args.name), None);
            Ok(Exit::AtFault)
        }
        Err(error) => Ok(report(&error)),
    }
}

/// The caller whose login it is; none where all share it.
fn caller_of<'c>(policy: &LoginPolicy, given: Option<&'c str>) -> Result<Option<&'c str>, Exit> {
    match (policy.owner(), given) {
        (LoginOwner::Caller, given) => Ok(Some(given.unwrap_or(LOCAL))),
        (LoginOwner::Server, None) => Ok(None),
        (LoginOwner::Server, Some(_)) => {
            let message = format!("all callers share the login {:?}", policy.name());
            terminal::error(&message, Some("leave out --caller, or write of = \"caller\" into it"));
            Err(Exit::AtFault)
        }
    }
}

async fn log_in_as(
    opened: &OpenedLogins,
    policy: &Arc<LoginPolicy>,
    caller: &str,
    device: bool,
) -> Result<Made, LoginError> {
    let begun = opened.logins.begin(policy, caller, login::client(policy)?).await?;
    if device { by_device(begun).await } else { by_browser(begun).await }
}

async fn log_in(named: &Named, device: bool) -> Result<Made, LoginError> {
    let client = login::client(&named.policy)?;
    let begun = NewLogin::begin(&named.policy, &named.folder, &named.state, client).await?;
    if device { by_device(begun).await } else { by_browser(begun).await }
}

async fn by_browser<S: SendRequest>(begun: NewLogin<'_, S>) -> Result<Made, LoginError> {
    let login = begun.by_browser().await?;
    terminal::eprint("open this address in a browser of this machine, and agree there:\n");
    show(login.address())?;
    login.finish().await
}

async fn by_device<S: SendRequest>(begun: NewLogin<'_, S>) -> Result<Made, LoginError> {
    let login = begun.by_device().await?;
    let prompt = login.prompt();
    terminal::eprint("open this address in any browser, and type this code there:\n");
    show(&format!("{}\n{}", prompt.address, prompt.code))?;
    if let Some(whole) = &prompt.whole {
        terminal::eprint(&format!("or open this address, which has the code in it: {whole}\n"));
    }
    login.finish().await
}

fn show(text: &str) -> Result<(), LoginError> {
    terminal::print(&format!("{text}\n")).map_err(|error| LoginError::Store(format!("stdout: {error}")))
}

fn summary(name: &str, made: &Made) -> String {
    let then = match (made.until, made.refreshes) {
        (None, _) => "the token does not say when it ends".to_owned(),
        (Some(until), true) => format!("the token ends {} and is refreshed", timestamp(until)),
        (Some(until), false) => {
            format!("the token ends {}, and the server gives no means to refresh it", timestamp(until))
        }
    };
    format!("logged in to {name}; {then}")
}

fn report(error: &LoginError) -> Exit {
    terminal::error(&error.to_string(), error.hint().as_deref());
    Exit::AtFault
}

/// The manifest's login of this name.
fn named_or_report(name: &str, manifest: &ManifestArg) -> Option<Named> {
    let path = &manifest.manifest;
    let parsed = ManifestFile::read(path).and_then(|file| {
        let words = manifest_words(path);
        let wrong = |_| format!("{} has problems; `toolcell check{words}` shows them", path.display());
        toolcell_policy::parse(&file.source()).map_err(wrong)
    });
    let manifest = match parsed {
        Ok(parsed) => parsed.manifest,
        Err(problem) => {
            terminal::error(&problem, Some("name the manifest with --manifest, or run this in its folder"));
            return None;
        }
    };
    let Some(policy) = manifest.login(name) else {
        let known = manifest.logins().iter().map(|login| login.name());
        let hint = match did_you_mean(name, known) {
            Some(known) => format!("did you mean {known}?"),
            None => format!("add [oauth.{name}] with issuer and client_id"),
        };
        terminal::error(&format!("the manifest has no login {name:?}"), Some(&hint));
        return None;
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let state = folder.join(manifest.server().state());
    Some(Named { policy: Arc::clone(policy), folder: folder.to_owned(), state })
}
