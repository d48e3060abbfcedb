//! Attacks, each with the exact answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use toolcell_trust::{Evidence, IdentityPattern, SignerRule, TrustedRoot};

use crate::evidence::*;

/// The answer to a log entry that is about another DSSE signature.
const ANOTHER: &str = "its verification failed: log entry does not match the bundle: DSSE signature in bundle does not match any signature in Rekor entry (signature or verifier mismatch)";

#[test]
fn evidence_about_another_subject_does_not_count() {
    let other = subject("mock/other_subject.txt");
    assert_eq!(refused(bundle("mock/other-subject")), format!("it is about {other}"));
    // Replayed for another component: the same evidence, asked about another digest.
    let rule = rule(keyless(GITHUB, WORKFLOW), SIGNATURE);
    let layer = Evidence::CosignLayer(layer("mock/keyless"));
    for evidence in [bundle("mock/signature"), bundle("mock/message"), bundle("mock/signature-rekor2"), layer] {
        let refused = rule.verify(&other, &[evidence], &root("mock/trusted_root.json"), now()).unwrap_err();
        assert_eq!(
            refused.summary,
            format!("{other} has no signature that counts: it is about {}", subject("mock/subject.txt"))
        );
    }
}

#[test]
fn a_payload_changed_to_the_wanted_subject_is_not_what_was_signed() {
    let digest = subject("mock/subject.txt").to_string();
    let evidence = changed("mock/other-subject", |json| {
        let payload = STANDARD.decode(json["dsseEnvelope"]["payload"].as_str().unwrap()).unwrap();
        let mut statement: Value = serde_json::from_slice(&payload).unwrap();
        statement["subject"][0]["digest"]["sha256"] = digest.trim_start_matches("sha256:").into();
        json["dsseEnvelope"]["payload"] = STANDARD.encode(statement.to_string()).into();
    });
    assert_eq!(
        refused(evidence),
        "its verification failed: invalid signature: DSSE signature verification failed: Verification error: ECDSA_P256_SHA256 signature invalid"
    );
    let mut of_cosign = layer("mock/keyless");
    of_cosign.payload.push(b'\n');
    assert_eq!(
        refused(Evidence::CosignLayer(of_cosign)),
        "its verification failed: invalid signature: signature verification failed: Verification error: ECDSA_P256_SHA256 signature invalid"
    );
}

#[test]
fn identities_and_issuers_that_are_not_named_do_not_count() {
    let mallory = WORKFLOW.replace("acme", "mallory");
    assert_eq!(
        refused(bundle("mock/other-identity")),
        format!("its certificate names {mallory} (issuer {GITHUB}), which signed_by does not allow")
    );
    assert_eq!(
        refused(bundle("mock/other-issuer")),
        format!("its certificate names {WORKFLOW} (issuer https://issuer.example), which signed_by does not allow")
    );
    for identity in [
        &WORKFLOW[..WORKFLOW.len() - 1],
        &WORKFLOW.to_uppercase(),
        &WORKFLOW.replace("acme", "Acme"),
        &WORKFLOW.replace("v1.0.0", "v1.0.0.1"),
        &WORKFLOW.replace("v1.0.0", "v1.+"),
        &format!("^{WORKFLOW}$"),
        "https://github.com/acme/*",
        "https://github.com/acme/*/.github/workflows/release.yml@refs/heads/*",
    ] {
        let expected = identity == "https://github.com/acme/*";
        assert_eq!(
            verify(&rule(keyless(GITHUB, identity), SIGNATURE), &[bundle("mock/signature")]).is_ok(),
            expected,
            "{identity}"
        );
    }
    for issuer in [&GITHUB[..GITHUB.len() - 1], &format!("{GITHUB}/"), &GITHUB.to_uppercase(), "*", ""] {
        let identity = IdentityPattern::parse(WORKFLOW).unwrap();
        let signer = SignerRule::Keyless { issuer: issuer.to_owned(), identity };
        assert!(verify(&rule(signer, SIGNATURE), &[bundle("mock/signature")]).is_err(), "{issuer}");
    }
}

