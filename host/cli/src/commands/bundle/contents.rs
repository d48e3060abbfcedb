//! The files that a bundle holds besides its program: the manifest, its lock, and all that the
//! manifest names.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use toolcell_policy::quantity::show_bytes;
use toolcell_policy::{
    Access, AppRule, ComponentPolicy, EnvSource, Manifest, MountKind, PromptRule, SecretSource, SourceRef,
};
use toolcell_server::file::{plain, read_bounded};
use toolcell_server::{ManifestFile, lock};

use super::zip::ENTRIES_MAX;
use super::{BRIDGE, DESCRIPTION, ENGINE, PROGRAM};
use crate::exit::Failure;

/// Bytes of all files. A client keeps a bundle in memory while it installs it.
const BYTES_MAX: u64 = 512 << 20;

/// Deepest folder within a folder: more than any tree that a person keeps.
const DEPTH_MAX: usize = 32;

/// Advice for a path that leads out of the folder.
const INSIDE: &str = "copy it into the manifest's folder, and name it by its path from there";

/// A component that comes with the program.
pub struct ShippedComponent {
    /// Its name in the bundle.
    pub name: &'static str,
    /// What it is, for people.
    pub what: &'static str,
    /// Where it is here.
    pub find: fn() -> Option<PathBuf>,
    /// How to get it.
    pub how: &'static str,
}

/// The files of a bundle, by their names in it.
#[derive(Default)]
pub struct Contents {
    manifest: String,
    /// The real path of an earlier bundle that this one replaces.
    output: Option<PathBuf>,
    files: BTreeMap<String, Vec<u8>>,
    bytes: u64,
    variables: BTreeMap<String, Variable>,
    notes: Vec<String>,
}

/// A variable that the client asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Variable {
    /// Sentence about who uses it.
    pub about: String,
    /// True if it must not be shown.
    pub is_secret: bool,
}

