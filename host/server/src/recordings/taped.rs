//! A recorded call that has ended, before a recording is made of it. That takes time: it is done
//! where no call waits.
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use toolcell_sandbox::contract::GuestResult;
use toolcell_sandbox::{CallFailure, GrantedCapabilities, Tape};

use super::ordered::OrderedPlace;
use super::recording::{RecordedUse, Recording, RecordingHead};
use super::standing_in;

/// Bytes that a call counts besides its texts: names, and what the queue needs.
const BYTES_BESIDE: u64 = 1 << 10;

/// A recorded call that has ended.
pub struct TapedCall {
    /// The host's number of the call.
    pub(crate) call: u64,
    /// The protocol's revision that its caller spoke.
    pub(crate) revision: &'static str,
    /// The component's name in the manifest.
    pub(crate) component: String,
    /// The digest of its bytes.
    pub(crate) digest: String,
    /// The tool's own name.
    pub(crate) tool: String,
    /// Its name for clients.
    pub(crate) listed: String,
    /// The caller's name.
    pub(crate) caller: String,
    /// The arguments: JSON.
    pub(crate) arguments_json: String,
    /// True if the component got them as they are.
    pub(crate) is_conformed: bool,
    /// The component's part of the manifest.
    pub(crate) manifest: String,
    /// Those of the call: they know its secrets.
    pub(crate) capabilities: Arc<GrantedCapabilities>,
    pub(crate) tape: Tape,
    /// Bytes of memory of the tape, to which nobody writes any more.
    pub(crate) tape_bytes: u64,
    pub(crate) outcome: Result<GuestResult, CallFailure>,
    pub(crate) used: RecordedUse,
    pub(crate) ended: SystemTime,
    /// Bytes of the answer, about.
    pub(crate) answer_bytes: u64,
    /// Its place among the calls that an operator has recorded, until its recording is kept.
    pub(crate) ordered: Option<OrderedPlace>,
}

impl fmt::Debug for TapedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TapedCall").field("call", &self.call).field("tool", &self.tool).finish_non_exhaustive()
    }
}

impl TapedCall {
    /// The recording of this call. No secret is in it.
    ///
    /// # Errors
    /// A sentence: the tape cannot be read.
    pub fn made(&self) -> Result<Recording, String> {
        let entries = self.tape.entries().map_err(|error| error.to_string())?;
        let mut entries = entries.map_err(|error| format!("the sandbox wrote no recording: {error}"))?;
        standing_in::redact(self.capabilities.redactor(), &mut entries);
        Ok(Recording { head: self.head(), entries, outcome: self.outcome.clone(), used: self.used })
    }

    fn head(&self) -> RecordingHead {
        let redactor = self.capabilities.redactor();
        RecordingHead {
            recording: RecordingHead::version(),
            toolcell: env!("CARGO_PKG_VERSION").to_owned(),
            processor: std::env::consts::ARCH.to_owned(),
            recorded: toolcell_audit::timestamp(self.ended),
            call: self.call,
            revision: self.revision.to_owned(),
            component: self.component.clone(),
            digest: self.digest.clone(),
            tool: self.tool.clone(),
            listed: self.listed.clone(),
            caller: self.caller.clone(),
            arguments: redactor.text(&self.arguments_json).into_owned(),
            is_conformed: self.is_conformed,
            manifest: redactor.text(&self.manifest).into_owned(),
            secrets: self.capabilities.secret_lengths().map(|(name, bytes)| (name.to_owned(), bytes)).collect(),
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        let texts = self.arguments_json.len().saturating_add(self.manifest.len()) as u64;
        let answer = self.answer_bytes;
        self.tape_bytes.saturating_add(texts).saturating_add(answer).saturating_add(BYTES_BESIDE)
    }
}
