//! Callers who sign in at the console with their tokens.
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use toolcell_mcp::Host as _;
use toolcell_mcp::http::{Admitted, AuthFailure, RefusalReason};

use super::attempts::Attempts;
use super::session::Operator;
use crate::identity::Authenticator;
use crate::reload::Current;

/// The callers in `operators` of the current manifest.
pub struct Operators {
    current: Arc<Current>,
    pub authenticator: Arc<Authenticator>,
    attempts: Attempts,
}

/// Why a token does not sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// It is unknown, has expired, or belongs to a caller who is not an operator. The answer does
    /// not tell which.
    Wrong,
    /// Too many were tried.
    TooMany,
    /// It cannot be checked now.
    NotNow,
}

impl NotAdmitted {
    pub const fn status(self) -> u16 {
        match self {
            Self::Wrong => 403,
            Self::TooMany => 429,
            Self::NotNow => 503,
        }
    }
}

impl Operators {
    /// For the current catalog. Their tokens are checked like those of the server's clients, and
    /// rejected ones count as refused.
    pub fn new(current: Arc<Current>, authenticator: Arc<Authenticator>) -> Self {
        Self { current, authenticator, attempts: Attempts::default() }
    }

    /// True if there are any.
    pub fn are_there(&self) -> bool {
        !self.current.snapshot().settings.console.names_nobody()
    }

    /// True if callers of this name are operators.
    pub fn has(&self, name: &str) -> bool {
        self.current.snapshot().settings.console.names(name)
    }

    /// The operator with this token, which came from this address.
    ///
    /// # Errors
    /// See [`NotAdmitted`]. It is counted as an attempt.
    pub async fn admit(&self, token: &str, from: IpAddr) -> Result<Operator, NotAdmitted> {
        // Looking up random bytes is cheap and they cannot be guessed, so a token of the file works
        // regardless of failed attempts.
        if let Some(tokens) = self.authenticator.tokens.as_deref()
            && let Ok(Some(admitted)) = tokens.find(token).await
            && let Some(operator) = self.operator(admitted)
        {
            return Ok(operator);
        }
        if !self.attempts.begin(from, Instant::now()) {
            self.current.services.refusals.at_console(
                from,
                RefusalReason::UnknownCredential,
                NotAdmitted::TooMany.status(),
            );
            return Err(NotAdmitted::TooMany);
        }
        let refused = |reason| {
            self.current.services.refusals.at_console(from, reason, NotAdmitted::Wrong.status());
            NotAdmitted::Wrong
        };
        let admitted = self.authenticator.find(token, None).await.map_err(|failure| match failure {
            AuthFailure::Unknown { .. } => refused(RefusalReason::UnknownCredential),
            AuthFailure::NotAllowed { .. } => refused(RefusalReason::MissingRight),
            AuthFailure::NotNow => NotAdmitted::NotNow,
        })?;
        let operator = self.operator(admitted).ok_or_else(|| refused(RefusalReason::MissingRight))?;
        self.attempts.succeeded(from);
        Ok(operator)
    }

    /// This caller, if it is an operator.
    fn operator(&self, admitted: Admitted) -> Option<Operator> {
        let name = admitted.caller.name();
        self.has(name).then(|| Operator { name: name.to_owned(), validity: admitted.validity.clone() })
    }
}
