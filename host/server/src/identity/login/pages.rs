//! The pages at which callers log in: one that says what for and whose account it will be, the one
//! that the authorization server sends the browser back to, and one at which a browser ends the
//! logins that it made. Strangers can ask for all of them.
//!
//! A browser brings the ticket that its caller's client was given, and leaves with a cookie. Only
//! the browser that pressed the button can come back: the cookie has the state, sealed. Another
//! cookie names the login that was made, so that only this browser ends it.
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{HeaderName, LOCATION, ORIGIN, SET_COOKIE};
use ::http::request::Parts;
use ::http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Bytes, Incoming};
use tokio::runtime::Handle;
use tokio::time::timeout;
use toolcell_audit::{Clipped, Event, LoginChanged, Sink};
use toolcell_mcp::StateKey;
use toolcell_mcp::http::OriginPolicy;
use toolcell_policy::LoginPolicy;
use toolcell_shared::{Claim, Claimed, SharedState};
use url::Url;
use zeroize::Zeroizing;

use super::callers::CallerLogins;
use super::client::client;
use super::code::{AuthorizeRequest, CodeGrant, random_text};
use super::error::LoginError;
use super::html::{Ended, Page, escaped, html, nothing, one, only, page};
use super::made::{self, MadeLogin, cookies};
use super::redirect::{Expected, RedirectCame};
use super::ticket::{BegunLogin, LoginTicket, REMEMBERED_FOR};

/// Bytes of the form: the longest ticket, and a key of some kilobytes with every byte escaped.
const FORM_BYTES_MAX: usize = 16 * 1_024;

/// Time for the form to come.
const FORM_WITHIN: Duration = Duration::from_secs(5);

/// Seconds for which a browser keeps its cookie: the time to find a password and a second factor.
const COOKIE_SECONDS: u64 = 600;

/// The beginning of the cookie's name; the login's follows.
const COOKIE_NAME: &str = "toolcell_login_";

/// The header with the origin of a request (Fetch Metadata, "Sec-Fetch-Site").
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The path of the page that begins, after that of the pages.
const BEGIN: &str = "/begin";

/// The path of the page that browsers come back to, before the login's name.
const RETURN: &str = "/return/";

/// The path of the page at which a browser ends logins.
const END: &str = "/end";

/// Finds logins in what serves now.
pub(crate) trait LoginFinder: Send + Sync {
    /// The login that a ticket is for, while its component serves as it did then, and its caller
    /// may use it.
    fn of_ticket(&self, ticket: &LoginTicket) -> Option<Arc<LoginPolicy>>;

    /// The login of this name.
    fn named(&self, login: &str) -> Option<Arc<LoginPolicy>>;

    /// True if the rules let this caller use the login of this name.
    fn allows(&self, login: &str, caller: &str) -> bool;
}

/// What the pages are made of.
#[derive(Clone)]
pub(crate) struct PageParts {
    pub(crate) logins: Arc<CallerLogins>,
    /// Remembers what was used.
    pub(crate) state: Arc<dyn SharedState>,
    pub(crate) sink: Arc<Sink>,
    pub(crate) finder: Arc<dyn LoginFinder>,
    /// Name of the server for people.
    pub(crate) name: String,
}

/// The pages.
pub(super) struct LoginPages {
    pub(super) parts: PageParts,
    place: PagesPlace,
}

/// Where the pages are.
#[derive(Default)]
struct PagesPlace {
    /// Their address, without a slash at its end.
    address: String,
    /// Its path, without a slash at its end.
    path: String,
    /// Its origin.
    origin: String,
    doors: OriginPolicy,
}

impl LoginPages {
    pub(super) fn new(parts: PageParts) -> Self {
        Self { parts, place: PagesPlace::default() }
    }

    /// These pages at this address.
    pub(super) fn at(self, address: &str, doors: OriginPolicy) -> Self {
        let url = Url::parse(address).ok();
        let path = url.as_ref().map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default();
        let origin = url.map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        let address = address.trim_end_matches('/').to_owned();
        // A proxy may pass on another host than the one that the browser asked.
        let doors = doors.clone().origin(&origin).unwrap_or(doors);
        Self { place: PagesPlace { address, path, origin, doors }, ..self }
    }

