//! The observer of requests, for operators.

use std::time::SystemTime;

use crate::caller::Caller;
use crate::frame::{ErrorCode, McpRequest, RpcError};
use crate::host::CallContext;
use crate::meta::{PROTOCOL_VERSION, TraceContext, trace_of};
use crate::method::Method;

/// Observes requests, on the threads that answer them. It must not block.
pub trait Observer: Send + Sync + 'static {
    /// True if the observer wants [`ObservedRequest::details`]. They cost reading the clock and the
    /// trace context.
    fn wants_details(&self) -> bool {
        false
    }

    /// A request came, and is about to be answered. `None` stands for any method that this server
    /// does not have.
    fn requested(&self, method: Option<Method>, is_modern: bool);

    /// The request was answered; a call or a subscription has begun. A call that has begun is
    /// reported again if it ends with an error before the catalog sees it, such as an unknown tool.
    fn answered(&self, request: &ObservedRequest<'_>);

    /// A caller named a tool or a prompt that its list does not have. `hidden` is the name in the
    /// whole list, if it is there for others. Does nothing by default.
    fn unseen(&self, caller: &Caller, hidden: Option<&str>) {
        let _ = (caller, hidden);
    }
}

/// A request as an observer sees it.
#[derive(Debug)]
pub struct ObservedRequest<'a> {
    /// Its method; `None` stands for any that this server does not have.
    pub method: Option<Method>,
    /// True for requests of 2026-07-28 and later.
    pub is_modern: bool,
    /// The error that answers it.
    pub error: Option<ErrorCode>,
    /// Present if the observer wants details.
    pub details: Option<RequestDetails<'a>>,
}

/// The parts of a request that tell it from others.
#[derive(Debug)]
pub struct RequestDetails<'a> {
    /// What identifies a request.
    pub id: String,
    /// Its caller.
    pub caller: &'a Caller,
    /// The trace that it is a part of.
    pub trace: Option<TraceContext>,
    /// The time of its arrival.
    pub began: SystemTime,
}

/// A request that is being answered, with its observer.
pub(crate) struct RequestReport<'o, 'a> {
    observer: &'o dyn Observer,
    request: ObservedRequest<'a>,
}

impl<'o, 'a> RequestReport<'o, 'a> {
    /// Reports a request that came just now. `carried` returns the trace context of its transport.
    pub(crate) fn begin(
        observer: &'o dyn Observer,
        request: &McpRequest<'_>,
        caller: &'a Caller,
        carried: impl FnOnce() -> Option<TraceContext>,
    ) -> Self {
        let method = request.method.known();
        let is_modern = request.params.meta(PROTOCOL_VERSION).is_some();
        observer.requested(method, is_modern);
        let details = observer.wants_details().then(|| {
            let trace = trace_of(&request.params).or_else(carried);
            RequestDetails { id: request.id.to_string(), caller, trace, began: SystemTime::now() }
        });
        Self { observer, request: ObservedRequest { method, is_modern, error: None, details } }
    }

    /// Reports that the request was answered, or has begun.
    pub(crate) fn answered(self, error: Option<&RpcError>) {
        self.observer.answered(&ObservedRequest { error: error.map(|error| error.code), ..self.request });
    }
}

/// Reports a call that had begun and is refused.
pub(crate) fn refused(observer: &dyn Observer, method: Method, call: &CallContext, error: &RpcError) {
    let details = observer.wants_details().then(|| RequestDetails {
        id: call.request_id.clone(),
        caller: &call.caller,
        trace: call.trace.clone(),
        began: SystemTime::now(),
    });
    let is_modern = call.revision.is_modern();
    observer.answered(&ObservedRequest { method: Some(method), is_modern, error: Some(error.code), details });
}
