//! Server side of the control socket: reads one line of each connection, and answers it.
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::message::{Envelope, REQUEST_BYTES_MAX, Request, VERSION};
use super::operators::Operators;
use super::status::StatusSources;
use crate::listening::listener_process::listens_on;
use crate::listening::small::serve;
use crate::machine::peer::peer;
use crate::machine::socket_paths::{
    ControlSocket, PATH_BYTES_MAX, SocketFile, SocketPaths, check_folder, remove_if_dead,
};
use crate::observing::log::LogLevel;
use crate::operators::console::DecidedBy;
use crate::reload::{Journal, Orders, ReloadOutcome};

/// Connections at a time, from commands of one user; more wait.
const CONNECTIONS_MAX: usize = 8;

/// Time for a connection to send its request, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The answer of a process without views. Every process with a control socket has them.
const NO_ACTIVITY: &str = "this process keeps no activity";

/// The socket; closed and removed when dropped.
pub struct Control {
    accepting: JoinHandle<()>,
    _file: SocketFile,
}

/// What answers are made from.
struct Responder {
    subject: StatusSources,
    operators: Option<Operators>,
    orders: Orders,
    is_open_to_group: bool,
}

impl Control {
    /// Listens at this socket; `Ok(None)` if it is off. An error is one sentence.
    pub fn start(
        runtime: &Handle,
        socket: &ControlSocket,
        subject: StatusSources,
        orders: Orders,
    ) -> Result<Option<Self>, String> {
        let path = match socket {
            ControlSocket::Off => return Ok(None),
            ControlSocket::At(path) => path.clone(),
            ControlSocket::Usual => {
                let place =
                    SocketPaths::of(&subject.manifest).ok_or("this user has neither a runtime folder nor a home")?;
                place.running();
                place.own()?
            }
        };
        if path.as_os_str().len() > PATH_BYTES_MAX {
            return Err(format!("the path {} is longer than a socket's may be", path.display()));
        }
        let listener = bind(runtime, &path)?;
        let file = SocketFile::made_at(path.clone()).map_err(|error| format!("{}: {error}", path.display()))?;
        let operators = subject.views.clone().map(|views| Operators::new(views, orders.clone()));
        let is_open_to_group = fs::metadata(&path).is_ok_and(|metadata| metadata.mode() & 0o060 != 0);
        let answering = Arc::new(Responder { subject, operators, orders, is_open_to_group });
        let accepting = runtime.spawn(async move {
            let converse = |stream| {
                let answering = Arc::clone(&answering);
                async move {
                    answering.converse(stream).await;
                    None
                }
            };
            serve(listener, CONNECTIONS_MAX, converse).await
        });
        Ok(Some(Self { accepting, _file: file }))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn bind(runtime: &Handle, path: &Path) -> Result<UnixListener, String> {
    let shown = path.display();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = check_folder(folder)?;
    let _inside = runtime.enter();
    let cannot = |error: io::Error| format!("{shown}: {error}");
    let draft = draft_of(path)?;
    remove_if_dead(&draft);
    let listener = UnixListener::bind(&draft).map_err(|error| format!("{}: {error}", draft.display()))?;
    let placed = fs::set_permissions(&draft, fs::Permissions::from_mode(mode)).and_then(|()| place(&draft, path));
    let _ = fs::remove_file(&draft);
    placed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{shown}: {}", listens_on(path)),
        _ => cannot(error),
    })?;
    Ok(listener)
}

/// Gives the socket its name once it listens: before that, it would look like one of an ended
/// process. Only replaces sockets without a listener.
fn place(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && remove_if_dead(path) => {
            fs::hard_link(draft, path)
        }
        placed => placed,
    }
}

/// Path where a socket is bound first. No other process uses it.
fn draft_of(path: &Path) -> Result<PathBuf, String> {
    let draft = path.with_file_name(format!("{}.new", std::process::id()));
    if draft.as_os_str().len() > PATH_BYTES_MAX {
        return Err(format!("the path {} is longer than a socket's may be", draft.display()));
    }
    Ok(draft)
}

impl Responder {
    /// One request, one answer. A malformed request gets an error or no answer.
    async fn converse(&self, stream: UnixStream) {
        // If the socket's mode lets a group connect, the kernel has already checked that.
        let Ok(peer) = peer(&stream).map(|peer| peer.uid) else { return };
        if !self.is_open_to_group && !peer.is_root() && peer != rustix::process::geteuid() {
            tracing::warn!("the control socket refused another user, {}", peer.as_raw());
            return;
        }
        let (reader, mut writer) = stream.into_split();
        let mut line = Vec::new();
        let mut reader = BufReader::new(reader.take(REQUEST_BYTES_MAX as u64));
        let Ok(Ok(1..)) = tokio::time::timeout(PATIENCE, reader.read_until(b'\n', &mut line)).await else { return };
        let mut answer = self.answer(&line, &format!("terminal of uid {}", peer.as_raw())).await.to_string();
        answer.push('\n');
        let _ = tokio::time::timeout(PATIENCE, writer.write_all(answer.as_bytes())).await;
    }

