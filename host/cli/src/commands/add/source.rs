//! Where the bytes of an added component come from: a file, a project's folder, a registry or a
//! URL. Documents are in `document.rs`, other servers in `remote.rs`.
use std::path::{Path, PathBuf};

use toolcell_policy::edit::{ComponentEntry, ManifestEdit};
use toolcell_policy::{PackageName, Reference};
use toolcell_sandbox::{COMPONENT_BYTES_MAX, ComponentDigest};
use toolcell_server::ManifestFile;
use toolcell_server::download::download;
use toolcell_server::file::read_bounded;
use toolcell_server::machine::Machine;
use toolcell_server::registries::{LeftOut, Registries};

use super::bridge::AddedBridge;
use super::{document, remote};
use crate::args::{AddArgs, MANIFEST};
use crate::commands::inspect::REGISTRY;
use crate::commands::registries::{manifest_of, pinned, pull, signers};
use crate::exit::Failure;
use crate::naming::{component_name, relative};
use crate::terminal::Progress;

/// Mark between an address and its digest.
const DIGEST: &str = "@sha256:";

/// Hexadecimal digits of a digest.
const DIGITS: usize = 64;

/// Entries of a folder that are searched for a component.
const ENTRIES_MAX: usize = 1_000;

pub struct FoundComponent {
    /// Its source, for people.
    pub shown: String,
    /// Its bytes. Nothing has parsed them.
    pub bytes: Vec<u8>,
    /// Its name, unless the command line gives one.
    pub name: String,
    pub place: ServedFrom,
    /// The entry of its project's manifest, without grants.
    pub entry: Option<ComponentEntry>,
    /// Sections of that manifest that grant something, and are left out.
    pub left_out: Vec<&'static str>,
    /// Who signed it, a line each; empty unless it comes from a registry.
    pub signers: Vec<String>,
    /// Attached artifacts that could not be fetched.
    pub not_attached: LeftOut,
    /// The bridge that it is, made of a document or another server's list.
    pub bridge: Option<AddedBridge>,
}

impl FoundComponent {
    /// A component from a file, without an entry of its own.
    pub fn of_file(shown: String, bytes: Vec<u8>, name: String, place: ServedFrom) -> Self {
        let entry = None;
        let left_out = Vec::new();
        let signers = Vec::new();
        let not_attached = LeftOut::default();
        Self { shown, bytes, name, place, entry, left_out, signers, not_attached, bridge: None }
    }
}

pub enum ServedFrom {
    /// The store, with this source in the manifest.
    Store(String),
    /// A copy among the manifest's components.
    Copy,
    /// This path, relative to the manifest.
    Link(String),
}

/// Finds the component. `folder` is the manifest's, and `text` its current content.
pub fn find(args: &AddArgs, text: &str, folder: &Path, machine: &Machine) -> Result<FoundComponent, Failure> {
    let source = args.source.as_str();
    if args.server.mcp {
        return remote::find(args, text, folder, machine);
    }
    if document::is_document(args) {
        return document::find(args, machine);
    }
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
    let place = if args.link { ServedFrom::Link(relative(folder, path)?) } else { ServedFrom::Copy };
    let name = component_name(path);
    Ok(FoundComponent::of_file(source.to_owned(), bytes, name, place))
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

/// Pulls a component from its registry into the store. The tag is looked up only now.
fn of_registry(args: &AddArgs, text: &str, folder: &Path) -> Result<FoundComponent, Failure> {
    check_no_link(args)?;
    let hint = "write oci://HOST/REPOSITORY:TAG, or @sha256:DIGEST after it";
    let reference = Reference::parse(&args.source).map_err(|error| Failure::usage(error.to_string(), hint))?;
    let manifest = manifest_of(&ManifestFile::unwritten(&args.manifest.manifest, text.to_owned()))?;
    let registries = Registries::open(&manifest, folder)?;
    pulled(&registries, reference)
}

/// Looks up where a package is, and pulls it into the store. Only the reference is recorded.
fn of_package(args: &AddArgs, text: &str, folder: &Path) -> Result<FoundComponent, Failure> {
    check_no_link(args)?;
    let hint = "write NAMESPACE:NAME@VERSION, as in acme:weather@1.2.0, or an existing file";
    let package = PackageName::parse(&args.source).map_err(|error| Failure::usage(error.to_string(), hint))?;
    let manifest = manifest_of(&ManifestFile::unwritten(&args.manifest.manifest, text.to_owned()))?;
    let registries = Registries::open(&manifest, folder)?;
    let reference = registries.package(&package)?;
    pulled(&registries, reference)
}

/// A component that is now in the store.
fn pulled(registries: &Registries<'_>, reference: Reference) -> Result<FoundComponent, Failure> {
    let reference = pinned(registries, reference)?;
    let pulled = pull(registries, &reference)?;
    let name = component_name(Path::new(&reference.to_string()));
    let signers = signers(&pulled);
    let shown = reference.to_string();
    let place = ServedFrom::Store(shown.clone());
    let found = FoundComponent::of_file(shown, pulled.component.bytes, name, place);
    Ok(FoundComponent { signers, not_attached: pulled.left_out, ..found })
}

/// Downloads a component, and compares its digest before anything parses it.
fn fetch(source: &str, machine: &Machine) -> Result<FoundComponent, Failure> {
    let hint = "write URL@sha256:DIGEST, with the digest that its publisher names, or that `sha256sum` gives of a file you trust";
    let Some((address, digits)) = source.rsplit_once(DIGEST) else {
        return Err(Failure::usage(
            format!("{source} has no digest"),
            format!("{hint}; or add --mcp, if an MCP server is there"),
        ));
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
    let downloaded = machine.runtime.block_on(download(address, bytes_max));
    drop(progress);
    let bytes = downloaded?.bytes;
    let wanted = format!("sha256:{digits}");
    let came = ComponentDigest::of(&bytes).to_string();
    if came != wanted {
        let problem = format!("{address} is not what was named: its digest is {came}");
        return Err(Failure::at_fault(problem, "ask its publisher which of the two is right; nothing was kept"));
    }
    let path = address.split(['?', '#']).next().unwrap_or(address);
    let name = component_name(Path::new(path));
    Ok(FoundComponent::of_file(address.to_owned(), bytes, name, ServedFrom::Copy))
}

/// Finds what a project builds: according to its own manifest, or the only component in its folder.
fn project(project: &Path, folder: &Path) -> Result<FoundComponent, Failure> {
    let manifest = project.join(MANIFEST);
    if !manifest.exists() {
        let path = only_component(project)?;
        let bytes = read(&path)?;
        let name = component_name(&path);
        let place = ServedFrom::Link(relative(folder, &path)?);
        return Ok(FoundComponent::of_file(path.display().to_string(), bytes, name, place));
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
    let place = ServedFrom::Link(relative(folder, &built)?);
    let shown = built.display().to_string();
    let bytes = read(&built)?;
    Ok(FoundComponent { entry: Some(entry), left_out, ..FoundComponent::of_file(shown, bytes, name.clone(), place) })
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
