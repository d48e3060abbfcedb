//! What `[server]` comes to, and the limits that belong to no component: those of a connection and of the process. Must
//! not hold: how they are read, or how they are enforced.

use std::net::SocketAddr;

use crate::grants::SecretSource;
use crate::limits::{Spec, Unit};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// What the server says of itself, and the bounds of a connection and of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) page_size: usize,
    pub(crate) line_bytes_max: usize,
    pub(crate) in_flight_max: usize,
    pub(crate) pending_max: usize,
    pub(crate) calls: usize,
    pub(crate) stack_bytes: usize,
    pub(crate) prewarm_memory_bytes: u64,
    pub(crate) dns: Vec<SocketAddr>,
    pub(crate) state: String,
    pub(crate) narrow_cancels: bool,
    pub(crate) state_key: Option<SecretSource>,
}

/// The folder of what tools keep between calls, where the manifest names none.
pub(crate) const STATE_DEFAULT: &str = ".toolcell";

pub(crate) const PAGE_SIZE: Spec = Spec {
    key: "page_size",
    unit: Unit::Count,
    default: 500,
    min: 1,
    max: 1_000,
    reason: "Tools on one page of a listing. Nearly every list fits the default; more than 1,000 definitions make frames \
             that clients refuse.",
};

pub(crate) const LINE_MAX: Spec = Spec {
    key: "line_max",
    unit: Unit::Bytes,
    default: 16 * MIB,
    // Any request without arguments.
    min: 4 * KIB,
    max: 256 * MIB,
    reason: "One line of input, which the process keeps in memory whole. The default holds the largest arguments many \
             times over.",
};

pub(crate) const IN_FLIGHT_MAX: Spec = Spec {
    key: "in_flight_max",
    unit: Unit::Count,
    default: 64,
    min: 1,
    max: 10_000,
    reason: "Calls of one connection that run at once.",
};

pub(crate) const PENDING_MAX: Spec = Spec {
    key: "pending_max",
    unit: Unit::Count,
    default: 1_024,
    min: 0,
    max: 100_000,
    reason: "Calls of one connection that are read and wait to run; then reading stops until one is done.",
};

pub(crate) const CALLS: Spec = Spec {
    key: "calls",
    unit: Unit::Count,
    default: 256,
    min: 1,
    max: 4_096,
    reason: "Calls of all tools that run at once in the process: sixteen of each of sixteen tools. Each holds a stack and \
             a place in the pool of instances, 4 GiB of address space or more; the most is an eighth of what there is.",
};

pub(crate) const STACK: Spec = Spec {
    key: "stack",
    unit: Unit::Bytes,
    default: 512 * KIB,
    min: 64 * KIB,
    // Half of the stack that a call's host functions run on as well.
    max: MIB,
    reason: "WebAssembly stack of each call: what runs over it ends in a trap of its own. It belongs to the engine, so \
             all tools have the same.",
};

pub(crate) const PREWARM_MEMORY: Spec = Spec {
    key: "prewarm_memory",
    unit: Unit::Bytes,
    default: 64 * MIB,
    // Less holds hardly one instance; `prewarm = 0` keeps none.
    min: MIB,
    max: 64 * GIB,
    reason: "Memory of all instances that are kept ready, of all tools together: an instance that would exceed it is \
             not made ahead of its call. The default is what one call may have.",
};

impl Server {
    /// The limits that hold for a connection or the whole process, in the order of reports.
    pub const LIMITS: [&'static Spec; 7] =
        [&PAGE_SIZE, &LINE_MAX, &IN_FLIGHT_MAX, &PENDING_MAX, &CALLS, &STACK, &PREWARM_MEMORY];

    /// The name in the protocol's `serverInfo`; `toolcell` by default.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A name for people.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// What the model should know before it uses the tools.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Tools on one page of a listing.
    #[must_use]
    pub const fn page_size(&self) -> usize {
        self.page_size
    }

    /// Bytes of one line of input.
    #[must_use]
    pub const fn line_bytes_max(&self) -> usize {
        self.line_bytes_max
    }

    /// Calls of one connection that run at once.
    #[must_use]
    pub const fn in_flight_max(&self) -> usize {
        self.in_flight_max
    }

    /// Calls of one connection that are read and wait; then reading stops until one is done.
    #[must_use]
    pub const fn pending_max(&self) -> usize {
        self.pending_max
    }

    /// Calls of all tools that run at once in the process.
    #[must_use]
    pub const fn calls(&self) -> usize {
        self.calls
    }

    /// WebAssembly stack of each call, in bytes.
    #[must_use]
    pub const fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    /// Memory that all instances kept ready have together, in bytes: 1 MiB to 64 GiB, 64 MiB by default. See
    /// [`crate::ComponentPolicy::prewarm`].
    #[must_use]
    pub const fn prewarm_memory_bytes(&self) -> u64 {
        self.prewarm_memory_bytes
    }

    /// The name servers that look names up for tools; empty: the system's, and its table of hosts.
    #[must_use]
    pub fn dns(&self) -> &[SocketAddr] {
        &self.dns
    }

    /// The folder of what tools keep between calls, relative to the manifest; `.toolcell` by default.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }
}

impl Server {
    /// Where the key is that seals what clients hand back between two rounds of a call; `None`: made at the start.
    #[must_use]
    pub const fn state_key(&self) -> Option<&SecretSource> {
        self.state_key.as_ref()
    }

    /// Whether calls end whose tool may reach less after a reload; true by default.
    #[must_use]
    pub const fn narrow_cancels(&self) -> bool {
        self.narrow_cancels
    }
}

impl Default for Server {
    /// What holds where `[server]` says nothing.
    fn default() -> Self {
        let default = |spec: &Spec| usize::try_from(spec.default).unwrap_or(usize::MAX);
        Self {
            name: "toolcell".to_owned(),
            title: None,
            instructions: None,
            page_size: default(&PAGE_SIZE),
            line_bytes_max: default(&LINE_MAX),
            in_flight_max: default(&IN_FLIGHT_MAX),
            pending_max: default(&PENDING_MAX),
            calls: default(&CALLS),
            stack_bytes: default(&STACK),
            prewarm_memory_bytes: PREWARM_MEMORY.default,
            dns: Vec::new(),
            state: STATE_DEFAULT.to_owned(),
            narrow_cancels: true,
            state_key: None,
        }
    }
}
