//! Records of TLS 1.3, sealed and opened (RFC 8446, 5.2). Holds two ciphers of other crates, and none of its own.

use aes_gcm::aead::generic_array::GenericArray;
use aes_gcm::aead::generic_array::typenum::{U12, U16};
use aes_gcm::aead::{AeadInPlace, KeyInit};
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter, Nonce,
    OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload, Tls13AeadAlgorithm, UnsupportedOperationError,
    make_tls13_aad,
};
use rustls::{ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion};

/// Bytes of a tag, of both ciphers.
const TAG_BYTES: usize = 16;

#[derive(Debug)]
pub struct ChaCha20Poly1305;

#[derive(Debug)]
pub struct Aes128Gcm;

impl Tls13AeadAlgorithm for ChaCha20Poly1305 {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        record::<chacha20poly1305::ChaCha20Poly1305>(&key, iv)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        record::<chacha20poly1305::ChaCha20Poly1305>(&key, iv)
    }

    fn key_len(&self) -> usize {
        32
    }

    fn extract_keys(&self, key: AeadKey, iv: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Ok(ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv })
    }
}

impl Tls13AeadAlgorithm for Aes128Gcm {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        record::<aes_gcm::Aes128Gcm>(&key, iv)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        record::<aes_gcm::Aes128Gcm>(&key, iv)
    }

    fn key_len(&self) -> usize {
        16
    }

    fn extract_keys(&self, key: AeadKey, iv: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Ok(ConnectionTrafficSecrets::Aes128Gcm { key, iv })
    }
}

/// One direction of a connection. Without a cipher, which a key of the wrong length would give, nothing is sealed and
/// nothing opens.
struct Record<C> {
    cipher: Option<C>,
    iv: Iv,
}

fn record<C: KeyInit>(key: &AeadKey, iv: Iv) -> Box<Record<C>> {
    Box::new(Record { cipher: C::new_from_slice(key.as_ref()).ok(), iv })
}

impl<C> MessageEncrypter for Record<C>
where
    C: AeadInPlace<NonceSize = U12, TagSize = U16> + Send + Sync,
{
    fn encrypt(&mut self, message: OutboundPlainMessage<'_>, number: u64) -> Result<OutboundOpaqueMessage, Error> {
        let cipher = self.cipher.as_ref().ok_or(Error::EncryptError)?;
        let total = self.encrypted_payload_len(message.payload.len());
        let mut payload = PrefixedPayload::with_capacity(total);
        payload.extend_from_chunks(&message.payload);
        payload.extend_from_slice(&message.typ.to_array());
        let nonce = Nonce::new(&self.iv, number).0;
        let tag = cipher
            .encrypt_in_place_detached(GenericArray::from_slice(&nonce), &make_tls13_aad(total), payload.as_mut())
            .map_err(|_| Error::EncryptError)?;
        payload.extend_from_slice(&tag);
        // All records look so from outside (RFC 8446, 5.2).
        Ok(OutboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, payload))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len + 1 + TAG_BYTES
    }
}

impl<C> MessageDecrypter for Record<C>
where
    C: AeadInPlace<NonceSize = U12, TagSize = U16> + Send + Sync,
{
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        number: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let cipher = self.cipher.as_ref().ok_or(Error::DecryptError)?;
        let total = message.payload.len();
        let text = total.checked_sub(TAG_BYTES).ok_or(Error::DecryptError)?;
        let (sealed, tag) = message.payload.split_at_mut_checked(text).ok_or(Error::DecryptError)?;
        let nonce = Nonce::new(&self.iv, number).0;
        cipher
            .decrypt_in_place_detached(
                GenericArray::from_slice(&nonce),
                &make_tls13_aad(total),
                sealed,
                GenericArray::from_slice(tag),
            )
            .map_err(|_| Error::DecryptError)?;
        message.payload.truncate(text);
        message.into_tls13_unpadded_message()
    }
}
