//! Callers who sign in at the console with their tokens. Must not hold: sessions, pages.
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use toolcell_mcp::http::{AuthFailure, RefusalReason};

use super::attempts::Attempts;
use super::session::Operator;
use crate::http::Authenticator;
use crate::refusals::Refusals;

/// The callers that the manifest names in `operators`.
pub struct Operators {
    names: Vec<String>,
    authenticator: Arc<Authenticator>,
    attempts: Attempts,
    refusals: Arc<Refusals>,
}

/// The reason why a token does not sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// It is not known, has expired, or is of a caller who is no operator. Which one is not said.
    Wrong,
    /// Too many were tried.
    TooMany,
    /// It cannot be checked now.
    NotNow,
}

impl NotAdmitted {
    /// The status of the answer.
    pub const fn status(self) -> u16 {
        match self {
            Self::Wrong => 403,
            Self::TooMany => 429,
            Self::NotNow => 503,
        }
    }
}

impl Operators {
    /// Callers of these names, whose tokens are checked like those of the server's clients. Whoever
    /// is turned away counts as refused.
    pub fn new(names: Vec<String>, authenticator: Arc<Authenticator>, refusals: Arc<Refusals>) -> Self {
        Self { names, authenticator, attempts: Attempts::default(), refusals }
    }

    /// Checks their tokens.
    pub fn authenticator(&self) -> &Arc<Authenticator> {
        &self.authenticator
    }

    /// The operator with this token, which came from this address.
    ///
    /// # Errors
    /// See [`NotAdmitted`]. It is counted.
    pub async fn admit(&self, token: &str, from: IpAddr) -> Result<Operator, NotAdmitted> {
        if !self.attempts.begin(from, Instant::now()) {
            self.refusals.at_console(from, RefusalReason::UnknownCredential, NotAdmitted::TooMany.status());
            return Err(NotAdmitted::TooMany);
        }
        let refused = |reason| {
            self.refusals.at_console(from, reason, NotAdmitted::Wrong.status());
            NotAdmitted::Wrong
        };
        let admitted = self.authenticator.find(token).await.map_err(|failure| match failure {
            AuthFailure::Unknown { .. } => refused(RefusalReason::UnknownCredential),
            AuthFailure::NotAllowed { .. } => refused(RefusalReason::MissingRight),
            AuthFailure::NotNow => NotAdmitted::NotNow,
        })?;
        let name = admitted.caller.name();
        if !self.names.iter().any(|operator| operator == name) {
            return Err(refused(RefusalReason::MissingRight));
        }
        self.attempts.succeeded(from);
        Ok(Operator { name: name.to_owned(), validity: admitted.validity })
    }
}
