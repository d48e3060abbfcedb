//! Running calls: progress, logging, cancellation, permits, panics.

use std::sync::atomic::Ordering;

use toolcell_mcp::{ClientLogLevel, Gate, ServerOptions};

use crate::host::{Client, MODERN, error, legacy_text_result, text_result};

fn progress(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{{params}}}}}"#)
}

fn message(level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","logger":"tool","data":"{level}"}}}}"#
    )
}

fn cancel(client: &Client, id: &str) {
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"test"}}}}"#
    ));
}

#[test]
fn progress_is_sent_where_a_token_was_given_and_only_forwards() {
    let client = Client::new();
    let meta = MODERN.replace("{}}", r#"{},"progressToken":"t"}"#);
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"progress",{meta}}}}}"#));
    assert_eq!(client.next(), progress(r#""progressToken":"t","progress":1.0,"total":4.0,"message":"one""#));
    assert_eq!(client.next(), progress(r#""progressToken":"t","progress":2.5,"total":4.0,"message":"two""#));
    assert_eq!(client.next(), text_result("1", "done"), "and no log messages: none were asked for");
}

#[test]
fn the_first_revision_has_no_progress_message() {
    let client = Client::legacy("2024-11-05");
    assert_eq!(
        client.ask(r#"{"jsonrpc":"2.0","id":0,"method":"logging/setLevel","params":{"level":"emergency"}}"#),
        r#"{"jsonrpc":"2.0","id":0,"result":{}}"#
    );
    client.send(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":7}}}"#,
    );
    assert_eq!(client.next(), progress(r#""progressToken":7,"progress":1.0,"total":4.0"#));
    assert_eq!(client.next(), progress(r#""progressToken":7,"progress":2.5,"total":4.0"#));
    assert_eq!(client.next(), message("emergency"));
    assert_eq!(client.next(), legacy_text_result("1", "done"));
}

#[test]
fn log_messages_follow_the_level_of_the_request_or_of_the_session() {
    let client = Client::new();
    let meta = MODERN.replace("{}}", r#"{},"io.modelcontextprotocol/logLevel":"critical"}"#);
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"progress",{meta}}}}}"#));
    for level in ["critical", "alert", "emergency"] {
        assert_eq!(client.next(), message(level));
    }
    assert_eq!(client.next(), text_result("1", "done"));
    assert_eq!(
        client.ask_modern(2, "tools/call", r#""name":"progress","#),
        text_result("2", "done"),
        "it was for that request"
    );

    let legacy = Client::legacy("2025-06-18");
    legacy.call_legacy(1, "progress", "{}");
    for level in ["info", "notice", "warning", "error", "critical", "alert", "emergency"] {
        assert_eq!(legacy.next(), message(level), "info unless the client says otherwise");
    }
    assert_eq!(legacy.next(), legacy_text_result("1", "done"));
    for (params, text) in [
        ("{}", "params.level is missing"),
        (
            r#"{"level":"loud"}"#,
            "params.level must be one of debug, info, notice, warning, error, critical, alert, emergency",
        ),
    ] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{params}}}"#);
        assert_eq!(legacy.ask(&frame), error("2", -32602, text));
    }
}

#[test]
fn nothing_is_sent_for_a_call_that_has_ended() {
    let client = Client::new();
    let meta = MODERN.replace("{}}", r#"{},"progressToken":"t","io.modelcontextprotocol/logLevel":"debug"}"#);
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo",{meta}}}}}"#));
    let context = client.expect_begun("echo");
    assert_eq!(client.next(), text_result("1", "{}"));
    context.events.progress(1.0, None, None);
    context.events.log(ClientLogLevel::Emergency, "late", None);
    client.expect_silence();
    assert!(!context.cancellation.is_cancelled());
}

#[test]
fn a_cancelled_call_is_stopped_and_never_answered() {
    let client = Client::new();
    client.modern(1, "tools/call", r#""name":"hold","#);
    let context = client.expect_begun("hold");
    cancel(&client, "1");
    assert!(context.cancellation.is_cancelled());
    context.events.progress(1.0, None, None);
    client.expect_idle();
    client.expect_silence();
    cancel(&client, "1");
    cancel(&client, r#""1""#);
    client.expect_silence();
}

#[test]
fn an_id_is_free_again_once_its_call_was_cancelled() {
    let client = Client::new();
    client.modern(1, "tools/call", r#""name":"hold","#);
    client.expect_begun("hold");
    cancel(&client, "1");
    let answer = client.ask_modern(1, "tools/call", r#""name":"echo","#);
    assert_eq!(answer, text_result("1", "{}"), "of the second call, once");
    client.expect_idle();
    client.expect_silence();
}

#[test]
fn an_id_in_use_is_refused_and_its_call_goes_on() {
    let client = Client::new();
    client.modern(1, "tools/call", r#""name":"hold","#);
    client.expect_begun("hold");
    for (method, params) in [("tools/call", r#""name":"echo","#), ("tools/list", "")] {
        let refused = error("1", -32600, "A request with this id is still being answered");
        assert_eq!(client.ask_modern(1, method, params), refused);
    }
    let other = client
        .ask(&format!(r#"{{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{{"name":"echo",{MODERN}}}}}"#));
    assert_eq!(other, text_result(r#""1""#, "{}"), "a string is another id");
    client.shared.gate.add_permits(1);
    assert_eq!(client.next(), text_result("1", "held"));
}

#[test]
fn a_panic_is_an_internal_error_and_the_next_call_works() {
    let client = Client::new();
    client.modern(1, "tools/call", r#""name":"hold","#);
    client.expect_begun("hold");
    for id in 2..6 {
        let answer = client.ask_modern(id, "tools/call", r#""name":"panic","#);
        assert_eq!(answer, error(&id.to_string(), -32603, "Internal error"));
    }
    assert_eq!(client.ask_modern(9, "tools/call", r#""name":"echo","#), text_result("9", "{}"));
    client.shared.gate.add_permits(1);
    assert_eq!(client.next(), text_result("1", "held"), "others are unaffected");
    client.expect_idle();
}

#[test]
fn calls_past_the_permits_wait_their_turn_and_can_be_cancelled_there() {
    let client = Client::with(ServerOptions { in_flight_max: 2, pending_calls_max: 3, ..ServerOptions::default() });
    for id in 1..=5 {
        assert_eq!(client.connection.gate(), Gate::Open);
        client.modern(id, "tools/call", r#""name":"hold","#);
    }
    client.expect_begun("hold");
    client.expect_begun("hold");
    assert_eq!(client.connection.gate(), Gate::Full, "three wait");
    client.expect_silence();
    cancel(&client, "4");
    assert_eq!(client.connection.gate(), Gate::Open);
    client.shared.gate.add_permits(4);
    let mut answers: Vec<String> = (0..4).map(|_| client.next()).collect();
    answers.sort();
    assert_eq!(answers, ["1", "2", "3", "5"].map(|id| text_result(id, "held")));
    client.expect_idle();
    assert_eq!(client.shared.running_most.load(Ordering::SeqCst), 2);
    client.expect_silence();
}

#[test]
fn what_waits_is_bounded_in_bytes_too() {
    let client =
        Client::with(ServerOptions { in_flight_max: 1, pending_bytes_max: 10_000, ..ServerOptions::default() });
    client.modern(1, "tools/call", r#""name":"hold","#);
    client.modern(2, "tools/call", &format!(r#""name":"echo","arguments":{{"s":"{}"}},"#, "x".repeat(10_000)));
    assert_eq!(client.connection.gate(), Gate::Full);
    client.shared.gate.add_permits(1);
    assert_eq!(client.next(), text_result("1", "held"));
    assert!(client.next().len() > 10_000);
    assert_eq!(client.connection.gate(), Gate::Open);
}

#[test]
fn a_cancelled_call_keeps_its_permit_until_it_has_stopped() {
    let client = Client::with(ServerOptions { in_flight_max: 1, ..ServerOptions::default() });
    for id in 0..20 {
        client.modern(id, "tools/call", r#""name":"hold","#);
        client.expect_begun("hold");
        cancel(&client, &id.to_string());
    }
    client.expect_idle();
    assert_eq!(client.shared.running_most.load(Ordering::SeqCst), 1);
    client.expect_silence();
}

#[test]
fn at_shutdown_running_calls_are_told_and_waiting_ones_refused() {
    let client = Client::with(ServerOptions { in_flight_max: 1, ..ServerOptions::default() });
    client.modern(1, "tools/call", r#""name":"hold","#);
    client.expect_begun("hold");
    client.modern(2, "tools/call", r#""name":"hold","#);
    client.connection.cancel_all();
    let mut answers = [client.next(), client.next()];
    answers.sort();
    let stopped = text_result("1", "stopped").replace(r#""isError":false"#, r#""isError":true"#);
    assert_eq!(answers, [stopped, error("2", -32603, "The server is shutting down")]);
    client.expect_idle();
}

#[test]
fn work_that_the_executor_drops_is_answered_with_an_error() {
    struct Drops;
    impl toolcell_mcp::Executor for Drops {
        fn run(&self, work: toolcell_mcp::Work) {
            drop(work);
        }
    }
    struct Frames(std::sync::mpsc::Sender<Vec<u8>>);
    impl toolcell_mcp::Outbox for Frames {
        fn queue(&self, frame: Vec<u8>) {
            let _ = self.0.send(frame);
        }
    }
    let client = Client::new();
    let (sender, frames) = std::sync::mpsc::channel();
    let connection = client.server.connect(std::sync::Arc::new(Frames(sender)), std::sync::Arc::new(Drops));
    connection.receive(
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo",{MODERN}}}}}"#).as_bytes(),
    );
    let frame = String::from_utf8(frames.try_recv().unwrap()).unwrap();
    assert_eq!(frame, error("1", -32603, "The call was abandoned before it ended"));
    assert!(connection.is_idle());
}
