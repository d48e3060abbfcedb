//! Operations that the server could not be told of: it is told once it answers again. Must not
//! hold: who is answered meanwhile.
use std::sync::Arc;
use std::time::Duration;

use redis::{Script, ScriptInvocation};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::operation::Operation;
use super::servers::Servers;
use crate::Away;

/// Bytes that wait for the server: 256 of the longest answers to requests. Past them a request
/// counts as running until its time is over.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// Bytes of a waiting operation besides its keys and arguments.
const OPERATION_BYTES: usize = 1_024;

/// Pause between two tries.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Operations that are tried at once. All others wait behind them, so that an outage costs the
/// same however many wait, and a server that is back is not met by all of them.
const TRIED_AT_ONCE: usize = 16;

/// One operation with all that it needs.
#[derive(Clone, Debug)]
pub struct Owned {
    pub script: Script,
    pub keys: Vec<String>,
    pub arguments: Vec<String>,
}

/// Operations that wait for the server.
#[derive(Debug)]
pub struct Later {
    servers: Arc<Servers>,
    bytes: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Owned {
    pub fn invocation(&self) -> ScriptInvocation<'_> {
        let mut invocation = self.script.prepare_invoke();
        for key in &self.keys {
            invocation.key(key);
        }
        for argument in &self.arguments {
            invocation.arg(argument);
        }
        invocation
    }

    fn bytes(&self) -> usize {
        self.keys.iter().chain(&self.arguments).map(String::len).fold(OPERATION_BYTES, usize::saturating_add)
    }
}

impl Later {
    pub fn new(servers: Arc<Servers>) -> Self {
        Self {
            servers,
            bytes: Arc::new(Semaphore::new(WAITING_BYTES_MAX)),
            turns: Arc::new(Semaphore::new(TRIED_AT_ONCE)),
        }
    }

    /// Does an operation once the server is back, unless that takes longer than `time`. It is done
    /// `times` times: one that takes back another comes after it in the end, although a server that
    /// stood still takes what it was sent in any order.
    pub fn run(&self, operation: Owned, times: u32, time: Duration) {
        let bytes = u32::try_from(operation.bytes()).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.bytes).try_acquire_many_owned(bytes) else {
            tracing::warn!("shared state: no room to tell the server later what it could not be told");
            return;
        };
        let servers = Arc::clone(&self.servers);
        let turns = Arc::clone(&self.turns);
        let until = Instant::now() + time;
        // It ends with its time, or with the runtime.
        drop(tokio::spawn(async move {
            let mut left = times;
            while left > 0 {
                sleep(TRY_AGAIN_AFTER).await;
                let Ok(Ok(turn)) = timeout_at(until, turns.acquire()).await else { break };
                if !done_in_its_turn(&servers, &operation, until).await {
                    break;
                }
                drop(turn);
                left -= 1;
            }
            drop(room);
        }));
    }
}

/// Tries an operation until the server takes it. It keeps its turn meanwhile.
async fn done_in_its_turn(servers: &Servers, operation: &Owned, until: Instant) -> bool {
    while Instant::now() < until {
        let done: Result<i64, Away> = servers.run(Operation::Script(&operation.invocation())).await;
        if done.is_ok() {
            return true;
        }
        sleep(TRY_AGAIN_AFTER).await;
    }
    false
}
