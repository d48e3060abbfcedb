//! What calls used of their grants is in the audit where the manifest says so. From it the manifest
//! becomes narrower, and each call still works. Requests around the rules show how wide those are.

use serde_json::{Value, json};
use toolcell_tests::loopback::{HttpServer, NameServer, Named, TcpEcho};
use toolcell_tests::{Command, Finished, Folder, TestHost, manifest_of};

use crate::grants::came_to;
use crate::nested::whole;

const AUDIT: &str = "audit.jsonl";

/// A manifest of guests that reach a server, state and other tools, with more grants than they use.
fn manifest(server: &HttpServer) -> String {
    let p = server.port();
    let address = server.address();
    let limits = "\n[defaults.limits]\nfuel = 20_000_000\n";
    let served =
        manifest_of(&["good", "reach_http", "calls"]).replace(limits, "\n[defaults.limits]\nfuel = 2_000_000_000\n");
    format!(
        "{served}calls = [\"e*\"] # some\n\n[audit]\nuses = true\n\n\
         [components.reach_http.network]\n# the API\nhttp = [\n    \"http://127.0.0.1:{p}\", # of Ann\n    \"https://*.example.com\",\n]\n\
         private = [\"{address}\"]\n\n\
         [components.reach_state]\nsource = \"components/reach_state.wasm\"\nkeyvalue = {{}}\n\n\
         [components.reach_settings]\nsource = \"components/reach_settings.wasm\"\nconfig = {{ theme = \"dark\" }}\n"
    )
}

/// A host that has made calls which used some of that.
fn used(server: &HttpServer) -> TestHost {
    let mut host = TestHost::recording(&manifest(server));
    let p = server.port();
    for path in ["/v1/users/ann?secret=1", "/v1/users/bob", "/v1/users/cyd", "/v1/users/dan", "/v1/now"] {
        works(&mut host, "http", json!({"url": format!("http://127.0.0.1:{p}{path}")}));
    }
    assert!(came_to(&host.call("http", json!({"url": "https://elsewhere.example/"}))).is_err());
    works(&mut host, "keyvalue", json!({"op": "set", "key": "a", "value": "b"}));
    works(&mut host, "relay", json!({"tool": "echo", "arguments": {"text": "tea"}}));
    host
}

/// Makes a call whose guest reports success.
fn works(host: &mut TestHost, tool: &str, arguments: Value) {
    let answer = host.call(tool, arguments);
    assert!(answer.structured().get("error").is_none(), "{tool}: {answer:?}");
}

fn uses_of<'r>(records: &'r [Value], tool: &str) -> Vec<&'r Value> {
    let is_end = |record: &&Value| record["event"] == "call.finished" && record["tool"] == tool;
    records.iter().filter(is_end).map(|record| &record["uses"]).collect()
}

fn run(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, arguments).run()
}

/// Moves the beginning of the audit far back, as if the host had served for long.
fn served_for_years(folder: &Folder) {
    let text = folder.read(AUDIT);
    let (first, rest) = text.split_once('\n').unwrap();
    let (before, time) = first.split_once("\"time\":\"").unwrap();
    folder.write(AUDIT, format!("{before}\"time\":\"2020{}\n{rest}", &time[4..]));
}

#[test]
fn the_audit_names_what_a_call_used_only_where_the_manifest_says_so() {
    let server = HttpServer::start();
    let host = used(&server);
    let records = whole(&host);
    let p = server.port();
    let http = uses_of(&records, "http");
    assert_eq!(http[0], &json!([format!("GET http://127.0.0.1:{p}/v1/users/ann")]), "without its query");
    assert_eq!(http[5], &json!([]), "what is denied is not used");
    assert_eq!(uses_of(&records, "keyvalue"), [&json!(["keyvalue"])]);
    assert_eq!(uses_of(&records, "relay"), [&json!(["call echo"])]);
    assert_eq!(uses_of(&records, "echo"), [&json!([])]);
    let silent = manifest(&server).replace("uses = true", "uses = false");
    let mut host = TestHost::recording(&silent);
    works(&mut host, "keyvalue", json!({"op": "set", "key": "a", "value": "b"}));
    assert_eq!(uses_of(&whole(&host), "keyvalue"), [&Value::Null]);
}

#[test]
fn a_call_that_uses_more_than_is_recorded_says_so_and_keeps_its_rules() {
    let server = HttpServer::start();
    let mut host = TestHost::recording(&manifest(&server));
    let p = server.port();
    let each: Vec<Value> = (0..40).map(|number| json!({"url": format!("http://127.0.0.1:{p}/{number}")})).collect();
    works(&mut host, "http_each", json!({"requests": each}));
    let records = whole(&host);
    let end = records.iter().find(|record| record["event"] == "call.finished").unwrap();
    let kept = end["uses"].as_array().map(Vec::len).unwrap();
    let left_out = end["uses_left_out"].as_u64().unwrap();
    assert!(kept == 32 && left_out > 0, "{end}");
    let shown = run(host.folder(), &["policy", "suggest", "--narrow", "--days", "0"]);
    assert_eq!(shown.succeeded(), "");
    let stays = format!("reach_http: http stays as it is: {left_out} uses were not recorded one by one");
    assert!(shown.stderr.contains(&stays), "{}", shown.stderr);
}

