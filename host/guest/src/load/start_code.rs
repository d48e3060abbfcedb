//! Start code: it runs when a component is instantiated, before any of its functions is called.
use std::sync::OnceLock;

use toolcell_wall::start_call::StartCall;

/// The knowledge about a component's start code.
#[derive(Debug, Default)]
pub(crate) struct StartCode {
    /// It was tried, and called nothing.
    alone: OnceLock<()>,
    /// The host function that it called, once it was tried or later.
    call: OnceLock<StartCall>,
}

impl StartCode {
    /// True if it may run before there is a call; `None` where that was not tried yet.
    pub(crate) fn is_alone(&self) -> Option<bool> {
        if self.call.get().is_some() { Some(false) } else { self.alone.get().map(|()| true) }
    }

    /// Notes a finding. Returns it where it is the first call of the host.
    pub(crate) fn found(&self, found: Result<(), StartCall>) -> Option<&StartCall> {
        match found {
            Ok(()) => {
                // Others may have tried it as well, and found the same.
                let _ = self.alone.set(());
                None
            }
            Err(call) => self.call.set(call).is_ok().then(|| self.call.get()).flatten(),
        }
    }
}
