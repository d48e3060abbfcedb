//! State of tools on a Valkey server: entries of buckets within quotas.
//!
//! Large operations use a separate connection, one at a time. So a short one, of this process or
//! another, waits for at most one large one of each process.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::{Cmd, FromRedisValue, Script, ScriptInvocation};
use tokio::sync::Semaphore;

use super::keys::Keys;
use super::operation::Operation;
use super::servers::Servers;
use super::{BadAddress, ValkeyOptions, millis, random};
use crate::Away;

/// Number of keys above which an operation is large: about a tenth of a millisecond of the server's
/// time.
const LARGE_KEYS: usize = 64;

/// Size in bytes above which an operation or its answer is large: eight milliseconds on a network
/// of 1 Gbit/s.
const LARGE_BYTES: u64 = 1 << 20;

/// Bytes per second of additional time for a large operation: a network of 64 Mbit/s, or a busy
/// server.
const BYTES_PER_SECOND: u64 = 8 << 20;

/// Keys per second of additional time for a large operation: a fiftieth of what a server does.
const KEYS_PER_SECOND: u64 = 5_000;

/// State that tools keep on a Valkey server. Connects with the first operation, and reconnects
/// after a loss.
#[derive(Debug)]
pub struct Kept {
    short: Servers,
    large: Servers,
    /// The connections for short and for large writes that wait for replicas, if any are required.
    copied: Option<[Servers; 2]>,
    /// Time limit of an operation, without the additional time of large ones.
    within: Duration,
    keys: Keys,
    read: Arc<Script>,
    write: Arc<Script>,
    /// Random name of this process, and the number of its changes, which together name a change.
    process: String,
    changes: AtomicU64,
    /// Held by the large operation in progress.
    turn: Arc<Semaphore>,
}

/// A bucket of a component's namespace.
#[derive(Clone, Copy, Debug)]
pub struct Bucket<'a> {
    /// The component.
    pub component: &'a str,
    /// The namespace, which has a quota of its own.
    pub namespace: &'a str,
    /// The name of the bucket, without a slash.
    pub name: &'a str,
}

/// The most that a namespace may hold.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// Bytes of all keys and values together.
    pub bytes: u64,
    /// Entries.
    pub entries: u64,
    /// Bytes of one value, also of a counter.
    pub value_bytes: u64,
    /// Namespaces of the component that hold anything.
    pub namespaces: u64,
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// The server could not be reached, or did not answer in time.
    #[error(transparent)]
    Away(#[from] Away),
    /// Keys and values together would be more than the namespace may hold.
    #[error("{wanted} bytes, and {held} are in use")]
    Bytes {
        /// Bytes in use.
        held: u64,
        /// Bytes that would be in use.
        wanted: u64,
    },
    /// More entries than the namespace may hold.
    #[error("{wanted} entries")]
    Entries {
        /// The number of entries that there would be.
        wanted: u64,
    },
    /// More namespaces than the component may have.
    #[error("too many namespaces")]
    Namespaces,
    /// The counter would have more digits than a value may have bytes.
    #[error("a value of {bytes} bytes")]
    Value {
        /// Its digits.
        bytes: u64,
    },
    /// The value is not a decimal number below 2^64.
    #[error("no number")]
    NoNumber,
    /// The number would be 2^64 or more.
    #[error("too large a number")]
    Overflow,
    /// The entries do not fit in the answer.
    #[error("too large an answer")]
    Answer,
}

/// The size of an operation.
#[derive(Clone, Copy)]
struct ValueSize {
    keys: usize,
    bytes: u64,
}

/// An operation that can be moved to a task.
enum OwnedValue {
    Command(Cmd),
    Script(Arc<Script>, Vec<String>, Vec<Vec<u8>>),
}

impl Kept {
    /// State on this server, which need not be reachable yet.
    ///
    /// # Errors
    ///
    /// [`BadAddress`].
    pub fn new(options: ValkeyOptions) -> Result<Arc<Self>, BadAddress> {
        Ok(Arc::new(Self {
            keys: Keys::new(&options.prefix),
            within: options.within,
            short: Servers::new(ValkeyOptions { copies: 0, ..options.clone() })?,
            large: Servers::new(ValkeyOptions { copies: 0, ..options.clone() })?,
            copied: match options.copies {
                0 => None,
                _ => Some([Servers::new(options.clone())?, Servers::new(options)?]),
            },
            read: Arc::new(Script::new(include_str!("keyvalue_read.lua"))),
            write: Arc::new(Script::new(include_str!("keyvalue_write.lua"))),
            process: format!("{:016x}", random()?),
            changes: AtomicU64::new(0),
            turn: Arc::new(Semaphore::new(1)),
        }))
    }

