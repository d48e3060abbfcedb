//! Manifests without a file: components and rights of a command line, written as a manifest's text.
//! Must not hold: parsing of manifests.
mod lines;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolcell_policy::edit::ManifestEntry;
use toolcell_policy::{Diagnostic, Manifest, Severity, Source, parse};
use toolcell_sandbox::COMPONENT_BYTES_MAX;
use toolcell_server::ManifestFile;
use toolcell_server::file::read_bounded;
use toolcell_server::inspect::inspect;
use toolcell_server::machine::Machine;

use crate::args::{CodeCacheArgs, SketchRights};
use crate::edit::rights;
use crate::exit::Failure;
use crate::naming::{component_name, relative};
use crate::sandbox_process;
use crate::terminal;
use lines::SketchLines;

/// Name of a manifest's text while it is only parsed.
const NAME: &str = "(command line)";

/// A manifest of a command line.
pub struct Sketch {
    lines: SketchLines,
}

/// A right, with its option.
struct GivenRight {
    option: String,
    right: String,
    entry: ManifestEntry,
}

impl GivenRight {
    /// True if the same imports use both.
    fn is_like(&self, other: &Self) -> bool {
        let is_named = matches!(self.entry.section, "network" | "secrets");
        self.entry.section == other.entry.section && (!is_named || self.entry.key == other.entry.key)
    }
}

/// One component of a command line.
struct SketchedComponent {
    name: String,
    /// Relative to the folder of the manifest.
    source: String,
    path: PathBuf,
}

/// True if a path for `--manifest` is a component.
pub fn is_component(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "wasm")
}

impl Sketch {
    /// A manifest of these components with these rights, for a file in this folder.
    pub fn of(files: &[PathBuf], given: &SketchRights, folder: &Path, code: &CodeCacheArgs) -> Result<Self, Failure> {
        let components = components(files, folder)?;
        let rights = read_rights(given, folder)?;
        let mut without = BTreeSet::new();
        if components.len() > 1 && !rights.is_empty() {
            without = unusable(&components, &rights, code)?;
        }
        Ok(Self { lines: write(&components, &rights, &without) })
    }

    pub fn text(&self) -> &str {
        self.lines.text()
    }

    /// As a file that is not written yet, or never will be.
    pub fn file(&self, path: Option<&Path>) -> ManifestFile {
        let text = self.text().to_owned();
        path.map_or_else(|| ManifestFile::given(text.clone()), |path| ManifestFile::unwritten(path, text.clone()))
    }

    /// Prints problems in terms of options, since the user has not written the text.
    pub fn report(&self, problems: &[Diagnostic]) {
        for problem in problems {
            let option = problem.span().and_then(|span| self.lines.option_at(span.start));
            report(option, problem);
        }
    }
}

/// Prints one problem of a text without a file.
pub fn report(option: Option<&str>, problem: &Diagnostic) {
    let about = option.map_or_else(String::new, |option| format!("{option}: "));
    let label = problem.label_text().map_or_else(String::new, |label| format!(" ({label})"));
    let message = format!("{about}{}{label}", problem.message());
    match problem.severity() {
        Severity::Error => terminal::error(&message, problem.hint_text()),
        Severity::Warning => terminal::warning(&message),
    }
}

fn components(files: &[PathBuf], folder: &Path) -> Result<Vec<SketchedComponent>, Failure> {
    let mut components: Vec<SketchedComponent> = Vec::new();
    for path in files {
        let shown = path.display();
        if !is_component(path) {
            let hint = "name built .wasm components, or a manifest with --manifest";
            return Err(Failure::usage(format!("{shown} is not a .wasm file"), hint));
        }
        if !path.exists() {
            return Err(Failure::at_fault(format!("there is no {shown}"), "name a built .wasm component"));
        }
        let name = component_name(path);
        if let Some(other) = components.iter().find(|other| other.name == name) {
            let problem = format!("{shown} and {} would have one name, {name}", other.path.display());
            return Err(Failure::usage(problem, "rename one of the files, or write a manifest with `toolcell add`"));
        }
        components.push(SketchedComponent { name, source: relative(folder, path)?, path: path.clone() });
    }
    Ok(components)
}

