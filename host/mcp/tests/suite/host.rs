//! An in-memory host with tools for the tests, and a client that talks to it frame by frame.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use toolcell_mcp::{
    ArgumentProblems, AskOutcome, AskTerms, Call, CallContext, CallResult, CallTerms, Caller, CheckedResult,
    ClientAnswer, ClientConnection, ClientLogLevel, ClientQuestion, Host, KeyedQuestion, McpServer, McpTool, Outbox,
    Patience, ServedCatalog, ServerInfo, ServerOptions, ToolDefinition, ToolList,
};

/// Longest wait of a test for something that must come. Only failing tests take that long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Longest arguments that the test's host accepts.
pub const ARGUMENTS_BYTES_MAX: usize = 100 * 1024;

pub static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap());

/// The `_meta` of a modern request.
pub const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The `_meta` of every modern result of the test server.
pub const IDENTITY: &str = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1.2.3"}}"#;

/// Calls as they begin: the tool's name and its context.
pub type Begun = Receiver<(String, CallContext)>;

pub struct TestHost {
    catalog: Mutex<Arc<TestCatalog>>,
}

pub struct TestCatalog {
    tools: ToolList,
    /// The part that every caller sees, if it is less.
    view: Option<Arc<ToolList>>,
    pub shared: Arc<Probe>,
}

/// The tests' view of running calls.
pub struct Probe {
    /// Each call that began, with its name.
    pub begun: Mutex<Option<Sender<(String, CallContext)>>>,
    /// A permit lets one `hold` end.
    pub gate: Semaphore,
    pub running: AtomicUsize,
    pub running_most: AtomicUsize,
    /// Calls that the input schema refused, and why.
    pub refused: Mutex<Vec<String>>,
    /// The code of tools that ask.
    pub code: Mutex<String>,
    /// The problems of results.
    pub complaints: Mutex<Vec<String>>,
}

impl Host for TestHost {
    type Catalog = TestCatalog;

    fn snapshot(&self) -> Arc<TestCatalog> {
        Arc::clone(&self.catalog.lock().unwrap())
    }
}

impl TestHost {
    pub fn swap(&self, generation: u64, definitions: Vec<ToolDefinition>) {
        let mut catalog = self.catalog.lock().unwrap();
        let shared = Arc::clone(&catalog.shared);
        *catalog = Arc::new(TestCatalog { tools: list(generation, definitions), view: None, shared });
    }

    /// Shows every caller these tools alone from now on. Returns the catalogs before and after.
    pub fn show_only(&self, names: &[&str]) -> (Arc<TestCatalog>, Arc<TestCatalog>) {
        let mut catalog = self.catalog.lock().unwrap();
        let shared = Arc::clone(&catalog.shared);
        let before = Arc::clone(&catalog);
        let tools = list(2, definitions());
        let named = |place: usize| names.contains(&tools.tools()[place].definition().name.as_str());
        let view = Some(Arc::new(tools.part(named)));
        *catalog = Arc::new(TestCatalog { tools, view, shared });
        (before, Arc::clone(&catalog))
    }
}

impl ServedCatalog for TestCatalog {
    fn tools(&self) -> &ToolList {
        &self.tools
    }

    fn view(&self, caller: &Caller) -> Option<Arc<ToolList>> {
        assert_eq!(caller, &Caller::local());
        self.view.clone()
    }

    fn tells_callers_apart(&self) -> bool {
        self.view.is_some()
    }

    fn terms(&self, tool: usize) -> CallTerms {
        let name = &self.tools.tools()[tool].definition().name;
        let asks = (name == "ask").then(|| self.shared.code.lock().unwrap().clone());
        CallTerms { asks, arguments_bytes_max: Some(ARGUMENTS_BYTES_MAX as u64) }
    }

    fn refuse_long(&self, call: &Call) -> CallResult {
        let name = &self.tools.tools()[call.tool].definition().name;
        CallResult::error(format!("{name} takes at most {ARGUMENTS_BYTES_MAX} bytes"))
    }

    fn arguments_refused(&self, call: &Call, problems: &ArgumentProblems) {
        let name = &self.tools.tools()[call.tool].definition().name;
        self.shared.refused.lock().unwrap().push(format!("{name}, request {}: {problems}", call.context.request_id));
    }

    async fn call(self: Arc<Self>, call: Call) -> CheckedResult {
        let tool = Arc::clone(&self.tools.tools()[call.tool]);
        let checked = tool.finish(self.answer(call).await, &Patience::default());
        self.shared.complaints.lock().unwrap().extend(checked.complaint().map(str::to_owned));
        checked
    }
}

