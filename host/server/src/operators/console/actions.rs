//! Forms of operators: each is a decision. It is recorded before and after it is carried out, and
//! the next page reports it.
use std::borrow::Cow;
use std::sync::Arc;

use http::StatusCode;
use toolcell_audit::{Clipped, Event, LoginChanged};
use toolcell_console::model::{FreshToken, SignInReason};
use toolcell_console::{page, routes};
use toolcell_policy::LoginPolicy;

use super::decisions::{Came, said};
use super::form::Fields;
use super::gather::token_id;
use super::listen::ConnectionTime;
use super::recording::ordered_by;
use super::reply::{self, Reply};
use super::service::{Console, Visit, segment};
use super::trying::CancelledOnDrop;
use crate::catalog::Services;
use crate::identity::login::RightsCheck;
use crate::identity::{NewToken, lifetime};
use crate::lock::{Approval, SeenDigest};
use crate::observing::activity::OperatorAnswer;
use crate::reload::{Quarantined, ReloadOutcome};

/// Too many orders wait.
const MANY_WAIT: &str = "Too many reloads wait already; try again later.";

/// Time of a decision that reloads: compiling takes about a second per megabyte.
const RELOAD_TIME: std::time::Duration = std::time::Duration::from_secs(120);

/// A decision that a form asks for.
struct AskedDecision {
    decision: &'static str,
    subject: String,
    /// The page that follows.
    back: Cow<'static, str>,
}

impl Console {
    /// Carries out a form.  A decision that has begun is completed and recorded even if the browser
    /// disconnects. A call that is tried ends with the browser's request.
    pub(super) async fn post(
        self: &Arc<Self>,
        visit: Visit,
        path: String,
        fields: Fields,
        time: ConnectionTime,
    ) -> Reply {
        if path == routes::SIGN_OUT {
            self.record(&visit.session, "leave", "the console", Ok(""));
            self.session_gate.sessions.leave(&visit.secret);
            let reply = self.sign_in(StatusCode::FORBIDDEN, SignInReason::SignedOut);
            return reply::with_cookie(reply, &self.session_gate.set_cookie(None));
        }
        // A check changes nothing, so it is not a decision.
        if path == routes::CHECK_CHAIN {
            time.extend(RELOAD_TIME);
            let came = self.check_chain().await;
            self.notify(&visit, &came);
            return reply::see_other(routes::AUDIT);
        }
        if !self.sources.decides() {
            let hint = "Write decide = true into [console].";
            return reply::problem(StatusCode::FORBIDDEN, "This console only shows.", Some(hint));
        }
        let gone = CancelledOnDrop::default();
        let console = Arc::clone(self);
        let cancellation = gone.cancellation();
        let carried_out = tokio::spawn(async move {
            match tried_tool(&path) {
                Some(Some(name)) => console.try_tool(&visit, &name, fields, &time, cancellation).await,
                Some(None) => nowhere(),
                None => console.carry_out(&visit, &path, &fields, &time).await,
            }
        });
        carried_out.await.unwrap_or_else(|_| {
            let text = "The decision ended before its time.";
            reply::problem(StatusCode::INTERNAL_SERVER_ERROR, text, Some("The log says more."))
        })
    }

    /// Carries out a decision after recording its start, and records the outcome.
    async fn carry_out(self: &Arc<Self>, visit: &Visit, path: &str, fields: &Fields, time: &ConnectionTime) -> Reply {
        let Some(AskedDecision { decision, subject, back }) = self.asked(path, fields) else { return nowhere() };
        if let Err(refused) = self.sources.begin(visit.session.decides(), decision, &subject) {
            self.notify(visit, &Err(refused));
            return reply::see_other(&back);
        }
        if path == routes::NEW_TOKEN {
            return self.make_token(visit, fields).await;
        }
        let came = self.done(visit, path, fields, time).await;
        self.record(&visit.session, decision, &subject, came.as_deref().map_err(String::as_str).map(|_| ""));
        self.notify(visit, &came);
        reply::see_other(&back)
    }

