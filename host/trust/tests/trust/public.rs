//! Evidence of Sigstore's public instances.

use toolcell_trust::{Subject, TrustRule, TrustedRoot, Untrusted, Verified};

use crate::evidence::*;

const ANY: &str = "https://github.com/*";

/// The subject that the evidence is about, by its message digest or its payload.
fn own_subject(name: &str) -> Subject {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let json: serde_json::Value = serde_json::from_str(&text(&format!("{name}.sigstore.json"))).unwrap();
    if let Some(digest) = json.pointer("/messageSignature/messageDigest/digest") {
        return Subject::new(STANDARD.decode(digest.as_str().unwrap()).unwrap().try_into().unwrap());
    }
    let payload = STANDARD.decode(json["dsseEnvelope"]["payload"].as_str().unwrap()).unwrap();
    let statement: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    format!("sha256:{}", statement["subject"][0]["digest"]["sha256"].as_str().unwrap()).parse().unwrap()
}

fn under(root: &TrustedRoot, rule: &TrustRule, name: &str) -> Result<Verified, Untrusted> {
    rule.verify(&own_subject(name), &[bundle(name)], root, now())
}

#[test]
fn signatures_of_the_public_instance_verify_under_the_embedded_root() {
    let root = TrustedRoot::public_good().unwrap();
    for (name, issuer, pattern, signer) in [
        ("public/cosign-blob", "https://github.com/login/oauth", "*@gmail.com", "w.vollprecht@gmail.com"),
        (
            "public/github-wheel",
            GITHUB,
            ANY,
            "https://github.com/trailofbits/rfc8785.py/.github/workflows/release.yml@refs/tags/v0.1.2",
        ),
    ] {
        let verified = under(&root, &rule(keyless(issuer, pattern), SIGNATURE), name)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(verified.signers[0].strength, LOGGED);
        let strength = "in a transparency log, with a timestamp";
        assert_eq!(verified.signers[0].to_string(), format!("{signer} (issuer {issuer}), {strength}"));
    }
}

#[test]
fn a_provenance_of_staging_in_rekor_2_verifies_under_its_root() {
    let rule = rule(keyless(GITHUB, ANY), PROVENANCE);
    let verified = under(&root("public/staging_root.json"), &rule, "public/staging-provenance").unwrap();
    assert_eq!(verified.signers, []);
    assert_eq!(
        verified.provenance[0].identity.to_string(),
        format!(
            "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main (issuer {GITHUB})"
        )
    );
    let refused = under(&TrustedRoot::public_good().unwrap(), &rule, "public/staging-provenance").unwrap_err();
    assert_eq!(
        refused.refusals[0].reason,
        "its verification failed: invalid RFC 3161 timestamp: TSA timestamp verification failed: Failed to verify timestamp signature: CMS signer does not match any trusted TSA certificate"
    );
}

#[test]
fn a_managed_key_in_the_public_log_verifies() {
    let rule = rule(key("public/managed-key.pub"), SIGNATURE);
    let verified = under(&TrustedRoot::public_good().unwrap(), &rule, "public/managed-key").unwrap();
    assert_eq!(verified.signers, [holder("public/managed-key.pub", LOGGED)]);
}

#[test]
fn known_bad_evidence_does_not_count() {
    let root = TrustedRoot::public_good().unwrap();
    let rule = rule(keyless("https://github.com/login/oauth", "*@yossarian.net"), SIGNATURE);
    for (name, said) in [
        (
            "public/cve-2022-36056",
            "its verification failed: invalid inclusion promise: No log key valid at integrated time 2024-04-05T22:08:27Z for log ID 0y8wo8MtY5wrdiIFohx7sHeI5oKDpK5vQhGHI6G+pJY=",
        ),
        ("public/no-certificate", "it has no certificate"),
        ("public/othername", "its certificate names no e-mail address or URI, or no issuer"),
    ] {
        assert_eq!(under(&root, &rule, name).unwrap_err().refusals[0].reason, said, "{name}");
    }
    let evidence = [bundle("public/dsse-2sigs")];
    let refused = rule.verify(&Subject::new([0; 32]), &evidence, &root, now()).unwrap_err();
    assert!(refused.refusals[0].reason.contains("exactly one signature, found 2"), "{refused}");
}
