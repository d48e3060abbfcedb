//! The limits of the transport: sizes, counts and times, with the reasons for the defaults.

use std::time::Duration;

/// Most concurrent requests of one HTTP/2 connection. 128: servers commonly allow this many.
pub(super) const STREAMS_PER_CONNECTION_MAX: u32 = 128;

/// Unread bytes of one stream that end it. 1 MiB: thousands of events.
pub(super) const UNREAD_BYTES_MAX: usize = 1024 * 1024;

/// The limits of the transport. Counts are for the whole process.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Longest body of a request, in bytes. 16 MiB: as long as a line over stdio.
    pub body_bytes_max: usize,
    /// Bytes of all bodies that are being read. 256 MiB: sixteen of the longest.
    pub bodies_bytes_max: usize,
    /// Bytes of answers and events that clients have not read. 128 MiB: together with all bodies,
    /// this fits a machine with 512 MiB. Beyond it, requests are refused; one answer may exceed it.
    pub answers_bytes_max: usize,
    /// Longest head of a request, in bytes. 32 KiB: the largest tokens in use, and a client's
    /// cookies.
    pub head_bytes_max: usize,
    /// Most connections. 1,024: each takes a descriptor and some 20 KiB. An idle one is closed for
    /// a new one.
    pub connections_max: usize,
    /// Most requests that are being answered. 4,096: beyond it, clients must retry.
    pub requests_max: usize,
    /// Most open streams: subscriptions, and those of legacy sessions. 4,096: each takes some 20
    /// KiB.
    pub streams_max: usize,
    /// Most legacy sessions. 10,000: each takes about a kilobyte. The one idle for longest is ended
    /// for a new one.
    pub sessions_max: usize,
    /// The share of one caller.
    pub per_caller: CallerLimits,
    /// Longest time for the head of a request, or a TLS handshake. 10 s: enough for a bad line.
    pub head_time: Duration,
    /// Longest time for the body of a request. 60 s: the longest one at 2 Mbit/s.
    pub body_time: Duration,
    /// Longest time that a client may leave a response unread. 30 s.
    pub write_time: Duration,
    /// Longest time without a request on a connection. 2 min: longer than proxies keep idle ones.
    pub idle_time: Duration,
    /// Time without an event after which a stream gets a comment. 15 s: below the patience of
    /// proxies.
    pub beat: Duration,
    /// Longest life of a stream. A day: clients open the next one.
    pub stream_time: Duration,
    /// Longest time of a session without a request or stream. 30 min: clients begin a new one.
    pub session_idle: Duration,
    /// Longest life of a session. A day.
    pub session_time: Duration,
    /// Time for which requests are still accepted during shutdown. Zero by default; set it to the
    /// time that a load balancer needs to redirect them.
    pub notice: Duration,
    /// Longest time that calls and tasks may continue during shutdown. 10 s: less than service
    /// managers wait.
    pub drain: Duration,
}

/// One caller's share of the common limits, so that it cannot block others. Anonymous callers are
/// told apart by address; those on this machine have no share of their own.
#[derive(Clone, Debug)]
pub struct CallerLimits {
    /// Most connections with a request or a stream. 512: half of all.
    pub connections_max: usize,
    /// Most requests that are being answered. 1,024: a quarter of all. As many more may wait for
    /// authentication.
    pub requests_max: usize,
    /// Most open streams. 1,024: a quarter of all.
    pub streams_max: usize,
    /// Most legacy sessions. 2,500: a quarter of all. The caller's own session idle for longest is
    /// ended for a new one.
    pub sessions_max: usize,
    /// Bytes of bodies that are being read. 64 MiB: four of the longest.
    pub bodies_bytes_max: usize,
    /// Bytes of requests in a minute, all at once or little by little. 64 MiB: far more than people
    /// and models write. Reading and checking them takes at most a tenth of one core.
    pub sent_bytes_per_minute: usize,
    /// Bytes of answers and events that its clients have not read. 32 MiB: as many of the longest
    /// results that tools have by default.
    pub answers_bytes_max: usize,
}

impl Default for CallerLimits {
    fn default() -> Self {
        Self {
            connections_max: 512,
            requests_max: 1_024,
            streams_max: 1_024,
            sessions_max: 2_500,
            bodies_bytes_max: 64 * 1024 * 1024,
            sent_bytes_per_minute: 64 * 1024 * 1024,
            answers_bytes_max: 32 * 1024 * 1024,
        }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        const KIB: usize = 1024;
        const DAY: Duration = Duration::from_secs(24 * 3_600);
        Self {
            body_bytes_max: 16 * KIB * KIB,
            bodies_bytes_max: 256 * KIB * KIB,
            answers_bytes_max: 128 * KIB * KIB,
            head_bytes_max: 32 * KIB,
            connections_max: 1_024,
            requests_max: 4_096,
            streams_max: 4_096,
            sessions_max: 10_000,
            per_caller: CallerLimits::default(),
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(60),
            write_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(120),
            beat: Duration::from_secs(15),
            stream_time: DAY,
            session_idle: Duration::from_secs(30 * 60),
            session_time: DAY,
            notice: Duration::ZERO,
            drain: Duration::from_secs(10),
        }
    }
}