#[test]
fn keys_that_are_not_named_do_not_count() {
    let by_other = rule(key("cosign/cosign.pub"), SIGNATURE);
    for evidence in [bundle("mock/keyed"), bundle("mock/keyed-unlogged"), Evidence::CosignLayer(layer("mock/keyed"))] {
        let refused = verify(&by_other, &[evidence]).unwrap_err();
        assert_eq!(refused.refusals[0].reason, "it is not signed by any of the keys in signed_by (1)");
    }
    let refused = verify(&rule(keyless(GITHUB, WORKFLOW), SIGNATURE), &[bundle("mock/keyed")]).unwrap_err();
    assert_eq!(refused.refusals[0].reason, "it is signed with a key, but signed_by has no keys");
}

#[test]
fn certificates_of_another_time_log_or_authority_do_not_count() {
    assert_eq!(
        refused(bundle("mock/expired")),
        "its verification failed: certificate chain is invalid: certificate chain validation failed: CertExpired { time: UnixTime(1748782800), not_after: UnixTime(1748779800) }"
    );
    assert_eq!(
        refused(bundle("mock/without-sct")),
        "its verification failed: invalid signed certificate timestamp: certificate is missing SCT extension (Signed Certificate Timestamp)"
    );
    let by_other_root = |name: &str| {
        let rule = rule(keyless(GITHUB, WORKFLOW), SIGNATURE);
        let root = root("mock/other_root.json");
        rule.verify(&subject("mock/subject.txt"), &[bundle(name)], &root, now()).unwrap_err().refusals[0].reason.clone()
    };
    let said = by_other_root("mock/signature");
    let expected = "its verification failed: invalid inclusion promise: No log key valid at integrated time 2025-06-01T12:00:00Z for log ID ";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(
        by_other_root("mock/signature-rekor2"),
        "its verification failed: invalid RFC 3161 timestamp: TSA timestamp verification failed: Failed to verify timestamp signature: Verification error: ECDSA_P256_SHA256 signature invalid"
    );
    let public = TrustedRoot::public_good().unwrap();
    let rule = rule(keyless(GITHUB, WORKFLOW), SIGNATURE);
    assert!(rule.verify(&subject("mock/subject.txt"), &[bundle("mock/signature")], &public, now()).is_err());
}

#[test]
fn a_root_with_parts_of_another_does_not_help() {
    let parts = ["tlogs", "certificateAuthorities", "ctlogs"];
    for part in parts {
        let mut mixed: Value = serde_json::from_str(&text("mock/trusted_root.json")).unwrap();
        let other: Value = serde_json::from_str(&text("mock/other_root.json")).unwrap();
        mixed[part] = other[part].clone();
        let root = TrustedRoot::from_json(mixed.to_string().as_bytes()).unwrap();
        let rule = rule(keyless(GITHUB, WORKFLOW), SIGNATURE);
        for name in ["mock/signature", "mock/message", "mock/signature-rekor2"] {
            let verified = rule.verify(&subject("mock/subject.txt"), &[bundle(name)], &root, now());
            assert!(verified.is_err(), "{part} {name}");
        }
    }
}

#[test]
fn what_was_signed_in_the_future_does_not_count() {
    let rule = rule(keyless(GITHUB, WORKFLOW), SIGNATURE);
    let before = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_748_779_199);
    let root = root("mock/trusted_root.json");
    let refused = rule.verify(&subject("mock/subject.txt"), &[bundle("mock/signature")], &root, before).unwrap_err();
    assert_eq!(refused.refusals[0].reason, "it was signed 1 seconds from now: is the clock right?");
    let at = before + std::time::Duration::from_secs(1);
    assert!(rule.verify(&subject("mock/subject.txt"), &[bundle("mock/signature")], &root, at).is_ok());
}

