//! Signatures of components of registries, checked against the manifest's rules.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use toolcell_policy::{AdvisedFault, Manifest, Required, SignerPolicy, TrustPolicy};
use toolcell_registry::{Attached, LAYERS_MAX, StoredLayer};
use toolcell_trust::limits::{KEY_PEM_BYTES_MAX, ROOT_BYTES_MAX};
use toolcell_trust::{
    CosignLayer, Evidence, PublicKey, Requirements, SignerIdentity, SignerRule, Subject, TrustRule, TrustedRoot,
    Verified, VerifiedSigner,
};

use crate::files::file;
use crate::files::file::absolute;

/// Media types of a Sigstore bundle begin with this, in each of its versions.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";

/// The media type of a signature in a `.sig` tag of cosign 2.
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// The media type of an attestation in an `.att` tag of cosign 2.
const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";

/// Those who signed a component, in words that a lock can pin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signed {
    /// Each thing that is signed, and by whom, one a line, sorted.
    pub by: Vec<String>,
    /// `sha256:…` of the trusted root that keyless signatures were checked against.
    pub root: Option<String>,
}

/// Files that decide whose signature counts: a change of one is a change of the manifest.
pub(crate) fn files(manifest: &Manifest, folder: &Path) -> Vec<PathBuf> {
    let named = manifest.trust().iter().flat_map(TrustPolicy::files);
    named.map(|written| absolute(&folder.join(written))).collect()
}

/// A manifest's rule with its keys and its trusted root, read from their files.
pub struct ReadRule {
    rule: TrustRule,
    root: Arc<TrustedRoot>,
}

impl ReadRule {
    /// Reads the files that a rule names; relative paths start from `folder`.
    ///
    /// # Errors
    /// A file cannot be read or holds something else: a sentence, and advice.
    pub fn read(policy: &TrustPolicy, folder: &Path) -> Result<Self, AdvisedFault> {
        let signed_by =
            policy.signed_by().iter().map(|signer| read_signer(signer, folder)).collect::<Result<_, _>>()?;
        let has = |wanted: Required| policy.require().contains(&wanted);
        let require = Requirements {
            signature: has(Required::Signature),
            provenance: has(Required::Provenance),
            sbom: has(Required::Sbom),
        };
        let root = match policy.root() {
            None => public_good()?,
            Some(written) => {
                let text = read(folder, written, ROOT_BYTES_MAX)?;
                let hint = "the file is Sigstore's trusted_root.json, of its public service or of your own";
                let root = TrustedRoot::from_json(&text)
                    .map_err(|error| AdvisedFault::new(format!("{written}: {error}"), hint))?;
                Arc::new(root)
            }
        };
        Ok(Self { rule: TrustRule { signed_by, require }, root })
    }

    /// Checks what is attached to a component. `manifest` is the digest of its manifest, and no
    /// signature of anything else counts. Needs no network.
    ///
    /// # Errors
    /// The rule is not fulfilled: a sentence, and advice.
    pub fn verify(&self, manifest: &toolcell_policy::Digest, attached: &[&Attached]) -> Result<Signed, AdvisedFault> {
        let hint = "`toolcell pull` asks for signatures that came since; [trust] says who must have signed";
        let subject = manifest.as_str().parse::<Subject>();
        let subject = subject.map_err(|_| AdvisedFault::new(format!("{manifest} is not a digest"), hint))?;
        let evidence: Vec<Evidence> = in_turn(attached).filter_map(evidence).collect();
        let verified = self.rule.verify(&subject, &evidence, &self.root, SystemTime::now());
        let verified = verified.map_err(|untrusted| AdvisedFault::new(untrusted.to_string(), hint))?;
        let keyless = |signer: &VerifiedSigner| matches!(signer.identity, SignerIdentity::Keyless { .. });
        let all = verified.signers.iter().chain(&verified.provenance).chain(&verified.sbom);
        let root = all.clone().any(keyless).then(|| self.root.digest());
        Ok(Signed { by: words(&verified), root })
    }
}

/// A line for each thing that is signed, and each of its signers.
fn words(verified: &Verified) -> Vec<String> {
    let lists = [("signature", &verified.signers), ("provenance", &verified.provenance), ("sbom", &verified.sbom)];
    let lines = lists.into_iter().flat_map(|(what, list)| list.iter().map(move |signer| format!("{what} by {signer}")));
    let mut lines: Vec<String> = lines.collect();
    lines.sort();
    lines
}

/// One layer of each artifact in turn, as many as a manifest may have: an artifact with many must
/// not take the places of others. The first [`EVIDENCE_MAX`](toolcell_trust::limits::EVIDENCE_MAX)
/// signatures among them are looked at.
fn in_turn<'a>(attached: &[&'a Attached]) -> impl Iterator<Item = &'a StoredLayer> {
    (0..LAYERS_MAX).flat_map(move |turn| attached.iter().filter_map(move |one| one.layers.get(turn)))
}

