//! Who may end a call before its time, and the words for it.
use std::sync::Arc;

use toolcell_mcp::{CallContext, Cancellation};

use super::StartedCall;
use crate::observing::activity::LiveCall;

/// Everybody who may end one call.
#[derive(Clone)]
pub struct Interruptions {
    /// Its caller, or the end of its connection.
    caller: Cancellation,
    /// A reload that took rights away from its tool.
    narrowed: Option<Cancellation>,
    /// The call in the console, whose operators may end it.
    live: Option<Arc<LiveCall>>,
}

/// Who ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    Operator,
    Caller,
    Narrowing,
}

impl Interruption {
    /// One clause for the audit.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Operator => "the operator ended the call",
            Self::Caller => "the call was cancelled",
            Self::Narrowing => "a reload took rights away from the tool",
        }
    }
}

impl Interruptions {
    /// Those of this call.
    pub fn of(started: &StartedCall<'_>, context: &CallContext) -> Self {
        Self {
            caller: context.cancellation.clone(),
            narrowed: started.target.narrowed.as_ref().map(|narrowed| narrowed.cancellation().clone()),
            live: started.live().map(Arc::clone),
        }
    }

    /// Who ended the call, if somebody did.
    pub fn cause(&self) -> Option<Interruption> {
        if self.live.as_ref().is_some_and(|live| live.is_stopped()) {
            return Some(Interruption::Operator);
        }
        if self.caller.is_cancelled() {
            return Some(Interruption::Caller);
        }
        self.narrowed.as_ref().is_some_and(Cancellation::is_cancelled).then_some(Interruption::Narrowing)
    }

    /// Waits until somebody ends the call.
    pub async fn wait(&self) {
        let stopped = self.live.as_ref().map(|live| live.stopping());
        if self.narrowed.is_none() && stopped.is_none() {
            return self.caller.cancelled().await;
        }
        tokio::select! {
            () = self.caller.cancelled() => {}
            () = cancelled(self.narrowed.as_ref()) => {}
            () = cancelled(stopped) => {}
        }
    }
}

/// Waits for the cancellation; forever without one.
async fn cancelled(cancellation: Option<&Cancellation>) {
    match cancellation {
        Some(cancellation) => cancellation.cancelled().await,
        None => std::future::pending().await,
    }
}
