//! Files of the host itself, which no mount may hold. They are compared by identity (device and
//! inode) after every link, not by path.
//!
//! | a guest could | refused mounts |
//! |---|---|
//! | change a file that the host relies on | writable: folders and links on its path |
//! | read a secret that it must not have | all: folders that hold it |
//!
//! Every build of a catalog checks this, also for unchanged components: folders that were opened
//! long ago are compared with the current paths of the host's files. A missing file counts as being
//! in the last folder of its path that exists.
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use toolcell_policy::{
    Access, AlertsPolicy, ComponentPolicy, ConsolePolicy, Delivery, Diagnostic, ListenAddress, Manifest, Mount,
    MountKind, SecretSource, SourceRef, TrustPolicy,
};
use toolcell_sandbox::Identity;

use super::LoadedComponent;
use super::entry::{CatalogEntry, targets};
use super::side_files;
use crate::fetching::registries;
use crate::files::blocking_files;
use crate::files::file::absolute;
use crate::identity::login;
use crate::machine::{CodeCacheOptions, cache_places, socket_paths};

/// Most links on the path of a file, as in Linux.
const LINKS_MAX: usize = 40;

/// The process's own files that its manifest does not name.
#[derive(Clone, Debug, Default)]
pub struct HostFiles {
    files: Vec<(String, PathBuf, bool)>,
}

/// A file or folder of the host that is not for guests.
struct ReservedFile<'m> {
    what: String,
    path: PathBuf,
    /// `None` if it may be read. `Some` if only the component of this name may read it, or none.
    unread: Option<Option<&'m str>>,
}

/// A mount of a component, as it was opened.
struct ComponentMount<'m> {
    component: &'m LoadedComponent,
    mount: &'m Mount,
    identity: Identity,
    /// The mount's folder, and every folder that holds it, as they are now.
    holders: Option<&'m BTreeSet<Identity>>,
}

/// Identities along the path of a file, which need not exist.
#[derive(Default)]
struct PathIdentities {
    /// The file, and every folder that holds it.
    holders: BTreeSet<Identity>,
    /// These, and every folder and link passed on the path: a guest that can write to one decides
    /// where the path leads.
    passed: BTreeSet<Identity>,
    /// The file itself, if it exists.
    own: Option<Identity>,
}

impl HostFiles {
    /// Files of a process that serves this manifest: manifest and lock, if there is a file; audit,
    /// code cache, control sockets.
    pub fn new(
        manifest: Option<&Path>,
        lock: Option<&Path>,
        audit: [Option<&Path>; 2],
        code: &CodeCacheOptions,
    ) -> Self {
        let mut files = Vec::new();
        let mut keep = |what: &str, path: PathBuf, unread| files.push((what.to_owned(), path, unread));
        if let Some(manifest) = manifest {
            keep("the manifest", manifest.to_owned(), false);
        }
        if let Some(lock) = lock {
            keep("the lock", lock.to_owned(), false);
        }
        audit.into_iter().flatten().for_each(|path| keep("the audit", path.to_owned(), false));
        let (folder, key) = cache_places(code);
        folder.into_iter().for_each(|path| keep("the cache of compiled code", path, false));
        key.into_iter().for_each(|path| keep("the key of the cache of compiled code", path, true));
        socket_paths::folders().into_iter().for_each(|path| keep("the control socket", path, false));
        Self { files }
    }