/// The evidence in a layer of an attached artifact; `None` if it is something else.
fn evidence(layer: &StoredLayer) -> Option<Evidence> {
    if layer.media_type.starts_with(BUNDLE) {
        return Some(Evidence::Bundle(layer.bytes.clone()));
    }
    let note = |key: &str| layer.annotations.get(key).cloned();
    match layer.media_type.as_str() {
        SIMPLE_SIGNING | ENVELOPE => Some(Evidence::CosignLayer(CosignLayer {
            payload: layer.bytes.clone(),
            signature_base64: note("dev.cosignproject.cosign/signature").unwrap_or_default(),
            certificate_pem: note("dev.sigstore.cosign/certificate"),
            chain_pem: note("dev.sigstore.cosign/chain"),
            bundle_json: note("dev.sigstore.cosign/bundle"),
        })),
        _ => None,
    }
}

/// The beginnings of predicate types, each with the word of `require` for it.
const PREDICATES: [(&str, &str); 6] = [
    ("https://sigstore.dev/cosign/sign/", "signature"),
    ("https://slsa.dev/provenance/", "provenance"),
    ("https://spdx.dev/", "sbom"),
    ("https://cyclonedx.org/", "sbom"),
    ("application/spdx", "sbom"),
    ("application/vnd.cyclonedx", "sbom"),
];

/// The kind that a layer of an attached artifact claims to be: a word of `require`, which nobody
/// has checked. `None`: something else, or it does not say.
pub fn claimed_kind(attached: &Attached, layer: &StoredLayer) -> Option<&'static str> {
    if layer.media_type == SIMPLE_SIGNING {
        return Some("signature");
    }
    let manifest = toolcell_registry::Manifest::parse(&attached.manifest_bytes).ok();
    let noted = manifest.as_ref().and_then(|manifest| manifest.annotations.get("dev.sigstore.bundle.predicateType"));
    let claim = noted.or_else(|| layer.annotations.get("predicateType")).unwrap_or(&layer.media_type);
    PREDICATES.iter().find(|(beginning, _)| claim.starts_with(beginning)).map(|(_, kind)| *kind)
}

fn read_signer(signer: &SignerPolicy, folder: &Path) -> Result<SignerRule, AdvisedFault> {
    match signer {
        SignerPolicy::Keyless { issuer, identity, .. } => {
            Ok(SignerRule::Keyless { issuer: issuer.clone(), identity: identity.clone() })
        }
        SignerPolicy::Key { path, .. } => {
            let bytes = read(folder, path, KEY_PEM_BYTES_MAX)?;
            let text = String::from_utf8_lossy(&bytes);
            let key = PublicKey::from_pem(&text).map_err(|error| {
                let hint = "`cosign public-key` and `openssl pkey -pubout` print one";
                AdvisedFault::new(format!("{path}: {error}"), hint)
            })?;
            Ok(SignerRule::Key(key))
        }
    }
}

fn read(folder: &Path, written: &str, bytes_max: usize) -> Result<Vec<u8>, AdvisedFault> {
    file::read(&folder.join(written), bytes_max as u64)
        .map_err(|error| AdvisedFault::new(format!("{written} {error}"), "paths are relative to the manifest's folder"))
}

/// The root of Sigstore's public service, read once.
fn public_good() -> Result<Arc<TrustedRoot>, AdvisedFault> {
    static ROOT: OnceLock<Option<Arc<TrustedRoot>>> = OnceLock::new();
    let root = ROOT.get_or_init(|| TrustedRoot::public_good().ok().map(Arc::new));
    root.clone().ok_or_else(|| {
        AdvisedFault::new(
            "the root of the public service that this program carries cannot be read",
            "name another with root",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(name: &str, layers: usize) -> Attached {
        let digest = toolcell_registry::digest_of(name.as_bytes());
        let layer = |at: usize| StoredLayer {
            media_type: SIMPLE_SIGNING.to_owned(),
            annotations: std::collections::BTreeMap::new(),
            bytes: format!("{name}{at}").into_bytes(),
        };
        Attached {
            subject: digest.clone(),
            digest,
            artifact_type: SIMPLE_SIGNING.to_owned(),
            manifest_bytes: Vec::new(),
            layers: (0..layers).map(layer).collect(),
        }
    }

    #[test]
    fn each_artifact_has_its_turn_and_all_layers_of_a_signature_come() {
        let many = artifact("many", 64);
        let two = artifact("two", 2);
        let one = artifact("one", 1);
        let turns: Vec<String> =
            in_turn(&[&many, &two, &one]).map(|layer| String::from_utf8_lossy(&layer.bytes).into_owned()).collect();
        assert_eq!(turns[..6], ["many0", "two0", "one0", "many1", "two1", "many2"]);
        assert_eq!((turns.len(), turns.last().map(String::as_str)), (67, Some("many63")));
    }
}
