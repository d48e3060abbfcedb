//! What a running server does for callers' logins, from one manifest to the next: it serves the
//! pages from the first one on that needs them, and ends logins whose caller's right ended.
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use toolcell_policy::{LoginPolicy, LoginUse, LoginsPolicy, Manifest};

use super::ended::RightsCheck;
use super::listen::BoundLogins;
use super::pages::LoginPages;
use super::{CallerLogins, PageParts};
use crate::error::{StartError, StepExt as _};
use crate::owned_task::OwnedTask;

/// Callers' logins of a running server.
pub(crate) struct LoginService {
    parts: PageParts,
    runtime: Handle,
    pages: Mutex<Option<OpenPages>>,
}

struct OpenPages {
    /// `[logins]` as they were opened with it.
    policy: Option<LoginsPolicy>,
    _served: OwnedTask,
}

impl LoginService {
    /// Without pages yet.
    pub(crate) fn new(parts: PageParts, runtime: Handle) -> Self {
        Self { parts, runtime, pages: Mutex::default() }
    }

    /// Serves the pages, if this manifest is the first that needs them. Returns a line for the
    /// operator then.
    ///
    /// # Errors
    /// Their address cannot be listened on, or others could reach it without TLS.
    pub(crate) fn open(&self, manifest: &Manifest) -> Result<Option<String>, StartError> {
        if manifest.logins().iter().any(|login| login.uses_callers_token()) {
            self.logins().keep_presented();
        }
        let mut pages = self.pages.lock();
        if pages.is_some() {
            return Ok(None);
        }
        let policy = manifest.login_pages();
        let Some(bound) = BoundLogins::open(policy, &manifest.caller_logins())? else { return Ok(None) };
        let line = format!("callers log in at {}, served at {}", bound.address, bound.socket());
        self.logins().serve_at(&bound.address);
        let served = bound.serve(LoginPages::new(self.parts.clone()), &self.runtime);
        let served = served.step("the pages of logins cannot be served")?;
        *pages = Some(OpenPages { policy: policy.cloned(), _served: served });
        Ok(Some(line))
    }

    /// True if the pages are served as an earlier `[logins]` says.
    pub(crate) fn waits(&self, manifest: &Manifest) -> bool {
        self.pages.lock().as_ref().is_some_and(|open| open.policy.as_ref() != manifest.login_pages())
    }

    /// Ends the pages.
    pub(crate) fn close(&self) {
        *self.pages.lock() = None;
    }

    /// Ends logins whose callers have no right to them, in the background. `policies` are those of
    /// the manifest, and of the one before it.
    pub(crate) fn end_without_right(&self, login_use: &Arc<LoginUse>, policies: Vec<Arc<LoginPolicy>>) {
        let check = RightsCheck {
            logins: Arc::clone(self.logins()),
            sink: Arc::clone(&self.parts.sink),
            login_use: Arc::clone(login_use),
            policies,
        };
        check.start(&self.runtime);
    }

    const fn logins(&self) -> &Arc<CallerLogins> {
        &self.parts.logins
    }
}
