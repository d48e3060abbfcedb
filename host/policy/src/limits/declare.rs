//! The form in which limits are declared. One row gives the enum's variant, the field with its
//! accessor, and the manifest key with its bounds. The JSON Schema's property and the line of the
//! canonical form follow from it.
//!
//! ```text
//! limits! {
//!     /// One sentence on all of them.
//!     Limit, Limits;
//!     /// One sentence on the limit: for people who write manifests, and for people who read code.
//!     Memory memory_bytes: u64 = "memory" Bytes { min: 64 * KIB, default: 64 * MIB, max: 4 * GIB }, like ["128MiB"],
//!         "Why the default and the bounds are what they are.";
//! }
//! ```
//!
//! `Memory` is the variant, `memory_bytes` the accessor and `u64` its type; [`super::FromNumber`]
//! has the types. The examples are JSON.

/// One limit: `spec! { "quota" Bytes { min: 1, default: MIB, max: GIB }, "Why these numbers." }`.
macro_rules! spec {
    ($key:literal $unit:ident { min: $min:expr, default: $default:expr, max: $max:expr }, $reason:literal) => {
        $crate::limits::Spec {
            key: $key,
            unit: $crate::limits::Unit::$unit,
            default: $default,
            min: $min,
            max: $max,
            reason: $reason,
        }
    };
}
pub(crate) use spec;

macro_rules! limits {
    (
        $(#[doc = $about:literal])+
        $one:ident, $all:ident;
        $(
            $(#[doc = $doc:literal])+
            $variant:ident $field:ident: $type:ty =
                $key:literal $unit:ident $bounds:tt, like $examples:tt,
                $reason:literal;
        )+
    ) => {
        /// One limit. The order is that of reports and of the canonical form.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $one {
            $($(#[doc = $doc])+ $variant,)+
        }

        $(#[doc = $about])+
        ///
        /// Each value lies within the bounds of its [`Spec`](crate::Spec).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $all {
            $($field: u64,)+
        }

        impl $one {
            /// Every limit, in the order of reports.
            pub const ALL: [Self; [$($key),+].len()] = [$(Self::$variant),+];

            /// The keys of all of them.
            pub(crate) const KEYS: [$crate::table::Key; Self::ALL.len()] = [
                $($crate::table::Key {
                    name: $key,
                    about: &[$($doc),+],
                    required: false,
                    shape: $crate::table::Shape::Limit(Self::$variant.spec()),
                    facts: || serde_json::json!({ "examples": $examples }),
                }),+
            ];

            /// Key, unit, default, bounds and reason.
            #[must_use]
            pub const fn spec(self) -> &'static $crate::limits::Spec {
                match self {
                    $(Self::$variant => const { &$crate::limits::spec! { $key $unit $bounds, $reason } },)+
                }
            }

            /// The limit a manifest key names.
            #[must_use]
            pub fn from_key(key: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|limit| limit.spec().key == key)
            }
        }

        impl $all {
            /// One limit's value: a count, bytes, milliseconds or the number of a rate, as its unit
            /// says.
            #[must_use]
            pub fn get(&self, limit: $one) -> u64 {
                match limit {
                    $($one::$variant => self.$field,)+
                }
            }

            /// One limit's value as a manifest would write it: `10_000_000_000`, `64MiB`, `30s`.
            #[must_use]
            pub fn show(&self, limit: $one) -> String {
                limit.spec().show(self.get(limit))
            }

            /// A copy with one limit changed; `value` is in the limit's unit.
            ///
            /// # Errors
            /// [`OutOfRange`](crate::OutOfRange) where the value is outside the limit's bounds.
            pub fn with(mut self, limit: $one, value: u64) -> Result<Self, $crate::limits::OutOfRange> {
                self.set(limit, limit.spec().check(value)?);
                Ok(self)
            }

            $(
                $(#[doc = $doc])+
                #[must_use]
                #[inline]
                pub fn $field(&self) -> $type {
                    $crate::limits::FromNumber::from_number(self.$field)
                }
            )+

            /// Sets a value whose bounds the caller has checked.
            pub(crate) fn set(&mut self, limit: $one, value: u64) {
                match limit {
                    $($one::$variant => self.$field = value,)+
                }
            }

            /// The limits after a table that sets some of them.
            pub(crate) fn read(
                mut self,
                section: &$crate::read::Section<'_>,
                problems: &mut $crate::read::Problems,
            ) -> Self {
                for limit in $one::ALL {
                    if let Some(value) = section.number(limit.spec(), problems) {
                        self.set(limit, value);
                    }
                }
                self
            }
        }

        impl Default for $all {
            /// The built-in defaults.
            fn default() -> Self {
                Self { $($field: $one::$variant.spec().default,)+ }
            }
        }
    };
}
pub(crate) use limits;
