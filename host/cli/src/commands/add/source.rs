//! Bytes of a component that is added: of a file, of a project's folder, or from a URL.
use std::path::{Component, Path, PathBuf};

use toolcell_policy::edit::{ComponentEntry, ManifestEdit};
use toolcell_policy::{PackageName, Reference};
use toolcell_sandbox::{COMPONENT_BYTES_MAX, ComponentDigest};
use toolcell_server::ManifestFile;
use toolcell_server::download::download;
use toolcell_server::file::read_bounded;
use toolcell_server::machine::Machine;
use toolcell_server::registries::{LeftOut, Registries};

use crate::args::{AddArgs, MANIFEST};
use crate::commands::inspect::{REGISTRY, entry};
use crate::commands::registries::{failed, manifest_of, pull, signers};
use crate::exit::Failure;
use crate::terminal::Progress;

/// Mark between an address and its digest.
const DIGEST: &str = "@sha256:";

/// Hexadecimal digits of a digest.
const DIGITS: usize = 64;

/// Most entries of a folder that are looked through for a component.
const ENTRIES_MAX: usize = 1_000;

/// A component that was found.
pub struct Found {
    /// Its place, for people.
    pub shown: String,
    /// Its bytes. Nothing has parsed them.
    pub bytes: Vec<u8>,
    /// Its name, unless the command line gives one.
    pub name: String,
    /// Where it is served from.
    pub place: Place,
    /// The entry of its project's manifest, without grants.
    pub entry: Option<ComponentEntry>,
    /// Sections of that manifest that grant something, and are left out.
    pub left_out: Vec<&'static str>,
    /// Those who signed it, a line each; of a component that no registry has, nothing.
    pub signers: Vec<String>,
    /// Artifacts that are attached to it and did not come.
    pub not_attached: LeftOut,
}

impl Found {
    /// One that no registry has, without an entry of its own.
    fn of_file(shown: String, bytes: Vec<u8>, name: String, place: Place) -> Self {
        let entry = None;
        let left_out = Vec::new();
        let signers = Vec::new();
        let not_attached = LeftOut::default();
        Self { shown, bytes, name, place, entry, left_out, signers, not_attached }
    }
}

/// Where a component is served from.
pub enum Place {
    /// The store, with this source in the manifest.
    Store(String),
    /// A copy among the manifest's components.
    Copy,
    /// This path, relative to the manifest.
    Link(String),
}

/// Finds the component. `folder` is the manifest's, and `text` what it says now.
pub fn find(args: &AddArgs, text: &str, folder: &Path, machine: &Machine) -> Result<Found, Failure> {
    let source = args.source.as_str();
    if source.starts_with(REGISTRY) {
        return of_registry(args, text, folder);
    }
    if source.contains("://") {
        if args.link {
            return Err(Failure::usage("--link is for files", "leave it out: what is downloaded is copied"));
        }
        return fetch(source, machine);
    }
    let path = Path::new(source);
    // A file wins over a package of the same name.
    if source.contains(':') && !source.contains('/') && !path.exists() {
        return of_package(args, text, folder);
    }
    if path.is_dir() {
        return project(path, folder);
    }
    let bytes = read(path)?;
    let place = if args.link { Place::Link(relative(folder, path)?) } else { Place::Copy };
    let name = entry::name(path);
    Ok(Found::of_file(source.to_owned(), bytes, name, place))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_bounded(path, COMPONENT_BYTES_MAX).map_err(|problem| {
        Failure::at_fault(
            format!("{} {problem}", path.display()),
            "name a built .wasm component, or a project's folder",
        )
    })
}

fn check_no_link(args: &AddArgs) -> Result<(), Failure> {
    let hint = "leave it out: what is pulled is in the store";
    if args.link { Err(Failure::usage("--link is for files", hint)) } else { Ok(()) }
}

/// Brings a component from its registry into the store. The tag is looked up this once.
fn of_registry(args: &AddArgs, text: &str, folder: &Path) -> Result<Found, Failure> {
    check_no_link(args)?;
    let hint = "write oci://HOST/REPOSITORY:TAG, or @sha256:DIGEST after it";
    let reference = Reference::parse(&args.source).map_err(|error| Failure::usage(error.to_string(), hint))?;
    let manifest = manifest_of(&ManifestFile::unwritten(&args.manifest.manifest, text.to_owned()))?;
    let registries = Registries::open(&manifest, folder).map_err(failed)?;
    pulled(&registries, reference)
}

/// Looks up where a package is, and brings it into the store. Only that place is kept.
fn of_package(args: &AddArgs, text: &str, folder: &Path) -> Result<Found, Failure> {
    check_no_link(args)?;
    let hint = "write NAMESPACE:NAME@VERSION, as in acme:weather@1.2.0, or an existing file";
    let package = PackageName::parse(&args.source).map_err(|error| Failure::usage(error.to_string(), hint))?;
    let manifest = manifest_of(&ManifestFile::unwritten(&args.manifest.manifest, text.to_owned()))?;
    let registries = Registries::open(&manifest, folder).map_err(failed)?;
    let reference = registries.package(&package).map_err(failed)?;
    pulled(&registries, reference)
}

/// A component that is in the store now.
fn pulled(registries: &Registries<'_>, reference: Reference) -> Result<Found, Failure> {
    let reference = match reference.digest() {
        Some(_) => reference,
        None => {
            let digest = registries.resolve(&reference).map_err(failed)?;
            reference.with_digest(digest)
        }
    };
    let pulled = pull(registries, &reference).map_err(failed)?;
    let name = reference.repository().rsplit('/').next().unwrap_or_default();
    Ok(Found {
        shown: reference.to_string(),
        name: entry::name(Path::new(name)),
        place: Place::Store(reference.to_string()),
        entry: None,
        left_out: Vec::new(),
        signers: signers(&pulled),
        not_attached: pulled.left_out,
        bytes: pulled.component.bytes,
    })
}

