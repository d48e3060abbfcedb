//! Tasks on a Valkey server: any replica answers for any task.
//!
//! They share one slot of a cluster, because their bytes are counted together. They use a separate
//! connection, so that large results delay no other operations.
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use redis::{FromRedisValue, Script, ScriptInvocation};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::keys::Keys;
use super::operation::Operation;
use super::servers::Servers;
use super::{BadAddress, ValkeyOptions, millis, random};
use crate::Away;
use crate::digest::digest;
use crate::tasks::{Changed, Creation, LostTask, NewTask, TaskBounds, TaskChange, TaskRecord, TaskStatus, Tasks};

/// Time without a heartbeat after which the tasks of a process count as lost, if others have sent
/// theirs. If the server was unreachable for all, each has time to send one again (`GRACE` in the
/// script), however long that was.
const PROCESS_TIME: Duration = Duration::from_secs(30);

/// Interval of heartbeats.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(3);

/// Pause before a failed heartbeat is sent again.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Bytes per second of additional time for an operation: a network of 64 Mbit/s.
const BYTES_PER_SECOND: usize = 8 << 20;

/// Most bytes of a result that is read with a task: the longest that the manifest allows.
const RESULT_BYTES_MAX: usize = 64 << 20;

/// Tasks on a Valkey server. Connects with the first operation, and reconnects after a loss.
#[derive(Debug)]
pub struct SharedTasks {
    inner: Arc<SharedTasksInner>,
    runtime: Handle,
    /// Sends heartbeats from the first task on.
    heartbeats: OnceLock<JoinHandle<()>>,
}

#[derive(Debug)]
struct SharedTasksInner {
    servers: Servers,
    keys: Keys,
    script: Script,
    bounds: TaskBounds,
    lost: LostTask,
    /// Random name of this process.
    process: String,
    /// The part of their keys that tells these from others.
    room: &'static str,
}

impl SharedTasks {
    /// Tasks on this server, which need not be reachable yet.
    ///
    /// # Errors
    ///
    /// [`BadAddress`].
    pub fn new(
        options: ValkeyOptions,
        bounds: TaskBounds,
        lost: LostTask,
        runtime: &Handle,
    ) -> Result<Self, BadAddress> {
        Self::in_room("task", options, bounds, lost, runtime)
    }

    /// Paused runs on this server, which are kept as results of tasks are, apart from them.
    ///
    /// # Errors
    ///
    /// [`BadAddress`].
    pub fn of_paused(options: ValkeyOptions, bounds: TaskBounds, runtime: &Handle) -> Result<Self, BadAddress> {
        Self::in_room("paused", options, bounds, LostTask { body: "", message: "" }, runtime)
    }

    fn in_room(
        room: &'static str,
        options: ValkeyOptions,
        bounds: TaskBounds,
        lost: LostTask,
        runtime: &Handle,
    ) -> Result<Self, BadAddress> {
        let inner = SharedTasksInner {
            keys: Keys::new(&options.prefix),
            servers: Servers::new(options)?,
            script: Script::new(include_str!("tasks.lua")),
            bounds,
            lost,
            process: format!("{:016x}", random()?),
            room,
        };
        Ok(Self { inner: Arc::new(inner), runtime: runtime.clone(), heartbeats: OnceLock::new() })
    }
}

impl SharedTasksInner {
    fn script(&self, operation: &str) -> ScriptInvocation<'_> {
        let mut script = self.script.prepare_invoke();
        script.key(self.keys.task(self.room, "number")).arg(self.keys.task(self.room, "")).arg(operation);
        script
    }

    async fn run<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>, bytes: usize) -> Result<T, Away> {
        let longer = Duration::from_millis(u64::try_from(bytes.saturating_mul(1_000) / BYTES_PER_SECOND).unwrap_or(0));
        self.servers.run_longer(Operation::Script(script), longer).await
    }

    async fn send_heartbeats(self: Arc<Self>) {
        let mut pause = HEARTBEAT_EVERY;
        loop {
            tokio::time::sleep(pause).await;
            pause = if self.announce("runs").await.is_ok() { HEARTBEAT_EVERY } else { RETRY_AFTER };
        }
    }

    /// Tells the server that this process `runs`, or that it `leaves`.
    async fn announce(&self, word: &str) -> Result<(), Away> {
        let mut script = self.script(word);
        script.arg(&self.process).arg(millis(PROCESS_TIME));
        let _: String = self.run(&script, 0).await?;
        Ok(())
    }
}

#[async_trait]
impl Tasks for SharedTasks {
    async fn create(&self, task: &NewTask<'_>) -> Result<Creation, Away> {
        let inner = &self.inner;
        self.heartbeats.get_or_init(|| self.runtime.spawn(Arc::clone(inner).send_heartbeats()));
        let mut script = inner.script("create");
        script.arg(task.id).arg(digest(task.caller)).arg(millis(task.ttl)).arg(task.bytes);
        let TaskBounds { caller_max, all_max, caller_bytes_max, all_bytes_max } = inner.bounds;
        script.arg(caller_max).arg(all_max).arg(caller_bytes_max).arg(all_bytes_max);
        script.arg(&inner.process).arg(millis(PROCESS_TIME));
        let created: String = inner.run(&script, 0).await?;
        Ok(match created.as_str() {
            "created" => Creation::Created,
            "caller" => Creation::CallerFull,
            _ => Creation::Full,
        })
    }

