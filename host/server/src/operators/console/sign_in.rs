//! The page where a person signs in, and its form.
use std::net::IpAddr;
use std::time::Instant;

use http::StatusCode;
use http::header::RETRY_AFTER;
use hyper::body::Incoming;
use toolcell_console::model::{SignIn, SignInReason};
use toolcell_console::{page, routes};
use toolcell_mcp::http::oauth::TOKEN_BYTES_MAX;

use super::form::Fields;
use super::operators::{NotAdmitted, Operators};
use super::reply::{self, Reply};
use super::service::Console;

/// Longest form, in bytes: the longest token, and field names. Strangers may send it.
const SIGN_IN_BYTES_MAX: usize = TOKEN_BYTES_MAX + 1_024;

/// Seconds to wait after too many attempts.
const RETRY_SECONDS: &str = "60";

impl Console {
    /// The sign-in page.
    pub(super) fn sign_in(&self, status: StatusCode, reason: SignInReason) -> Reply {
        let with_token = self.session_gate.takes_tokens();
        let page = SignIn { server: self.name.clone(), reason, with_token };
        reply::page(status, page::sign_in(&page))
    }

    /// The sign-in page in place of the page at this path; `has_cookie` if the browser sent a
    /// session's cookie.
    pub(super) fn sign_in_at(&self, path: &str, had_session: bool) -> Reply {
        let is_asked_for = path == routes::SIGN_IN && self.session_gate.takes_tokens();
        let status = if is_asked_for { StatusCode::OK } else { StatusCode::FORBIDDEN };
        self.sign_in(status, if had_session { SignInReason::SessionEnded } else { SignInReason::NotSignedIn })
    }

    /// Begins a session with the token in this form, replacing the browser's current session.
    pub(super) async fn sign_in_with_token(
        &self,
        operators: &Operators,
        body: Incoming,
        from: IpAddr,
        had: Option<&str>,
    ) -> Reply {
        let Ok(fields) = Fields::read(body, SIGN_IN_BYTES_MAX).await else {
            return reply::problem(StatusCode::PAYLOAD_TOO_LARGE, "The form is too large.", None);
        };
        let operator = match operators.admit(fields.get(routes::TOKEN).trim(), from).await {
            Ok(operator) => operator,
            Err(NotAdmitted::Wrong) => return self.sign_in(StatusCode::FORBIDDEN, SignInReason::WrongToken),
            Err(NotAdmitted::NotNow) => return self.sign_in(StatusCode::SERVICE_UNAVAILABLE, SignInReason::NotNow),
            Err(NotAdmitted::TooMany) => {
                let reply = self.sign_in(StatusCode::TOO_MANY_REQUESTS, SignInReason::TooMany);
                return reply::with_header(reply, RETRY_AFTER, RETRY_SECONDS);
            }
        };
        had.into_iter().for_each(|secret| self.session_gate.sessions.leave(secret));
        let Some(entered) = self.session_gate.sessions.begin(operator, Instant::now()) else {
            let text = "The system gives no random bytes.";
            return reply::problem(StatusCode::INTERNAL_SERVER_ERROR, text, None);
        };
        self.record(&entered.name, "enter", "the console", Ok(""));
        reply::with_cookie(reply::see_other(routes::NOW), &self.session_gate.set_cookie(Some(&entered.secret)))
    }
}
