//! The recording of a call, if it is recorded.
use std::sync::Arc;
use std::time::SystemTime;

use toolcell_audit::Outcome;
use toolcell_policy::RecordRule;
use toolcell_sandbox::contract::GuestResult;
use toolcell_sandbox::{CallFailure, CallReport, GrantedCapabilities, Tape};

use super::StartedCall;
use super::execute::CallTraces;
use crate::recordings::TapedCall;

/// What a recorded call was given.
pub(super) struct TapedArguments<'a> {
    /// JSON.
    pub(super) text: &'a str,
    pub(super) capabilities: &'a Arc<GrantedCapabilities>,
}

impl StartedCall<'_> {
    /// A tape, if the call is recorded.
    pub(super) fn tape(&self) -> Option<Tape> {
        let is_recorded = self.records || self.is_picked();
        if !is_recorded || self.catalog.walled.recorded_manifest(self.target).is_none() {
            return None;
        }
        Tape::recording().inspect_err(|error| tracing::warn!("a call is not recorded: {error}")).ok()
    }

    /// True if the manifest has the call recorded, and the process has a place for it.
    fn is_picked(&self) -> bool {
        let rule = self.target.record;
        if rule == RecordRule::Never || self.catalog.services.recordings.is_none() {
            return false;
        }
        match rule {
            RecordRule::Never => false,
            RecordRule::Errors | RecordRule::All => true,
            // A caller must not know before which calls are recorded.
            RecordRule::Share(share) => getrandom::u64().is_ok_and(|random| share.takes(random)),
        }
    }

    /// The recorded call, which has ended with this report. `None` if nothing of it ran.
    pub(super) fn taped(
        &self,
        tape: Tape,
        report: &CallReport<GuestResult>,
        given: TapedArguments<'_>,
    ) -> Option<Box<TapedCall>> {
        let tape_bytes = tape.finish();
        let tape_bytes = tape_bytes.inspect_err(|error| tracing::warn!("a call is not recorded: {error}")).ok()?;
        if !ran(report, tape_bytes) {
            return None;
        }
        let component = &self.target.component;
        Some(Box::new(TapedCall {
            call: self.record.id(),
            component: component.name().to_owned(),
            digest: component.digest().to_owned(),
            tool: self.target.name.clone(),
            listed: self.name().to_owned(),
            caller: self.record.caller().to_owned(),
            arguments_json: given.text.to_owned(),
            is_conformed: self.is_conformed,
            manifest: self.catalog.walled.recorded_manifest(self.target)?.to_owned(),
            capabilities: Arc::clone(given.capabilities),
            tape,
            tape_bytes,
            outcome: report.outcome.clone(),
            used: (&report.usage).into(),
            ended: SystemTime::now(),
            answer_bytes: report.usage.output_bytes,
        }))
    }

    /// Keeps the recording of a call that ended so: for the person who makes it by hand, or else in
    /// the folder. Returns its file there.
    pub(super) fn keep_recording(&self, traces: &mut CallTraces, outcome: Outcome) -> Option<String> {
        let taped = traces.taped.take()?;
        if self.records {
            let made = taped.made();
            let made = made.inspect_err(|problem| tracing::warn!("a call is not recorded: {problem}"));
            traces.recording = made.ok().map(Box::new);
            return None;
        }
        if self.target.record == RecordRule::Errors && !outcome.is_error() {
            return None;
        }
        let place = self.catalog.settings.recordings.as_ref()?;
        self.catalog.services.recordings.as_ref()?.keep(taped, place)
    }
}

/// True if anything of the call ran: it used fuel, asked for something, or ended its process.
fn ran(report: &CallReport<GuestResult>, tape_bytes: u64) -> bool {
    match report.outcome {
        Err(CallFailure::Unfit { .. }) => false,
        Err(CallFailure::SandboxEnded { .. }) => true,
        _ => report.usage.fuel > 0 || tape_bytes > 0,
    }
}