/// Downloads a component, and compares its digest before anything looks at it.
fn fetch(source: &str, machine: &Machine) -> Result<Found, Failure> {
    let hint = "write URL@sha256:DIGEST, with the digest that its publisher names, or that `sha256sum` gives of a file you trust";
    let Some((address, digits)) = source.rsplit_once(DIGEST) else {
        return Err(Failure::usage(format!("{source} has no digest"), hint));
    };
    let digits = digits.to_ascii_lowercase();
    if digits.len() != DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::usage(
            format!("{digits:?} is not a SHA-256 digest: it has {DIGITS} digits 0-9 a-f"),
            hint,
        ));
    }
    let bytes_max = usize::try_from(COMPONENT_BYTES_MAX).unwrap_or(usize::MAX);
    let progress = Progress::new("downloading", 1);
    let bytes = machine.runtime.block_on(download(address, bytes_max));
    drop(progress);
    let bytes = bytes.map_err(|(problem, hint)| Failure::at_fault(problem, hint))?;
    let wanted = format!("sha256:{digits}");
    let came = ComponentDigest::of(&bytes).to_string();
    if came != wanted {
        let problem = format!("{address} is not what was named: its digest is {came}");
        return Err(Failure::at_fault(problem, "ask its publisher which of the two is right; nothing was kept"));
    }
    let path = address.split(['?', '#']).next().unwrap_or(address);
    let name = entry::name(Path::new(path));
    Ok(Found::of_file(address.to_owned(), bytes, name, Place::Copy))
}

/// Finds what a project builds: as its own manifest says, or the only component in its folder.
fn project(project: &Path, folder: &Path) -> Result<Found, Failure> {
    let manifest = project.join(MANIFEST);
    if !manifest.exists() {
        let path = only_component(project)?;
        let bytes = read(&path)?;
        let name = entry::name(&path);
        let place = Place::Link(relative(folder, &path)?);
        return Ok(Found::of_file(path.display().to_string(), bytes, name, place));
    }
    let file = ManifestFile::read(&manifest).map_err(|problem| Failure::at_fault(problem, "name the built file"))?;
    let hint = "name the built file of one of them";
    let problem = |what: &str| Failure::at_fault(format!("{} {what}", manifest.display()), hint);
    let edit = ManifestEdit::of(file.text()).map_err(|_| problem("is not TOML"))?;
    let components = edit.components();
    let [name] = components.as_slice() else {
        return Err(problem(&format!("has {} components, and a project has one", components.len())));
    };
    let mut entry = edit.component(name).ok_or_else(|| problem("has no component's table"))?;
    let built = project.join(entry.text("source").ok_or_else(|| problem("names no file of its component"))?);
    if !built.exists() {
        let problem = format!("{} is not built yet", built.display());
        return Err(Failure::at_fault(problem, "build the project first: its README.md says how"));
    }
    let left_out = entry.take_grants();
    if let Some(wit) = entry.text("wit").map(|wit| project.join(wit)) {
        entry.set("wit", relative(folder, &wit)?.into());
    }
    let place = Place::Link(relative(folder, &built)?);
    let shown = built.display().to_string();
    let bytes = read(&built)?;
    Ok(Found { entry: Some(entry), left_out, ..Found::of_file(shown, bytes, name.clone(), place) })
}

fn only_component(project: &Path) -> Result<PathBuf, Failure> {
    let shown = project.display();
    let entries = std::fs::read_dir(project).map_err(|error| {
        Failure::at_fault(format!("{shown} cannot be read: {error}"), "name a built .wasm component")
    })?;
    let paths = entries.take(ENTRIES_MAX).flatten().map(|entry| entry.path());
    let built: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|name| name == "wasm")).collect();
    match built.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::at_fault(
            format!("{shown} has neither a {MANIFEST} nor a built component"),
            "build the project first, or name the built file",
        )),
        _ => Err(Failure::at_fault(format!("{shown} has {} components", built.len()), "name the file of one of them")),
    }
}

/// Path of a file from a folder, without links on the way.
pub fn relative(folder: &Path, file: &Path) -> Result<String, Failure> {
    let wrong = |path: &Path, error: std::io::Error| {
        Failure::at_fault(format!("{} cannot be found: {error}", path.display()), "make the folder first")
    };
    let from = folder.canonicalize().map_err(|error| wrong(folder, error))?;
    // The file itself may be a link, which builds replace.
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = parent.canonicalize().map_err(|error| wrong(parent, error))?;
    let to = file.file_name().map_or_else(|| parent.clone(), |name| parent.join(name));
    let common = from.components().zip(to.components()).take_while(|(from, to)| from == to).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(common)).collect();
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::at_fault(format!("{} is not UTF-8 text", path.display()), "a manifest can name no such path")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_from_the_manifest_to_the_file() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a/b", "c/d"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let relative = |from: &str, to: &str| relative(&root.path().join(from), &root.path().join(to)).unwrap();
        assert_eq!(relative("a", "a/x.wasm"), "x.wasm");
        assert_eq!(relative("a", "a/b/x.wasm"), "b/x.wasm");
        assert_eq!(relative("a/b", "c/d/x.wasm"), "../../c/d/x.wasm");
        assert_eq!(relative("a/b", "a/b/../b/wit"), "wit");
    }
}
