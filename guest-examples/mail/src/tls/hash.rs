//! SHA-256, and HMAC with it, as rustls asks for them.

use hmac::{Hmac, Mac};
use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};
use rustls::crypto::hmac::{Hmac as HmacAlgorithm, Key, Tag};
use sha2::Digest;

/// Bytes of a digest.
const DIGEST_BYTES: usize = 32;

#[derive(Debug)]
pub struct Sha256;

impl Hash for Sha256 {
    fn start(&self) -> Box<dyn Context> {
        Box::new(Running(sha2::Sha256::new()))
    }

    fn hash(&self, data: &[u8]) -> Output {
        Output::new(&sha2::Sha256::digest(data))
    }

    fn output_len(&self) -> usize {
        DIGEST_BYTES
    }

    fn algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }
}

struct Running(sha2::Sha256);

impl Context for Running {
    fn fork_finish(&self) -> Output {
        Output::new(&self.0.clone().finalize())
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Self(self.0.clone()))
    }

    fn finish(self: Box<Self>) -> Output {
        Output::new(&self.0.finalize())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

#[derive(Debug)]
pub struct HmacSha256;

impl HmacAlgorithm for HmacSha256 {
    fn with_key(&self, key: &[u8]) -> Box<dyn Key> {
        Box::new(Keyed::of(key))
    }

    fn hash_output_len(&self) -> usize {
        DIGEST_BYTES
    }
}

struct Keyed(Hmac<sha2::Sha256>);

impl Keyed {
    fn of(key: &[u8]) -> Self {
        // A key longer than a block is its digest (RFC 2104, 2); a shorter one is filled with zeros.
        let mut block = hmac::digest::Key::<Hmac<sha2::Sha256>>::default();
        let digest = sha2::Sha256::digest(key);
        let key = if key.len() > block.len() { digest.as_slice() } else { key };
        block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        Self(<Hmac<sha2::Sha256> as hmac::digest::KeyInit>::new(&block))
    }
}

impl Key for Keyed {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> Tag {
        let mut running = self.0.clone();
        running.update(first);
        middle.iter().for_each(|part| running.update(part));
        running.update(last);
        Tag::new(&running.finalize().into_bytes())
    }

    fn tag_len(&self) -> usize {
        DIGEST_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 4231, cases 2 and 6: a short key, and one longer than a block.
    #[test]
    fn tags_are_those_of_the_rfc() {
        for (key, data, tag) in [
            (
                b"Jefe".to_vec(),
                &b"what do ya want for nothing?"[..],
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                vec![0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            let (first, rest) = data.split_at(4);
            assert_eq!(hex(HmacSha256.with_key(&key).sign_concat(first, &[], rest).as_ref()), tag);
        }
    }

    #[test]
    fn a_digest_may_be_forked() {
        let mut running = Sha256.start();
        running.update(b"ab");
        let mut fork = running.fork();
        fork.update(b"c");
        assert_eq!(fork.finish().as_ref(), Sha256.hash(b"abc").as_ref());
        assert_eq!(running.fork_finish().as_ref(), Sha256.hash(b"ab").as_ref());
    }
}
