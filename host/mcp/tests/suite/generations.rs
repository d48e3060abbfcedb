//! One request, one catalog: a host that replaces its catalog between any two polls never shows it
//! in one answer.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};
use toolcell_mcp::{
    Call, CallResult, Caller, CheckedResult, ClientConnection, DeclaredResource, FolderChild, Host, McpServer, McpTool,
    Method, Patience, ResourceMore, ResourceReader, ServedCatalog, ServerInfo, ServerOptions, Skill, ToolDefinition,
    ToolList,
};

use crate::host::{Frames, MODERN, PATIENCE, RUNTIME};

/// A catalog in which everything is named after its generation.
struct Generation {
    number: u64,
    tools: ToolList,
    resources: Vec<DeclaredResource>,
    skills: Vec<Skill>,
}

/// Returns another catalog at every look.
#[derive(Default)]
struct Restless {
    looks: AtomicU64,
}

impl Host for Restless {
    type Catalog = Generation;

    fn snapshot(&self) -> Arc<Generation> {
        let number = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        let definition = |name: String| ToolDefinition::new(name, "Reads.", json!({"type": "object"}));
        let definitions = [definition(format!("reader_{number}")), definition("stays".to_owned())];
        let tools = definitions.map(|definition| Arc::new(McpTool::compile(definition).unwrap()));
        let prompt = McpTool::compile(definition("asks".to_owned())).unwrap().into_prompt(Vec::new());
        let tools: Vec<_> = tools.into_iter().chain([Arc::new(prompt.unwrap())]).collect();
        let resource = |uri: &str, is_template: bool| DeclaredResource {
            uri: uri.to_owned(),
            is_template,
            name: format!("generation {number}"),
            title: None,
            description: None,
            mime_type: None,
            reader: ResourceReader::Tool { tool: format!("reader_{number}"), argument: "uri".to_owned() },
            variables: if is_template { vec![("y".to_owned(), Vec::new())] } else { Vec::new() },
            more: ResourceMore::default(),
        };
        let resources = vec![resource("a:/x", false), resource("a:/{y}", true)];
        let uri = "skill://s/SKILL.md".to_owned();
        let skills = vec![Skill { entry: "stays".to_owned(), uri, json: "{}".to_owned() }];
        Arc::new(Generation { number, tools: ToolList::new(number, tools).unwrap(), resources, skills })
    }
}

impl ServedCatalog for Generation {
    fn tools(&self) -> &ToolList {
        &self.tools
    }

    fn view(&self, _: &Caller) -> Option<Arc<ToolList>> {
        Some(Arc::new(self.tools.part(|_| true)))
    }

    fn offers_resources(&self) -> bool {
        true
    }

    fn resources(&self) -> &[DeclaredResource] {
        &self.resources
    }

    fn reader(&self, uri: &str) -> Option<&DeclaredResource> {
        self.resources.first().filter(|resource| resource.uri == uri)
    }

    fn offers_skills(&self) -> bool {
        true
    }

    fn skills(&self) -> &[Skill] {
        &self.skills
    }

    fn folder(&self, _: &str, _: &ToolList) -> Option<Vec<FolderChild>> {
        Some(Vec::new())
    }

    async fn call(self: Arc<Self>, call: Call) -> CheckedResult {
        let tool = Arc::clone(&self.tools.tools()[call.tool]);
        let text = format!("{} in generation {}", tool.definition().name, self.number);
        tool.finish(CallResult::text(text), &Patience::default())
    }
}

struct Client {
    host: Arc<Restless>,
    connection: ClientConnection<Restless>,
    frames: Receiver<String>,
    asked: Cell<u32>,
}

impl Client {
    fn new() -> Self {
        let host = Arc::new(Restless::default());
        let server = Arc::new(McpServer::new(Arc::clone(&host), ServerInfo::default(), ServerOptions::default()));
        let (sender, frames) = mpsc::channel();
        let connection = server.connect(Arc::new(Frames(sender)), Arc::new(RUNTIME.handle().clone()));
        Self { host, connection, frames, asked: Cell::new(0) }
    }