    /// Answers a request that came to this address.
    pub(super) async fn respond(self: &Arc<Self>, request: Request<Incoming>, local: IpAddr) -> Page {
        let (parts, body) = request.into_parts();
        if !self.place.doors.allows(&parts, Some(local)) {
            return page(StatusCode::FORBIDDEN, "These pages do not answer to the requested host.");
        }
        let Some(path) = parts.uri.path().strip_prefix(&self.place.path) else { return nothing() };
        let answered = match (path.strip_prefix(RETURN), path, &parts.method) {
            (Some(login), _, &Method::GET) => return self.returned(login, &parts).await,
            (Some(_), ..) => return only("GET"),
            (None, BEGIN, &Method::GET) => self.asked(&parts).await,
            (None, BEGIN, &Method::POST) => self.begun(&parts, body).await,
            (None, END, &Method::GET) => self.made_here(&parts),
            (None, END, &Method::POST) => self.ended(&parts, body).await,
            (None, BEGIN | END, _) => return only("GET, POST"),
            _ => return nothing(),
        };
        answered.unwrap_or_else(|Ended(status, text)| page(status, &text))
    }

    /// The page that says what the login is for.
    async fn asked(&self, parts: &Parts) -> Result<Page, Ended> {
        let text = one(parts.uri.query().unwrap_or_default(), "ticket").unwrap_or_default();
        let (ticket, policy) = self.ticket(&text).await?;
        if policy.pasted() {
            return Ok(self.asked_for_key(&ticket, &text));
        }
        let server = policy.issuer().or(policy.token()).unwrap_or_default();
        let scopes = match policy.scopes() {
            [] => String::new(),
            scopes => format!("<p>It asks for: {}</p>", escaped(&scopes.join(", "))),
        };
        let page = format!(
            "<h1>Log in to {login}</h1>\
             <p>The tool <b>{tool}</b> of <b>{name}</b> uses {login} in the name of <b>{caller}</b>. You log in at \
             <b>{server}</b>, and <b>{name}</b> keeps what it gives, for the calls of <b>{caller}</b> alone.</p>{scopes}\
             <p>Go on only if you are {caller}, and asked for this just now. If somebody sent you this address, close \
             this page: the tools of {caller} would work with your account.</p>\
             <form method=\"post\"><input type=\"hidden\" name=\"ticket\" value=\"{text}\">\
             <button>Log in to {login}</button></form>",
            login = escaped(&ticket.login),
            tool = escaped(&ticket.tool),
            caller = escaped(&ticket.caller),
            name = escaped(&self.parts.name),
            server = escaped(server),
            text = escaped(&text),
        );
        Ok(html(StatusCode::OK, &page))
    }

    /// Ends a login that was just made, if its caller's right to it has ended meanwhile: whoever
    /// ended the others did not see this one.
    pub(super) async fn check_right(&self, policy: &Arc<LoginPolicy>, caller: &str) -> Result<(), LoginError> {
        if self.parts.finder.allows(policy.name(), caller) {
            return Ok(());
        }
        let _ = self.parts.logins.revoke(policy, caller).await?;
        Err(LoginError::Redirect("its caller may not use it any more".to_owned()))
    }

    /// The page after a login was made. The browser keeps what it needs to end it.
    pub(super) fn made(&self, made: &MadeLogin, text: &str) -> Page {
        let cookie = self.parts.logins.key().ok().and_then(|key| made.sealed(key)).and_then(|value| {
            let place = format!("{}{END}", self.place.path);
            self.cookie(&made.cookie_name(), &value, &place, made::COOKIE_SECONDS)
        });
        let Some(cookie) = cookie else { return page(StatusCode::OK, text) };
        let mut response = html(
            StatusCode::OK,
            &format!(
                "<p>{}</p><p>This browser can end it later, at <a href=\"{address}\">{address}</a>.</p>",
                escaped(text),
                address = escaped(&self.end_address()),
            ),
        );
        response.headers_mut().append(SET_COOKIE, cookie);
        response
    }

