//! `ungranted = "ask"`: a person is asked about a request that no rule allows, in both eras and on
//! the terminal. Whatever is not asked about is denied as ever.
//!
//! Promise: a person decides a question once.
//! Promise: an answer counts for what was asked.
//! Promise: a person allows what is shown and nothing else.

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, NameServer, Named, TcpEcho};
use toolcell_tests::{Answer, Command, Folder, TestHost, manifest_of, terminal};

/// A component that asks, last in the manifest. `tables` are its further lines.
fn asking(fixture: &str, tables: &str) -> String {
    format!("{}ungranted = \"ask\"\n{tables}\n", manifest_of(&["good", fixture]))
}

fn capabilities() -> Value {
    json!({"elicitation": {}})
}

fn legacy(manifest: &str) -> TestHost {
    let mut host = TestHost::recording(manifest);
    host.initialize_declaring("2025-11-25", capabilities());
    host
}

/// Answers the next question with this choice.
fn choose(host: &mut TestHost, choice: &str) -> Value {
    let asked = host.next_of("elicitation/create");
    let result = json!({"action": "accept", "content": {"allow": choice}});
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    asked
}

fn url(server: &HttpServer, path: &str) -> Value {
    json!({"url": format!("http://{}{path}", server.address())})
}

/// True if the guest's request was answered by the server.
fn went_well(answer: &Answer) -> bool {
    answer.structured().get("ok").is_some()
}

