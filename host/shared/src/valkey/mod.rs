//! Shared state on a Valkey server, or one that speaks its protocol: Redis 7 and later; standalone,
//! behind sentinels, or as a cluster. Must not hold: how a script decides.
mod bus;
mod cluster;
mod connection;
mod keys;
mod keyvalue;
mod later;
mod line;
mod operation;
mod options;
mod places;
mod sentinels;
mod servers;
mod shelf;
mod slot;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use redis::{FromRedisValue, Script, ScriptInvocation};

use crate::digest::{DIGEST_CHARS, digest};
use crate::requests::{OF_CALLER_BYTES_MAX, OF_CALLER_MAX};
use crate::state::{REPLICATED_SET_ENTRIES_MAX, REPLICATED_SET_ENTRY_BYTES_MAX};
use crate::{AllowanceName, Away, Begun, Claim, Claimed, Embedded, Place, Posted, Request, SharedState, Taken};
use bus::Listening;
use keys::Keys;
pub use keyvalue::{Bucket, Kept, NotKept, Quota};
use later::{Later, Owned};
use operation::Operation;
pub use options::{Arrangement, BadAddress, ValkeyOptions};
use places::Places;
use servers::Servers;
pub use shelf::{LABELS_BYTES_MAX, Shelf, Shelved};
pub use tasks::SharedTasks;

/// Time limit of one operation, reconnecting included. An operation takes less than a millisecond
/// in a data centre; after a second a person would notice.
pub const OPERATION_WITHIN: Duration = Duration::from_secs(1);

/// How many times an operation is undone that may still be on its way to the server.
const TAKEN_BACK: u32 = 2;

/// How long an unreachable server is retried to end a request. Requests run no longer than their
/// limits allow, usually minutes.
const LATER_FOR: Duration = Duration::from_secs(3_600);

/// Shared state on a Valkey server. Connects with the first operation, and reconnects after a loss.
#[derive(Debug)]
pub struct Valkey {
    servers: Arc<Servers>,
    /// Connections for writes that wait for replicas, if any are required; others are not delayed.
    copied: Arc<Servers>,
    later: Later,
    listening: Listening,
    keys: Keys,
    places: Arc<Places>,
    /// Rates and running calls of this process, for the time in which the server is unreachable.
    here: Option<Embedded>,
    rates: Script,
    claim: Script,
    give_back: Script,
    begin: Script,
    end: Script,
    post: Script,
    posted: Script,
    /// Random name of this process, and the number of its claims, which together name a claim's
    /// holder.
    process: String,
    claims: AtomicU64,
    /// Random prefix of the numbers of this process's messages, and how many there were.
    messages: (u64, AtomicU64),
}

impl Valkey {
    /// State on this server, which need not be reachable yet.
    ///
    /// # Errors
    ///
    /// [`BadAddress`].
    pub fn new(options: ValkeyOptions) -> Result<Self, BadAddress> {
        let random = random()?;
        let process = format!("{random:016x}");
        let keys = Keys::new(&options.prefix);
        let copied = (options.copies > 0).then(|| Servers::new(options.clone())).transpose()?;
        let servers = Arc::new(Servers::new(ValkeyOptions { copies: 0, ..options })?);
        let copied = copied.map_or_else(|| Arc::clone(&servers), Arc::new);
        Ok(Self {
            listening: Listening::new(&servers, keys.channel("")),
            keys,
            places: Places::new(Arc::clone(&servers), process.clone()),
            later: Later::new(Arc::clone(&copied)),
            copied,
            servers,
            here: None,
            rates: Script::new(include_str!("rates.lua")),
            claim: Script::new(include_str!("claim.lua")),
            give_back: Script::new(include_str!("give_back.lua")),
            begin: Script::new(include_str!("begin.lua")),
            end: Script::new(include_str!("end.lua")),
            post: Script::new(include_str!("post.lua")),
            posted: Script::new(include_str!("posted.lua")),
            process,
            claims: AtomicU64::new(0),
            messages: (random, AtomicU64::new(0)),
        })
    }