    async fn find(&self, caller: &str, id: &str) -> Result<Option<TaskRecord>, Away> {
        let mut script = self.inner.script("find");
        script.arg(id).arg(digest(caller)).arg(self.inner.lost.body).arg(self.inner.lost.message);
        let found: Vec<String> = self.inner.run(&script, RESULT_BYTES_MAX).await?;
        Ok(record(found))
    }

    async fn list(&self, caller: &str, after: u64, most: usize) -> Result<Vec<TaskRecord>, Away> {
        let mut script = self.inner.script("list");
        script.arg(digest(caller)).arg(after).arg(most).arg(self.inner.lost.body).arg(self.inner.lost.message);
        let found: Vec<Vec<String>> = self.inner.run(&script, 0).await?;
        Ok(found.into_iter().filter_map(record).collect())
    }

    async fn change(&self, id: &str, change: TaskChange<'_>) -> Result<Changed, Away> {
        let mut script = self.inner.script(named(&change));
        let mut bytes = 0;
        script.arg(id);
        match change {
            TaskChange::Says(message) => {
                script.arg(message);
            }
            TaskChange::Asks(questions) => {
                for (key, question) in questions {
                    script.arg(key).arg(question);
                }
            }
            TaskChange::Ends { status, body, message } => {
                bytes = body.len();
                script.arg(status.letter()).arg(body).arg(message);
                script.arg(self.inner.bounds.caller_bytes_max).arg(self.inner.bounds.all_bytes_max);
            }
        }
        let changed: String = self.inner.run(&script, bytes).await?;
        Ok(match changed.as_str() {
            "done" => Changed::Done,
            "full" => Changed::NoRoom,
            _ => Changed::Over,
        })
    }

    async fn answer(&self, caller: &str, id: &str, answers: &[(String, String)]) -> Result<bool, Away> {
        let mut script = self.inner.script("answer");
        script.arg(id).arg(digest(caller)).arg(self.inner.lost.body).arg(self.inner.lost.message);
        for (key, answer) in answers {
            script.arg(key).arg(answer);
        }
        self.inner.run(&script, answers.iter().map(|(_, answer)| answer.len()).sum()).await
    }

    async fn pull(&self, id: &str) -> Result<Option<Vec<(String, String)>>, Away> {
        let mut script = self.inner.script("pull");
        script.arg(id);
        let found: Vec<String> = self.inner.run(&script, 0).await?;
        let mut found = found.into_iter();
        Ok(found.next().filter(|word| word == "runs").map(|_| pairs(found)))
    }

    async fn cancel(&self, caller: &str, id: &str, message: &str) -> Result<Option<(TaskStatus, TaskRecord)>, Away> {
        let mut script = self.inner.script("cancel");
        script.arg(id).arg(digest(caller)).arg(self.inner.lost.body).arg(self.inner.lost.message).arg(message);
        let found: Vec<String> = self.inner.run(&script, RESULT_BYTES_MAX).await?;
        let mut found = found.into_iter();
        let before = found.next().and_then(|letter| TaskStatus::of_letter(&letter));
        Ok(before.zip(record(found.collect())))
    }

    async fn forget(&self, id: &str) -> Result<(), Away> {
        let mut script = self.inner.script("forget");
        script.arg(id);
        let _: String = self.inner.run(&script, 0).await?;
        Ok(())
    }

    async fn leave(&self) -> Result<(), Away> {
        let Some(heartbeats) = self.heartbeats.get() else { return Ok(()) };
        heartbeats.abort();
        self.inner.announce("leaves").await
    }
}

impl Drop for SharedTasks {
    fn drop(&mut self) {
        if let Some(heartbeats) = self.heartbeats.get() {
            heartbeats.abort();
        }
    }
}

/// The script's word for a change.
const fn named(change: &TaskChange<'_>) -> &'static str {
    match change {
        TaskChange::Says(_) => "says",
        TaskChange::Asks(_) => "asks",
        TaskChange::Ends { .. } => "ends",
    }
}

/// A task from the script's answer; `None` if that is empty.
fn record(found: Vec<String>) -> Option<TaskRecord> {
    let mut found = found.into_iter();
    let id = found.next()?;
    let number = found.next()?.parse().ok()?;
    let status = TaskStatus::of_letter(&found.next()?)?;
    let message = found.next()?;
    let mut time = || found.next()?.parse().ok();
    let created_ms = time()?;
    let changed_ms = time()?;
    let ttl_ms = time()?;
    let body = Arc::from(found.next()?);
    let questions = pairs(found);
    Some(TaskRecord { id, number, status, message, created_ms, changed_ms, ttl_ms, questions, body })
}

fn pairs(mut found: impl Iterator<Item = String>) -> Vec<(String, String)> {
    std::iter::from_fn(|| found.next().zip(found.next())).collect()
}