    /// The decision that this path stands for, if any.
    fn asked(&self, path: &str, fields: &Fields) -> Option<AskedDecision> {
        let version = || format!("{} {}", fields.get(routes::COMPONENT), fields.get(routes::DIGEST));
        let (decision, subject, back) = match path {
            routes::STOP => ("stop", fields.get(routes::CALL).to_owned(), routes::NOW),
            routes::RECORD | routes::END_RECORDING => return Some(self.asked_recording(path, fields)),
            routes::MUTE => ("mute", self.group(fields), routes::DENIALS),
            routes::UNMUTE => ("unmute", self.group(fields), routes::DENIALS),
            routes::APPLY => ("grant", self.group(fields), routes::DENIALS),
            routes::READ => ("read", version(), routes::CHANGES),
            routes::HOLD => ("hold", version(), routes::CHANGES),
            routes::APPROVE if self.takes_other_signers(fields) => {
                ("approve", format!("{}, with other signers", version()), routes::CHANGES)
            }
            routes::APPROVE => ("approve", version(), routes::CHANGES),
            routes::ANSWER_APPROVAL => {
                let waiting = self.sources.waiting_in_words(fields.number(routes::KEY));
                let subject = waiting.unwrap_or_else(|| fields.get(routes::KEY).to_owned());
                (answer(fields).0, subject, routes::APPROVALS)
            }
            routes::NEW_TOKEN => ("token", fields.get(routes::NAME).to_owned(), routes::CALLERS),
            routes::REVOKE_TOKEN => ("revoke", format!("token {}", fields.get(routes::ID)), routes::CALLERS),
            routes::REVOKE_LOGIN => {
                let subject = format!("login {} of {}", fields.get(routes::LOGIN), fields.get(routes::NAME));
                ("revoke", subject, routes::CALLERS)
            }
            _ => return None,
        };
        Some(AskedDecision { decision, subject, back: back.into() })
    }

    /// A decision about recordings leads back to the page of its tool.
    fn asked_recording(&self, path: &str, fields: &Fields) -> AskedDecision {
        let tool = fields.get(routes::TOOL);
        let (decision, subject) = match path {
            routes::RECORD => ("record", format!("{tool}, the next {} calls", fields.get(routes::CALLS))),
            _ => ("end recording", self.sources.recording_in_words(fields)),
        };
        AskedDecision { decision, subject, back: self.sources.page_of_recorded(fields) }
    }

    async fn done(&self, visit: &Visit, path: &str, fields: &Fields, time: &ConnectionTime) -> Came {
        if [routes::APPLY, routes::READ, routes::APPROVE].contains(&path) {
            time.extend(RELOAD_TIME);
        }
        match path {
            routes::STOP => self.sources.stop(fields.number(routes::CALL), &named(visit)),
            routes::RECORD => self.sources.begin_recording(fields, ordered_by(visit)),
            routes::END_RECORDING => self.sources.end_recording(fields),
            routes::MUTE => self.sources.mute(fields.number(routes::KEY), true),
            routes::UNMUTE => self.sources.mute(fields.number(routes::KEY), false),
            routes::APPLY => self.sources.allow(fields.number(routes::KEY), &self.orders).await,
            routes::READ => self.read(fields).await,
            routes::HOLD => self.sources.hold_against_recordings(fields),
            routes::APPROVE => self.approve(fields).await,
            routes::ANSWER_APPROVAL => self.answer(visit, fields),
            routes::REVOKE_LOGIN => self.revoke_login(fields).await,
            _ => self.revoke(fields).await,
        }
    }

    async fn read(&self, fields: &Fields) -> Came {
        let name = fields.get(routes::COMPONENT);
        let digest = Some(SeenDigest::try_from(fields.get(routes::DIGEST).to_owned())?);
        let asked = self.orders.read(Approval { name: name.to_owned(), digest, allow_signer_change: false });
        match asked.ok_or(MANY_WAIT)?.await {
            Ok(ReloadOutcome::Failed(failed)) => Err(format!("It cannot be read: {}", failed.summary)),
            Ok(_) => Ok(format!("{name} is read: it differs as shown, and stays in quarantine.")),
            Err(_) => said("", None),
        }
    }

