//! From the tape of a call that has ended to a recording.
use std::time::SystemTime;

use toolcell_sandbox::contract::GuestResult;
use toolcell_sandbox::{CallFailure, Redactor, Tape};

use super::recording::{RecordedUse, Recording, RecordingHead};
use super::standing_in;

/// A call that is recorded.
pub(crate) struct RecordedCall<'a> {
    /// The host's number of the call.
    pub(crate) call: u64,
    /// The component's name in the manifest.
    pub(crate) component: &'a str,
    /// The digest of its bytes.
    pub(crate) digest: &'a str,
    /// The tool's own name.
    pub(crate) tool: &'a str,
    /// Its name for clients.
    pub(crate) listed: &'a str,
    /// The caller's name.
    pub(crate) caller: &'a str,
    /// The arguments: JSON.
    pub(crate) arguments_json: &'a str,
    /// True if the component got them as they are.
    pub(crate) is_conformed: bool,
    /// The component's part of the manifest.
    pub(crate) manifest: &'a str,
    /// Finds the secrets of the call.
    pub(crate) redactor: &'a Redactor,
    /// The names of secrets that its guest may hold, with the bytes of their values.
    pub(crate) secrets: Vec<(String, usize)>,
    /// When it ended.
    pub(crate) ended: SystemTime,
}

impl RecordedCall<'_> {
    /// The recording of this call, which has ended so. No secret is in it.
    ///
    /// # Errors
    /// A sentence: the tape cannot be read.
    pub(crate) fn made(
        self,
        tape: &Tape,
        outcome: &Result<GuestResult, CallFailure>,
        used: RecordedUse,
    ) -> Result<Recording, String> {
        let entries = tape.entries().map_err(|error| error.to_string())?;
        let mut entries = entries.map_err(|error| format!("the sandbox wrote no recording: {error}"))?;
        standing_in::redact(self.redactor, &mut entries);
        let head = RecordingHead::new(self);
        Ok(Recording { head, entries, outcome: outcome.clone(), used })
    }
}

impl RecordingHead {
    fn new(of: RecordedCall<'_>) -> Self {
        Self {
            recording: Self::version(),
            toolcell: env!("CARGO_PKG_VERSION").to_owned(),
            processor: std::env::consts::ARCH.to_owned(),
            recorded: toolcell_audit::timestamp(of.ended),
            call: of.call,
            component: of.component.to_owned(),
            digest: of.digest.to_owned(),
            tool: of.tool.to_owned(),
            listed: of.listed.to_owned(),
            caller: of.caller.to_owned(),
            arguments: of.redactor.text(of.arguments_json).into_owned(),
            is_conformed: of.is_conformed,
            manifest: of.redactor.text(of.manifest).into_owned(),
            secrets: of.secrets.into_iter().collect(),
        }
    }
}
