//! Decoding with a bound on the memory of lists. An empty text is one byte of a message and many
//! times that in memory, so the length of a message is not enough.
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

/// A part of a deserializer that charges the memory of each item of a list. Fields of structures
/// and tuples are part of the item that contains them.
pub(crate) struct CountedSeed<'c, T> {
    inner: T,
    left: &'c Cell<usize>,
    /// True within a list or a map.
    is_list: bool,
}

impl<'c, T> CountedSeed<'c, T> {
    /// A deserializer whose lists may take this many bytes of memory together, not counting their
    /// texts.
    pub(crate) fn new(inner: T, left: &'c Cell<usize>) -> Self {
        Self { inner, left, is_list: false }
    }

    fn with<U>(&self, inner: U, is_list: bool) -> CountedSeed<'c, U> {
        CountedSeed { inner, left: self.left, is_list }
    }
}

/// Charges the memory of an item, if it is in a list.
fn take<T, E: serde::de::Error>(left: &Cell<usize>, is_list: bool) -> Result<(), E> {
    // An item without bytes still takes time.
    let bytes = if is_list { size_of::<T>().max(1) } else { 0 };
    let rest = left.get().checked_sub(bytes).ok_or_else(|| E::custom("lists that are too long"))?;
    left.set(rest);
    Ok(())
}

macro_rules! forwarded {
    ($($method:ident($($name:ident: $kind:ty),*) $list:literal,)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor, $list);
            self.inner.$method($($name,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for CountedSeed<'_, D> {
    type Error = D::Error;

    forwarded! {
        deserialize_any() true, deserialize_bool() false, deserialize_i8() false, deserialize_i16() false,
        deserialize_i32() false, deserialize_i64() false, deserialize_i128() false, deserialize_u8() false,
        deserialize_u16() false, deserialize_u32() false, deserialize_u64() false, deserialize_u128() false,
        deserialize_f32() false, deserialize_f64() false, deserialize_char() false, deserialize_str() false,
        deserialize_string() false, deserialize_bytes() false, deserialize_byte_buf() false,
        deserialize_option() false, deserialize_unit() false, deserialize_unit_struct(name: &'static str) false,
        deserialize_newtype_struct(name: &'static str) false, deserialize_seq() true,
        deserialize_tuple(len: usize) false, deserialize_tuple_struct(name: &'static str, len: usize) false,
        deserialize_map() true, deserialize_struct(name: &'static str, fields: &'static [&'static str]) false,
        deserialize_enum(name: &'static str, variants: &'static [&'static str]) false,
        deserialize_identifier() false, deserialize_ignored_any() true,
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! visited {
    ($($method:ident: $kind:ty,)*) => {
        $(fn $method<E: serde::de::Error>(self, value: $kind) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for CountedSeed<'_, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(formatter)
    }

    visited! {
        visit_bool: bool, visit_i8: i8, visit_i16: i16, visit_i32: i32, visit_i64: i64, visit_i128: i128,
        visit_u8: u8, visit_u16: u16, visit_u32: u32, visit_u64: u64, visit_u128: u128, visit_f32: f32,
        visit_f64: f64, visit_char: char, visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, some: D) -> Result<V::Value, D::Error> {
        let some = self.with(some, false);
        self.inner.visit_some(some)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.with(inner, false);
        self.inner.visit_newtype_struct(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        let items = self.with(items, self.is_list);
        self.inner.visit_seq(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let entries = self.with(entries, self.is_list);
        self.inner.visit_map(entries)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variants: A) -> Result<V::Value, A::Error> {
        let variants = self.with(variants, false);
        self.inner.visit_enum(variants)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for CountedSeed<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.with(deserializer, false);
        self.inner.deserialize(deserializer)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for CountedSeed<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let item = self.inner.next_element_seed(CountedSeed { inner: seed, left: self.left, is_list: false })?;
        take::<S::Value, A::Error>(self.left, self.is_list && item.is_some())?;
        Ok(item)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for CountedSeed<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let key = self.inner.next_key_seed(CountedSeed { inner: seed, left: self.left, is_list: false })?;
        take::<S::Value, A::Error>(self.left, self.is_list && key.is_some())?;
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        take::<S::Value, A::Error>(self.left, self.is_list)?;
        self.inner.next_value_seed(CountedSeed { inner: seed, left: self.left, is_list: false })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, 'c, A: EnumAccess<'de>> EnumAccess<'de> for CountedSeed<'c, A> {
    type Error = A::Error;
    type Variant = CountedSeed<'c, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let Self { inner, left, .. } = self;
        let (name, variant) = inner.variant_seed(CountedSeed { inner: seed, left, is_list: false })?;
        Ok((name, CountedSeed { inner: variant, left, is_list: false }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for CountedSeed<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.with(seed, false);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor, false);
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor, false);
        self.inner.struct_variant(fields, visitor)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Kind {
        None,
        Texts(Vec<String>),
        Pair(u8, Option<Box<Kind>>),
        Named { map: BTreeMap<u32, String>, nothing: Vec<()> },
    }

    fn read(of: &Kind, bytes: usize) -> Option<Kind> {
        let encoded = postcard::to_stdvec(of).unwrap();
        let left = Cell::new(bytes);
        Kind::deserialize(CountedSeed::new(&mut postcard::Deserializer::from_bytes(&encoded), &left)).ok()
    }

    #[test]
    fn what_is_within_the_bound_comes_back_as_it_was_and_one_item_more_does_not() {
        let text = size_of::<String>();
        let texts = || Kind::Texts(vec!["a".to_owned(), String::new(), "ccc".to_owned()]);
        let map = || (0..4).map(|key| (key, String::new())).collect();
        let cases = [
            (Kind::None, 0),
            (texts(), 3 * text),
            (Kind::Pair(7, None), 0),
            (Kind::Pair(7, Some(Box::new(texts()))), 3 * text),
            (Kind::Named { map: map(), nothing: vec![(); 9] }, 4 * (4 + text) + 9),
        ];
        for (case, bytes) in cases {
            assert_eq!(read(&case, bytes).unwrap(), case);
            assert!(bytes == 0 || read(&case, bytes - 1).is_none(), "{case:?}");
        }
    }
}
