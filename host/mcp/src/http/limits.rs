//! What the transport lets clients take: sizes, counts and times, with the reasons for the defaults. Must not hold: how
//! any of them is enforced.

use std::time::Duration;

/// The bounds of the transport. Counts are of the whole process.
#[derive(Clone, Debug)]
pub struct HttpLimits {
    /// Longest body of a request, in bytes. 16 MiB: what a line over stdio may have.
    pub body_bytes_max: usize,
    /// Bytes of bodies that are being read, all together. 256 MiB: sixteen of the longest.
    pub bodies_bytes_max: usize,
    /// Longest head of a request, in bytes. 32 KiB: the largest tokens that are in use, and a client's cookies.
    pub head_bytes_max: usize,
    /// Connections. 1,024: each takes a descriptor and some 20 KiB. One that is idle makes room for a new one.
    pub connections_max: usize,
    /// Requests of one HTTP/2 connection at once. 128: what servers commonly allow.
    pub streams_per_connection_max: u32,
    /// Requests that are being answered. 4,096: past it a client is better told to come again.
    pub requests_max: usize,
    /// Streams that stay open: subscriptions, and those of legacy sessions. 4,096: each takes some 20 KiB.
    pub streams_max: usize,
    /// Legacy sessions. 10,000: each takes about a kilobyte. The one that is idle the longest makes room for a new one.
    pub sessions_max: usize,
    /// What of these one caller may have.
    pub per_caller: CallerLimits,
    /// Unread bytes of one stream past which it is ended. 1 MiB: thousands of events.
    pub unread_bytes_max: usize,
    /// How long the head of a request may take, and a TLS handshake. 10 s: what a bad line needs.
    pub head_time: Duration,
    /// How long the body of a request may take. 60 s: the longest one at 2 Mbit/s.
    pub body_time: Duration,
    /// How long a client may read nothing while something is written to it. 30 s.
    pub write_time: Duration,
    /// How long a connection may have no request. 2 min: longer than proxies keep theirs for reuse.
    pub idle_time: Duration,
    /// After how long without an event a comment is sent on a stream. 15 s: below what proxies wait.
    pub beat: Duration,
    /// How long a stream may stay open. A day: clients open the next one.
    pub stream_time: Duration,
    /// How long a session may have no request and no stream. 30 min: clients begin a new one.
    pub session_idle: Duration,
    /// How old a session may become. A day.
    pub session_time: Duration,
    /// How long calls may run on once the server is to end. 10 s: less than service managers wait.
    pub drain: Duration,
}

/// What one caller may have of what all have together, so that none shuts out the others. A caller who is not recognised is
/// told from others by its address; whoever comes so from the machine itself has no share.
#[derive(Clone, Debug)]
pub struct CallerLimits {
    /// Connections on which it has a request or a stream. 512: half of all.
    pub connections_max: usize,
    /// Requests that are being answered. 1,024: a quarter of all. As many may wait for it to be found out who calls.
    pub requests_max: usize,
    /// Streams that stay open. 1,024: a quarter of all.
    pub streams_max: usize,
    /// Legacy sessions. 2,500: a quarter of all. Its own one that is idle the longest makes room.
    pub sessions_max: usize,
    /// Bytes of bodies that are being read. 64 MiB: four of the longest.
    pub bodies_bytes_max: usize,
}

impl Default for CallerLimits {
    fn default() -> Self {
        Self {
            connections_max: 512,
            requests_max: 1_024,
            streams_max: 1_024,
            sessions_max: 2_500,
            bodies_bytes_max: 64 * 1024 * 1024,
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
            head_bytes_max: 32 * KIB,
            connections_max: 1_024,
            streams_per_connection_max: 128,
            requests_max: 4_096,
            streams_max: 4_096,
            sessions_max: 10_000,
            per_caller: CallerLimits::default(),
            unread_bytes_max: KIB * KIB,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(60),
            write_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(120),
            beat: Duration::from_secs(15),
            stream_time: DAY,
            session_idle: Duration::from_secs(30 * 60),
            session_time: DAY,
            drain: Duration::from_secs(10),
        }
    }
}