impl TestCatalog {
    async fn answer(&self, call: Call) -> CallResult {
        let name = self.tools.tools()[call.tool].definition().name.clone();
        let arguments: Value = serde_json::from_str(call.arguments.get()).unwrap();
        let events = call.context.events.clone();
        let asking = call.context.asking.clone();
        let cancellation = call.context.cancellation.clone();
        let running = self.shared.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.shared.running_most.fetch_max(running, Ordering::SeqCst);
        let _running = Running(Arc::clone(&self.shared));
        if let Some(begun) = &*self.shared.begun.lock().unwrap() {
            let _ = begun.send((name.clone(), *call.context));
        }
        match name.as_str() {
            "echo" => CallResult::text(call.arguments.get()),
            "hold" => {
                tokio::select! {
                    // In this order, so that a permit given after a cancellation is for another
                    // call.
                    biased;
                    () = cancellation.cancelled() => return CallResult::error("stopped"),
                    permit = self.shared.gate.acquire() => permit.unwrap().forget(),
                }
                CallResult::text("held")
            }
            "ask" => {
                let mut said = Vec::new();
                for round in arguments["rounds"].as_array().unwrap() {
                    tokio::select! {
                        biased;
                        () = cancellation.cancelled() => return CallResult::error("stopped"),
                        asked = asking.ask(questions(round), ask_terms(&arguments)) => match asked {
                            AskOutcome::Answered(answers) => said.extend(answers.iter().map(spoken)),
                            AskOutcome::Refused(error) => return CallResult::error(error.to_string()),
                            AskOutcome::Ended(_) => return CallResult::text("nobody reads this"),
                        }
                    }
                }
                CallResult::text(said.join("; "))
            }
            "panic" => panic!("this panic belongs to a test"),
            "progress" => {
                for (progress, message) in
                    [(1.0, "one"), (1.0, "again"), (0.5, "back"), (f64::NAN, "none"), (2.5, "two")]
                {
                    events.progress(progress, Some(4.0), Some(message));
                }
                for level in ClientLogLevel::ALL {
                    events.log(level, level.name(), Some("tool"));
                }
                CallResult::text("done")
            }
            "structured" | "checked" | "listed" => {
                CallResult::structured(RawValue::from_string(arguments["json"].as_str().unwrap().to_owned()).unwrap())
            }
            "big" => CallResult::text("x".repeat(usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap())),
            _ => CallResult::error("no such behaviour"),
        }
    }
}

/// The questions of an `ask`: `{KEY: {"form": SCHEMA} | {"page": URL} | {"sampling": PARAMS} |
/// {}}`.
fn questions(round: &Value) -> Vec<KeyedQuestion> {
    let question = |question: &Value| match question.as_object().unwrap().iter().next() {
        None => ClientQuestion::Roots,
        Some((kind, value)) => match kind.as_str() {
            "form" => ClientQuestion::Form { message: "Who?".to_owned(), schema_json: value.to_string() },
            "page" => ClientQuestion::Page { message: "Go".to_owned(), url: value.as_str().unwrap().to_owned() },
            "sampling" => ClientQuestion::Sampling { params_json: value.to_string() },
            other => panic!("no question {other}"),
        },
    };
    let asked = round.as_object().unwrap().iter();
    asked.map(|(key, value)| KeyedQuestion { key: key.clone(), question: question(value) }).collect()
}

fn ask_terms(arguments: &Value) -> AskTerms<'static> {
    AskTerms {
        asker: Some("The tool \"ask\""),
        need: "The tool \"ask\" needs an answer",
        answer_bytes_max: 1_000,
        answered_within: Duration::from_millis(arguments["within_ms"].as_u64().unwrap_or(600_000)),
        permits: (arguments["permits"] == true).then_some("something"),
    }
}

fn spoken(answer: &ClientAnswer) -> String {
    match answer {
        ClientAnswer::Accepted(content) => format!("accepted {content}"),
        ClientAnswer::Declined => "declined".to_owned(),
        ClientAnswer::Dismissed => "dismissed".to_owned(),
        ClientAnswer::Message(message) => format!("message {message}"),
        ClientAnswer::Roots(roots) => {
            format!("roots {}", roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(" "))
        }
    }
}

struct Running(Arc<Probe>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

pub fn list(generation: u64, definitions: Vec<ToolDefinition>) -> ToolList {
    let tools = definitions.into_iter().map(|definition| Arc::new(McpTool::compile(definition).unwrap()));
    ToolList::new(generation, tools.collect()).unwrap()
}

pub fn plain(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "A tool of a test.", json!({"type": "object"}))
}

fn definitions() -> Vec<ToolDefinition> {
    let mut checked = plain("checked");
    checked.output_schema =
        Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}));
    let mut listed = plain("listed");
    listed.output_schema = Some(json!({"type": "array"}));
    let mut echo = plain("echo");
    echo.input_schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}});
    let mut all = vec![echo, checked, listed];
    all.extend(["ask", "hold", "panic", "progress", "structured", "big"].map(plain));
    all
}

/// One client and its server.
pub struct Client {
    pub host: Arc<TestHost>,
    pub server: Arc<McpServer<TestHost>>,
    pub connection: ClientConnection<TestHost>,
    pub shared: Arc<Probe>,
    pub begun: Begun,
    frames: Receiver<String>,
}

