//! The host's own files, and that no mount holds them: by what they are (device and number) after every link, not by how
//! their paths are written. Must not hold: how mounts are opened.
//!
//! | a guest could | so it is refused to mount |
//! |---|---|
//! | change what the host relies on | to be written: folders that hold it, or a link or a folder on the way to it |
//! | read a secret that it must not have | at all: folders that hold it |
//!
//! It is looked at whenever a catalog is built, for components that did not change as well: what was opened long ago is
//! compared with where the host's files are now. A file that is not there yet would be made in the last folder that is.
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use toolcell_policy::{
    Access, ComponentPolicy, Delivery, Diagnostic, ListenAddress, Manifest, Mount, MountKind, SecretSource, SourceRef,
};
use toolcell_sandbox::Identity;

use super::side_files::{self, absolute};
use super::{CallTarget, LoadedComponent};
use crate::open::CodeCacheOptions;
use crate::{aside, control, lock, machine};

/// Links on the way to a file, as Linux bounds them.
const LINKS_MAX: usize = 40;

/// The process's own files that its manifest does not name.
#[derive(Clone, Debug, Default)]
pub struct Process {
    kept: Vec<(String, PathBuf, bool)>,
}

/// Something of the host's that is not for guests.
struct Kept<'m> {
    what: String,
    path: PathBuf,
    /// Whether reading it is harm enough, but for the component of that name.
    unread: Option<Option<&'m str>>,
}

/// Where a file is, or would be.
#[derive(Default)]
struct Place {
    /// It, and every folder that holds it.
    holders: BTreeSet<Identity>,
    /// These, and every folder that was passed on the way to it: whoever can write to one decides where that leads.
    passed: BTreeSet<Identity>,
    /// It, where it is there.
    own: Option<Identity>,
}

impl Process {
    /// What a process has that serves this manifest: that, its lock and its audit, its code cache, its control sockets.
    pub fn new(manifest: &Path, audit: Option<&Path>, code: &CodeCacheOptions) -> Self {
        let mut kept = Vec::new();
        let mut keep = |what: &str, path: PathBuf, unread| kept.push((what.to_owned(), path, unread));
        keep("the manifest", manifest.to_owned(), false);
        keep("the lock", lock::path_beside(manifest), false);
        audit.into_iter().for_each(|path| keep("the audit", path.to_owned(), false));
        let (folder, key) = machine::cache_places(code);
        folder.into_iter().for_each(|path| keep("the cache of compiled code", path, false));
        key.into_iter().for_each(|path| keep("the key of the cache of compiled code", path, true));
        control::folders().into_iter().for_each(|path| keep("the control socket", path, false));
        Self { kept }
    }