/// The rights of all options, in order. Folders are relative to the current one.
fn read_rights(given: &SketchRights, folder: &Path) -> Result<Vec<GivenRight>, Failure> {
    let mut rights = Vec::new();
    for right in &given.allow {
        rights.push(GivenRight {
            option: format!("--allow '{right}'"),
            right: right.clone(),
            entry: rights::read(right)?,
        });
    }
    for mount in &given.mounts {
        let option = format!("--mount {mount}");
        rights.push(GivenRight { entry: read_mount(mount, folder)?, option, right: String::new() });
    }
    for variable in &given.variables {
        let option = format!("--env {variable}");
        let (name, value) =
            variable.split_once('=').map_or((variable.as_str(), None), |(name, value)| (name, Some(value)));
        let right = value.map_or_else(|| format!("env {name}"), |value| format!("env {name} = {value}"));
        let entry = rights::read(&right).map_err(|_| {
            Failure::usage(format!("{option} names no variable"), "write --env NAME=VALUE, or --env NAME")
        })?;
        rights.push(GivenRight { option, right: String::new(), entry });
    }
    Ok(rights)
}

/// `PATH=FOLDER`, `PATH=FOLDER:ro` or `PATH=FOLDER:rw`.
fn read_mount(mount: &str, folder: &Path) -> Result<ManifestEntry, Failure> {
    let form = "write --mount /data=./data to read, --mount /data=./data:rw to write as well";
    let Some((guest, host)) = mount.split_once('=').filter(|(guest, host)| guest.starts_with('/') && !host.is_empty())
    else {
        return Err(Failure::usage(format!("--mount {mount} is not a mount"), form));
    };
    let (host, access) = match (host.strip_suffix(":rw"), host.strip_suffix(":ro")) {
        (Some(host), _) => (host, "write"),
        (None, Some(host)) => (host, "read"),
        (None, None) => (host, "read"),
    };
    if !Path::new(host).exists() {
        return Err(Failure::at_fault(format!("--mount {mount}: there is no {host}"), "make the folder first"));
    }
    let path = if Path::new(host).is_absolute() { host.to_owned() } else { relative(folder, Path::new(host))? };
    Ok(ManifestEntry::mount(guest, if path.is_empty() { "." } else { &path }, access))
}

/// Pairs of component and right that do not fit. A right that fits no component stays, and becomes
/// an error.
fn unusable(
    components: &[SketchedComponent],
    rights: &[GivenRight],
    code: &CodeCacheArgs,
) -> Result<BTreeSet<(usize, usize)>, Failure> {
    let lines = write(components, rights, &BTreeSet::new());
    // Other problems are shown when the text is opened.
    let Ok(parsed) = parse(&Source { name: NAME, text: lines.text() }) else { return Ok(BTreeSet::new()) };
    let mut unusable = BTreeSet::new();
    let machine = Machine::start(&code.options(), None, &sandbox_process::guests())
        .map_err(|error| Failure::at_fault(format!("{error}"), "is the machine out of memory?"))?;
    for (number, component) in components.iter().enumerate() {
        for problem in not_imported(&machine, component, &parsed.manifest) {
            let found = problem.span().and_then(|span| lines.right_at(span.start));
            let Some(found) = found.and_then(|found| rights.get(found)) else { continue };
            // All rules of a list share one problem, and so do all entries of a section.
            let alike = rights.iter().enumerate().filter(|(_, right)| right.is_like(found));
            unusable.extend(alike.map(|(right, _)| (number, right)));
        }
    }
    unusable.retain({
        let all = unusable.clone();
        move |(_, right)| !(0..components.len()).all(|number| all.contains(&(number, *right)))
    });
    Ok(unusable)
}

/// Rights that a component cannot use. A file that cannot be read is reported later.
fn not_imported(machine: &Machine, component: &SketchedComponent, manifest: &Manifest) -> Vec<Diagnostic> {
    let bytes = read_bounded(&component.path, COMPONENT_BYTES_MAX).ok();
    let name = component.path.display().to_string();
    let found = bytes.and_then(|bytes| inspect(machine, &name, &bytes).ok());
    let policy = manifest.component(&component.name);
    found.zip(policy).map(|(found, policy)| policy.check_imports(found.inspection.imports())).unwrap_or_default()
}

fn write(components: &[SketchedComponent], rights: &[GivenRight], without: &BTreeSet<(usize, usize)>) -> SketchLines {
    let mut lines = SketchLines::default();
    lines.push("version = 1", None);
    for (number, component) in components.iter().enumerate() {
        let option = component.path.display().to_string();
        lines.begin(&component.name, &option, &component.source);
        let own = rights.iter().enumerate().filter(|(right, _)| !without.contains(&(number, *right)));
        for (right, given) in own {
            lines.add(&given.entry, right, &given.option);
            for private in ManifestEntry::private_of_right(&given.right) {
                lines.add(&private, right, &given.option);
            }
        }
        lines.end(&component.name);
    }
    lines
}
