//! The form in which a table of the manifest is declared: its keys, the shape of each value, and
//! names that people try instead. One declaration provides the known keys, the JSON Schema and
//! thereby the reference page.
//!
//! ```text
//! table! {
//!     /// One sentence on the table.
//!     pub(crate) NAME "SchemaName" {
//!         /// One sentence on the key.
//!         "key" required: Shape::Text, {"minLength": 1, "examples": ["data"]};
//!     }
//!     and Keys::These(&Limit::KEYS);          // keys declared elsewhere
//!     {                                      // further keys behind them
//!         "other": Shape::Flag, {};
//!     }
//!     later { "rate" }                       // keys that a later version will read
//!     other names { "folder" => "key" }      // for "did you mean"
//! }
//! ```
//!
//! `required`, `and`, `later` and `other names` may be left out. The facts in braces go into the
//! JSON Schema as they are.

use serde_json::Value;

use crate::limits::Spec;
use crate::rights::{ALL, Right};

/// One kind of table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name among the definitions of the JSON Schema.
    pub(crate) name: &'static str,
    /// The lines of its description.
    pub(crate) about: &'static [&'static str],
    /// Its keys, in the order of the reference.
    pub(crate) groups: &'static [Keys],
    /// Keys that are designed but not enforced yet. They are refused with a specific message, so
    /// that nobody relies on them.
    pub(crate) later: &'static [&'static str],
    /// Other words that people try, each with the right key.
    pub(crate) other_names: &'static [(&'static str, &'static str)],
}

/// Keys of a table that are declared together.
#[derive(Debug)]
pub(crate) enum Keys {
    /// Those of one declaration.
    These(&'static [Key]),
    /// Those that each right has in such a table.
    OfRights(fn(&Right) -> &'static [Key]),
}

/// One key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// The lines of its description.
    pub(crate) about: &'static [&'static str],
    pub(crate) required: bool,
    pub(crate) shape: Shape,
    /// Further keywords of JSON Schema: lengths, patterns, a default, examples.
    pub(crate) facts: fn() -> Value,
}

#[derive(Debug)]
pub(crate) enum Shape {
    /// A string.
    Text,
    /// True or false.
    Flag,
    /// A number that may have a fraction.
    Fraction,
    /// A whole number from 0 to this one.
    UpTo(u64),
    /// One of these strings.
    Words(&'static [&'static str]),
    /// A list of values of one shape.
    List(&'static Shape),
    /// A table with any names, its values of one shape.
    Named(&'static Shape),
    /// A table with any names and values.
    Any,
    /// A number of things, bytes, milliseconds, or a rate, with its bounds and its default.
    Limit(&'static Spec),
    /// A limit that is unset if the key is missing.
    Optional(&'static Spec),
    /// A limit whose greatest value and default are another table's value.
    Within(&'static Spec),
    /// A table that is declared.
    Table(&'static Table),
    /// A value of one of these shapes, each with its description, if it has one.
    Either(&'static [(Shape, &'static str)]),
    /// A shape that has a name among the definitions.
    Definition(&'static Definition),
}

/// A shape with a name and a description.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) shape: Shape,
}

/// A string, or a list of strings.
pub(crate) const ONE_OR_SEVERAL: Shape =
    Shape::Either(&[(Shape::Text, "One."), (Shape::List(&Shape::Text), "Several.")]);

impl Table {
    /// Every key, in the order of the reference.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static Key> + Clone + use<> {
        let mut keys: Vec<&'static Key> = Vec::new();
        for group in self.groups {
            match group {
                Keys::These(these) => keys.extend(*these),
                Keys::OfRights(of) => ALL.iter().for_each(|right| keys.extend(of(right))),
            }
        }
        keys.into_iter()
    }

    /// Every key's name.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.keys().map(|key| key.name)
    }
}

/// Declares a [`Table`]; the module's documentation shows how.
macro_rules! table {
    (
        $(#[doc = $about:literal])+
        $vis:vis $table:ident $name:literal { $($rows:tt)* }
        $(and $group:expr; $({ $($further:tt)* })?)*
        $(later { $($later:literal),+ })?
        $(other names { $($other:literal => $meant:literal),+ $(,)? })?
    ) => {
        $(#[doc = $about])+
        $vis static $table: $crate::table::Table = $crate::table::Table {
            name: $name,
            about: &[$($about),+],
            groups: &[
                $crate::table::Keys::These($crate::table::keys!($($rows)*)),
                $($group, $($crate::table::Keys::These($crate::table::keys!($($further)*)),)?)*
            ],
            later: &[$($($later),+)?],
            other_names: &[$($(($other, $meant)),+)?],
        };
    };
}
pub(crate) use table;

/// Declares keys apart from their table.
macro_rules! keys {
    ($($(#[doc = $doc:literal])+ $key:literal $($required:ident)?: $shape:expr, $facts:tt;)*) => {
        const { &[$($crate::table::Key {
            name: $key,
            about: &[$($doc),+],
            required: $crate::table::is_there(&[$(stringify!($required))?]),
            shape: {
                use $crate::table::Shape::*;
                $shape
            },
            facts: || serde_json::json!($facts),
        }),*] }
    };
}
pub(crate) use keys;

/// True if an optional part of a declaration is present.
pub(crate) const fn is_there(part: &[&str]) -> bool {
    !part.is_empty()
}
