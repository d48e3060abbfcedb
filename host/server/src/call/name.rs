//! How lines of the operator's log name the call that they are about: by the host's own number, which the audit has too; by
//! the client's id, which any client may use again; by who calls, and by the tool. Must not hold: what is said.
use std::borrow::Cow;

use toolcell_mcp::{CallContext, sanitize};

/// The name of one call.
pub struct CallName<'a> {
    /// The host's own number: the calls of this process are counted.
    pub call: u64,
    /// The id of the request, as the client wrote it.
    pub request: Cow<'a, str>,
    /// Who calls.
    pub caller: Cow<'a, str>,
    /// The tool, as clients see it.
    pub tool: &'a str,
}

impl<'a> CallName<'a> {
    /// Of a call of this tool that came with this.
    pub fn new(call: u64, context: &'a CallContext, tool: &'a str) -> Self {
        let (request, caller) = (sanitize::line(&context.request_id), sanitize::line(context.caller.name()));
        Self { call, request, caller, tool }
    }

    /// The same, kept beyond the call's context.
    pub fn kept<'b>(self, tool: &'b str) -> CallName<'b> {
        let (request, caller) = (self.request.into_owned().into(), self.caller.into_owned().into());
        CallName { call: self.call, request, caller, tool }
    }
}

/// Writes a line about a call: `told!(warn, name, "…")`.
macro_rules! told {
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

pub(super) use told;
