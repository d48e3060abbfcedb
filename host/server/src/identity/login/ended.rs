//! Logins that end with the right of their callers: of a caller whom no rule lets use them any
//! more, who cannot come any more, or whose login left the manifest while it was served.
//!
//! Only logins that the manifest names, or the one before it, are judged: another manifest may keep
//! its own in the same folder of states.
use std::collections::HashSet;
use std::sync::Arc;

use tokio::runtime::Handle;
use toolcell_audit::{Clipped, Event, LoginChanged, Sink};
use toolcell_policy::{LoginPolicy, LoginUse};

use super::callers::{CallerLogins, ListedLogin};
use super::error::LoginError;

/// The caller over stdio, who needs no token.
const LOCAL: &str = "local";

/// Who did it, in the audit.
const BY: &str = "server";

/// The end of logins without a right.
pub(crate) struct RightsCheck {
    pub(crate) logins: Arc<CallerLogins>,
    pub(crate) sink: Arc<Sink>,
    /// The manifest's rules now.
    pub(crate) login_use: Arc<LoginUse>,
    /// The logins of the manifest, and of the one before: tokens are taken back with them.
    pub(crate) policies: Vec<Arc<LoginPolicy>>,
}

impl RightsCheck {
    /// Ends them all, in the background.
    pub(crate) fn start(mut self, runtime: &Handle) {
        self.policies.retain(|policy| !policy.uses_callers_token());
        if self.policies.is_empty() {
            return;
        }
        let driver = runtime.clone();
        // A store may wait for another process.
        drop(runtime.spawn_blocking(move || driver.block_on(self.run())));
    }

    /// What cannot be read stays.
    async fn run(self) {
        let listed = match self.logins.list(&self.policies).await {
            Ok(listed) => listed,
            Err(error) => {
                tracing::warn!("logins of callers without a right stay: {error}");
                return;
            }
        };
        let named = self.logins.named_callers();
        for login in listed {
            if !self.has_right(&login, named.as_ref()) {
                self.end(&login).await;
            }
        }
    }

    fn has_right(&self, login: &ListedLogin, named: Option<&HashSet<String>>) -> bool {
        let caller = &*login.caller;
        let may_come =
            caller == LOCAL || self.logins.is_of_an_issuer(caller) || named.is_none_or(|named| named.contains(caller));
        may_come && self.login_use.allows(&login.login, caller)
    }

    async fn end(&self, login: &ListedLogin) {
        let ListedLogin { login: name, caller, .. } = login;
        // Where a login was changed as well, its tokens are the earlier one's.
        let named = || self.policies.iter().filter(|policy| policy.name() == name);
        let Some(policy) = named().find(|policy| login.is_of(policy)).or_else(|| named().next()) else { return };
        match self.logins.revoke(policy, caller).await {
            Ok((true, failed)) => {
                tracing::info!("the login {name:?} of {caller:?} is ended: its caller may not use it any more");
                self.record(login, failed.as_ref());
            }
            Ok((false, _)) => {}
            Err(error) => tracing::warn!("the login {name:?} of {caller:?} stays, without a right: {error}"),
        }
    }

    fn record(&self, login: &ListedLogin, failed: Option<&LoginError>) {
        let detail = match failed {
            None => "its caller may not use it any more".to_owned(),
            Some(error) => format!("its caller may not use it any more; its tokens were not taken back: {error}"),
        };
        let event = || {
            Event::LoginChanged(LoginChanged {
                login: &login.login,
                caller: Clipped(&login.caller),
                change: "revoked",
                by: BY,
                component: None,
                detail: Some(Clipped(&detail)),
            })
        };
        if let Err(error) = self.sink.record(event) {
            tracing::error!("the end of a login is missing from the audit: {error}");
        }
    }
}
