//! Sealing: bytes that travel through others, which can neither read nor change them.
//!
//! They are sealed with AES-256-GCM under a fresh key: HKDF-SHA256 over the server's key and a
//! random salt. A key that is used once needs no nonce, so replicas may share the server's key
//! without counters.

use std::fmt;
use std::sync::Arc;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac::{Context, HMAC_SHA256, Key, sign};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Least length of a given key, in bytes: that of a SHA-256 digest.
pub const STATE_KEY_BYTES_MIN: usize = 32;

const SALT_BYTES: usize = 32;

/// The purpose of the key for [tags](StateKey::tag).
const TAG_PURPOSE: &[u8] = b"toolcell tag 1";

/// The purpose of the key for salts that depend on what is sealed.
const SALT_PURPOSE: &[u8] = b"toolcell salt 1";

/// The purpose of derived keys: data sealed for one cannot be opened for another. Its text changes
/// with the sealed form.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// `requestState`.
    RequestState,
    /// The id of a legacy session.
    Session,
    /// A message to other replicas.
    Message,
    /// A caller's login at rest.
    Login,
    /// The address at which a caller begins a login.
    LoginTicket,
    /// A login that a browser has begun.
    LoginBegun,
    /// A login that a browser has made, and may end.
    LoginMade,
}

impl Purpose {
    const fn name(self) -> &'static [u8] {
        match self {
            Self::RequestState => b"toolcell requestState 1",
            Self::Session => b"toolcell session 1",
            Self::Message => b"toolcell message 1",
            Self::Login => b"toolcell login 1",
            Self::LoginTicket => b"toolcell login ticket 1",
            Self::LoginBegun => b"toolcell login begun 1",
            Self::LoginMade => b"toolcell login made 1",
        }
    }
}

/// The key for sealing. Cheap to clone; never shown.
#[derive(Clone)]
pub struct StateKey(Arc<[u8]>);

/// A key is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key has {bytes} bytes, and must have at least {STATE_KEY_BYTES_MIN}")]
pub struct WeakKey {
    /// The length of the given key.
    pub bytes: usize,
}

impl StateKey {
    /// A key of these bytes, for several processes that answer the same clients.
    ///
    /// # Errors
    /// [`WeakKey`] if there are fewer than [`STATE_KEY_BYTES_MIN`].
    pub fn of(bytes: &[u8]) -> Result<Self, WeakKey> {
        if bytes.len() < STATE_KEY_BYTES_MIN {
            return Err(WeakKey { bytes: bytes.len() });
        }
        Ok(Self(bytes.into()))
    }

    /// A new random key. State that was sealed under another key is refused.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; STATE_KEY_BYTES_MIN];
        // Without randomness the key stays empty, and seals nothing.
        match SystemRandom::new().fill(&mut bytes) {
            Ok(()) => Self(bytes.as_slice().into()),
            Err(_) => Self(Arc::from([])),
        }
    }

    /// Seals. `None` if the machine has no randomness.
    #[must_use]
    pub fn seal(&self, purpose: Purpose, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let mut salt = [0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).ok()?;
        self.seal_with(purpose, salt, bytes)
    }

    /// Seals so that the same bytes give the same result. `None` for a key without randomness.
    #[must_use]
    pub fn seal_same(&self, purpose: Purpose, bytes: Vec<u8>) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        // Other bytes give another salt, and so another key.
        let prk = Salt::new(HKDF_SHA256, &[]).extract(&self.0);
        let key = Key::from(prk.expand(&[SALT_PURPOSE, purpose.name()], HMAC_SHA256).ok()?);
        let mut salt = [0; SALT_BYTES];
        salt.copy_from_slice(sign(&key, &bytes).as_ref().get(..SALT_BYTES)?);
        self.seal_with(purpose, salt, bytes)
    }

    fn seal_with(&self, purpose: Purpose, salt: [u8; SALT_BYTES], mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        self.derived(purpose, &salt)?.seal_in_place_append_tag(nonce, Aad::empty(), &mut bytes).ok()?;
        let mut whole = salt.to_vec();
        whole.append(&mut bytes);
        Some(whole)
    }

    /// Opens what [`seal`](Self::seal) made under the same key for the same purpose; `None` for
    /// anything else.
    pub fn open<'b>(&self, purpose: Purpose, whole: &'b mut [u8]) -> Option<&'b [u8]> {
        let (salt, sealed) = whole.split_at_mut_checked(SALT_BYTES)?;
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        self.derived(purpose, salt)?.open_in_place(nonce, Aad::empty(), sealed).ok().map(|opened| &*opened)
    }

    /// A tag for these parts, of 64 hexadecimal digits. It can only be made with the key, and
    /// reveals nothing about the parts. `None` for a key without randomness.
    #[must_use]
    pub fn tag(&self, parts: &[&str]) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let prk = Salt::new(HKDF_SHA256, &[]).extract(&self.0);
        let key = Key::from(prk.expand(&[TAG_PURPOSE], HMAC_SHA256).ok()?);
        let mut context = Context::with_key(&key);
        for part in parts {
            // Lengths make the encoding unambiguous.
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        Some(hex(context.sign().as_ref()))
    }

    fn derived(&self, purpose: Purpose, salt: &[u8]) -> Option<LessSafeKey> {
        if self.0.is_empty() {
            return None;
        }
        let prk = Salt::new(HKDF_SHA256, salt).extract(&self.0);
        let purpose = [purpose.name()];
        let key = prk.expand(&purpose, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(key)))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// An unguessable name: 128 random bits. `None` if the machine has no randomness.
