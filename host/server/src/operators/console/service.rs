//! Requests to the console, and the pages that answer them.
use std::sync::Arc;
use std::time::Instant;

use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use toolcell_audit::Archive;
use toolcell_console::model::{ChainState, Frame, Notice, SignInReason};
use toolcell_console::{View, asset, page, routes};
use toolcell_mcp::http::{OriginPolicy, RefusalReason};

use super::events::Viewers;
use super::form::{FORM_BYTES_MAX, Fields};
use super::gather::{ExportForm, Search, Sources, chains_to_read, check_chain, export};
use super::guard;
use super::listen::{ConnectionTime, Ends};
use super::reply::{self, Reply};
use super::session::ConsoleSession;
use super::session_gate::{ENTER, SessionGate};
use crate::machine::workers::GuestExecutor;
use crate::reload::Orders;

/// Exports and checks of the chain at a time. Each reads the whole audit.
const LONG_READS_MAX: usize = 2;

/// Most requests at a time that read the newest records. Each computes for up to half a second, on
/// the cores that also run calls. Further ones wait.
const RECORD_READS_MAX: usize = 2;

/// Time that a request waits for its turn. After that, a person can search again.
const RECORD_READS_WAIT: std::time::Duration = std::time::Duration::from_secs(8);

/// Time of an export: a gigabyte over a slow connection.
const EXPORT_TIME: std::time::Duration = std::time::Duration::from_secs(600);

/// Pieces of an export that wait to be sent.
const EXPORT_PIECES: usize = 4;

/// Longest address, in bytes, to which another site's page can lead. A stranger writes it; the
/// longest search in the audit has some hundred bytes.
const LED_BYTES_MAX: usize = 2_048;

/// The console of a server.
pub struct Console {
    pub sources: Arc<Sources>,
    pub session_gate: Arc<SessionGate>,
    pub doors: OriginPolicy,
    pub orders: Orders,
    pub executor: GuestExecutor,
    /// Name of the server for people.
    pub name: String,
    pub state: ConsoleState,
}

/// What a console keeps between requests.
pub struct ConsoleState {
    pub(super) viewers: Viewers,
    long_reads: Arc<Semaphore>,
    record_reads: Arc<Semaphore>,
    chain: Arc<Mutex<ChainState>>,
}

impl Default for ConsoleState {
    fn default() -> Self {
        Self {
            viewers: Viewers::default(),
            long_reads: Arc::new(Semaphore::new(LONG_READS_MAX)),
            record_reads: Arc::new(Semaphore::new(RECORD_READS_MAX)),
            chain: Arc::default(),
        }
    }
}

/// A person's request.
pub(super) struct Visit {
    /// The cookie's value.
    pub(super) secret: String,
    pub(super) session: ConsoleSession,
}

impl Console {
    pub async fn respond(self: &Arc<Self>, request: Request<Incoming>, ends: Ends, time: ConnectionTime) -> Reply {
        let (parts, body) = request.into_parts();
        if let Err(refused) = guard::check(&parts, &self.doors, ends.local) {
            refused.reason.into_iter().for_each(|reason| self.refused(ends, reason));
            return reply::refused(refused);
        }
        let path = parts.uri.path();
        let is_post = parts.method == Method::POST;
        if let Some(asset) = asset::find(path) {
            return reply::asset(asset);
        }
        if let Some(link) = path.strip_prefix(ENTER).filter(|_| parts.method == Method::GET) {
            return self.enter(link, ends, guard::is_led_here(&parts.headers));
        }
        let secret = guard::cookie(&parts.headers, &self.session_gate.cookie);
        if let Some(operators) = self.session_gate.operators.as_ref().filter(|_| is_post && path == routes::SIGN_IN) {
            return self.sign_in_with_token(operators, body, ends.peer, secret).await;
        }
        let Some(visit) = secret.and_then(|secret| self.visit(secret)) else {
            // A visitor without a session came directly, or by a link.
            if secret.is_none() && parts.method == Method::GET && View::has(path) && guard::is_led_here(&parts.headers)
            {
                let target = parts.uri.path_and_query().map(PathAndQuery::as_str);
                let target = target.filter(|target| target.len() <= LED_BYTES_MAX).unwrap_or(routes::NOW);
                return reply::page(StatusCode::OK, page::going_on(target));
            }
            secret.into_iter().for_each(|_| self.refused(ends, RefusalReason::UnknownCredential));
            return match path {
                routes::EVENTS => reply::problem(StatusCode::FORBIDDEN, "The session is over.", None),
                _ => self.sign_in_at(path, secret.is_some()),
            };
        };
        time.is_of_session();
        if is_post {
            let Ok(fields) = Fields::read(body, FORM_BYTES_MAX).await else {
                return reply::problem(StatusCode::PAYLOAD_TOO_LARGE, "The form is too large.", None);
            };
            if !visit.session.has_sent(fields.get(routes::CSRF)) {
                self.refused(ends, RefusalReason::Origin);
                let hint = "Go back, reload the page, and send the form again.";
                return reply::problem(StatusCode::FORBIDDEN, "The form is not of this session.", Some(hint));
            }
            return self.post(visit, path.to_owned(), fields, time).await;
        }
        let fields = Fields::of(parts.uri.query().unwrap_or_default().as_bytes());
        match path {
            routes::EVENTS => self.events(visit, &fields, time),
            routes::EXPORT_JSONL => self.export(&fields, ExportForm::JsonLines, &time).await,
            routes::SIGN_IN => reply::see_other(routes::NOW),
            routes::EXPORT_CSV => self.export(&fields, ExportForm::Csv, &time).await,
            _ => self.view(visit, path.to_owned(), fields).await,
        }
    }

