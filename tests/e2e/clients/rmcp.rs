//! The official Rust SDK as a client: the conversation of all clients, in three modes.
//!
//! Holds only code particular to that SDK. The calls and the expected results come from the cases.
// The newest revision deprecates logging, and so does the SDK. The host must serve it nonetheless.
#![allow(deprecated)]

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, ClientRequest, ErrorCode, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion, ReadResourceRequestParams,
    Request, RequestMetaObject, SetLevelRequestParams, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RequestHandle, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient, ServiceError};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStderr, Command};
use tokio::sync::mpsc;
use toolcell_tests::toolcell;

use super::cases::{Case, Server};
use super::served::Served;

/// The SDK sends SIGTERM three seconds after it closed stdin. A server that ends sooner ended by
/// itself.
const CLOSE_TIME_MAX: Duration = Duration::from_millis(2800);

/// The way the client finds out which protocol the server speaks.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mode {
    /// The `initialize` handshake.
    Legacy,
    /// `server/discover`, then `initialize` if the server does not know that method.
    Auto,
    /// `server/discover`, and only 2026-07-28 is accepted.
    Modern,
}

impl Mode {
    /// All modes.
    pub(super) const ALL: [Self; 3] = [Self::Legacy, Self::Auto, Self::Modern];
}

/// A message of the server besides its answers.
#[derive(Debug)]
enum Aside {
    Progress(ProgressToken, f64),
    Log(Value),
}

/// Passes on the server's messages besides its answers.
struct Ear(mpsc::UnboundedSender<Aside>);

/// One connection to a toolcell of its own.
struct Conversation {
    client: RunningService<RoleClient, Ear>,
    asides: mpsc::UnboundedReceiver<Aside>,
    modern: bool,
}

impl ClientHandler for Ear {
    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.0.send(Aside::Progress(report.progress_token, report.progress));
    }

    async fn on_logging_message(&self, line: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.0.send(Aside::Log(line.data));
    }
}

/// The whole conversation in one mode, with a toolcell that the client starts, or over HTTP.
pub(super) async fn converse(mode: Mode, served: &Served) {
    examples(mode, served).await;
    cancellation(mode, served).await;
}

/// A connection in one mode.
pub(super) async fn connect<E: ClientHandler>(mode: Mode, ear: E, target: Target) -> RunningService<RoleClient, E> {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match mode {
        Mode::Legacy => ClientLifecycleMode::Initialize,
        Mode::Auto => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        Mode::Modern => ClientLifecycleMode::Discover { preferred_versions },
    };
    let client = match target {
        Target::Url(url) => ear.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), lifecycle).await,
        Target::Arguments(arguments) => {
            let mut command = Command::new(toolcell());
            command.args(arguments);
            let (transport, stderr) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn().unwrap();
            tokio::spawn(repeat(stderr.expect("stderr is a pipe")));
            ear.serve_with_lifecycle(transport, lifecycle).await
        }
    };
    client.expect("the server is understood")
}

/// The server to connect to.
pub(super) enum Target {
    /// A toolcell that the client starts with these arguments.
    Arguments(Vec<String>),
    /// A toolcell that serves over HTTP at this URL.
    Url(String),
}

/// Every example tool is listed, answers, and refuses the calls that it must.
async fn examples(mode: Mode, served: &Served) {
    let server = Server::named("examples");
    let mut conversation = Conversation::start(served.target("examples"), mode).await;
    conversation.definitions(&server).await;
    for case in server.cases("calls") {
        let result = conversation.call(case).await;
        case.check(&result);
        assert_ne!(result["isError"], true, "{}: {result}", case.tool());
    }
    for case in server.cases("refusals") {
        let result = conversation.call(case).await;
        case.check(&result);
        assert_eq!(result["isError"], true, "{}: {}", case.tool(), case.shows());
    }
    conversation.unknown_tool().await;
    conversation.resources(&server).await;
    conversation.subscription().await;
    conversation.close().await;
}

/// A cancelled call stops: the connection goes on, and nothing delays the server's end.
async fn cancellation(mode: Mode, served: &Served) {
    let server = Server::named("endless");
    let mut conversation = Conversation::start(served.target("endless"), mode).await;
    if !conversation.modern {
        conversation
            .client
            .set_level(SetLevelRequestParams::new(LoggingLevel::Debug))
            .await
            .expect("a log level is set");
    }
    conversation.paging(&server).await;
    for case in server.cases("calls") {
        let handle = conversation.begin(case).await;
        if case.reports_progress() {
            conversation.wait_for_log().await;
            conversation.wait_for_progress(&handle.progress_token).await;
        }
        server.meanwhile().check(&conversation.call(server.meanwhile()).await);
        handle.cancel(Some("given up".to_owned())).await.unwrap_or_else(|error| panic!("{}: {error}", case.shows()));
    }
    server.meanwhile().check(&conversation.call(server.meanwhile()).await);
    conversation.close().await;
}

/// Prints the server's stderr as the test's own output, which shows if the test fails.
async fn repeat(stderr: ChildStderr) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        eprintln!("{line}");
    }
}

