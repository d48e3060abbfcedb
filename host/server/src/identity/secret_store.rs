//! Keeps values of secrets where a manifest says they are: in a file of their own, or in a keyring.
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use toolcell_policy::{AdvisedFault, LoginOwner, SecretSource};
use toolcell_sandbox::{SECRET_BYTES_MAX, SecretValue, make_folders};
use zeroize::Zeroizing;

use crate::files::file::{Keeper, plain, write_private, write_whole};

/// A file that keeps version control out of the folder of secrets.
const IGNORED: (&str, &str) = (".gitignore", "*\n");

/// A value that a person gave. Wiped from memory when dropped.
pub struct GivenSecret(Zeroizing<String>);

impl GivenSecret {
    /// The value, for the place it was given for.
    #[must_use]
    pub fn into_text(self) -> Zeroizing<String> {
        self.0
    }

    /// Reads one line, to its end or to the end of the input.
    ///
    /// # Errors
    /// One sentence, without any part of the value.
    pub fn read(input: impl Read) -> Result<Self, String> {
        let mut text = Zeroizing::new(String::with_capacity(SECRET_BYTES_MAX + 3));
        // Two bytes for the line end, and one that reveals a longer value.
        let mut input = input.take(SECRET_BYTES_MAX as u64 + 3);
        input.read_to_string(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => "the value is not UTF-8 text".to_owned(),
            _ => format!("the value cannot be read: {}", plain(&error)),
        })?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let value = Zeroizing::new(line.strip_suffix('\r').unwrap_or(line).to_owned());
        SecretValue::new(value.clone()).map_err(|problem| format!("the value {problem}"))?;
        Ok(Self(value))
    }

    /// Lets a person type it, without showing it. `prompt` asks for it once nothing is shown any
    /// more. `None` if the person gives up.
    ///
    /// # Errors
    /// One sentence, without any part of the value.
    pub fn type_in(terminal: impl Read + AsFd, prompt: impl FnOnce()) -> Result<Option<Self>, String> {
        let wrong = |error: io::Error| format!("the value cannot be read: {}", plain(&error));
        let mut hidden = HiddenInput::of(terminal).map_err(wrong)?;
        prompt();
        let mut typed = Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX + 3));
        while typed.len() < SECRET_BYTES_MAX + 3 {
            let mut key = [0];
            match hidden.terminal.read(&mut key) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(wrong(error)),
            }
            match key {
                [b'\r' | b'\n'] => break,
                [INTERRUPT | END] => return Ok(None),
                [ERASE | BACKSPACE] => erase(&mut typed),
                [ERASE_ALL] => typed.clear(),
                [byte] => typed.push(byte),
            }
        }
        Self::read(typed.as_slice()).map(Some)
    }

    /// Keeps the value at this place; relative paths start from `folder`. Creates a missing folder,
    /// readable only by its owner.
    ///
    /// # Errors
    ///
    /// One sentence, and advice. Neither contains any part of the value.
    pub fn keep(&self, place: &SecretSource, folder: &Path) -> Result<(), AdvisedFault> {
        match place {
            SecretSource::Env(name) => Err(AdvisedFault::new(
                format!("the variable {name} is the environment's of the host"),
                "set it before the host starts",
            )),
            SecretSource::File(path) => self.keep_in_file(&folder.join(path)).map_err(|error| {
                let advice = "name a folder that this user can write to";
                AdvisedFault::new(format!("{path} cannot be written: {}", plain(&error)), advice)
            }),
            SecretSource::Keyring { service, account } => keyrings::set(service, account, &self.0).map_err(|problem| {
                let advice = "leave --keyring out to keep it in a file";
                AdvisedFault::new(format!("no keyring of this system takes {service}/{account}: {problem}"), advice)
            }),
            SecretSource::Login(login) if login.owner() == LoginOwner::Caller => Err(AdvisedFault::new(
                format!("each caller has a value of {:?} of their own", login.name()),
                "see: toolcell logins",
            )),
            SecretSource::Login(login) => Err(AdvisedFault::new(
                format!("the login {:?} gives this value", login.name()),
                format!("run: toolcell secret login {}", login.name()),
            )),
            SecretSource::Program(program) => Err(AdvisedFault::new(
                format!("{} gives this value", program.path()),
                "change it where that program takes it from",
            )),
        }
    }

    fn keep_in_file(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
            make_folder(folder)?;
            write_whole(&folder.join(IGNORED.0), IGNORED.1.as_bytes())?;
        }
        let line = Zeroizing::new(format!("{}\n", *self.0));
        write_private(path, line.as_bytes())
    }
}

/// Creates a folder and its parents, accessible only to those who may read the files in it.
fn make_folder(folder: &Path) -> io::Result<()> {
    let is_there = |place: &&Path| place.exists();
    let around = folder.ancestors().find(is_there).unwrap_or(Path::new("."));
    // Readers are those of a file in the parent folder.
    let mode = Keeper::of(&around.join(IGNORED.0)).map_or(0o600, Keeper::private_mode);
    make_folders(folder, mode | 0o100 | (mode & 0o040) >> 2)
}

