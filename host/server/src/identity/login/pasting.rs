//! The page at which a caller pastes a key, for APIs without OAuth.
use std::sync::Arc;

use ::http::StatusCode;
use tokio::runtime::Handle;
use toolcell_policy::LoginPolicy;
use zeroize::Zeroizing;

use super::code::random_text;
use super::error::LoginError;
use super::html::{Ended, Page, escaped, html, one};
use super::made::{MadeLogin, mark};
use super::pages::LoginPages;
use super::ticket::{LoginTicket, REMEMBERED_FOR};

impl LoginPages {
    /// The page at which a caller pastes a key.
    pub(super) fn asked_for_key(&self, ticket: &LoginTicket, text: &str) -> Page {
        let page = format!(
            "<h1>Your key {login}</h1>\
             <p>The tool <b>{tool}</b> of <b>{name}</b> uses a key of <b>{caller}</b>, named {login}. <b>{name}</b> \
             keeps it, for the calls of <b>{caller}</b> alone, and shows it to nobody.</p>\
             <p>Go on only if you are {caller}, and asked for this just now. If somebody sent you this address, close \
             this page: the tools of {caller} would work with your key.</p>\
             <form method=\"post\"><input type=\"hidden\" name=\"ticket\" value=\"{text}\">\
             <label>Key <input type=\"password\" name=\"key\" required autocomplete=\"off\"></label>\
             <button>Keep this key</button></form>",
            login = escaped(&ticket.login),
            tool = escaped(&ticket.tool),
            caller = escaped(&ticket.caller),
            name = escaped(&self.parts.name),
            text = escaped(text),
        );
        html(StatusCode::OK, &page)
    }

    /// Keeps the key that a caller pasted.
    pub(super) async fn pasted(
        self: &Arc<Self>,
        ticket: LoginTicket,
        policy: Arc<LoginPolicy>,
        form: &str,
    ) -> Result<Page, Ended> {
        let key = one(form, "key").map(|key| Zeroizing::new(key.trim().to_owned())).unwrap_or_default();
        let random = random_text().map_err(|error| self.failed(&ticket, &error))?;
        let made = MadeLogin { login: ticket.login.clone(), caller: ticket.caller.clone(), mark: mark(&random) };
        let used = self.claim(&ticket, &ticket.name()).await?;
        // A store may wait for another process.
        let this = Arc::clone(self);
        let runtime = Handle::current();
        let kept = made.clone();
        let kept = tokio::task::spawn_blocking(move || runtime.block_on(this.paste(&kept, &policy, key)));
        let ended = |_| Ended::new(StatusCode::INTERNAL_SERVER_ERROR, "The key was not kept.");
        if let Err(error) = kept.await.map_err(ended)? {
            let _ = self.parts.state.give_back(used).await;
            return Err(self.failed(&ticket, &error));
        }
        self.record_of(&ticket, "made", None);
        let _ = self.parts.state.note(&ticket.name(), REMEMBERED_FOR).await;
        let text = format!(
            "The key {} of {} is kept. You can close this window, and go on where you came from.",
            ticket.login, ticket.caller
        );
        Ok(self.made(&made, &text))
    }

    async fn paste(
        &self,
        made: &MadeLogin,
        policy: &Arc<LoginPolicy>,
        key: Zeroizing<String>,
    ) -> Result<(), LoginError> {
        self.parts.logins.paste(policy, &made.caller, key, Some(&made.mark)).await?;
        self.check_right(policy, &made.caller).await
    }
}
