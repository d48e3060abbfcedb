//! The bytes of components: from files, or from the store, with their signers. Requests of the
//! manifest are in `http_tool.rs`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use toolcell_policy::quantity::show_bytes;
use toolcell_policy::{
    AdvisedFault, ComponentPolicy, Diagnostic, Digest, LoadLimit, Manifest, Reference, SourceRef, TrustPolicy,
};
use toolcell_registry::{Store, StoreError};

use super::basis::{Pin, Withheld};
use super::http_tool;
use super::problems::{past, unreadable};
use crate::catalog::DevFolder;
use crate::fetching::registries;
use crate::fetching::trust::{ReadRule, Signed};
use crate::files::file;
use crate::files::file::absolute;
use crate::files::shipped;

/// Where the components of one manifest come from.
pub(super) struct CodePlaces<'m> {
    folder: &'m Path,
    manifest: &'m Manifest,
    dev: Option<&'m DevFolder>,
    store: OnceLock<Result<Store, StoreError>>,
    /// Rules that were read, by their beginnings.
    rules: Mutex<HashMap<String, Result<Arc<ReadRule>, AdvisedFault>>>,
}

/// The bytes of one component.
pub(super) struct Code {
    pub(super) bytes: Arc<[u8]>,
    /// Who signed it, if the manifest requires signatures.
    pub(super) signed: Signed,
    /// The project's files that it reads, where `toolcell dev` built it.
    pub(super) dev_source: Option<Arc<str>>,
}

impl Code {
    /// Withheld bytes that have now been approved.
    pub(super) fn approved(approved: &Withheld) -> Self {
        Self { bytes: Arc::clone(&approved.bytes), signed: approved.signed.clone(), dev_source: None }
    }
}

impl<'m> CodePlaces<'m> {
    /// The places of a manifest; relative paths start from `folder`. Components that `toolcell dev`
    /// built into `dev` come instead of the manifest's files.
    pub(super) fn new(manifest: &'m Manifest, folder: &'m Path, dev: Option<&'m DevFolder>) -> Self {
        Self { folder, manifest, dev, store: OnceLock::new(), rules: Mutex::default() }
    }

    /// The place of a component, for messages.
    pub(super) fn shown(&self, policy: &ComponentPolicy) -> String {
        match policy.source() {
            SourceRef::File(written) => absolute(&self.folder.join(written)).display().to_string(),
            other => other.to_string(),
        }
    }

    /// Reads a component. Registries are not asked: either the store has it, or it is not loaded.
    /// Its digest and signatures are checked each time.
    pub(super) fn read(&self, policy: &ComponentPolicy) -> Result<Code, Diagnostic> {
        match policy.source() {
            SourceRef::File(written) => {
                let built = self.dev.and_then(|dev| dev.component(policy.name()));
                let path = built.as_ref().map_or_else(|| self.folder.join(written), |built| built.component.clone());
                let bytes = file::read(&path, policy.load().component_bytes())
                    .map_err(|error| unreadable(policy, written, &error))?;
                let dev_source = built.map(|built| built.source());
                let dev_source = dev_source.transpose().map_err(|problem| not_read(policy, problem, String::new()))?;
                Ok(Code { bytes: bytes.into(), signed: Signed::default(), dev_source })
            }
            SourceRef::Registry(reference) => self.stored(policy, reference),
            SourceRef::Shipped => shipped_code(policy),
            SourceRef::HttpTool(tool) => http_tool::code(policy, tool),
            _ => Err(not_read(policy, "its source is of a kind that is not supported".to_owned(), String::new())),
        }
    }

