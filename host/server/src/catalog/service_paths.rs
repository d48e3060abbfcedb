//! Paths that the packaged service must write but cannot: its configuration is read-only to it.
use std::path::{Component, Path, PathBuf};

use toolcell_policy::{Access, Diagnostic, Manifest, Mount, MountKind, SourceRef};

use crate::files::file::absolute;

/// The folder of the service's configuration.
const CONFIGURATION: &str = "/etc/toolcell";

/// The folder that the service may write.
const STATE: &str = "/var/lib/toolcell";

/// A problem for each path below the service's configuration that this manifest has written, with
/// the component, or an empty name where it is of none. Relative paths start from `folder`.
pub(super) fn check(manifest: &Manifest, folder: &Path) -> Vec<(String, Diagnostic)> {
    let folder = absolute(folder);
    let is_closed = |path: &str| plain(&folder.join(path)).starts_with(CONFIGURATION);
    let server = manifest.server();
    let uses_store = manifest.components().iter().any(|component| matches!(component.source(), SourceRef::Registry(_)));
    let named = [
        ("the audit", manifest.audit().file()),
        ("`state` of [server]", Some(server.state())),
        ("`store` of [server]", server.store().filter(|_| uses_store)),
    ];
    let named = named.into_iter().filter_map(|(what, path)| Some((what, path?)));
    let closed = named.filter(|(_, path)| is_closed(path));
    let mut problems: Vec<(String, Diagnostic)> =
        closed.map(|(what, path)| (String::new(), problem(what, path))).collect();
    for component in manifest.components() {
        let written = |mount: &&Mount| mount.access() == Access::Write;
        for mount in component.grants().files().iter().filter(written) {
            let MountKind::Host { path, .. } = mount.kind() else { continue };
            if is_closed(path) {
                let what = format!("component {:?}: the mount {:?}", component.name(), mount.guest());
                problems.push((component.name().to_owned(), problem(&what, path).at(mount.span())));
            }
        }
    }
    problems
}

fn problem(what: &str, path: &str) -> Diagnostic {
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let message = format!("{what} is written to {path:?}, and the service may not write below {CONFIGURATION}");
    Diagnostic::error("service::read_only", message)
        .hint(format!("name a place that it may write: \"{STATE}/{}\"", name.trim_start_matches('.')))
}

/// The path without `.` and `..`, which need not exist.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{Source, parse};

    use super::*;

    #[test]
    fn what_the_service_writes_is_not_in_its_configuration() {
        let table = [
            ("[server]\nstate = '/var/lib/toolcell/state'", "", None),
            ("", "", Some("`state` of [server] is written to \".toolcell\"")),
            ("[server]\nstate = '/var/lib/x'\n[audit]\nfile = 'audit.jsonl'", "", Some("the audit")),
            ("[server]\nstate = '/var/lib/../../etc/toolcell/state'", "", Some("`state`")),
            ("[server]\nstate = '/var/lib/x'\nstore = 'store'", "", None),
            ("[server]\nstate = '/etc/toolcells'", "'/out' = { path = '../out', access = 'write' }", None),
            ("[server]\nstate = '/var/lib/x'", "'/in' = { path = 'in', access = 'read' }", None),
            ("[server]\nstate = '/var/lib/x'", "'/out' = { path = 'out', access = 'write' }", Some("component \"a\"")),
        ];
        for (server, mounts, expected) in table {
            let text = format!(
                "version = 1\n{server}\n[components.a]\nsource = 'a.wasm'\n[components.a.filesystem]\n{mounts}\n"
            );
            let manifest = parse(&Source { name: "test", text: &text }).unwrap().manifest;
            let problems = check(&manifest, Path::new("/etc/toolcell"));
            let messages: Vec<&str> = problems.iter().map(|(_, problem)| problem.message()).collect();
            assert_eq!(messages.len(), usize::from(expected.is_some()), "{text}: {messages:?}");
            assert!(messages.iter().zip(expected).all(|(message, start)| message.starts_with(start)), "{messages:?}");
            assert_eq!(check(&manifest, Path::new("/srv/tools")).len(), usize::from(server.contains("etc/toolcell/")));
        }
    }
}