#[test]
fn the_manifest_becomes_as_narrow_as_its_calls_and_they_still_work() {
    let server = HttpServer::start();
    let host = used(&server);
    whole(&host);
    let folder = host.folder();
    let p = server.port();
    let young = run(folder, &["policy", "suggest", "--narrow"]);
    assert!(young.failed_with(1).contains("a grant that is used more rarely would seem unused"), "{}", young.stderr);
    assert!(young.stderr.contains("--days 0"), "{}", young.stderr);

    served_for_years(folder);
    let before = folder.read("toolcell.toml");
    let shown = run(folder, &["policy", "suggest", "--narrow"]);
    let difference = shown.succeeded();
    for line in [
        "--- toolcell.toml\n+++ toolcell.toml\n@@ -".to_owned(),
        format!("\n-    \"http://127.0.0.1:{p}\", # of Ann\n-    \"https://*.example.com\",\n"),
        format!("\n+    \"GET http://127.0.0.1:{p}/v1/now\",\n"),
        format!("\n+    \"GET http://127.0.0.1:{p}/v1/users/{{}}\", # of Ann\n"),
        "\n-calls = [\"e*\"] # some\n+calls = [\"echo\"] # some\n".to_owned(),
        "\n # the API\n".to_owned(),
    ] {
        assert!(difference.contains(&line), "{line}\n{difference}");
    }
    assert!(!difference.contains("keyvalue"), "{difference}");
    for said in [
        "not used: reach_http network: https://*.example.com (toolcell.toml:",
        "note: reach_settings: it was not called, so nothing is known of what its tools need\n",
    ] {
        assert!(shown.stderr.contains(said), "{said}\n{}", shown.stderr);
    }
    assert_eq!(folder.read("toolcell.toml"), before, "nothing is written");

    let report = run(folder, &["policy", "suggest", "--narrow", "--json"]).json();
    assert_eq!(report["diff"], difference);
    let unused = report["findings"].as_array().unwrap().iter().filter(|row| row["unused"] == true).count();
    assert_eq!((unused, report["calls"].as_u64()), (1, Some(9)), "{report:#}");

    assert_eq!(run(folder, &["policy", "suggest", "--narrow", "--apply", "--yes"]).code(), 0);
    let again = run(folder, &["policy", "suggest", "--narrow"]);
    assert_eq!(again.succeeded(), "");
    assert!(again.stderr.contains("nothing to narrow"), "{}", again.stderr);
    let text = folder.read("toolcell.toml");
    let mut narrow = TestHost::recording(&text);
    works(&mut narrow, "http", json!({"url": format!("http://127.0.0.1:{p}/v1/users/eve")}));
    works(&mut narrow, "relay", json!({"tool": "echo", "arguments": {"text": "tea"}}));
    let denied = narrow.call("http", json!({"url": format!("http://127.0.0.1:{p}/v2")}));
    assert!(came_to(&denied).unwrap_err().contains("HttpRequestDenied"));
}

#[test]
fn a_name_that_no_tool_has_is_no_use_of_a_star_and_breaks_no_manifest() {
    let server = HttpServer::start();
    let mut host = TestHost::recording(&manifest(&server));
    assert_eq!(host.call("relay", json!({"tool": "ehco", "arguments": {}})).structured()["refused"], "Unknown");
    works(&mut host, "relay", json!({"tool": "echo", "arguments": {"text": "tea"}}));
    assert_eq!(uses_of(&whole(&host), "relay"), [&json!([]), &json!(["call echo"])]);
    let folder = host.folder();
    // An audit of an earlier version has such names.
    let call =
        |used: &str| json!({"time": "2020-01-01T00:00:00Z", "component": "calls", "tool": "relay", "uses": [used]});
    folder.write("uses.jsonl", format!("{}\n", call("call ehco")));
    let narrow = ["policy", "suggest", "--narrow", "--days", "0", "--uses", "uses.jsonl", "--apply", "--yes"];
    let _ = run(folder, &narrow).succeeded();
    assert!(folder.read("toolcell.toml").contains("calls = [\"echo\"] # some"), "{}", folder.read("toolcell.toml"));
    let _ = run(folder, &["check"]).succeeded();
}

