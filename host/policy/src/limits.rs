//! What a call may use up: every limit with its key, unit, default, bounds and reason, and the set of them that
//! holds for one tool. Must not hold: how a manifest is read, or how a limit is enforced.

mod asking;
mod fixed;
mod load;
mod reach;
mod table;

pub use fixed::{INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};
pub use load::{LoadLimit, LoadLimits};

use std::time::Duration;

use crate::quantity::{Rate, show_bytes, show_count, show_millis};

/// One limit. The order is that of reports and of the canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Deterministic computing budget.
    Fuel,
    /// Wall clock from start to end.
    Deadline,
    /// All memories and tables of the call together.
    Memory,
    /// The result as it goes to the client.
    Output,
    /// Pieces of content in the result.
    OutputItems,
    /// What the guest prints and logs.
    Log,
    /// Strings and lists handed across the sandbox's border.
    HostData,
    /// Entries in the resource table.
    Handles,
    /// Bytes of one request for randomness.
    Random,
    /// The arguments as JSON text.
    Arguments,
    /// Calls of one tool that run at once.
    Concurrency,
    /// Calls of one tool that wait for a place.
    Queue,
    /// How long a call waits for a place.
    QueueWait,
    /// Calls of one tool by one caller, in a time.
    Rate,
    /// Progress reports of one call, in a time.
    Progress,
    /// HTTP requests of one call.
    HttpRequests,
    /// HTTP requests of one call that run at once.
    HttpConcurrency,
    /// Bytes of one call's HTTP requests.
    Egress,
    /// Bytes of the responses to one call.
    Ingress,
    /// Connecting to a host, TLS included.
    HttpConnect,
    /// Waiting for a response to begin.
    HttpFirstByte,
    /// One HTTP request from start to end.
    HttpTime,
    /// Header fields of one message.
    HttpHeaders,
    /// Bytes of one message's header fields.
    HttpHeaderBytes,
    /// TCP and UDP sockets of one call.
    Sockets,
    /// Name look-ups of one call.
    Lookups,
    /// Questions of one call to whoever is behind its caller.
    Asks,
    /// One question.
    AskBytes,
    /// One answer.
    AnswerBytes,
    /// How long a call waits for answers.
    AskWait,
}

/// How a limit is written in a manifest, and what its number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain integer.
    Count,
    /// A size with its unit, `"64MiB"`; the number is bytes.
    Bytes,
    /// A duration with its unit, `"30s"`; the number is milliseconds.
    Millis,
    /// So many in a time, `"600/min"`; the number is [`Rate::number`].
    Rate,
}

/// What is known about a limit before any manifest is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// The manifest key.
    pub key: &'static str,
    /// How it is written, and what `default`, `min` and `max` count.
    pub unit: Unit,
    /// What holds where no manifest line says otherwise.
    pub default: u64,
    /// The least that can be set.
    pub min: u64,
    /// The most that can be set.
    pub max: u64,
    /// What is counted, and why the default is what it is.
    pub reason: &'static str,
}

/// Every limit of one tool, resolved: built-in default < `defaults.limits` < the component's < the tool's.
///
/// Each value lies within the bounds of its [`Spec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    fuel: u64,
    deadline_ms: u64,
    memory_bytes: u64,
    output_bytes: u64,
    output_items: u64,
    log_bytes: u64,
    host_data_bytes: u64,
    handles: u64,
    random_bytes: u64,
    arguments_bytes: u64,
    concurrency: u64,
    queue: u64,
    queue_wait_ms: u64,
    rate: u64,
    progress: u64,
    http_requests: u64,
    http_concurrency: u64,
    egress_bytes: u64,
    ingress_bytes: u64,
    http_connect_ms: u64,
    http_first_byte_ms: u64,
    http_time_ms: u64,
    http_headers: u64,
    http_header_bytes: u64,
    sockets: u64,
    lookups: u64,
    asks: u64,
    ask_bytes: u64,
    answer_bytes: u64,
    ask_wait_ms: u64,
}

/// A value outside the bounds of its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} must be between {} and {}", spec.key, spec.show(spec.min), spec.show(spec.max))]
pub struct OutOfRange {
    /// Which limit.
    pub spec: &'static Spec,
    /// What was asked for, in the limit's unit.
    pub value: u64,
}

