//! Evidence that counts, in every form, and what it says of its signer.

use toolcell_trust::{Evidence, Requirements, TrustRule, TrustedRoot, Verified};

use crate::evidence::*;

fn signed(signer: toolcell_trust::VerifiedSigner) -> Verified {
    Verified { signers: vec![signer], ..Verified::default() }
}

#[test]
fn keyless_signatures_of_every_form_count() {
    let rule = rule(keyless(GITHUB, WORKFLOW), SIGNATURE);
    for name in ["signature", "signature-again", "signature-rekor2", "signature-timestamp", "message"] {
        let verified = verify(&rule, &[bundle(&format!("mock/{name}"))]);
        assert_eq!(verified, Ok(signed(workflow(LOGGED))), "{name}");
    }
    let verified = verify(&rule, &[Evidence::CosignLayer(layer("mock/keyless"))]);
    assert_eq!(verified, Ok(signed(workflow(LOGGED))));
}

#[test]
fn bundles_of_version_0_1_count_by_the_promise_of_their_log_and_later_ones_do_not() {
    let older = |version: &str, with_proof: bool| {
        changed("mock/signature", |json| {
            let certificate = json["verificationMaterial"]["certificate"].take();
            let material = json["verificationMaterial"].as_object_mut().unwrap();
            material.remove("certificate");
            material.insert("x509CertificateChain".to_owned(), serde_json::json!({"certificates": [certificate]}));
            if !with_proof {
                json["verificationMaterial"]["tlogEntries"][0].as_object_mut().unwrap().remove("inclusionProof");
            }
            json["mediaType"] = format!("application/vnd.dev.sigstore.bundle+json;version={version}").into();
        })
    };
    let rule = rule(keyless(GITHUB, WORKFLOW), SIGNATURE);
    for (version, with_proof) in [("0.1", false), ("0.1", true), ("0.2", true)] {
        assert_eq!(verify(&rule, &[older(version, with_proof)]), Ok(signed(workflow(LOGGED))), "{version}");
    }
    let said = refused(older("0.2", false));
    assert_eq!(said, "an entry of the transparency log has no proof, which a bundle needs from version 0.2 on");
}

#[test]
fn keyed_signatures_count_with_and_without_a_log() {
    let rule = rule(key("mock/key.pub"), SIGNATURE);
    let by = |strength| Ok(signed(holder("mock/key.pub", strength)));
    assert_eq!(verify(&rule, &[bundle("mock/keyed")]), by(LOGGED));
    assert_eq!(verify(&rule, &[bundle("mock/keyed-unlogged")]), by(BARE));
    assert_eq!(verify(&rule, &[Evidence::CosignLayer(layer("mock/keyed"))]), by(LOGGED));
    let both = [bundle("mock/keyed-unlogged"), bundle("mock/keyed")];
    assert_eq!(verify(&rule, &both), by(LOGGED));
}

#[test]
fn evidence_of_cosign_3_with_keys_counts() {
    let subject = subject("cosign/subject.txt");
    let root = TrustedRoot::public_good().unwrap();
    for (name, public) in [("p256", "cosign"), ("ed25519", "ed25519"), ("p384", "p384")] {
        let public = format!("cosign/{public}.pub");
        let rule = rule(key(&public), SIGNATURE);
        for evidence in [bundle(&format!("cosign/{name}")), Evidence::CosignLayer(layer(&format!("cosign/{name}")))] {
            let verified = rule.verify(&subject, &[evidence], &root, now());
            assert_eq!(verified, Ok(signed(holder(&public, BARE))), "{name}");
        }
    }
    let all = Requirements { signature: true, provenance: true, sbom: true };
    let evidence = ["p256", "provenance", "sbom"].map(|name| bundle(&format!("cosign/{name}")));
    let by = vec![holder("cosign/cosign.pub", BARE)];
    let expected = Verified { signers: by.clone(), provenance: by.clone(), sbom: by };
    assert_eq!(rule(key("cosign/cosign.pub"), all).verify(&subject, &evidence, &root, now()), Ok(expected));
}

#[test]
fn provenance_and_sboms_count_by_their_predicate() {
    let rule = |require| rule(keyless(GITHUB, WORKFLOW), require);
    let evidence = [bundle("mock/provenance"), bundle("mock/sbom")];
    let by = vec![workflow(LOGGED)];
    // A provenance stands for a signature, and is not taken for one: what is lost has to be seen.
    let both = Verified { signers: Vec::new(), provenance: by.clone(), sbom: by };
    for require in [SIGNATURE, PROVENANCE, SBOM, Requirements::default()] {
        assert_eq!(verify(&rule(require), &evidence), Ok(both.clone()), "{require:?}");
    }
    let without = verify(&rule(PROVENANCE), &evidence[1..]).unwrap_err();
    assert_eq!(
        without.summary,
        format!(
            "{} has no provenance that counts: only an SBOM by {WORKFLOW} (issuer {GITHUB}) was found",
            subject("mock/subject.txt")
        )
    );
    let without = verify(&rule(SIGNATURE), &evidence[1..]).unwrap_err();
    assert!(without.summary.contains("has no signature that counts: only an SBOM by"), "{without}");
}

#[test]
fn bad_evidence_beside_a_good_signature_harms_nothing() {
    let evidence = [
        bundle("mock/expired"),
        Evidence::Bundle(b"{".to_vec()),
        bundle("mock/other-identity"),
        bundle("mock/signature"),
    ];
    assert_eq!(verify(&rule(keyless(GITHUB, WORKFLOW), SIGNATURE), &evidence), Ok(signed(workflow(LOGGED))));
}

#[test]
fn a_rule_that_names_nobody_and_requires_nothing_is_content() {
    assert_eq!(verify(&TrustRule::default(), &[]), Ok(Verified::default()));
    let nobody = TrustRule { signed_by: Vec::new(), require: SIGNATURE };
    let said = verify(&nobody, &[bundle("mock/signature")]).unwrap_err().summary;
    assert_eq!(said, format!("{} has no signature that counts: signed_by is empty", subject("mock/subject.txt")));
    let unsigned = verify(&rule(keyless(GITHUB, WORKFLOW), Requirements::default()), &[]).unwrap_err().summary;
    assert_eq!(
        unsigned,
        format!("{} has no signature that counts: nothing was found next to it", subject("mock/subject.txt"))
    );
}

#[test]
fn a_weaker_signature_has_other_words_for_a_lock() {
    let rule = rule(key("mock/key.pub"), SIGNATURE);
    let pinned = verify(&rule, &[bundle("mock/keyed")]).unwrap().signers;
    let found = verify(&rule, &[bundle("mock/keyed-unlogged")]).unwrap().signers;
    assert_eq!(pinned[0].identity, found[0].identity);
    assert!(pinned[0].to_string().ends_with(", in a transparency log, with a timestamp"), "{}", pinned[0]);
    assert!(found[0].to_string().ends_with(", in no log"), "{}", found[0]);
}
