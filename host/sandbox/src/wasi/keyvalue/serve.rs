//! The host's side of a call's door to its state.
use std::sync::{Mutex, PoisonError};

use toolcell_wall::doors::state::{BATCH_BYTES_MAX, BATCH_KEYS_MAX, KEY_BYTES_MAX, StateNotDone, StateWanted};
use toolcell_walls::door::{DoorError, FrameReader, FrameWriter};

use super::error::{StateFault, StateRefusal};
use super::operations::KeptState;
use toolcell_wall::failure::CallFailure;

/// Bytes of an item of a batch in addition to its key and value: both lengths, and an address.
const ITEM_BYTES: usize = 16;

/// Bytes of one operation, encoded: the largest batch, with the longest keys.
const OPERATION_BYTES_MAX: usize = BATCH_BYTES_MAX as usize + BATCH_KEYS_MAX * (KEY_BYTES_MAX + ITEM_BYTES) + (1 << 10);

/// Bytes of the first operation of a guest that is granted no state, which opens a bucket.
const UNGRANTED_BYTES_MAX: usize = 64 << 10;

/// The failure of the state that ends its call, if any.
#[derive(Debug, Default)]
pub(crate) struct StateFailure(Mutex<Option<CallFailure>>);

impl StateFailure {
    /// Keeps the first one.
    fn note(&self, fault: &StateFault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| fault.into());
    }

    /// The failure, if there was one.
    pub(crate) fn get(&self) -> Option<CallFailure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The host's side: does what the sandbox process asks for, as far as the call may.
pub(crate) async fn serve(
    mut state: KeptState<'_>,
    failed: &StateFailure,
    host_data_bytes: u64,
    mut reader: FrameReader,
    mut writer: FrameWriter,
) -> Result<(), DoorError> {
    // A guest sends no more at once, and none without a grant.
    let handed_over =
        usize::try_from(host_data_bytes).unwrap_or(usize::MAX).saturating_add(BATCH_KEYS_MAX * ITEM_BYTES);
    let granted_max = if state.granted.is_some() { OPERATION_BYTES_MAX } else { UNGRANTED_BYTES_MAX };
    let bytes_max = granted_max.min(handed_over);
    loop {
        let StateWanted { bucket, operation } = match reader.message::<StateWanted<'static>>(bytes_max).await {
            Err(DoorError::Closed) => return Ok(()),
            wanted => wanted?,
        };
        let done = match operation.check() {
            Ok(()) => state.perform(&bucket, operation).await,
            Err(unfit) => Err(unfit.into()),
        };
        let done = done.map_err(|refusal| match refusal {
            StateRefusal::NoSuchStore => StateNotDone::NoSuchStore,
            StateRefusal::Denied => StateNotDone::AccessDenied,
            StateRefusal::Fault(fault) => {
                failed.note(&fault);
                StateNotDone::Fault
            }
            other => StateNotDone::Other(other.to_string()),
        });
        writer.message(&done).await?;
    }
}
