//! Name of a call in the operator's log: the host's own number, as in the audit; the client's
//! request id, which may repeat; the caller; and the tool.
use std::borrow::Cow;

use toolcell_mcp::{CallContext, sanitize};

/// The name of one call.
pub struct CallName<'a> {
    /// Number of the call in this process.
    pub call: u64,
    /// The id of the request, as the client wrote it.
    pub request: Cow<'a, str>,
    /// Name of the caller.
    pub caller: Cow<'a, str>,
    /// The tool, as clients see it.
    pub tool: &'a str,
}

impl<'a> CallName<'a> {
    /// Name of a call of this tool with this context.
    pub fn new(call: u64, context: &'a CallContext, tool: &'a str) -> Self {
        let request = sanitize::line(&context.request_id);
        let caller = sanitize::line(context.caller.name());
        Self { call, request, caller, tool }
    }

    /// This name, detached from the call's context.
    pub fn kept<'b>(self, tool: &'b str) -> CallName<'b> {
        let request = self.request.into_owned().into();
        let caller = self.caller.into_owned().into();
        CallName { call: self.call, request, caller, tool }
    }
}

/// Writes a line about a call: `log_call!(warn, name, "…")`.
macro_rules! log_call {
    ($level:ident, $name:expr, $($text:tt)+) => {{
        let name = &$name;
        tracing::$level!(
            call = name.call,
            request = &*name.request,
            caller = &*name.caller,
            tool = name.tool,
            $($text)+
        )
    }};
}

pub(super) use log_call;
