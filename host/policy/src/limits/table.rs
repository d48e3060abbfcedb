//! The table of a call's limits. Must not hold: anything but what each limit is called, counts, defaults to and may be.

use super::{Limit, Spec, Unit, asking, reach};
use crate::quantity::{Per, Rate};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const FUEL: Spec = Spec {
    key: "fuel",
    unit: Unit::Count,
    default: 10_000_000_000,
    min: 1,
    // An hour of computing, the longest deadline, burns less than a twentieth of this.
    max: 1_000_000_000_000_000,
    reason: "Computing budget of a call, about one unit per instruction: the same call burns the same fuel on every \
             machine. The default is about one second of computing.",
};

const DEADLINE: Spec = Spec {
    key: "deadline",
    unit: Unit::Millis,
    default: 30_000,
    min: 1,
    max: 3_600_000,
    reason: "Wall clock from the start of a call to its end, waits included. Clients commonly give up after 30 to 60 \
             seconds; what runs on after that works for nobody.",
};

const MEMORY: Spec = Spec {
    key: "memory",
    unit: Unit::Bytes,
    default: 64 * MIB,
    // One page of linear memory.
    min: 64 * KIB,
    // All that 32-bit addresses reach.
    max: 4 * GIB,
    reason: "All memories and tables of a call together. The default holds a Python or JavaScript interpreter (10 to \
             15 MiB) and its work. How many instances, memories and tables a call may have is fixed (64, 64 and 128): \
             the pool's slots have that shape, so no key could raise it.",
};

const OUTPUT: Spec = Spec {
    key: "output",
    unit: Unit::Bytes,
    default: MIB,
    min: 1,
    max: 64 * MIB,
    reason: "The result as it goes to the client. The default is more text than any model reads in one answer.",
};

const OUTPUT_ITEMS: Spec = Spec {
    key: "output_items",
    unit: Unit::Count,
    default: 256,
    min: 1,
    max: 10_000,
    reason: "Pieces of content in a result. Clients show each of them on its own.",
};

const LOG: Spec = Spec {
    key: "log",
    unit: Unit::Bytes,
    default: 64 * KIB,
    min: 0,
    max: 16 * MIB,
    reason: "Standard output, standard error and log lines of a call together. What exceeds it is dropped and counted.",
};

const HOST_DATA: Spec = Spec {
    key: "host_data",
    unit: Unit::Bytes,
    default: 16 * MIB,
    min: 4 * KIB,
    max: GIB,
    reason: "Strings and lists a guest hands to the host, its result included: each is copied into host memory, which \
             the limit on memory does not see.",
};

const HANDLES: Spec = Spec {
    key: "handles",
    unit: Unit::Count,
    default: 1_000,
    // A language runtime opens its standard streams and preopened folders before the tool runs.
    min: 16,
    max: 100_000,
    reason: "Open resources of a call (streams, timers, files, pollables), each of which costs the host memory; a timer \
             and the pollable that waits for it are two. It bounds what one poll waits on as well: each entry of the \
             list, even of the same pollable, is a handle while the poll lasts.",
};

const RANDOM: Spec = Spec {
    key: "random",
    unit: Unit::Bytes,
    default: 64 * KIB,
    // Enough to seed a hash table: without it no Rust or Python guest starts.
    min: 32,
    max: 64 * MIB,
    reason: "Random bytes of one request. The host makes them all at once, so one request must not be large.",
};

const ARGUMENTS: Spec = Spec {
    key: "arguments",
    unit: Unit::Bytes,
    default: MIB,
    // The text of an empty object.
    min: 2,
    max: 64 * MIB,
    reason: "The arguments of a call as JSON text: the guest gets a copy, and reads it on its budget. The limit on \
             lines of input bounds them before.",
};

const CONCURRENCY: Spec = Spec {
    key: "concurrency",
    unit: Unit::Count,
    default: 16,
    min: 1,
    max: 1_000,
    reason: "Calls of one tool that run at once; more wait in the queue. Keeps one tool from taking every sandbox.",
};