impl Conversation {
    async fn start(target: Target, mode: Mode) -> Self {
        let (sender, asides) = mpsc::unbounded_channel();
        let client = connect(mode, Ear(sender), target).await;
        let about = client.peer_info().expect("the server says what it is");
        let modern = mode != Mode::Legacy;
        let revision = if modern { ProtocolVersion::V_2026_07_28 } else { ProtocolVersion::V_2025_11_25 };
        assert_eq!(about.protocol_version, revision);
        let tools = about.capabilities.tools.as_ref().expect("the server has tools");
        assert_eq!(tools.list_changed, Some(true), "the server announces list changes");
        Self { client, asides, modern }
    }

    /// The list names exactly the tools that the cases call.
    async fn definitions(&self, server: &Server) {
        let tools = self.client.list_all_tools().await.expect("the list of tools");
        assert!(tools.iter().all(|tool| tool.description.as_ref().is_some_and(|text| !text.is_empty())));
        let listed: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(listed.len(), tools.len(), "two tools have one name");
        assert_eq!(
            listed,
            server.cases("calls").chain(server.cases("refusals")).map(Case::tool).collect(),
            "every listed tool is called by a case"
        );
        let by_name = tools.iter().map(|tool| (tool.name.to_string(), serde_json::to_value(tool).unwrap()));
        server.check_definitions(&Value::Object(by_name.collect()));
    }

    /// A long list comes in pages of the manifest's size, with nothing lost or doubled between
    /// them.
    async fn paging(&self, server: &Server) {
        let mut names = Vec::new();
        let mut sizes = Vec::new();
        let mut cursor = None;
        while sizes.is_empty() || cursor.is_some() {
            let asked = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.client.list_tools(Some(asked)).await.expect("a page of tools");
            sizes.push(page.tools.len());
            names.extend(page.tools.into_iter().map(|tool| tool.name));
            cursor = page.next_cursor;
        }
        let last = sizes.pop().unwrap();
        assert!(!sizes.is_empty() && (1..=server.page_size()).contains(&last), "{sizes:?} and {last}");
        assert!(sizes.iter().all(|size| *size == server.page_size()), "{sizes:?} and {last}");
        let different: BTreeSet<&str> = names.iter().map(AsRef::as_ref).collect();
        assert_eq!(different.len(), names.len(), "a tool is on two pages: {names:?}");
        assert!(server.cases("calls").all(|case| different.contains(case.tool())), "a tool is lost: {names:?}");
    }

    /// Sends a call without waiting for its result.
    async fn begin(&self, case: Case<'_>) -> RequestHandle<RoleClient> {
        let parameters = CallToolRequestParams::new(case.tool().to_owned()).with_arguments(case.arguments());
        let mut meta = RequestMetaObject::default();
        if self.modern {
            meta.set_log_level(LoggingLevel::Debug);
        }
        let request = ClientRequest::CallToolRequest(Request::new(parameters));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        self.client.send_cancellable_request(request, options).await.expect("the call is sent")
    }

    /// The result of a call, as JSON.
    async fn call(&mut self, case: Case<'_>) -> Value {
        let handle = self.begin(case).await;
        let token = handle.progress_token.clone();
        let result = handle.await_response().await.unwrap_or_else(|error| panic!("{}: {error}", case.tool()));
        if case.reports_progress() {
            self.wait_for_progress(&token).await;
        }
        serde_json::to_value(result).unwrap()
    }

    /// Waits until the call of this token has reported progress. The test's own time limit bounds
    /// it.
    async fn wait_for_progress(&mut self, wanted: &ProgressToken) {
        loop {
            match self.asides.recv().await.expect("the connection lives") {
                Aside::Progress(token, progress) if token == *wanted => return assert!(progress > 0.0),
                _ => {}
            }
        }
    }

    /// Waits for a line of a tool's log. The test's own time limit bounds it.
    async fn wait_for_log(&mut self) {
        loop {
            if let Aside::Log(line) = self.asides.recv().await.expect("the connection lives") {
                return assert_ne!(line, Value::Null);
            }
        }
    }

    async fn unknown_tool(&self) {
        let answer = self.client.call_tool(CallToolRequestParams::new("no_such_tool")).await;
        let Err(ServiceError::McpError(error)) = answer else { panic!("an unknown tool is answered with {answer:?}") };
        assert_eq!((error.code, error.message.as_ref()), (ErrorCode::INVALID_PARAMS, "Unknown tool: no_such_tool"));
    }

    /// The manifest's resources are listed as templates, and can be read.
    async fn resources(&self, server: &Server) {
        let templates = self.client.list_all_resource_templates().await.expect("the list of templates");
        for case in server.cases("resources") {
            assert!(templates.iter().any(|found| found.uri_template == case.template()), "{templates:?}");
            let read = self.client.read_resource(ReadResourceRequestParams::new(case.uri())).await;
            let read = read.unwrap_or_else(|error| panic!("{}: {error}", case.shows()));
            case.check_contents(&serde_json::to_value(read).unwrap()["contents"]);
        }
    }

    /// The server promises list changes to a modern client.
    async fn subscription(&self) {
        if self.modern {
            let wanted = SubscriptionFilter::builder().tools_list_changed().build();
            let mut subscription = self.client.listen(wanted).await.expect("listening is acknowledged");
            assert_eq!(subscription.acknowledged().tools_list_changed, Some(true));
            subscription.cancel().await.expect("listening ends when the client says so");
        }
    }

    /// The server ends by itself, soon after its input does.
    async fn close(self) {
        let closing = Instant::now();
        self.client.cancel().await.expect("the connection closes");
        assert!(closing.elapsed() < CLOSE_TIME_MAX, "the server took {:?} to end", closing.elapsed());
    }
}