    /// A problem for each mount that holds a file of this process or of this manifest, with the
    /// component that has the mount.
    pub(super) fn check(
        &self,
        manifest: &Manifest,
        folder: &Path,
        entries: &[CatalogEntry],
    ) -> Vec<(String, Diagnostic)> {
        let files: Vec<ReservedFile<'_>> = self.files(manifest, folder).collect();
        let mounted =
            || targets(entries).flat_map(|target| target.capabilities.mounted().map(move |mount| (target, mount)));
        let paths = mounted().filter_map(|(_, (mount, _))| path_of(mount, folder));
        let paths: BTreeSet<PathBuf> = files.iter().map(|file| file.path.clone()).chain(paths).collect();
        // A path that cannot be examined holds nothing. Reading it fails later, with the reason.
        let look = |path: &Path| PathIdentities::of(path);
        let identities: HashMap<PathBuf, PathIdentities> = blocking_files::each(paths, look)
            .into_iter()
            .map(|(path, identities)| (path, identities.unwrap_or_default()))
            .collect();
        let mut problems: Vec<(String, Diagnostic)> = Vec::new();
        for (target, (mount, identity)) in mounted() {
            let path = path_of(mount, folder).and_then(|path| identities.get(&path));
            let component = &target.component;
            let opened = ComponentMount { component, mount, identity, holders: path.map(|path| &path.holders) };
            for file in &files {
                let Some(path) = identities.get(&file.path) else { continue };
                if opened.exposes(file, path) {
                    let problem = (component.name().to_owned(), problem(component, mount, &file.what));
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
        problems
    }

    fn files<'m>(&self, manifest: &'m Manifest, folder: &Path) -> impl Iterator<Item = ReservedFile<'m>> {
        let own = self.files.iter().map(|(what, path, unread)| ReservedFile {
            what: what.clone(),
            path: path.clone(),
            unread: unread.then_some(None),
        });
        let named = named_by_server(manifest).into_iter().map(|(what, path, unread)| ReservedFile {
            what: what.to_owned(),
            path: folder.join(path),
            unread: unread.then_some(None),
        });
        let logins = (!manifest.logins().is_empty()).then(|| ReservedFile {
            what: "the folder of logins".to_owned(),
            path: login::folder(&folder.join(manifest.server().state())),
            unread: Some(None),
        });
        let store = manifest.components().iter().any(|component| matches!(component.source(), SourceRef::Registry(_)));
        let store = store.then(|| ReservedFile {
            what: "the store of components".to_owned(),
            path: registries::store_folder(manifest.server(), folder),
            unread: None,
        });
        let components = manifest.components().iter().flat_map(|component| named_by_component(component, folder));
        own.chain(named).chain(store).chain(logins).chain(components).collect::<Vec<_>>().into_iter()
    }
}

/// Files of the manifest that belong to no component: description, path, and true if no guest may
/// read it.
fn named_by_server(manifest: &Manifest) -> Vec<(&'static str, &str, bool)> {
    let mut named = vec![("the folder of states", manifest.server().state(), false)];
    named.extend(manifest.skills().map(|skills| ("the folder of skills", skills.folder(), false)));
    named.extend(manifest.apps().iter().filter_map(|app| Some(("the file of a view", app.file()?, false))));
    named.extend(manifest.prompts().iter().filter_map(|prompt| Some(("the file of a prompt", prompt.file()?, false))));
    named.extend(manifest.audit().file().map(|path| ("the audit", path, false)));
    named.extend(manifest.recordings().map(|policy| ("the recordings of calls", policy.folder(), true)));
    named.extend(manifest.trust().iter().flat_map(TrustPolicy::files).map(|path| ("a file of [trust]", path, false)));
    named.extend(manifest.registries().iter().filter_map(|registry| match registry.password()? {
        SecretSource::File(path) => Some(("the password of a registry", path.as_str(), true)),
        _ => None,
    }));
    if let Some(SecretSource::File(path)) = manifest.server().state_key() {
        named.push(("state_key", path, true));
    }
    if let Some(state) = manifest.state() {
        if let Some(SecretSource::File(path)) = state.password() {
            named.push(("the password of [state]", path, true));
        }
        named.extend(state.authorities().map(|path| ("the certificate authorities of [state]", path, false)));
    }
    if let Some(SecretSource::File(path)) = manifest.alerts().and_then(AlertsPolicy::secret) {
        named.push(("the key of [alerts]", path, true));
    }
    if let Some(files) = manifest.console().and_then(ConsolePolicy::tls) {
        named.push(("the certificate of the console", files.certificate(), false));
        named.push(("the key of the console's TLS", files.key(), true));
    }
    let Some(http) = manifest.http() else { return named };
    named.extend(http.tokens().map(|path| ("the file of tokens", path, true)));
    if let Some(files) = http.tls() {
        named.push(("the certificate of TLS", files.certificate(), false));
        named.push(("the key of TLS", files.key(), true));
    }
    named.extend(http.listen().iter().filter_map(|address| match address {
        ListenAddress::Unix(path) => Some(("a socket that clients connect to", path.as_str(), false)),
        ListenAddress::Tcp(_) => None,
    }));
    named
}

/// A component's code, its secrets, and its side files.
fn named_by_component<'m>(component: &'m ComponentPolicy, folder: &Path) -> Vec<ReservedFile<'m>> {
    let name = component.name();
    let mut files = Vec::new();
    if let SourceRef::File(path) = component.source() {
        files.push(ReservedFile {
            what: format!("the code of component {name:?}"),
            path: folder.join(path),
            unread: None,
        });
    }
    let mut secrets = BTreeSet::new();
    for secret in component.grants().secrets() {
        let SecretSource::File(path) = secret.source() else { continue };
        let path = folder.join(path);
        secrets.insert(absolute(&path));
        // The manifest exposes this secret to the component, which may read it.
        let but = (*secret.delivery() == Delivery::Expose).then_some(name);
        files.push(ReservedFile { what: format!("the secret {:?}", secret.name()), path, unread: Some(but) });
    }
    let others = side_files::files(component, folder).into_iter().filter(|path| !secrets.contains(path));
    files.extend(others.map(|path| ReservedFile {
        what: format!("a file that component {name:?} is loaded with"),
        path,
        unread: None,
    }));
    files
}