const QUEUE: Spec = Spec {
    key: "queue",
    unit: Unit::Count,
    default: 64,
    min: 0,
    max: 10_000,
    reason: "Calls of one tool that wait for a place to run; more are answered \"busy\" at once.",
};

const QUEUE_WAIT: Spec = Spec {
    key: "queue_wait",
    unit: Unit::Millis,
    default: 5_000,
    min: 1,
    max: 600_000,
    reason: "How long a call waits for a place to run before it is answered \"busy\".",
};

const RATE: Spec = Spec {
    key: "rate",
    unit: Unit::Rate,
    default: Rate { count: 600, per: Per::Minute }.number(),
    min: Rate { count: 1, per: Per::Hour }.number(),
    max: Rate::MOST.number(),
    reason: "Calls of one tool by one caller. All of them may come at once; then the allowance comes back evenly. A \
             model asks a few times a minute: the default only stops one that asks in a loop.",
};

const PROGRESS: Spec = Spec {
    key: "progress",
    unit: Unit::Rate,
    default: Rate { count: 20, per: Per::Second }.number(),
    min: Rate { count: 1, per: Per::Hour }.number(),
    max: Rate::MOST.number(),
    reason: "Progress reports of a call that reach the caller. What exceeds it is dropped silently, the last report \
             included: the result says that the work is done. Nobody reads more than the default.",
};

impl Limit {
    /// Every limit, in the order of reports.
    pub const ALL: [Self; 30] = [
        Self::Fuel,
        Self::Deadline,
        Self::Memory,
        Self::Output,
        Self::OutputItems,
        Self::Log,
        Self::HostData,
        Self::Handles,
        Self::Random,
        Self::Arguments,
        Self::Concurrency,
        Self::Queue,
        Self::QueueWait,
        Self::Rate,
        Self::Progress,
        Self::HttpRequests,
        Self::HttpConcurrency,
        Self::Egress,
        Self::Ingress,
        Self::HttpConnect,
        Self::HttpFirstByte,
        Self::HttpTime,
        Self::HttpHeaders,
        Self::HttpHeaderBytes,
        Self::Sockets,
        Self::Lookups,
        Self::Asks,
        Self::AskBytes,
        Self::AnswerBytes,
        Self::AskWait,
    ];

    /// Key, unit, default, bounds and reason.
    #[must_use]
    pub const fn spec(self) -> &'static Spec {
        match self {
            Self::Fuel => &FUEL,
            Self::Deadline => &DEADLINE,
            Self::Memory => &MEMORY,
            Self::Output => &OUTPUT,
            Self::OutputItems => &OUTPUT_ITEMS,
            Self::Log => &LOG,
            Self::HostData => &HOST_DATA,
            Self::Handles => &HANDLES,
            Self::Random => &RANDOM,
            Self::Arguments => &ARGUMENTS,
            Self::Concurrency => &CONCURRENCY,
            Self::Queue => &QUEUE,
            Self::QueueWait => &QUEUE_WAIT,
            Self::Rate => &RATE,
            Self::Progress => &PROGRESS,
            Self::HttpRequests => &reach::HTTP_REQUESTS,
            Self::HttpConcurrency => &reach::HTTP_CONCURRENCY,
            Self::Egress => &reach::EGRESS,
            Self::Ingress => &reach::INGRESS,
            Self::HttpConnect => &reach::HTTP_CONNECT,
            Self::HttpFirstByte => &reach::HTTP_FIRST_BYTE,
            Self::HttpTime => &reach::HTTP_TIME,
            Self::HttpHeaders => &reach::HTTP_HEADERS,
            Self::HttpHeaderBytes => &reach::HTTP_HEADER_BYTES,
            Self::Sockets => &reach::SOCKETS,
            Self::Lookups => &reach::LOOKUPS,
            Self::Asks => &asking::ASKS,
            Self::AskBytes => &asking::ASK_BYTES,
            Self::AnswerBytes => &asking::ANSWER_BYTES,
            Self::AskWait => &asking::ASK_WAIT,
        }
    }

    /// The limit a manifest key names.
    #[must_use]
    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.spec().key == key)
    }
}
