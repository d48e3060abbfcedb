//! The pages at which callers log in: one that says what for and whose account it will be, and the
//! one that the authorization server sends the browser back to. Strangers can ask for both.
//!
//! A browser brings the ticket that its caller's client was given, and leaves with a cookie. Only
//! the browser that pressed the button can come back: the cookie has the state, sealed.
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HeaderName, LOCATION, ORIGIN, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use ::http::request::Parts;
use ::http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::time::timeout;
use toolcell_audit::{Clipped, Event, LoginChanged, Sink};
use toolcell_mcp::http::OriginPolicy;
use toolcell_policy::LoginPolicy;
use toolcell_shared::{Claim, SharedState};
use url::{Url, form_urlencoded};
use zeroize::Zeroizing;

use super::callers::CallerLogins;
use super::client::client;
use super::code::{AuthorizeRequest, CodeGrant, challenge, random_text};
use super::error::LoginError;
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

/// Finds the login that a ticket is for, while its component serves as it did then.
pub(crate) type TicketJudge = dyn Fn(&LoginTicket) -> Option<Arc<LoginPolicy>> + Send + Sync;

/// The pages.
pub(crate) struct LoginPages {
    pub(crate) logins: Arc<CallerLogins>,
    /// Remembers what was used.
    pub(crate) state: Arc<dyn SharedState>,
    pub(crate) sink: Arc<Sink>,
    pub(crate) judge: Arc<TicketJudge>,
    /// Name of the server for people.
    pub(crate) name: String,
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

type Page = Response<String>;

/// Why a login ends: a sentence for the person, without the full stop of its last clause.
struct Ended(StatusCode, String);

impl Ended {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self(status, text.into())
    }
}

impl LoginPages {
    pub(crate) fn new(
        logins: Arc<CallerLogins>,
        state: Arc<dyn SharedState>,
        sink: Arc<Sink>,
        judge: Arc<TicketJudge>,
        name: String,
    ) -> Self {
        Self { logins, state, sink, judge, name, place: PagesPlace::default() }
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
        let answered = match (path.strip_prefix(RETURN), parts.method == Method::POST) {
            (Some(login), false) if parts.method == Method::GET => return self.returned(login, &parts).await,
            (None, false) if path == BEGIN && parts.method == Method::GET => self.asked(&parts).await,
            (None, true) if path == BEGIN => self.begun(&parts, body).await,
            (Some(_), _) => return only("GET"),
            (None, _) if path == BEGIN => return only("GET, POST"),
            (None, _) => return nothing(),
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
            name = escaped(&self.name),
            server = escaped(server),
            text = escaped(&text),
        );
        Ok(html(StatusCode::OK, &page))
    }

