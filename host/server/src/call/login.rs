//! Calls whose tool uses the login of their caller: the caller logs in before the guest runs, so no
//! call stops half way for it.
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use toolcell_audit::Outcome;
use toolcell_mcp::{AskOutcome, AskTerms, Call, Caller, ClientAnswer, ClientQuestion, KeyedQuestion, QuestionKind};
use toolcell_policy::LoginPolicy;
use toolcell_sandbox::{CallLogins, ComponentDigest};

use super::StartedCall;
use super::clock::StoppedClocks;
use super::execute::EndedCall;
use crate::catalog::CallTarget;
use crate::identity::login::{LoginError, LoginNeed, TicketSubject};
use crate::observing::activity::CallPhase;

/// The beginning of the question's key. No guest can use it.
const KEY: &str = "toolcell.login";

/// Digits of the digest of the login's name that follow: enough for the 64 logins of a manifest.
const KEY_DIGITS: usize = 16;

/// The caller of calls that operators make in the console.
const CONSOLE: &str = "console";

/// Most bytes of an answer: its action, and additions of clients.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Time between two looks whether the person has logged in.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// The longest wait for a person who said that the page is open. Clients wait a minute for an
/// answer by default.
const AGREED_WITHIN: Duration = Duration::from_secs(45);

/// The logins of each caller that a tool uses.
pub(super) fn logins_of(target: &CallTarget) -> impl Iterator<Item = &Arc<LoginPolicy>> {
    let mut seen: Vec<&str> = Vec::new();
    target.capabilities.grants().caller_logins().filter(move |login| {
        let is_new = !seen.contains(&login.name());
        seen.push(login.name());
        is_new
    })
}

/// The key of a login's question, within the 64 bytes of a key.
fn key(policy: &LoginPolicy) -> String {
    let digest = ComponentDigest::of(policy.name().as_bytes()).to_string();
    let digits = digest.rsplit(':').next().and_then(|digits| digits.get(..KEY_DIGITS)).unwrap_or_default();
    format!("{KEY}.{digits}")
}

