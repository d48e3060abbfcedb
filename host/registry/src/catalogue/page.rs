//! A page of a registry's list of servers.
use std::fmt;

use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Most entries of a page that are kept: twice what is asked for.
const ENTRIES_MAX: usize = 100;

/// Longest cursor, in bytes: those of the public registry have about a hundred.
const CURSOR_BYTES_MAX: usize = 1_024;

/// The unparsed entries of a page, and the cursor of the next page.
#[derive(Default)]
pub(super) struct CataloguePage {
    pub(super) entries: Vec<Box<RawValue>>,
    /// Number of entries that are not kept.
    pub(super) left_out: usize,
    pub(super) next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Written {
    #[serde(deserialize_with = "entries")]
    servers: (Vec<Box<RawValue>>, usize),
    metadata: Option<PageMetadata>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    next_cursor: Option<String>,
}

impl<'de> Deserialize<'de> for CataloguePage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Written { servers: (entries, left_out), metadata } = Written::deserialize(from)?;
        let next_cursor = metadata.unwrap_or_default().next_cursor.filter(|cursor| !cursor.is_empty());
        if next_cursor.as_ref().is_some_and(|cursor| cursor.len() > CURSOR_BYTES_MAX) {
            return Err(D::Error::custom(format!("nextCursor has more than {CURSOR_BYTES_MAX} bytes")));
        }
        Ok(Self { entries, left_out, next_cursor })
    }
}

fn entries<'de, D: Deserializer<'de>>(from: D) -> Result<(Vec<Box<RawValue>>, usize), D::Error> {
    from.deserialize_any(First)
}

/// Keeps the first entries, and counts the others.
struct First;

impl<'de> Visitor<'de> for First {
    type Value = (Vec<Box<RawValue>>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of servers")
    }

    /// Programs written in Go send `null` for an empty list.
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Self::Value::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < ENTRIES_MAX {
            match list.next_element()? {
                Some(entry) => kept.push(entry),
                None => return Ok((kept, 0)),
            }
        }
        let mut left_out = 0_usize;
        while list.next_element::<IgnoredAny>()?.is_some() {
            left_out = left_out.saturating_add(1);
        }
        Ok((kept, left_out))
    }
}
