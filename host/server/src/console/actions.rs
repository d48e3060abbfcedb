//! Forms of operators: each is a decision, recorded once, and said on the next page. Must not hold:
//! pages, or how a decision is done (see `decisions`).
use std::sync::Arc;

use http::StatusCode;
use toolcell_console::model::{FreshToken, SignInReason};
use toolcell_console::{page, routes};

use super::decisions::{Came, said};
use super::form::Fields;
use super::gather::token_id;
use super::listen::ConnectionTime;
use super::reply::{self, Reply};
use super::service::{Console, Visit, segment};
use crate::activity::OperatorAnswer;
use crate::http::{NewToken, lifetime};
use crate::lock::{Approval, SeenDigest};
use crate::reload::ReloadOutcome;

/// There is no room for another order.
const MANY_WAIT: &str = "Too many reloads wait already; try again later.";

/// Time of a decision that is followed by a reload: compiling takes about a second per megabyte.
const RELOAD_TIME: std::time::Duration = std::time::Duration::from_secs(120);

impl Console {
    /// Does what a form asks for.
    pub(super) async fn post(
        self: &Arc<Self>,
        visit: &Visit,
        path: &str,
        fields: Fields,
        time: &ConnectionTime,
    ) -> Reply {
        if path == routes::SIGN_OUT {
            self.record(&visit.session, "leave", "the console", Ok(""));
            self.doorman.sessions.leave(&visit.secret);
            let reply = self.sign_in(StatusCode::FORBIDDEN, SignInReason::SignedOut);
            return reply::with_cookie(reply, &self.doorman.set_cookie(None));
        }
        if !self.sources.decide {
            let hint = "Write decide = true into [console], and start the server anew.";
            return reply::problem(StatusCode::FORBIDDEN, "This console only shows.", Some(hint));
        }
        if path == routes::CHECK_CHAIN {
            time.extend(RELOAD_TIME);
            let came = self.check_chain().await;
            self.tell(visit, &came);
            return reply::see_other(routes::AUDIT);
        }
        if path == routes::NEW_TOKEN {
            return self.make_token(visit, &fields).await;
        }
        if let Some(name) =
            path.strip_prefix(routes::TOOLS).and_then(|rest| rest.strip_prefix('/')?.strip_suffix("/try"))
        {
            return match segment(name) {
                Some(name) => self.try_tool(visit, &name, fields, time).await,
                None => nowhere(),
            };
        }
        let (decision, subject, back, came) = match path {
            routes::STOP => {
                let came = self.sources.stop(fields.number(routes::CALL));
                ("stop", fields.get(routes::CALL).to_owned(), routes::NOW, came)
            }
            routes::MUTE => ("mute", self.group(&fields), routes::DENIALS, self.mute(&fields, true)),
            routes::UNMUTE => ("unmute", self.group(&fields), routes::DENIALS, self.mute(&fields, false)),
            routes::APPLY => {
                time.extend(RELOAD_TIME);
                let came = self.sources.allow(fields.number(routes::KEY), &self.orders).await;
                ("grant", self.group(&fields), routes::DENIALS, came)
            }
            routes::READ => {
                time.extend(RELOAD_TIME);
                let (subject, came) = self.read(&fields).await;
                ("read", subject, routes::CHANGES, came)
            }
            routes::APPROVE => {
                time.extend(RELOAD_TIME);
                let (subject, came) = self.approve(&fields).await;
                ("approve", subject, routes::CHANGES, came)
            }
            routes::ANSWER_APPROVAL => {
                let (decision, subject, came) = self.answer(visit, &fields);
                (decision, subject, routes::APPROVALS, came)
            }
            routes::REVOKE_TOKEN => {
                let came = self.revoke(&fields).await;
                ("revoke", format!("token {}", fields.get(routes::ID)), routes::CALLERS, came)
            }
            _ => return nowhere(),
        };
        self.record(&visit.session, decision, &subject, came.as_deref().map_err(String::as_str).map(|_| ""));
        self.tell(visit, &came);
        reply::see_other(back)
    }

    fn mute(&self, fields: &Fields, is_muted: bool) -> Came {
        self.sources.mute(fields.number(routes::KEY), is_muted)
    }

