//! The connection to a Valkey server: opened with the first operation, shared by all, reopened
//! after a loss.
//!
//! The client's own `ConnectionManager` does not suffice: it gives up for good if the server
//! rejects the hello, as one does while it loads its data or after its password was changed.
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind};
use tokio::time::Instant;

pub use super::operation::Operation;
use super::operation::{Beside, is_of_too_few_copies};
use super::options::{Address, BadAddress, Copies, Opener};
use super::sentinels::Sentinels;
use crate::Away;

/// Pause between two attempts of one operation.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(25);

/// How long after a failed operation others fail at once instead of waiting as long. One of them
/// tries afterwards.
const LEFT_ALONE_FOR: Duration = Duration::from_millis(200);

/// Least time between two log lines that say that the server is unreachable. One that answers only
/// some operations would fill the log.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// The connection to a server.
pub struct Connection {
    way: ConnectionWay,
    /// The server, or the first of its sentinels.
    place: Address,
    within: Duration,
    copies: Option<Copies>,
    current: Mutex<CurrentConnection>,
    /// Held while connecting: others wait for the outcome.
    connecting: tokio::sync::Mutex<()>,
    started: Instant,
    /// Until when operations fail at once, in milliseconds since `started`.
    left_alone_until_ms: AtomicU64,
    /// True once the outage was logged.
    is_reported: AtomicBool,
    /// From when an outage is logged again, in milliseconds since `started`.
    silent_until_ms: AtomicU64,
}

/// How to reach the server.
enum ConnectionWay {
    /// At one address.
    Direct(Client),
    /// Through sentinels, which know where it is.
    By(Sentinels),
}

/// An operation that failed.
pub enum Failed {
    /// It was not attempted, because another one just failed.
    LeftAlone(Away),
    /// The server did not do it, as far as is known.
    Away(Away),
    /// The server did it, and too few replicas have it.
    Behind(Away),
    /// Another node of the cluster has its key: from now on, or for this operation.
    Elsewhere { place: Address, is_moved: bool },
}

#[derive(Default)]
struct CurrentConnection {
    connection: Option<MultiplexedConnection>,
    /// Number of the connection, so that the loss of an old one does not close a newer one.
    number: u64,
}

impl Connection {
    /// A connection to the server at this address.
    pub fn to(place: &Address, opener: &Opener, within: Duration) -> Result<Self, BadAddress> {
        let client = opener.client(place).map_err(BadAddress::new)?;
        Ok(Self::by(ConnectionWay::Direct(client), place.clone(), within, opener.copies))
    }

    /// A connection to the primary that these sentinels name. The first sentinel is at this
    /// address.
    pub fn to_main_of(place: Address, sentinels: Sentinels, within: Duration, copies: Option<Copies>) -> Self {
        Self::by(ConnectionWay::By(sentinels), place, within, copies)
    }

    fn by(way: ConnectionWay, place: Address, within: Duration, copies: Option<Copies>) -> Self {
        Self {
            way,
            place,
            within,
            copies,
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            started: Instant::now(),
            left_alone_until_ms: AtomicU64::new(0),
            is_reported: AtomicBool::new(false),
            silent_until_ms: AtomicU64::new(0),
        }
    }

    /// The server's address.
    pub fn place(&self) -> &Address {
        &self.place
    }

    /// Runs one operation. It is repeated if the connection was lost, so it must be idempotent.
    /// `longer` is additional time, for a large one.
    pub async fn run<T: FromRedisValue>(&self, operation: Operation<'_>, longer: Duration) -> Result<T, Away> {
        self.try_until(operation, false, Instant::now() + self.within + longer).await.map_err(|failed| match failed {
            Failed::LeftAlone(away) | Failed::Away(away) | Failed::Behind(away) => away,
            Failed::Elsewhere { place, .. } => {
                Away::new(format!("{} is a node of a cluster, and {place} has the key", self.place))
            }
        })
    }

    /// Runs one operation until this instant. With `is_asking` it runs at a node to which its slot
    /// is moving (`ASKING`).
    pub async fn try_until<T: FromRedisValue>(
        &self,
        operation: Operation<'_>,
        is_asking: bool,
        until: Instant,
    ) -> Result<T, Failed> {
        if !self.may_try() {
            return Err(Failed::LeftAlone(Away::new(format!("{} did not answer a moment ago", self.place))));
        }
        loop {
            let number = self.current.lock().number;
            let tried = tokio::time::timeout_at(until, self.try_once(operation, is_asking)).await;
            let (reason, is_passing) = match tried {
                Ok(Ok(answer)) => {
                    self.is_back();
                    return Ok(answer);
                }
                // It was done, and repeating it would not help.
                Ok(Err(error)) if is_of_too_few_copies(&error) => {
                    return Err(Failed::Behind(self.has_too_few_copies(&error)));
                }
                Ok(Err(error)) => match self.elsewhere(&error) {
                    Some(elsewhere) => {
                        self.is_back();
                        return Err(elsewhere);
                    }
                    None => (error.to_string(), is_passing(&error)),
                },
                Err(_) => (format!("no answer within {:?}", self.within), true),
            };
            if is_passing {
                self.lose(number);
            }
            if !is_passing || Instant::now() + TRY_AGAIN_AFTER >= until {
                return Err(Failed::Away(self.is_gone(reason)));
            }
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
        }
    }

