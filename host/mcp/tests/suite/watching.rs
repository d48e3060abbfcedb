//! Resources that clients watch: their notifications, also when they read slowly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use toolcell_mcp::{
    Call, CheckedResult, ClientConnection, Host, McpServer, Outbox, ResourceNews, ServedCatalog, ServerInfo,
    ServerOptions, ToolList,
};

use crate::host::{MODERN, RUNTIME};

/// A catalog without tools, which offers resources.
struct Offering(ToolList);

impl ServedCatalog for Offering {
    fn tools(&self) -> &ToolList {
        &self.0
    }

    fn offers_resources(&self) -> bool {
        true
    }

    async fn call(self: Arc<Self>, _: Call) -> CheckedResult {
        CheckedResult::error("there are no tools".to_owned())
    }
}

impl Host for Offering {
    type Catalog = Self;

    fn snapshot(&self) -> Arc<Self> {
        Arc::new(Self(ToolList::new(1, Vec::new()).unwrap()))
    }
}

/// A client that reads, or does not.
#[derive(Default)]
struct Slow {
    frames: Mutex<Vec<String>>,
    congested: AtomicBool,
}

impl Outbox for Slow {
    fn queue(&self, frame: Vec<u8>) {
        self.frames.lock().unwrap().push(String::from_utf8(frame).unwrap());
    }

    fn congested(&self) -> bool {
        self.congested.load(Ordering::SeqCst)
    }
}

impl Slow {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.frames.lock().unwrap())
    }
}

fn connected() -> (Arc<McpServer<Offering>>, Arc<Slow>, ClientConnection<Offering>) {
    let host = Arc::new(Offering(ToolList::new(1, Vec::new()).unwrap()));
    let server = Arc::new(McpServer::new(host, ServerInfo::default(), ServerOptions::default()));
    let slow = Arc::<Slow>::default();
    let outbox: Arc<dyn Outbox> = Arc::<Slow>::clone(&slow);
    let connection = server.connect(outbox, Arc::new(RUNTIME.handle().clone()));
    (server, slow, connection)
}

fn news(uri: &str) -> ResourceNews {
    ResourceNews { updated: [(uri.to_owned(), 0)].into(), ..ResourceNews::default() }
}

const UPDATED: &str = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1"}}"#;

#[test]
fn a_client_that_does_not_read_is_told_once_when_it_does() {
    let (server, slow, connection) = connected();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
    connection.receive(initialize.as_bytes());
    connection.receive(br#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:1"}}"#);
    let answers = slow.take();
    assert!(answers[0].contains(r#""resources":{"listChanged":true,"subscribe":true}"#), "{answers:?}");
    assert_eq!(answers[1], r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert!(!server.resources_changed(&news("a:1")), "it is not ready");
    assert_eq!(slow.take(), [""; 0]);
    connection.receive(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    slow.congested.store(true, Ordering::SeqCst);
    for _ in 0..1_000 {
        assert!(server.resources_changed(&news("a:1")), "it is to be told again");
    }
    assert_eq!(slow.take(), [""; 0]);
    slow.congested.store(false, Ordering::SeqCst);
    assert!(!server.resources_changed(&ResourceNews::default()));
    assert_eq!(slow.take(), [UPDATED]);
    server.resources_changed(&news("a:2"));
    assert_eq!(slow.take(), [""; 0], "nobody watches it");
}

#[test]
fn a_client_that_does_not_read_is_told_of_each_changed_list_once_when_it_does() {
    let (server, slow, connection) = connected();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
    connection.receive(initialize.as_bytes());
    connection.receive(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for (id, lists) in
        [(7, r#""toolsListChanged":true,"resourcesListChanged":true"#), (8, r#""toolsListChanged":true"#)]
    {
        let params = format!(r#"{{{MODERN},"notifications":{{{lists}}}}}"#);
        let listen = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{params}}}"#);
        connection.receive(listen.as_bytes());
    }
    assert_eq!(slow.take().len(), 3);
    slow.congested.store(true, Ordering::SeqCst);
    for _ in 0..10_000 {
        server.catalog_changed(None);
        server.publish(ResourceNews { list: true, ..ResourceNews::default() });
    }
    connection.resume();
    assert_eq!(slow.take(), [""; 0]);
    slow.congested.store(false, Ordering::SeqCst);
    connection.resume();
    let bare = |list: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#);
    let tagged = |list: &str, id: u32| {
        let tag = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed","params":{{{tag}}}}}"#)
    };
    let expected = [bare("tools"), bare("resources"), tagged("tools", 7), tagged("resources", 7), tagged("tools", 8)];
    assert_eq!(slow.take(), expected);
    connection.resume();
    assert_eq!(slow.take(), [""; 0], "all was sent");
}

#[test]
fn news_of_one_clients_own_resources_reach_nobody_else_and_each_subscription_has_its_name() {
    let (server, slow, connection) = connected();
    let listen = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{{{MODERN},"notifications":{{"resourceSubscriptions":["a:1"],"resourcesListChanged":true}}}}}}"#
    );
    connection.receive(listen.as_bytes());
    let tag = r#""_meta":{"io.modelcontextprotocol/subscriptionId":7}"#;
    let acknowledged = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{{tag},"notifications":{{"resourcesListChanged":true,"resourceSubscriptions":["a:1"]}}}}}}"#
    );
    assert_eq!(slow.take(), [acknowledged]);
    server.publish(ResourceNews { to: Some("session\nother".to_owned()), list: true, ..news("a:1") });
    assert_eq!(slow.take(), [""; 0]);
    server.publish(ResourceNews { list: true, ..news("a:1") });
    let list = format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{{{tag}}}}}"#);
    let updated =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{{tag},"uri":"a:1"}}}}"#);
    assert_eq!(slow.take(), [list, updated]);
}
