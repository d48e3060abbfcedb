//! The limits of the server over HTTP.

use std::time::Duration;

use crate::limits::limits;
use crate::quantity::{DAY, GIB, HOUR, KIB, MIB, MINUTE, SECOND};

/// The least of most times: less would end connections that work.
const TENTH: u64 = SECOND / 10;

limits! {
    /// Every limit of the server over HTTP, resolved: built-in default < `[http]`.
    HttpLimit, HttpLimits;
    /// The longest body of a request.
    Body body_bytes: usize = "body" Bytes { min: 4 * KIB, default: 16 * MIB, max: 256 * MIB }, like ["4MiB"],
        "The process keeps it in memory whole: as much as a line over stdio may have.";
    /// Bodies that are being read, all together.
    Bodies bodies_bytes: usize = "bodies" Bytes { min: 4 * KIB, default: 256 * MIB, max: 64 * GIB }, like ["1GiB"],
        "Sixteen of the longest. Past it a client has to try again.";
    /// Answers and events that clients have not read, all together. Past it a request is refused.
    /// Only one answer may go past it.
    Answers answers_bytes: usize = "answers" Bytes { min: 4 * KIB, default: 128 * MIB, max: 64 * GIB }, like ["32MiB"],
        "The process keeps them in memory. With 512 MiB it has room for these, the default of bodies, and itself.";
    /// The longest head of a request, its line and headers.
    Head head_bytes: usize = "head" Bytes { min: 8 * KIB, default: 32 * KIB, max: MIB }, like ["64KiB"],
        "Room for the largest tokens in use and the headers of some proxies.";
    /// Connections at once. Past it, one without a request makes room.
    Connections connections: usize = "connections" Count { min: 1, default: 1_024, max: 100_000 }, like [10_000],
        "Each takes a descriptor and some 20 KiB.";
    /// Requests that are being answered. Past it a client has to try again.
    Requests requests: usize = "requests" Count { min: 1, default: 4_096, max: 100_000 }, like [256],
        "Four of each connection.";
    /// Streams that stay open for news to clients. Past it a client has to try again.
    Streams streams: usize = "streams" Count { min: 0, default: 4_096, max: 100_000 }, like [100],
        "Four of each connection.";
    /// Sessions of clients before 2026-07-28. Past it, the longest idle one makes room.
    Sessions sessions: usize = "sessions" Count { min: 1, default: 10_000, max: 1_000_000 }, like [1000],
        "Each takes a kilobyte or two.";
    /// Connections on which one caller has a request or a stream. Past it, the caller has to try
    /// again. Shrinks in proportion with `connections`. An anonymous caller is known by its
    /// address; those from the machine itself have no share.
    ConnectionsPerCaller connections_per_caller: usize =
        "connections_per_caller" Count { min: 1, default: 512, max: 100_000 }, like [64],
        "Half of them, so that no caller alone can have them all.";
    /// Requests of one caller that are being answered. Past it, the caller has to try again.
    /// Shrinks in proportion with `requests`.
    RequestsPerCaller requests_per_caller: usize =
        "requests_per_caller" Count { min: 1, default: 1_024, max: 100_000 }, like [64],
        "A quarter of all, far more than the tools of one caller run at once.";
    /// Streams of one caller that stay open. Past it, the caller has to try again. Shrinks in
    /// proportion with `streams`.
    StreamsPerCaller streams_per_caller: usize =
        "streams_per_caller" Count { min: 0, default: 1_024, max: 100_000 }, like [16],
        "A quarter of all.";
    /// Sessions of one caller. Past it, its longest idle one makes room. Shrinks in proportion with
    /// `sessions`.
    SessionsPerCaller sessions_per_caller: usize =
        "sessions_per_caller" Count { min: 1, default: 2_500, max: 1_000_000 }, like [100],
        "A quarter of all.";
    /// Bodies of one caller that are being read, all together. At least `body`. Shrinks in
    /// proportion with `bodies`.
    BodiesPerCaller bodies_per_caller_bytes: usize =
        "bodies_per_caller" Bytes { min: 4 * KIB, default: 64 * MIB, max: 64 * GIB }, like ["32MiB"],
        "Four of the longest.";
    /// Requests that one caller sends in a minute, in bytes. Past it, the answer says when to try
    /// again. At least `body`.
    SentPerCaller sent_per_minute_bytes: usize =
        "sent_per_minute" Bytes { min: 4 * KIB, default: 64 * MIB, max: 64 * GIB }, like ["1GiB"],
        "Reading and checking them takes a core some seconds. People and models write far less.";
    /// Answers and events that one caller has not read, all together. Past it, its requests are
    /// refused until it has read. Shrinks in proportion with `answers`.
    AnswersPerCaller answers_per_caller_bytes: usize =
        "answers_per_caller" Bytes { min: 4 * KIB, default: 32 * MIB, max: 64 * GIB }, like ["8MiB"],
        "A quarter of all: as many results as there are of the longest that tools give by default.";
    /// Time for the head of a request to arrive, and for a TLS handshake.
    HeadTime head_time: Duration = "head_time" Millis { min: TENTH, default: 10 * SECOND, max: 10 * MINUTE },
        like ["5s"],
        "Counted from the first byte of a request: as long as a bad line needs.";
    /// Time for the body of a request to arrive.
    BodyTime body_time: Duration = "body_time" Millis { min: TENTH, default: MINUTE, max: HOUR }, like ["10s"],
        "The longest body at 2 Mbit/s.";
    /// Time for which a client may read nothing of what is written to it.
    WriteTime write_time: Duration = "write_time" Millis { min: TENTH, default: 30 * SECOND, max: HOUR },
        like ["10s"],
        "After it the connection is closed.";
    /// Time for which a connection may have no request.
    Idle idle: Duration = "idle" Millis { min: TENTH, default: 2 * MINUTE, max: DAY }, like ["30s"],
        "Longer than proxies keep theirs for reuse.";
    /// Time after which a stream without an event carries a comment.
    KeepAlive keep_alive: Duration = "keep_alive" Millis { min: TENTH, default: 15 * SECOND, max: HOUR },
        like ["30s"],
        "Nobody between takes the stream for dead.";
    /// Time for which one stream may stay open.
    StreamTime stream_time: Duration = "stream_time" Millis { min: TENTH, default: DAY, max: 30 * DAY },
        like ["1h"],
        "The stream ends as at the server's end, and clients open the next.";
    /// Time for which a session may have no request and no stream.
    SessionIdle session_idle: Duration = "session_idle" Millis { min: TENTH, default: 30 * MINUTE, max: 30 * DAY },
        like ["5m"],
        "After it a client begins a new session.";
    /// Time for which one session may last.
    SessionTime session_time: Duration = "session_time" Millis { min: TENTH, default: DAY, max: 30 * DAY },
        like ["8h"],
        "After it a client begins a new session.";
    /// Time for which requests are still taken once the server is to end, while `/readyz` says no.
    Notice notice: Duration = "notice" Millis { min: 0, default: 0, max: 10 * MINUTE }, like ["10s"],
        "None where nothing stands before the server. A balancer needs as long as it takes to see `/readyz` and to send \
         requests elsewhere.";
    /// Time for which calls may run on once the server is to end.
    Drain drain: Duration = "drain" Millis { min: 0, default: 10 * SECOND, max: HOUR }, like ["30s"],
        "Less than service managers wait before they kill.";
}

impl HttpLimit {
    /// The shares of one caller, and the limit that each is a share of.
    pub(crate) const SHARES: [(Self, Self); 6] = [
        (Self::ConnectionsPerCaller, Self::Connections),
        (Self::RequestsPerCaller, Self::Requests),
        (Self::StreamsPerCaller, Self::Streams),
        (Self::SessionsPerCaller, Self::Sessions),
        (Self::BodiesPerCaller, Self::Bodies),
        (Self::AnswersPerCaller, Self::Answers),
    ];
}