    /// The address at which a browser ends logins.
    pub(super) fn end_address(&self) -> String {
        format!("{}{END}", self.place.address)
    }

    /// Sends the browser to the authorization server.
    async fn begun(self: &Arc<Self>, parts: &Parts, body: Incoming) -> Result<Page, Ended> {
        let form = self.form(parts, body).await?;
        let form = std::str::from_utf8(&form).unwrap_or_default();
        let text = one(form, "ticket").unwrap_or_default();
        let (ticket, policy) = self.ticket(&text).await?;
        if policy.pasted() {
            return self.pasted(ticket, policy, form).await;
        }
        let failed = |error: LoginError| self.failed(&ticket, &error);
        let verifier = random_text().map_err(failed)?;
        let state = random_text().map_err(failed)?;
        let send = client(&policy).map_err(failed)?;
        let login = self.parts.logins.begin(&policy, &ticket.caller, send).await.map_err(failed)?;
        let endpoints = &login.endpoints;
        let redirect = self.redirect(&ticket.login);
        let request = AuthorizeRequest { redirect: &redirect, state: &state, verifier: &verifier };
        let address = request.address(&policy, endpoints).map_err(failed)?;
        let begun = BegunLogin {
            state: state.to_string(),
            verifier: verifier.to_string(),
            token_endpoint: endpoints.token.clone(),
            ticket: ticket.clone(),
        };
        let key = self.parts.logins.key().map_err(failed)?;
        let cookie = self.begun_cookie(&ticket.login, &begun.sealed(key).map_err(failed)?, COOKIE_SECONDS);
        let mut response = page(StatusCode::SEE_OTHER, "Go on at the authorization server.");
        let address = HeaderValue::from_str(&address).ok();
        let (Some(address), Some(cookie)) = (address, cookie) else {
            return Err(Ended::new(StatusCode::BAD_GATEWAY, "The authorization server's address cannot be opened."));
        };
        response.headers_mut().insert(LOCATION, address);
        response.headers_mut().insert(SET_COOKIE, cookie);
        Ok(response)
    }

    /// The form that a browser sends from one of these pages.
    pub(super) async fn form(&self, parts: &Parts, body: Incoming) -> Result<Bytes, Ended> {
        // Another page must not press the button.
        let header = |name: &HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let is_own = match header(&ORIGIN) {
            Some("null") | None => header(&SITE) == Some("same-origin"),
            Some(origin) => origin.eq_ignore_ascii_case(&self.place.origin),
        };
        if !is_own {
            return Err(Ended::new(StatusCode::FORBIDDEN, "The request comes from another page."));
        }
        let form = timeout(FORM_WITHIN, Limited::new(body, FORM_BYTES_MAX).collect()).await;
        Ok(form.ok().and_then(Result::ok).map(|form| form.to_bytes()).unwrap_or_default())
    }

    /// The browser comes back. Its cookie goes, however this ends.
    async fn returned(self: &Arc<Self>, login: &str, parts: &Parts) -> Page {
        let Some(begun) = self.begun_by(login, parts) else {
            let text = "This browser did not begin a login here, or began it too long ago. Call the tool again, and \
                        open the address that it gives.";
            return page(StatusCode::BAD_REQUEST, text);
        };
        let mut response = match self.finish(begun, parts.uri.query().unwrap_or_default()).await {
            Ok((made, text)) => self.made(&made, &text),
            Err(Ended(status, text)) => page(status, &text),
        };
        if let Some(cookie) = self.begun_cookie(login, "", 0) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        response
    }

