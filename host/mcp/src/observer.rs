//! Who is told of every request, for whoever looks after the server. Must not hold: what is made of it.

use std::time::SystemTime;

use crate::caller::Caller;
use crate::frame::{Body, ErrorCode, RequestId, RpcError};
use crate::host::CallContext;
use crate::meta::{PROTOCOL_VERSION, TraceContext, trace_of};

/// Is told of requests. It is asked on the threads that answer them, and must not block.
pub trait Observer: Send + Sync + 'static {
    /// Whether it wants [`Seen::followed`], which costs a look at the clock and at the request's trace context.
    fn follows(&self) -> bool {
        false
    }

    /// A request came, and is about to be answered.
    fn requested(&self, method: Method, is_modern: bool);

    /// It was answered; or it is a call or a subscription, and has begun. A call that has begun is told of once more where it
    /// ends with an error before the catalog sees it: its tool is not known, say.
    fn answered(&self, request: &Seen<'_>);
}

/// A request as an observer sees it.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its method, of those that there are.
    pub method: Method,
    /// Whether it is of 2026-07-28 or later.
    pub is_modern: bool,
    /// The error that it is answered with.
    pub error: Option<ErrorCode>,
    /// What else is known of it, where the observer follows requests.
    pub followed: Option<Followed<'a>>,
}

/// What tells one request from others.
#[derive(Debug)]
pub struct Followed<'a> {
    /// Its id, as the client wrote it.
    pub id: String,
    /// Who asks.
    pub caller: &'a Caller,
    /// The trace that it is a part of.
    pub trace: Option<TraceContext>,
    /// When it came.
    pub began: SystemTime,
}

/// The methods that there are, in any revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `initialize`.
    Initialize,
    /// `ping`.
    Ping,
    /// `server/discover`.
    Discover,
    /// `tools/list`.
    ListTools,
    /// `tools/call`.
    CallTool,
    /// `subscriptions/listen`.
    Listen,
    /// `resources/list`.
    ListResources,
    /// `resources/templates/list`.
    ListTemplates,
    /// `resources/read`.
    ReadResource,
    /// `logging/setLevel`.
    SetLevel,
    /// Any other: it is not known here.
    Other,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Initialize,
        Self::Ping,
        Self::Discover,
        Self::ListTools,
        Self::CallTool,
        Self::Listen,
        Self::ListResources,
        Self::ListTemplates,
        Self::ReadResource,
        Self::SetLevel,
        Self::Other,
    ];

    /// Its name on the wire; `other` where it is none of these.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::Discover => "server/discover",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
            Self::Listen => "subscriptions/listen",
            Self::ListResources => "resources/list",
            Self::ListTemplates => "resources/templates/list",
            Self::ReadResource => "resources/read",
            Self::SetLevel => "logging/setLevel",
            Self::Other => "other",
        }
    }

    fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|method| method.name() == name).unwrap_or(Self::Other)
    }
}

/// A request that is being answered, as far as its observer needs it.
pub(crate) struct Watched<'o, 'a> {
    observer: &'o dyn Observer,
    seen: Seen<'a>,
}

impl<'o, 'a> Watched<'o, 'a> {
    /// A request that came just now. `carried` is the trace context of its transport.
    pub(crate) fn begin(
        observer: &'o dyn Observer,
        body: &Body<'_>,
        (id, caller): (&RequestId, &'a Caller),
        carried: impl FnOnce() -> Option<TraceContext>,
    ) -> Self {
        let (method, is_modern) = (Method::of(body.method.as_ref()), body.meta(PROTOCOL_VERSION).is_some());
        observer.requested(method, is_modern);
        let followed = || {
            let (id, trace, began) = (id.to_string(), trace_of(body).or_else(carried), SystemTime::now());
            Followed { id, caller, trace, began }
        };
        let followed = observer.follows().then(followed);
        Self { observer, seen: Seen { method, is_modern, error: None, followed } }
    }

    /// It was answered so, or has begun.
    pub(crate) fn answered(self, error: Option<&RpcError>) {
        self.observer.answered(&Seen { error: error.map(|error| error.code), ..self.seen });
    }
}

/// A call that had begun is refused.
pub(crate) fn refused(observer: &dyn Observer, method: Method, call: &CallContext, error: &RpcError) {
    let (is_modern, error) = (call.revision.is_modern(), Some(error.code));
    let followed = || {
        let (id, trace, began) = (call.request_id.clone(), call.trace.clone(), SystemTime::now());
        Followed { id, caller: &call.caller, trace, began }
    };
    let followed = observer.follows().then(followed);
    observer.answered(&Seen { method, is_modern, error, followed });
}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn a_method_that_is_not_known_is_any_other() {
        for method in Method::ALL {
            assert_eq!(Method::of(method.name()), method);
        }
        assert_eq!(Method::of("tools/call "), Method::Other);
    }
}
