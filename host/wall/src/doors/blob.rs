//! Bytes in a message.
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes, encoded as one piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

struct BlobPiece;

impl Visitor<'_> for BlobPiece {
    type Value = Vec<u8>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("bytes")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(BlobPiece).map(Self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        for bytes in [Vec::new(), vec![0], vec![0xff; 70_000]] {
            let encoded = postcard::to_stdvec(&Blob(bytes.clone())).unwrap();
            assert_eq!(postcard::from_bytes::<Blob>(&encoded).unwrap().0, bytes);
        }
        assert!(postcard::from_bytes::<Blob>(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1]).is_err());
    }
}