    /// Makes the login. Returns it, with the words for the person.
    async fn finish(self: &Arc<Self>, begun: BegunLogin, query: &str) -> Result<(MadeLogin, String), Ended> {
        let wrong = || Ended::new(StatusCode::BAD_REQUEST, "This is not the login that this browser began.");
        let policy = self.policy_of(&begun.ticket)?;
        // Before anything is remembered: whoever does not know the state changes nothing.
        let named = Expected { state: Zeroizing::new(begun.state.clone()), issuer: None, must_name: false };
        if matches!(named.judge(query), RedirectCame::Other(_)) {
            return Err(wrong());
        }
        let _used = self.claim(&begun.ticket, &begun.name()).await?;
        let ticket = self.claim(&begun.ticket, &begun.ticket.name()).await?;
        // A store may wait for another process.
        let this = Arc::clone(self);
        let query = query.to_owned();
        let runtime = Handle::current();
        let finished = tokio::task::spawn_blocking(move || {
            let made = runtime.block_on(this.exchange(&begun, &policy, &query));
            (made, begun)
        });
        let ended = |_| Ended::new(StatusCode::INTERNAL_SERVER_ERROR, "The login was ended.");
        match finished.await.map_err(ended)? {
            (Ok(missing), begun) => {
                self.record_of(&begun.ticket, "made", None);
                // The ticket stays claimed; its page says so early.
                let _ = self.parts.state.note(&begun.ticket.name(), REMEMBERED_FOR).await;
                let lacks = match missing.as_slice() {
                    [] => String::new(),
                    missing => format!(" The server did not give: {}.", missing.join(", ")),
                };
                let made = begun.made();
                let text = format!(
                    "{} is logged in to {}.{lacks} You can close this window, and go on where you came from.",
                    made.caller, made.login
                );
                Ok((made, text))
            }
            (Err(error), begun) => {
                // The person may try again with the same address.
                let _ = self.parts.state.give_back(ticket).await;
                Err(self.failed(&begun.ticket, &error))
            }
        }
    }

    /// Gets and keeps the tokens. Returns the scopes that are missing.
    async fn exchange(
        &self,
        begun: &BegunLogin,
        policy: &Arc<LoginPolicy>,
        query: &str,
    ) -> Result<Vec<String>, LoginError> {
        let login = self.parts.logins.begin(policy, &begun.ticket.caller, client(policy)?).await?;
        let endpoints = &login.endpoints;
        if endpoints.token != begun.token_endpoint {
            return Err(LoginError::Redirect("the server's token endpoint changed meanwhile".to_owned()));
        }
        let expected = Expected {
            state: Zeroizing::new(begun.state.clone()),
            issuer: endpoints.issuer.clone(),
            must_name: endpoints.names_itself,
        };
        let code = match expected.judge(query) {
            RedirectCame::Code(code) => code,
            RedirectCame::Failed(problem) => return Err(LoginError::Redirect(problem)),
            RedirectCame::Other(_) => return Err(LoginError::Redirect("the state is another's".to_owned())),
        };
        let redirect = self.redirect(&begun.ticket.login);
        let subject = self.parts.logins.subject(policy, &begun.ticket.caller);
        let MadeLogin { mark, .. } = begun.made();
        let code =
            CodeGrant { code: &code, redirect: &redirect, verifier: &begun.verifier, subject, mark: Some(&mark) };
        let made = login.finish(&code).await?;
        self.parts.logins.was_made(policy, &begun.ticket.caller);
        self.check_right(policy, &begun.ticket.caller).await?;
        Ok(made.scopes_missing)
    }

    pub(super) fn key(&self) -> Result<&StateKey, Ended> {
        self.parts.logins.key().map_err(|error| {
            tracing::error!("nobody can log in: {error}");
            Ended::new(StatusCode::INTERNAL_SERVER_ERROR, "The server has no key for logins. Its log says more.")
        })
    }

    /// The ticket of a text, and its login.
    async fn ticket(&self, text: &str) -> Result<(LoginTicket, Arc<LoginPolicy>), Ended> {
        let key = self.key()?;
        let ticket = LoginTicket::open(key, text).filter(LoginTicket::holds).ok_or_else(|| {
            let text = "This address is not valid, or its time is over. Call the tool again, and open the address that \
                        it gives.";
            Ended::new(StatusCode::NOT_FOUND, text)
        })?;
        let policy = self.policy_of(&ticket)?;
        match self.parts.state.is_noted(&ticket.name()).await {
            Ok(false) => Ok((ticket, policy)),
            Ok(true) => Err(was_used()),
            Err(away) => Err(Ended::new(StatusCode::SERVICE_UNAVAILABLE, format!("{away}. Try again in a minute."))),
        }
    }

