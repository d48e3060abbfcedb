//! The types of a component's functions, as far as JSON can carry them.
use std::collections::HashMap;
use std::fmt;

use wasmtime::component::Type;

/// Types of one function, nested ones included. The largest interface that was measured (a
/// database's) has some 200.
const NODES_MAX: usize = 4_096;

/// Levels to which types may nest: a value's JSON must stay within the depth that JSON parsers
/// accept.
const DEPTH_MAX: usize = 48;

/// The index of a type in a [`Types`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TyId(usize);

/// The types that some functions use, each one once.
#[derive(Debug, Default)]
pub(crate) struct Types {
    nodes: Vec<Ty>,
    /// The height of each type: the number of types nested within each other.
    heights: Vec<usize>,
    /// True for each type with a stream or a future in it.
    streams: Vec<bool>,
    /// The engine's own type of each node, by its debug text. That text has the type's number in
    /// its component. Any other comparison walks the types, which takes as long as the component
    /// likes.
    known: HashMap<String, (Type, TyId)>,
}

/// A type that JSON can carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ty {
    Bool,
    Int(Int),
    F32,
    F64,
    Char,
    Text,
    /// `list<u8>`.
    Bytes,
    List(TyId),
    FixedList(TyId, u32),
    Tuple(Vec<TyId>),
    Record(Vec<TypedField>),
    Variant(Vec<Case>),
    Enum(Vec<String>),
    Flags(Vec<String>),
    Option(TyId),
    Result(Option<TyId>, Option<TyId>),
    /// A stream in a result. `None` if its items have no type.
    Stream(Option<TyId>),
    /// A future in a result.
    Future(Option<TyId>),
}

/// An integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Int {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

/// A field of a record, or a parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedField {
    /// As in WIT.
    pub(crate) wit_name: String,
    /// As in JSON: [`json_name`] of it.
    pub(crate) name: String,
    pub(crate) ty: TyId,
}

/// A case of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) payload: Option<TyId>,
}

/// A type that JSON cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsupported {
    Resource,
    Stream,
    Unread,
    ErrorContext,
    Map,
    TooDeep,
    TooMany,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Resource => "a resource",
            Self::Stream => "a stream or a future, which only results may have",
            Self::Unread => "a stream or a future of values that cannot be read: resources, or larger than 4,096 bytes",
            Self::ErrorContext => "an error-context",
            Self::Map => "a map",
            Self::TooDeep => "types nested deeper than 48",
            Self::TooMany => "more than 4,096 types",
        })
    }
}

/// A WIT name in JSON: `wind-speed` is `wind_speed`. WIT names have no `_`, so no two names
/// collide.
pub(crate) fn json_name(wit_name: &str) -> String {
    wit_name.replace('-', "_")
}

impl Ty {
    /// True if WIT names the type and its parts.
    pub(crate) const fn has_parts(&self) -> bool {
        matches!(self, Self::Record(_) | Self::Variant(_) | Self::Enum(_) | Self::Flags(_))
    }
}

impl Int {
    /// The least value and the greatest.
    pub(crate) const fn range(self) -> (i128, i128) {
        match self {
            Self::S8 => (i8::MIN as i128, i8::MAX as i128),
            Self::U8 => (0, u8::MAX as i128),
            Self::S16 => (i16::MIN as i128, i16::MAX as i128),
            Self::U16 => (0, u16::MAX as i128),
            Self::S32 => (i32::MIN as i128, i32::MAX as i128),
            Self::U32 => (0, u32::MAX as i128),
            Self::S64 => (i64::MIN as i128, i64::MAX as i128),
            Self::U64 => (0, u64::MAX as i128),
        }
    }

    /// True if some of its values exceed the integers that JSON numbers carry everywhere (2^53).
    pub(crate) const fn is_wide(self) -> bool {
        matches!(self, Self::S64 | Self::U64)
    }
}

#[cfg(test)]
impl TyId {
    /// A number that identifies it.
    pub(crate) const fn number(self) -> usize {
        self.0
    }
}

impl Types {
    /// The type with this index, which must come from this collection. The index of another one
    /// counts as a boolean.
    pub(crate) fn get(&self, id: TyId) -> &Ty {
        self.nodes.get(id.0).unwrap_or(&Ty::Bool)
    }

    /// Adds a type of the engine's, with all its parts.
    ///
    /// # Errors
    /// [`Unsupported`] names the part that JSON cannot carry.
    pub(crate) fn add(&mut self, ty: &Type) -> Result<TyId, Unsupported> {
        self.add_at(ty, 0)
    }

    fn add_at(&mut self, ty: &Type, depth: usize) -> Result<TyId, Unsupported> {
        if let Some(id) = self.find(ty) {
            return Ok(id);
        }
        if depth >= DEPTH_MAX {
            return Err(Unsupported::TooDeep);
        }
        let made = self.convert(ty, depth + 1)?;
        let id = self.push(made)?;
        self.known.insert(format!("{ty:?}"), (ty.clone(), id));
        Ok(id)
    }

    /// The index of the engine's type, if it is in this collection.
    pub(crate) fn find(&self, ty: &Type) -> Option<TyId> {
        // Equal numbers in the same component, so this compares nothing else.
        self.known.get(&format!("{ty:?}")).filter(|(known, _)| known == ty).map(|(_, id)| *id)
    }