    async fn answer(&self, line: &[u8], who: &str) -> Value {
        let envelope: Envelope = match serde_json::from_slice(line) {
            Ok(envelope) => envelope,
            Err(error) => return json!({"error": format!("not a request: {error}")}),
        };
        if envelope.toolcell != VERSION {
            let text = format!("this process speaks version {VERSION} of the control protocol");
            return json!({"error": text});
        }
        match envelope.request {
            Request::Status => self.subject.status().await,
            Request::Activity => match &self.operators {
                Some(operators) => operators.activity().await,
                None => json!({"error": NO_ACTIVITY}),
            },
            Request::Decide(request) => match &self.operators {
                Some(operators) => operators.decide(request, who).await,
                None => json!({"error": NO_ACTIVITY}),
            },
            Request::Reload => {
                let order = Order { who, name: "reload", subject: "the manifest".to_owned() };
                self.recorded(Some(order), async { self.reloaded(self.orders.ask()).await }).await
            }
            Request::Approve(approval) => {
                let order = Order { who, name: "approve", subject: approval.name.clone() };
                self.recorded(Some(order), async { self.reloaded(self.orders.approve(approval)).await }).await
            }
            Request::LogLevel(wanted) => {
                let order = wanted.map(|wanted| Order { who, name: "log-level", subject: wanted.to_string() });
                self.recorded(order, async { self.log_level(wanted) }).await
            }
            Request::Console => {
                let order = Order { who, name: "console-link", subject: "the console".to_owned() };
                self.recorded(Some(order), async { self.link() }).await
            }
        }
    }
}

/// An order from a terminal, for the audit.
struct Order<'a> {
    who: &'a str,
    name: &'static str,
    subject: String,
}

impl Responder {
    /// Carries out an order. It is recorded before and after, with who gave it. Orders that only
    /// ask are not recorded.
    async fn recorded(&self, order: Option<Order<'_>>, act: impl Future<Output = Value>) -> Value {
        let Some((order, views)) = order.zip(self.subject.views.as_ref()) else { return act.await };
        let by = DecidedBy { session: order.who, operator: None };
        if let Err(problem) = views.begin(by, order.name, &order.subject) {
            return json!({"pid": std::process::id(), "error": problem});
        }
        let answer = act.await;
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let problem = text("error").or_else(|| text("summary"));
        let is_done = answer.get("error").is_none_or(Value::is_null) && text("outcome") != Some("failed");
        let came = if is_done { Ok("") } else { Err(problem.unwrap_or_default()) };
        views.record(by, order.name, &order.subject, came);
        answer
    }

    /// The answer to an order that ends with a reload.
    async fn reloaded(&self, ordered: Option<oneshot::Receiver<ReloadOutcome>>) -> Value {
        match ordered {
            None => json!({"error": "busy: too many reloads wait already"}),
            Some(ordered) => match ordered.await {
                Ok(outcome) => shown(&outcome, &self.subject.current.journal),
                Err(_) => json!({"error": "the process ends"}),
            },
        }
    }

    fn link(&self) -> Value {
        let Some(session_gate) = &self.subject.session_gate else {
            return json!({"pid": std::process::id(), "error": "this process serves no console"});
        };
        match session_gate.link() {
            Ok(link) => json!({"pid": std::process::id(), "link": link}),
            Err(problem) => json!({"error": problem}),
        }
    }

    fn log_level(&self, wanted: Option<LogLevel>) -> Value {
        let log = &self.subject.current.services.log;
        let before = log.level();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != before) {
            if !log.set_level(wanted) {
                return json!({"error": "the level of the log cannot be changed"});
            }
            tracing::info!("the log is changed from {before} to {wanted}");
        }
        json!({"pid": std::process::id(), "level": log.level(), "before": before})
    }
}

/// The outcome of a reload, with the components that are held back because they differ from the
/// lock.
fn shown(outcome: &ReloadOutcome, journal: &Journal) -> Value {
    let mut answer = match outcome {
        ReloadOutcome::Unchanged => json!({"outcome": "unchanged"}),
        ReloadOutcome::Replaced { generation, announced, summary } => json!({
            "outcome": "replaced", "generation": generation, "announced": announced, "summary": summary,
        }),
        ReloadOutcome::Failed(failed) => json!({
            "outcome": "failed", "summary": failed.summary, "drawn": failed.drawn, "problems": failed.problems,
        }),
    };
    let quarantined: Vec<String> = journal.quarantined().into_iter().map(|held| held.component).collect();
    if let Some(answer) = answer.as_object_mut().filter(|_| !quarantined.is_empty()) {
        answer.insert("quarantined".to_owned(), json!(quarantined));
    }
    answer
}