    fn policy_of(&self, ticket: &LoginTicket) -> Result<Arc<LoginPolicy>, Ended> {
        self.parts.finder.of_ticket(ticket).filter(|policy| ticket.is_for(policy)).ok_or_else(|| {
            let text = "The tool, or what it may reach, was changed since this login was asked for. Call the tool \
                        again, and open the address that it gives.";
            Ended::new(StatusCode::GONE, text)
        })
    }

    /// Uses this name of a ticket's caller up.
    pub(super) async fn claim(&self, ticket: &LoginTicket, name: &str) -> Result<Claim, Ended> {
        match self.parts.state.claim(&ticket.caller, name, REMEMBERED_FOR).await {
            Ok(Claimed::Now(claim)) => Ok(claim),
            Ok(Claimed::Before) => Err(was_used()),
            Ok(Claimed::NoRoom) => {
                let text = format!("{} made too many logins within the last minutes. Try again later.", ticket.caller);
                Err(Ended::new(StatusCode::TOO_MANY_REQUESTS, text))
            }
            Err(away) => Err(Ended::new(StatusCode::SERVICE_UNAVAILABLE, format!("{away}. Try again in a minute."))),
        }
    }

    /// The login that this browser began.
    fn begun_by(&self, login: &str, parts: &Parts) -> Option<BegunLogin> {
        let name = format!("{COOKIE_NAME}{login}");
        let text = cookies(&parts.headers).find(|(key, _)| *key == name).map(|(_, value)| value)?;
        let begun = BegunLogin::open(self.parts.logins.key().ok()?, text)?;
        (begun.ticket.login == login && begun.ticket.holds()).then_some(begun)
    }

    /// The address that an authorization server sends browsers back to.
    fn redirect(&self, login: &str) -> String {
        format!("{}{RETURN}{login}", self.place.address)
    }

    /// The cookie of a login that a browser begins.
    fn begun_cookie(&self, login: &str, value: &str, seconds: u64) -> Option<HeaderValue> {
        let place = format!("{}{RETURN}{login}", self.place.path);
        self.cookie(&format!("{COOKIE_NAME}{login}"), value, &place, seconds)
    }

    /// A cookie for pages at this path.
    fn cookie(&self, name: &str, value: &str, path: &str, seconds: u64) -> Option<HeaderValue> {
        let secure = if self.place.origin.starts_with("https:") { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The header that has the browser forget a login that it made.
    pub(super) fn forgets(&self, made: &MadeLogin) -> Option<HeaderValue> {
        self.cookie(&made.cookie_name(), "", &format!("{}{END}", self.place.path), 0)
    }

    pub(super) fn failed(&self, ticket: &LoginTicket, error: &LoginError) -> Ended {
        tracing::warn!("the login {:?} of {:?} failed: {error}", ticket.login, ticket.caller);
        let detail = error.to_string();
        self.record_of(ticket, "failed", Some(&detail));
        Ended::new(StatusCode::BAD_GATEWAY, format!("The login failed: {error}."))
    }

    pub(super) fn record_of(&self, ticket: &LoginTicket, change: &str, detail: Option<&str>) {
        self.record(LoginChanged {
            login: &ticket.login,
            caller: Clipped(&ticket.caller),
            change,
            by: "caller",
            component: Some(&ticket.component),
            detail: detail.map(Clipped),
        });
    }

    pub(super) fn record(&self, change: LoginChanged<'_>) {
        if let Err(error) = self.parts.sink.record(|| Event::LoginChanged(change)) {
            tracing::error!("a login is missing from the audit: {error}");
        }
    }
}

fn was_used() -> Ended {
    Ended::new(StatusCode::GONE, "This login was made already, or was interrupted. Call the tool again.")
}