impl ComponentMount<'_> {
    /// True if the mount is this file or folder, holds it, or lies inside it, and so gives the
    /// component forbidden access.
    fn exposes(&self, file: &ReservedFile<'_>, path: &PathIdentities) -> bool {
        let read = file.unread.is_some_and(|but| but != Some(self.component.name()));
        let lies_inside = path.own.is_some_and(|own| self.holders.is_some_and(|holders| holders.contains(&own)));
        match self.mount.access() {
            Access::Write => path.passed.contains(&self.identity) || lies_inside,
            Access::Read => read && (path.holders.contains(&self.identity) || lies_inside),
        }
    }
}

impl PathIdentities {
    fn of(path: &Path) -> Self {
        let mut path_identities = Self::default();
        let mut at = PathBuf::from("/");
        let mut rest = reversed(&absolute(path));
        let mut links = 0;
        path_identities.passed.extend(identity(&at));
        while let Some(name) = rest.pop() {
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&name);
            let Ok(data) = std::fs::symlink_metadata(&next) else { break };
            match std::fs::read_link(&next) {
                Ok(target) if data.is_symlink() && links < LINKS_MAX => {
                    links += 1;
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    rest.extend(reversed(&target));
                }
                _ => {
                    path_identities.passed.insert((data.dev(), data.ino()));
                    at = next;
                }
            }
        }
        path_identities.holders = at.ancestors().filter_map(identity).collect();
        path_identities.own = identity(path).filter(|identity| path_identities.holders.contains(identity));
        path_identities
    }
}

/// Host path of a mount. It may be a folder on the path of a host file.
fn path_of(mount: &Mount, folder: &Path) -> Option<PathBuf> {
    match mount.kind() {
        MountKind::Host { path, .. } => Some(folder.join(path)),
        _ => None,
    }
}

/// Components of a path, last first, without `.` and the root.
fn reversed(path: &Path) -> Vec<OsString> {
    let part = |part: Component<'_>| match part {
        Component::ParentDir => Some(OsString::from("..")),
        Component::Normal(name) => Some(name.to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().rev().filter_map(part).collect()
}

fn identity(path: &Path) -> Option<Identity> {
    let data = std::fs::metadata(path).ok()?;
    Some((data.dev(), data.ino()))
}

fn problem(component: &LoadedComponent, mount: &Mount, what: &str) -> Diagnostic {
    let name = component.name();
    let guest = mount.guest();
    let label = match mount.access() {
        Access::Write => "guests can change it there",
        Access::Read => "guests can read it there",
    };
    Diagnostic::error("grants::enclosure", format!("component {name:?}: the mount {guest:?} holds {what}"))
        .at(mount.span())
        .label(label)
        .hint("mount a folder that holds nothing else, or move what is not for guests")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_where_its_links_lead_and_whoever_holds_a_link_has_it_in_hand() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["a", "b", "c/d"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(root.join("c/d/file"), "x").unwrap();
        symlink("../c", root.join("a/link")).unwrap();
        symlink(root.join("a/link/d"), root.join("b/far")).unwrap();
        let id = |name: &str| identity(&root.join(name)).unwrap();
        let path_identities = PathIdentities::of(&root.join("b/../b/far/file"));
        for (name, holds, passed) in [
            ("", true, true),
            ("a", false, true),
            ("b", false, true),
            ("c", true, true),
            ("c/d", true, true),
            ("c/d/file", true, true),
        ] {
            assert_eq!(
                (path_identities.holders.contains(&id(name)), path_identities.passed.contains(&id(name))),
                (holds, passed),
                "{name}"
            );
        }
        let missing = PathIdentities::of(&root.join("c/d/none/there"));
        assert!(missing.holders.contains(&id("c/d")) && !missing.holders.contains(&id("c/d/file")));
    }
}