    /// The version that is to be read, and what came of it.
    async fn read(&self, fields: &Fields) -> (String, Came) {
        let name = fields.get(routes::COMPONENT);
        let subject = format!("{name} {}", fields.get(routes::DIGEST));
        let digest = match SeenDigest::try_from(fields.get(routes::DIGEST).to_owned()) {
            Ok(digest) => Some(digest),
            Err(problem) => return (subject, Err(problem)),
        };
        let Some(asked) = self.orders.read(Approval { name: name.to_owned(), digest, allow_signer_change: false })
        else {
            return (subject, Err(MANY_WAIT.to_owned()));
        };
        let came = match asked.await {
            Ok(ReloadOutcome::Failed(failed)) => Err(format!("It cannot be read: {}", failed.summary)),
            Ok(_) => Ok(format!("{name} is read: it differs as shown, and stays in quarantine.")),
            Err(_) => said("", None),
        };
        (subject, came)
    }

    /// The subject of an approval, and what came of it.
    async fn approve(&self, fields: &Fields) -> (String, Came) {
        let subject = format!("{} {}", fields.get(routes::COMPONENT), fields.get(routes::DIGEST));
        let approval = match self.approval(fields) {
            Ok(approval) => approval,
            Err(problem) => return (subject, Err(problem)),
        };
        let signers = if approval.allow_signer_change { ", with other signers" } else { "" };
        let outcome = match self.orders.approve(approval) {
            Some(asked) => asked.await.ok(),
            None => return (subject, Err(MANY_WAIT.to_owned())),
        };
        let came = match outcome {
            Some(ReloadOutcome::Failed(failed)) => Err(format!("It is not served: {}", failed.summary)),
            outcome => said("Approved. ", outcome),
        };
        (format!("{subject}{signers}"), came)
    }

    fn approval(&self, fields: &Fields) -> Result<Approval, String> {
        let digest = SeenDigest::try_from(fields.get(routes::DIGEST).to_owned())?;
        let name = fields.get(routes::COMPONENT).to_owned();
        let quarantined = self.sources.journal.quarantined();
        let Some(held) = quarantined.iter().find(|held| held.component == name) else {
            return Err("This component is not in quarantine.".to_owned());
        };
        // Nobody allows what the page did not say.
        let allow_signer_change = held.other_signers && fields.get(routes::SIGNERS) == routes::OTHER_SIGNERS;
        if held.other_signers && !allow_signer_change {
            return Err("It is not signed as the lock pins it: tick the box that pins its signers as well.".to_owned());
        }
        Ok(Approval { name, digest: Some(digest), allow_signer_change })
    }

    /// The decision, its subject, and what came of it.
    fn answer(&self, visit: &Visit, fields: &Fields) -> (&'static str, String, Came) {
        let (decision, allows, remembers) = match fields.get(routes::ANSWER) {
            "allow" => ("allow", true, false),
            "remember" => ("remember", true, true),
            _ => ("decline", false, false),
        };
        let by = match &visit.session.operator {
            Some(name) => format!("{name} in the console"),
            None => format!("the console's session {}", visit.session.name),
        };
        let answer = OperatorAnswer { allows, remembers, by };
        let (subject, came) = self.sources.answer(fields.number(routes::KEY), answer);
        (decision, subject.unwrap_or_else(|| fields.get(routes::KEY).to_owned()), came)
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
        Ok("Revoked: the server turns it away within some seconds.".to_owned())
    }

    /// Makes a token, and shows it on this page alone.
    async fn make_token(self: &Arc<Self>, visit: &Visit, fields: &Fields) -> Reply {
        let made = self.new_token(fields).await;
        let name = fields.get(routes::NAME).to_owned();
        let came = made.as_ref().map(|_| "").map_err(String::as_str);
        self.record(&visit.session, "token", &name, came);
        let frame = self.frame(visit, true);
        let shown = made.map(|secret| FreshToken { name, secret });
        let shown = self.aside(move |console| {
            let (fresh, mut view) = (shown?, console.sources.callers()?);
            view.fresh = Some(fresh);
            Ok::<_, String>(page::callers(&frame, &view))
        });
        match shown.await {
            Ok(Ok(page)) => reply::page(StatusCode::OK, page),
            Ok(Err(problem)) => {
                self.tell(visit, &Err(problem));
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

fn nowhere() -> Reply {
    reply::problem(StatusCode::NOT_FOUND, "There is no such form.", None)
}