pub(crate) fn random_name() -> Option<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).ok()?;
    Some(hex(&random))
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_long_and_never_the_same() {
        let one = random_name().unwrap();
        let other = random_name().unwrap();
        assert!(one.len() == 32 && one != other, "{one} {other}");
    }

    #[test]
    fn the_same_bytes_can_be_sealed_to_the_same_and_others_to_others() {
        let key = StateKey::random();
        let sealed = |purpose: Purpose, bytes: &[u8]| key.seal_same(purpose, bytes.to_vec()).unwrap();
        let one = sealed(Purpose::LoginTicket, b"one");
        assert_eq!(one, sealed(Purpose::LoginTicket, b"one"));
        assert_eq!(key.open(Purpose::LoginTicket, &mut one.clone()), Some(&b"one"[..]));
        assert_ne!(one[..SALT_BYTES], sealed(Purpose::LoginTicket, b"two")[..SALT_BYTES]);
        assert_ne!(one[..SALT_BYTES], sealed(Purpose::LoginBegun, b"one")[..SALT_BYTES]);
        assert_ne!(one, StateKey::random().seal_same(Purpose::LoginTicket, b"one".to_vec()).unwrap());
        assert!(key.open(Purpose::LoginBegun, &mut one.clone()).is_none());
    }

    #[test]
    fn sealed_bytes_are_of_use_for_one_purpose_alone() {
        let key = StateKey::random();
        for purpose in [Purpose::RequestState, Purpose::Session, Purpose::Message] {
            let sealed = key.seal(purpose, b"bytes".to_vec()).unwrap();
            assert_eq!(key.open(purpose, &mut sealed.clone()), Some(&b"bytes"[..]));
            for other in [Purpose::RequestState, Purpose::Session, Purpose::Message] {
                let opened = key.open(other, &mut sealed.clone()).is_some();
                assert_eq!(opened, std::mem::discriminant(&purpose) == std::mem::discriminant(&other));
            }
        }
    }

    #[test]
    fn a_tag_is_of_its_parts_and_of_its_key() {
        let key = StateKey::of(&[1; 32]).unwrap();
        let other = StateKey::of(&[2; 32]).unwrap();
        let tag = key.tag(&["set", "ab"]).unwrap();
        assert!(tag.len() == 64 && tag.bytes().all(|byte| byte.is_ascii_hexdigit()), "{tag}");
        assert_eq!(key.tag(&["set", "ab"]).unwrap(), tag);
        for parts in [&["seta", "b"][..], &["set", "a", "b"], &["set", "ab", ""], &["set"], &[]] {
            assert_ne!(key.tag(parts).unwrap(), tag, "{parts:?}");
        }
        assert_ne!(other.tag(&["set", "ab"]).unwrap(), tag);
        assert_eq!(StateKey(Arc::from([])).tag(&["set", "ab"]), None);
    }
}
