//! State between calls: how much. Must not hold: where it is kept.

use crate::diagnostic::Span;
use crate::limits::{Spec, Unit};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// What a component may keep between calls, in stores that are its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    pub(crate) quota_bytes: u64,
    pub(crate) entries: u64,
    pub(crate) value_bytes: u64,
    pub(crate) per_caller: bool,
    pub(crate) span: Span,
}

pub(crate) const QUOTA: Spec = Spec {
    key: "quota",
    unit: Unit::Bytes,
    default: MIB,
    min: KIB,
    max: 1 << 30,
    reason: "Keys and values of a component's stores together. The default is what a tool remembers, not what it stores.",
};

pub(crate) const ENTRIES: Spec = Spec {
    key: "entries",
    unit: Unit::Count,
    default: 1_000,
    min: 1,
    max: 1_000_000,
    reason: "Entries of a component's stores together: each costs the host more than its bytes.",
};

pub(crate) const VALUE: Spec = Spec {
    key: "value",
    unit: Unit::Bytes,
    default: 256 * KIB,
    min: 1,
    max: 16 * MIB,
    reason: "One value, which the host keeps in memory whole while it is read or written.",
};

impl KeyValue {
    /// The numbers of a `keyvalue` table, in the order of reports.
    pub const LIMITS: [&'static Spec; 3] = [&QUOTA, &ENTRIES, &VALUE];

    /// Bytes of all keys and values together.
    #[must_use]
    pub const fn quota_bytes(&self) -> u64 {
        self.quota_bytes
    }

    /// Entries of all stores together.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// Bytes of one value.
    #[must_use]
    pub const fn value_bytes(&self) -> u64 {
        self.value_bytes
    }

    /// Whether each caller has stores of its own, and the quotas for itself.
    #[must_use]
    pub const fn per_caller(&self) -> bool {
        self.per_caller
    }

    /// Where the manifest grants it.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span.clone()
    }
}
