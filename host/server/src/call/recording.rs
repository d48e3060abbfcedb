//! The recording of a call, if it is recorded.
use std::sync::Arc;
use std::time::SystemTime;

use toolcell_audit::Outcome;
use toolcell_policy::RecordRule;
use toolcell_sandbox::contract::GuestResult;
use toolcell_sandbox::{CallFailure, CallReport, GrantedCapabilities, Tape};

use super::StartedCall;
use super::execute::CallTraces;
use crate::recordings::{OrderedPlace, TapedCall};

/// The tape of a call that runs.
pub(super) struct RunningTape {
    pub(super) tape: Tape,
    /// The call's place among those that an operator has recorded.
    ordered: Option<OrderedPlace>,
}

/// What a recorded call was given.
pub(super) struct TapedArguments<'a> {
    /// JSON.
    pub(super) text: &'a str,
    /// The protocol's revision that the caller spoke.
    pub(super) revision: &'static str,
    pub(super) capabilities: &'a Arc<GrantedCapabilities>,
}

impl StartedCall<'_> {
    /// A tape, if the call is recorded.
    pub(super) fn tape(&self) -> Option<RunningTape> {
        self.catalog.walled.recorded_manifest(self.target)?;
        // A call by hand is recorded for its person alone.
        let ordered = if self.records { None } else { self.ordered() };
        if !self.records && ordered.is_none() && !self.is_picked() {
            return None;
        }
        Some(RunningTape { tape: Tape::recording(), ordered })
    }

    /// A place among the next calls of the tool, if an operator has them recorded.
    fn ordered(&self) -> Option<OrderedPlace> {
        let services = &self.catalog.services;
        let place = services.ordered_recordings.place(self.target.component.name(), &self.target.name)?;
        self.catalog.is_recordable(self.target).is_ok().then_some(place)
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
        running: RunningTape,
        report: &CallReport<GuestResult>,
        given: TapedArguments<'_>,
    ) -> Option<Box<TapedCall>> {
        let RunningTape { tape, ordered } = running;
        let tape_bytes = tape.finish();
        let tape_bytes = tape_bytes.inspect_err(|error| tracing::warn!("a call is not recorded: {error}")).ok()?;
        if !ran(report, tape_bytes) {
            return None;
        }
        let component = &self.target.component;
        Some(Box::new(TapedCall {
            call: self.record.id(),
            revision: given.revision,
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
            ordered,
        }))
    }

    /// Keeps the recording of a call that ended so: for the person who makes it by hand, or else in
    /// the folder. Returns its file there.
    pub(super) fn keep_recording(&self, traces: &mut CallTraces, outcome: Outcome) -> Option<String> {
        let mut taped = traces.taped.take()?;
        if self.records {
            let made = taped.made();
            let made = made.inspect_err(|problem| tracing::warn!("a call is not recorded: {problem}"));
            traces.recording = made.ok().map(Box::new);
            return None;
        }
        let ordered = taped.ordered.take();
        let is_ruled = match self.target.record {
            RecordRule::Never => false,
            RecordRule::Errors => outcome.is_error(),
            // One that has a place was not picked by the rule.
            RecordRule::Share(_) => ordered.is_none(),
            RecordRule::All => true,
        };
        let ordered = ordered.filter(OrderedPlace::is_wanted);
        if !is_ruled && ordered.is_none() {
            return None;
        }
        let place = self.catalog.settings.recordings.as_ref()?;
        let file = self.catalog.services.recordings.as_ref()?.keep(taped, place)?;
        ordered.into_iter().for_each(OrderedPlace::kept);
        Some(file)
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