pub struct Frames(pub Sender<String>);

impl Outbox for Frames {
    fn queue(&self, frame: Vec<u8>) {
        let text = String::from_utf8(frame).unwrap();
        assert!(!text.contains('\n'), "a frame is one line: {text}");
        let _ = self.0.send(text);
    }
}

pub fn server(options: ServerOptions) -> (Arc<TestHost>, Arc<McpServer<TestHost>>, Arc<Probe>, Begun) {
    let (begun, begins) = mpsc::channel();
    let shared = Arc::new(Probe {
        begun: Mutex::new(Some(begun)),
        gate: Semaphore::new(0),
        running: AtomicUsize::new(0),
        running_most: AtomicUsize::new(0),
        refused: Mutex::default(),
        code: Mutex::new("code 1".to_owned()),
        complaints: Mutex::default(),
    });
    let catalog = Arc::new(TestCatalog { tools: list(1, definitions()), view: None, shared: Arc::clone(&shared) });
    let host = Arc::new(TestHost { catalog: Mutex::new(catalog) });
    let info = ServerInfo { name: "test".to_owned(), version: "1.2.3".to_owned(), ..ServerInfo::default() };
    let server = Arc::new(McpServer::new(Arc::clone(&host), info, options));
    (host, server, shared, begins)
}

impl Client {
    pub fn new() -> Self {
        Self::with(ServerOptions::default())
    }

    pub fn with(options: ServerOptions) -> Self {
        let (host, server, shared, begun) = server(options);
        let (sender, frames) = mpsc::channel();
        let connection = server.connect(Arc::new(Frames(sender)), Arc::new(RUNTIME.handle().clone()));
        Self { host, server, connection, shared, begun, frames }
    }

    /// A client whose legacy session has this revision and is ready.
    pub fn legacy(revision: &str) -> Self {
        let client = Self::new();
        client.initialize(revision);
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client
    }

    pub fn initialize(&self, revision: &str) -> String {
        self.ask(&format!(
            r#"{{"jsonrpc":"2.0","id":"init","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        ))
    }

    /// A client whose legacy session has this revision and these capabilities.
    pub fn declaring(revision: &str, capabilities: &str) -> Self {
        let client = Self::new();
        client.ask(&format!(
            r#"{{"jsonrpc":"2.0","id":"init","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
        ));
        client
    }

    pub fn send(&self, frame: &str) {
        self.connection.receive(frame.as_bytes());
    }

    /// The next frame from the server.
    pub fn next(&self) -> String {
        self.frames.recv_timeout(PATIENCE).expect("a frame from the server")
    }

    pub fn ask(&self, frame: &str) -> String {
        self.send(frame);
        self.next()
    }

    /// A modern request; `params` are its members besides `_meta`, each with a comma after it.
    pub fn modern(&self, id: u32, method: &str, params: &str) {
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{MODERN}}}}}"#));
    }

    pub fn ask_modern(&self, id: u32, method: &str, params: &str) -> String {
        self.modern(id, method, params);
        self.next()
    }

    /// A call of a tool in the era of the open session.
    pub fn call_legacy(&self, id: u32, name: &str, arguments: &str) {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        ));
    }

    /// Checks that no frame is unread: the answer to a ping is next.
    pub fn expect_silence(&self) {
        let answer = self.ask(r#"{"jsonrpc":"2.0","id":"barrier","method":"ping"}"#);
        assert_eq!(answer, r#"{"jsonrpc":"2.0","id":"barrier","result":{}}"#);
    }

    pub fn expect_begun(&self, name: &str) -> CallContext {
        let (begun, context) = self.begun.recv_timeout(PATIENCE).expect("a call to begin");
        assert_eq!(begun, name);
        context
    }

    /// Waits until no call runs any more.
    pub fn expect_idle(&self) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while !self.connection.is_idle() {
            assert!(std::time::Instant::now() < deadline, "calls still run");
            std::thread::yield_now();
        }
    }
}

/// The error frame with this id (as JSON), code and message.
pub fn error(id: &str, code: i32, message: &str) -> String {
    let id = if id.is_empty() { String::new() } else { format!(r#","id":{id}"#) };
    format!(r#"{{"jsonrpc":"2.0"{id},"error":{{"code":{code},"message":{}}}}}"#, Value::from(message))
}

/// The id of an error without a readable one, for clients of this revision.
pub fn no_id(revision: &str) -> &'static str {
    if revision < "2025-11-25" { "null" } else { "" }
}

/// The modern result frame of a call that gave one text.
pub fn text_result(id: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":{}}}],"isError":false,{IDENTITY}}}}}"#,
        Value::from(text)
    )
}

/// The legacy result frame of a call that gave one text.
pub fn legacy_text_result(id: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{}}}],"isError":false}}}}"#,
        Value::from(text)
    )
}
