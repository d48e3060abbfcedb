//! Evidence that is too much of something.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolcell_trust::Evidence;

use crate::evidence::*;

#[test]
fn of_ten_thousand_pieces_sixty_four_are_looked_at() {
    let begun = Instant::now();
    let evidence = vec![bundle("mock/expired"); 10_000];
    let refused = verify(&rule(keyless(GITHUB, WORKFLOW), SIGNATURE), &evidence).unwrap_err();
    assert_eq!(refused.refusals.len(), 65);
    let last = refused.refusals.last().unwrap();
    assert_eq!(
        (last.evidence, last.reason.as_str()),
        (64, "9936 more pieces of evidence were not looked at; at most 64 are")
    );
    assert!(refused.summary.ends_with(" (64 more do not count either)"), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn large_evidence_is_refused_by_its_size() {
    let size = |bytes: usize| refused(Evidence::Bundle(vec![b' '; bytes]));
    assert_eq!(size((16 << 20) + 1), "it takes 16777217 bytes; at most 16777216 are allowed");
    let long = |bytes: usize| changed("mock/signature", |json| json["padding"] = "x".repeat(bytes).into());
    assert!(verify(&rule(keyless(GITHUB, WORKFLOW), SIGNATURE), &[long(1_000_000)]).is_ok());
    let said = refused(long(1 << 20));
    assert!(said.ends_with(" bytes; at most 1048576 are allowed"), "{said}");
    let sboms = changed("mock/sbom", |json| json["padding"] = "x".repeat(1 << 20).into());
    assert!(verify(&rule(keyless(GITHUB, WORKFLOW), SBOM), &[sboms]).is_ok());
}

#[test]
fn all_evidence_together_is_bounded() {
    let mut evidence = vec![Evidence::Bundle(vec![b' '; 16 << 20]); 3];
    let rule = rule(keyless(GITHUB, WORKFLOW), SIGNATURE);
    let refused = verify(&rule, &evidence).unwrap_err();
    assert_eq!(refused.refusals[2].reason, "all evidence takes more than 33554432 bytes");
    // Large pieces take the room of no small one, wherever it stands.
    evidence.push(bundle("mock/signature"));
    assert_eq!(verify(&rule, &evidence).unwrap().signers.len(), 1);
}

#[test]
fn deep_and_wide_json_is_refused_before_it_is_built() {
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(refused(Evidence::Bundle(deep.into_bytes())), "its JSON is nested deeper than 64");
    let wide = format!("[{}0]", "0,".repeat(400_000));
    assert_eq!(refused(Evidence::Bundle(wide.into_bytes())), "its JSON has more than 10000 values");
    let payload = |text: &str| {
        let payload = STANDARD.encode(text);
        refused(changed("mock/signature", |json| json["dsseEnvelope"]["payload"] = payload.into()))
    };
    assert_eq!(payload(&"{\"a\":".repeat(70_000)), "of the statement, its JSON is nested deeper than 64");
    assert_eq!(
        payload(&format!("[{}0]", "0,".repeat(390_000))),
        "its payload is not an in-toto statement: invalid type: integer `0`, expected a string at line 1 column 2"
    );
    let layer = |text: &str| {
        refused(Evidence::CosignLayer(toolcell_trust::CosignLayer {
            payload: text.as_bytes().to_vec(),
            ..layer("mock/keyless")
        }))
    };
    assert_eq!(layer(&"[".repeat(70_000)), "of the payload, its JSON is nested deeper than 64");
}

#[test]
fn lists_and_texts_within_a_bundle_are_counted() {
    let material = |change: &dyn Fn(&mut serde_json::Value)| {
        refused(changed("mock/signature-timestamp", |json| change(&mut json["verificationMaterial"])))
    };
    let certificate = STANDARD.encode(vec![0x30; 700_000]);
    assert_eq!(
        material(&|json| json["certificate"]["rawBytes"] = certificate.clone().into()),
        "it has 700000 bytes of a certificate; at most 16384 are allowed"
    );
    assert_eq!(
        material(&|json| {
            let one = json["certificate"].take();
            json.as_object_mut().unwrap().remove("certificate");
            json["x509CertificateChain"] = json!({"certificates": vec![one; 9]});
        }),
        "it has 9 certificates in its chain; at most 8 are allowed"
    );
    assert_eq!(
        material(&|json| json["tlogEntries"] = json!(vec![json["tlogEntries"][0].clone(); 5])),
        "it has 5 log entries; at most 4 are allowed"
    );
    assert_eq!(
        material(&|json| {
            let hash = json["tlogEntries"][0]["inclusionProof"]["rootHash"].clone();
            json["tlogEntries"][0]["inclusionProof"]["hashes"] = json!(vec![hash; 65]);
        }),
        "it has 65 hashes in a log's proof; at most 64 are allowed"
    );
    assert_eq!(
        material(&|json| {
            let times = &mut json["timestampVerificationData"]["rfc3161Timestamps"];
            *times = json!(vec![times[0].clone(); 5]);
        }),
        "it has 5 timestamps; at most 4 are allowed"
    );
    assert_eq!(
        refused(changed("mock/signature", |json| {
            json["dsseEnvelope"]["signatures"][0]["sig"] = STANDARD.encode(vec![1; 1025]).into();
        })),
        "it has 1025 bytes of a signature; at most 1024 are allowed"
    );
}

#[test]
fn a_certificate_of_a_megabyte_in_an_annotation_is_refused() {
    let mut of_cosign = layer("mock/keyless");
    let body = STANDARD.encode(vec![0x30; 700_000]);
    of_cosign.certificate_pem = Some(format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n"));
    assert_eq!(refused(Evidence::CosignLayer(of_cosign)), "its certificates take more bytes than are allowed");
    let mut of_cosign = layer("mock/keyless");
    of_cosign.chain_pem = of_cosign.chain_pem.map(|one| one.repeat(8));
    assert_eq!(refused(Evidence::CosignLayer(of_cosign)), "its PEM has more than 7 blocks, or one within another");
    let mut of_cosign = layer("mock/keyless");
    of_cosign.signature_base64 = "A".repeat(2049);
    assert_eq!(refused(Evidence::CosignLayer(of_cosign)), "its signature takes more than 2048 letters");
}
