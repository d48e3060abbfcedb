//! The component of a recording, opened without rights.
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use tempfile::TempDir;
use toolcell_policy::{Manifest, SourceRef};
use toolcell_sandbox::{COMPONENT_BYTES_MAX, ComponentDigest};
use toolcell_server::catalog::{Catalog, ToolOffer, folder_of};
use toolcell_server::file::read_bounded;
use toolcell_server::machine::Machine;
use toolcell_server::recordings::{Recording, SchemaNames};
use toolcell_server::registries::Registries;
use toolcell_server::{ManifestFile, OpenOptions, Replayed};

use crate::args::CodeCacheArgs;
use crate::commands::registries::read_manifest;
use crate::exit::Failure;
use crate::manifest::open_file_or_report;

/// The name of a component in the folder that it is replayed in.
const FILE: &str = "component.wasm";

/// Parts of manifests that are open at once: each has a process.
const STAGES_MAX: usize = 64;

/// Where the bytes of components are.
pub(super) enum Components<'a> {
    /// All in this file.
    File(&'a Path),
    /// Where this manifest names them.
    Manifest(&'a Path),
    /// Those of a new version.
    New(&'a [u8]),
}

/// The components of all recordings.
pub(super) struct Stages<'a> {
    components: Components<'a>,
    code: &'a CodeCacheArgs,
    bytes: HashMap<String, ComponentBytes>,
    /// By the component's part of the manifest: tools and limits may have changed between calls.
    open: HashMap<String, Stage>,
}

/// The bytes that stand for a recorded component.
#[derive(Clone)]
struct ComponentBytes {
    bytes: Arc<[u8]>,
    digest: String,
}

/// A component that recordings are replayed with.
pub(super) struct Stage {
    catalog: Arc<Catalog>,
    machine: Machine,
    digest: String,
    _folder: TempDir,
}

impl<'a> Stages<'a> {
    pub(super) fn new(components: Components<'a>, code: &'a CodeCacheArgs) -> Self {
        Self { components, code, bytes: HashMap::new(), open: HashMap::new() }
    }

    /// The stage of a recording; a sentence if its component cannot be served.
    pub(super) fn of(&mut self, recording: &Recording) -> anyhow::Result<Result<&Stage, String>> {
        let component = self.bytes_of(&recording.head.component)?;
        let key = [recording.head.component.as_str(), &recording.head.manifest].join("\n");
        if !self.open.contains_key(&key) {
            if self.open.len() >= STAGES_MAX {
                self.open.clear();
            }
            match Stage::open(self.code, recording, &component)? {
                Ok(stage) => drop(self.open.insert(key.clone(), stage)),
                Err(problem) => return Ok(Err(problem)),
            }
        }
        Ok(self.open.get(&key).ok_or_else(|| "its component is not open".to_owned()))
    }

    fn bytes_of(&mut self, name: &str) -> anyhow::Result<ComponentBytes> {
        if let Some(known) = self.bytes.get(name) {
            return Ok(known.clone());
        }
        let bytes = match self.components {
            Components::File(path) => read(path)?,
            Components::Manifest(path) => of_manifest(path, name)?,
            Components::New(bytes) => bytes.to_vec(),
        };
        let digest = ComponentDigest::of(&bytes).to_string();
        let found = ComponentBytes { bytes: bytes.into(), digest };
        self.bytes.insert(name.to_owned(), found.clone());
        Ok(found)
    }
}

impl Stage {
    fn open(
        code: &CodeCacheArgs,
        recording: &Recording,
        component: &ComponentBytes,
    ) -> anyhow::Result<Result<Self, String>> {
        let Some(text) = recording.manifest_to_replay(FILE) else {
            return Ok(Err("its part of the manifest has no component that can be replayed".to_owned()));
        };
        let folder = tempfile::tempdir().context("cannot make a folder for the component")?;
        std::fs::write(folder.path().join(FILE), &component.bytes).context("cannot write the component")?;
        let file = ManifestFile::unwritten(&folder.path().join("toolcell.toml"), text);
        let options = OpenOptions { code: code.options(), ..OpenOptions::default() };
        let Some((_, ready)) = open_file_or_report(file, options)? else {
            return Ok(Err("the component cannot be served as it was recorded".to_owned()));
        };
        let catalog = Arc::new(ready.catalog);
        Ok(Ok(Self { catalog, machine: ready.machine, digest: component.digest.clone(), _folder: folder }))
    }

    /// True if the component is the recorded one.
    pub(super) fn is_recorded(&self, recording: &Recording) -> bool {
        self.digest == recording.head.digest
    }

    /// The names in the schemas of the recorded tool; `None` if the component does not have it.
    pub(super) fn schema_names(&self, recording: &Recording) -> Option<SchemaNames> {
        let head = &recording.head;
        let is_it = |offer: &ToolOffer<'_>| offer.component().name() == head.component && offer.own_name() == head.tool;
        let offer = self.catalog.offers().find(is_it)?;
        let definition = offer.tool().definition();
        Some(SchemaNames::of(std::iter::once(&definition.input_schema).chain(&definition.output_schema)))
    }

    /// Replays a call.
    pub(super) fn replay(&self, recording: &Recording) -> Result<Replayed, String> {
        self.machine.runtime.block_on(self.catalog.replay(recording, self.is_recorded(recording)))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_bounded(path, COMPONENT_BYTES_MAX).map_err(|problem| {
        Failure::at_fault(
            format!("{} {problem}", path.display()),
            "name a built .wasm component: --component FILE.wasm",
        )
    })
}

/// The bytes of a component of a manifest.
pub fn of_manifest(path: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    let hint = "name its bytes: --component FILE.wasm";
    if !path.exists() {
        return Err(Failure::usage(format!("there is no {} that names {name:?}", path.display()), hint));
    }
    let (_, manifest) = read_manifest(path)?;
    let folder = folder_of(path);
    let source = manifest.component(name).map(|policy| policy.source().clone());
    match source {
        Some(SourceRef::File(source)) => read(&folder.join(source)),
        Some(SourceRef::Registry(reference)) => of_registry(&manifest, &folder, &reference),
        None => Err(Failure::at_fault(format!("{} has no component {name:?}", path.display()), hint)),
        // The engine of scripts, and the bridge of a request.
        Some(_) => Err(Failure::at_fault(format!("{name:?} is a part of toolcell, whose calls are not replayed"), "")),
    }
}

fn of_registry(manifest: &Manifest, folder: &Path, reference: &toolcell_policy::Reference) -> Result<Vec<u8>, Failure> {
    Ok(Registries::open(manifest, folder)?.read(reference)?.component.bytes)
}
