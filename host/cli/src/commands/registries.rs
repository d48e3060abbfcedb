//! Opening a manifest for the commands that talk to registries.
use std::path::Path;

use serde_json::{Value, json};
use toolcell_mcp::sanitize;
use toolcell_policy::{AdvisedFault, Manifest, Reference, Style, parse, render_all};
use toolcell_registry::Progress as Downloaded;
use toolcell_server::ManifestFile;
use toolcell_server::registries::{LeftOut, Pulled, Registries};
use toolcell_server::trust::Signed;

use crate::args::MANIFEST;
use crate::exit::Failure;
use crate::manifest;
use crate::terminal::{self, Progress};

/// The text of a manifest without anything. Without a manifest, registries are reached with the
/// defaults.
pub const EMPTY: &str = "version = 1\n";

/// Bytes of one step of the progress.
const STEP_BYTES: u64 = 1024;

/// Left out attachments that are shown to people with their reasons; JSON has all.
const SKIPPED_SHOWN: usize = 3;

/// Characters of such a reason: it may quote a registry.
const REASON_CHARS_SHOWN: usize = 200;

/// Reads and checks a manifest, without loading components.
pub fn read_manifest(path: &Path) -> Result<(ManifestFile, Manifest), Failure> {
    let file = manifest::read(path)?;
    let manifest = manifest_of(&file)?;
    Ok((file, manifest))
}

/// The manifest in a text. Prints its problems otherwise.
pub fn manifest_of(file: &ManifestFile) -> Result<Manifest, Failure> {
    parse(&file.source()).map(|parsed| parsed.manifest).map_err(|problems| {
        terminal::eprint(&render_all(&file.source(), &problems, terminal::stderr_style()));
        Failure::said_at_fault(render_all(&file.source(), &problems, Style::Plain))
    })
}

/// The manifest, for a command that does not need one: without a file of the default name, an empty
/// one.
pub fn manifest_if_any(path: &Path) -> Result<(ManifestFile, Manifest), Failure> {
    if path != Path::new(MANIFEST) || path.exists() {
        return read_manifest(path);
    }
    let file = ManifestFile::unwritten(path, EMPTY.to_owned());
    let manifest = manifest_of(&file)?;
    Ok((file, manifest))
}

/// A reference with its digest, which a registry is asked for if it has none.
pub fn pinned(registries: &Registries<'_>, reference: Reference) -> Result<Reference, AdvisedFault> {
    if reference.digest().is_some() {
        return Ok(reference);
    }
    let digest = registries.resolve(&reference)?;
    Ok(reference.with_digest(digest))
}

/// Pulls a component, with progress if it takes long. If its signatures are not accepted, its bytes
/// are not downloaded, and the fault lists missing attachments.
pub fn pull(registries: &Registries<'_>, reference: &Reference) -> Result<Pulled, AdvisedFault> {
    let left_out = with_progress(|progress| registries.fetch_signed(reference, progress))
        .map_err(|not| beside(not.fault, &not.left_out))?;
    match registries.read(reference) {
        Ok(pulled) => Ok(Pulled { left_out, ..pulled }),
        Err(fault) => Err(beside(fault, &left_out)),
    }
}

/// Pulls a component into the store, whatever its signatures, with progress if it takes long.
/// Returns missing attachments.
pub fn fetch(registries: &Registries<'_>, reference: &Reference) -> Result<LeftOut, AdvisedFault> {
    with_progress(|progress| registries.fetch(reference, progress))
}

/// A download that shows its progress, if it takes long.
fn with_progress<T>(download: impl FnOnce(&(dyn Fn(Downloaded) + Send + Sync)) -> T) -> T {
    let steps = |bytes: u64| usize::try_from(bytes / STEP_BYTES).unwrap_or(usize::MAX);
    let bar = std::sync::OnceLock::new();
    download(&|at| bar.get_or_init(|| Progress::new("downloading, KiB", steps(at.total))).at(steps(at.bytes)))
}

/// The signers of a component, a line each.
pub fn signers(pulled: &Pulled) -> Vec<String> {
    let Signed { by, .. } = &pulled.signed;
    match (pulled.has_rule, by.is_empty()) {
        (true, false) => by.iter().map(|line| format!("has a {line}")).collect(),
        _ => vec!["nobody vouches for it: no [trust] of the manifest names its repository".to_owned()],
    }
}

/// A fault, with the missing attachments: one of them may be the cause.
pub fn beside(mut fault: AdvisedFault, left_out: &LeftOut) -> AdvisedFault {
    for line in left_out_lines(left_out) {
        fault.problem.push_str("; ");
        fault.problem.push_str(&line);
    }
    fault
}

/// Lines about the missing attachments of a component.
pub fn left_out_lines(left_out: &LeftOut) -> Vec<String> {
    let shown = left_out.skipped.iter().take(SKIPPED_SHOWN).map(|skipped| {
        let reason: String = sanitize::line(&skipped.reason).chars().take(REASON_CHARS_SHOWN).collect();
        format!("left out of what is attached: {}: {reason}", skipped.digest)
    });
    let counted = |count: usize, words: &str| (count > 0).then(|| format!("{words}: {count}"));
    let more = counted(left_out.skipped.len().saturating_sub(SKIPPED_SHOWN), "left out as well");
    let unseen = counted(left_out.not_looked_at, "listed as attached and not looked at, at the least");
    shown.chain(more).chain(unseen).collect()
}

/// The missing attachments of a component as JSON.
pub fn left_out_json(left_out: &LeftOut) -> Value {
    let skipped = left_out.skipped.iter();
    let skipped =
        skipped.map(|skipped| json!({"digest": skipped.digest.to_string(), "reason": sanitize::line(&skipped.reason)}));
    json!({"skipped": skipped.collect::<Vec<_>>(), "not_looked_at": left_out.not_looked_at})
}

/// A pulled component as JSON.
pub fn json_of(reference: &Reference, pulled: &Pulled) -> Value {
    json!({
        "source": reference.to_string(),
        "manifest_digest": pulled.component.manifest.to_string(),
        "digest": pulled.component.layer.to_string(),
        "size_bytes": pulled.component.bytes.len(),
        "signed_by": pulled.signed.by,
        "trusted_root": pulled.signed.root,
        "attached": pulled.attached,
        "left_out": left_out_json(&pulled.left_out),
    })
}
