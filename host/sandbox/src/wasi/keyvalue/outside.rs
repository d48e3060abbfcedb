//! State of a guest in a sandbox process, which the host keeps. One door carries all operations of
//! a call, one after the other. Must not hold: the operations.
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::bindings::wasi::keyvalue::store::Error;
use super::error::Fault;
use super::host::Trouble;
use super::operations::{KeptState, Operation, Outcome};
use super::store::{BATCH_BYTES_MAX, BATCH_KEYS_MAX, KEY_BYTES_MAX};
use crate::wasi::doors::frame::HOST_BYTES_MAX;
use crate::wasi::doors::{Door, DoorError, FrameReader, FrameWriter, Opening};
use toolcell_wall::caller::Outside;
use toolcell_wall::failure::Failure;

/// Bytes of an item of a batch beside its key and value: the lengths of both, and an address.
const ITEM_BYTES: usize = 16;

/// Bytes of one operation, encoded: the largest batch, with the longest keys.
const OPERATION_BYTES_MAX: usize = BATCH_BYTES_MAX as usize + BATCH_KEYS_MAX * (KEY_BYTES_MAX + ITEM_BYTES) + (1 << 10);

/// Bytes of a bucket's name that the host is asked for: more than any has.
const NAME_BYTES_MAX: usize = 1 << 10;

/// Bytes of the first operation of a guest that is granted no state, which opens a bucket.
const UNGRANTED_BYTES_MAX: usize = 64 << 10;

/// One operation, on the bucket of a name that the guest opened.
#[derive(Debug, Serialize, Deserialize)]
struct Wanted<'b> {
    bucket: Cow<'b, str>,
    operation: Operation,
}

/// Why an operation was not done.
#[derive(Debug, Serialize, Deserialize)]
enum NotDone {
    NoSuchStore,
    AccessDenied,
    Other(String),
    /// The file failed. The host knows more.
    Fault,
}

impl From<NotDone> for Trouble {
    fn from(not_done: NotDone) -> Self {
        match not_done {
            NotDone::NoSuchStore => Self::Guest(Error::NoSuchStore),
            NotDone::AccessDenied => Self::Guest(Error::AccessDenied),
            NotDone::Other(text) => Self::Guest(Error::Other(text)),
            NotDone::Fault => Self::Trap(Fault::Outside.into()),
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

    /// Has the host do one operation.
    pub(super) async fn perform(&mut self, bucket: &str, operation: Operation) -> Result<Outcome, Trouble> {
        operation.check()?;
        if bucket.len() > NAME_BYTES_MAX {
            return Err(Trouble::Guest(Error::NoSuchStore));
        }
        let wanted = Wanted { bucket: bucket.into(), operation };
        match self.asked(&wanted).await {
            Ok(done) => Ok(done?),
            // The host ends this call, or has failed.
            Err(_) => Err(Trouble::Trap(Fault::Outside.into())),
        }
    }

    async fn asked(&mut self, wanted: &Wanted<'_>) -> Result<Result<Outcome, NotDone>, DoorError> {
        // A door that fails is no door any more: its next message may be part of an earlier one.
        let (mut reader, mut writer) = match self.door.take() {
            Some(door) => door,
            None => {
                let (reader, mut writer) = Door::open(&*self.outside).await?.split();
                writer.message(&Opening::State).await?;
                (reader, writer)
            }
        };
        writer.message(wanted).await?;
        let done = reader.message(HOST_BYTES_MAX).await?;
        self.door = Some((reader, writer));
        Ok(done)
    }
}

/// The failure of the state that ends its call, where there was one.
#[derive(Debug, Default)]
pub(crate) struct Failed(Mutex<Option<Failure>>);

impl Failed {
    /// Remembers the first.
    fn note(&self, error: &wasmtime::Error) {
        let failure = match error.downcast_ref::<Fault>() {
            Some(fault) => fault.into(),
            None => Failure::Host { detail: format!("{error:?}") },
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }

    /// The failure, if there was one.
    pub(crate) fn get(&self) -> Option<Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The host's side: does what the sandbox process asks for, as far as the call may.
pub(crate) async fn serve(
    mut state: KeptState<'_>,
    (failed, host_data_bytes): (&Failed, u64),
    (mut reader, mut writer): (FrameReader, FrameWriter),
) -> Result<(), DoorError> {
    // A guest hands over no more at once, and none without a grant.
    let handed_over =
        usize::try_from(host_data_bytes).unwrap_or(usize::MAX).saturating_add(BATCH_KEYS_MAX * ITEM_BYTES);
    let granted_max = if state.granted.is_some() { OPERATION_BYTES_MAX } else { UNGRANTED_BYTES_MAX };
    let bytes_max = granted_max.min(handed_over);
    loop {
        let Wanted { bucket, operation } = match reader.message::<Wanted<'static>>(bytes_max).await {
            Err(DoorError::Closed) => return Ok(()),
            wanted => wanted?,
        };
        let done = match operation.check() {
            Ok(()) => state.perform(&bucket, operation).await,
            Err(refusal) => Err(refusal.into()),
        };
        let done = done.map_err(|trouble| match trouble {
            Trouble::Guest(Error::NoSuchStore) => NotDone::NoSuchStore,
            Trouble::Guest(Error::AccessDenied) => NotDone::AccessDenied,
            Trouble::Guest(Error::Other(text)) => NotDone::Other(text),
            Trouble::Trap(error) => {
                failed.note(&error);
                NotDone::Fault
            }
        });
        writer.message(&done).await?;
    }
}