    /// Counts rates and running calls in this process while the server is unreachable.
    #[must_use]
    pub fn counting_here_while_away(self) -> Self {
        Self { here: Some(Embedded::default()), ..self }
    }

    /// A unique name.
    fn holder(&self) -> String {
        format!("{}-{:x}", self.process, self.claims.fetch_add(1, Ordering::Relaxed))
    }

    /// A unique message number.
    fn message_number(&self) -> u128 {
        let (process, count) = &self.messages;
        (u128::from(*process) << 64) | u128::from(count.fetch_add(1, Ordering::Relaxed))
    }

    async fn run<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T, Away> {
        self.servers.run(Operation::Script(script)).await
    }

    /// The operation that releases a claim.
    fn giving_back(&self, name: &str, holder: &str) -> Owned {
        Owned { script: self.give_back.clone(), keys: vec![self.keys.used(name)], arguments: vec![holder.to_owned()] }
    }

    /// The operation that ends a request with this answer. An empty one removes the request.
    fn ending(&self, request: &Claim, answer: &str, time: Duration) -> Owned {
        let (what, who) = request.holder.split_at_checked(DIGEST_CHARS).unwrap_or_default();
        let keys = self.keys.asked(&request.caller, &request.name);
        Owned {
            script: self.end.clone(),
            keys: vec![keys.request, keys.all, keys.bytes],
            arguments: vec![
                what.to_owned(),
                who.to_owned(),
                millis(time).to_string(),
                answer.to_owned(),
                digest(&request.name),
            ],
        }
    }

