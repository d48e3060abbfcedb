//! `toolcell secret login` and `secret logout`: a person logs in at an authorization server, and
//! the host keeps the tokens.
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcell_audit::timestamp;
use toolcell_policy::names::did_you_mean;
use toolcell_policy::{LoginOwner, LoginPolicy};
use toolcell_server::login::{self, LoginError, Made, NewLogin, SendRequest};

use crate::args::{ManifestArg, SecretLoginArgs, SecretLogoutArgs};
use crate::commands::logins::OpenedLogins;
use crate::exit::{Exit, Failure};
use crate::manifest::{self, NAME_MANIFEST};
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
    let named = named(&args.name, &args.manifest)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let made = match caller_of(&named.policy, args.caller.as_deref())? {
        None => runtime.block_on(log_in(&named, args.device)),
        Some(caller) => {
            let opened = OpenedLogins::open(&args.manifest)?;
            let made = opened.run(log_in_as(&opened, &named.policy, caller, args.device));
            match &made {
                Ok(_) => opened.record(&args.name, caller, "made", None),
                Err(error) => opened.record(&args.name, caller, "failed", Some(&error.to_string())),
            }
            made
        }
    };
    let made = made.map_err(Failure::from)?;
    if !made.scopes_missing.is_empty() {
        terminal::warning(&format!("the server did not give these scopes: {}", made.scopes_missing.join(" ")));
    }
    terminal::print(&format!("{}\n", summary(&args.name, &made)))?;
    Ok(Exit::Done)
}

/// Forgets a login.
pub fn log_out(args: &SecretLogoutArgs) -> anyhow::Result<Exit> {
    let Named { policy, folder, state } = named(&args.name, &args.manifest)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = match caller_of(&policy, args.caller.as_deref())? {
        None => runtime.block_on(async {
            let client = login::client(&policy)?;
            login::log_out(&policy, &folder, &state, &client).await
        }),
        Some(caller) => OpenedLogins::open(&args.manifest)?.revoke(&policy, caller),
    };
    let (true, failed) = done.map_err(Failure::from)? else {
        return Err(Failure::at_fault(format!("nobody is logged in to {}", args.name), "").into());
    };
    if let Some(error) = failed {
        terminal::warning(&format!("the server did not take the tokens back: {error}"));
    }
    terminal::print(&format!("the login {} is forgotten\n", args.name))?;
    Ok(Exit::Done)
}

/// The caller whose login it is; none where all share it.
fn caller_of<'c>(policy: &LoginPolicy, given: Option<&'c str>) -> Result<Option<&'c str>, Failure> {
    match (policy.owner(), given) {
        (LoginOwner::Caller, given) => Ok(Some(given.unwrap_or(LOCAL))),
        (LoginOwner::Server, None) => Ok(None),
        (LoginOwner::Server, Some(_)) => {
            let message = format!("all callers share the login {:?}", policy.name());
            Err(Failure::at_fault(message, "leave out --caller, or write of = \"caller\" into it"))
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

/// The manifest's login of this name.
fn named(name: &str, manifest: &ManifestArg) -> Result<Named, Failure> {
    let path = &manifest.manifest;
    let manifest = manifest::checked(path).map_err(|problem| Failure::at_fault(problem, NAME_MANIFEST))?;
    let Some(policy) = manifest.login(name) else {
        let known = manifest.logins().iter().map(|login| login.name());
        let hint = match did_you_mean(name, known) {
            Some(known) => format!("did you mean {known}?"),
            None => format!("add [oauth.{name}] with issuer and client_id"),
        };
        return Err(Failure::at_fault(format!("the manifest has no login {name:?}"), hint));
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let state = folder.join(manifest.server().state());
    Ok(Named { policy: Arc::clone(policy), folder: folder.to_owned(), state })
}
