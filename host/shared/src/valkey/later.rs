//! Operations that did not reach the server: they are sent once it answers again.
use std::sync::Arc;
use std::time::Duration;

use redis::{Script, ScriptInvocation};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::operation::Operation;
use super::servers::Servers;
use crate::Away;

/// Bytes that wait for the server: 256 of the longest answers to requests. Beyond that, a request
/// counts as running until it expires.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// Overhead of a waiting operation besides its keys and arguments, in bytes.
const OPERATION_BYTES: usize = 1_024;

/// Pause between two attempts.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// How many operations are tried at once. Others wait behind them, so that an outage costs the same
/// however many wait, and a server that is back is not flooded.
const TRIED_AT_ONCE: usize = 16;

/// An operation that owns its data.
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
        invocation.key(&self.keys).arg(&self.arguments);
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

    /// Runs an operation once the server is back, for at most `time`. It runs `times` times: a
    /// stalled server may execute what it was sent in any order, and the operation that takes
    /// another back must come last.
    pub fn run(&self, operation: Owned, times: u32, time: Duration) {
        let bytes = u32::try_from(operation.bytes()).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.bytes).try_acquire_many_owned(bytes) else {
            tracing::warn!("shared state: no room to keep what could not be sent to the server");
            return;
        };
        let servers = Arc::clone(&self.servers);
        let turns = Arc::clone(&self.turns);
        let until = Instant::now() + time;
        // It ends when its time is over, or with the runtime.
        drop(tokio::spawn(async move {
            let attempt = || async {
                let done: Result<i64, Away> = servers.run(Operation::Script(&operation.invocation())).await;
                done.is_ok()
            };
            for _ in 0..times {
                sleep(TRY_AGAIN_AFTER).await;
                if !done_in_a_turn(&turns, attempt, until).await {
                    break;
                }
            }
            drop(room);
        }));
    }
}

/// Attempts something in a turn, and keeps the turn until it is done. False if its time is over
/// first.
async fn done_in_a_turn<F: Future<Output = bool>>(turns: &Semaphore, attempt: impl Fn() -> F, until: Instant) -> bool {
    let Ok(Ok(_turn)) = timeout_at(until, turns.acquire()).await else { return false };
    while Instant::now() < until {
        if attempt().await {
            return true;
        }
        sleep(TRY_AGAIN_AFTER).await;
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Waker};

    use tokio::task::unconstrained;

    use super::*;
    use crate::valkey::options::ValkeyOptions;

    /// Operations of a server that answers as many as the test allows.
    struct Closed {
        trying: AtomicUsize,
        answers: Semaphore,
    }

    impl Closed {
        fn new() -> Self {
            Self { trying: AtomicUsize::new(0), answers: Semaphore::new(0) }
        }

        fn trying(&self) -> usize {
            self.trying.load(Ordering::SeqCst)
        }

        async fn attempt(&self) -> bool {
            self.trying.fetch_add(1, Ordering::SeqCst);
            self.answers.acquire().await.unwrap().forget();
            self.trying.fetch_sub(1, Ordering::SeqCst);
            true
        }
    }

    type WaitingFuture<'w> = Pin<Box<dyn Future<Output = bool> + 'w>>;

    /// Polls each once. Removes those that are done, and returns their number.
    fn done_of(waiting: &mut Vec<WaitingFuture<'_>>) -> usize {
        let before = waiting.len();
        waiting.retain_mut(|operation| {
            let polled = operation.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            polled.is_pending()
        });
        before - waiting.len()
    }

    #[tokio::test]
    async fn sixteen_are_tried_at_once_and_the_others_come_after_them() {
        let servers = Arc::new(Servers::new(ValkeyOptions::at("127.0.0.1", 9)).unwrap());
        let turns = Later::new(servers).turns;
        let closed = Closed::new();
        let until = Instant::now() + Duration::from_secs(3_600);
        // The runtime would suspend a task that asks for this many turns.
        let operation =
            || -> WaitingFuture<'_> { Box::pin(unconstrained(done_in_a_turn(&turns, || closed.attempt(), until))) };
        let mut waiting: Vec<WaitingFuture<'_>> = (0..100).map(|_| operation()).collect();
        assert_eq!(done_of(&mut waiting), 0);
        assert_eq!(closed.trying(), 16);
        closed.answers.add_permits(10);
        assert_eq!(done_of(&mut waiting), 10);
        // Those behind them have their turns now.
        assert_eq!(done_of(&mut waiting), 0);
        assert_eq!(closed.trying(), 16);
        closed.answers.add_permits(90);
        while !waiting.is_empty() {
            done_of(&mut waiting);
            assert!(closed.trying() <= 16);
        }
    }

    #[tokio::test]
    async fn whatever_gets_no_turn_in_its_time_is_given_up() {
        let closed = Closed::new();
        assert!(!done_in_a_turn(&Semaphore::new(0), || closed.attempt(), Instant::now()).await);
        assert_eq!(closed.trying(), 0);
    }
}