impl StartedCall<'_> {
    /// Gets the secrets of the caller's logins, for the requests of this call alone. `Err` is the
    /// answer to a call that must not run.
    pub(super) async fn log_in(&self, call: &Call) -> Result<(), Box<EndedCall>> {
        let mut logins = CallLogins::default();
        for policy in logins_of(self.target) {
            if [Caller::anyone().name(), CONSOLE].contains(&call.context.caller.name()) {
                return Err(self.not_logged_in("refused", self.nobody_s(policy)));
            }
            let need = match self.login_need(policy, call).await? {
                LoginNeed::Person => {
                    self.ask_to_log_in(policy, call).await?;
                    self.login_need(policy, call).await?
                }
                need => need,
            };
            match need {
                LoginNeed::Nothing(secret) => logins.add(policy.name(), secret),
                LoginNeed::Person => return Err(self.not_logged_in("dismissed", self.not_yet(policy))),
                LoginNeed::Token => {
                    let text = format!(
                        "the tool {:?} works with a token of {} that its caller shows: call it with one",
                        self.name(),
                        policy.issuer().unwrap_or_default()
                    );
                    return Err(self.not_logged_in("refused", text));
                }
                LoginNeed::Server => {
                    let text = format!(
                        "the tool {:?} uses your login {:?}, and its server gives no token now: call again later",
                        self.name(),
                        policy.name()
                    );
                    return Err(self.not_logged_in("failed", text));
                }
            }
        }
        let _ = self.logins.set(logins);
        Ok(())
    }

    async fn login_need(&self, policy: &Arc<LoginPolicy>, call: &Call) -> Result<LoginNeed, Box<EndedCall>> {
        let need = self.catalog.services.logins.need(policy, &call.context.caller).await;
        need.map_err(|error| self.unusable(&error))
    }

    /// Asks the caller's person to log in, and waits until that is done, or was not.
    async fn ask_to_log_in(&self, policy: &Arc<LoginPolicy>, call: &Call) -> Result<(), Box<EndedCall>> {
        let caller = call.context.caller.name();
        let component = &self.target.component;
        let session = self.session(call);
        let subject = TicketSubject {
            policy,
            caller,
            session: &session,
            component: component.name(),
            digest: component.digest(),
            policy_digest: &component.policy_digest,
            tool: self.name(),
        };
        let logins = &self.catalog.services.logins;
        let Some(url) = logins.address(&subject).map_err(|error| self.unusable(&error))? else {
            let need = self.need_text(policy);
            let command = if policy.pasted() { "logins set" } else { "secret login" };
            let text = format!("{need}: run `toolcell {command} {} --caller {caller}`", policy.name());
            return Err(self.not_logged_in("unsupported", text));
        };
        if !call.context.asking.supports(QuestionKind::Page) {
            return Err(self.not_logged_in("unsupported", self.by_text(policy, &url)));
        }
        self.live().into_iter().for_each(|live| live.enter(CallPhase::Asking));
        let above = self.lineage.iter().flat_map(|lineage| &lineage.clocks).map(|clock| &**clock);
        let clocks = StoppedClocks::of(above);
        let asked = self.ask_page(policy, call, url).await;
        drop(clocks);
        self.live().into_iter().for_each(|live| live.enter(CallPhase::Waiting));
        asked
    }

    /// What a login's address belongs to besides its caller: the rounds of the call, or the run of
    /// the call above, so that each round asks the same; else this call alone.
    fn session(&self, call: &Call) -> String {
        let rounds = call.context.asking.chain();
        let run = || self.lineage.as_ref().map(|lineage| format!("run {}", lineage.run.began_ms()));
        rounds.or_else(run).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("call {} {}", self.record.id(), now.as_nanos())
        })
    }

    async fn ask_page(&self, policy: &Arc<LoginPolicy>, call: &Call, url: String) -> Result<(), Box<EndedCall>> {
        let wait = self.target.limits.ask_wait();
        let what = if policy.pasted() { "Give it" } else { "Log in" };
        let message = format!("{}. {what} on this page, then go on here.", self.need_text(policy));
        let question = ClientQuestion::Page { message, url };
        let need = format!("the tool {:?} needs your login", self.name());
        let terms = AskTerms {
            asker: None,
            need: &need,
            answer_bytes_max: ANSWER_BYTES_MAX,
            answered_within: wait,
            permits: Some(policy.name()),
        };
        let asks = vec![KeyedQuestion { key: key(policy), question }];
        let asked = tokio::select! {
            biased;
            () = call.context.cancellation.cancelled() => None,
            asked = tokio::time::timeout(wait, call.context.asking.ask(asks, terms)) => asked.ok(),
        };
        let cancelled = call.context.cancellation.is_cancelled();
        match asked {
            Some(AskOutcome::Answered(answers)) => match answers.into_iter().next() {
                Some(ClientAnswer::Accepted(_)) => self.until_logged_in(policy, call, wait).await,
                Some(ClientAnswer::Declined) => {
                    let text =
                        format!("the person declined to log in to {}: {:?} was not run", policy.name(), self.name());
                    Err(self.not_logged_in("declined", text))
                }
                _ => Err(self.not_logged_in("dismissed", self.not_yet(policy))),
            },
            Some(AskOutcome::Refused(error)) => {
                Err(self.not_logged_in("failed", format!("{}: {error}", self.need_text(policy))))
            }
            Some(AskOutcome::Ended(None)) => {
                self.note_login("pending", None);
                let text = "the call goes on once its caller has logged in".to_owned();
                Err(Box::new(EndedCall::refused(Outcome::InputRequired, text)))
            }
            Some(AskOutcome::Ended(Some(text))) => Err(self.not_logged_in("failed", text)),
            None if cancelled => {
                let text = "the call was cancelled while it waited for a login: it did not run".to_owned();
                Err(self.not_logged_in("cancelled", text))
            }
            None => Err(self.not_logged_in("timed_out", self.not_yet(policy))),
        }
    }

    /// Waits for the person, who has the page open.
    async fn until_logged_in(
        &self,
        policy: &Arc<LoginPolicy>,
        call: &Call,
        wait: Duration,
    ) -> Result<(), Box<EndedCall>> {
        let end = tokio::time::Instant::now() + wait.min(AGREED_WITHIN);
        while tokio::time::Instant::now() < end && !call.context.cancellation.is_cancelled() {
            if !matches!(self.login_need(policy, call).await?, LoginNeed::Person) {
                call.context.asking.pages_are_done();
                self.note_login("accepted", None);
                return Ok(());
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
        Err(self.not_logged_in("timed_out", self.not_yet(policy)))
    }

    fn need_text(&self, policy: &LoginPolicy) -> String {
        let component = self.target.component.name();
        if policy.pasted() {
            return format!(
                "The tool {:?} of the component {component:?} works with a key of yours, and has no {:?} of you",
                self.name(),
                policy.name()
            );
        }
        let server = policy.issuer().or(policy.token()).unwrap_or_default();
        format!(
            "The tool {:?} of the component {component:?} works with your account at {server}, and you are not logged in to {:?}",
            self.name(),
            policy.name()
        )
    }

    /// The answer to a caller that may be anybody.
    fn nobody_s(&self, policy: &LoginPolicy) -> String {
        format!(
            "the tool {:?} works with the account of its caller (the login {:?}), and this server does not know whose \
             call this is: call it with a token of your own",
            self.name(),
            policy.name()
        )
    }

    fn not_yet(&self, policy: &LoginPolicy) -> String {
        format!("nobody has logged in to {:?} yet: call {:?} again once that is done", policy.name(), self.name())
    }

    /// The answer for a client that cannot show a page. A tool that called this one gets no
    /// address: with it, somebody could log in with another account in the caller's name.
    fn by_text(&self, policy: &LoginPolicy, url: &str) -> String {
        let need = self.need_text(policy);
        match &self.lineage {
            None if policy.pasted() => {
                format!("{need}. Open this address in a browser and give it, then call the tool again: {url}")
            }
            None => format!("{need}. Open this address in a browser and log in, then call the tool again: {url}"),
            Some(_) => format!("{need}. Call the tool {:?} by itself: its answer says where to log in", self.name()),
        }
    }

    fn unusable(&self, error: &LoginError) -> Box<EndedCall> {
        tracing::error!("the logins of callers cannot be used: {error}");
        let text = format!("the tool {:?} uses your login, and the host cannot read it: its log says why", self.name());
        self.note_login("failed", Some(&error.to_string()));
        Box::new(EndedCall::refused(Outcome::HostError, text))
    }

    fn not_logged_in(&self, answer: &str, text: String) -> Box<EndedCall> {
        // The address in the text lets its reader log in: it stays out of the records.
        let noted = text.split("http").next().unwrap_or_default();
        self.note_login(answer, Some(noted));
        Box::new(EndedCall {
            detail: format!("not logged in: {answer}"),
            ..EndedCall::refused(Outcome::NotApproved, text)
        })
    }

    fn note_login(&self, answer: &str, detail: Option<&str>) {
        self.record.asks(self.target).write("login", KEY, answer, detail);
    }
}
