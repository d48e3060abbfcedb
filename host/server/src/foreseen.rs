//! What would keep a server from starting, apart from components: said by a check beforehand. It
//! opens no address and writes nothing.
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::fs::{Access, access};
use toolcell_policy::{AdvisedFault, ConsolePolicy, Diagnostic, HttpPolicy, ListenAddress, Manifest};

use crate::files::file::{folder_of, plain};
use crate::http::open_access_fault;
use crate::identity::TokenFile;
use crate::identity::sources::read_key;
use crate::observing::alerts::Alerts;
use crate::operators::console;
use crate::operators::metrics;

/// The code of all warnings.
const CODE: &str = "serve::unreadable";

/// Warnings about files, folders, variables and addresses that a start would need, and that do not
/// do here: where a manifest is checked, they are often not at hand.
pub(crate) fn faults(manifest: &Manifest, folder: &Path) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut fails = |name: &str, fault: AdvisedFault| found.push(warning(&format!("serving fails: {name}"), &fault));
    if let Some(source) = manifest.server().state_key()
        && let Err(fault) = read_key(source, folder)
    {
        fails("state_key", fault);
    }
    if let Some(fault) = manifest.alerts().and_then(|alerts| Alerts::fault(alerts, folder)) {
        fails("[alerts]", fault);
    }
    if let Some(fault) = manifest.audit().file().and_then(|file| audit_fault(&folder.join(file))) {
        fails("[audit] file", fault);
    }
    if let Some(http) = manifest.http() {
        http_faults(http, folder).into_iter().for_each(|fault| fails("[http] listen", fault));
        if let Some(file) = http.tokens().map(|file| TokenFile::at(folder.join(file)))
            && let Err(problem) = file.read()
        {
            fails("[http] tokens", AdvisedFault::new(problem, file.hint()));
        }
    }
    let metrics = manifest.metrics();
    if let Some(fault) = metrics.and_then(|policy| metrics::public_fault(policy.listen()?, Some(policy))) {
        fails("[metrics] listen", fault);
    }
    let console = manifest.console();
    if let Some(fault) = console.and_then(|policy| console::public_fault(ConsolePolicy::listen(policy)?, Some(policy)))
    {
        fails("[console] listen", fault);
    }
    if let Some(path) = manifest.recordings().map(|recordings| folder.join(recordings.folder()))
        && fs::metadata(&path).is_ok_and(|found| !found.is_dir())
    {
        let fault = AdvisedFault::new(format!("{} is not a folder", path.display()), "name a folder, or a new one");
        found.push(warning("no call is recorded: [recordings] folder", &fault));
    }
    found
}

fn warning(begin: &str, fault: &AdvisedFault) -> Diagnostic {
    let warning = Diagnostic::warning(CODE, format!("{begin}: {}", fault.problem));
    match fault.hint() {
        Some(hint) => warning.hint(hint),
        None => warning,
    }
}

/// Why the audit cannot be written here. What the file holds is left to the start.
fn audit_fault(path: &Path) -> Option<AdvisedFault> {
    let cannot = |error: io::Error| AdvisedFault::unadvised(format!("{}: {}", path.display(), plain(&error)));
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.file_type().is_char_device() => {
            Some(AdvisedFault::new(format!("{} is not a regular file", path.display()), "name a file, or a new one"))
        }
        Ok(_) => access(path, Access::READ_OK | Access::WRITE_OK).err().map(|error| cannot(error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => folder_fault(path),
        Err(error) => Some(cannot(error)),
    }
}

fn http_faults(policy: &HttpPolicy, folder: &Path) -> Vec<AdvisedFault> {
    let socket_fault = |address: &ListenAddress| match address {
        ListenAddress::Unix(path) => folder_fault(&folder.join(path)),
        ListenAddress::Tcp(_) => None,
    };
    let sockets = policy.listen().iter().filter_map(socket_fault);
    sockets.chain(open_access_fault(policy.listen(), policy)).collect()
}

/// Why nothing can be made at this path.
fn folder_fault(path: &Path) -> Option<AdvisedFault> {
    let folder = folder_of(path);
    let error = io::Error::from(access(&folder, Access::WRITE_OK | Access::EXEC_OK).err()?);
    Some(if error.kind() == io::ErrorKind::NotFound {
        AdvisedFault::new(format!("there is no folder {}", folder.display()), "make it first")
    } else {
        let problem = format!("nothing can be made in {}: {}", folder.display(), plain(&error));
        AdvisedFault::new(problem, "serve as a user who can write there, or name another folder")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use toolcell_policy::{Source, parse};

    use super::*;

    /// The messages for a manifest with these lines, in a folder with `a-file` and `a-folder`.
    fn messages(lines: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a-file"), "x".repeat(20)).unwrap();
        // A secret's file is its owner's alone.
        fs::set_permissions(folder.path().join("a-file"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(folder.path().join("a-folder")).unwrap();
        let text = format!("version = 1\n{lines}\n");
        let parsed = parse(&Source { name: "toolcell.toml", text: &text });
        let parsed = parsed.unwrap_or_else(|problems| unreachable!("{problems:?}"));
        let faults = faults(&parsed.manifest, folder.path());
        let inside = format!("{}/", folder.path().display());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing was made");
        faults.iter().map(|fault| fault.message().replace(&inside, "")).collect()
    }

    #[test]
    fn what_keeps_a_server_from_starting_is_foreseen() {
        for (lines, message) in [
            ("[audit]\nfile = \"none/a.jsonl\"", "serving fails: [audit] file: there is no folder none"),
            ("[audit]\nfile = \"a-folder\"", "serving fails: [audit] file: a-folder is not a regular file"),
            ("[audit]\nfile = \"a-file/a.jsonl\"", "serving fails: [audit] file: a-file/a.jsonl: "),
            ("[http]\nlisten = \"unix:run/x.sock\"", "serving fails: [http] listen: there is no folder run"),
            (
                "[http]\nlisten = \"0.0.0.0:8080\"",
                "serving fails: [http] listen: 0.0.0.0:8080 can be reached from other machines, ",
            ),
            (
                "[metrics]\nlisten = \"0.0.0.0:9000\"",
                "serving fails: [metrics] listen: the metrics at 0.0.0.0:9000 could be read from other machines, ",
            ),
            (
                "[alerts]\nurl = \"https://example.com/\"\nsecret = \"file:a-file\"",
                "serving fails: [alerts]: secret has 20 bytes, ",
            ),
            ("[recordings]\nfolder = \"a-file\"", "no call is recorded: [recordings] folder: a-file is not a folder"),
        ] {
            let found = messages(lines);
            assert!(matches!(found.as_slice(), [found] if found.starts_with(message)), "{lines}: {found:?}");
        }
    }

    #[test]
    fn what_is_well_or_is_made_by_the_start_is_not_a_fault() {
        for lines in [
            "[audit]\nfile = \"a-folder/a.jsonl\"",
            "[audit]\nfile = \"/dev/null\"",
            "[http]\nlisten = [\"127.0.0.1:8080\", \"unix:a-folder/x.sock\"]",
            "[metrics]\nlisten = \"0.0.0.0:9000\"\npublic = true",
            "[recordings]\nfolder = \"none/new\"",
        ] {
            assert_eq!(messages(lines), [""; 0], "{lines}");
        }
    }
}
