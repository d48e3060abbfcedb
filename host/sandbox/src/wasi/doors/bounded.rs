//! Parts of messages that would be costly to read without a bound. Must not hold: whole messages.
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A list of at most `MAX` items. A frame's length alone is no bound: an empty text is one byte of
/// a frame, and many times that in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List<T, const MAX: usize>(pub(crate) Vec<T>);

impl<T: Serialize, const MAX: usize> Serialize for List<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

struct Items<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Items<T, MAX> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a list of at most {MAX} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::custom("too many items"));
            }
            list.push(item);
        }
        Ok(list)
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items::<T, MAX>(PhantomData)).map(Self)
    }
}

/// Bytes, encoded as one piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blob(pub(crate) Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

struct Piece;

impl Visitor<'_> for Piece {
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
        deserializer.deserialize_byte_buf(Piece).map(Self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_list_ends_at_its_bound() {
        let encoded = |items: usize| postcard::to_stdvec(&vec![String::new(); items]).unwrap();
        assert_eq!(postcard::from_bytes::<List<String, 3>>(&encoded(3)).unwrap().0.len(), 3);
        assert!(postcard::from_bytes::<List<String, 3>>(&encoded(4)).is_err());
        // A length is only a claim.
        assert!(postcard::from_bytes::<List<String, 3>>(&[0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
    }

    #[test]
    fn bytes_come_back_as_they_were() {
        for bytes in [Vec::new(), vec![0], vec![0xff; 70_000]] {
            let encoded = postcard::to_stdvec(&Blob(bytes.clone())).unwrap();
            assert_eq!(postcard::from_bytes::<Blob>(&encoded).unwrap().0, bytes);
        }
        assert!(postcard::from_bytes::<Blob>(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1]).is_err());
    }
}
