//! The page at which a browser ends the logins that it made. Nobody else can name one there: what
//! it knows of them is sealed in its cookies.
use std::sync::Arc;

use ::http::StatusCode;
use ::http::header::SET_COOKIE;
use ::http::request::Parts;
use hyper::body::Incoming;
use tokio::runtime::Handle;
use toolcell_audit::{Clipped, LoginChanged};

use super::html::{Ended, Page, escaped, html, one, page};
use super::made::MadeLogin;
use super::pages::LoginPages;

/// The field of the form with the login's identifier.
const LOGIN: &str = "login";

impl LoginPages {
    /// The logins that this browser made.
    pub(super) fn made_here(&self, parts: &Parts) -> Result<Page, Ended> {
        let made = self.made_by(parts)?;
        if made.is_empty() {
            let text = "This browser made no login here. Open this page in the one that you logged in with, or ask the \
                        operator to end your login.";
            return Ok(page(StatusCode::OK, text));
        }
        let form = |made: &MadeLogin| {
            format!(
                "<form method=\"post\"><p>{login} of {caller} <input type=\"hidden\" name=\"{LOGIN}\" value=\"{id}\">\
                 <button>End this login</button></p></form>",
                login = escaped(&made.login),
                caller = escaped(&made.caller),
                id = made.id(),
            )
        };
        let forms: String = made.iter().map(form).collect();
        Ok(html(StatusCode::OK, &format!("<h1>Logins that this browser made</h1>{forms}")))
    }

    fn made_by(&self, parts: &Parts) -> Result<Vec<MadeLogin>, Ended> {
        let key = self.key()?;
        Ok(MadeLogin::all(key, &parts.headers))
    }

    /// Ends one of them.
    pub(super) async fn ended(self: &Arc<Self>, parts: &Parts, body: Incoming) -> Result<Page, Ended> {
        let form = self.form(parts, body).await?;
        let id = one(std::str::from_utf8(&form).unwrap_or_default(), LOGIN).unwrap_or_default();
        let Some(made) = self.made_by(parts)?.into_iter().find(|made| made.id() == id) else {
            return Err(Ended::new(StatusCode::NOT_FOUND, "This browser made no such login."));
        };
        let text = self.end(&made).await?;
        let mut response = page(StatusCode::OK, &text);
        if let Some(cookie) = self.forgets(&made) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        Ok(response)
    }

    /// Ends a login, if it is the one that was made. Returns the words for the person.
    async fn end(self: &Arc<Self>, made: &MadeLogin) -> Result<String, Ended> {
        let MadeLogin { login, caller, .. } = made;
        let Some(policy) = self.parts.finder.named(login) else {
            return Ok(format!("The server has no login {login} any more."));
        };
        // A store may wait for another process.
        let this = Arc::clone(self);
        let runtime = Handle::current();
        let ending = made.clone();
        let revoked = tokio::task::spawn_blocking(move || {
            let MadeLogin { caller, mark, .. } = &ending;
            runtime.block_on(this.parts.logins.revoke_marked(&policy, caller, Some(mark)))
        });
        let failed = |problem: String| Ended::new(StatusCode::BAD_GATEWAY, format!("It was not ended: {problem}."));
        let revoked = revoked.await.map_err(|_| failed("the server stopped".to_owned()))?;
        let (there, kept) = revoked.map_err(|error| failed(error.to_string()))?;
        if !there {
            return Ok(format!("This login was ended before, or another login of {caller} took its place."));
        }
        let detail = kept.map(|error| format!("the server did not take the tokens back: {error}"));
        self.record(LoginChanged {
            login,
            caller: Clipped(caller),
            change: "revoked",
            by: "caller",
            component: None,
            detail: detail.as_deref().map(Clipped),
        });
        let more = match detail {
            None => String::new(),
            Some(problem) => format!(" But {problem}. End the access on the server's page of your account as well."),
        };
        Ok(format!("The login {login} of {caller} is ended.{more}"))
    }
}
