//! `toolcell push`: puts a component into a registry, and signs it.
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use toolcell_policy::Reference;
use toolcell_registry::{Artifact, AttachedArtifact, AttachedLayer};
use toolcell_sandbox::COMPONENT_BYTES_MAX;
use toolcell_server::catalog::folder_of;
use toolcell_server::file::read_bounded;
use toolcell_server::registries::Registries;
use toolcell_trust::limits::{KEY_PEM_BYTES_MAX, SBOM_BYTES_MAX};
use toolcell_trust::{BUNDLE_MEDIA_TYPE, COSIGN_SIGN, SignError, SigningKey, Subject};

use super::metadata;
use super::registries::manifest_if_any;
use crate::args::PushArgs;
use crate::exit::{Exit, Failure};
use crate::terminal::{self, Progress};

/// The variable with the password of an encrypted key.
const PASSWORD: &str = "TOOLCELL_KEY_PASSWORD";

/// The first bytes of a component or a module.
const WASM: &[u8] = b"\0asm";

/// Predicates of SBOMs, by the member of the JSON that distinguishes them.
const SBOMS: [(&str, &str); 2] =
    [("spdxVersion", "https://spdx.dev/Document"), ("bomFormat", "https://cyclonedx.org/bom")];

/// The predicate of provenance.
const PROVENANCE: &str = "https://slsa.dev/provenance/v1";

/// Pushes, and prints the reference.
pub fn run(args: &PushArgs) -> anyhow::Result<Exit> {
    match push(args) {
        Ok(answer) => {
            let text = match args.json {
                true => format!("{answer:#}\n"),
                false => format!("{}\n", answer.get("source").and_then(Value::as_str).unwrap_or_default()),
            };
            terminal::print(&text)?;
            Ok(Exit::Done)
        }
        Err(failure) => failure.report(args.json),
    }
}

fn push(args: &PushArgs) -> Result<Value, Failure> {
    let hint = "write oci://HOST/REPOSITORY:TAG";
    let reference = Reference::parse(&args.reference).map_err(|error| Failure::usage(error.to_string(), hint))?;
    if reference.digest().is_some() || reference.tag().is_none() {
        let problem = format!("push needs a tag and no digest, got {reference}");
        return Err(Failure::usage(problem, "write oci://HOST/REPOSITORY:TAG"));
    }
    let component = read(&args.file, COMPONENT_BYTES_MAX)?;
    if !component.starts_with(WASM) {
        let problem = format!("{} is not WebAssembly", args.file.display());
        return Err(Failure::at_fault(problem, "name a built .wasm component"));
    }
    let (file, manifest) = manifest_if_any(&args.manifest.manifest)?;
    if let Some(advice) = metadata::not_carried(&file, &args.file, &component) {
        terminal::warning(&advice);
    }
    let mut artifact = Artifact::new(component);
    artifact.annotations = annotations(args)?;
    let digest = artifact.digest();
    let attached = attached(args, &reference, digest.as_str())?;
    let folder = folder_of(&args.manifest.manifest);
    let registries = Registries::open(&manifest, &folder)?;
    let progress = Progress::new("pushing", 1);
    let pushed = registries.push(&reference, &artifact, &attached);
    drop(progress);
    let pushed = pushed?;
    let source = reference.with_digest(pushed.clone()).to_string();
    Ok(json!({
        "ok": true, "source": source, "manifest_digest": pushed.to_string(), "attached": attached.len(),
        "signed_with": args.sign_key,
    }))
}

fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    read_bounded(path, bytes_max)
        .map_err(|problem| Failure::at_fault(format!("{} {problem}", path.display()), "name a file that can be read"))
}

fn annotations(args: &PushArgs) -> Result<BTreeMap<String, String>, Failure> {
    let mut annotations = BTreeMap::new();
    for written in &args.annotations {
        let hint = "write KEY=VALUE, each key once, such as org.opencontainers.image.version=1.2.0";
        let Some((key, value)) = written.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(Failure::usage(format!("{written:?} is not an annotation"), hint));
        };
        if annotations.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::usage(format!("the annotation {key:?} appears twice"), hint));
        }
    }
    Ok(annotations)
}

/// Signature, SBOM and provenance, each as a signed bundle.
fn attached(args: &PushArgs, reference: &Reference, digest: &str) -> Result<Vec<AttachedArtifact>, Failure> {
    let Some(path) = &args.sign_key else { return Ok(Vec::new()) };
    let key = String::from_utf8_lossy(&read(path, KEY_PEM_BYTES_MAX as u64)?).into_owned();
    let password = std::env::var(PASSWORD).ok();
    let wrong = |error: SignError| Failure::at_fault(format!("{}: {error}", path.display()), advice(&error));
    let key = SigningKey::from_pem(&key, password.as_deref().map(str::as_bytes)).map_err(wrong)?;
    let subject: Subject =
        digest.parse().map_err(|error| Failure::at_fault(format!("{digest} is not a digest: {error}"), ""))?;
    let name = reference.name();
    let mut bundles = vec![(COSIGN_SIGN, key.sign(&subject, Some(&name)).map_err(wrong)?)];
    if let Some(file) = &args.sbom {
        let predicate = json_of(file)?;
        let document = file.display();
        let kind = SBOMS.iter().find(|(member, _)| predicate.get(member).is_some()).ok_or_else(|| {
            Failure::at_fault(format!("{document} is not an SBOM"), "use SPDX 2 or CycloneDX in JSON")
        })?;
        bundles.push((kind.1, key.attest(&subject, Some(&name), kind.1, &predicate).map_err(wrong)?));
    }
    if let Some(file) = &args.provenance {
        let predicate = json_of(file)?;
        bundles.push((PROVENANCE, key.attest(&subject, Some(&name), PROVENANCE, &predicate).map_err(wrong)?));
    }
    Ok(bundles.into_iter().map(|(predicate, bundle)| artifact(predicate, bundle)).collect())
}

fn json_of(path: &Path) -> Result<Value, Failure> {
    let text = read(path, SBOM_BYTES_MAX as u64)?;
    serde_json::from_slice(&text)
        .map_err(|error| Failure::at_fault(format!("{} is not JSON: {error}", path.display()), "name a file in JSON"))
}

/// A bundle attached like cosign does it: a referrer whose annotations name its kind.
fn artifact(predicate: &str, bundle: Vec<u8>) -> AttachedArtifact {
    let annotations =
        [("dev.sigstore.bundle.content", "dsse-envelope"), ("dev.sigstore.bundle.predicateType", predicate)];
    let layer =
        AttachedLayer { media_type: BUNDLE_MEDIA_TYPE.to_owned(), annotations: BTreeMap::new(), bytes: bundle.into() };
    AttachedArtifact {
        artifact_type: BUNDLE_MEDIA_TYPE.to_owned(),
        layers: vec![layer],
        annotations: annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    }
}

/// Advice if a key cannot sign.
fn advice(error: &SignError) -> String {
    match error {
        SignError::NoPassword | SignError::Password => format!("its password is read from {PASSWORD}"),
        _ => String::new(),
    }
}
