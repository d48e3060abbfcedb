//! The names under which clients' resources are kept where every replica reads them.

/// The client that has resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreHolder {
    /// The caller, whose resources are counted together.
    pub(crate) caller: String,
    /// The caller itself, or one of its sessions: nobody else reads them.
    pub(crate) holder: String,
}

impl StoreHolder {
    /// A session of this caller.
    pub(crate) fn session(caller: &str, session: &str) -> Self {
        Self { caller: caller.to_owned(), holder: format!("session\n{session}") }
    }

    /// A recognised caller, over any connection.
    pub(crate) fn caller(caller: &str) -> Self {
        Self { caller: caller.to_owned(), holder: format!("caller\n{caller}") }
    }
}