fn answers(host: &TestHost) -> Vec<String> {
    let records = host.audit();
    let asked = records.iter().filter(|record| record["event"] == "call.asked" && record["asked"] == "ungranted");
    asked.map(|record| record["answer"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_person_sees_who_wants_what_and_which_lines_it_would_become() {
    let server = HttpServer::start();
    let mut host = legacy(&asking("reach_http", ""));
    let id = host.start_call("http", url(&server, "/x?secret=1"));
    let asked = choose(&mut host, "once");
    let address = server.address();
    let message = format!(
        "The tool \"http\" of the component \"reach_http\" wants to reach what no rule of the manifest allows:\n  \
         GET http://{address}/x\n\
         That address is not public: it belongs to this machine or to a network around it.\n\
         It would become, in [components.reach_http.network]:\n  \
         private = [\"{address}\"]\n  http = [\"GET http://{address}/x\"]"
    );
    assert_eq!(asked["params"]["message"], message);
    let choices = &asked["params"]["requestedSchema"]["properties"]["allow"]["enum"];
    assert_eq!(*choices, json!(["once", "session", "manifest", "no"]));
    let answer = host.answer_to(&id);
    assert!(went_well(&answer) && answer.denials().is_empty(), "{answer:?}");

    // Once is for that call, and no is no.
    let id = host.start_call("http", url(&server, "/x"));
    choose(&mut host, "no");
    let answer = host.answer_to(&id);
    assert!(!went_well(&answer), "{answer:?}");
    assert!(answer.denials()[0].contains("no rule of tool \"http\" allows it"), "{answer:?}");
    assert_eq!(answers(&host), ["once", "declined"]);
    let detail = host.recorded("asked", |record| record["answer"] == "declined")["detail"].clone();
    assert_eq!(detail, format!("GET http://{address}/x"));
}

#[test]
fn a_person_is_asked_through_the_wall_as_well() {
    let server = HttpServer::start();
    let manifest = format!("{}\n[server]\nwalls = \"best\"\n", asking("reach_http", ""));
    let mut host = legacy(&manifest);
    for (choice, goes) in [("once", true), ("no", false), ("session", true)] {
        let id = host.start_call("http", url(&server, "/x"));
        let asked = choose(&mut host, choice);
        assert!(asked["params"]["message"].as_str().unwrap().contains("GET http://"), "{asked}");
        let answer = host.answer_to(&id);
        assert_eq!(went_well(&answer), goes, "{choice}: {answer:?}");
        assert_eq!(answer.denials().is_empty(), goes, "{choice}: {answer:?}");
    }
    assert!(went_well(&host.call("http", url(&server, "/x"))), "not asked again");
    assert_eq!(answers(&host), ["once", "declined", "session", "remembered"]);
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn for_this_session_holds_for_that_request_of_that_tool_and_no_other() {
    let server = HttpServer::start();
    let mut host = legacy(&asking("reach_http", ""));
    let id = host.start_call("http", url(&server, "/x"));
    choose(&mut host, "session");
    assert!(went_well(&host.answer_to(&id)));
    assert!(went_well(&host.call("http", url(&server, "/x"))), "not asked again");
    for other in [url(&server, "/y"), json!({"url": format!("http://{}/x", server.address()), "method": "POST"})] {
        let id = host.start_call("http", other.clone());
        let asked = choose(&mut host, "no");
        assert!(asked["params"]["message"].as_str().unwrap().contains("wants to reach"), "{other}");
        assert!(!went_well(&host.answer_to(&id)), "{other}");
    }
    assert_eq!(answers(&host), ["session", "remembered", "declined", "declined"]);
}

#[test]
fn written_into_the_manifest_it_is_a_rule_and_nobody_is_asked_again() {
    let server = HttpServer::start();
    let manifest = asking("reach_http", "\n# Kept as it is.\n[components.reach_http.limits]\nasks = 3\n");
    let mut host = legacy(&manifest);
    let id = host.start_call("http", url(&server, "/x"));
    choose(&mut host, "manifest");
    assert!(went_well(&host.answer_to(&id)));
    let address = server.address();
    let text = host.folder().read("toolcell.toml");
    let table =
        format!("[components.reach_http.network]\nprivate = [\"{address}\"]\nhttp = [\"GET http://{address}/x\"]\n");
    assert!(text.contains(&table) && text.contains("# Kept as it is.\n"), "{text}");
    host.serves_generation(2);
    assert!(went_well(&host.call("http", url(&server, "/x"))));
    assert_eq!(answers(&host), ["manifest"], "a rule allows it now");
}

#[test]
fn a_person_who_said_no_to_a_request_has_decided_it() {
    let server = HttpServer::start();
    for choice in ["no", "session"] {
        let mut host = TestHost::recording(&asking("reach_http", ""));
        let meta = json!({"io.modelcontextprotocol/clientCapabilities": capabilities()});
        let call = json!({"name": "http", "arguments": url(&server, "/x"), "_meta": meta});
        let first = host.request("tools/call", call.clone());
        let key = first["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let mut answered = |choice: &str| {
            let mut retry = call.clone();
            retry["requestState"] = first["result"]["requestState"].clone();
            retry["inputResponses"] = json!({&key: {"action": "accept", "content": {"allow": choice}}});
            went_well(&Answer::new(host.request("tools/call", retry)))
        };
        assert!(!answered("no"));
        assert!(!answered("once") && !answered(choice) && !answered("once"), "{choice}");
        assert_eq!(answers(&host), ["pending", "declined", "refused", "refused", "refused"]);
    }
    assert_eq!(server.seen().len(), 0);
}

#[test]
fn a_modern_client_is_given_the_question_and_the_tool_begins_anew() {
    let server = HttpServer::start();
    let mut host = TestHost::recording(&asking("reach_http", ""));
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": capabilities()});
    let call = json!({"name": "http", "arguments": url(&server, "/x"), "_meta": meta});
    let first = host.request("tools/call", call.clone());
    let requests = first["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{first}"));
    let (key, question) = requests.iter().next().unwrap();
    assert!(question["params"]["message"].as_str().unwrap().contains("wants to reach"), "{first}");
    let mut retry = call.clone();
    retry["requestState"] = first["result"]["requestState"].clone();
    retry["inputResponses"] = json!({key: {"action": "accept", "content": {"allow": "once"}}});
    assert!(went_well(&Answer::new(host.request("tools/call", retry.clone()))));

    // The answer was for one call, and for these arguments.
    let again = Answer::new(host.request("tools/call", retry.clone()));
    assert!(!went_well(&again), "{again:?}");
    let mut other = retry.clone();
    other["arguments"] = url(&server, "/y");
    let refused = host.request("tools/call", other);
    assert!(refused["error"]["message"].as_str().unwrap().contains("belongs to another call"), "{refused}");
    // An answer to a question that was never asked counts for nothing.
    let mut unasked = call;
    unasked["arguments"] = url(&server, "/z");
    unasked["inputResponses"] = retry["inputResponses"].clone();
    let asked = host.request("tools/call", unasked);
    assert!(asked["result"]["inputRequests"].is_object(), "{asked}");
    assert_eq!(answers(&host), ["pending", "once", "refused", "pending"]);
}

#[test]
fn a_client_that_cannot_ask_gets_the_plain_denial() {
    let server = HttpServer::start();
    let mut host = TestHost::recording(&asking("reach_http", ""));
    let answer = host.call("http", url(&server, "/x"));
    assert!(!went_well(&answer) && answer.denials().len() == 1, "{answer:?}");
    let mut host = TestHost::recording(&asking("reach_http", ""));
    host.initialize("2025-11-25");
    let answer = host.call("http", url(&server, "/x"));
    assert!(!went_well(&answer) && answer.denials().len() == 1, "{answer:?}");
    assert_eq!(answers(&host), ["unsupported"]);
    let allow = host.recorded("denied", |record| record["event"] == "call.denied")["allow"].clone();
    assert_eq!(allow, format!("http = [\"GET http://{}/x\"]", server.address()));
}

#[test]
fn nobody_is_asked_about_metadata_secrets_narrowed_tools_or_without_the_key() {
    let server = HttpServer::start();
    let address = server.address();
    let secret = format!(
        "[components.reach_http.network]\nhttp = [\"GET http://{address}/v1/*\"]\nprivate = [\"{address}\"]\n\
         [components.reach_http.secrets]\n\
         KEY = {{ from = \"env:TEST_KEY\", header = \"Authorization\", value = \"{{}}\", for = \"http://{address}\" }}\n"
    );
    let narrowed = "[components.reach_http.tools.http]\nnetwork = {}\n";
    let own = "[components.reach_http.tools.http]\nungranted = \"deny\"\n";
    let plain = manifest_of(&["good", "reach_http"]);
    for (manifest, arguments) in [
        (asking("reach_http", ""), json!({"url": "http://169.254.169.254/latest/meta-data"})),
        (asking("reach_http", ""), json!({"url": "http://[::ffff:169.254.169.254]/latest"})),
        (asking("reach_http", ""), url(&server, "/*")),
        (asking("reach_http", &secret), url(&server, "/other")),
        (asking("reach_http", narrowed), url(&server, "/x")),
        (asking("reach_http", own), url(&server, "/x")),
        (plain, url(&server, "/x")),
    ] {
        let folder = Folder::with_manifest(&manifest);
        let mut host = TestHost::recording_in(folder, &[("TEST_KEY", "a-long-secret-value")]);
        host.initialize_declaring("2025-11-25", capabilities());
        let answer = host.call("http", arguments.clone());
        assert!(!went_well(&answer), "{arguments}: {answer:?}");
        assert_eq!(answers(&host), Vec::<String>::new(), "{manifest}{arguments}");
    }
}

#[test]
fn a_flood_of_requests_is_asked_about_up_to_the_calls_limit() {
    let server = HttpServer::start();
    let mut host = legacy(&asking("reach_http", "[components.reach_http.limits]\nasks = 1\n"));
    let id = host.start_call("http", url(&server, "/x"));
    choose(&mut host, "once");
    assert!(went_well(&host.answer_to(&id)));
    let mut none = legacy(&asking("reach_http", "[components.reach_http.limits]\nasks = 0\n"));
    assert!(!went_well(&none.call("http", url(&server, "/x"))));
    assert_eq!(answers(&none), Vec::<String>::new());
}

#[test]
fn the_deadline_stands_still_while_a_person_is_asked() {
    let server = HttpServer::start();
    let mut host = legacy(&asking("reach_http", "[components.reach_http.limits]\ndeadline = \"1s\"\n"));
    let id = host.start_call("http", url(&server, "/x"));
    let asked = host.next_of("elicitation/create");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let result = json!({"action": "accept", "content": {"allow": "once"}});
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    assert!(went_well(&host.answer_to(&id)));
}

#[test]
fn two_calls_that_want_the_same_ask_once_where_the_answer_is_for_both() {
    let server = HttpServer::start();
    let mut host = legacy(&asking("reach_http", ""));
    let one = host.start_call("http", url(&server, "/x"));
    let other = host.start_call("http", url(&server, "/x"));
    choose(&mut host, "session");
    assert!(went_well(&host.answer_to(&one)));
    assert!(went_well(&host.answer_to(&other)));
    assert_eq!(answers(&host), ["session", "remembered"]);
}

#[test]
fn a_call_that_is_cancelled_while_a_person_is_asked_ends_and_allows_nothing() {
    let server = HttpServer::start();
    let mut host = legacy(&asking("reach_http", ""));
    let id = host.start_call("http", url(&server, "/x"));
    let asked = host.next_of("elicitation/create");
    host.cancel(&id);
    let _ = host.recorded("the end", |record| record["event"] == "call.finished");
    let result = json!({"action": "accept", "content": {"allow": "session"}});
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    let id = host.start_call("http", url(&server, "/x"));
    choose(&mut host, "no");
    assert!(!went_well(&host.answer_to(&id)), "an answer that comes too late is none");
    assert_eq!(answers(&host), ["cancelled", "declined"]);
}

#[test]
fn a_reload_between_question_and_answer_changes_neither() {
    let server = HttpServer::start();
    let mut host = legacy(&asking("reach_http", ""));
    let id = host.start_call("http", url(&server, "/x"));
    let asked = host.next_of("elicitation/create");
    let text = host.folder().read("toolcell.toml");
    host.folder().write("toolcell.toml", format!("{text}\n[components.good.limits]\nfuel = 1_000_000_000\n"));
    host.serves_generation(2);
    let result = json!({"action": "accept", "content": {"allow": "session"}});
    host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    assert!(went_well(&host.answer_to(&id)));
    assert!(went_well(&host.call("http", url(&server, "/x"))), "it holds in the next generation");
    let narrowed = text.replace("ungranted = \"ask\"", "ungranted = \"deny\"");
    host.folder().write("toolcell.toml", narrowed);
    host.serves_generation(3);
    assert!(!went_well(&host.call("http", url(&server, "/x"))), "and not once nobody may be asked");
}

#[test]
fn a_connection_by_address_or_name_is_asked_about_by_host_and_port() {
    let names = NameServer::answering(&[
        ("localhost", &[Named::at(&["127.0.0.1"])]),
        ("inner.example", &[Named::at(&["127.0.0.1"])]),
    ]);
    let server = TcpEcho::start();
    let dns = names.address();
    let port = server.address().port();
    let mut host = legacy(&format!("{}\n[server]\ndns = [\"{dns}\"]\n", asking("reach_sockets", "")));
    let id = host.start_call("tcp", json!({"addr": server.address().to_string(), "send": "one"}));
    let asked = choose(&mut host, "once");
    let lines = format!("private = [\"127.0.0.1:{port}\"]\n  tcp = [\"127.0.0.1:{port}\"]");
    assert!(asked["params"]["message"].as_str().unwrap().ends_with(&lines), "{asked}");
    assert_eq!(host.answer_to(&id).structured()["ok"], "one");
    let id = host.start_call("tcp", json!({"name": "localhost", "port": port, "send": "two"}));
    let asked = choose(&mut host, "once");
    assert!(asked["params"]["message"].as_str().unwrap().contains(&format!("tcp localhost:{port}")), "{asked}");
    assert_eq!(host.answer_to(&id).structured()["ok"], "two");
    // A name that leads to an address that is not public is denied, whatever the person says.
    let id = host.start_call("tcp", json!({"name": "inner.example", "port": port, "send": "three"}));
    choose(&mut host, "once");
    assert!(!went_well(&host.answer_to(&id)));
    assert_eq!(server.connections(), 2);
    let looked_up = names.asked_for("localhost");
    let id = host.start_call("tcp", json!({"name": "localhost", "port": port}));
    choose(&mut host, "no");
    assert!(!went_well(&host.answer_to(&id)));
    assert_eq!(names.asked_for("localhost"), looked_up, "nothing is looked up before the answer");
    assert_eq!(server.connections(), 2);
}

#[test]
fn asking_is_a_right_that_the_lock_pins() {
    let folder = Folder::with_manifest(&manifest_of(&["reach_http"]));
    let _ = Command::in_folder(&folder, &["lock"]).run().succeeded();
    folder.write("toolcell.toml", format!("{}ungranted = \"ask\"\n", manifest_of(&["reach_http"])));
    let differs = Command::in_folder(&folder, &["diff"]).run();
    assert!(format!("{differs:?}").contains("whatever else a person allows when asked"), "{differs:?}");
}

#[test]
fn toolcell_call_asks_on_the_terminal() {
    if !terminal::can_be_had() {
        return;
    }
    let server = HttpServer::start();
    let folder = Folder::with_manifest(&asking("reach_http", ""));
    let arguments = url(&server, "/x").to_string();
    let mut typed = Command::in_folder(&folder, &["call", "http", &arguments]).on_terminal();
    typed.until("Your answer [no]: ");
    typed.type_in("manifest\n");
    let (code, shown) = typed.ended();
    assert_eq!(code, 0, "{shown}");
    assert!(folder.read("toolcell.toml").contains("private = "), "{shown}");
    let unattended = Command::in_folder(&folder, &["call", "http", &url(&server, "/y").to_string()]).run();
    assert!(unattended.stderr.contains("hint: toolcell grant reach_http"), "{unattended:?}");
}
