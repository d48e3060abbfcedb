//! Paused runs: the logs of calls that wait for a person between two rounds. They are kept as
//! results of tasks are, in memory and files, or on the server that replicas share.
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;
use toolcell_policy::{Manifest, PausedPolicy};
use toolcell_shared::{
    Away, Changed, Claim, Creation, LocalTasks, LostTask, NewTask, SharedState, SharedTasks, TaskBounds, TaskChange,
    TaskStatus, Tasks,
};

use crate::error::StartError;
use crate::replicas::random_name;
use crate::state::shared;

/// The folder of paused runs, within that of state.
const FOLDER: &str = "paused";

/// The longest time for which a run is kept: the most that the limit `ask_wait` takes.
const KEPT_AT_MOST: Duration = Duration::from_secs(24 * 3_600);

/// Of a host that dies while it writes a log: the log counts as missing.
const LOST: LostTask = LostTask { body: "", message: "" };

/// The paused runs of a server.
#[derive(Debug)]
pub struct PausedRuns {
    logs: Arc<dyn Tasks>,
    pub policy: PausedPolicy,
}

/// Why a run cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum RunNotKept {
    /// There is no room for it.
    #[error("{0}")]
    Full(&'static str),
    /// The state that replicas share is away.
    #[error(transparent)]
    Away(#[from] Away),
}

/// A run that goes on: nobody else finds its log.
pub struct TakenRun {
    pub name: String,
    pub log: String,
    /// Time that it had left.
    pub left: Duration,
    claim: Claim,
}

impl TakenRun {
    /// With the log that it has by now.
    pub fn with(self, log: String) -> Self {
        Self { log, ..self }
    }
}

impl PausedRuns {
    /// Those of one process, in memory.
    pub fn in_memory() -> Self {
        let policy = PausedPolicy::default();
        Self { logs: Arc::new(LocalTasks::new(bounds(&policy), None, LOST)), policy }
    }

    /// Those of this server. Relative paths start from `folder`.
    ///
    /// # Errors
    ///
    /// [`StartError`]: the shared state cannot be used.
    pub fn open(manifest: &Manifest, folder: &Path, runtime: &Handle) -> Result<Self, StartError> {
        let policy = manifest.paused().clone();
        let on_server = |options| SharedTasks::of_paused(options, bounds(&policy), runtime);
        let shared = shared::tasks(manifest.state(), folder, on_server)?;
        let logs = shared.unwrap_or_else(|| {
            let files = folder.join(manifest.server().state()).join(FOLDER);
            Arc::new(LocalTasks::new(bounds(&policy), Some(&files), LOST))
        });
        Ok(Self { logs, policy })
    }

    /// Keeps the log of a run under a new name, for the next round.
    pub async fn keep(&self, caller: &str, log: &str, within: Duration) -> Result<String, RunNotKept> {
        let name = random_name().ok_or(RunNotKept::Full("the machine gives no random numbers"))?;
        self.keep_as(&name, caller, log, within).await.map(|()| name)
    }

    async fn keep_as(&self, name: &str, caller: &str, log: &str, within: Duration) -> Result<(), RunNotKept> {
        let new = NewTask { id: name, caller, ttl: within.min(KEPT_AT_MOST), bytes: log.len() };
        match self.logs.create(&new).await? {
            Creation::Created => {}
            Creation::CallerFull => {
                return Err(RunNotKept::Full("this caller has as many paused runs as it may ([paused])"));
            }
            Creation::Full => return Err(RunNotKept::Full("there are as many paused runs as there may be ([paused])")),
        }
        let end = TaskChange::Ends { status: TaskStatus::Completed, body: log, message: "" };
        match self.logs.change(name, end).await? {
            Changed::Done => Ok(()),
            Changed::Over | Changed::NoRoom => {
                self.logs.forget(name).await?;
                Err(RunNotKept::Full("there is no room for the log of this run ([paused])"))
            }
        }
    }

    /// Takes the log of a caller's run, which nobody finds from now on. `None` if there is none.
    pub async fn take(&self, state: &dyn SharedState, caller: &str, name: &str) -> Result<Option<TakenRun>, Away> {
        // First the claim: of two requests with one state, on any replicas, one goes on.
        let claimed = state.claim(caller, &format!("paused\n{name}"), KEPT_AT_MOST).await?;
        let Some(claim) = claimed.now() else { return Ok(None) };
        let found = match self.logs.find(caller, name).await {
            Ok(found) => found.filter(|found| found.status == TaskStatus::Completed),
            Err(away) => {
                give_back(state, claim).await;
                return Err(away);
            }
        };
        let Some(found) = found else {
            give_back(state, claim).await;
            return Ok(None);
        };
        if let Err(away) = self.logs.forget(name).await {
            give_back(state, claim).await;
            return Err(away);
        }
        let ends = Duration::from_millis(found.created_ms.saturating_add(found.ttl_ms));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let log = found.body.as_ref().to_owned();
        Ok(Some(TakenRun { name: name.to_owned(), log, left: ends.saturating_sub(now), claim }))
    }

    /// Keeps the log of a run that ended early under its old name: the same round may come again.
    pub async fn put_back(&self, state: &dyn SharedState, caller: &str, run: TakenRun) {
        match self.keep_as(&run.name, caller, &run.log, run.left).await {
            Ok(()) => give_back(state, run.claim).await,
            Err(error) => tracing::warn!("a run that ended early cannot go on: {error}"),
        }
    }
}

async fn give_back(state: &dyn SharedState, claim: Claim) {
    if let Err(away) = state.give_back(claim).await {
        tracing::warn!("a paused run cannot go on: {}", away.internal());
    }
}

fn bounds(policy: &PausedPolicy) -> TaskBounds {
    TaskBounds {
        caller_max: policy.caller_max(),
        all_max: policy.all_max(),
        caller_bytes_max: policy.caller_bytes(),
        all_bytes_max: policy.all_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use toolcell_shared::Embedded;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_log_is_taken_once_and_by_its_caller_alone() {
        let runs = PausedRuns::in_memory();
        let state = Embedded::default();
        let name = runs.keep("ann", "{}", MINUTE).await.unwrap();
        let taken = runs.take(&state, "ann", &name).await.unwrap().unwrap();
        assert_eq!(taken.log, "{}");
        assert!(runs.take(&state, "ann", &name).await.unwrap().is_none(), "while it goes on");
        runs.put_back(&state, "ann", TakenRun { log: "[]".to_owned(), ..taken }).await;
        assert_eq!(runs.take(&state, "ann", &name).await.unwrap().unwrap().log, "[]");
        let name = runs.keep("ann", "{}", MINUTE).await.unwrap();
        assert!(runs.take(&state, "bob", &name).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_log_ends_with_its_time() {
        let runs = PausedRuns::in_memory();
        let name = runs.keep("ann", "{}", Duration::from_millis(1)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(runs.take(&Embedded::default(), "ann", &name).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_caller_keeps_no_more_than_its_share() {
        let runs = PausedRuns::in_memory();
        for _ in 0..PausedPolicy::default().caller_max() {
            runs.keep("ann", "{}", MINUTE).await.unwrap();
        }
        assert!(matches!(runs.keep("ann", "{}", MINUTE).await, Err(RunNotKept::Full(_))));
        runs.keep("bob", "{}", MINUTE).await.unwrap();
        let long = "x".repeat(PausedPolicy::default().caller_bytes() + 1);
        assert!(matches!(runs.keep("cleo", &long, MINUTE).await, Err(RunNotKept::Full(_))));
    }
}