    async fn take_shared(&self, caller: &str, allowances: &[AllowanceName<'_>]) -> Result<Taken, Away> {
        let mut script = self.rates.prepare_invoke();
        for allowance in allowances {
            script.key(self.keys.rate(caller, allowance.scope));
            for time in [allowance.pace.interval, allowance.pace.ahead] {
                script.arg(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            }
        }
        let (place, wait_ns): (usize, u64) = self.run(&script).await?;
        Ok(match place.checked_sub(1) {
            None => Taken::All,
            Some(place) => Taken::Refused { place, wait: Duration::from_nanos(wait_ns) },
        })
    }

    /// Writes something that a caller relies on: replicas must have it, if the manifest requires
    /// that.
    async fn write<T: FromRedisValue>(&self, operation: Operation<'_>) -> Result<T, Away> {
        self.copied.run(operation).await
    }
}

#[async_trait]
impl SharedState for Valkey {
    async fn take(&self, caller: &str, allowances: &[AllowanceName<'_>]) -> Result<Taken, Away> {
        match (self.take_shared(caller, allowances).await, &self.here) {
            (Err(_), Some(here)) => here.take(caller, allowances).await,
            (taken, _) => taken,
        }
    }

    async fn enter(&self, name: &str, most: usize) -> Result<Option<Place>, Away> {
        match (self.places.enter(self.keys.run(name), most).await, &self.here) {
            (Err(_), Some(here)) => here.enter(name, most).await,
            (entered, _) => entered,
        }
    }

    async fn wait(&self, name: &str, most: usize) -> Result<Place, Away> {
        match (self.places.wait(self.keys.run(name), most).await, &self.here) {
            (Err(_), Some(here)) => here.wait(name, most).await,
            (waited, _) => waited,
        }
    }

    async fn claim(&self, caller: &str, name: &str, time: Duration) -> Result<Claimed, Away> {
        let holder = self.holder();
        let mut script = self.claim.prepare_invoke();
        script.key(self.keys.used(name)).arg(&holder).arg(millis(time));
        let claimed: bool = self.write(Operation::Script(&script)).await?;
        if !claimed {
            return Ok(Claimed::Before);
        }
        Ok(Claimed::Now(Claim { caller: caller.to_owned(), name: name.to_owned(), holder }))
    }

    async fn give_back(&self, claim: Claim) -> Result<(), Away> {
        let back = self.giving_back(&claim.name, &claim.holder);
        let given = self.write(Operation::Script(&back.invocation())).await;
        if given.is_err() {
            self.later.run(back, TAKEN_BACK, LATER_FOR);
        }
        given
    }

    async fn begin(&self, request: &Request<'_>, time: Duration) -> Result<Begun, Away> {
        let what = digest(request.what);
        let who = self.holder();
        let keys = self.keys.asked(request.caller, request.name);
        let mut script = self.begin.prepare_invoke();
        script.key(&keys.request).key(&keys.all).key(&keys.bytes);
        script.arg(&what).arg(&who).arg(millis(time)).arg(digest(request.name));
        script.arg(OF_CALLER_MAX).arg(OF_CALLER_BYTES_MAX);
        let begun = self.write(Operation::Script(&script)).await;
        let caller = request.caller.to_owned();
        let name = request.name.to_owned();
        let claim = Claim { caller, name, holder: what + &who };
        if begun.is_err() {
            // It may have begun on the server, and never runs.
            self.later.run(self.ending(&claim, "", time), TAKEN_BACK, time);
        }
        let (state, answer): (String, String) = begun?;
        Ok(match state.as_str() {
            "begun" => Begun::Now(claim),
            "runs" => Begun::Runs,
            "done" => Begun::Ended(answer),
            "full" => Begun::NoRoom,
            _ => Begun::Other,
        })
    }

    async fn end(&self, request: Claim, answer: &str, time: Duration) -> Result<(), Away> {
        let ending = self.ending(&request, answer, time);
        let ended = self.write(Operation::Script(&ending.invocation())).await;
        if ended.is_err() {
            let times = if answer.is_empty() { TAKEN_BACK } else { 1 };
            self.later.run(ending, times, LATER_FOR);
        }
        ended
    }

    async fn note(&self, name: &str, time: Duration) -> Result<(), Away> {
        let mut command = redis::cmd("SET");
        command.arg(self.keys.noted(name)).arg(1).arg("PX").arg(millis(time));
        self.write(Operation::Command(&command)).await
    }

    async fn is_noted(&self, name: &str) -> Result<bool, Away> {
        let mut command = redis::cmd("EXISTS");
        command.arg(self.keys.noted(name));
        self.servers.run(Operation::Command(&command)).await
    }

    async fn post(&self, set: &str, entry: &str, time: Duration) -> Result<bool, Away> {
        if entry.len() > REPLICATED_SET_ENTRY_BYTES_MAX {
            return Ok(false);
        }
        let mut script = self.post.prepare_invoke();
        script.key(self.keys.set(set)).arg(entry).arg(millis(time)).arg(REPLICATED_SET_ENTRIES_MAX);
        self.write(Operation::Script(&script)).await
    }

    async fn take_down(&self, set: &str, entry: &str) -> Result<(), Away> {
        let mut command = redis::cmd("ZREM");
        command.arg(self.keys.set(set)).arg(entry);
        self.write(Operation::Command(&command)).await
    }

    async fn posted(&self, set: &str) -> Result<Vec<Posted>, Away> {
        let mut script = self.posted.prepare_invoke();
        script.key(self.keys.set(set));
        let found: Vec<(String, u64)> = self.run(&script).await?;
        let found = found.into_iter().take(REPLICATED_SET_ENTRIES_MAX);
        Ok(found.map(|(entry, left)| Posted { entry, left: Duration::from_millis(left) }).collect())
    }
}

/// A random number, for the name of a process.
fn random() -> Result<u64, BadAddress> {
    getrandom::u64().map_err(|error| BadAddress::new(format_args!("no random numbers: {error}")))
}

/// Whole milliseconds, at least one: the server rejects zero.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).clamp(1, MILLIS_MAX)
}

/// A hundred years: the server rejects times outside the range of its clock.
const MILLIS_MAX: u64 = 100 * 365 * 24 * 3_600 * 1_000;
