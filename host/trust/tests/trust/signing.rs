//! Signing with keys, and that the result verifies.

use toolcell_trust::{Evidence, SignerIdentity, SignerRule};
use toolcell_trust::{SignError, SigningKey, Strength, TrustRule, TrustedRoot, Verified, VerifiedSigner};

use crate::evidence::*;

const PASSWORD: Option<&[u8]> = Some(b"correct horse");

#[test]
fn signatures_by_both_kinds_of_keys_verify_and_are_as_cosign_makes_them() {
    let subject = subject("cosign/subject.txt");
    for (private, password, made_by_cosign) in
        [("cosign/cosign.key", PASSWORD, "cosign/p256"), ("cosign/ed25519.pem", None, "cosign/ed25519")]
    {
        let key = SigningKey::from_pem(&text(private), password).unwrap();
        let signed = key.sign(&subject, Some("registry.example/toolcell/echo")).unwrap();
        let rule = TrustRule { signed_by: vec![SignerRule::Key(key.public_key().clone())], require: SIGNATURE };
        let root = TrustedRoot::public_good().unwrap();
        let identity = SignerIdentity::Key { fingerprint: key.public_key().fingerprint() };
        let signers = vec![VerifiedSigner { identity, strength: Strength::default() }];
        let verified = rule.verify(&subject, &[Evidence::Bundle(signed.clone())], &root, now());
        assert_eq!(verified, Ok(Verified { signers, ..Verified::default() }));

        let ours: serde_json::Value = serde_json::from_slice(&signed).unwrap();
        let theirs: serde_json::Value =
            serde_json::from_str(&text(&format!("{made_by_cosign}.sigstore.json"))).unwrap();
        for part in ["/mediaType", "/verificationMaterial", "/dsseEnvelope/payloadType"] {
            assert_eq!(ours.pointer(part), theirs.pointer(part), "{part}");
        }
    }
}

#[test]
fn keys_that_cannot_sign_are_refused_by_reason() {
    let encrypted = text("cosign/cosign.key");
    let refused = |text: &str, password| SigningKey::from_pem(text, password).unwrap_err();
    assert_eq!(refused(&encrypted, None), SignError::NoPassword);
    assert_eq!(refused(&text("cosign/cosign.pub"), None), SignError::Form);
    assert_eq!(refused("", None), SignError::Form);
    assert_eq!(refused(&"a".repeat(8193), None), SignError::Size);
    assert_eq!(refused("-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----", None), SignError::Algorithm);
    let key = SigningKey::from_pem(&text("cosign/ed25519.pem"), None).unwrap();
    assert_eq!(key.sign(&subject("cosign/subject.txt"), Some("a\nb")).unwrap_err(), SignError::Name);
}

/// The cost of scrypt is the file's choice, so a file could ask for all memory.
#[test]
fn keys_that_cost_too_much_to_open_are_refused() {
    use base64::Engine;
    let sealed = |cost: u64, block: u32, parallel: u32| {
        let json = format!(
            r#"{{"kdf":{{"name":"scrypt","params":{{"N":{cost},"r":{block},"p":{parallel}}},"salt":"AA=="}},"cipher":{{"name":"nacl/secretbox","nonce":"{}"}},"ciphertext":"AA=="}}"#,
            "A".repeat(32)
        );
        let body = base64::engine::general_purpose::STANDARD.encode(json);
        let label = "ENCRYPTED SIGSTORE PRIVATE KEY";
        SigningKey::from_pem(&format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----"), PASSWORD).unwrap_err()
    };
    for (cost, block, parallel) in
        [(1 << 18, 8, 1), (1 << 63, 8, 1), (1 << 10, 9, 1), (1 << 10, 8, 5), (1023, 8, 1), (0, 8, 1)]
    {
        assert_eq!(sealed(cost, block, parallel), SignError::Form, "{cost} {block} {parallel}");
    }
    assert_eq!(sealed(1 << 10, 8, 1), SignError::Password);
}
