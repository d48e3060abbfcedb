//! What loading a component may take: the limits that hold before any call, with key, unit, default, bounds and reason.
//! Must not hold: the limits of a call, or how a limit is enforced.

use std::time::Duration;

use super::{OutOfRange, Spec, Unit, count};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// One limit of loading. The order is that of reports and of the canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadLimit {
    /// The component's file.
    ComponentSize,
    /// Making native code of it.
    CompileTime,
    /// Tools it lists.
    Tools,
    /// What it says of one tool.
    Definition,
}

/// Every limit of loading one component, resolved: built-in default < `defaults.load` < the component's.
///
/// Each value lies within the bounds of its [`Spec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadLimits {
    component_bytes: u64,
    compile_ms: u64,
    tools: u64,
    definition_bytes: u64,
}

const COMPONENT_SIZE: Spec = Spec {
    key: "component_size",
    unit: Unit::Bytes,
    default: 128 * MIB,
    min: KIB,
    max: 128 * MIB,
    reason: "The component's file: compiling takes memory and time in proportion. The largest language runtime \
             measured (CPython) makes 18 MB.",
};

const COMPILE_TIME: Spec = Spec {
    key: "compile_time",
    unit: Unit::Millis,
    default: 120_000,
    min: 1,
    max: 3_600_000,
    reason: "Wall clock of making native code of the component, about a second per megabyte. A compiler cannot be \
             stopped: past this the component is refused, and the thread's work is thrown away when it is done.",
};

const TOOLS: Spec = Spec {
    key: "tools",
    unit: Unit::Count,
    default: 1_000,
    min: 1,
    max: 10_000,
    reason: "Tools of one component. A model cannot choose among more, and each costs a compiled schema.",
};

const DEFINITION: Spec = Spec {
    key: "definition",
    unit: Unit::Bytes,
    default: 256 * KIB,
    min: 64,
    max: 4 * MIB,
    reason: "All that a component says of one tool: name, title, description, schemas, icons and meta. Every client \
             lists it and every model reads it. The default holds two of the largest schemas there may be.",
};

impl LoadLimit {
    /// Every limit, in the order of reports.
    pub const ALL: [Self; 4] = [Self::ComponentSize, Self::CompileTime, Self::Tools, Self::Definition];

    /// Key, unit, default, bounds and reason.
    #[must_use]
    pub const fn spec(self) -> &'static Spec {
        match self {
            Self::ComponentSize => &COMPONENT_SIZE,
            Self::CompileTime => &COMPILE_TIME,
            Self::Tools => &TOOLS,
            Self::Definition => &DEFINITION,
        }
    }

    /// The limit a manifest key names.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.spec().key == key)
    }
}

impl LoadLimits {
    /// One limit's value: a count, bytes or milliseconds, as its [`Spec::unit`] says.
    #[must_use]
    pub fn get(&self, limit: LoadLimit) -> u64 {
        match limit {
            LoadLimit::ComponentSize => self.component_bytes,
            LoadLimit::CompileTime => self.compile_ms,
            LoadLimit::Tools => self.tools,
            LoadLimit::Definition => self.definition_bytes,
        }
    }

    /// One limit's value as a manifest would write it: `128MiB`, `2m`, `1_000`.
    #[must_use]
    pub fn show(&self, limit: LoadLimit) -> String {
        limit.spec().show(self.get(limit))
    }

    /// The same limits with one of them changed; `value` is in the unit of its [`Spec`].
    ///
    /// # Errors
    /// [`OutOfRange`] where the value is outside the limit's bounds.
    pub fn with(mut self, limit: LoadLimit, value: u64) -> Result<Self, OutOfRange> {
        self.set(limit, limit.spec().check(value)?);
        Ok(self)
    }

    /// The component's file, in bytes.
    #[must_use]
    pub const fn component_bytes(&self) -> u64 {
        self.component_bytes
    }

    /// Wall clock of compiling it.
    #[must_use]
    pub const fn compile_time(&self) -> Duration {
        Duration::from_millis(self.compile_ms)
    }

    /// Tools it may list.
    #[must_use]
    pub fn tools(&self) -> usize {
        count(self.tools)
    }

    /// What it may say of one tool, in bytes.
    #[must_use]
    pub fn definition_bytes(&self) -> usize {
        count(self.definition_bytes)
    }

    /// Sets a value whose bounds the caller has checked.
    pub(crate) fn set(&mut self, limit: LoadLimit, value: u64) {
        *match limit {
            LoadLimit::ComponentSize => &mut self.component_bytes,
            LoadLimit::CompileTime => &mut self.compile_ms,
            LoadLimit::Tools => &mut self.tools,
            LoadLimit::Definition => &mut self.definition_bytes,
        } = value;
    }
}

impl Default for LoadLimits {
    /// The built-in defaults.
    fn default() -> Self {
        Self {
            component_bytes: COMPONENT_SIZE.default,
            compile_ms: COMPILE_TIME.default,
            tools: TOOLS.default,
            definition_bytes: DEFINITION.default,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn defaults_lie_within_their_bounds_and_have_a_reason() {
        for limit in LoadLimit::ALL {
            let spec = limit.spec();
            assert!(spec.min <= spec.default && spec.default <= spec.max, "{}", spec.key);
            assert!(!spec.reason.is_empty(), "{}", spec.key);
            assert_eq!(LoadLimits::default().get(limit), spec.default, "{}", spec.key);
            assert_eq!(LoadLimit::from_key(spec.key), Some(limit));
        }
        assert_eq!(LoadLimit::from_key("tool"), None);
    }

    #[test]
    fn each_limit_is_set_alone_and_only_within_its_bounds() {
        for limit in LoadLimit::ALL {
            let spec = limit.spec();
            let changed = LoadLimits::default().with(limit, spec.min).unwrap();
            for other in LoadLimit::ALL {
                let expected = if other == limit { spec.min } else { other.spec().default };
                assert_eq!(changed.get(other), expected, "{} after {}", other.spec().key, spec.key);
            }
            for outside in [spec.min - 1, spec.max + 1] {
                assert_eq!(changed.with(limit, outside), Err(OutOfRange { spec, value: outside }), "{}", spec.key);
            }
        }
    }

    #[test]
    fn getters_give_the_documented_units() {
        let limits = LoadLimits::default();
        assert_eq!(limits.component_bytes(), 128 << 20);
        assert_eq!(limits.compile_time(), Duration::from_secs(120));
        assert_eq!(limits.tools(), 1_000);
        assert_eq!(limits.definition_bytes(), 256 << 10);
        assert_eq!(limits.show(LoadLimit::CompileTime), "2m");
    }
}