#[test]
fn files_and_variables_are_only_known_of_calls_that_name_all_their_uses() {
    let tables = "version = 1\n\n[components.reach_files]\nsource = \"components/reach_files.wasm\"\n\n\
                  [components.reach_files.filesystem]\n\"/data\" = { path = \"data\", access = \"write\", quota = \"1MiB\" }\n\n\
                  [components.reach_files.env]\nUNITS = \"metric\"\nCITY = \"Oslo\"\n";
    let folder = Folder::with_manifest(tables);
    folder.write("data/reports/one.txt", "one");
    let line = |uses: &str| {
        format!(
            "{{\"time\":\"2020-01-01T00:00:00.000000Z\",\"component\":\"reach_files\",\"tool\":\"read\",\"uses\":{uses}}}\n"
        )
    };
    folder.write("uses.jsonl", line("[\"read /data/reports/one.txt\", \"env UNITS\"]"));
    let narrow = ["policy", "suggest", "--narrow", "--uses", "uses.jsonl", "--days", "0"];
    let shown = run(&folder, &narrow);
    let difference = shown.succeeded();
    let mount = "-\"/data\" = { path = \"data\", access = \"write\", quota = \"1MiB\" }\n+\"/data/reports\" = { path = \"data/reports\", access = \"read\" }\n";
    assert!(difference.contains(mount) && difference.contains("-CITY = \"Oslo\"\n"), "{difference}");

    std::fs::rename(folder.path().join("data/reports"), folder.path().join("data/kept")).unwrap();
    std::os::unix::fs::symlink("kept", folder.path().join("data/reports")).unwrap();
    let linked = run(&folder, &narrow);
    assert!(
        linked.succeeded().contains("+\"/data\" = { path = \"data\", access = \"read\" }\n"),
        "a link is not a folder: {}",
        linked.stdout
    );

    folder.write("uses.jsonl", format!("{}what\n", line("[]")));
    assert!(run(&folder, &narrow).failed_with(1).contains("uses.jsonl is not a list of calls: line 2"));
}

#[test]
fn requests_around_each_rule_show_how_wide_it_is() {
    let server = HttpServer::start();
    let host = used(&server);
    whole(&host);
    let folder = host.folder();
    let p = server.port();
    let shown = run(folder, &["policy", "fuzz"]);
    let text = shown.succeeded();
    let rule = format!("\nreach_http http: http://127.0.0.1:{p} (toolcell.toml:");
    assert!(text.contains(&rule) && text.contains("reach_http http: https://*.example.com"), "{text}");
    assert!(text.contains(", not used): "), "{text}");
    let report = run(folder, &["policy", "fuzz", "reach_http", "--json"]).json();
    let rules = report["rules"].as_array().unwrap();
    let widths: Vec<u64> = rules.iter().map(|rule| rule["allowed"].as_u64().unwrap()).collect();
    assert!(widths.is_sorted_by(|one, other| one >= other) && widths[0] > 20, "{widths:?}");
    let of_api = rules.iter().find(|rule| rule["rule"] == format!("http://127.0.0.1:{p}")).unwrap();
    let asked: Vec<&str> =
        of_api["requests"].as_array().unwrap().iter().map(|row| row["ask"].as_str().unwrap()).collect();
    assert!(asked.contains(&format!("DELETE http://127.0.0.1:{p}/v1/now").as_str()), "{asked:?}");
    assert!(!asked.contains(&format!("GET http://127.0.0.1:{p}/v1/now").as_str()), "a call needs it: {asked:?}");
    assert!(asked.iter().all(|asked| asked.contains(&format!(" http://127.0.0.1:{p}/"))), "{asked:?}");

    assert_eq!(run(folder, &["policy", "suggest", "--narrow", "--days", "0", "--apply", "--yes"]).code(), 0);
    let narrow = run(folder, &["policy", "fuzz", "reach_http", "--json"]).json();
    let left: u64 = narrow["rules"].as_array().unwrap().iter().map(|rule| rule["allowed"].as_u64().unwrap()).sum();
    assert!(left < widths.iter().sum::<u64>() / 4, "{narrow:#}");
    let unknown = run(folder, &["policy", "fuzz", "nothing"]);
    assert!(unknown.failed_with(1).contains("toolcell.toml has no component \"nothing\""));
}

#[test]
fn a_connection_is_recorded_by_the_name_that_led_to_it() {
    let names = NameServer::answering(&[("db.example.com", &[Named::at(&["127.0.0.1"])])]);
    let server = TcpEcho::start();
    let p = server.address().port();
    let dns = names.address();
    let served = manifest_of(&["reach_sockets"]);
    let tables = format!(
        "[server]\ndns = [\"{dns}\"]\n\n[audit]\nuses = true\n\n[components.reach_sockets.network]\n\
         tcp = [\"*.example.com:1-65535\", \"127.0.0.9:{p}\"]\nudp = [\"*.example.com:53\"]\n\
         private = [\"127.0.0.1:{p}\", \"127.0.0.9:{p}\"]\n"
    );
    let mut host = TestHost::recording(&format!("{served}\n{tables}"));
    works(&mut host, "tcp", json!({"name": "db.example.com", "port": p, "send": "ping"}));
    let records = whole(&host);
    assert_eq!(uses_of(&records, "tcp"), [&json!(["lookup db.example.com", format!("tcp db.example.com:{p}")])]);
    let shown = run(host.folder(), &["policy", "suggest", "--narrow", "--days", "0"]);
    let difference = shown.succeeded();
    assert!(difference.contains(&format!("\n+tcp = [\"db.example.com:{p}\"]\n")), "{difference}");
    assert!(difference.contains("\n-udp = [\"*.example.com:53\"]\n"), "{difference}");
}