    pub(crate) fn push(&mut self, ty: Ty) -> Result<TyId, Unsupported> {
        if self.nodes.len() >= NODES_MAX {
            return Err(Unsupported::TooMany);
        }
        let id = TyId(self.nodes.len());
        let is_stream = matches!(ty, Ty::Stream(_) | Ty::Future(_));
        self.nodes.push(ty);
        let has_streams = is_stream || self.parts(id).into_iter().any(|part| self.has_streams(part));
        self.streams.push(has_streams);
        let height = |part: TyId| self.heights.get(part.0).copied().unwrap_or(DEPTH_MAX);
        let height = self.parts(id).into_iter().map(height).max().map_or(1, |highest| highest + 1);
        self.heights.push(height);
        if height > DEPTH_MAX { Err(Unsupported::TooDeep) } else { Ok(id) }
    }

    fn convert(&mut self, ty: &Type, depth: usize) -> Result<Ty, Unsupported> {
        Ok(match ty {
            Type::Bool => Ty::Bool,
            Type::S8 => Ty::Int(Int::S8),
            Type::U8 => Ty::Int(Int::U8),
            Type::S16 => Ty::Int(Int::S16),
            Type::U16 => Ty::Int(Int::U16),
            Type::S32 => Ty::Int(Int::S32),
            Type::U32 => Ty::Int(Int::U32),
            Type::S64 => Ty::Int(Int::S64),
            Type::U64 => Ty::Int(Int::U64),
            Type::Float32 => Ty::F32,
            Type::Float64 => Ty::F64,
            Type::Char => Ty::Char,
            Type::String => Ty::Text,
            Type::List(list) if list.ty() == Type::U8 => Ty::Bytes,
            Type::List(list) => Ty::List(self.add_at(&list.ty(), depth)?),
            Type::FixedLengthList(list) => Ty::FixedList(self.add_at(&list.ty(), depth)?, list.len()),
            Type::Tuple(tuple) => Ty::Tuple(tuple.types().map(|ty| self.add_at(&ty, depth)).collect::<Result<_, _>>()?),
            Type::Record(record) => {
                let fields = record.fields().map(|field| self.field(field.name, &field.ty, depth));
                Ty::Record(fields.collect::<Result<_, _>>()?)
            }
            Type::Variant(variant) => {
                let cases = variant.cases().map(|case| {
                    let payload = case.ty.map(|ty| self.add_at(&ty, depth)).transpose()?;
                    Ok(Case { name: case.name.to_owned(), payload })
                });
                Ty::Variant(cases.collect::<Result<_, _>>()?)
            }
            Type::Enum(labels) => Ty::Enum(labels.names().map(str::to_owned).collect()),
            Type::Flags(labels) => Ty::Flags(labels.names().map(str::to_owned).collect()),
            Type::Option(option) => Ty::Option(self.add_at(&option.ty(), depth)?),
            Type::Result(result) => {
                let ok = result.ok().map(|ty| self.add_at(&ty, depth)).transpose()?;
                let err = result.err().map(|ty| self.add_at(&ty, depth)).transpose()?;
                Ty::Result(ok, err)
            }
            Type::Own(_) | Type::Borrow(_) => return Err(Unsupported::Resource),
            Type::Stream(stream) => Ty::Stream(stream.ty().map(|ty| self.add_at(&ty, depth)).transpose()?),
            Type::Future(future) => Ty::Future(future.ty().map(|ty| self.add_at(&ty, depth)).transpose()?),
            Type::ErrorContext => return Err(Unsupported::ErrorContext),
            Type::Map(_) => return Err(Unsupported::Map),
        })
    }

    fn field(&mut self, wit_name: &str, ty: &Type, depth: usize) -> Result<TypedField, Unsupported> {
        let ty = self.add_at(ty, depth)?;
        Ok(TypedField { wit_name: wit_name.to_owned(), name: json_name(wit_name), ty })
    }

    /// A parameter of a function.
    pub(crate) fn parameter(&mut self, wit_name: &str, ty: &Type) -> Result<TypedField, Unsupported> {
        let field = self.field(wit_name, ty, 0)?;
        if self.has_streams(field.ty) { Err(Unsupported::Stream) } else { Ok(field) }
    }

    /// True if a value of this type has a stream or a future in it.
    pub(crate) fn has_streams(&self, id: TyId) -> bool {
        self.streams.get(id.0).copied().unwrap_or(false)
    }

    /// True for a stream of bytes, which is shown as one text.
    pub(crate) fn is_bytes(&self, id: TyId) -> bool {
        matches!(self.get(id), Ty::Stream(Some(item)) if *self.get(*item) == Ty::Int(Int::U8))
    }

    /// The types that a type is made of, one level down.
    pub(crate) fn parts(&self, id: TyId) -> Vec<TyId> {
        match self.get(id) {
            Ty::List(item) | Ty::FixedList(item, _) | Ty::Option(item) => vec![*item],
            Ty::Tuple(items) => items.clone(),
            Ty::Record(fields) => fields.iter().map(|field| field.ty).collect(),
            Ty::Variant(cases) => cases.iter().filter_map(|case| case.payload).collect(),
            Ty::Result(ok, err) => ok.iter().chain(err).copied().collect(),
            Ty::Stream(item) | Ty::Future(item) => item.iter().copied().collect(),
            _ => Vec::new(),
        }
    }

    /// True if a field of this type may be left out, and `null` stands for one of its values.
    pub(crate) fn is_optional(&self, id: TyId) -> bool {
        matches!(self.get(id), Ty::Option(_))
    }
}
