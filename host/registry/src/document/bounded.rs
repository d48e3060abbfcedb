//! Bounded parts of documents: lists, annotations, digests.
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolcell_policy::Digest;

use super::Descriptor;

/// Most layers of a manifest. A component has one; a cosign signature has one for each signer.
pub const LAYERS_MAX: usize = 64;

/// Most annotations of a descriptor or document; tools write some ten.
pub const ANNOTATIONS_MAX: usize = 256;

/// Longest annotations of one descriptor or document together, in bytes: cosign keeps certificates
/// with their chain in them.
pub const ANNOTATION_BYTES_MAX: usize = 256 << 10;

/// Longest media or artifact type, in bytes: 127 on each side of the slash (RFC 6838, section 4.2).
pub const TYPE_BYTES_MAX: usize = 255;

/// Most entries of an index that are kept; a registry's list of referrers may have any number.
const ENTRIES_MAX: usize = crate::referrers::REFERRERS_LISTED_MAX;

/// The first entries of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entries {
    kept: Vec<Descriptor>,
    /// Number of all entries.
    pub listed: usize,
}

impl From<Vec<Descriptor>> for Entries {
    fn from(kept: Vec<Descriptor>) -> Self {
        Self { listed: kept.len(), kept }
    }
}

impl Deref for Entries {
    type Target = [Descriptor];

    fn deref(&self) -> &[Descriptor] {
        &self.kept
    }
}

impl Entries {
    #[must_use]
    pub fn into_vec(self) -> Vec<Descriptor> {
        self.kept
    }
}

/// A member that must be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Absent;

impl<'de> Deserialize<'de> for Absent {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Option::<IgnoredAny>::deserialize(from)? {
            None => Ok(Self),
            Some(_) => Err(D::Error::custom("it has members of a manifest and of an index")),
        }
    }
}

pub(super) fn version<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    match u8::deserialize(from)? {
        2 => Ok(2),
        other => Err(D::Error::custom(format!("its version is {other}, and only 2 is known"))),
    }
}

pub(super) fn digest<'de, D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
    Digest::parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

pub(super) fn write_digest<S: Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(digest.as_str())
}

/// A media or artifact type, or a platform's name.
pub(super) fn type_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if text.len() > TYPE_BYTES_MAX {
        let bytes = text.len();
        return Err(D::Error::custom(format!("a type has {bytes} bytes, at most {TYPE_BYTES_MAX} are allowed")));
    }
    Ok(text)
}

pub(super) fn optional_type<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Type(#[serde(deserialize_with = "type_text")] String);
    Ok(Option::<Type>::deserialize(from)?.map(|text| text.0))
}

pub(super) fn layers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Descriptor>, D::Error> {
    let entries = from.deserialize_seq(BoundedList { max: LAYERS_MAX })?;
    if entries.listed > LAYERS_MAX {
        return Err(D::Error::custom(format!("it has {} layers, at most {LAYERS_MAX} are allowed", entries.listed)));
    }
    Ok(entries.kept)
}

pub(super) fn entries<'de, D: Deserializer<'de>>(from: D) -> Result<Entries, D::Error> {
    from.deserialize_seq(BoundedList { max: ENTRIES_MAX })
}

pub(super) fn write_entries<S: Serializer>(entries: &Entries, to: S) -> Result<S::Ok, S::Error> {
    entries.kept.serialize(to)
}

/// Keeps the first entries, and counts the others.
struct BoundedList {
    max: usize,
}

impl<'de> Visitor<'de> for BoundedList {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of descriptors")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entries, A::Error> {
        let mut entries = Entries::default();
        while entries.kept.len() < self.max {
            match list.next_element()? {
                Some(entry) => entries.kept.push(entry),
                None => break,
            }
        }
        entries.listed = entries.kept.len();
        while entries.kept.len() == self.max && list.next_element::<IgnoredAny>()?.is_some() {
            entries.listed = entries.listed.saturating_add(1);
        }
        Ok(entries)
    }
}

/// Collects the digests of an index while it is parsed, so that a truncated index still yields
/// some.
pub(super) struct IndexStart<'d> {
    pub digests: &'d mut Vec<Digest>,
    pub max: usize,
}

/// For the list of its descriptors, within the index.
impl<'de> DeserializeSeed<'de> for IndexStart<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for IndexStart<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an index with a list of descriptors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "manifests" {
                return map.next_value_seed(self);
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        #[derive(Deserialize)]
        struct ListedDigest {
            #[serde(deserialize_with = "digest")]
            digest: Digest,
        }
        while self.digests.len() < self.max {
            match list.next_element::<ListedDigest>()? {
                Some(listed) => self.digests.push(listed.digest),
                None => break,
            }
        }
        Ok(())
    }
}

pub(super) fn annotations<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    from.deserialize_any(BoundedTexts)
}

struct BoundedTexts;

impl<'de> Visitor<'de> for BoundedTexts {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of texts")
    }

    /// Some tools write `null` for none.
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(BTreeMap::new())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut texts = BTreeMap::new();
        let mut bytes = 0_usize;
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
            if texts.len() >= ANNOTATIONS_MAX || bytes > ANNOTATION_BYTES_MAX {
                return Err(A::Error::custom("it has too many annotations, or too long ones"));
            }
            if texts.insert(key, value).is_some() {
                return Err(A::Error::custom("an annotation appears twice"));
            }
        }
        Ok(texts)
    }
}