    /// The answer to a request, and the number of looks at the catalog.
    fn ask(&self, method: Method, params: &str) -> (Value, u64) {
        let before = self.host.looks.load(Ordering::SeqCst);
        let id = self.asked.replace(self.asked.get() + 1);
        let method = method.name();
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#);
        self.connection.receive(frame.as_bytes());
        let answer = self.frames.recv_timeout(PATIENCE).expect("an answer");
        (serde_json::from_str(&answer).unwrap(), self.host.looks.load(Ordering::SeqCst) - before)
    }
}

/// The params of a method besides `_meta`.
fn params(method: Method) -> &'static str {
    match method {
        Method::Initialize => {
            r#""protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"},"#
        }
        Method::CallTool => r#""name":"stays","#,
        Method::Listen => r#""notifications":{},"#,
        Method::ReadResource | Method::Subscribe | Method::Unsubscribe => r#""uri":"a:/x","#,
        Method::GetSkill => r#""uri":"skill://s/SKILL.md","#,
        Method::ReadDirectory => r#""uri":"skill://s","#,
        Method::GetPrompt => r#""name":"asks","#,
        Method::Complete => r#""ref":{"type":"ref/resource","uri":"a:/{y}"},"argument":{"name":"y","value":""},"#,
        Method::SetLevel => r#""level":"info","#,
        Method::Ping
        | Method::Discover
        | Method::ListTools
        | Method::ListResources
        | Method::ListTemplates
        | Method::ListSkills
        | Method::ListPrompts
        | Method::ListTasks => "",
        Method::GetTask | Method::UpdateTask | Method::CancelTask | Method::TaskResult => r#""taskId":"a","#,
    }
}

#[test]
fn every_request_of_every_method_looks_at_one_catalog() {
    let looks_of = |method: Method| match method {
        Method::Ping | Method::SetLevel | Method::Listen => 0,
        Method::Initialize
        | Method::Discover
        | Method::Subscribe
        | Method::Unsubscribe
        | Method::ListTools
        | Method::CallTool
        | Method::ListResources
        | Method::ListTemplates
        | Method::ReadResource
        | Method::ListPrompts
        | Method::GetPrompt
        | Method::Complete
        | Method::GetTask
        | Method::UpdateTask
        | Method::CancelTask
        | Method::TaskResult
        | Method::ListTasks
        | Method::ReadDirectory
        | Method::ListSkills
        | Method::GetSkill => 1,
    };
    let modern = Client::new();
    let legacy = Client::new();
    // Nothing here runs as a task.
    for method in Method::ALL.into_iter().filter(|method| !method.name().starts_with("tasks/")) {
        let legacy_only = [Method::Initialize, Method::Ping, Method::SetLevel, Method::Subscribe, Method::Unsubscribe];
        let is_legacy = legacy_only.contains(&method);
        if !is_legacy {
            let (answer, looks) = modern.ask(method, &format!("{}{MODERN}", params(method)));
            assert!(answer["error"].is_null(), "{answer}");
            assert_eq!(looks, looks_of(method), "{method:?}");
        }
        if !matches!(method, Method::Discover | Method::Listen) {
            let (answer, looks) = legacy.ask(method, params(method).trim_end_matches(','));
            assert!(answer["error"].is_null(), "{answer}");
            assert_eq!(looks, looks_of(method), "{method:?}");
        }
    }
}

#[test]
fn a_resource_is_read_by_the_tool_and_the_code_of_the_catalog_that_declares_it() {
    let client = Client::new();
    for _ in 0..3 {
        let (answer, looks) = client.ask(Method::ReadResource, &format!("{}{MODERN}", params(Method::ReadResource)));
        let number = client.host.looks.load(Ordering::SeqCst);
        let expected = format!("reader_{number} in generation {number}");
        assert_eq!((answer["result"]["contents"][0]["text"].as_str(), looks), (Some(expected.as_str()), 1), "{answer}");
    }
}