    /// The page at which a caller pastes a key.
    fn asked_for_key(&self, ticket: &LoginTicket, text: &str) -> Page {
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
            name = escaped(&self.name),
            text = escaped(text),
        );
        html(StatusCode::OK, &page)
    }

    /// Keeps the key that a caller pasted.
    async fn pasted(
        self: &Arc<Self>,
        ticket: LoginTicket,
        policy: Arc<LoginPolicy>,
        form: &str,
    ) -> Result<Page, Ended> {
        let key = one(form, "key").map(|key| Zeroizing::new(key.trim().to_owned())).unwrap_or_default();
        let used = self.claim(&ticket.name()).await?;
        // A store may wait for another process.
        let this = Arc::clone(self);
        let runtime = Handle::current();
        let caller = ticket.caller.clone();
        let kept = tokio::task::spawn_blocking(move || runtime.block_on(this.logins.paste(&policy, &caller, key)));
        let ended = |_| Ended::new(StatusCode::INTERNAL_SERVER_ERROR, "The key was not kept.");
        if let Err(error) = kept.await.map_err(ended)? {
            let _ = self.state.give_back(used).await;
            return Err(self.failed(&ticket, &error));
        }
        self.record(&ticket, "made", None);
        let _ = self.state.note(&ticket.name(), REMEMBERED_FOR).await;
        let text = format!(
            "The key {} of {} is kept. You can close this window, and go on where you came from.",
            ticket.login, ticket.caller
        );
        Ok(page(StatusCode::OK, &text))
    }

    /// Sends the browser to the authorization server.
    async fn begun(self: &Arc<Self>, parts: &Parts, body: Incoming) -> Result<Page, Ended> {
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
        let form = form.ok().and_then(Result::ok).map(|form| form.to_bytes()).unwrap_or_default();
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
        let login = self.logins.begin(&policy, &ticket.caller, send).await.map_err(failed)?;
        let endpoints = login.endpoints();
        let redirect = self.redirect(&ticket.login);
        let request = AuthorizeRequest { redirect: &redirect, state: &state, challenge: &challenge(&verifier) };
        let address = request.address(&policy, endpoints).map_err(failed)?;
        let begun = BegunLogin {
            state: state.to_string(),
            verifier: verifier.to_string(),
            token_endpoint: endpoints.token.clone(),
            ticket: ticket.clone(),
        };
        let key = self.logins.key().map_err(failed)?;
        let cookie = self.cookie(&ticket.login, &begun.sealed(key).map_err(failed)?, COOKIE_SECONDS);
        let mut response = page(StatusCode::SEE_OTHER, "Go on at the authorization server.");
        let address = HeaderValue::from_str(&address).ok();
        let (Some(address), Some(cookie)) = (address, cookie) else {
            return Err(Ended::new(StatusCode::BAD_GATEWAY, "The authorization server's address cannot be opened."));
        };
        response.headers_mut().insert(LOCATION, address);
        response.headers_mut().insert(SET_COOKIE, cookie);
        Ok(response)
    }

    /// The browser comes back. Its cookie goes, however this ends.
    async fn returned(self: &Arc<Self>, login: &str, parts: &Parts) -> Page {
        let Some(begun) = self.begun_by(login, parts) else {
            let text = "This browser did not begin a login here, or began it too long ago. Call the tool again, and \
                        open the address that it gives.";
            return page(StatusCode::BAD_REQUEST, text);
        };
        let mut response = match self.finish(begun, parts.uri.query().unwrap_or_default()).await {
            Ok(text) => page(StatusCode::OK, &text),
            Err(Ended(status, text)) => page(status, &text),
        };
        if let Some(cookie) = self.cookie(login, "", 0) {
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
        response
    }

    async fn finish(self: &Arc<Self>, begun: BegunLogin, query: &str) -> Result<String, Ended> {
        let wrong = || Ended::new(StatusCode::BAD_REQUEST, "This is not the login that this browser began.");
        let policy = self.policy_of(&begun.ticket)?;
        // Before anything is remembered: whoever does not know the state changes nothing.
        let named = Expected { state: Zeroizing::new(begun.state.clone()), issuer: None, must_name: false };
        if matches!(named.judge(query), RedirectCame::Other(_)) {
            return Err(wrong());
        }
        let _used = self.claim(&begun.name()).await?;
        let ticket = self.claim(&begun.ticket.name()).await?;
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
                self.record(&begun.ticket, "made", None);
                // The ticket stays claimed; its page says so early.
                let _ = self.state.note(&begun.ticket.name(), REMEMBERED_FOR).await;
                let lacks = match missing.as_slice() {
                    [] => String::new(),
                    missing => format!(" The server did not give: {}.", missing.join(", ")),
                };
                let BegunLogin { ticket, .. } = &begun;
                Ok(format!(
                    "{} is logged in to {}.{lacks} You can close this window, and go on where you came from.",
                    ticket.caller, ticket.login
                ))
            }
            (Err(error), begun) => {
                // The person may try again with the same address.
                let _ = self.state.give_back(ticket).await;
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
        let login = self.logins.begin(policy, &begun.ticket.caller, client(policy)?).await?;
        let endpoints = login.endpoints();
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
        let subject = self.logins.subject(policy, &begun.ticket.caller);
        let code = CodeGrant { code: &code, redirect: &redirect, verifier: &begun.verifier, subject };
        let made = login.finish(&code).await?;
        self.logins.was_made(policy, &begun.ticket.caller);
        Ok(made.scopes_missing)
    }

    /// The ticket of a text, and its login.
    async fn ticket(&self, text: &str) -> Result<(LoginTicket, Arc<LoginPolicy>), Ended> {
        let key = self.logins.key().map_err(|error| {
            tracing::error!("nobody can log in: {error}");
            Ended::new(StatusCode::INTERNAL_SERVER_ERROR, "The server has no key for logins. Its log says more.")
        })?;
        let ticket = LoginTicket::open(key, text).filter(LoginTicket::holds).ok_or_else(|| {
            let text = "This address is not valid, or its time is over. Call the tool again, and open the address that \
                        it gives.";
            Ended::new(StatusCode::NOT_FOUND, text)
        })?;
        let policy = self.policy_of(&ticket)?;
        match self.state.is_noted(&ticket.name()).await {
            Ok(false) => Ok((ticket, policy)),
            Ok(true) => Err(was_used()),
            Err(away) => Err(Ended::new(StatusCode::SERVICE_UNAVAILABLE, format!("{away}. Try again in a minute."))),
        }
    }

    fn policy_of(&self, ticket: &LoginTicket) -> Result<Arc<LoginPolicy>, Ended> {
        (self.judge)(ticket).filter(|policy| ticket.is_for(policy)).ok_or_else(|| {
            let text = "The tool, or what it may reach, was changed since this login was asked for. Call the tool \
                        again, and open the address that it gives.";
            Ended::new(StatusCode::GONE, text)
        })
    }

    /// Uses this name up.
    async fn claim(&self, name: &str) -> Result<Claim, Ended> {
        match self.state.claim(name, REMEMBERED_FOR).await {
            Ok(Some(claim)) => Ok(claim),
            Ok(None) => Err(was_used()),
            Err(away) => Err(Ended::new(StatusCode::SERVICE_UNAVAILABLE, format!("{away}. Try again in a minute."))),
        }
    }

    /// The login that this browser began.
    fn begun_by(&self, login: &str, parts: &Parts) -> Option<BegunLogin> {
        let name = format!("{COOKIE_NAME}{login}");
        let fields = parts.headers.get_all(COOKIE).iter().filter_map(|field| field.to_str().ok());
        let mut cookies = fields.flat_map(|field| field.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let text = cookies.find(|(key, _)| *key == name).map(|(_, value)| value)?;
        let begun = BegunLogin::open(self.logins.key().ok()?, text)?;
        (begun.ticket.login == login && begun.ticket.holds()).then_some(begun)
    }

    /// The address that an authorization server sends browsers back to.
    fn redirect(&self, login: &str) -> String {
        format!("{}{RETURN}{login}", self.place.address)
    }

    fn cookie(&self, login: &str, value: &str, seconds: u64) -> Option<HeaderValue> {
        let secure = if self.place.origin.starts_with("https:") { "; Secure" } else { "" };
        let path = format!("{}{RETURN}{login}", self.place.path);
        let text =
            format!("{COOKIE_NAME}{login}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn failed(&self, ticket: &LoginTicket, error: &LoginError) -> Ended {
        tracing::warn!("the login {:?} of {:?} failed: {error}", ticket.login, ticket.caller);
        self.record(ticket, "failed", Some(&error.to_string()));
        Ended::new(StatusCode::BAD_GATEWAY, format!("The login failed: {error}."))
    }

    fn record(&self, ticket: &LoginTicket, change: &str, detail: Option<&str>) {
        let event = || {
            Event::LoginChanged(LoginChanged {
                login: &ticket.login,
                caller: Clipped(&ticket.caller),
                change,
                by: "caller",
                component: Some(&ticket.component),
                detail: detail.map(Clipped),
            })
        };
        if let Err(error) = self.sink.record(event) {
            tracing::error!("a login is missing from the audit: {error}");
        }
    }
}

fn was_used() -> Ended {
    Ended::new(StatusCode::GONE, "This login was made already. Call the tool again.")
}

/// The value of a field that is there once.
fn one(form: &str, name: &str) -> Option<String> {
    let mut named = form_urlencoded::parse(form.as_bytes()).filter(|(key, _)| key == name);
    let first = named.next().map(|(_, value)| value.into_owned())?;
    named.next().is_none().then_some(first)
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

/// A page with one paragraph of text.
fn page(status: StatusCode, text: &str) -> Page {
    html(status, &format!("<p>{}</p>", escaped(text)))
}

fn nothing() -> Page {
    page(StatusCode::NOT_FOUND, "There is nothing here.")
}

fn only(methods: &'static str) -> Page {
    let mut response = page(StatusCode::METHOD_NOT_ALLOWED, "This page is opened with a browser.");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

fn html(status: StatusCode, body: &str) -> Page {
    let mut response = Response::new(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>toolcell</title>{body}</html>\n"
    ));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"),
        // The form has to say where it is from.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