    async fn approve(&self, fields: &Fields) -> Came {
        let asked = self.orders.approve(self.approval(fields)?).ok_or(MANY_WAIT)?;
        match asked.await.ok() {
            Some(ReloadOutcome::Failed(failed)) => Err(format!("It is not served: {}", failed.summary)),
            outcome => said("Approved. ", outcome),
        }
    }

    fn approval(&self, fields: &Fields) -> Result<Approval, String> {
        let digest = SeenDigest::try_from(fields.get(routes::DIGEST).to_owned())?;
        let name = fields.get(routes::COMPONENT).to_owned();
        let quarantined = self.sources.current.journal.quarantined();
        let Some(held) = quarantined.iter().find(|held| held.component == name) else {
            return Err("This component is not in quarantine.".to_owned());
        };
        let allow_signer_change = self.takes_other_signers(fields);
        if held.other_signers && !allow_signer_change {
            return Err("It is not signed as the lock pins it: tick the box that pins its signers as well.".to_owned());
        }
        Ok(Approval { name, digest: Some(digest), allow_signer_change })
    }

    /// True if the approved version has other signers, and the box for that is ticked. Nobody can
    /// allow what the page did not show.
    fn takes_other_signers(&self, fields: &Fields) -> bool {
        let is_it = |held: &Quarantined| held.component == fields.get(routes::COMPONENT) && held.other_signers;
        fields.get(routes::SIGNERS) == routes::OTHER_SIGNERS
            && self.sources.current.journal.quarantined().iter().any(is_it)
    }

    fn answer(&self, visit: &Visit, fields: &Fields) -> Came {
        let (_, allows, remembers) = answer(fields);
        let run_calls = (fields.get(routes::ANSWER) == "run").then(|| fields.number(routes::CALLS));
        // A number that nobody may allow does not count as an answer.
        let run_calls = run_calls.map(|calls| calls.and_then(|calls| u32::try_from(calls).ok()).unwrap_or(0));
        let answer = OperatorAnswer { allows, remembers, run_calls, by: named(visit) };
        self.sources.answer(fields.number(routes::KEY), answer)
    }

    async fn revoke(&self, fields: &Fields) -> Came {
        let file = self.sources.tokens.clone().ok_or("There is no file of tokens.")?;
        let id = fields.get(routes::ID).to_owned();
        let written = tokio::task::spawn_blocking(move || {
            file.change(|entries| {
                let before = entries.len();
                entries.retain(|entry| token_id(entry) != id);
                if entries.len() < before { Ok(()) } else { Err("There is no such token.".to_owned()) }
            })
        });
        written.await.map_err(|_| "The file of tokens was not written.")??;
        // Without a token, the caller makes no call that could use a login.
        let catalog = self.sources.catalog();
        let check = RightsCheck {
            logins: Arc::clone(&self.sources.services.logins),
            sink: Arc::clone(&self.sources.services.sink),
            login_use: Arc::clone(catalog.login_use()),
            policies: catalog.caller_logins(),
        };
        check.start(&tokio::runtime::Handle::current());
        Ok("Revoked: the server turns it away within some seconds.".to_owned())
    }

    async fn revoke_login(&self, fields: &Fields) -> Came {
        let name = fields.get(routes::LOGIN);
        let caller = fields.get(routes::NAME).to_owned();
        let policies = self.sources.catalog().caller_logins();
        let policy = policies.into_iter().find(|policy| policy.name() == name).ok_or("There is no such login.")?;
        let services = Arc::clone(&self.sources.services);
        let runtime = tokio::runtime::Handle::current();
        // Another process may hold the login for a while.
        let revoked = tokio::task::spawn_blocking(move || {
            let revoked = runtime.block_on(services.logins.revoke(&policy, &caller));
            if matches!(revoked, Ok((true, _))) {
                record_revoked(&services, &policy, &caller);
            }
            revoked
        });
        match revoked.await.map_err(|_| "The login was not revoked.")? {
            Ok((true, None)) => Ok("Revoked: the server took its tokens back, where it offers that.".to_owned()),
            Ok((true, Some(error))) => Ok(format!("Revoked here. The server did not take the tokens back: {error}.")),
            Ok((false, _)) => Err("There is no such login.".to_owned()),
            Err(error) => Err(format!("The login was not revoked: {error}.")),
        }
    }

