//! Tasks: calls whose clients get a name at once, and the result later. The extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28, and the experimental tasks of 2025-11-25. Must
//! not hold: methods, or calls.

mod handle;
mod hub;
mod wire;

use std::time::Duration;

use toolcell_shared::LostTask;

pub(crate) use handle::{BegunTask, TaskHandle};
pub(crate) use hub::TaskHub;
pub(crate) use wire::{TaskBody, name_of, push_created, push_detailed, push_legacy, push_legacy_result, push_related};

use crate::asking::AskCapabilities;
use crate::frame::{ErrorCode, Params, RpcError, echo, scan};
use crate::revision::Revision;

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The key of `_meta` that names a message's task (2025-11-25, "Related Task Metadata").
pub(crate) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The error of a task whose process has ended without storing a result.
pub const LOST_TASK: LostTask = LostTask {
    body: "e{\"code\":-32603,\"message\":\"The task was lost: the host that ran it has ended\"}",
    message: "The task was lost: the host that ran it has ended",
};

/// The message of a task that its client has cancelled.
pub(crate) const CANCELLED_MESSAGE: &str = "The task was cancelled by request";

/// The calls of a tool that become tasks, for clients that can take one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskPlan {
    /// None.
    #[default]
    Never,
    /// Those that run longer. Clients of 2025-11-25 decide themselves which of their calls are
    /// tasks.
    After(Duration),
    /// Each.
    Always,
}

/// The options of tasks.
#[derive(Clone, Copy, Debug)]
pub struct TaskOptions {
    /// Time for which a task is kept.
    pub ttl: Duration,
    /// The longest time that a client may ask for.
    pub ttl_max: Duration,
    /// Time that clients are advised to wait before they ask again.
    pub poll: Duration,
    /// Longest result, in bytes.
    pub result_bytes_max: usize,
}

/// A client's request for a task: `params.task` of 2025-11-25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskParam {
    ttl: Option<Duration>,
}

/// How a call becomes a task, unless it ends before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskStart {
    pub(crate) after: Duration,
    pub(crate) ttl: Option<Duration>,
}

impl TaskParam {
    /// Reads `params.task`. Other revisions have none, and ignore it.
    pub(crate) fn read(params: &Params<'_>, revision: Revision) -> Result<Option<Self>, RpcError> {
        #[derive(serde::Deserialize)]
        struct RequestedTask {
            ttl: Option<f64>,
        }
        let has_tasks = revision.features().tasks && !revision.is_modern();
        let Some(text) = params.get("task").filter(|_| has_tasks) else { return Ok(None) };
        let wrong = || RpcError::params("params.task must be an object whose ttl is a number of milliseconds");
        if !scan::is_object(text) {
            return Err(wrong());
        }
        let RequestedTask { ttl } = serde_json::from_str(text).map_err(|_| wrong())?;
        let ttl = ttl.map(|ttl| Duration::try_from_secs_f64(ttl / 1_000.0).map_err(|_| wrong())).transpose()?;
        Ok(Some(Self { ttl }))
    }
}

impl TaskPlan {
    /// Decides whether a call of the tool of this name becomes a task.
    pub(crate) fn decide(
        self,
        tool: &str,
        task_param: Option<TaskParam>,
        revision: Revision,
        capabilities: AskCapabilities,
    ) -> Result<Option<TaskStart>, RpcError> {
        let at_once = |ttl| Ok(Some(TaskStart { after: Duration::ZERO, ttl }));
        let tool = || echo(tool);
        if revision.is_modern() {
            return match self {
                Self::Always if !capabilities.tasks() => {
                    Err(undeclared(format!("The tool {:?} only runs as a task, and this client", tool())))
                }
                Self::Never => Ok(None),
                Self::After(_) if !capabilities.tasks() => Ok(None),
                Self::After(after) => Ok(Some(TaskStart { after, ttl: None })),
                Self::Always => at_once(None),
            };
        }
        let refused = |text: String| Err(RpcError::new(ErrorCode::MethodNotFound, text));
        match (self, task_param) {
            (Self::Never, Some(_)) => refused(format!("The tool {:?} does not run as a task", tool())),
            (Self::Always, None) => refused(format!("The tool {:?} only runs as a task", tool())),
            (Self::Never | Self::After(_), None) => Ok(None),
            (Self::After(_) | Self::Always, Some(task_param)) => at_once(task_param.ttl),
        }
    }

    /// The value of `execution.taskSupport`; `None` for the default.
    pub(crate) const fn support(self) -> Option<&'static str> {
        match self {
            Self::Never => None,
            Self::After(_) => Some("optional"),
            Self::Always => Some("required"),
        }
    }
}

/// The error for a modern client that does not declare the extension. `who` begins the sentence.
pub(crate) fn undeclared(who: impl std::fmt::Display) -> RpcError {
    let text = format!("{who} does not declare the extension {EXTENSION}");
    let data = format!("{{\"requiredCapabilities\":{{\"extensions\":{{\"{EXTENSION}\":{{}}}}}}}}");
    RpcError { data: Some(data), ..RpcError::new(ErrorCode::MissingClientCapability, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_era_decides_by_its_own_words() {
        let task_param = Some(TaskParam { ttl: None });
        let declared = AskCapabilities::with_tasks();
        let not = AskCapabilities::default();
        let after = TaskPlan::After(Duration::from_secs(2));
        let modern = Revision::V2026_07_28;
        let legacy = Revision::V2025_11_25;
        for (plan, task_param, revision, capabilities, expected) in [
            (TaskPlan::Never, None, modern, declared, Ok(None)),
            (TaskPlan::Never, task_param, modern, declared, Ok(None)),
            (after, None, modern, declared, Ok(Some(2))),
            (after, None, modern, not, Ok(None)),
            (TaskPlan::Always, None, modern, declared, Ok(Some(0))),
            (TaskPlan::Always, None, modern, not, Err(-32021)),
            (TaskPlan::Never, None, legacy, not, Ok(None)),
            (TaskPlan::Never, task_param, legacy, not, Err(-32601)),
            (after, None, legacy, not, Ok(None)),
            (after, task_param, legacy, not, Ok(Some(0))),
            (TaskPlan::Always, task_param, legacy, not, Ok(Some(0))),
            (TaskPlan::Always, None, legacy, not, Err(-32601)),
            (TaskPlan::Always, None, Revision::V2025_06_18, not, Err(-32601)),
        ] {
            let decided = plan.decide("t", task_param, revision, capabilities);
            let decided = decided.map(|start| start.map(|start| start.after.as_secs()));
            let decided = decided.map_err(|error| error.code.number());
            assert_eq!(decided, expected, "{plan:?} {task_param:?} {revision}");
        }
    }
}
