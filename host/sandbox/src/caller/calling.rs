//! Calls of other tools that a guest makes, through the door of its call. They are counted and
//! bounded here; the call's sender makes them.
//!
//! Promise: a nested call is a call.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tokio::sync::watch;
use tokio::task::JoinSet;
use toolcell_policy::{Ask, Capability, Limit, Limits};
use toolcell_wall::asking::EndedByAsking;
use toolcell_wall::caller::{CallerLink, PersonWaits};
use toolcell_wall::denials::CallDenials;
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::calling::{CALL_BYTES, CallingReply, CallingRequest};
use toolcell_wall::encoding;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::nested::{FOUND_MAX, FoundTool, NestedEnd, NotCalled, NotCalledReason, WORDS_BYTES_MAX, WantedCall};
use toolcell_walls::door::{DoorError, FrameReader, FrameWriter, HOST_BYTES_MAX};

use super::waited::{OpenQuestion, Waited};
use crate::secrets::answer;
use crate::wasi::capabilities::GrantedCapabilities;
use crate::wasi::net::CallNet;

/// Bytes of the end of a call in a message besides itself.
const END_BYTES: usize = 64;

/// What is counted of the calls that a call makes.
#[derive(Debug)]
pub(crate) struct CallingCounts {
    limits: Limits,
    begun: AtomicUsize,
    searches: AtomicUsize,
    /// The number of the last call that the guest asked for.
    asked: AtomicU32,
}

/// The parts of a call that make calls. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CallingParts {
    pub(crate) capabilities: Arc<GrantedCapabilities>,
    pub(crate) caller: Arc<dyn CallerLink>,
    pub(crate) net: Arc<CallNet>,
    pub(crate) denials: CallDenials,
    pub(crate) waited: Arc<Waited>,
    pub(crate) counts: Arc<CallingCounts>,
}

/// The calls that wait for a person.
struct WaitingCalls(watch::Sender<usize>);

impl PersonWaits for WaitingCalls {
    fn begin(&self) {
        self.0.send_modify(|waiting| *waiting = waiting.saturating_add(1));
    }

    fn end(&self) {
        self.0.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
    }
}

impl CallingCounts {
    /// Of a call with these limits.
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { limits: *limits, begun: AtomicUsize::new(0), searches: AtomicUsize::new(0), asked: AtomicU32::new(0) }
    }

    /// Counts a call; `Err` if it is one too many.
    fn take(&self) -> Result<(), NotCalled> {
        let before = self.begun.fetch_add(1, Ordering::Relaxed);
        if before < self.limits.calls_max() { Ok(()) } else { Err(self.over(Limit::CallsMax)) }
    }

    /// Counts a search for tools; false if it is one too many. There may be as many as calls: a
    /// guest that looks a tool up before it calls it makes no fewer calls.
    fn may_search(&self) -> bool {
        self.searches.fetch_add(1, Ordering::Relaxed) < self.limits.calls_max()
    }

    /// The number of the next call. A guest that runs again in the same way gets the same numbers.
    fn next(&self) -> u32 {
        self.asked.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    fn over(&self, limit: Limit) -> NotCalled {
        NotCalled::refused(NotCalledReason::OverLimit, CallFailure::over(limit, &self.limits).to_string())
    }
}

/// The host's side of a call's door to other tools.
pub(crate) async fn serve(
    calling: CallingParts,
    host_data_bytes: u64,
    mut reader: FrameReader,
    mut writer: FrameWriter,
) -> Result<(), DoorError> {
    if calling.capabilities.grants().calls().is_empty() {
        return Err(DoorError::Wrong("a door to other tools was opened by a tool that may call none"));
    }
    let most = calling.counts.limits.calls_max();
    let texts = usize::try_from(host_data_bytes).unwrap_or(usize::MAX).saturating_add(WORDS_BYTES_MAX);
    let bytes_max = texts.saturating_add(most.saturating_mul(CALL_BYTES)).min(HOST_BYTES_MAX);
    loop {
        let request = match reader.message::<CallingRequest>(bytes_max).await {
            Err(DoorError::Closed) => return Ok(()),
            request => request?,
        };
        match request {
            CallingRequest::Call(calls) if calls.is_empty() || calls.len() > most => {
                return Err(DoorError::Wrong("no calls were asked for, or more than the call may make"));
            }
            CallingRequest::Call(calls) => calling.call_all(calls, &mut writer).await?,
            CallingRequest::Find(words, _) | CallingRequest::Describe(words) if words.len() > WORDS_BYTES_MAX => {
                return Err(DoorError::Wrong("a search for tools has too many words"));
            }
            CallingRequest::Find(words, limit) => {
                let most = usize::try_from(limit.min(FOUND_MAX)).unwrap_or_default();
                let may = calling.counts.may_search();
                let found = if may { calling.find(words, most).await } else { Vec::new() };
                writer.message(&CallingReply::Found(found)).await?;
            }
            CallingRequest::Describe(tool) => {
                let may = calling.counts.may_search() && calling.capabilities.grants().call(&tool).is_ok();
                let described = may.then(|| calling.caller.describe_tool(&tool)).flatten();
                let described = described.map(|tool| encoding::encode(&tool).map(Blob)).transpose()?;
                writer.message(&CallingReply::Described(described)).await?;
            }
            CallingRequest::Began => {
                writer.message(&CallingReply::Began(calling.caller.run_began().unwrap_or_default())).await?;
            }
        }
    }
}