    /// The value of a key. Values have at most about `bytes_max` bytes, which sets the time limit.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn get(self: &Arc<Self>, bucket: Bucket<'_>, key: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Away> {
        let [entries, ..] = self.keys_of(bucket);
        let mut command = redis::cmd("HGET");
        command.arg(entries).arg(key);
        self.run(OwnedValue::Command(command), ValueSize { keys: 1, bytes: bytes_max }).await
    }

    /// True if the key has an entry.
    ///
    /// # Errors
    ///
    /// [`Away`].
    pub async fn exists(self: &Arc<Self>, bucket: Bucket<'_>, key: &str) -> Result<bool, Away> {
        let [entries, ..] = self.keys_of(bucket);
        let mut command = redis::cmd("HEXISTS");
        command.arg(entries).arg(key);
        self.run(OwnedValue::Command(command), ValueSize { keys: 1, bytes: 0 }).await
    }

    /// A consistent snapshot of the values of keys, in their order. Keys and values that are found
    /// have at most `bytes_max` bytes together.
    ///
    /// # Errors
    /// [`NotKept::Away`], [`NotKept::Answer`].
    pub async fn get_all(
        self: &Arc<Self>,
        bucket: Bucket<'_>,
        keys: &[String],
        bytes_max: u64,
    ) -> Result<Vec<Option<Vec<u8>>>, NotKept> {
        let [entries, ..] = self.keys_of(bucket);
        let mut arguments = vec![bytes_max.to_string().into_bytes()];
        arguments.extend(keys.iter().map(|key| key.clone().into_bytes()));
        let script = OwnedValue::Script(Arc::clone(&self.read), vec![entries], arguments);
        let found: Option<_> = self.run(script, ValueSize { keys: keys.len(), bytes: bytes_max }).await?;
        found.ok_or(NotKept::Answer)
    }

    /// At most `count` keys whose serials are above `after`, with the serials, in the order in
    /// which they were first set.
    ///
    /// # Errors
    /// [`Away`].
    pub async fn keys_after(
        self: &Arc<Self>,
        bucket: Bucket<'_>,
        after: u64,
        count: usize,
    ) -> Result<Vec<(String, u64)>, Away> {
        let [_, order, ..] = self.keys_of(bucket);
        let mut command = redis::cmd("ZRANGE");
        command.arg(order).arg(format!("({after}")).arg("+inf").arg("BYSCORE");
        command.arg("LIMIT").arg(0).arg(count).arg("WITHSCORES");
        self.run(OwnedValue::Command(command), ValueSize { keys: 1, bytes: 0 }).await
    }

    /// Sets all keys or none.
    ///
    /// # Errors
    /// [`NotKept`]. After [`NotKept::Away`] it may have been done.
    pub async fn set_all(
        self: &Arc<Self>,
        bucket: Bucket<'_>,
        quota: Quota,
        pairs: Vec<(String, Vec<u8>)>,
    ) -> Result<(), NotKept> {
        let size =
            ValueSize { keys: pairs.len(), bytes: pairs.iter().map(|(key, value)| bytes(key) + bytes(value)).sum() };
        let parts = pairs.into_iter().flat_map(|(key, value)| [key.into_bytes(), value]);
        self.change(bucket, quota, "set", size, parts).await.map(drop)
    }

    /// Deletes all keys or none. Missing keys are ignored.
    ///
    /// # Errors
    /// As [`Kept::set_all`].
    pub async fn delete_all(
        self: &Arc<Self>,
        bucket: Bucket<'_>,
        quota: Quota,
        keys: Vec<String>,
    ) -> Result<(), NotKept> {
        let size = ValueSize { keys: keys.len(), bytes: keys.iter().map(bytes).sum() };
        self.change(bucket, quota, "delete", size, keys.into_iter().map(String::into_bytes)).await.map(drop)
    }

    /// Adds to the decimal number that a key holds, 0 where it holds nothing.
    ///
    /// # Errors
    /// As [`Kept::set_all`].
    pub async fn add(
        self: &Arc<Self>,
        bucket: Bucket<'_>,
        quota: Quota,
        key: String,
        delta: u64,
    ) -> Result<u64, NotKept> {
        let size = ValueSize { keys: 1, bytes: bytes(&key) };
        let parts = [key.into_bytes(), delta.to_string().into_bytes()];
        let number = self.change(bucket, quota, "add", size, parts).await?;
        number.parse().map_err(|_| Away::new(format!("the server counted up to {number:?}")).into())
    }

    /// Does a change. It has a name of its own, so that it is done once even if it is sent again
    /// after a loss.
    async fn change(
        self: &Arc<Self>,
        bucket: Bucket<'_>,
        quota: Quota,
        operation: &str,
        size: ValueSize,
        parts: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<String, NotKept> {
        let request = format!("{}-{:x}", self.process, self.changes.fetch_add(1, Ordering::Relaxed));
        let mut keys = self.keys_of(bucket).to_vec();
        keys.push(self.keys.change(bucket.component, &request));
        let known = (self.within + size.longer()).saturating_mul(2);
        let Quota { bytes, entries, value_bytes, namespaces } = quota;
        let mut arguments = vec![operation.as_bytes().to_vec(), Keys::namespace(bucket.namespace).into_bytes()];
        let numbers = [bytes, entries, namespaces, value_bytes, millis(known)];
        arguments.extend(numbers.map(|number| number.to_string().into_bytes()));
        arguments.extend(parts);
        let script = OwnedValue::Script(Arc::clone(&self.write), keys, arguments);
        let said: Vec<String> = self.run(script, size).await?;
        let mut said = said.into_iter();
        let word = said.next().unwrap_or_default();
        let mut number = || said.next().unwrap_or_default();
        let count = |text: String| text.parse().unwrap_or(u64::MAX);
        Err(match word.as_str() {
            "done" => return Ok(number()),
            "bytes" => NotKept::Bytes { held: count(number()), wanted: count(number()) },
            "entries" => NotKept::Entries { wanted: count(number()) },
            "namespaces" => NotKept::Namespaces,
            "value" => NotKept::Value { bytes: count(number()) },
            "no_number" => NotKept::NoNumber,
            "overflow" => NotKept::Overflow,
            _ => Away::new(format!("the server said {word:?}")).into(),
        })
    }

    /// The connection for an operation.
    fn servers(&self, operation: &OwnedValue, is_large: bool) -> &Servers {
        let is_write = matches!(operation, OwnedValue::Script(script, ..) if Arc::ptr_eq(script, &self.write));
        match (&self.copied, is_large) {
            (Some([short, _]), false) if is_write => short,
            (Some([_, large]), true) if is_write => large,
            (_, false) => &self.short,
            (_, true) => &self.large,
        }
    }

    fn keys_of(&self, bucket: Bucket<'_>) -> [String; 4] {
        self.keys.kept(bucket.component, bucket.namespace, bucket.name)
    }

    /// Runs an operation. A large one waits for its turn, and then runs to its end even if its
    /// caller stops waiting: otherwise further ones would pile up behind it.
    async fn run<T: FromRedisValue + Send + 'static>(
        self: &Arc<Self>,
        operation: OwnedValue,
        size: ValueSize,
    ) -> Result<T, Away> {
        if !size.is_large() {
            let servers = self.servers(&operation, false);
            return operation.run(servers, Duration::ZERO).await;
        }
        let closed = |error: &dyn std::fmt::Display| Away::new(format!("not done: {error}"));
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|error| closed(&error))?;
        let kept = Arc::clone(self);
        let task = tokio::spawn(async move {
            let servers = kept.servers(&operation, true);
            let done = operation.run(servers, size.longer()).await;
            drop(turn);
            done
        });
        task.await.map_err(|error| closed(&error))?
    }
}

impl ValueSize {
    fn is_large(self) -> bool {
        self.keys > LARGE_KEYS || self.bytes > LARGE_BYTES
    }

    /// Additional time for an operation of this size.
    fn longer(self) -> Duration {
        if !self.is_large() {
            return Duration::ZERO;
        }
        let by_bytes = self.bytes.saturating_mul(1_000) / BYTES_PER_SECOND;
        let by_keys = (self.keys as u64).saturating_mul(1_000) / KEYS_PER_SECOND;
        Duration::from_millis(by_bytes.saturating_add(by_keys))
    }
}

impl OwnedValue {
    async fn run<T: FromRedisValue>(self, connection: &Servers, longer: Duration) -> Result<T, Away> {
        match self {
            Self::Command(command) => connection.run_longer(Operation::Command(&command), longer).await,
            Self::Script(script, keys, arguments) => {
                let mut invocation: ScriptInvocation<'_> = script.prepare_invoke();
                invocation.key(keys).arg(arguments);
                connection.run_longer(Operation::Script(&invocation), longer).await
            }
        }
    }
}

fn bytes(part: impl AsRef<[u8]>) -> u64 {
    part.as_ref().len() as u64
}
