//! `tools/list`: order, pages, cursors, and their fate after a swapped catalog.
//!
//! Promise: unread answers take bounded memory.

use serde_json::{Value, json};
use toolcell_mcp::{McpTool, Revision, ServerOptions, ToolDefinition, ToolList};

use crate::host::{Client, IDENTITY, error, list, plain};

fn paged(size: usize, tools: usize) -> Client {
    let client = Client::with(ServerOptions { page_size: size, ..ServerOptions::default() });
    client.host.swap(2, numbered(tools));
    client
}

fn numbered(tools: usize) -> Vec<ToolDefinition> {
    // Not alphabetical: the order is the catalog's own.
    (0..tools).rev().map(|number| plain(&format!("t{number}"))).collect()
}

fn page(client: &Client, cursor: Option<&str>) -> Value {
    let params = cursor.map(|cursor| format!(r#""cursor":{},"#, Value::from(cursor))).unwrap_or_default();
    serde_json::from_str(&client.ask_modern(1, "tools/list", &params)).unwrap()
}

fn names(page: &Value) -> Vec<String> {
    page["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn walk(client: &Client) -> (Vec<String>, usize) {
    let mut all = Vec::new();
    let mut pages = 0;
    let mut cursor = None;
    loop {
        let page = page(client, cursor.as_deref());
        all.extend(names(&page));
        pages += 1;
        assert_eq!(
            (&page["result"]["ttlMs"], &page["result"]["cacheScope"]),
            (&json!(0), &json!("public")),
            "on every page"
        );
        match page["result"]["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return (all, pages),
        }
    }
}

#[test]
fn pages_together_are_the_list_in_its_order() {
    for (size, tools, pages) in [(3, 7, 3), (3, 6, 2), (1, 4, 4), (100, 7, 1), (7, 7, 1), (3, 0, 1), (0, 2, 2)] {
        let expected: Vec<String> = (0..tools).rev().map(|number| format!("t{number}")).collect();
        assert_eq!(walk(&paged(size, tools)), (expected, pages), "{size} of {tools}");
    }
}

#[test]
fn a_page_ends_at_its_bytes_too() {
    // With the comma after it, 64 of them are 1 MiB.
    const ENTRY_BYTES: usize = 16 * 1024 - 1;
    let described = |number: usize, length: usize| ToolDefinition {
        description: "x".repeat(length),
        ..plain(&format!("t{number:03}"))
    };
    let around = {
        let client = Client::with(ServerOptions::default());
        client.host.swap(2, vec![described(0, 1)]);
        page(&client, None)["result"]["tools"][0].to_string().len() - 1
    };
    // Without the last comma, a page has room for one byte more.
    for (more, expected) in [(0, [64, 6]), (1, [64, 6]), (2, [63, 7])] {
        let length = |number| ENTRY_BYTES - around + if number == 0 { more } else { 0 };
        let definitions: Vec<ToolDefinition> = (0..70).map(|number| described(number, length(number))).collect();
        assert_eq!(list(2, definitions.clone()).pages(500), 2);
        let client = Client::with(ServerOptions::default());
        client.host.swap(2, definitions);
        let first = page(&client, None);
        let second = page(&client, first["result"]["nextCursor"].as_str());
        assert_eq!([&first, &second].map(|page| names(page).len()), expected, "{more} bytes more");
        assert_eq!(second["result"]["nextCursor"], Value::Null);
    }
}

#[test]
fn an_empty_list_is_a_list() {
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public",{IDENTITY}}}}}"#
    );
    assert_eq!(paged(3, 0).ask_modern(1, "tools/list", ""), expected);
}

#[test]
fn a_cursor_is_bound_to_the_listing() {
    let client = paged(3, 7);
    let cursor = page(&client, None)["result"]["nextCursor"].as_str().unwrap().to_owned();
    let params = format!(r#""cursor":"{cursor}","#);

    client.host.swap(3, numbered(7));
    assert_eq!(names(&page(&client, Some(&cursor))), ["t3", "t2", "t1"], "the same list behind a new generation");

    client.host.swap(4, numbered(8));
    let stale = "The cursor is stale: the list of tools has changed; list again without a cursor";
    assert_eq!(client.ask_modern(2, "tools/list", &params), error("2", -32602, stale));

    let legacy = Client::with(ServerOptions { page_size: 3, ..ServerOptions::default() });
    legacy.host.swap(2, numbered(7));
    legacy.initialize("2024-11-05");
    let frame = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{{"cursor":"{cursor}"}}}}"#);
    let third: Value = serde_json::from_str(&legacy.ask(&frame)).unwrap();
    assert_eq!(names(&third), ["t3", "t2", "t1"], "from another process that serves the same list");
}

#[test]
fn a_cursor_that_was_never_given_is_refused() {
    let client = paged(3, 7);
    let given = page(&client, None)["result"]["nextCursor"].as_str().unwrap().to_owned();
    let unknown = "The cursor is not one that this server gave";
    let mark = &given[..16];
    let forged = [
        "0".into(),
        "3".into(),
        mark.to_owned(),
        format!("{mark}0"),
        format!("{mark}7"),
        format!("{mark}-1"),
        format!("{mark}+3"),
        format!("{mark}ffffffffffffffffff"),
        format!("{} 3", &mark[..15]),
        "é".repeat(9),
    ];
    for cursor in forged {
        let answer = client.ask_modern(1, "tools/list", &format!(r#""cursor":"{cursor}","#));
        assert_eq!(answer, error("1", -32602, unknown), "{cursor:?}");
    }
    for cursor in ["3", "false", "{}"] {
        let answer = client.ask_modern(1, "tools/list", &format!(r#""cursor":{cursor},"#));
        assert_eq!(answer, error("1", -32602, "The cursor must be a string"));
    }
}

#[test]
fn caching_hints_are_only_modern() {
    let client = Client::new();
    let answer = client.ask_modern(1, "tools/list", "");
    assert!(answer.contains(r#""ttlMs":0,"cacheScope":"public""#), "{answer}");
    client.initialize("2025-11-25");
    let legacy = client.ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
    for word in ["ttlMs", "cacheScope", "resultType", "serverInfo"] {
        assert!(!legacy.contains(word), "{word} in {legacy}");
    }
}

#[test]
fn a_caller_lists_and_calls_what_it_sees_and_nothing_else() {
    let client = Client::with(ServerOptions { page_size: 1, ..ServerOptions::default() });
    let all: serde_json::Value = serde_json::from_str(&client.ask_modern(1, "tools/list", "")).unwrap();
    let cursor_of_all = all["result"]["nextCursor"].as_str().unwrap();
    client.host.show_only(&["listed", "progress"]);
    let stale = client.ask_modern(2, "tools/list", &format!(r#""cursor":"{cursor_of_all}","#));
    assert!(stale.contains("The cursor is stale"), "{stale}");
    let mut params = String::new();
    for (name, more) in [("listed", true), ("progress", false)] {
        let page: serde_json::Value = serde_json::from_str(&client.ask_modern(3, "tools/list", &params)).unwrap();
        let result = &page["result"];
        assert_eq!((&result["tools"][0]["name"], &result["cacheScope"]), (&name.into(), &"private".into()));
        assert_eq!(result["tools"].as_array().map(Vec::len), Some(1));
        params = result["nextCursor"].as_str().map(|cursor| format!(r#""cursor":"{cursor}","#)).unwrap_or_default();
        assert_eq!(!params.is_empty(), more);
    }
    let hidden = client.ask_modern(4, "tools/call", r#""name":"echo","#);
    assert_eq!(hidden, error("4", -32602, "Unknown tool: echo"));
    client.modern(5, "tools/call", r#""name":"progress","#);
    client.expect_begun("progress");
}

#[test]
fn whoever_sees_no_difference_is_not_told_of_one() {
    let client = Client::legacy("2025-11-25");
    let (whole, some) = client.host.show_only(&["echo", "hold"]);
    assert!(client.server.catalog_replaced(&whole, &some));
    assert!(client.next().contains("notifications/tools/list_changed"));
    let (some, same) = client.host.show_only(&["hold", "echo"]);
    assert!(!client.server.catalog_replaced(&some, &same));
    client.expect_silence();
    let (same, other) = client.host.show_only(&["echo"]);
    assert!(client.server.catalog_replaced(&same, &other));
    assert!(client.next().contains("notifications/tools/list_changed"));
}

#[test]
fn two_lists_are_the_same_where_clients_see_no_difference() {
    let newest = Revision::V2026_07_28;
    let one = list(1, numbered(3));
    assert!(one.same_listing_in(&list(2, numbered(3)), newest));
    assert!(!one.same_listing_in(&list(2, numbered(4)), newest));
    let mut described = numbered(3);
    described[1].description = "Another.".into();
    assert!(!one.same_listing_in(&list(2, described), newest));
    let mut reordered = numbered(3);
    reordered.reverse();
    assert!(!one.same_listing_in(&list(2, reordered), newest));
    assert_eq!(one.generation(), 1);
}

#[test]
fn names_that_collide_are_named() {
    let tools = ["b", "a", "b", "c", "a", "b"];
    let tools = tools.map(|name| std::sync::Arc::new(McpTool::compile(plain(name)).unwrap()));
    let collisions = ToolList::new(1, tools.to_vec()).unwrap_err();
    assert_eq!(collisions.names, ["a", "b"]);
    assert_eq!(collisions.to_string(), "more than one tool is called a, b");
}