    /// The bytes that a lock pins, if the store has them. For a registry's component, the source
    /// and the required signers must match. A file has no signatures, so a pinned file has none
    /// either.
    pub(super) fn pinned(&self, policy: &ComponentPolicy, pin: &Pin) -> Option<Code> {
        if let Ok(reference) = Reference::parse(&pin.source) {
            let is_pinned = |code: &Code| toolcell_sandbox::ComponentDigest::of(&code.bytes).to_string() == pin.digest;
            return self.stored(policy, &reference).ok().filter(is_pinned);
        }
        let digest = Digest::parse(&pin.digest).ok()?;
        let (SourceRef::File(_) | SourceRef::HttpTool(_)) = policy.source() else { return None };
        // A lookup does not create the store.
        let folder = registries::store_folder(self.manifest.server(), self.folder);
        let store = folder.is_dir().then(|| self.store())?.ok()?;
        let bytes = store.bytes_of(&digest, policy.load().component_bytes()).ok()?;
        Some(Code { bytes: bytes.into(), signed: Signed::default(), dev_source: None })
    }

    fn store(&self) -> Result<&Store, &StoreError> {
        self.store.get_or_init(|| registries::open_store(self.manifest.server(), self.folder)).as_ref()
    }

    fn stored(&self, policy: &ComponentPolicy, reference: &Reference) -> Result<Code, Diagnostic> {
        let wrong = |error: &StoreError| {
            let hint = match error {
                StoreError::Missing(_) => "`toolcell pull` fetches it; a start asks no registry",
                _ => error.hint().unwrap_or_default(),
            };
            not_read(policy, format!("{reference}: {error}"), hint.to_owned())
        };
        let Some(digest) = reference.digest() else {
            return Err(not_read(policy, format!("{reference} names no digest"), String::new()));
        };
        let store = self.store().map_err(wrong)?;
        let bytes_max = policy.load().component_bytes();
        let stored = store.component_within(digest, bytes_max).map_err(|error| match error {
            StoreError::ComponentTooLarge { .. } => {
                let name = policy.name();
                let message = format!("component \"{name}\": {reference} is larger than {}", show_bytes(bytes_max));
                let advice = "build a smaller component";
                past(policy, "components::too_large", message, LoadLimit::ComponentSize, advice)
            }
            error => wrong(&error),
        })?;
        let signed = match self.manifest.trust_of(reference) {
            None => Signed::default(),
            Some(rule) => {
                let attached = store.attached(digest, &reference.name()).map_err(|error| wrong(&error))?;
                let verified = self
                    .rule(rule)
                    .and_then(|rule| rule.verify(&stored.manifest, &attached.iter().collect::<Vec<_>>()));
                verified.map_err(|fault| {
                    let hint = fault.hint().unwrap_or_default().to_owned();
                    not_read(policy, format!("[trust.\"{}\"]: {}", rule.prefix(), fault.problem), hint)
                })?
            }
        };
        Ok(Code { bytes: stored.bytes.into(), signed, dev_source: None })
    }

    /// The rule with its files, which are read once per build.
    fn rule(&self, rule: &TrustPolicy) -> Result<Arc<ReadRule>, AdvisedFault> {
        let mut rules = self.rules.lock();
        rules.entry(rule.prefix().to_owned()).or_insert_with(|| ReadRule::read(rule, self.folder).map(Arc::new)).clone()
    }
}

/// The engine of scripts.
fn shipped_code(policy: &ComponentPolicy) -> Result<Code, Diagnostic> {
    let Some(path) = shipped::engine() else {
        let problem = Diagnostic::error("code::no_engine", "the engine of scripts is not there");
        return Err(problem.at(policy.source_span()).hint(shipped::HOW));
    };
    let bytes = file::read(&path, policy.load().component_bytes())
        .map_err(|error| unreadable(policy, &path.display().to_string(), &error))?;
    Ok(Code { bytes: bytes.into(), signed: Signed::default(), dev_source: None })
}

pub(super) fn not_read(policy: &ComponentPolicy, problem: String, hint: String) -> Diagnostic {
    let message = format!("component \"{}\": {problem}", policy.name());
    let problem = Diagnostic::error("components::source", message).at(policy.source_span());
    if hint.is_empty() { problem } else { problem.hint(hint) }
}
