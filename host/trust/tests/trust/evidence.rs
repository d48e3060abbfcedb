//! Fixtures as the arguments of a verification.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use toolcell_trust::{
    CosignLayer, Evidence, IdentityPattern, PublicKey, Requirements, SignerIdentity, SignerRule, Strength, Subject,
    TrustRule, TrustedRoot, Untrusted, Verified, VerifiedSigner,
};

pub(crate) const GITHUB: &str = "https://token.actions.githubusercontent.com";
pub(crate) const WORKFLOW: &str = "https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/v1.0.0";

pub(crate) const SIGNATURE: Requirements = Requirements { signature: true, provenance: false, sbom: false };
pub(crate) const PROVENANCE: Requirements = Requirements { signature: false, provenance: true, sbom: false };
pub(crate) const SBOM: Requirements = Requirements { signature: false, provenance: false, sbom: true };
pub(crate) const LOGGED: Strength = Strength { log_entry: true, timestamp: true };
pub(crate) const BARE: Strength = Strength { log_entry: false, timestamp: false };

pub(crate) fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn bundle(name: &str) -> Evidence {
    Evidence::Bundle(text(&format!("{name}.sigstore.json")).into_bytes())
}

/// A bundle whose JSON was changed.
pub(crate) fn changed(name: &str, change: impl FnOnce(&mut Value)) -> Evidence {
    let mut json: Value = serde_json::from_str(&text(&format!("{name}.sigstore.json"))).unwrap();
    change(&mut json);
    Evidence::Bundle(json.to_string().into_bytes())
}

pub(crate) fn layer(name: &str) -> CosignLayer {
    let json: Value = serde_json::from_str(&text(&format!("{name}.layer.json"))).unwrap();
    let annotation = |name: &str| json["annotations"][name].as_str().map(str::to_owned);
    CosignLayer {
        payload: json["payload"].as_str().unwrap().as_bytes().to_vec(),
        signature_base64: annotation("dev.cosignproject.cosign/signature").unwrap(),
        certificate_pem: annotation("dev.sigstore.cosign/certificate"),
        chain_pem: annotation("dev.sigstore.cosign/chain"),
        bundle_json: annotation("dev.sigstore.cosign/bundle"),
    }
}

pub(crate) fn subject(name: &str) -> Subject {
    text(name).trim().parse().unwrap()
}

pub(crate) fn root(name: &str) -> TrustedRoot {
    TrustedRoot::from_json(text(name).as_bytes()).unwrap()
}

pub(crate) fn keyless(issuer: &str, identity: &str) -> SignerRule {
    SignerRule::Keyless { issuer: issuer.to_owned(), identity: IdentityPattern::parse(identity).unwrap() }
}

pub(crate) fn key(name: &str) -> SignerRule {
    SignerRule::Key(PublicKey::from_pem(&text(name)).unwrap())
}

pub(crate) fn rule(signer: SignerRule, require: Requirements) -> TrustRule {
    TrustRule { signed_by: vec![signer], require }
}

/// September 2026, after everything in the fixtures was signed.
pub(crate) fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

/// The mock's subject under its root.
pub(crate) fn verify(rule: &TrustRule, evidence: &[Evidence]) -> Result<Verified, Untrusted> {
    rule.verify(&subject("mock/subject.txt"), evidence, &root("mock/trusted_root.json"), now())
}

/// The summary of a refusal, under the rule that allows the mock's workflow and key.
pub(crate) fn refused(evidence: Evidence) -> String {
    let signed_by = vec![keyless(GITHUB, WORKFLOW), key("mock/key.pub")];
    let refused = verify(&TrustRule { signed_by, require: SIGNATURE }, &[evidence]).unwrap_err();
    let prefix = format!("{} has no signature that counts: ", subject("mock/subject.txt"));
    let said = refused.summary.strip_prefix(&prefix).unwrap_or_else(|| panic!("{}", refused.summary)).to_owned();
    assert_eq!(refused.refusals.len(), 1);
    assert_eq!(refused.refusals[0].reason, said);
    said
}

pub(crate) fn workflow(strength: Strength) -> VerifiedSigner {
    let identity = SignerIdentity::Keyless { issuer: GITHUB.to_owned(), identity: WORKFLOW.to_owned() };
    VerifiedSigner { identity, strength }
}

pub(crate) fn holder(name: &str, strength: Strength) -> VerifiedSigner {
    let fingerprint = PublicKey::from_pem(&text(name)).unwrap().fingerprint();
    VerifiedSigner { identity: SignerIdentity::Key { fingerprint }, strength }
}
