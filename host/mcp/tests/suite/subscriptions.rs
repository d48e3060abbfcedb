//! The listeners for a changed list of tools, and the time they hear of it.

use toolcell_mcp::{Host as _, ServerOptions};

use crate::host::{Client, IDENTITY, error, plain, text_result};

const BARE: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

fn acknowledged(id: &str, honoured: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{honoured}}}}}"#
    )
}

fn changed(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

#[test]
fn a_legacy_client_hears_once_it_is_ready() {
    let client = Client::new();
    client.server.catalog_changed(None);
    client.expect_silence();
    client.initialize("2025-06-18");
    client.server.catalog_changed(None);
    client.expect_silence();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.server.catalog_changed(None);
    assert_eq!(client.next(), BARE);
    client.expect_silence();
}

#[test]
fn a_modern_client_hears_what_it_listens_for_tagged_with_its_subscription() {
    let client = Client::new();
    client.server.catalog_changed(None);
    client.expect_silence();
    let ack = client.ask_modern(
        1,
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true,"promptsListChanged":true},"#,
    );
    let both = r#"{"toolsListChanged":true,"promptsListChanged":true}"#;
    assert_eq!(ack, acknowledged("1", both), "a reload may add the first prompt");
    let ack = client.ask_modern(
        2,
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":false,"resourceSubscriptions":["file:///x"]},"#,
    );
    assert_eq!(ack, acknowledged("2", r#"{"resourceSubscriptions":["file:///x"]}"#), "or the first resource");
    client.server.catalog_changed(None);
    assert_eq!(client.next(), changed("1"));
    client.expect_silence();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    client.server.catalog_changed(None);
    client.expect_silence();
}

#[test]
fn only_clients_of_revisions_that_see_a_difference_hear_of_it() {
    let tools = |title: Option<&str>, description: &str| {
        let mut tools = vec![plain("one"), plain("two")];
        tools[0].title = title.map(str::to_owned);
        tools[0].description = description.into();
        tools
    };
    // 2025-03-26 has no titles of its own, and carries them among the annotations.
    for (revision, sees_titles) in [("2024-11-05", false), ("2025-03-26", true), ("2025-06-18", true)] {
        let client = Client::legacy(revision);
        let catalog = |title: Option<&str>, description: &str| {
            client.host.swap(1, tools(title, description));
            client.host.snapshot()
        };
        let plain = catalog(None, "A");
        assert!(!client.server.catalog_replaced(&plain, &catalog(None, "A")));
        client.expect_silence();
        assert!(client.server.catalog_replaced(&plain, &catalog(Some("T"), "A")));
        if sees_titles {
            assert_eq!(client.next(), BARE);
        }
        client.expect_silence();
        assert!(client.server.catalog_replaced(&plain, &catalog(None, "B")));
        assert_eq!(client.next(), BARE);
        client.expect_silence();
    }
}

#[test]
fn several_subscriptions_are_told_apart() {
    let client = Client::new();
    for id in 1..=3 {
        let ack = client.ask_modern(id, "subscriptions/listen", r#""notifications":{"toolsListChanged":true},"#);
        assert_eq!(ack, acknowledged(&id.to_string(), r#"{"toolsListChanged":true}"#));
    }
    client.server.catalog_changed(None);
    let mut told = [client.next(), client.next(), client.next()];
    told.sort();
    assert_eq!(told, ["1", "2", "3"].map(changed));
    assert_eq!(client.ask_modern(4, "tools/call", r#""name":"echo","#), text_result("4", "{}"), "and calls go on");
}

#[test]
fn subscriptions_end_with_a_result_when_the_server_does() {
    let client = Client::new();
    client.ask_modern(7, "subscriptions/listen", r#""notifications":{"toolsListChanged":true},"#);
    client.connection.end_subscriptions();
    let meta = IDENTITY.replacen('{', r#"{"io.modelcontextprotocol/subscriptionId":7,"#, 1);
    assert_eq!(client.next(), format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"resultType":"complete",{meta}}}}}"#));
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"The server ends"}}"#;
    assert_eq!(client.next(), cancelled, "all messages of the connection share one channel");
    client.server.catalog_changed(None);
    client.connection.end_subscriptions();
    client.expect_silence();
}

#[test]
fn what_cannot_be_subscribed_to_is_refused() {
    let client = Client::with(ServerOptions { listens_max: 1, ..ServerOptions::default() });
    for (params, text) in [
        ("", "params.notifications must be an object"),
        (r#""notifications":[],"#, "params.notifications must be an object"),
        (
            r#""notifications":{"promptsListChanged":"yes"},"#,
            "params.notifications.promptsListChanged must be true or false",
        ),
        (
            r#""notifications":{"resourceSubscriptions":"x"},"#,
            "params.notifications.resourceSubscriptions must be a list of strings",
        ),
        (r#""notifications":{"toolsListChanged":1},"#, "params.notifications.toolsListChanged must be true or false"),
        (
            r#""notifications":{"resourceSubscriptions":[1]},"#,
            "params.notifications.resourceSubscriptions must be a list of strings",
        ),
    ] {
        assert_eq!(client.ask_modern(1, "subscriptions/listen", params), error("1", -32602, text));
    }
    client.ask_modern(2, "subscriptions/listen", r#""notifications":{},"#);
    assert_eq!(
        client.ask_modern(3, "subscriptions/listen", r#""notifications":{},"#),
        error("3", -32603, "At most 1 subscriptions of one connection may be open: cancel one first")
    );
    assert_eq!(
        client.ask_modern(2, "tools/list", ""),
        error("2", -32600, "A request with this id is still being answered")
    );
}

#[test]
fn a_connection_that_is_gone_is_forgotten() {
    let client = Client::legacy("2025-06-18");
    let Client { server, connection, .. } = client;
    drop(connection);
    server.catalog_changed(None);
}
