//! The connection to a Valkey server: made with the first operation, shared by all, made anew after
//! a loss.
//!
//! The client's own `ConnectionManager` would not do: it gives up for good where the server refuses
//! the hello, as one does that loads its data or has a new password.
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, RedisError, RedisResult, ServerErrorKind};
use tokio::time::Instant;

pub use super::operation::Operation;
use super::operation::{Beside, is_of_too_few_copies};
use super::options::{Address, BadAddress, Copies, Opener};
use super::sentinels::Sentinels;
use crate::Away;

/// Pause between two tries of one operation.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(25);

/// Time after a failed operation in which others fail at once instead of waiting as long. One of
/// them tries then.
const LEFT_ALONE_FOR: Duration = Duration::from_millis(200);

/// Least time between two lines of the log that say that the server is away. One that answers some
/// questions and not others would fill the log.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// The connection to a server.
pub struct Connection {
    way: ConnectionWay,
    /// The server, or the first of its sentinels.
    place: Address,
    within: Duration,
    copies: Option<Copies>,
    current: Mutex<CurrentConnection>,
    /// Held by who connects: others wait for the outcome.
    connecting: tokio::sync::Mutex<()>,
    started: Instant,
    /// Time since `started`, in milliseconds, up to which operations fail at once.
    left_alone_until_ms: AtomicU64,
    /// True once the operator was notified that it is away.
    is_told: AtomicBool,
    /// Time since `started`, in milliseconds, from which the operator is notified again.
    silent_until_ms: AtomicU64,
}

/// The way to the server.
enum ConnectionWay {
    /// It is at one address.
    Direct(Client),
    /// They know where it is.
    By(Sentinels),
}

/// An operation without an answer.
pub enum Failed {
    /// It was not tried: another failed a moment ago.
    LeftAlone(Away),
    /// The server did not do it, or it is not known to have.
    Away(Away),
    /// The server did it, and too few copies have it.
    Behind(Away),
    /// Another node of the cluster has its key: from now on, or for this operation.
    Elsewhere { place: Address, is_moved: bool },
}

#[derive(Default)]
struct CurrentConnection {
    connection: Option<MultiplexedConnection>,
    /// Number of the connection: one that is lost ends no later one.
    number: u64,
}

impl Connection {
    /// A connection to the server at this address.
    pub fn to(place: &Address, opener: &Opener, within: Duration) -> Result<Self, BadAddress> {
        let client = opener.client(place).map_err(BadAddress::new)?;
        Ok(Self::by(ConnectionWay::Direct(client), place.clone(), within, opener.copies))
    }

    /// A connection to the server that these name. The first of them is at this address.
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
            is_told: AtomicBool::new(false),
            silent_until_ms: AtomicU64::new(0),
        }
    }

    /// The server's address.
    pub fn place(&self) -> &Address {
        &self.place
    }

    /// Does one operation. It is tried again where the connection was lost, so it must be one that
    /// may take place twice. `longer` is more time, for one that carries much.
    pub async fn run<T: FromRedisValue>(&self, operation: Operation<'_>, longer: Duration) -> Result<T, Away> {
        self.try_until(operation, false, Instant::now() + self.within + longer).await.map_err(|failed| match failed {
            Failed::LeftAlone(away) | Failed::Away(away) | Failed::Behind(away) => away,
            Failed::Elsewhere { place, .. } => {
                Away::new(format!("{} is a node of a cluster, and {place} has the key", self.place))
            }
        })
    }

    /// Does one operation up to this instant. With `is_asking` a node does it whose slot is on its
    /// way to that node.
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
            let number = self.current().number;
            let tried = tokio::time::timeout_at(until, self.try_once(operation, is_asking)).await;
            let (reason, is_passing) = match tried {
                Ok(Ok(answer)) => {
                    self.is_back();
                    return Ok(answer);
                }
                // It was done, and doing it again would change nothing.
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

    /// Another connection, which passes on what the server sends of its own accord.
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

    /// The node that this answer sends the operation to.
    fn elsewhere(&self, error: &RedisError) -> Option<Failed> {
        let (named, _) = error.redirect_node()?;
        let is_moved = error.kind() == ErrorKind::Server(ServerErrorKind::Moved);
        Some(Failed::Elsewhere { place: Address::named_by(named, &self.place)?, is_moved })
    }

    async fn connected(&self) -> RedisResult<MultiplexedConnection> {
        if let Some(connection) = self.current().connection.clone() {
            return Ok(connection);
        }
        let _turn = self.connecting.lock().await;
        if let Some(connection) = self.current().connection.clone() {
            return Ok(connection);
        }
        let connection = self.connect(&config()).await?;
        self.current().connection = Some(connection.clone());
        Ok(connection)
    }

    async fn connect(&self, config: &AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
        match &self.way {
            ConnectionWay::Direct(client) => connect(client, config).await,
            ConnectionWay::By(sentinels) => sentinels.connect(config).await,
        }
    }

    /// Forgets the connection of this number.
    fn lose(&self, number: u64) {
        let mut current = self.current();
        if current.number == number {
            current.number += 1;
            current.connection = None;
        }
    }

    /// False in the pause after a failed operation, but for the one that tries.
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
        if self.is_told.swap(false, Ordering::Relaxed) {
            tracing::info!("shared state: {} answers again", self.place);
        }
    }

    fn is_gone(&self, reason: String) -> Away {
        let now = self.now_ms();
        self.left_alone_until_ms.store(now + millis(LEFT_ALONE_FOR), Ordering::Relaxed);
        let is_silent = now < self.silent_until_ms.load(Ordering::Relaxed);
        if !is_silent && !self.is_told.swap(true, Ordering::Relaxed) {
            self.silent_until_ms.store(now + millis(SILENT_FOR), Ordering::Relaxed);
            tracing::warn!("shared state: {} is away: {reason}", self.place);
        }
        Away::new(format!("{}: {reason}", self.place))
    }

    /// It answers, and its copies are behind.
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

    /// A panic elsewhere leaves a whole value behind.
    fn current(&self) -> MutexGuard<'_, CurrentConnection> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without time limits of its own: each operation has one.
pub fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None)
}

/// Connects.
pub async fn connect(client: &Client, config: &AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
    client.get_multiplexed_async_connection_with_config(config).await
}

/// True if another connection, or another moment, may answer otherwise.
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
        // It has lost its copies, so another may be the main server by now.
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