impl CallingParts {
    /// Looks for tools. The first search of many tools reads all their texts, so it leaves the
    /// thread that drives connections.
    async fn find(&self, words: String, most: usize) -> Vec<FoundTool> {
        let caller = Arc::clone(&self.caller);
        tokio::task::spawn_blocking(move || caller.find_tools(&words, most)).await.unwrap_or_default()
    }

    /// Makes these calls, as many at once as may be. Each end is sent when it comes. Once a call
    /// stops the one that makes it, no other begins, and those under way come to their ends: they
    /// are logged, and never made twice.
    async fn call_all(&self, calls: Vec<WantedCall>, writer: &mut FrameWriter) -> Result<(), DoorError> {
        let at_once = self.counts.limits.calls_at_once();
        let waits = Arc::new(WaitingCalls(watch::Sender::new(0)));
        let mut waiting = waits.0.subscribe();
        let mut open: Option<OpenQuestion> = None;
        let mut left = calls.into_iter().zip(0_u32..);
        // Dropped with this future, which ends the calls.
        let mut running = JoinSet::new();
        let mut stopped: Option<EndedByAsking> = None;
        loop {
            while stopped.is_none()
                && running.len() < at_once
                && let Some((call, place)) = left.next()
            {
                let calling = self.clone();
                let sequence = self.counts.next();
                let waits: Arc<dyn PersonWaits> = Arc::<WaitingCalls>::clone(&waits);
                running.spawn(async move { (place, calling.call(sequence, call, waits).await) });
            }
            tokio::select! {
                biased;
                changed = waiting.changed() => {
                    let waits = changed.is_ok() && *waiting.borrow_and_update() > 0;
                    if waits != open.is_some() {
                        open = waits.then(|| self.waited.open());
                        writer.message(&CallingReply::Waits(waits)).await?;
                    }
                }
                ended = running.join_next() => match ended {
                    None => break,
                    Some(Ok((place, Ok(end)))) if stopped.is_none() => {
                        writer.message(&CallingReply::Ended(place, self.sent(end)?)).await?;
                    }
                    Some(Ok((_, Ok(_)))) => {}
                    Some(Ok((_, Err(ended)))) => _ = stopped.get_or_insert(ended),
                    Some(Err(_)) => return Err(DoorError::Closed),
                },
            }
        }
        match stopped {
            Some(EndedByAsking { refused }) => writer.message(&CallingReply::Stopped(refused)).await,
            None => Ok(()),
        }
    }

    /// Makes one call, if the guest may make it.
    async fn call(
        &self,
        sequence: u32,
        mut call: WantedCall,
        waits: Arc<dyn PersonWaits>,
    ) -> Result<NestedEnd, EndedByAsking> {
        if let Err(denial) = self.capabilities.grants().call(&call.tool) {
            let text = denial.to_string();
            self.denials.add(denial);
            return Ok(Err(NotCalled::refused(NotCalledReason::Denied, text)));
        }
        // A name without a tool uses nothing of what a star grants.
        if self.caller.has_tool(&call.tool) {
            self.net.used(|| Ask::Named(Capability::Call, call.tool.clone()).to_string());
        }
        if let Err(refusal) = self.counts.take() {
            return Ok(Err(refusal));
        }
        let bytes = call.arguments_json.len() as u64;
        if self.net.take_egress(bytes) < bytes {
            return Ok(Err(self.counts.over(Limit::Egress)));
        }
        // The called tool sees nothing of the secrets that this one holds.
        answer::text(self.capabilities.redactor(), &mut call.arguments_json);
        self.caller.call_tool(sequence, call, waits).await
    }

    /// The end of a call in a message, or a refusal in place of one that is too large.
    fn sent(&self, end: NestedEnd) -> Result<Blob, DoorError> {
        let encoded = encoding::encode_fitting(&end);
        let taken = encoded.ok().filter(|bytes| bytes.len().saturating_add(END_BYTES) <= HOST_BYTES_MAX);
        if let Some(bytes) = taken
            && self.net.charge_ingress(bytes.len() as u64)
        {
            return Ok(Blob(bytes));
        }
        let refused: NestedEnd = Err(self.counts.over(Limit::Ingress));
        Ok(Blob(encoding::encode(&refused)?))
    }
}