    /// Makes a token, and shows it only on this page.
    async fn make_token(self: &Arc<Self>, visit: &Visit, fields: &Fields) -> Reply {
        let made = self.new_token(fields).await;
        let name = fields.get(routes::NAME).to_owned();
        let came = made.as_ref().map(|_| "").map_err(String::as_str);
        self.record(&visit.session, "token", &name, came);
        let frame = self.frame(visit, true);
        let shown = made.map(|secret| FreshToken { name, secret });
        let shown = self.aside(move |console| {
            let fresh = shown?;
            let mut view = console.sources.callers("")?;
            view.fresh = Some(fresh);
            Ok::<_, String>(page::callers(&frame, &view))
        });
        match shown.await {
            Ok(Ok(page)) => reply::page(StatusCode::OK, page),
            Ok(Err(problem)) => {
                self.notify(visit, &Err(problem));
                reply::see_other(routes::CALLERS)
            }
            Err(reply) => reply,
        }
    }

    async fn new_token(&self, fields: &Fields) -> Came {
        let file = self.sources.tokens.clone().ok_or("There is no file of tokens.")?;
        let lifetime = match fields.get(routes::EXPIRES).trim() {
            "" | "never" => None,
            text => Some(lifetime(text).map_err(|problem| format!("{problem}, or never."))?),
        };
        let name = fields.get(routes::NAME).trim().to_owned();
        let scopes: Vec<String> = fields.get(routes::SCOPES).split_whitespace().map(str::to_owned).collect();
        let made = tokio::task::spawn_blocking(move || {
            let new = NewToken { name: &name, scopes: &scopes, lifetime };
            file.add(&new)
        });
        let made = made.await;
        made.map_err(|_| "The file of tokens was not written.")?
    }

    /// A group of denials in words.
    fn group(&self, fields: &Fields) -> String {
        let found = self.sources.group_in_words(fields.number(routes::KEY));
        found.unwrap_or_else(|| fields.get(routes::KEY).to_owned())
    }
}

/// Records that an operator revoked a caller's login.
fn record_revoked(services: &Services, policy: &LoginPolicy, caller: &str) {
    let event = || {
        Event::LoginChanged(LoginChanged {
            login: policy.name(),
            caller: Clipped(caller),
            change: "revoked",
            by: "operator",
            component: None,
            detail: None,
        })
    };
    if let Err(error) = services.sink.record(event) {
        tracing::error!("a revoked login is missing from the audit: {error}");
    }
}

/// The decision about a waiting call: its name, if it allows, and if it remembers.
fn answer(fields: &Fields) -> (&'static str, bool, bool) {
    match fields.get(routes::ANSWER) {
        "allow" => ("allow", true, false),
        "run" => ("allow for the run", true, false),
        "remember" => ("remember", true, true),
        _ => ("decline", false, false),
    }
}

/// The operator of a visit, as others see it.
fn named(visit: &Visit) -> String {
    match &visit.session.operator {
        Some(name) => format!("{name} in the console"),
        None => format!("the console's session {}", visit.session.name),
    }
}

/// The tool that a form at this path tries: `None` if it tries none, `Some(None)` if the tool is
/// unknown.
fn tried_tool(path: &str) -> Option<Option<String>> {
    let name = path.strip_prefix(routes::TOOLS)?.strip_prefix('/')?.strip_suffix("/try")?;
    Some(segment(name))
}

fn nowhere() -> Reply {
    reply::problem(StatusCode::NOT_FOUND, "There is no such form.", None)
}
