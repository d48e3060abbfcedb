//! Running a call in a process: sending it, and waiting for the report.
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;
use toolcell_policy::quantity::show_bytes;
use toolcell_policy::{Limit, Limits};
use toolcell_walls::link::{LOOK_TIME_MAX, SendError};

use super::pending::{GIVES_BACK_WITHIN, PendingCall, Returned, finished};
use super::{RemoteInstance, SandboxProcess};
use crate::wall::attention;
use crate::wall::duties;
use crate::wall::reuse::ReusedInstance;
use crate::wasi::capabilities::GrantedCapabilities;
use toolcell_wall::caller::CallerLink;
use toolcell_wall::contract::GuestResult;
use toolcell_wall::encoding;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::message::{self, CallId, CallerFacts, InstanceId, KINDS, LEVELS, RunCall, ToSandbox};
use toolcell_wall::report::CallReport;

/// The component of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalledComponent {
    /// Its place in the order of loading.
    pub(crate) number: u32,
    /// The instance that runs the call, if it is a caller's own.
    pub(crate) instance: Option<InstanceId>,
}

/// One call of one tool.
pub struct SandboxCall<'a> {
    /// The tool's name, without the manifest's prefix, or the [path](crate::export) of another
    /// export.
    pub tool: &'a str,
    /// A JSON object. The process checks that it conforms to the tool's input schema.
    pub arguments_json: &'a str,
    /// The limits of this tool.
    pub limits: &'a Limits,
    /// The capabilities of this tool.
    pub capabilities: &'a Arc<GrantedCapabilities>,
    /// The sender of the call.
    pub caller: Arc<dyn CallerLink>,
    /// The caller's own instance, with the state of earlier calls; `None` if one is made for this
    /// call.
    pub kept: Option<&'a ReusedInstance<RemoteInstance>>,
}

impl SandboxProcess {
    /// Runs a call in this process.
    pub(crate) async fn call(self: &Arc<Self>, of: CalledComponent, input: SandboxCall<'_>) -> CallReport<GuestResult> {
        let CalledComponent { number: component, instance } = of;
        let SandboxCall { tool, arguments_json, limits, capabilities, caller, .. } = input;
        if let Some(problem) = self.unusable.lock().unwrap_or_else(PoisonError::into_inner).get(&component) {
            return CallReport::not_run(CallFailure::Host { detail: format!("its sandbox process: {problem}") });
        }
        let began = Instant::now();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (done, mut ended) = oneshot::channel();
        let message_bytes_max = self.bounds.message_bytes_max;
        let pending = Arc::new(PendingCall::new(&caller, capabilities, limits, message_bytes_max, done));
        {
            let mut calls = self.lock();
            if let Some(reason) = &calls.ended {
                return CallReport::not_run(CallFailure::SandboxEnded { reason: reason.clone() });
            }
            calls.calls.insert(id, Arc::clone(&pending));
        }
        // However this ends, the process is notified that nobody waits.
        let mut guard = GivenCall { process: self, id, ended: false };
        let call = RunCall {
            id,
            component,
            tool: tool.to_owned(),
            arguments_json: arguments_json.to_owned(),
            caller: facts(caller.as_ref()),
            deadline_ms: limits.get(Limit::Deadline),
            instance,
        };
        if let Err(failure) = self.say_call(call) {
            self.lock().calls.remove(&id);
            guard.ended = true;
            return CallReport::not_run(failure);
        }
        // Polling is only worthwhile while no other calls run.
        if !attention::attends(self)
            && let Some(dispatcher) = self.dispatcher.get().filter(|_| self.load() == 1)
        {
            dispatcher.drive(LOOK_TIME_MAX, || pending.is_done.load(Ordering::Acquire));
        }
        let report = match ended.try_recv() {
            Ok(report) => report,
            Err(_) => {
                let runs = limits.deadline().saturating_add(limits.queue_wait());
                // A time that no clock reaches is no bound.
                began
                    .checked_add(runs.saturating_add(GIVES_BACK_WITHIN))
                    .iter()
                    .for_each(|by| pending.give_back_by(*by));
                self.wait(id, &pending, &mut ended, caller.as_ref()).await
            }
        };
        guard.ended = true;
        drop(guard);
        pending.take_back();
        pending.has_taken_back().await;
        let settled = match pending.doors.get() {
            Some(doors) => doors.settle().await,
            None => Ok(()),
        };
        if report.as_ref().is_ok_and(|report| report.is_long()) {
            // Searching it for secrets takes milliseconds.
            duties::leave().await;
        }
        finished(report, settled, &pending, began)
    }

    fn say_call(&self, call: RunCall) -> Result<(), CallFailure> {
        let failed =
            |problem: &dyn std::fmt::Display| CallFailure::Host { detail: format!("its sandbox process: {problem}") };
        let bytes = encoding::encode(&ToSandbox::Call(Box::new(call))).map_err(|error| failed(&error))?;
        self.sender.send(&bytes, &[]).map_err(|error| match error {
            // It has just ended, and the task that reads its link has not noticed yet.
            SendError::Ended(reason) => CallFailure::SandboxEnded { reason: reason.to_string() },
            // The limit allows more than fits into a frame.
            SendError::TooLarge(_) => {
                CallFailure::OverLimit { limit: Limit::Arguments, value: show_bytes(message::TAKEN_BYTES) }
            }
            other => failed(&other),
        })
    }

    /// Waits for the end of a call. [`watch`](Self::watch) ends a process that does not return it
    /// in time.
    async fn wait(
        self: &Arc<Self>,
        id: CallId,
        pending: &PendingCall,
        ended: &mut oneshot::Receiver<Returned>,
        caller: &dyn CallerLink,
    ) -> Returned {
        tokio::select! {
            biased;
            report = &mut *ended => return given(report),
            () = caller.cancelled() => {}
        }
        let _ = self.say(&ToSandbox::Cancel(id), &[]);
        pending.give_back_by(Instant::now() + GIVES_BACK_WITHIN);
        given(ended.await)
    }
}

fn given(report: Result<Returned, oneshot::error::RecvError>) -> Returned {
    report.unwrap_or_else(|_| Err("it is gone".to_owned()))
}

/// Notifies the process, when a call is dropped, that nobody waits for it any more.
struct GivenCall<'p> {
    process: &'p Arc<SandboxProcess>,
    id: CallId,
    ended: bool,
}

impl Drop for GivenCall<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let _ = self.process.say(&ToSandbox::Cancel(self.id), &[]);
        if let Some(call) = self.process.lock().calls.get(&self.id) {
            call.take_back();
            // Its messages are ignored from now on. It counts as a call of the process until that
            // returns it, or is ended for not doing so.
            call.give_back_by(Instant::now() + GIVES_BACK_WITHIN);
        }
    }
}

fn facts(caller: &dyn CallerLink) -> CallerFacts {
    CallerFacts {
        name: caller.name().to_owned(),
        log_levels: message::bits(&LEVELS, |level| caller.log_enabled(level)),
        times: caller.notes_requests(),
        asks: message::bits(&KINDS, |kind| caller.supports(kind)),
        sampling_tools: caller.supports_sampling_tools(),
        trace: caller.trace(),
        meta_json: caller.meta_json(),
        extensions_json: caller.extensions_json(),
    }
}
