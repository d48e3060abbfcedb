//! What `[audit]` comes to. Must not hold: records, or where they go.

use crate::limits::{Spec, Unit};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// How calls, denials and loads are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditPolicy {
    pub(crate) file: Option<String>,
    pub(crate) rotate_bytes: u64,
    pub(crate) keep: u64,
    pub(crate) fsync: Fsync,
    pub(crate) required: bool,
    pub(crate) arguments: AuditArguments,
}

/// When a record is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// When the operating system writes it, within seconds: a crash of the process loses none, one of the machine may.
    #[default]
    Never,
    /// Before the call goes on.
    Always,
}

/// What is recorded of a call's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditArguments {
    /// Their digest and length.
    #[default]
    Digest,
    /// Their text besides, clipped, without the values of secrets.
    Values,
}

pub(crate) const ROTATE: Spec = Spec {
    key: "rotate",
    unit: Unit::Bytes,
    default: 64 * MIB,
    min: 64 * KIB,
    max: 64 * GIB,
    reason: "One file of the audit; the next begins when it is full. About a hundred thousand calls.",
};

pub(crate) const KEEP: Spec = Spec {
    key: "keep",
    unit: Unit::Count,
    default: 8,
    min: 0,
    max: 1_000,
    reason: "Full files that are kept beside the one being written; the oldest is removed.",
};

impl AuditPolicy {
    /// The numbers of `[audit]`, in the order of reports.
    pub const LIMITS: [&'static Spec; 2] = [&ROTATE, &KEEP];

    /// The file, relative to the manifest; `None`: no audit unless the command line names a file.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Bytes of one file, after which the next begins: 64 MiB by default.
    #[must_use]
    pub const fn rotate_bytes(&self) -> u64 {
        self.rotate_bytes
    }

    /// Full files kept beside the one being written: 8 by default.
    #[must_use]
    pub const fn keep(&self) -> u64 {
        self.keep
    }

    /// When a record is on the disk; [`Fsync::Never`] by default.
    #[must_use]
    pub const fn fsync(&self) -> Fsync {
        self.fsync
    }

    /// Whether a call is refused that cannot be recorded; true by default.
    #[must_use]
    pub const fn required(&self) -> bool {
        self.required
    }

    /// What is recorded of arguments; [`AuditArguments::Digest`] by default.
    #[must_use]
    pub const fn arguments(&self) -> AuditArguments {
        self.arguments
    }
}

impl Default for AuditPolicy {
    /// What holds where `[audit]` says nothing.
    fn default() -> Self {
        Self {
            file: None,
            rotate_bytes: ROTATE.default,
            keep: KEEP.default,
            fsync: Fsync::default(),
            required: true,
            arguments: AuditArguments::default(),
        }
    }
}