#[test]
fn the_log_entry_of_another_signature_does_not_count() {
    let swapped = |name: &str, from: &str| {
        let other: Value = serde_json::from_str(&text(&format!("{from}.sigstore.json"))).unwrap();
        refused(changed(name, |json| {
            json["verificationMaterial"]["tlogEntries"] = other["verificationMaterial"]["tlogEntries"].clone();
        }))
    };
    assert_eq!(swapped("mock/signature", "mock/signature-again"), ANOTHER);
    assert_eq!(
        swapped("mock/signature", "mock/message"),
        "its verification failed: unsupported bundle: Rekor entry hashedrekord/0.0.1 is incompatible with a DSSE envelope"
    );
    assert_eq!(
        swapped("mock/message", "mock/signature"),
        "its verification failed: unsupported bundle: Rekor entry dsse/0.0.1 is incompatible with a message signature"
    );
    assert_eq!(swapped("mock/signature-rekor2", "mock/signature"), ANOTHER);
    assert_eq!(swapped("mock/keyed", "mock/signature"), ANOTHER);
    let mut of_cosign = layer("mock/keyless");
    let other = layer("mock/keyed");
    of_cosign.bundle_json = other.bundle_json.clone();
    assert_eq!(
        refused(Evidence::CosignLayer(of_cosign)),
        "its verification failed: malformed log entry: Invalid response: failed to parse certificate PEM: Invalid encoding: expected CERTIFICATE PEM block, got PUBLIC KEY"
    );
    let mut of_cosign = layer("mock/keyed");
    of_cosign.bundle_json = layer("mock/keyless").bundle_json;
    assert_eq!(
        refused(Evidence::CosignLayer(of_cosign)),
        "its verification failed: malformed log entry: Invalid response: failed to parse public key PEM: Invalid encoding: expected PUBLIC KEY PEM block, got CERTIFICATE"
    );
}

#[test]
fn the_certificate_of_another_signature_does_not_count() {
    let other: Value = serde_json::from_str(&text("mock/signature-again.sigstore.json")).unwrap();
    let evidence = changed("mock/signature", |json| {
        json["verificationMaterial"]["certificate"] = other["verificationMaterial"]["certificate"].clone();
    });
    assert_eq!(
        refused(evidence),
        "its verification failed: invalid signature: DSSE signature verification failed: Verification error: ECDSA_P256_SHA256 signature invalid"
    );
}

#[test]
fn evidence_without_its_log_entry_does_not_count_for_a_certificate() {
    let without = |name: &str| {
        refused(changed(name, |json| json["verificationMaterial"]["tlogEntries"] = Value::Array(Vec::new())))
    };
    let said = "it has no entry of a transparency log, which a certificate needs";
    for name in ["mock/signature", "mock/signature-rekor2", "mock/signature-timestamp", "mock/message"] {
        assert_eq!(without(name), said, "{name}");
    }
    let mut of_cosign = layer("mock/keyless");
    of_cosign.bundle_json = None;
    assert_eq!(refused(Evidence::CosignLayer(of_cosign)), said);
    let bare = |name: &str, part: &str| {
        refused(changed(name, |json| {
            json["verificationMaterial"]["tlogEntries"][0].as_object_mut().unwrap().remove(part);
        }))
    };
    // A proof says that the entry is in the log, and not when: the promise does.
    assert_eq!(
        bare("mock/signature", "inclusionPromise"),
        "its verification failed: no verified timestamp: No verified timestamp found. V1 bundles require either an RFC3161 timestamp or a tlog entry with both an integrated time and an inclusion_promise (SET)."
    );
    assert_eq!(
        bare("mock/signature-rekor2", "inclusionProof"),
        "an entry of the transparency log has no proof, which a bundle needs from version 0.2 on"
    );
    assert_eq!(
        refused(changed("mock/signature-rekor2", |json| {
            json["verificationMaterial"].as_object_mut().unwrap().remove("timestampVerificationData");
        })),
        "its verification failed: no verified timestamp: V2 bundle requires RFC3161 timestamp but none could be verified. V2 tlog entries have no integrated time by design. Ensure TSA certificates are present in the trusted root."
    );
}

#[test]
fn two_signatures_in_an_envelope_are_refused() {
    let twice = changed("mock/signature", |json| {
        let one = json["dsseEnvelope"]["signatures"][0].clone();
        json["dsseEnvelope"]["signatures"].as_array_mut().unwrap().push(one);
    });
    let said = refused(twice);
    let expected = "it is not a Sigstore bundle: JSON error: DSSE envelope must contain exactly one signature, found 2 at line 1 column ";
    assert!(said.starts_with(expected), "{said}");
}