    /// A separate connection, which passes on the server's push messages.
    pub async fn listening(&self, push: impl AsyncPushSender) -> RedisResult<MultiplexedConnection> {
        self.connect(&config().set_push_sender(push)).await
    }

    async fn try_once<T: FromRedisValue>(&self, operation: Operation<'_>, is_asking: bool) -> RedisResult<T> {
        let mut connection = self.connected().await?;
        match (is_asking, self.copies) {
            (false, None) => operation.on(&mut connection).await,
            (is_asking, copies) => operation.on(&mut Beside { connection, is_asking, copies }).await,
        }
    }

    /// The node that this answer redirects to.
    fn elsewhere(&self, error: &RedisError) -> Option<Failed> {
        let (named, _) = error.redirect_node()?;
        let is_moved = error.kind() == ErrorKind::Server(ServerErrorKind::Moved);
        Some(Failed::Elsewhere { place: Address::named_by(named, &self.place)?, is_moved })
    }

    async fn connected(&self) -> RedisResult<MultiplexedConnection> {
        if let Some(connection) = self.current.lock().connection.clone() {
            return Ok(connection);
        }
        let _turn = self.connecting.lock().await;
        if let Some(connection) = self.current.lock().connection.clone() {
            return Ok(connection);
        }
        let connection = self.connect(&config()).await?;
        self.current.lock().connection = Some(connection.clone());
        Ok(connection)
    }

    async fn connect(&self, config: &AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
        match &self.way {
            ConnectionWay::Direct(client) => connect(client, config).await,
            ConnectionWay::By(sentinels) => sentinels.connect(config).await,
        }
    }

    /// Drops the connection with this number.
    fn lose(&self, number: u64) {
        let mut current = self.current.lock();
        if current.number == number {
            current.number += 1;
            current.connection = None;
        }
    }

    /// False during the pause after a failed operation, except for one attempt at its end.
    fn may_try(&self) -> bool {
        let now = self.now_ms();
        let left_alone_until = self.left_alone_until_ms.load(Ordering::Relaxed);
        if now < left_alone_until {
            return false;
        }
        if left_alone_until == 0 {
            return true;
        }
        let next = now + millis(LEFT_ALONE_FOR);
        let swapped =
            self.left_alone_until_ms.compare_exchange(left_alone_until, next, Ordering::Relaxed, Ordering::Relaxed);
        swapped.is_ok()
    }

    fn is_back(&self) {
        self.left_alone_until_ms.store(0, Ordering::Relaxed);
        if self.is_reported.swap(false, Ordering::Relaxed) {
            tracing::info!("shared state: {} answers again", self.place);
        }
    }

    fn is_gone(&self, reason: String) -> Away {
        let now = self.now_ms();
        self.left_alone_until_ms.store(now + millis(LEFT_ALONE_FOR), Ordering::Relaxed);
        let is_silent = now < self.silent_until_ms.load(Ordering::Relaxed);
        if !is_silent && !self.is_reported.swap(true, Ordering::Relaxed) {
            self.silent_until_ms.store(now + millis(SILENT_FOR), Ordering::Relaxed);
            tracing::warn!("shared state: {} is away: {reason}", self.place);
        }
        Away::new(format!("{}: {reason}", self.place))
    }

    /// The server answers, and its replicas lag behind.
    fn has_too_few_copies(&self, error: &RedisError) -> Away {
        self.is_back();
        let now = self.now_ms();
        if now >= self.silent_until_ms.load(Ordering::Relaxed) {
            self.silent_until_ms.store(now + millis(SILENT_FOR), Ordering::Relaxed);
            tracing::warn!("shared state: what was sent to {} may be lost with it: {error}", self.place);
        }
        Away::new(format!("{}: {error}", self.place))
    }

    fn now_ms(&self) -> u64 {
        millis(self.started.elapsed())
    }
}

/// Without time limits of its own: each operation has one.
pub fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None)
}

pub async fn connect(client: &Client, config: &AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
    client.get_multiplexed_async_connection_with_config(config).await
}

/// True if another connection, or a later attempt, may succeed.
fn is_passing(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse => true,
        ErrorKind::Server(kind) => matches!(
            kind,
            ServerErrorKind::BusyLoading
                | ServerErrorKind::ReadOnly
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::TryAgain
        ),
        // It has lost its replicas, so another server may be the primary by now.
        _ => error.code() == Some("NOREPLICAS"),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Connection {
    /// Without the password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("server", &format_args!("{}", self.place)).finish_non_exhaustive()
    }
}
