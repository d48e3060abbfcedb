//! Every bound of this crate, with its unit and its reason.

/// Pieces of evidence looked at for one subject. A release has a few; signing again adds one.
pub const EVIDENCE_MAX: usize = 64;

/// Bytes of one piece of evidence. Real bundles take 4 to 15 KiB, long provenance up to 200 KiB.
pub const EVIDENCE_BYTES_MAX: usize = 1 << 20;

/// Bytes of one piece of evidence that holds an SBOM. Those of large programs take several MiB.
pub const SBOM_BYTES_MAX: usize = 16 << 20;

/// Bytes of all evidence for one subject: two of the largest SBOMs. It bounds the hashing.
pub const EVIDENCE_TOTAL_BYTES_MAX: usize = 32 << 20;

/// Arrays and objects within each other. CycloneDX nests components, seldom beyond ten.
pub const JSON_DEPTH_MAX: usize = 64;

/// Values in the JSON of a bundle, a payload of cosign or a trusted root. Real ones have hundreds.
pub const JSON_VALUES_MAX: usize = 10_000;

/// Values in the JSON of an in-toto statement. In memory a value takes some 150 bytes.
pub const STATEMENT_VALUES_MAX: usize = 500_000;

/// Certificates of one chain, the signer's own included. Fulcio's chains have three.
pub const CHAIN_CERTIFICATES_MAX: usize = 8;

/// Bytes of one certificate in DER. Fulcio's take about 1 KiB.
pub const CERTIFICATE_BYTES_MAX: usize = 16 << 10;

/// Bytes of a PEM text with one certificate: base64 and line breaks add less than half.
pub const CERTIFICATE_PEM_BYTES_MAX: usize = 24 << 10;

/// Bytes of a PEM text with a chain.
pub const CHAIN_PEM_BYTES_MAX: usize = CHAIN_CERTIFICATES_MAX * CERTIFICATE_PEM_BYTES_MAX;

/// Log entries of one piece of evidence. cosign makes one.
pub const LOG_ENTRIES_MAX: usize = 4;

/// Hashes of one inclusion proof: a log of 2^64 entries needs 64.
pub const LOG_PROOF_HASHES_MAX: usize = 64;

/// Bytes of one checkpoint with its signatures. Rekor's take 300 bytes, a witness adds 100.
pub const CHECKPOINT_BYTES_MAX: usize = 16 << 10;

/// RFC 3161 timestamps of one piece of evidence. cosign makes one.
pub const TIMESTAMPS_MAX: usize = 4;

/// Bytes of one RFC 3161 timestamp. With certificates they take 1 to 6 KiB.
pub const TIMESTAMP_BYTES_MAX: usize = 32 << 10;

/// Bytes of one signature: an RSA key of 8192 bits makes 1024.
pub const SIGNATURE_BYTES_MAX: usize = 1024;

/// Entries of one `signed_by`. Each key is tried on each piece of evidence.
pub const SIGNED_BY_MAX: usize = 32;

/// Bytes of a PEM text with one key. The encrypted keys of cosign take 650.
pub const KEY_PEM_BYTES_MAX: usize = 8 << 10;

/// Bytes of an identity, an issuer or a pattern. Those of workflows take 100 to 200.
pub const IDENTITY_BYTES_MAX: usize = 2 << 10;

/// Bytes of a trusted root. Sigstore's takes 7 KiB, GitHub's 32 KiB.
pub const ROOT_BYTES_MAX: usize = 1 << 20;

/// Authorities or logs of one kind in a trusted root. GitHub's names six.
pub const ROOT_AUTHORITIES_MAX: usize = 64;

/// Characters of one reason for which evidence does not count.
pub const REASON_CHARS_MAX: usize = 300;

/// Binary logarithm of scrypt's cost for an encrypted key. cosign uses 16: 64 MiB of memory.
pub const SCRYPT_LOG_COST_MAX: u8 = 17;