impl Contents {
    /// Reads all files that the manifest names. The bundle itself, at `output`, must not be one of
    /// them.
    pub fn of(file: &ManifestFile, manifest: &Manifest, output: &Path) -> Result<Self, Failure> {
        let folder = file.path().parent().unwrap_or(Path::new(""));
        let name = file.path().file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| Failure::at_fault("the manifest's name is not UTF-8", "rename it"))?;
        let output = output.canonicalize().ok();
        let mut contents = Self { manifest: name.to_owned(), output, ..Self::default() };
        contents.put(name, file.text().as_bytes().to_vec())?;
        let lock = lock::path_beside(file.path());
        if let Some(name) = lock.file_name().and_then(|name| name.to_str()).filter(|_| lock.exists()) {
            contents.add(folder, name)?;
        }
        if let Some(source) = manifest.server().state_key() {
            contents.add_secret("the server", "state_key", source)?;
        }
        if let Some(state) = manifest.state() {
            if let Some(source) = state.password() {
                contents.add_secret("the shared state", "password", source)?;
            }
            if let Some(authorities) = state.authorities() {
                contents.add(folder, authorities)?;
            }
        }
        for component in manifest.components() {
            contents.add_component(folder, component)?;
        }
        for file in manifest.prompts().iter().filter_map(PromptRule::file) {
            contents.add(folder, file)?;
        }
        for file in manifest.apps().iter().filter_map(AppRule::file) {
            contents.add(folder, file)?;
        }
        if let Some(skills) = manifest.skills() {
            contents.add(folder, skills.folder())?;
        }
        Ok(contents)
    }

    /// The manifest's name in the bundle.
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    /// The files, in the order of their names.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// The variables that the client asks for, by name.
    pub fn variables(&self) -> &BTreeMap<String, Variable> {
        &self.variables
    }

    /// Sentences about what must exist where the bundle is installed.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn add_component(&mut self, folder: &Path, component: &ComponentPolicy) -> Result<(), Failure> {
        match component.source() {
            SourceRef::File(source) => self.add(folder, source)?,
            SourceRef::Shipped => self.add_shipped(&ENGINE)?,
            SourceRef::HttpTool(_) => self.add_shipped(&BRIDGE)?,
            other => return Err(Failure::at_fault(format!("{other} is not a file"), INSIDE)),
        }
        if let Some(wit) = component.typed().wit() {
            self.add(folder, wit)?;
        }
        let grants = component.grants();
        for certificate in grants.network().ca() {
            self.add(folder, certificate.path())?;
        }
        for mount in grants.files() {
            self.add_mount(folder, component.name(), mount.kind())?;
        }
        for variable in grants.env() {
            if let EnvSource::Host(name) = variable.source() {
                let about = format!("The variable {} of the tools of {}.", variable.name(), component.name());
                self.variables.entry(name.clone()).or_insert(Variable { about, is_secret: false });
            }
        }
        for secret in grants.secrets() {
            self.add_secret(component.name(), secret.name(), secret.source())?;
        }
        Ok(())
    }

    /// A component that comes with the program, next to it: there it is looked for.
    fn add_shipped(&mut self, component: &ShippedComponent) -> Result<(), Failure> {
        let missing = || Failure::at_fault(format!("{} is not there", component.what), component.how);
        let path = (component.find)().ok_or_else(missing)?;
        let bytes = read_bounded(&path, BYTES_MAX)
            .map_err(|problem| Failure::at_fault(format!("{} {problem}", path.display()), component.how))?;
        // A second tool of the same kind puts the same file there.
        self.insert(component.name, bytes)
    }

    /// A read-only folder becomes part of the bundle; a writable one is created where the bundle is
    /// installed.
    fn add_mount(&mut self, folder: &Path, component: &str, kind: &MountKind) -> Result<(), Failure> {
        let MountKind::Host { path, access, create, .. } = kind else { return Ok(()) };
        if Path::new(path).is_absolute() {
            self.notes
                .push(format!("{component} uses {path}, which is not in the bundle: it must be there where it runs"));
            return Ok(());
        }
        match access {
            Access::Read => self.add(folder, path),
            Access::Write if *create => name_of(path).map(drop),
            Access::Write => Err(Failure::at_fault(
                format!("{component} writes to {path}, and a bundle has no place for that"),
                "add create = true to its line in [components.NAME.filesystem]: the folder is then made where it runs",
            )),
        }
    }

    fn add_secret(&mut self, component: &str, name: &str, source: &SecretSource) -> Result<(), Failure> {
        match source {
            SecretSource::Env(variable) => {
                let about = format!("The secret {name} of {component}. No tool sees it.");
                self.variables.insert(variable.clone(), Variable { about, is_secret: true });
            }
            SecretSource::File(path) => {
                return Err(Failure::at_fault(
                    format!("{component} takes its secret {name} from {path}, and no secret is put into a bundle"),
                    "take it from env:NAME, which the client then asks for, or from the keyring",
                ));
            }
            SecretSource::Keyring { service, account } => self.notes.push(format!(
                "{component} takes its secret {name} from the keyring ({service}/{account}): it must be there where it runs"
            )),
            SecretSource::Login(login) if login.pasted() => self.notes.push(format!(
                "{component} takes its secret {name} from each caller: `toolcell logins set {} --caller local` where it runs",
                login.name()
            )),
            SecretSource::Login(login) => self.notes.push(format!(
                "{component} takes its secret {name} from a login: `toolcell secret login {}` where it runs",
                login.name()
            )),
            SecretSource::Program(program) => self.notes.push(format!(
                "{component} takes its secret {name} from a program: {} must be there where it runs",
                program.path()
            )),
        }
        Ok(())
    }

    /// Adds a file, or a folder with its content, by its path from the manifest's folder.
    fn add(&mut self, folder: &Path, written: &str) -> Result<(), Failure> {
        let name = name_of(written)?;
        self.add_path(&folder.join(written), &name, 0)
    }

    fn add_path(&mut self, path: &Path, name: &str, depth: usize) -> Result<(), Failure> {
        let cannot = |problem: &str| Failure::at_fault(format!("{} {problem}", path.display()), INSIDE);
        // The path itself may be a link, but not the content of a folder, since it could lead
        // anywhere.
        let metadata = if depth == 0 { fs::metadata(path) } else { fs::symlink_metadata(path) };
        let metadata = metadata.map_err(|error| cannot(&format!("cannot be read: {}", plain(&error))))?;
        if metadata.is_symlink() {
            return Err(cannot("is a link, and what it leads to could be anything"));
        }
        if self.output.is_some() && path.canonicalize().ok() == self.output {
            let hint = "name a place outside of the folders that tools read, with --output";
            return Err(Failure::at_fault(format!("the bundle would hold itself, as {name}"), hint));
        }
        if !metadata.is_dir() {
            let left = BYTES_MAX.saturating_sub(self.bytes);
            let bytes = read_bounded(path, left).map_err(|problem| cannot(&problem))?;
            return self.put(name, bytes);
        }
        if depth == DEPTH_MAX {
            return Err(cannot(&format!("is a folder within more than {DEPTH_MAX} folders")));
        }
        let entries = fs::read_dir(path).map_err(|error| cannot(&format!("cannot be read: {}", plain(&error))))?;
        for entry in entries {
            let entry = entry.map_err(|error| cannot(&format!("cannot be read: {}", plain(&error))))?;
            let own = entry.file_name();
            let own = own.to_str().ok_or_else(|| cannot("has a file whose name is not UTF-8"))?;
            let inner = if name.is_empty() { own.to_owned() } else { format!("{name}/{own}") };
            self.add_path(&entry.path(), &inner, depth + 1)?;
        }
        Ok(())
    }

    fn put(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        if name == DESCRIPTION
            || name == PROGRAM
            || [ENGINE.name, BRIDGE.name].contains(&name)
            || name.starts_with("server/toolcell/")
            || name.is_empty()
        {
            let message = format!("the bundle has a {name:?} of its own");
            return Err(Failure::at_fault(message, "give that file of yours another name"));
        }
        self.insert(name, bytes)
    }

    fn insert(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > BYTES_MAX || self.files.len() >= ENTRIES_MAX {
            let message =
                format!("the bundle would be too large: {ENTRIES_MAX} files of {} are allowed", show_bytes(BYTES_MAX));
            return Err(Failure::at_fault(
                message,
                "mount a smaller folder, or one by its absolute path, which stays outside",
            ));
        }
        self.files.insert(name.to_owned(), bytes);
        Ok(())
    }
}

/// The name in the bundle for a path in the manifest.
fn name_of(written: &str) -> Result<String, Failure> {
    let outside = || Failure::at_fault(format!("{written} lies outside of the manifest's folder"), INSIDE);
    let mut parts = Vec::new();
    for part in Path::new(written).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(outside)?),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn only_paths_that_stay_in_the_folder_have_a_name() {
        for (written, name) in [
            ("a.wasm", Some("a.wasm")),
            ("./tools/a.wasm", Some("tools/a.wasm")),
            ("tools//a.wasm", Some("tools/a.wasm")),
            ("tools/", Some("tools")),
            (".", Some("")),
            ("../a.wasm", None),
            ("tools/../../a.wasm", None),
            ("tools/../a.wasm", None),
            ("/a.wasm", None),
        ] {
            assert_eq!(name_of(written).ok().as_deref(), name, "{written}");
        }
    }
}
