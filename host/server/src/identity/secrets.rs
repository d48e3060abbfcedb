//! Reads secrets from their source in the manifest: a variable, a file, the system's keyring.
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use toolcell_policy::{AdvisedFault, LoginOwner, SecretSource};
use toolcell_sandbox::{HeldSecret, SECRET_BYTES_MAX, SecretValue};
use zeroize::Zeroizing;

use crate::files::blocking_files;
use crate::files::file::{open, plain};
use crate::identity::{login, secret_program};
use crate::machine::shell;

/// Time for a keyring: somebody may have to type its password.
const KEYRING_ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// Mode bits that let others than the owner read or change a file.
const OTHERS_MODE: u32 = 0o077;

/// Prepares one secret of a tool: reads it, or prepares the login that provides its values. `state`
/// is the folder of states.
///
/// # Errors
///
/// See [`read`].
pub fn hold(source: &SecretSource, folder: &Path, state: &Path) -> Result<HeldSecret, AdvisedFault> {
    match source {
        SecretSource::Login(policy) if policy.owner() == LoginOwner::Caller => {
            Ok(HeldSecret::OfCaller(policy.name().into()))
        }
        SecretSource::Login(policy) => Ok(HeldSecret::Live(login::live(policy, folder, state))),
        SecretSource::Program(program) => secret_program::load(program).map(HeldSecret::Live),
        _ => read(source, folder).map(HeldSecret::Fixed),
    }
}

/// Reads one secret; relative paths start from `folder`.
///
/// # Errors
/// The problem as a sentence without a full stop, and advice. Neither has any part of the value.
pub fn read(source: &SecretSource, folder: &Path) -> Result<SecretValue, AdvisedFault> {
    let (value, shown) = text(source, folder)?;
    SecretValue::new(value)
        .map_err(|problem| AdvisedFault::new(format!("{shown} {problem}"), "a secret is one line of 1 byte to 32 KiB"))
}

/// Reads the text of one secret of the host itself, and its name for messages.
///
/// # Errors
/// See [`read`].
pub fn text(source: &SecretSource, folder: &Path) -> Result<(Zeroizing<String>, String), AdvisedFault> {
    Ok(match source {
        SecretSource::Env(name) => (variable(name)?, format!("the variable {name}")),
        SecretSource::File(path) => (file(&folder.join(path), path)?, path.clone()),
        SecretSource::Keyring { service, account } => {
            (keyring(service, account)?, format!("the keyring's {service}/{account}"))
        }
        SecretSource::Login(policy) => {
            let message = format!("the token of the login {:?} changes", policy.name());
            return Err(AdvisedFault::new(message, "name a variable, a file or an entry of the keyring"));
        }
        SecretSource::Program(program) => (secret_program::print(program)?, program.path().to_owned()),
    })
}

fn variable(name: &str) -> Result<Zeroizing<String>, AdvisedFault> {
    std::env::var(name).map(Zeroizing::new).map_err(|_| {
        let message = format!("the host's environment has no variable {name:?}");
        AdvisedFault::new(message, format!("set {name} before the host starts"))
    })
}

fn file(path: &Path, shown: &str) -> Result<Zeroizing<String>, AdvisedFault> {
    let own = path.to_owned();
    let name = shown.to_owned();
    blocking_files::run(path, move |_| file_here(&own, &name)).unwrap_or_else(|error| Err(cannot(shown, &error)))
}

fn cannot(shown: &str, error: &std::io::Error) -> AdvisedFault {
    let message = format!("{shown} cannot be read: {}", plain(error));
    AdvisedFault::new(message, "paths are relative to the manifest's folder")
}

fn file_here(path: &Path, shown: &str) -> Result<Zeroizing<String>, AdvisedFault> {
    let (opened, metadata) = open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => {
            AdvisedFault::new(format!("{shown} is not a regular file"), "name a file that holds the value alone")
        }
        _ => cannot(shown, &error),
    })?;
    if metadata.mode() & OTHERS_MODE != 0 {
        let mode = metadata.mode() & 0o777;
        let message = format!("{shown} can be read by others (mode {mode:03o})");
        // The command is typed in the folder of the process, which is often not the manifest's.
        let typed = path.strip_prefix(".").unwrap_or(path);
        return Err(AdvisedFault::new(message, format!("chmod 600 {}", shell::word(&typed.to_string_lossy()))));
    }
    let mut text = Zeroizing::new(String::new());
    // One byte for the line end, and one that reveals a longer file.
    let bytes_max = SECRET_BYTES_MAX as u64 + 2;
    opened.take(bytes_max).read_to_string(&mut text).map_err(|error| cannot(shown, &error))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Zeroizing::new(line.strip_suffix('\r').unwrap_or(line).to_owned()))
}

/// Asks the keyring on a thread of its own, since a locked one waits for a person.
fn keyring(service: &str, account: &str) -> Result<Zeroizing<String>, AdvisedFault> {
    let own = service.to_owned();
    let named = account.to_owned();
    let place = Path::new("keyring").join(service).join(account);
    let asked = blocking_files::run_within(KEYRING_ANSWERS_WITHIN, &place, move |_| {
        secret_service(&own, &named).or_else(|| kernel_keyring(&own, &named))
    });
    let why = match asked {
        Ok(Some(found)) => return Ok(Zeroizing::new(found)),
        Ok(None) => String::new(),
        Err(error) => format!(": {error}"),
    };
    let desktop = if cfg!(feature = "secret-service") { "" } else { "; this build asks no desktop's keyring" };
    Err(AdvisedFault::new(
        format!("no keyring of this system gives {service}/{account}{why}"),
        format!("keyctl padd user 'keyring:{account}@{service}' @u stores it in the kernel's{desktop}"),
    ))
}

/// The desktop's keyring, over D-Bus. It needs fifty more crates, and servers have no desktop: the
/// feature is off by default.
#[cfg(feature = "secret-service")]
fn secret_service(service: &str, account: &str) -> Option<String> {
    keyring::v1::Entry::new(service, account).ok()?.get_password().ok()
}

#[cfg(not(feature = "secret-service"))]
fn secret_service(_: &str, _: &str) -> Option<String> {
    None
}

/// The kernel's keyring, which works without a desktop, and lasts until the user's last logout. The
/// key is a `user` key with the description `keyring:ACCOUNT@SERVICE`.
#[cfg(target_os = "linux")]
fn kernel_keyring(service: &str, account: &str) -> Option<String> {
    use keyring_core::api::CredentialStoreApi as _;
    let store = linux_keyutils_keyring_store::Store::new().ok()?;
    store.build(service, account, None).ok()?.get_password().ok()
}

#[cfg(not(target_os = "linux"))]
fn kernel_keyring(_: &str, _: &str) -> Option<String> {
    None
}
