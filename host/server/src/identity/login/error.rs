//! The errors of logins.
use std::time::Duration;

use toolcell_outbound::OutboundError;
use toolcell_policy::AdvisedFault;
use toolcell_policy::quantity::show_millis;

/// The longest text that a server's error is shown with, in characters.
const TEXT_CHARS_MAX: usize = 200;

/// Reason why a login, or a refresh, fails. One sentence without a full stop.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// No client for HTTP can be made.
    #[error("{0}")]
    Client(#[source] OutboundError),
    /// A server does not answer.
    #[error("{address}: {source}")]
    Unreachable {
        /// The server's address.
        address: String,
        /// The reason.
        source: OutboundError,
    },
    /// An address cannot be that of a request.
    #[error("{0} is not an address that requests can be sent to")]
    Address(String),
    /// The server's metadata cannot be used.
    #[error("{address}: {problem}")]
    Metadata {
        /// The address of the metadata.
        address: String,
        /// The problem.
        problem: String,
    },
    /// The manifest and the metadata name no such endpoint.
    #[error("the server has no {0} endpoint that is known")]
    NoEndpoint(&'static str),
    /// The server says no.
    #[error("{address} refuses: {code}{text}")]
    Refused {
        /// The endpoint.
        address: String,
        /// The error's code, as RFC 6749 has it.
        code: String,
        /// The server's words, with a separator before them; may be empty.
        text: String,
    },
    /// The server answers with something else.
    #[error("{address}: {problem}")]
    Answer {
        /// The endpoint.
        address: String,
        /// The problem.
        problem: String,
    },
    /// The login has no record of its own.
    #[error("it works with the token that its caller shows, and nobody logs in")]
    CallersToken,
    /// The browser came back with something else.
    #[error("{0}")]
    Redirect(String),
    /// Nobody agreed in time.
    #[error("nobody confirmed the login within {}", show_millis(u64::try_from(.0.as_millis()).unwrap_or(u64::MAX)))]
    Late(Duration),
    /// The client's secret cannot be read.
    #[error("client_secret: {}", .0.problem)]
    Secret(AdvisedFault),
    /// The store of tokens cannot be used.
    #[error("{0}")]
    Store(String),
    /// The system has no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
}

impl LoginError {
    /// A server's refusal. What a server says goes to a terminal: it is cleaned and cut, and left
    /// out where it repeats something that was sent.
    pub(super) fn refused(address: &str, code: &str, text: Option<&str>, sent: &[&str]) -> Self {
        let repeats = |text: &str| sent.iter().any(|sent| !sent.is_empty() && text.contains(sent));
        let shown = |text: &str| text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect::<String>();
        let code = if repeats(code) { "an error".to_owned() } else { shown(code) };
        let text = text.filter(|text| !text.is_empty() && !repeats(text)).map(|text| format!(": {}", shown(text)));
        Self::Refused { address: address.to_owned(), code, text: text.unwrap_or_default() }
    }

    pub(super) fn answer(address: &str, problem: impl Into<String>) -> Self {
        Self::Answer { address: address.to_owned(), problem: problem.into() }
    }

    /// True if only a new login helps: the refresh token is taken back, spent or too old.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "invalid_grant")
    }

    /// Advice, where there is any.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Secret(fault) => fault.hint().map(str::to_owned),
            Self::NoEndpoint("device authorization") => Some("log in with a browser: leave out --device".to_owned()),
            Self::NoEndpoint("authorization") => Some("log in with --device".to_owned()),
            Self::Metadata { .. } => {
                Some("authorize and token (or device and token) in place of issuer need no metadata".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_server_are_cut_cleaned_and_never_a_repetition_of_what_was_sent() {
        let shown = |code: &str, text: &str| {
            LoginError::refused("https://a.example", code, Some(text), &["s3cr3t"]).to_string()
        };
        assert_eq!(shown("invalid_grant", "too old"), "https://a.example refuses: invalid_grant: too old");
        assert_eq!(shown("invalid_grant", "unknown token s3cr3t!"), "https://a.example refuses: invalid_grant");
        assert_eq!(shown("s3cr3t", ""), "https://a.example refuses: an error");
        assert_eq!(shown("a\u{1b}[2J", "b\nc"), "https://a.example refuses: a[2J: bc");
        assert!(shown("x", &"y".repeat(5_000)).len() < 300);
    }
}
