//! Features that a reload takes away or adds: their methods, and who hears of it.

use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcell_mcp::{
    Call, CallResult, CheckedResult, ClientConnection, DeclaredResource, Host, HostContents, HostReading, McpServer,
    McpTool, NotRead, Patience, ResourceMore, ResourceReader, ServedCatalog, ServerInfo, ServerOptions, ToolDefinition,
    ToolList,
};

use crate::host::{Frames, MODERN, PATIENCE, RUNTIME};

/// A catalog of one tool, and of one prompt, skill and resource of each kind, or of none.
struct Features {
    tools: ToolList,
    resources: Vec<DeclaredResource>,
}

struct Reloaded(Mutex<Arc<Features>>);

impl Host for Reloaded {
    type Catalog = Features;

    fn snapshot(&self) -> Arc<Features> {
        Arc::clone(&self.0.lock().unwrap())
    }
}

fn resource(uri: &str, reader: ResourceReader) -> DeclaredResource {
    let variables = if uri.contains('{') { vec![("y".to_owned(), Vec::new())] } else { Vec::new() };
    DeclaredResource {
        uri: uri.to_owned(),
        is_template: !variables.is_empty(),
        name: "r".to_owned(),
        title: None,
        description: None,
        mime_type: None,
        reader,
        variables,
        more: ResourceMore::default(),
    }
}

fn catalog(generation: u64, has_more: bool) -> Arc<Features> {
    let schema = json!({"type": "object", "properties": {"uri": {"type": "string", "pattern": "^[^!]*$"}}});
    let tool = |name: &str, schema| McpTool::compile(ToolDefinition::new(name, "Reads.", schema)).unwrap();
    let mut tools = vec![Arc::new(tool("reader", schema))];
    let mut resources = Vec::new();
    if has_more {
        tools.push(Arc::new(tool("asks", json!({"type": "object"})).into_prompt(Vec::new()).unwrap()));
        let by_tool = || ResourceReader::Tool { tool: "reader".to_owned(), argument: "uri".to_owned() };
        resources = vec![
            resource("tool:fails", by_tool()),
            resource("tool:is_unknown", by_tool()),
            resource("tool:!", by_tool()),
            resource("host:large", ResourceReader::Host { tools: vec!["reader".to_owned()] }),
            resource("tool:/{y}", by_tool()),
        ];
    }
    Arc::new(Features { tools: ToolList::new(generation, tools).unwrap(), resources })
}

impl ServedCatalog for Features {
    fn tools(&self) -> &ToolList {
        &self.tools
    }

    fn offers_resources(&self) -> bool {
        !self.resources.is_empty()
    }

    fn resources(&self) -> &[DeclaredResource] {
        &self.resources
    }

    fn reader(&self, uri: &str) -> Option<&DeclaredResource> {
        self.resources.iter().find(|resource| resource.uri == uri)
    }

    async fn read(self: Arc<Self>, _: HostReading) -> Result<HostContents, NotRead> {
        Err(NotRead::Refused("the file has more than 3 bytes".to_owned()))
    }

    fn offers_skills(&self) -> bool {
        !self.resources.is_empty()
    }

    async fn call(self: Arc<Self>, call: Call) -> CheckedResult {
        let tool = Arc::clone(&self.tools.tools()[call.tool]);
        let is_unknown = call.arguments.get().contains("unknown");
        tool.finish(CallResult::error("the well is dry"), &Patience::default()).blaming_arguments(is_unknown)
    }
}

struct Client {
    host: Arc<Reloaded>,
    server: Arc<McpServer<Reloaded>>,
    connection: ClientConnection<Reloaded>,
    frames: Receiver<String>,
}

impl Client {
    fn new(has_more: bool) -> Self {
        let host = Arc::new(Reloaded(Mutex::new(catalog(1, has_more))));
        let server = Arc::new(McpServer::new(Arc::clone(&host), ServerInfo::default(), ServerOptions::default()));
        let (sender, frames) = mpsc::channel();
        let connection = server.connect(Arc::new(Frames(sender)), Arc::new(RUNTIME.handle().clone()));
        Self { host, server, connection, frames }
    }

    fn reload(&self, generation: u64, has_more: bool) {
        let new = catalog(generation, has_more);
        let old = std::mem::replace(&mut *self.host.0.lock().unwrap(), Arc::clone(&new));
        self.server.catalog_replaced(&old, &new);
    }

    fn next(&self) -> Value {
        serde_json::from_str(&self.frames.recv_timeout(PATIENCE).expect("a frame")).unwrap()
    }

    fn ask(&self, method: &str, params: &str) -> Value {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{MODERN}}}}}"#);
        self.connection.receive(frame.as_bytes());
        self.next()
    }
}

/// Each method of a feature, with params, and the member of its empty list.
const METHODS: [(&str, &str, Option<&str>); 8] = [
    ("prompts/list", "", Some("prompts")),
    ("prompts/get", r#""name":"asks","#, None),
    ("completion/complete", r#""ref":{"type":"ref/prompt","name":"asks"},"argument":{"name":"y","value":""},"#, None),
    ("resources/list", "", Some("resources")),
    ("resources/templates/list", "", Some("resourceTemplates")),
    ("resources/read", r#""uri":"tool:fails","#, None),
    ("skills/list", "", Some("skills")),
    ("skills/get", r#""uri":"skill://s","#, None),
];

#[test]
fn methods_outlast_the_last_entry_of_their_list() {
    let client = Client::new(true);
    client.reload(2, false);
    for (method, params, list) in METHODS {
        let answer = client.ask(method, params);
        match list {
            Some(list) => assert_eq!(answer["result"][list], json!([]), "{method}: {answer}"),
            None => assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}"),
        }
    }
    let found = client.ask("server/discover", "");
    assert!(found["result"]["capabilities"].get("prompts").is_none(), "it is not offered any more: {found}");
}

#[test]
fn methods_of_what_was_never_offered_do_not_exist() {
    let client = Client::new(false);
    client.reload(2, false);
    for (method, params, _) in METHODS {
        assert_eq!(client.ask(method, params)["error"]["code"], -32601, "{method}");
    }
}

#[test]
fn a_modern_client_hears_of_the_first_prompt_and_the_first_resource() {
    let client = Client::new(false);
    let wanted = r#""notifications":{"promptsListChanged":true,"resourcesListChanged":true},"#;
    let acknowledged = client.ask("subscriptions/listen", wanted);
    let honoured = json!({"promptsListChanged": true, "resourcesListChanged": true});
    assert_eq!(acknowledged["params"]["notifications"], honoured);
    client.reload(2, true);
    let told = [client.next(), client.next()].map(|frame| frame["method"].as_str().unwrap().to_owned());
    assert!(told.contains(&"notifications/prompts/list_changed".to_owned()), "{told:?}");
    assert!(told.contains(&"notifications/resources/list_changed".to_owned()), "{told:?}");
}

#[test]
fn only_an_unknown_resource_is_not_found() {
    let client = Client::new(true);
    for (uri, code, message) in [
        ("tool:fails", -32603, "Resource cannot be read: the well is dry"),
        ("host:large", -32603, "Resource cannot be read: the file has more than 3 bytes"),
        ("tool:is_unknown", -32602, "Resource cannot be read: the well is dry"),
        ("tool:!", -32602, "Resource cannot be read: "),
        ("tool:other", -32602, "Resource not found: "),
    ] {
        let error = client.ask("resources/read", &format!(r#""uri":"{uri}","#))["error"].clone();
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(code), &json!(uri)), "{error}");
        assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
    }
}