impl Spec {
    /// One value of this limit as a manifest would write it, without quotes: `10_000`, `64MiB`, `1m30s`, `600/min`.
    #[must_use]
    pub fn show(&self, value: u64) -> String {
        self.unit.show(value)
    }

    /// The value, if it lies within the bounds.
    ///
    /// # Errors
    /// [`OutOfRange`] where it does not.
    pub fn check(&'static self, value: u64) -> Result<u64, OutOfRange> {
        if value < self.min || value > self.max {
            return Err(OutOfRange { spec: self, value });
        }
        Ok(value)
    }
}

impl Unit {
    /// The number as a manifest would write it, without quotes: `10_000`, `64MiB`, `1m30s`, `600/min`.
    #[must_use]
    pub fn show(self, value: u64) -> String {
        match self {
            Self::Count => show_count(value),
            Self::Bytes => show_bytes(value),
            Self::Millis => show_millis(value),
            Self::Rate => Rate::of_number(value).to_string(),
        }
    }
}

impl Limits {
    /// One limit's value: a count, bytes, milliseconds or the number of a rate, as its [`Spec::unit`] says.
    #[must_use]
    pub fn get(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Fuel => self.fuel,
            Limit::Deadline => self.deadline_ms,
            Limit::Memory => self.memory_bytes,
            Limit::Output => self.output_bytes,
            Limit::OutputItems => self.output_items,
            Limit::Log => self.log_bytes,
            Limit::HostData => self.host_data_bytes,
            Limit::Handles => self.handles,
            Limit::Random => self.random_bytes,
            Limit::Arguments => self.arguments_bytes,
            Limit::Concurrency => self.concurrency,
            Limit::Queue => self.queue,
            Limit::QueueWait => self.queue_wait_ms,
            Limit::Rate => self.rate,
            Limit::Progress => self.progress,
            Limit::HttpRequests => self.http_requests,
            Limit::HttpConcurrency => self.http_concurrency,
            Limit::Egress => self.egress_bytes,
            Limit::Ingress => self.ingress_bytes,
            Limit::HttpConnect => self.http_connect_ms,
            Limit::HttpFirstByte => self.http_first_byte_ms,
            Limit::HttpTime => self.http_time_ms,
            Limit::HttpHeaders => self.http_headers,
            Limit::HttpHeaderBytes => self.http_header_bytes,
            Limit::Sockets => self.sockets,
            Limit::Lookups => self.lookups,
            Limit::Asks => self.asks,
            Limit::AskBytes => self.ask_bytes,
            Limit::AnswerBytes => self.answer_bytes,
            Limit::AskWait => self.ask_wait_ms,
        }
    }

    /// One limit's value as a manifest would write it: `10_000_000_000`, `64MiB`, `30s`.
    #[must_use]
    pub fn show(&self, limit: Limit) -> String {
        limit.spec().show(self.get(limit))
    }

    /// The same limits with one of them changed; `value` is in the unit of its [`Spec`].
    ///
    /// # Errors
    /// [`OutOfRange`] where the value is outside the limit's bounds.
    pub fn with(mut self, limit: Limit, value: u64) -> Result<Self, OutOfRange> {
        self.set(limit, limit.spec().check(value)?);
        Ok(self)
    }

    /// Computing budget of a call, in units of fuel (about one per executed instruction).
    #[must_use]
    pub const fn fuel(&self) -> u64 {
        self.fuel
    }

    /// Wall clock a call may take, host waits included.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// All memories and tables of a call together, in bytes.
    #[must_use]
    pub const fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The encoded result, in bytes.
    #[must_use]
    pub const fn output_bytes(&self) -> u64 {
        self.output_bytes
    }

    /// Pieces of content in a result.
    #[must_use]
    pub fn output_items(&self) -> usize {
        count(self.output_items)
    }

    /// Standard output, standard error and log lines of a call together, in bytes.
    #[must_use]
    pub const fn log_bytes(&self) -> u64 {
        self.log_bytes
    }

    /// Strings and lists a guest hands to the host in one call, the result included, in bytes.
    #[must_use]
    pub const fn host_data_bytes(&self) -> u64 {
        self.host_data_bytes
    }

    /// Entries of a call's resource table.
    #[must_use]
    pub fn handles(&self) -> usize {
        count(self.handles)
    }

    /// Random bytes of one request.
    #[must_use]
    pub const fn random_bytes(&self) -> u64 {
        self.random_bytes
    }

    /// The arguments as JSON text, in bytes.
    #[must_use]
    pub const fn arguments_bytes(&self) -> u64 {
        self.arguments_bytes
    }

    /// Calls of one tool that run at once.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        count(self.concurrency)
    }

    /// Calls of one tool that wait for a place; more are answered "busy".
    #[must_use]
    pub fn queue(&self) -> usize {
        count(self.queue)
    }

    /// How long a call waits for a place before it is answered "busy".
    #[must_use]
    pub const fn queue_wait(&self) -> Duration {
        Duration::from_millis(self.queue_wait_ms)
    }

    /// Calls of one tool by one caller; all of them may come at once.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate::of_number(self.rate)
    }

    /// Progress reports of one call that reach the caller; all of them may come at once.
    #[must_use]
    pub const fn progress(&self) -> Rate {
        Rate::of_number(self.progress)
    }

    /// HTTP requests of a call, those that are denied not counted.
    #[must_use]
    pub fn http_requests(&self) -> usize {
        count(self.http_requests)
    }

    /// HTTP requests of a call that run at once.
    #[must_use]
    pub fn http_concurrency(&self) -> usize {
        count(self.http_concurrency)
    }

    /// Bytes of all HTTP requests of a call, bodies and header fields.
    #[must_use]
    pub const fn egress_bytes(&self) -> u64 {
        self.egress_bytes
    }

    /// Bytes of all HTTP responses to a call, bodies and header fields.
    #[must_use]
    pub const fn ingress_bytes(&self) -> u64 {
        self.ingress_bytes
    }

    /// How long connecting to a host may take, name look-up and TLS included.
    #[must_use]
    pub const fn http_connect(&self) -> Duration {
        Duration::from_millis(self.http_connect_ms)
    }

    /// How long a response may take to begin once the request is sent.
    #[must_use]
    pub const fn http_first_byte(&self) -> Duration {
        Duration::from_millis(self.http_first_byte_ms)
    }

    /// How long one HTTP request may take in all, the response's body included.
    #[must_use]
    pub const fn http_time(&self) -> Duration {
        Duration::from_millis(self.http_time_ms)
    }

    /// Header fields of one request or response.
    #[must_use]
    pub fn http_headers(&self) -> usize {
        count(self.http_headers)
    }

    /// Bytes of the header fields of one request or response.
    #[must_use]
    pub const fn http_header_bytes(&self) -> u64 {
        self.http_header_bytes
    }

    /// TCP and UDP sockets of a call.
    #[must_use]
    pub fn sockets(&self) -> usize {
        count(self.sockets)
    }

    /// Name look-ups of a call.
    #[must_use]
    pub fn lookups(&self) -> usize {
        count(self.lookups)
    }

    /// Questions of a call.
    #[must_use]
    pub fn asks(&self) -> usize {
        count(self.asks)
    }

    /// Bytes of one question.
    #[must_use]
    pub fn ask_bytes(&self) -> usize {
        count(self.ask_bytes)
    }

    /// Bytes of one answer.
    #[must_use]
    pub fn answer_bytes(&self) -> usize {
        count(self.answer_bytes)
    }

    /// How long a call waits for answers, all its questions together. It does not count towards the deadline.
    #[must_use]
    pub const fn ask_wait(&self) -> Duration {
        Duration::from_millis(self.ask_wait_ms)
    }

    /// Sets a value whose bounds the caller has checked.
    pub(crate) fn set(&mut self, limit: Limit, value: u64) {
        *match limit {
            Limit::Fuel => &mut self.fuel,
            Limit::Deadline => &mut self.deadline_ms,
            Limit::Memory => &mut self.memory_bytes,
            Limit::Output => &mut self.output_bytes,
            Limit::OutputItems => &mut self.output_items,
            Limit::Log => &mut self.log_bytes,
            Limit::HostData => &mut self.host_data_bytes,
            Limit::Handles => &mut self.handles,
            Limit::Random => &mut self.random_bytes,
            Limit::Arguments => &mut self.arguments_bytes,
            Limit::Concurrency => &mut self.concurrency,
            Limit::Queue => &mut self.queue,
            Limit::QueueWait => &mut self.queue_wait_ms,
            Limit::Rate => &mut self.rate,
            Limit::Progress => &mut self.progress,
            Limit::HttpRequests => &mut self.http_requests,
            Limit::HttpConcurrency => &mut self.http_concurrency,
            Limit::Egress => &mut self.egress_bytes,
            Limit::Ingress => &mut self.ingress_bytes,
            Limit::HttpConnect => &mut self.http_connect_ms,
            Limit::HttpFirstByte => &mut self.http_first_byte_ms,
            Limit::HttpTime => &mut self.http_time_ms,
            Limit::HttpHeaders => &mut self.http_headers,
            Limit::HttpHeaderBytes => &mut self.http_header_bytes,
            Limit::Sockets => &mut self.sockets,
            Limit::Lookups => &mut self.lookups,
            Limit::Asks => &mut self.asks,
            Limit::AskBytes => &mut self.ask_bytes,
            Limit::AnswerBytes => &mut self.answer_bytes,
            Limit::AskWait => &mut self.ask_wait_ms,
        } = value;
    }
}