/// Control keys, which a terminal in raw mode passes on.
const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const ERASE_ALL: u8 = 0x15;
const ERASE: u8 = 0x7f;

/// Removes the last character, which may have several bytes.
fn erase(typed: &mut Vec<u8>) {
    while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
}

/// Turns off the terminal's echo until dropped. Ctrl-C does not end the process meanwhile, which
/// would leave the echo off.
struct HiddenInput<T: AsFd> {
    terminal: T,
    before: Termios,
}

impl<T: AsFd> HiddenInput<T> {
    fn of(terminal: T) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
        Ok(Self { terminal, before })
    }
}

impl<T: AsFd> Drop for HiddenInput<T> {
    fn drop(&mut self) {
        // This fails only if the terminal is gone.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// Removes the value at this place. False if there was none.
///
/// # Errors
/// One sentence.
pub fn forget(place: &SecretSource, folder: &Path) -> Result<bool, String> {
    match place {
        // Others may use the same login: `toolcell secret logout` ends it.
        SecretSource::Env(_) | SecretSource::Login(_) | SecretSource::Program(_) => Ok(false),
        SecretSource::File(path) => match fs::remove_file(folder.join(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("{path} cannot be removed: {}", plain(&error))),
        },
        SecretSource::Keyring { service, account } => keyrings::remove(service, account),
    }
}

/// The desktop's keyring first, where the build has it, as values are read.
#[cfg(target_os = "linux")]
mod keyrings {
    use keyring_core::api::CredentialStoreApi as _;
    use keyring_core::{Entry, Error};

    fn kernel(service: &str, account: &str) -> Result<Entry, Error> {
        linux_keyutils_keyring_store::Store::new()?.build(service, account, None)
    }

    #[cfg(feature = "secret-service")]
    fn desktop(service: &str, account: &str, value: Option<&str>) -> bool {
        let Ok(entry) = keyring::v1::Entry::new(service, account) else { return false };
        value.map_or_else(|| entry.delete_credential(), |value| entry.set_password(value)).is_ok()
    }

    #[cfg(not(feature = "secret-service"))]
    const fn desktop(_: &str, _: &str, _: Option<&str>) -> bool {
        false
    }

    pub fn set(service: &str, account: &str, value: &str) -> Result<(), String> {
        if desktop(service, account, Some(value)) {
            return Ok(());
        }
        let set = kernel(service, account).and_then(|entry| entry.set_password(value));
        set.map_err(|error| error.to_string())
    }

    pub fn remove(service: &str, account: &str) -> Result<bool, String> {
        let of_desktop = desktop(service, account, None);
        match kernel(service, account).and_then(|entry| entry.delete_credential()) {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(of_desktop),
            Err(_) if of_desktop => Ok(true),
            Err(error) => Err(format!("the keyring's {service}/{account} cannot be removed: {error}")),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod keyrings {
    pub fn set(_: &str, _: &str, _: &str) -> Result<(), String> {
        Err("this build has none".to_owned())
    }

    pub fn remove(_: &str, _: &str) -> Result<bool, String> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::identity::secrets;

    #[test]
    fn a_value_is_one_line_of_bounded_length() {
        for (input, problem) in [
            (&b""[..], "the value is empty"),
            (b"\n", "the value is empty"),
            (b"a\nb\n", "the value has control characters"),
            (b"a\0b", "the value has control characters"),
            (b"\xff", "the value is not UTF-8 text"),
        ] {
            assert_eq!(GivenSecret::read(input).err().as_deref(), Some(problem), "{input:?}");
        }
        let longest = "a".repeat(SECRET_BYTES_MAX);
        assert_eq!(*GivenSecret::read(format!("{longest}\r\n").as_bytes()).unwrap().0, longest);
        assert!(GivenSecret::read(format!("{longest}a").as_bytes()).is_err());
        assert!(GivenSecret::read(io::repeat(b'a')).is_err(), "an endless input is not read to its end");
    }

    #[test]
    fn a_value_in_a_file_is_its_owner_s_alone_and_is_read_as_it_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let place = SecretSource::File("kept/secrets/KEY".to_owned());
        let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
        for value in ["first value", "second"] {
            GivenSecret::read(value.as_bytes()).unwrap().keep(&place, folder.path()).unwrap();
            assert_eq!(*secrets::text(&place, folder.path()).unwrap().0, value);
            assert_eq!((mode("kept/secrets"), mode("kept/secrets/KEY")), (0o700, 0o600));
            fs::set_permissions(folder.path().join("kept/secrets/KEY"), fs::Permissions::from_mode(0o644)).unwrap();
        }
        assert_eq!(forget(&place, folder.path()), Ok(true));
        assert_eq!(forget(&place, folder.path()), Ok(false));
    }
}
