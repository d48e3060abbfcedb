//! The bus over a server's channels: one connection for all subscriptions of a process.
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{PushInfo, PushKind, RedisResult, Value};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::operation::Operation;
use super::servers::Servers;
use super::{OPERATION_WITHIN, Valkey};
use crate::Away;
use crate::bus::{Bus, MESSAGE_BYTES_MAX, PublishError, Subscribers, Subscription, as_wire};

/// Pause before reconnecting.
const CONNECT_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Interval of health checks of the connection. A server that vanishes silently is noticed this
/// late.
const TRIED_EVERY: Duration = Duration::from_secs(5);

/// The connection that listens. It starts with the first subscription.
#[derive(Debug)]
pub struct Listening {
    shared: Arc<BusShared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct BusShared {
    servers: Arc<Servers>,
    subscribers: Subscribers,
    /// Prefix of the channels' names on the server.
    prefix: String,
    /// There are new channels, or the connection is lost.
    changed: Notify,
}

impl Listening {
    pub fn new(servers: &Arc<Servers>, prefix: String) -> Self {
        let (subscribers, changed) = Default::default();
        let shared = BusShared { servers: Arc::clone(servers), subscribers, prefix, changed };
        Self { shared: Arc::new(shared), task: Mutex::default() }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

#[async_trait]
impl Bus for Valkey {
    async fn publish(&self, channel: &str, message: &[u8]) -> Result<(), PublishError> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(PublishError::TooLong(message.len()));
        }
        let mut command = redis::cmd("PUBLISH");
        command.arg(self.listening.shared.name(channel)).arg(as_wire(self.message_number(), message));
        let _heard: u64 = self.servers.run(Operation::Command(&command)).await?;
        Ok(())
    }

    fn subscribe(&self, channels: &[&str]) -> Subscription {
        let Listening { shared, task } = &self.listening;
        let subscription = shared.subscribers.add(channels);
        let mut task = task.lock();
        if task.is_none() {
            *task = Some(tokio::spawn(Arc::clone(shared).listen()));
        }
        shared.changed.notify_one();
        subscription
    }
}

impl BusShared {
    fn name(&self, channel: &str) -> String {
        format!("{}{channel}", self.prefix)
    }

    /// Listens forever, reconnecting as needed.
    async fn listen(self: Arc<Self>) {
        loop {
            let Err(reason) = self.listen_once().await;
            tracing::debug!("shared state: no messages arrive: {}", reason.internal());
            tokio::time::sleep(CONNECT_AGAIN_AFTER).await;
        }
    }

    /// Listens until the connection is lost.
    async fn listen_once(self: &Arc<Self>) -> Result<std::convert::Infallible, Away> {
        let lost = Arc::new(Notify::new());
        let push = self.receiver(&lost);
        let mut connection = in_time(self.servers.listening(push)).await?;
        self.subscribers.lose();
        let mut listened = BTreeSet::new();
        loop {
            self.follow(&mut connection, &mut listened).await?;
            tokio::select! {
                () = lost.notified() => return Err(Away::new("the connection was lost")),
                () = self.changed.notified() => {}
                () = tokio::time::sleep(TRIED_EVERY) => {
                    let _: String = in_time(redis::cmd("PING").query_async(&mut connection)).await?;
                }
            }
        }
    }

    /// Subscribes to exactly the channels that have subscriptions.
    async fn follow(
        &self,
        connection: &mut MultiplexedConnection,
        listened: &mut BTreeSet<String>,
    ) -> Result<(), Away> {
        let wanted: BTreeSet<String> = self.subscribers.channels().iter().map(|channel| self.name(channel)).collect();
        let more: Vec<_> = wanted.difference(listened).collect();
        let less: Vec<_> = listened.difference(&wanted).collect();
        if !less.is_empty() {
            in_time(connection.unsubscribe(&less)).await?;
        }
        if !more.is_empty() {
            in_time(connection.subscribe(&more)).await?;
        }
        *listened = wanted;
        self.subscribers.begin(|channel| listened.contains(&self.name(channel)));
        Ok(())
    }

    /// Receives what the server sends, in order.
    fn receiver(self: &Arc<Self>, lost: &Arc<Notify>) -> impl Fn(PushInfo) -> Result<(), Gone> + Send + Sync + use<> {
        let shared = Arc::downgrade(self);
        let lost = Arc::clone(lost);
        move |push| {
            let shared = Weak::upgrade(&shared).ok_or(Gone)?;
            match (push.kind, push.data.as_slice()) {
                (PushKind::Disconnection, _) => lost.notify_one(),
                (PushKind::Message, [Value::BulkString(name), Value::BulkString(bytes)]) => {
                    if let Some(channel) = name.strip_prefix(shared.prefix.as_bytes()) {
                        shared.subscribers.pass_on_wire(&String::from_utf8_lossy(channel), bytes);
                    }
                }
                _ => {}
            }
            Ok(())
        }
    }
}

/// All subscriptions have ended.
struct Gone;

async fn in_time<T>(operation: impl Future<Output = RedisResult<T>>) -> Result<T, Away> {
    match tokio::time::timeout(OPERATION_WITHIN, operation).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Away::new(error.to_string())),
        Err(_) => Err(Away::new(format!("no answer within {OPERATION_WITHIN:?}"))),
    }
}