    /// Every mount that holds something of this process, or of this manifest's.
    pub(super) fn check(&self, manifest: &Manifest, folder: &Path, targets: &[Arc<CallTarget>]) -> Vec<Diagnostic> {
        let kept: Vec<Kept<'_>> = self.kept(manifest, folder).collect();
        let mounted = || targets.iter().flat_map(|target| target.reach.mounted().map(move |mount| (target, mount)));
        let paths = mounted().filter_map(|(_, (mount, _))| path_of(mount, folder));
        let paths: BTreeSet<PathBuf> = kept.iter().map(|kept| kept.path.clone()).chain(paths).collect();
        // A place that nobody can look at holds nothing: whatever is read there is refused with that reason.
        let look = |path: &Path| Place::of(path);
        let places: HashMap<PathBuf, Place> =
            aside::each(paths, look).into_iter().map(|(path, place)| (path, place.unwrap_or_default())).collect();
        let mut problems: Vec<Diagnostic> = Vec::new();
        for (target, (mount, identity)) in mounted() {
            let inside = path_of(mount, folder).and_then(|path| places.get(&path)).map(|place| &place.holders);
            for kept in &kept {
                let Some(place) = places.get(&kept.path) else { continue };
                if kept.is_held(&target.component, mount, (place, identity, inside)) {
                    let problem = problem(&target.component, mount, &kept.what);
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
        problems
    }

    fn kept<'m>(&self, manifest: &'m Manifest, folder: &Path) -> impl Iterator<Item = Kept<'m>> {
        let own = self.kept.iter().map(|(what, path, unread)| Kept {
            what: what.clone(),
            path: path.clone(),
            unread: unread.then_some(None),
        });
        let named = named_by_server(manifest).into_iter().map(|(what, path, unread)| Kept {
            what: what.to_owned(),
            path: folder.join(path),
            unread: unread.then_some(None),
        });
        let components = manifest.components().iter().flat_map(|component| named_by_component(component, folder));
        own.chain(named).chain(components).collect::<Vec<_>>().into_iter()
    }
}

/// Files of the manifest that belong to no component: what each is, its path, and whether no guest may read it.
fn named_by_server(manifest: &Manifest) -> Vec<(&'static str, &str, bool)> {
    let mut named = vec![("the folder of states", manifest.server().state(), false)];
    named.extend(manifest.audit().file().map(|path| ("the audit", path, false)));
    if let Some(SecretSource::File(path)) = manifest.server().state_key() {
        named.push(("state_key", path, true));
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

/// A component's code, its secrets, and what else is read when it is loaded.
fn named_by_component<'m>(component: &'m ComponentPolicy, folder: &Path) -> Vec<Kept<'m>> {
    let name = component.name();
    let mut kept = Vec::new();
    if let SourceRef::File(path) = component.source() {
        kept.push(Kept { what: format!("the code of component {name:?}"), path: folder.join(path), unread: None });
    }
    let mut secrets = BTreeSet::new();
    for secret in component.grants().secrets() {
        let SecretSource::File(path) = secret.source() else { continue };
        let path = folder.join(path);
        secrets.insert(absolute(&path));
        // A guest that is told it may read it.
        let but = (*secret.delivery() == Delivery::Expose).then_some(name);
        kept.push(Kept { what: format!("the secret {:?}", secret.name()), path, unread: Some(but) });
    }
    let others = side_files::files(component, folder).into_iter().filter(|path| !secrets.contains(path));
    kept.extend(others.map(|path| Kept {
        what: format!("a file that component {name:?} is loaded with"),
        path,
        unread: None,
    }));
    kept
}

impl Kept<'_> {
    /// True if a guest of this component could do what it must not with it, in a mount that is this file or folder, or lies
    /// inside of these.
    fn is_held(
        &self,
        component: &LoadedComponent,
        mount: &Mount,
        (place, identity, inside): (&Place, Identity, Option<&BTreeSet<Identity>>),
    ) -> bool {
        let read = self.unread.is_some_and(|but| but != Some(component.name()));
        let is_itself_above = place.own.is_some_and(|own| inside.is_some_and(|inside| inside.contains(&own)));
        match mount.access() {
            Access::Write => place.passed.contains(&identity) || is_itself_above,
            Access::Read => read && (place.holders.contains(&identity) || is_itself_above),
        }
    }
}

impl Place {
    fn of(path: &Path) -> Self {
        let mut place = Self::default();
        let mut at = PathBuf::from("/");
        let mut rest = reversed(&absolute(path));
        let mut links = 0;
        place.passed.extend(identity(&at));
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
                    place.passed.insert((data.dev(), data.ino()));
                    at = next;
                }
            }
        }
        place.holders = at.ancestors().filter_map(identity).collect();
        place.own = identity(path).filter(|identity| place.holders.contains(identity));
        place
    }
}

/// The path of a mount of the host's files. Something of the host's may be one of the folders on it.
fn path_of(mount: &Mount, folder: &Path) -> Option<PathBuf> {
    match mount.kind() {
        MountKind::Host { path, .. } => Some(folder.join(path)),
        _ => None,
    }
}

/// The parts of a path, the last first; `.` and the root are none.
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
    let (name, guest) = (component.name(), mount.guest());
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
        let place = Place::of(&root.join("b/../b/far/file"));
        for (name, holds, passed) in [
            ("", true, true),
            ("a", false, true),
            ("b", false, true),
            ("c", true, true),
            ("c/d", true, true),
            ("c/d/file", true, true),
        ] {
            assert_eq!(
                (place.holders.contains(&id(name)), place.passed.contains(&id(name))),
                (holds, passed),
                "{name}"
            );
        }
        let missing = Place::of(&root.join("c/d/none/there"));
        assert!(missing.holders.contains(&id("c/d")) && !missing.holders.contains(&id("c/d/file")));
    }
}
