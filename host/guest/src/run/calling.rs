//! The sandbox's side of the calls of other tools that one call makes: one door, which carries its
//! requests one after the other.
use std::sync::Arc;

use toolcell_policy::{Limit, Limits};
use toolcell_wall::caller::Outside;
use toolcell_wall::doors::Opening;
use toolcell_wall::doors::calling::{CallingReply, CallingRequest};
use toolcell_wall::failure::CallFailure;
use toolcell_wall::nested::ProgramPlace;
use toolcell_walls::door::{self, DoorError, FrameReader, FrameWriter, HOST_BYTES_MAX};

use crate::run::asking::CallQuestions;

/// The host has ended the call, or could not serve its door.
#[derive(Debug, thiserror::Error)]
#[error("the host could not make the calls of this tool")]
pub(crate) struct CallingFailed;

impl From<&CallingFailed> for CallFailure {
    fn from(failed: &CallingFailed) -> Self {
        Self::Host { detail: failed.to_string() }
    }
}

/// The sandbox's side of one call's calls.
pub(crate) struct OutsideCalling {
    /// Calls that the guest may still begin. The host counts, too.
    left: usize,
    /// Searches for tools that it may still make.
    searches_left: usize,
    /// The sentence for one more.
    pub(crate) too_many: String,
    /// Opened when the guest first needs it.
    door: Option<(FrameReader, FrameWriter)>,
    /// Where the next calls stand in the guest's program.
    places: Vec<Option<ProgramPlace>>,
}

/// The time that a call may wait for persons is over.
pub(crate) struct WaitedTooLong;

impl OutsideCalling {
    /// Of a call with these limits.
    pub(crate) fn of(limits: &Limits) -> Self {
        let too_many = CallFailure::over(Limit::CallsMax, limits).to_string();
        let most = limits.calls_max();
        Self { left: most, searches_left: most, too_many, door: None, places: Vec::new() }
    }

    /// Closes the door to the host.
    pub(crate) fn close(&mut self) {
        self.door = None;
    }

    /// Notes where the next calls stand in the guest's program, of those that it may still make.
    pub(crate) fn stand_at(&mut self, mut places: Vec<Option<ProgramPlace>>) {
        places.truncate(self.left);
        self.places = places;
    }

    /// The places of the calls that are made now, in their order. They are used up.
    pub(crate) fn take_places(&mut self) -> impl Iterator<Item = Option<ProgramPlace>> + use<> {
        std::mem::take(&mut self.places).into_iter().chain(std::iter::repeat(None))
    }

    /// Counts a call; `None` if it is one too many.
    pub(crate) fn take(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }

    /// Counts a search; `None` if it is one too many.
    pub(crate) fn take_search(&mut self) -> Option<()> {
        self.searches_left = self.searches_left.checked_sub(1)?;
        Some(())
    }

    /// Sends a request. Its replies go to `each`, until that says that it was the last.
    pub(crate) async fn request(
        &mut self,
        outside: Arc<dyn Outside>,
        questions: &CallQuestions,
        request: &CallingRequest,
        mut each: impl FnMut(CallingReply) -> Result<bool, DoorError>,
    ) -> Result<Result<(), WaitedTooLong>, DoorError> {
        // A door that failed is not used again: its next message may be part of an earlier one.
        let (mut reader, mut writer) = match self.door.take() {
            Some(door) => door,
            None => door::open(&*outside, &Opening::Calling).await?,
        };
        writer.message(request).await?;
        let mut waits = false;
        loop {
            let next = reader.message::<CallingReply>(HOST_BYTES_MAX);
            let reply = if waits {
                match questions.wait_for(next).await {
                    Some(reply) => reply?,
                    None => return Ok(Err(WaitedTooLong)),
                }
            } else {
                next.await?
            };
            match reply {
                CallingReply::Waits(now) => waits = now,
                reply => {
                    if each(reply)? {
                        break;
                    }
                }
            }
        }
        self.door = Some((reader, writer));
        Ok(Ok(()))
    }
}