impl Default for Limits {
    /// The built-in defaults.
    fn default() -> Self {
        let default = |limit: Limit| limit.spec().default;
        Self {
            fuel: default(Limit::Fuel),
            deadline_ms: default(Limit::Deadline),
            memory_bytes: default(Limit::Memory),
            output_bytes: default(Limit::Output),
            output_items: default(Limit::OutputItems),
            log_bytes: default(Limit::Log),
            host_data_bytes: default(Limit::HostData),
            handles: default(Limit::Handles),
            random_bytes: default(Limit::Random),
            arguments_bytes: default(Limit::Arguments),
            concurrency: default(Limit::Concurrency),
            queue: default(Limit::Queue),
            queue_wait_ms: default(Limit::QueueWait),
            rate: default(Limit::Rate),
            progress: default(Limit::Progress),
            http_requests: default(Limit::HttpRequests),
            http_concurrency: default(Limit::HttpConcurrency),
            egress_bytes: default(Limit::Egress),
            ingress_bytes: default(Limit::Ingress),
            http_connect_ms: default(Limit::HttpConnect),
            http_first_byte_ms: default(Limit::HttpFirstByte),
            http_time_ms: default(Limit::HttpTime),
            http_headers: default(Limit::HttpHeaders),
            http_header_bytes: default(Limit::HttpHeaderBytes),
            sockets: default(Limit::Sockets),
            lookups: default(Limit::Lookups),
            asks: default(Limit::Asks),
            ask_bytes: default(Limit::AskBytes),
            answer_bytes: default(Limit::AnswerBytes),
            ask_wait_ms: default(Limit::AskWait),
        }
    }
}

