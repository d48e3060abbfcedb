//! One server, or several that act as one.
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{FromRedisValue, RedisResult};

use super::cluster::Cluster;
use super::connection::{Connection, Operation};
use super::options::{Address, Arrangement, BadAddress, Copies, Opener, ValkeyOptions};
use super::sentinels::Sentinels;
use crate::Away;

/// The servers of the shared state.
pub enum Servers {
    /// One server at a time.
    One(Box<Connection>),
    /// A node for each slot.
    Cluster(Box<Cluster>),
}

impl Servers {
    pub fn new(options: ValkeyOptions) -> Result<Self, BadAddress> {
        let ValkeyOptions { host, port, arrangement, tls, user, password, database, within, .. } = options;
        let ValkeyOptions { authorities_pem, copies, .. } = options;
        let copies = (copies > 0).then_some(Copies { count: copies, within: within / 3 });
        let opener = Opener { tls, authorities_pem: authorities_pem.clone(), user, password, database, copies };
        let first = Address { host, port };
        let with = |others: Vec<(String, u16)>| {
            let others = others.into_iter().map(|(host, port)| Address { host, port });
            [first.clone()].into_iter().chain(others).collect::<Vec<_>>()
        };
        Ok(match arrangement {
            Arrangement::Alone => Self::One(Box::new(Connection::to(&first, &opener, within)?)),
            Arrangement::Cluster { others } => Self::Cluster(Box::new(Cluster::new(&with(others), opener, within)?)),
            Arrangement::Sentinels { main, others, user, password } => {
                let sentinels = Opener { tls, authorities_pem, user, password, database: 0, copies: None };
                let found = Sentinels::new(&with(others), &sentinels, &main, Arc::new(opener));
                let found = found.map_err(BadAddress::new)?;
                Self::One(Box::new(Connection::to_main_of(first, found, within, copies)))
            }
        })
    }

    /// A separate connection, which passes on a server's push messages. Any node of a cluster
    /// receives what is published at another.
    pub async fn listening(&self, push: impl AsyncPushSender) -> RedisResult<MultiplexedConnection> {
        match self {
            Self::One(connection) => connection.listening(push).await,
            Self::Cluster(cluster) => cluster.listening(push).await,
        }
    }

    /// Runs one operation. It may be repeated, so it must be idempotent.
    pub async fn run<T: FromRedisValue>(&self, operation: Operation<'_>) -> Result<T, Away> {
        self.run_longer(operation, Duration::ZERO).await
    }

    /// [`run`](Self::run) with this much additional time, for a large operation.
    pub async fn run_longer<T: FromRedisValue>(&self, operation: Operation<'_>, longer: Duration) -> Result<T, Away> {
        match self {
            Self::One(connection) => connection.run(operation, longer).await,
            Self::Cluster(cluster) => cluster.run(operation, longer).await,
        }
    }
}

impl fmt::Debug for Servers {
    /// Without the password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(connection) => connection.fmt(formatter),
            Self::Cluster(_) => formatter.write_str("Cluster"),
        }
    }
}
