//! The state of a login in words, for `check`, `status` and lists of secrets.
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};
use toolcell_audit::timestamp;
use toolcell_policy::LoginPolicy;

use super::refresh::Plan;
use super::store::{RecordPlace, Store};
use crate::files::blocking_files;

/// The state of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginState {
    /// There is a token, or the means to get one.
    LoggedIn {
        /// The end of the access token, if it is known.
        until: Option<SystemTime>,
        /// True if the host gets another one then.
        refreshes: bool,
    },
    /// Nobody is logged in.
    Missing,
    /// The login is at another server, or for something else, than the manifest says now.
    Other,
    /// The server gives no more tokens, for this reason.
    Ended(String),
    /// The store cannot be read, for this reason.
    Unreadable(String),
}

/// The state of a login now.
#[must_use]
pub fn state(policy: &Arc<LoginPolicy>, state_folder: &Path) -> LoginState {
    let own = Arc::clone(policy);
    let folder = state_folder.to_owned();
    let path = RecordPlace::shared(state_folder, policy.name()).path();
    let looked = blocking_files::run(&path, move |_| Store::read_record(&RecordPlace::shared(&folder, own.name())));
    let record = match looked {
        Ok(Ok(record)) => record,
        Ok(Err(error)) => return LoginState::Unreadable(error.to_string()),
        Err(error) => return LoginState::Unreadable(format!("{}: {error}", path.display())),
    };
    match (Plan::of(record.as_ref(), policy, SystemTime::now()), record) {
        (Plan::Use | Plan::Refresh, Some(record)) => {
            LoginState::LoggedIn { until: record.until(), refreshes: record.refreshes() }
        }
        (Plan::Other, _) => LoginState::Other,
        (Plan::Ended(reason), _) => LoginState::Ended(reason),
        _ => LoginState::Missing,
    }
}

impl LoginState {
    /// True if requests get a token.
    #[must_use]
    pub const fn is_logged_in(&self) -> bool {
        matches!(self, Self::LoggedIn { .. })
    }

    /// As JSON, with the login's name and server.
    #[must_use]
    pub fn to_json(&self, policy: &LoginPolicy) -> Value {
        let (until, refreshes) = match self {
            Self::LoggedIn { until, refreshes } => (until.map(timestamp), *refreshes),
            _ => (None, false),
        };
        json!({
            "name": policy.name(),
            "server": policy.issuer().or(policy.token()),
            "logged_in": self.is_logged_in(),
            "until": until,
            "refreshes": refreshes,
            "state": self.to_string(),
        })
    }
}

impl fmt::Display for LoginState {
    /// In one sentence without a full stop.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedIn { until: None, .. } => formatter.write_str("logged in"),
            Self::LoggedIn { until: Some(until), refreshes: true } => {
                write!(formatter, "logged in; token until {}, then refreshed", timestamp(*until))
            }
            Self::LoggedIn { until: Some(until), refreshes: false } => {
                write!(formatter, "logged in until {}", timestamp(*until))
            }
            Self::Missing => formatter.write_str("nobody is logged in"),
            Self::Other => formatter.write_str("the login is for another server, client or scope than the manifest's"),
            Self::Ended(reason) => write!(formatter, "the login has ended: {reason}"),
            Self::Unreadable(reason) => formatter.write_str(reason),
        }
    }
}
