//! The destination of the answer to one request: an outbox, or the array that answers a batch.

use std::sync::{Arc, Mutex};

use crate::frame::{ErrorCode, ErrorId, RequestId, RpcError, batch, error_frame};
use crate::host::{Outbox, SharedFrame};
use crate::lock::lock;

/// Total bytes of the replies to one batch. Entries beyond it are answered with an error.
const BATCH_REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The destination of the answer to one request. Used exactly once, by [`send`](Self::send),
/// [`refuse`](Self::refuse) or [`nothing`](Self::nothing).
#[derive(Clone)]
pub(super) enum ReplyTo {
    Direct(Arc<dyn Outbox>),
    Batch(Arc<BatchReplies>),
}

impl ReplyTo {
    /// Answers the request of this id.
    pub(super) fn send(&self, id: Option<&RequestId>, frame: Vec<u8>) {
        match self {
            Self::Direct(outbox) => outbox.answer(frame),
            Self::Batch(replies) => replies.settle(Some((id, frame))),
        }
    }

    /// Answers the request of this id with a frame that shares bytes with others.
    pub(super) fn send_shared(&self, id: &RequestId, frame: SharedFrame) {
        match self {
            Self::Direct(outbox) => outbox.answer_shared(frame),
            Self::Batch(replies) => replies.settle(Some((Some(id), frame.joined()))),
        }
    }

    /// Answers with an error a request that was refused before it had any effect.
    pub(super) fn refuse(&self, id: Option<&RequestId>, error: &RpcError) {
        self.refuse_with(id, error_frame(id, error), error.code);
    }

    /// Answers with the frame of an error.
    pub(super) fn refuse_with(&self, id: Option<&RequestId>, frame: Vec<u8>, code: ErrorCode) {
        match self {
            Self::Direct(outbox) => outbox.refuse(frame, code),
            Self::Batch(replies) => replies.settle(Some((id, frame))),
        }
    }

    /// Settles the request without an answer.
    pub(super) fn nothing(&self) {
        match self {
            Self::Direct(outbox) => outbox.unanswered(),
            Self::Batch(replies) => replies.settle(None),
        }
    }

    /// Settles a response that did not reach those who wait for it. A batch is sent again as a
    /// whole, so one that also contains requests is not refused.
    pub(super) fn not_taken(&self) {
        match self {
            Self::Direct(outbox) => outbox.not_taken(),
            Self::Batch(replies) => {
                lock(&replies.state).is_taken = false;
                replies.settle(None);
            }
        }
    }

    /// The outbox for the request's events.
    pub(super) fn outbox(&self) -> &Arc<dyn Outbox> {
        match self {
            Self::Direct(outbox) => outbox,
            Self::Batch(replies) => &replies.outbox,
        }
    }

    pub(super) fn is_batched(&self) -> bool {
        matches!(self, Self::Batch(_))
    }
}

/// Collects the replies to one batch.
pub(super) struct BatchReplies {
    outbox: Arc<dyn Outbox>,
    state: Mutex<GatheredReply>,
}

struct GatheredReply {
    replies: Vec<Vec<u8>>,
    bytes: usize,
    /// Missing replies, plus one for the batch itself while its entries are being read.
    missing: usize,
    /// False once a response in the batch reached nobody.
    is_taken: bool,
}

impl BatchReplies {
    pub(super) fn open(outbox: Arc<dyn Outbox>) -> Arc<Self> {
        let state = Mutex::new(GatheredReply { replies: Vec::new(), bytes: 0, missing: 1, is_taken: true });
        Arc::new(Self { outbox, state })
    }

    /// The destination of one more reply.
    pub(super) fn reply(self: &Arc<Self>) -> ReplyTo {
        lock(&self.state).missing += 1;
        ReplyTo::Batch(Arc::clone(self))
    }

    /// All entries of the batch have been read.
    pub(super) fn close(&self) {
        self.settle(None);
    }

    fn settle(&self, answer: Option<(Option<&RequestId>, Vec<u8>)>) {
        let mut state = lock(&self.state);
        if let Some((id, mut frame)) = answer {
            let is_long = state.bytes.saturating_add(frame.len()) > BATCH_REPLY_BYTES_MAX;
            if is_long || !self.outbox.keeps(frame.len()) {
                let text = match is_long {
                    true => "The replies to this batch are too long together",
                    false => "The reply is not kept: too many bytes of answers are unread",
                };
                let error = RpcError::internal(text);
                // Only a revision with `null` ids has batches.
                frame = error_frame(id.map_or(ErrorId::Null, ErrorId::Of), &error);
            }
            state.bytes += frame.len();
            state.replies.push(frame);
        }
        state.missing = state.missing.saturating_sub(1);
        if state.missing > 0 {
            return;
        }
        if state.replies.is_empty() {
            let is_taken = state.is_taken;
            drop(state);
            return if is_taken { self.outbox.unanswered() } else { self.outbox.not_taken() };
        }
        let frame = batch(&std::mem::take(&mut state.replies));
        drop(state);
        self.outbox.answer(frame);
        self.outbox.flush();
    }
}
