//! State of a guest in a sandbox process, which the host keeps. One door carries all operations of
//! a call, one after the other.
use std::sync::Arc;

use toolcell_wall::doors::Opening;
use toolcell_wall::doors::state::{StateNotDone, StateOperation, StateOutcome, StateWanted};
use toolcell_walls::door::{self, DoorError, FrameReader, FrameWriter, HOST_BYTES_MAX};

use super::bindings::wasi::keyvalue::store::Error;
use super::host::Trouble;
use toolcell_wall::caller::Outside;
use toolcell_wall::failure::CallFailure;

/// Bytes of a bucket's name that the host is asked for: more than any has.
const NAME_BYTES_MAX: usize = 1 << 10;

/// The host has ended the call, or noted why it could not do the operation.
#[derive(Debug, thiserror::Error)]
#[error("the host could not read or write what this tool keeps")]
pub(crate) struct StateFailed;

impl From<&StateFailed> for CallFailure {
    fn from(failed: &StateFailed) -> Self {
        Self::Host { detail: failed.to_string() }
    }
}

impl From<StateNotDone> for Trouble {
    fn from(not_done: StateNotDone) -> Self {
        match not_done {
            StateNotDone::NoSuchStore => Self::Guest(Error::NoSuchStore),
            StateNotDone::AccessDenied => Self::Guest(Error::AccessDenied),
            StateNotDone::Other(text) => Self::Guest(Error::Other(text)),
            StateNotDone::Fault => Self::Trap(StateFailed.into()),
        }
    }
}

/// The sandbox's side of one call's state.
pub(crate) struct OutsideState {
    outside: Arc<dyn Outside>,
    /// Opened when the guest first needs it.
    door: Option<(FrameReader, FrameWriter)>,
}

impl OutsideState {
    pub(crate) fn new(outside: Arc<dyn Outside>) -> Self {
        Self { outside, door: None }
    }

    /// Makes the host do one operation.
    pub(super) async fn perform(&mut self, bucket: &str, operation: StateOperation) -> Result<StateOutcome, Trouble> {
        operation.check()?;
        if bucket.len() > NAME_BYTES_MAX {
            return Err(Trouble::Guest(Error::NoSuchStore));
        }
        let wanted = StateWanted { bucket: bucket.into(), operation };
        match self.asked(&wanted).await {
            Ok(done) => Ok(done?),
            // The host ends this call, or has failed.
            Err(_) => Err(Trouble::Trap(StateFailed.into())),
        }
    }

    async fn asked(&mut self, wanted: &StateWanted<'_>) -> Result<Result<StateOutcome, StateNotDone>, DoorError> {
        // A door that failed is not used again: its next message may be part of an earlier one.
        let (mut reader, mut writer) = match self.door.take() {
            Some(door) => door,
            None => door::open(&*self.outside, &Opening::State).await?,
        };
        writer.message(wanted).await?;
        let done = reader.message(HOST_BYTES_MAX).await?;
        self.door = Some((reader, writer));
        Ok(done)
    }
}
