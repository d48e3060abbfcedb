//! The limits of a call.

use std::time::Duration;

use super::limits;
use crate::quantity::{DAY, GIB, HOUR, KIB, MIB, MINUTE, Per, Rate, SECOND};
use crate::table::{Keys, table};

table! {
    /// Limits of a call. The most specific wins: built-in default, `defaults.limits`, the
    /// component's, the tool's.
    pub(crate) LIMITS "Limits" {}
    and Keys::These(&Limit::KEYS);
    later { "host_calls" }
    other names {
        "timeout" => "deadline", "time" => "deadline", "duration" => "deadline", "cpu" => "fuel", "gas" => "fuel",
        "ram" => "memory", "mem" => "memory", "logs" => "log", "pollables" => "handles", "resources" => "handles",
        "upload" => "egress", "download" => "ingress", "requests" => "http_requests", "connections" => "sockets",
    }
}

limits! {
    /// Every limit of one tool, resolved: built-in default < `defaults.limits` < the component's <
    /// the tool's.
    Limit, Limits;
    /// Computing budget, about one unit per instruction.
    Fuel fuel: u64 = "fuel" Count { min: 1, default: 10_000_000_000, max: 1_000_000_000_000_000 },
        like [500_000_000],
        "The same call burns the same fuel on every machine. The default is about one second of computing. An hour \
         of it, the longest deadline, burns less than a twentieth of the most.";
    /// Wall clock from start to end, waits included.
    Deadline deadline: Duration = "deadline" Millis { min: 1, default: 30 * SECOND, max: HOUR }, like ["5s"],
        "Clients commonly give up after 30 to 60 seconds. Work past that reaches nobody.";
    /// Wall clock of a call that may become a task for its client, in place of `deadline`.
    TaskDeadline task_deadline: Duration = "task_deadline" Millis { min: 1, default: 10 * MINUTE, max: DAY },
        like ["1h"],
        "Nobody waits at a connection for it. The default is longer than any client waits for an answer. A task is \
         forgotten with its `ttl`, however long it runs.";
    /// All memories and tables together. A call has at most 64 instances, 64 memories and 128
    /// tables.
    Memory memory_bytes: u64 = "memory" Bytes { min: 64 * KIB, default: 64 * MIB, max: 4 * GIB }, like ["128MiB"],
        "The default holds a Python or JavaScript interpreter (10 to 15 MiB) and its work. The least is one page of \
         linear memory, the most all that 32-bit addresses reach. No key raises the number of instances, memories \
         and tables, because the pool's slots have that shape.";
    /// The result's texts, as they are before JSON escapes them, and its bytes as base64.
    Output output_bytes: u64 = "output" Bytes { min: 1, default: MIB, max: 64 * MIB }, like ["256KiB"],
        "The default is more text than any model reads in one answer.";
    /// Pieces of content in the result.
    OutputItems output_items: usize = "output_items" Count { min: 1, default: 256, max: 10_000 }, like [16],
        "Clients show each of them on its own.";
    /// Standard output, standard error and log lines together. A log line counts for 32 bytes more
    /// than its text. More is dropped.
    Log log_bytes: u64 = "log" Bytes { min: 0, default: 64 * KIB, max: 16 * MIB }, like ["1MiB"],
        "The host keeps the text in memory until the call ends. Dropped bytes are counted.";
    /// Strings and lists handed to the host, the result included.
    HostData host_data_bytes: u64 = "host_data" Bytes { min: 4 * KIB, default: 16 * MIB, max: GIB },
        like ["32MiB"],
        "Each is copied into host memory, which the limit on memory does not see.";
    /// Open resources (streams, timers, files, pollables).
    Handles handles: usize = "handles" Count { min: 16, default: 1_000, max: 100_000 }, like [100],
        "Each costs the host memory; a timer and the pollable that waits for it are two. The limit also bounds one \
         poll: each entry of its list, even of the same pollable, is a handle while the poll lasts. The least lets a \
         language runtime open its standard streams and preopened folders.";
    /// Random bytes of one request.
    Random random_bytes: u64 = "random" Bytes { min: 32, default: 64 * KIB, max: 64 * MIB }, like ["4KiB"],
        "The host makes them all at once, so one request must not be large. The least seeds a hash table: without it \
         no Rust or Python guest starts.";
    /// The arguments as JSON text.
    Arguments arguments_bytes: u64 = "arguments" Bytes { min: 2, default: MIB, max: 64 * MIB }, like ["64KiB"],
        "The guest gets a copy and reads it on its budget. The limit on lines of input bounds them first. The least \
         is the text of an empty object.";
    /// Calls of one tool that run at once, in each replica.
    Concurrency concurrency: usize = "concurrency" Count { min: 1, default: 16, max: 1_000 }, like [4],
        "Further calls wait in the queue. Keeps one tool from taking every sandbox.";
    /// Calls of one tool that run at once over all replicas that share state.
    ConcurrencyShared concurrency_shared: usize = "concurrency_shared"
        Count { min: 1, default: CONCURRENCY_SHARED_MOST, max: CONCURRENCY_SHARED_MOST }, like [20],
        "The default, which is the most, bounds nothing: more replicas run more calls, and none asks the server for a \
         place. It is for what a tool uses that replicas do not add to, such as a database.";
    /// Queued calls of one tool; more are answered "busy".
    Queue queue: usize = "queue" Count { min: 0, default: 64, max: 10_000 }, like [0],
        "Each queued call holds its arguments in memory.";
    /// The longest wait of a queued call before it is answered "busy".
    QueueWait queue_wait: Duration = "queue_wait" Millis { min: 1, default: 5 * SECOND, max: 10 * MINUTE },
        like ["500ms"],
        "A client learns of an overloaded tool before it gives up.";
    /// Calls of one tool by one caller. All of them may come at once; then the allowance refills
    /// evenly.
    Rate rate: Rate = "rate" Rate { min: Rate::LEAST.number(), default: PER_MINUTE_600, max: Rate::MOST.number() },
        like ["10/s", "5/h"],
        "A model asks a few times a minute. The default only stops one that asks in a loop.";
    /// Progress reports of one call that reach the caller. More are dropped silently, the last
    /// report included.
    Progress progress: Rate =
        "progress" Rate { min: Rate::LEAST.number(), default: PER_SECOND_20, max: Rate::MOST.number() }, like ["5/s"],
        "Nobody reads more than the default. A dropped last report costs nothing: the result says that the work is \
         done.";
    /// Completions that one caller asks for, of all prompts and addresses of a component. The
    /// manifest's own prompts count together.
    CompletionRate completion_rate: Rate =
        "completion_rate" Rate { min: Rate::LEAST.number(), default: PER_SECOND_20, max: Rate::MOST.number() },
        like ["5/s"],
        "Clients ask at each keystroke, and nobody types faster than the default. Each may run the component.";
    /// HTTP requests.
    HttpRequests http_requests: usize = "http_requests" Count { min: 0, default: 64, max: 10_000 }, like [4],
        "A tool that answers a question asks a few times. The default stops one that crawls. Denied requests do not \
         count.";
    /// HTTP requests that run at once; more wait.
    HttpConcurrency http_concurrency: usize = "http_concurrency" Count { min: 1, default: 8, max: 256 }, like [1],
        "As many as a browser opens to one host, and two.";
    /// Header fields and bodies of all HTTP requests together, and arguments of called tools.
    Egress egress_bytes: u64 = "egress" Bytes { min: 0, default: 8 * MIB, max: 4 * GIB }, like ["64KiB"],
        "The most that a tool can carry out.";
    /// Header fields and bodies of all HTTP responses together, and results of called tools.
    Ingress ingress_bytes: u64 = "ingress" Bytes { min: 0, default: 32 * MIB, max: 16 * GIB }, like ["1MiB"],
        "Half of the default memory: the guest has to hold what it reads.";
    /// Looking up a host, connecting to it and TLS.
    HttpConnect http_connect: Duration = "http_connect" Millis { min: 1, default: 5 * SECOND, max: 10 * MINUTE },
        like ["2s"],
        "Hosts that answer at all do so in a second.";
    /// From the request sent to the response's first byte.
    HttpFirstByte http_first_byte: Duration = "http_first_byte" Millis { min: 1, default: 15 * SECOND, max: HOUR },
        like ["5s"],
        "Half of a call's default deadline.";
    /// One HTTP request in all.
    HttpTime http_time: Duration = "http_time" Millis { min: 1, default: 30 * SECOND, max: HOUR }, like ["10s"],
        "A call's default deadline; the response's body is included.";
    /// Header fields of one request or response.
    HttpHeaders http_headers: usize = "http_headers" Count { min: 1, default: 100, max: 1_000 }, like [50],
        "Servers commonly accept as many.";
    /// Names and values of the header fields of one request or response.
    HttpHeaderBytes http_header_bytes: u64 = "http_header_bytes" Bytes { min: KIB, default: 32 * KIB, max: MIB },
        like ["8KiB"],
        "The host keeps them in memory whole.";
    /// TCP and UDP sockets, those already closed included.
    Sockets sockets: usize = "sockets" Count { min: 0, default: 16, max: 1_000 }, like [1],
        "Each takes a file descriptor of the host.";
    /// Name look-ups.
    Lookups lookups: usize = "lookups" Count { min: 0, default: 64, max: 10_000 }, like [1],
        "As many as requests, since each request may go to another host.";
    /// Calls of other tools, those that they make in turn included, and as many searches for tools.
    CallsMax calls_max: usize = "calls_max" Count { min: 0, default: 200, max: 10_000 }, like [20],
        "A tool that writes a report asks a few; one that goes through a list asks once for each item. With 0 the tool \
         calls none.";
    /// Calls of other tools that run at once; more wait.
    CallsAtOnce calls_at_once: usize = "calls_at_once" Count { min: 1, default: 8, max: 64 }, like [1],
        "Half of what a tool runs by default, which leaves room for other callers.";
    /// Levels of calls beneath a call: 1 lets it call tools that call none.
    CallDepth call_depth: usize = "call_depth" Count { min: 0, default: 3, max: 8 }, like [1],
        "Each level is a sandbox that waits for the next. Nobody has needed more than the default.";
    /// Questions to the person, the model or the client behind the caller.
    Asks asks: usize = "asks" Count { min: 0, default: 8, max: 64 }, like [0, 2],
        "A person answers a few; more is a form of its own. With 0 the tool cannot ask.";
    /// One question.
    AskBytes ask_bytes: usize = "ask_bytes" Bytes { min: 256, default: 16 * KIB, max: MIB }, like ["4KiB"],
        "Counts its texts, and its form's schema or its messages for a model. Nobody reads more than the default. \
         The least holds a message and the smallest form.";
    /// One answer as JSON.
    AnswerBytes answer_bytes: usize = "answer_bytes" Bytes { min: 256, default: 64 * KIB, max: MIB },
        like ["4KiB"],
        "The default is a long text of a model or a person; pictures need more.";
    /// The longest wait for answers, all questions of a call together. The deadline stands still
    /// meanwhile.
    AskWait ask_wait: Duration = "ask_wait" Millis { min: SECOND, default: 5 * MINUTE, max: DAY }, like ["30s"],
        "People need minutes. With clients of 2026-07-28 it bounds each round. The call keeps its place among the \
         tool's `concurrency`.";
}

