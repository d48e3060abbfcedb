//! Mounts that contain files which no guest may write, or read: compared by the paths in the
//! manifest.

use super::Problems;
use super::paths::parts;
use crate::diagnostic::Diagnostic;
use crate::grants::{Access, Delivery, Mount, MountKind, SecretSource};
use crate::manifest::{AuditPolicy, ComponentPolicy, RecordingsPolicy, Server, SourceRef};

/// A file or folder of the host that is not for guests.
struct HostFile<'m> {
    what: String,
    path: &'m str,
    /// True if not even reading it is allowed.
    unread: bool,
}

/// The sections that name files of the server itself.
pub(crate) struct ServerFiles<'m> {
    pub(crate) server: &'m Server,
    pub(crate) audit: &'m AuditPolicy,
    pub(crate) recordings: Option<&'m RecordingsPolicy>,
}

/// Reports every mount that contains a component's code, the audit, the folder of states, the
/// recordings, or a secret's file. Mounts that contain the manifest's own folder are checked when
/// they are opened.
pub(crate) fn check(named: &ServerFiles<'_>, components: &[ComponentPolicy], problems: &mut Problems) {
    let host_files = host_files(named, components);
    for mount in components.iter().flat_map(|component| component.grants().files()) {
        let MountKind::Host { path, access, .. } = mount.kind() else { continue };
        for thing in host_files.iter().filter(|thing| thing.unread || *access == Access::Write) {
            let whole = holds(path, ".") && !thing.unread;
            if !whole && holds(path, thing.path) {
                problems.add(problem(mount, thing, *access));
            }
        }
    }
}

fn host_files<'m>(named: &ServerFiles<'m>, components: &'m [ComponentPolicy]) -> Vec<HostFile<'m>> {
    let ServerFiles { server, audit, recordings } = *named;
    let mut host_files =
        vec![HostFile { what: "the folder of states".to_owned(), path: server.state(), unread: false }];
    host_files.extend(server.store().map(|path| HostFile {
        what: "the store of components".to_owned(),
        path,
        unread: false,
    }));
    host_files.extend(audit.file().map(|path| HostFile { what: "the audit".to_owned(), path, unread: false }));
    host_files.extend(recordings.map(|recordings| HostFile {
        what: "the recordings of calls".to_owned(),
        path: recordings.folder(),
        unread: true,
    }));
    for component in components {
        if let SourceRef::File(path) = component.source() {
            let what = format!("the code of component {:?}", component.name());
            host_files.push(HostFile { what, path, unread: false });
        }
        for secret in component.grants().secrets() {
            if let SecretSource::File(path) = secret.source() {
                let unread = *secret.delivery() != Delivery::Expose;
                host_files.push(HostFile { what: format!("the secret {:?}", secret.name()), path, unread });
            }
        }
    }
    host_files
}

fn problem(mount: &Mount, thing: &HostFile<'_>, access: Access) -> Diagnostic {
    let guest = mount.guest();
    let what = &thing.what;
    let label = if access == Access::Write { "guests can change it there" } else { "guests can read it there" };
    Diagnostic::error("grants::enclosure", format!("the mount {guest:?} holds {what}"))
        .at(mount.span())
        .label(label)
        .hint("mount a folder that holds nothing else, or move what is not for guests")
}

/// True if a folder is the path, or one above it. False for an absolute and a relative path: they
/// cannot be compared.
pub(crate) fn holds(folder: &str, path: &str) -> bool {
    if folder.starts_with('/') != path.starts_with('/') {
        return false;
    }
    let folder = parts(folder);
    let path = parts(path);
    let ups = |parts: &[&str]| parts.iter().take_while(|part| **part == "..").count();
    // `..` contains everything that is not further up.
    if ups(&folder) == folder.len() && !folder.is_empty() {
        return ups(&path) <= folder.len();
    }
    path.starts_with(&folder) && (!folder.is_empty() || ups(&path) == 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::{Source, parse};

    #[test]
    fn folders_hold_what_is_below_them() {
        for (folder, path, expected) in [
            ("data", "data", true),
            ("data", "./data/x", true),
            ("data/", "data/../data/x", true),
            ("data", "database", false),
            ("data", "../data", false),
            (".", "data", true),
            (".", "../data", false),
            ("..", "data", true),
            ("..", "../data", true),
            ("..", "../../data", false),
            ("../x", "../x/y", true),
            ("../x", "x", false),
            ("/", "/x", true),
            ("/srv", "/srv/x", true),
            ("/srv", "srv/x", false),
        ] {
            assert_eq!(super::holds(folder, path), expected, "{folder} {path}");
        }
    }

    #[test]
    fn what_is_not_for_guests_is_in_no_mount() {
        let base = "version = 1\nserver.state = 'state'\naudit.file = 'log/audit.jsonl'\n[components.a]\nsource = \
                    'wasm/a.wasm'\nnetwork = { http = ['https://a.example'] }\n[components.a.secrets]\nHELD = { from = \
                    'file:keys/held', expose = true }\nKEY = { from = 'file:secrets/key', query = 'k', for = \
                    'https://a.example' }\n[components.b]\nsource = 'wasm/b.wasm'\n";
        for (mount, expected) in [
            ("{ path = 'data', access = 'write' }", 0),
            ("{ path = 'wasm', access = 'write' }", 2),
            ("{ path = 'wasm/b.wasm', access = 'write' }", 1),
            ("{ path = 'wasm' }", 0),
            ("{ path = 'log', access = 'write' }", 1),
            ("{ path = 'state/x/..', access = 'write' }", 1),
            ("{ path = 'state' }", 0),
            ("{ path = 'secrets' }", 1),
            ("{ path = 'secrets/key' }", 1),
            ("{ path = 'keys' }", 0),
            ("{ path = 'keys', access = 'write' }", 1),
            ("{ path = '.' }", 1),
            ("{ path = '.', access = 'write' }", 1),
        ] {
            let text = format!("{base}filesystem = {{ '/m' = {mount} }}\n");
            let found =
                parse(&Source { name: "m", text: &text }).map_or_else(|problems| problems, |parsed| parsed.warnings);
            let found: Vec<_> = found.iter().map(|problem| problem.code()).collect();
            assert_eq!(found, vec!["grants::enclosure"; expected], "{mount}");
        }
    }
}
