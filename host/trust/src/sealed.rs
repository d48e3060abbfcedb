//! Private keys as `cosign generate-key-pair` writes them: encrypted with a password.
//!
//! The format is that of go-securesystemslib, package `encrypted`: scrypt (RFC 7914) makes a key of
//! the password, and NaCl's secretbox (XSalsa20 and Poly1305) seals the PKCS#8 private key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use poly1305::Poly1305;
use poly1305::universal_hash::KeyInit;
use salsa20::XSalsa20;
use salsa20::cipher::{KeyIvInit, StreamCipher};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::limits::SCRYPT_LOG_COST_MAX;
use crate::sign::SignError;

/// Bytes of Poly1305's tag, which precedes the ciphertext.
const TAG_BYTES: usize = 16;
/// scrypt's block size and parallelism, beyond which nobody goes. cosign uses 8 and 1.
const SCRYPT_BLOCK_MAX: u32 = 8;
const SCRYPT_PARALLEL_MAX: u32 = 4;

/// Opens the JSON of an encrypted key. With the highest cost it takes 128 MiB and a second.
pub(crate) fn open(json: &[u8], password: &[u8]) -> Result<Zeroizing<Vec<u8>>, SignError> {
    let sealed: Sealed = serde_json::from_slice(json).map_err(|_| SignError::Form)?;
    let log_cost = u8::try_from(sealed.kdf.params.cost.trailing_zeros()).map_err(|_| SignError::Form)?;
    let params = &sealed.kdf.params;
    let known = sealed.kdf.name == "scrypt" && sealed.cipher.name == "nacl/secretbox";
    let bounded =
        log_cost <= SCRYPT_LOG_COST_MAX && params.block <= SCRYPT_BLOCK_MAX && params.parallel <= SCRYPT_PARALLEL_MAX;
    if !known || !bounded || !params.cost.is_power_of_two() {
        return Err(SignError::Form);
    }
    let decode = |text: &str| STANDARD.decode(text).map_err(|_| SignError::Form);
    let salt = decode(&sealed.kdf.salt)?;
    let nonce = decode(&sealed.cipher.nonce)?;
    let ciphertext = decode(&sealed.ciphertext)?;
    let scrypt = scrypt::Params::new(log_cost, params.block, params.parallel).map_err(|_| SignError::Form)?;
    let mut key = Zeroizing::new([0u8; 32]);
    scrypt::scrypt(password, &salt, &scrypt, key.as_mut()).map_err(|_| SignError::Form)?;
    let nonce: [u8; 24] = nonce.try_into().map_err(|_| SignError::Form)?;
    open_box(&key, &nonce, &ciphertext).ok_or(SignError::Password)
}

/// `crypto_secretbox_open` of NaCl: the first 32 bytes of the stream are Poly1305's key.
fn open_box(key: &[u8; 32], nonce: &[u8; 24], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (tag, ciphertext) = sealed.split_at_checked(TAG_BYTES)?;
    let mut stream = XSalsa20::new(key.into(), nonce.into());
    let mut tag_key = Zeroizing::new([0u8; 32]);
    stream.apply_keystream(tag_key.as_mut());
    let expected = Poly1305::new((&*tag_key).into()).compute_unpadded(ciphertext);
    let differs = expected.iter().zip(tag).fold(0u8, |seen, (left, right)| seen | (left ^ right));
    if differs != 0 {
        return None;
    }
    let mut opened = Zeroizing::new(ciphertext.to_vec());
    stream.apply_keystream(&mut opened);
    Some(opened)
}

#[derive(Deserialize)]
struct Sealed {
    kdf: Kdf,
    cipher: Cipher,
    ciphertext: String,
}

#[derive(Deserialize)]
struct Kdf {
    name: String,
    params: ScryptParams,
    salt: String,
}

#[derive(Deserialize)]
struct ScryptParams {
    #[serde(rename = "N")]
    cost: u64,
    #[serde(rename = "r")]
    block: u32,
    #[serde(rename = "p")]
    parallel: u32,
}

#[derive(Deserialize)]
struct Cipher {
    name: String,
    nonce: String,
}