impl Limits {
    /// Each limit by its key, with its value.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Limit::ALL.into_iter().map(|limit| (limit.spec().key, self.get(limit)))
    }

    /// These, with another deadline, such as [`task_deadline`](Self::task_deadline).
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.set(Limit::Deadline, u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX));
        self
    }
}

const CONCURRENCY_SHARED_MOST: u64 = 100_000;
const PER_MINUTE_600: u64 = Rate { count: 600, per: Per::Minute }.number();
const PER_SECOND_20: u64 = Rate { count: 20, per: Per::Second }.number();

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::limits::{LoadLimit, LoadLimits, OutOfRange};

    #[test]
    fn each_limit_is_set_alone_and_only_within_its_bounds() {
        for limit in Limit::ALL {
            let spec = limit.spec();
            assert_eq!(Limits::default().get(limit), spec.default, "{}", spec.key);
            assert_eq!(Limit::from_key(spec.key), Some(limit));
            let changed = Limits::default().with(limit, spec.max).unwrap();
            for other in Limit::ALL {
                let expected = if other == limit { spec.max } else { other.spec().default };
                assert_eq!(changed.get(other), expected, "{} after {}", other.spec().key, spec.key);
            }
            let more = spec.max + 1;
            assert_eq!(changed.with(limit, more), Err(OutOfRange { spec, value: more }), "{}", spec.key);
            if spec.min > 0 {
                assert!(changed.with(limit, spec.min - 1).is_err(), "{}", spec.key);
            }
        }
        assert_eq!(Limit::from_key("fule"), None);
    }

    #[test]
    fn accessors_give_each_limit_in_its_type() {
        let limits = Limits::default();
        assert_eq!(limits.fuel(), 10_000_000_000);
        assert_eq!(limits.deadline(), Duration::from_secs(30));
        assert_eq!(limits.memory_bytes(), 64 << 20);
        assert_eq!(limits.output_bytes(), 1 << 20);
        assert_eq!(limits.output_items(), 256);
        assert_eq!(limits.log_bytes(), 64 << 10);
        assert_eq!(limits.host_data_bytes(), 16 << 20);
        assert_eq!(limits.handles(), 1_000);
        assert_eq!(limits.random_bytes(), 64 << 10);
        assert_eq!(limits.arguments_bytes(), 1 << 20);
        assert_eq!((limits.concurrency(), limits.queue()), (16, 64));
        assert_eq!(limits.queue_wait(), Duration::from_secs(5));
        assert_eq!(limits.rate(), Rate { count: 600, per: Per::Minute });
        assert_eq!(limits.progress(), Rate { count: 20, per: Per::Second });
        assert_eq!((limits.show(Limit::Deadline), limits.show(Limit::Rate)), ("30s".to_owned(), "600/min".to_owned()));
        assert_eq!(limits.with(Limit::Deadline, 0).unwrap_err().to_string(), "deadline must be between 1ms and 1h");
        let load = LoadLimits::default();
        assert_eq!((load.component_bytes(), load.compile_time()), (128 << 20, Duration::from_secs(120)));
        assert_eq!((load.tools(), load.definition_bytes()), (1_000, 256 << 10));
        assert_eq!(load.show(LoadLimit::CompileTime), "2m");
    }
}
