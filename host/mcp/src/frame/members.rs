//! The members of a JSON object as they are written, so that a result is passed on unchanged: a
//! parsed number would lose digits, and a parsed value may nest only 127 levels.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in their order.
#[derive(Debug, Default)]
pub(crate) struct RawMembers<'j>(Vec<(String, &'j RawValue)>);

impl<'j> RawMembers<'j> {
    /// The members of the object in this text; `None` if it is not one.
    pub(crate) fn of(json: &'j str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Each name, with the text of its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'j str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.get()))
    }

    /// The text of the member of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&'j str> {
        self.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = RawMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(RawMembers(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}
