//! Sentinels, which know the primary and name another one when it fails.
//!
//! The client's own sentinel support asks in the order of the list: one stalled sentinel would use
//! up the time of an operation. Here the first answer counts.
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError, RedisResult, Role};
use tokio::task::JoinSet;

use super::connection::{config, connect};
use super::options::{Address, Opener};

/// The sentinels of one primary.
pub struct Sentinels {
    clients: Vec<Client>,
    /// The primary's name at the sentinels.
    main: Arc<str>,
    servers: Arc<Opener>,
}

/// An answer on the way to the primary.
enum SentinelAnswer {
    Named(Address),
    Connected(MultiplexedConnection),
}

impl Sentinels {
    /// Sentinels at these addresses, and the settings for the servers that they name.
    pub fn new(places: &[Address], opener: &Opener, main: &str, servers: Arc<Opener>) -> RedisResult<Self> {
        let clients = places.iter().map(|place| opener.client(place)).collect::<RedisResult<_>>()?;
        Ok(Self { clients, main: main.into(), servers })
    }

    /// A connection to the primary: the first server that a sentinel names and that confirms it.
    /// All sentinels are asked at once, since some may be unreachable.
    pub async fn connect(&self, config: &AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
        let mut steps = JoinSet::new();
        for client in &self.clients {
            steps.spawn(main_named_by(client.clone(), Arc::clone(&self.main)));
        }
        let mut problem = RedisError::from((ErrorKind::Io, "no sentinel answers"));
        let mut tried: Vec<Address> = Vec::new();
        while let Some(step) = steps.join_next().await {
            match step {
                Ok(Ok(SentinelAnswer::Named(place))) if !tried.contains(&place) => {
                    steps.spawn(main_at(self.servers.client(&place)?, config.clone()));
                    tried.push(place);
                }
                Ok(Ok(SentinelAnswer::Connected(connection))) => return Ok(connection),
                Ok(Err(error)) => problem = error,
                Ok(Ok(SentinelAnswer::Named(_))) | Err(_) => (),
            }
        }
        Err(problem)
    }
}

/// The primary that a sentinel names.
async fn main_named_by(sentinel: Client, main: Arc<str>) -> RedisResult<SentinelAnswer> {
    let mut sentinel = connect(&sentinel, &config()).await?;
    let mut question = redis::cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(&*main);
    let named: Option<(String, u16)> = question.query_async(&mut sentinel).await?;
    match named {
        Some((host, port)) => Ok(SentinelAnswer::Named(Address { host, port })),
        None => {
            let problem = "the sentinels know no main server of this name";
            Err(RedisError::from((ErrorKind::Io, problem, main.as_ref().to_owned())))
        }
    }
}

/// A connection to a server that confirms that it is a primary. One that was demoted knows that
/// before its sentinels do.
async fn main_at(server: Client, config: AsyncConnectionConfig) -> RedisResult<SentinelAnswer> {
    let mut connection = connect(&server, &config).await?;
    match redis::cmd("ROLE").query_async(&mut connection).await? {
        Role::Primary { .. } => Ok(SentinelAnswer::Connected(connection)),
        _ => Err(RedisError::from((ErrorKind::Io, "the server that the sentinels name is a copy by now"))),
    }
}