    /// The session with this secret. It ends if its operator loses that role.
    fn visit(&self, secret: &str) -> Option<Visit> {
        let session = self.session_gate.sessions.find(secret, Instant::now())?;
        if !self.session_gate.still_admits(&session) {
            self.session_gate.sessions.leave(secret);
            return None;
        }
        Some(Visit { secret: secret.to_owned(), session })
    }

    /// The page at a path.
    pub(super) async fn view(self: &Arc<Self>, visit: Visit, path: String, fields: Fields) -> Reply {
        let place = if path == routes::AUDIT || path.starts_with(CALLS) {
            let place = Arc::clone(&self.state.record_reads).acquire_owned();
            match tokio::time::timeout(RECORD_READS_WAIT, place).await {
                Ok(Ok(place)) => Some(place),
                Ok(Err(_)) | Err(_) => return busy(),
            }
        } else {
            None
        };
        // It continues if the browser disconnects, so the permit moves along.
        let made = self.aside(move |console| {
            let page = console.make(&visit, &path, &fields);
            drop(place);
            page
        });
        made.await.unwrap_or_else(|reply| reply)
    }

    /// Makes a view, or a page of one, on a thread for blocking work. That takes milliseconds, or
    /// seconds if a file does not respond, and this thread drives connections and guests' timers.
    pub(super) async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        make: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Reply> {
        let console = Arc::clone(self);
        tokio::task::spawn_blocking(move || make(&console)).await.map_err(|_| {
            reply::problem(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be made.", Some("The log says more."))
        })
    }

    fn make(&self, visit: &Visit, path: &str, fields: &Fields) -> Reply {
        let sources = &self.sources;
        let frame = self.frame(visit, true);
        let text = match path {
            routes::NOW => page::now(&frame, &sources.now()),
            routes::TOOLS => {
                let view = sources.tools(fields.get(routes::QUERY), fields.number(routes::PAGE).unwrap_or(1));
                page::tools(&frame, &view)
            }
            routes::DENIALS => page::denials(&frame, &sources.denials(), fields.get(routes::COMPONENT)),
            routes::CHANGES => page::changes(&frame, &sources.changes()),
            routes::APPROVALS => page::approvals(&frame, &sources.approvals()),
            routes::AUDIT => page::audit(&frame, &self.audit(fields)),
            routes::CALLERS => match sources.callers(fields.get(routes::QUERY)) {
                Ok(view) => page::callers(&frame, &view),
                Err(problem) => return reply::problem(StatusCode::INTERNAL_SERVER_ERROR, &problem, None),
            },
            _ => return self.one(&frame, path),
        };
        reply::page(StatusCode::OK, text)
    }

    /// The page of one tool or call.
    fn one(&self, frame: &Frame, path: &str) -> Reply {
        let rest = |prefix: &str| path.strip_prefix(prefix)?.strip_prefix('/').and_then(segment);
        let found = match (rest(routes::TOOLS), rest(CALLS)) {
            (Some(name), _) => self.sources.tool(&name).map(|view| page::tool(frame, &view)),
            (None, Some(id)) => self.sources.call(&id, self.checked_chain()).map(|view| page::call(frame, &view)),
            (None, None) => None,
        };
        match found {
            Some(text) => reply::page(StatusCode::OK, text),
            None => reply::problem(StatusCode::NOT_FOUND, "There is no such page.", None),
        }
    }

    /// The last check of the chain.
    fn checked_chain(&self) -> ChainState {
        self.state.chain.lock().clone()
    }

    fn audit(&self, fields: &Fields) -> toolcell_console::model::Audit {
        let chain = self.checked_chain();
        match Search::of(fields) {
            Ok(search) => self.sources.audit(search, chain),
            Err(wrong) => {
                let (query, problem) = *wrong;
                let mut view = self.sources.audit(Search::default(), chain);
                (view.query, view.remark) = (query, Some(format!("{problem}.")));
                view.rows.clear();
                view
            }
        }
    }

    /// The frame of a view, with the session's notice if `tells`.
    pub(super) fn frame(&self, visit: &Visit, tells: bool) -> Frame {
        Frame {
            server: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            manifest: self.sources.manifest.display().to_string(),
            viewer: visit.session.viewer(),
            decide: self.sources.decides(),
            csrf: visit.session.csrf.clone(),
            badges: self.sources.badges(),
            problems: self.sources.health.problems().into_iter().map(|problem| problem.text).collect(),
            notice: if tells { self.session_gate.sessions.take_notice(&visit.secret) } else { None },
        }
    }

    /// Counts a request that gets a 403.
    fn refused(&self, ends: Ends, reason: RefusalReason) {
        self.sources.services.refusals.at_console(ends.peer, reason, StatusCode::FORBIDDEN.as_u16());
    }

    fn enter(&self, link: &str, ends: Ends, is_led_here: bool) -> Reply {
        let Some(entered) = self.session_gate.sessions.enter(link, Instant::now()) else {
            self.refused(ends, RefusalReason::UnknownCredential);
            return self.sign_in(StatusCode::FORBIDDEN, SignInReason::LinkSpent);
        };
        self.record(&entered.name, "enter", "the console", Ok(""));
        let goes_on = if is_led_here {
            reply::page(StatusCode::OK, page::going_on(routes::NOW))
        } else {
            reply::see_other(routes::NOW)
        };
        reply::with_cookie(goes_on, &self.session_gate.set_cookie(Some(&entered.secret)))
    }

    async fn export(&self, fields: &Fields, form: ExportForm, time: &ConnectionTime) -> Reply {
        let Some(audit) = self.sources.services.sink.audit().map(std::path::Path::to_owned) else {
            return reply::problem(StatusCode::NOT_FOUND, "No audit is kept.", None);
        };
        let search = match Search::of(fields) {
            Ok(search) => search,
            Err(wrong) => return reply::problem(StatusCode::BAD_REQUEST, &format!("{}.", wrong.1), None),
        };
        let Ok(place) = Arc::clone(&self.state.long_reads).try_acquire_owned() else {
            return busy();
        };
        let open = move || chains_to_read(&audit, 0).map(|chains| (chains, place));
        let (chains, place) = match tokio::task::spawn_blocking(open).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(problem)) => {
                let text = format!("The audit cannot be read: {problem}.");
                return reply::problem(StatusCode::SERVICE_UNAVAILABLE, &text, None);
            }
            Err(_) => return reply::problem(StatusCode::INTERNAL_SERVER_ERROR, "The audit was not opened.", None),
        };
        let (sender, pieces) = tokio::sync::mpsc::channel(EXPORT_PIECES);
        time.extend(EXPORT_TIME);
        drop(tokio::task::spawn_blocking(move || {
            let archives: Vec<Archive> = chains.into_iter().map(|chain| chain.archive).collect();
            export(&archives, &search, form, &sender);
            drop(place);
        }));
        let (kind, name) = match form {
            ExportForm::JsonLines => ("application/jsonl; charset=utf-8", "audit.jsonl"),
            ExportForm::Csv => ("text/csv; charset=utf-8", "audit.csv"),
        };
        reply::stream(pieces, kind, Some(name))
    }

    /// Checks the chain, and keeps the result for the page. `Err` is one sentence.
    pub(super) async fn check_chain(&self) -> Result<String, String> {
        let sink = Arc::clone(&self.sources.services.sink);
        let (Some(audit), Some(own)) = (sink.audit(), sink.path()) else { return Err("No audit is kept.".to_owned()) };
        let audit = audit.to_owned();
        let own = own.to_owned();
        let place = Arc::clone(&self.state.long_reads).try_acquire_owned();
        let place = place.map_err(|_| "Too much is being read already; try again later.")?;
        let kept = Arc::clone(&self.state.chain);
        // The check continues if the browser disconnects, so the permit moves along.
        let checked = tokio::task::spawn_blocking(move || {
            let checked = check_chain(&audit, &own);
            *kept.lock() = checked.clone();
            drop(place);
            checked
        });
        match checked.await.map_err(|_| "The check ended before its time.")? {
            ChainState::Broken { reason, .. } => Err(reason),
            _ => Ok("The chain of records is whole.".to_owned()),
        }
    }

    /// Records a decision. If that fails, it is logged.
    pub(super) fn record(&self, session: &ConsoleSession, decision: &str, subject: &str, came: Result<&str, &str>) {
        self.sources.record(session.decides(), decision, subject, came);
    }

    /// Keeps a notice for the next page of this session.
    pub(super) fn notify(&self, visit: &Visit, came: &Result<String, String>) {
        let (Ok(text) | Err(text)) = came;
        let notice = Notice { failed: came.is_err(), text: text.clone() };
        self.session_gate.sessions.notify(&visit.secret, notice);
    }
}

/// The path of the pages of calls.
const CALLS: &str = "/audit/calls";

fn busy() -> Reply {
    reply::problem(StatusCode::SERVICE_UNAVAILABLE, "Too much is being read already.", Some("Try again later."))
}

/// One segment of a path, decoded; `None` if it is malformed.
pub(super) fn segment(text: &str) -> Option<String> {
    if text.is_empty() || text.contains('/') {
        return None;
    }
    // //A plus sign in a path stands for itself.
    let decoded = Fields::of(format!("s={}", text.replace('+', "%2B")).as_bytes());
    Some(decoded.get("s").to_owned())
}
