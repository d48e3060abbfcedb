//! Calls of other tools that a guest makes: the contract's `calling`. The host makes the calls, and
//! decides on each.
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use toolcell_wall::asking::EndedByAsking;
use toolcell_wall::caller::Outside;
use toolcell_wall::contract::GuestTool;
use toolcell_wall::doors::calling::{CallingReply, CallingRequest};
use toolcell_wall::encoding;
use toolcell_wall::nested::{FOUND_MAX, FoundTool, NestedEnd, NotCalled, NotCalledReason, WORDS_BYTES_MAX, WantedCall};
use toolcell_walls::door::DoorError;

use crate::run::calling::{CallingFailed, WaitedTooLong};
use crate::wasi::state::CallState;

/// Fuel of a call: the host begins and records one.
const CALL_FUEL: u64 = 100_000;

/// Fuel of each byte of arguments, which the host searches for secrets.
const BYTE_FUEL: u64 = 8;

fn mismatched() -> DoorError {
    DoorError::Wrong("the host answered another request")
}

fn refused(reason: NotCalledReason, text: impl Into<String>) -> NestedEnd {
    Err(NotCalled::refused(reason, text))
}

impl CallState {
    /// Calls these tools. The ends are in the order of the calls.
    pub(crate) async fn call_tools(&mut self, calls: Vec<WantedCall>) -> wasmtime::Result<Vec<NestedEnd>> {
        let bytes: usize = calls.iter().map(|call| call.tool.len().saturating_add(call.arguments_json.len())).sum();
        let fuel = (calls.len() as u64).saturating_mul(CALL_FUEL);
        self.spend(fuel.saturating_add((bytes as u64).saturating_mul(BYTE_FUEL)))?;
        let mut ends: Vec<Option<NestedEnd>> = Vec::with_capacity(calls.len());
        let mut places = Vec::new();
        let mut wanted = Vec::new();
        let stands = self.calling().0.take_places();
        for ((call, place), stand) in calls.into_iter().zip(0_usize..).zip(stands) {
            match self.may_call(&call) {
                Ok(()) => {
                    places.push(place);
                    wanted.push(WantedCall { place: stand, ..call });
                    ends.push(None);
                }
                Err(refusal) => ends.push(Some(Err(refusal))),
            }
        }
        if let Some(outside) = self.caller.outside().filter(|_| !wanted.is_empty()) {
            let mut missing = wanted.len();
            let mut stopped = None;
            let request = CallingRequest::Call(wanted);
            let (calling, questions) = self.calling();
            let asked = calling.request(outside, questions, &request, |reply| {
                let (place, end) = match reply {
                    CallingReply::Ended(place, end) => (place, end),
                    CallingReply::Stopped(refused) => {
                        stopped = Some(EndedByAsking { refused });
                        return Ok(true);
                    }
                    _ => return Err(mismatched()),
                };
                let place = usize::try_from(place).ok().and_then(|place| places.get(place));
                let end = place.and_then(|place| Some((ends.get_mut(*place).filter(|end| end.is_none())?, end)));
                let (slot, end) = end.ok_or_else(mismatched)?;
                *slot = Some(encoding::decode::<NestedEnd>(&end.0)?);
                missing = missing.saturating_sub(1);
                Ok(missing == 0)
            });
            let asked = asked.await.map_err(|_| CallingFailed)?;
            if let Some(ended) = stopped {
                return Err(ended.into());
            }
            if let Err(WaitedTooLong) = asked {
                let late = || refused(NotCalledReason::NotApproved, "nobody decided in time (limit \"ask_wait\")");
                ends.iter_mut().filter(|end| end.is_none()).for_each(|end| *end = Some(late()));
            }
        }
        let nowhere = || refused(NotCalledReason::Unknown, "no tool can be called here");
        Ok(ends.into_iter().map(|end| end.unwrap_or_else(nowhere)).collect())
    }

    /// Refuses a call that needs no look at any tool.
    fn may_call(&mut self, call: &WantedCall) -> Result<(), NotCalled> {
        if let Err(denial) = self.capabilities().grants().call(&call.tool) {
            let text = denial.to_string();
            self.deny(denial);
            return Err(NotCalled::refused(NotCalledReason::Denied, text));
        }
        let (calling, _) = self.calling();
        calling.take().ok_or_else(|| NotCalled::refused(NotCalledReason::OverLimit, calling.too_many.as_str()))
    }

    /// Searches the tools that the guest may call. Nothing is found past its limit.
    pub(crate) async fn find_tools(&mut self, words: String, limit: u32) -> wasmtime::Result<Vec<FoundTool>> {
        self.spend(CALL_FUEL)?;
        let Some(outside) = self.search(&words) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let request = CallingRequest::Find(words, limit.min(FOUND_MAX));
        let (calling, questions) = self.calling();
        let asked = calling.request(outside, questions, &request, |reply| {
            let CallingReply::Found(tools) = reply else { return Err(mismatched()) };
            found = tools;
            Ok(true)
        });
        let _ = asked.await.map_err(|_| CallingFailed)?;
        Ok(found)
    }

    /// The tool of this name, if the guest may call it.
    pub(crate) async fn describe_tool(&mut self, tool: String) -> wasmtime::Result<Option<GuestTool>> {
        self.spend(CALL_FUEL)?;
        let Some(outside) = self.search(&tool) else { return Ok(None) };
        let mut described = None;
        let request = CallingRequest::Describe(tool);
        let (calling, questions) = self.calling();
        let asked = calling.request(outside, questions, &request, |reply| {
            let CallingReply::Described(tool) = reply else { return Err(mismatched()) };
            described = tool.map(|tool| encoding::decode(&tool.0)).transpose()?;
            Ok(true)
        });
        let _ = asked.await.map_err(|_| CallingFailed)?;
        Ok(described)
    }

    /// When the run began that the call belongs to, in milliseconds since 1970. A call that can
    /// make none is a run of its own, which begins now.
    pub(crate) async fn when_run_began(&mut self) -> wasmtime::Result<u64> {
        self.spend(CALL_FUEL)?;
        let mut began = None;
        let may_call = !self.capabilities().grants().calls().is_empty();
        if let Some(outside) = self.caller.outside().filter(|_| may_call) {
            let (calling, questions) = self.calling();
            let asked = calling.request(outside, questions, &CallingRequest::Began, |reply| {
                let CallingReply::Began(millis) = reply else { return Err(mismatched()) };
                began = Some(millis);
                Ok(true)
            });
            let _ = asked.await.map_err(|_| CallingFailed)?;
        }
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Ok(began.unwrap_or_else(|| u64::try_from(now()).unwrap_or(u64::MAX)))
    }

    /// The way out for a search, if the guest may make one for this text.
    fn search(&mut self, text: &str) -> Option<Arc<dyn Outside>> {
        if self.capabilities().grants().calls().is_empty() || text.len() > WORDS_BYTES_MAX {
            return None;
        }
        self.calling().0.take_search()?;
        self.caller.outside()
    }
}