/// A bit of each part, flipped in the bytes that its base64 stands for.
#[test]
fn flipped_bits_in_each_part_are_noticed() {
    let entry = "/verificationMaterial/tlogEntries/0";
    let common =
        ["/inclusionPromise/signedEntryTimestamp", "/inclusionProof/rootHash", "/canonicalizedBody", "/logId/keyId"];
    for (name, parts) in [
        (
            "mock/signature",
            vec![
                "/dsseEnvelope/payload",
                "/dsseEnvelope/signatures/0/sig",
                "/verificationMaterial/certificate/rawBytes",
            ],
        ),
        (
            "mock/message",
            vec![
                "/messageSignature/signature",
                "/messageSignature/messageDigest/digest",
                "/verificationMaterial/certificate/rawBytes",
            ],
        ),
    ] {
        let parts = parts.into_iter().map(str::to_owned).chain(common.iter().map(|part| format!("{entry}{part}")));
        for part in parts {
            flips(name, &part);
        }
    }
    for part in
        ["/dsseEnvelope/payload", "/dsseEnvelope/signatures/0/sig", "/verificationMaterial/certificate/rawBytes"]
    {
        flips("mock/signature-rekor2", part);
    }
    flips("mock/signature-rekor2", &format!("{entry}/canonicalizedBody"));
    flips(
        "mock/signature-rekor2",
        "/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp",
    );
    for part in ["/dsseEnvelope/payload", "/dsseEnvelope/signatures/0/sig"] {
        flips("mock/keyed", part);
        flips("mock/keyed-unlogged", part);
    }
}

fn flips(name: &str, part: &str) {
    let json: Value = serde_json::from_str(&text(&format!("{name}.sigstore.json"))).unwrap();
    let bytes =
        STANDARD.decode(json.pointer(part).unwrap_or_else(|| panic!("{name} {part}")).as_str().unwrap()).unwrap();
    for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1] {
        // RFC 3161 tokens hold bytes that nothing signs, such as the certificates that come along.
        if part.ends_with("signedTimestamp") && at != bytes.len() - 1 {
            continue;
        }
        let mut flipped = bytes.clone();
        flipped[at] ^= 1;
        let mut json = json.clone();
        *json.pointer_mut(part).unwrap() = STANDARD.encode(flipped).into();
        let said = refused(Evidence::Bundle(json.to_string().into_bytes()));
        assert!(!said.is_empty(), "{name} {part} {at}");
    }
}

#[test]
fn flipped_bits_in_texts_are_noticed() {
    for (part, from, to) in [
        ("/verificationMaterial/tlogEntries/0/integratedTime", "1748779200", "1748779201"),
        ("/verificationMaterial/tlogEntries/0/inclusionProof/treeSize", "1", "2"),
        ("/dsseEnvelope/payloadType", "application/vnd.in-toto+json", "application/vnd.in-toto+jsom"),
    ] {
        let evidence = changed("mock/signature", |json| {
            let value = json.pointer_mut(part).unwrap();
            assert_eq!(value.as_str(), Some(from));
            *value = to.into();
        });
        refused(evidence);
    }
    for part in ["logIndex", "checkpoint"] {
        refused(changed("mock/signature", |json| {
            let entry = &mut json["verificationMaterial"]["tlogEntries"][0];
            match part {
                "logIndex" => entry["logIndex"] = "1".into(),
                _ => {
                    let text = &mut entry["inclusionProof"]["checkpoint"]["envelope"];
                    *text = text.as_str().unwrap().replacen("Timestamp: 1", "Timestamp: 2", 1).into();
                }
            }
        }));
    }
}

#[test]
fn hostile_texts_stay_on_one_line() {
    let evidence = changed("mock/signature", |json| json["mediaType"] = "a\nb\u{202e}c\u{1b}[31m".into());
    let said = refused(evidence);
    assert!(said.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{said:?}");
    let long = refused(changed("mock/signature", |json| json["mediaType"] = "x".repeat(100_000).into()));
    assert_eq!(long.chars().count(), 301);
}
