//! Start code: it runs when a component is instantiated, before any of its functions is called.
use std::sync::OnceLock;

use toolcell_wall::start_call::StartCall;

/// What is known about a component's start code.
#[derive(Debug, Default)]
pub(crate) struct StartCode {
    /// It was tried, and called no host function.
    alone: OnceLock<()>,
    /// The first host function that it called, when it was tried or later.
    call: OnceLock<StartCall>,
}

impl StartCode {
    /// True if it may run before there is a call; `None` if it was not tried yet.
    pub(crate) fn is_alone(&self) -> Option<bool> {
        if self.call.get().is_some() { Some(false) } else { self.alone.get().map(|()| true) }
    }

    /// Notes a result. Returns the call of the host if it is the first one.
    pub(crate) fn found(&self, found: Result<(), StartCall>) -> Option<&StartCall> {
        match found {
            Ok(()) => {
                // Other threads may have tried it at the same time, with the same result.
                let _ = self.alone.set(());
                None
            }
            Err(call) => self.call.set(call).is_ok().then(|| self.call.get()).flatten(),
        }
    }
}
