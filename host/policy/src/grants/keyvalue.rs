//! State between calls: how much.

use crate::quantity::{GIB, KIB, MIB};
use crate::read::Entry;
use crate::settings::settings;

settings! {
    /// The state that a component may keep between calls, in its own stores.
    KeyValue KEYVALUE "KeyValue" {
        /// Keys and values together.
        quota_bytes: u64 => u64 = "quota" (
            Bytes { min: KIB, default: MIB, max: GIB },
            "The default is what a tool remembers, not what it stores."
        ), {"examples": ["64KiB"]};
        /// Entries of all stores together.
        entries: u64 => u64 = "entries" (
            Count { min: 1, default: 1_000, max: 1_000_000 },
            "Each costs the host more than its bytes."
        ), {"examples": [100]};
        /// One value.
        value_bytes: u64 => u64 = "value" (
            Bytes { min: 1, default: 256 * KIB, max: 16 * MIB },
            "The host keeps it in memory whole while it is read or written."
        ), {"examples": ["4KiB"]};
        /// True gives each caller stores of its own, and the quotas for itself.
        per_caller: bool => bool = "per_caller" (Flag, Entry::boolean, else false),
            {"default": false, "examples": [true]};
    }
    other names { "size" => "quota", "keys" => "entries", "value_max" => "value" }
}
