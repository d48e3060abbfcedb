//! The form in which a plain section is declared: one row gives the key, its JSON Schema, the
//! field, its accessor, its default and the way it is read. Next to it, a shorter form for structs
//! that are not a section: fields with accessors.
//!
//! ```text
//! settings! {
//!     /// One sentence on the section.
//!     AuditPolicy AUDIT "Audit" {
//!         /// One sentence on the key: for people who write manifests, and for people who read code.
//!         keep: u64 => u64 = "keep" (Count { min: 0, default: 8, max: 1_000 }, "Why these numbers."), {"examples": [30]};
//!         /// A key that is not a number names the function that reads it, and its default.
//!         file: Option<String> => Option<&str> = "file" (Text, paths::host_path, else None), {"minLength": 1};
//!     }
//!     and HttpLimit HttpLimits;              // limits of the section that are declared elsewhere
//!     other names { "path" => "file" }
//! }
//! ```
//!
//! A row is: field, its type, the accessor's type, the key, its value in parentheses, and its facts
//! for the JSON Schema. [`crate::table`] explains the shapes and the facts.

use std::sync::Arc;

/// An accessor's view of a field: a reference, or a copy.
pub(crate) trait Lend<'a, T> {
    fn lend(&'a self) -> T;
}

impl<'a> Lend<'a, &'a str> for String {
    #[inline]
    fn lend(&'a self) -> &'a str {
        self
    }
}

impl<'a> Lend<'a, Option<&'a str>> for Option<String> {
    #[inline]
    fn lend(&'a self) -> Option<&'a str> {
        self.as_deref()
    }
}

impl<'a, T> Lend<'a, Option<&'a T>> for Option<T> {
    #[inline]
    fn lend(&'a self) -> Option<&'a T> {
        self.as_ref()
    }
}

impl<'a, T> Lend<'a, &'a [T]> for Vec<T> {
    #[inline]
    fn lend(&'a self) -> &'a [T] {
        self
    }
}

impl<'a, T> Lend<'a, &'a [T]> for Arc<[T]> {
    #[inline]
    fn lend(&'a self) -> &'a [T] {
        self
    }
}

impl<'a, T> Lend<'a, &'a T> for T {
    #[inline]
    fn lend(&'a self) -> &'a T {
        self
    }
}

impl<T: Clone> Lend<'_, T> for T {
    #[inline]
    fn lend(&self) -> T {
        self.clone()
    }
}

/// Declares a struct whose private fields are read through accessors of the same names. `field:
/// String => &str` has one that gives a `&str`; a field without an arrow has none. The accessor has
/// the field's documentation.
macro_rules! accessors {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $vis:vis $field:ident: $type:ty $(=> $given:ty)?,)+
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $($vis $field: $type,)+
        }

        impl $name {
            $($crate::settings::accessors! { @one [$(#[$doc])*] $field $(=> $given)? })+
        }
    };
    (@one [$($doc:tt)*] $field:ident => $given:ty) => {
        $($doc)*
        #[must_use]
        #[inline]
        pub fn $field(&self) -> $given {
            $crate::settings::Lend::lend(&self.$field)
        }
    };
    (@one [$($doc:tt)*] $field:ident) => {};
}
pub(crate) use accessors;

macro_rules! settings {
    (
        $(#[doc = $about:literal])+
        $section:ident $table:ident $name:literal {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $type:ty => $given:ty = $key:literal $value:tt, $facts:tt;
            )+
        }
        $(and $limit:ident $limits:ident;)?
        $(other names $others:tt)?
    ) => {
        $crate::table::table! {
            $(#[doc = $about])+
            pub(crate) $table $name {
                $($(#[doc = $doc])+ $key: $crate::settings::settings!(@shape $key $value), $facts;)+
            }
            $(and $crate::table::Keys::These(&$limit::KEYS);)?
            $(other names $others)?
        }

        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $section {
            $(pub(crate) $field: $type,)+
            $(pub(crate) limits: $limits,)?
        }

        impl $section {
            /// The settings of a table; the default of each key that is missing or wrong.
            pub(crate) fn read(
                section: Option<&$crate::read::Section<'_>>,
                problems: &mut $crate::read::Problems,
            ) -> Self {
                if let Some(section) = section {
                    section.check_keys(&$table, problems);
                }
                Self {
                    $($field: {
                        let entry = section.and_then(|section| section.get($key));
                        $crate::settings::settings!(@read entry problems $key $value)
                    },)+
                    $(limits: match section {
                        Some(section) => $limits::default().read(section, problems),
                        None => $limits::default(),
                    },)?
                }
            }

            $(
                $(#[doc = $doc])+
                #[must_use]
                #[inline]
                pub fn $field(&self) -> $given {
                    $crate::settings::Lend::lend(&self.$field)
                }
            )+

            $(
                /// The limits of the section.
                #[must_use]
                pub const fn limits(&self) -> &$limits {
                    &self.limits
                }
            )?
        }

        impl Default for $section {
            /// The settings of an empty table.
            fn default() -> Self {
                Self::read(None, &mut $crate::read::Problems::default())
            }
        }
    };
    (@shape $key:literal ($unit:ident { $($bounds:tt)+ }, $reason:literal)) => {
        Limit(const { &$crate::limits::spec! { $key $unit { $($bounds)+ }, $reason } })
    };
    (@shape $key:literal ($shape:expr, $read:expr, else $default:expr)) => {
        $shape
    };
    (@read $entry:ident $problems:ident $key:literal ($unit:ident { $($bounds:tt)+ }, $reason:literal)) => {{
        let spec = const { &$crate::limits::spec! { $key $unit { $($bounds)+ }, $reason } };
        let number = $entry.and_then(|entry| $crate::read::limits::value(&entry, spec, $problems));
        $crate::limits::FromNumber::from_number(number.unwrap_or(spec.default))
    }};
    (@read $entry:ident $problems:ident $key:literal ($shape:expr, $read:expr, else $default:expr)) => {{
        let read: Option<_> = $entry.and_then(|entry| $read(&entry, $problems));
        match read {
            Some(value) => value.into(),
            None => $default,
        }
    }};
}
pub(crate) use settings;