/// The bounds of every count fit a `usize` of any machine wasmtime runs on.
fn count(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::quantity::Per;

    #[test]
    fn defaults_lie_within_their_bounds_and_have_a_reason() {
        for limit in Limit::ALL {
            let spec = limit.spec();
            assert!(spec.min <= spec.default && spec.default <= spec.max, "{}", spec.key);
            assert!(!spec.reason.is_empty(), "{}", spec.key);
            assert_eq!(Limits::default().get(limit), spec.default, "{}", spec.key);
            assert_eq!(Limit::from_key(spec.key), Some(limit));
        }
        assert_eq!(Limit::from_key("fule"), None);
    }

    #[test]
    fn each_limit_is_set_alone_and_only_within_its_bounds() {
        for limit in Limit::ALL {
            let spec = limit.spec();
            let changed = Limits::default().with(limit, spec.max).unwrap();
            for other in Limit::ALL {
                let expected = if other == limit { spec.max } else { other.spec().default };
                assert_eq!(changed.get(other), expected, "{} after {}", other.spec().key, spec.key);
            }
            assert_eq!(
                changed.with(limit, spec.max + 1),
                Err(OutOfRange { spec, value: spec.max + 1 }),
                "{}",
                spec.key
            );
            if spec.min > 0 {
                assert!(changed.with(limit, spec.min - 1).is_err(), "{}", spec.key);
            }
        }
    }

    #[test]
    fn getters_give_the_documented_units() {
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
    }
}
