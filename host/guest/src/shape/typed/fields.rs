//! JSON objects with named fields: the fields of a record, the parameters of a function.
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use wasmtime::component::Val;

use super::decode::{Seed, ValueReading, listed};
use super::path::Path;
use super::ty::TypedField;

/// Reads an object with named fields, in the order of the type.
#[derive(Clone, Copy)]
pub(super) struct NamedFields<'a, 'p> {
    pub(super) reading: &'a ValueReading<'a>,
    pub(super) fields: &'a [TypedField],
    pub(super) path: Path<'p>,
}

impl<'de> Visitor<'de> for NamedFields<'_, '_> {
    type Value = Vec<(String, Val)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found: Vec<(String, Option<Val>)> = Vec::with_capacity(self.fields.len());
        for field in self.fields {
            self.reading.charge::<A::Error>(&self.path, size_of::<String>() + field.wit_name.len())?;
            found.push((field.wit_name.clone(), None));
        }
        let mut next = 0;
        while let Some(position) = map.next_key_seed(FieldName { fields: self, next })? {
            let Some((field, (_, slot))) = self.fields.get(position).zip(found.get_mut(position)) else {
                return self.reading.fail(&self.path, "expected an object");
            };
            let path = self.path.key(&field.name);
            if slot.is_some() {
                return self.reading.fail(&path, "appears twice");
            }
            *slot = Some(map.next_value_seed(Seed { reading: self.reading, ty: field.ty, path })?);
            next = position + 1;
        }
        // Collected in place of the found values, which are of the same size.
        let whole = found.into_iter().zip(self.fields).map(|((name, value), field)| match value {
            Some(value) => Ok((name, value)),
            None if self.reading.types.is_optional(field.ty) => {
                self.reading.charge::<A::Error>(&self.path, size_of::<Val>())?;
                Ok((name, Val::Option(None)))
            }
            None => self.reading.fail(&self.path.key(&field.name), "is missing"),
        });
        whole.collect()
    }
}

impl NamedFields<'_, '_> {
    fn known(&self) -> String {
        match self.fields {
            [] => "nothing is expected here".to_owned(),
            fields => format!("known are {}", listed(fields.iter().map(|field| field.name.as_str()))),
        }
    }
}

/// Reads the name of a field. Most come in order, so the next field is tried first.
struct FieldName<'a, 'p> {
    fields: NamedFields<'a, 'p>,
    next: usize,
}

impl<'de> DeserializeSeed<'de> for FieldName<'_, '_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldName<'_, '_> {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a field")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<usize, E> {
        let NamedFields { reading, fields, path } = self.fields;
        if fields.get(self.next).is_some_and(|field| field.name == name) {
            return Ok(self.next);
        }
        match fields.iter().position(|field| field.name == name) {
            Some(position) => Ok(position),
            None => reading.fail(&path.key(name), format!("unknown; {}", self.fields.known())),
        }
    }
}
