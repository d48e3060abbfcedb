//! Results of scripts that are longer than an answer may be: they are read in pages, by the client
//! that called and by nobody else.
//!
//! Promise: embedded resources are read by their receiver alone.
//! Promise: kept resources are bounded.

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Answer, Command, Folder, TestHost, manifest_of};

/// `good`, and scripts whose answers have at most 8 KiB.
fn manifest(more: &str) -> String {
    let limits = "[code.limits]\nfuel = 10_000_000_000\nmemory = \"64MiB\"\noutput = \"8KiB\"\ndeadline = \"1m\"\n";
    format!("{}\n[code]\ncalls = ['echo']\n{limits}{more}", manifest_of(&["good"]))
}

/// A list that is 200 KB of JSON, with characters of several bytes.
const LONG: &str = "return Array.from({length: 5000}, (_, i) => ({row: i, text: 'é'.repeat(10)}))";

fn long() -> String {
    let rows: Vec<String> =
        (0..5_000).map(|row| format!("{{\"row\":{row},\"text\":\"{}\"}}", "é".repeat(10))).collect();
    format!("[{}]", rows.join(","))
}

/// The addresses of the pages that an answer names.
fn pages(answer: &Answer, what: &str) -> Vec<String> {
    let kept = &answer.structured()["kept"][what];
    let uri = kept["uri"].as_str().unwrap_or_else(|| panic!("no {what} is kept: {}", answer.everything()));
    let beginning = uri.strip_suffix('1').unwrap();
    (1..=kept["pages"].as_u64().unwrap()).map(|page| format!("{beginning}{page}")).collect()
}

fn page(reply: &Value) -> String {
    let contents = &reply["result"]["contents"];
    assert_eq!(contents[0]["mimeType"], "text/plain", "{reply}");
    contents[0]["text"].as_str().unwrap().to_owned()
}

fn read(host: &mut TestHost, uris: &[String]) -> String {
    uris.iter().map(|uri| page(&host.request("resources/read", json!({"uri": uri})))).collect()
}

#[test]
fn a_long_result_and_a_long_console_are_read_in_pages_however_tools_are_listed() {
    for discovery in ["list", "search"] {
        let mut host = TestHost::recording(&manifest(&format!("[server]\ndiscovery = \"{discovery}\"\n")));
        let answer = host.call("run_code", json!({"code": format!("console.log('made'); {LONG}")}));
        let structured = answer.structured();
        assert_eq!((&structured["result"], &structured["console"]), (&Value::Null, &json!("made")));
        assert_eq!(structured["kept"]["result"]["bytes"], long().len());
        let uris = pages(&answer, "result");
        assert_eq!(uris.len(), long().len().div_ceil(64 << 10), "{discovery}");
        assert_eq!(read(&mut host, &uris), long());
        let content = answer.result()["content"].as_array().unwrap();
        let text = content[0]["text"].as_str().unwrap();
        let bytes = long().len();
        assert!(
            text.starts_with(&format!(
                "The result has {}_{:03} bytes, more than the 8KiB",
                bytes / 1_000,
                bytes % 1_000
            )),
            "{text}"
        );
        assert!(text.contains("resources/read") && text.contains(&uris[0]) && text.contains("[{\"row\":0,"), "{text}");
        let link = content.iter().find(|item| item["type"] == "resource_link").unwrap();
        assert_eq!((&link["uri"], &link["size"]), (&json!(uris[0]), &json!(64 << 10)));
        assert!(answer.everything().len() < 8 << 10, "{}", answer.everything().len());
        let listed = host.request("resources/list", json!({}));
        let listed = listed["result"]["resources"].as_array().unwrap().iter().map(|one| one["uri"].clone());
        assert_eq!(listed.collect::<Vec<_>>(), uris.iter().map(|uri| json!(uri)).collect::<Vec<_>>());
        // The console alone: the result stays where it was.
        let code = "for (let i = 0; i < 3000; i++) console.log('line', i); return {done: true}";
        let answer = host.call("run_code", json!({"code": code}));
        assert_eq!(answer.structured()["result"], json!({"done": true}));
        let lines: Vec<String> = (0..3_000).map(|line| format!("line {line}")).collect();
        assert_eq!(read(&mut host, &pages(&answer, "console")), lines.join("\n"));
    }
}

#[test]
fn what_is_short_enough_comes_whole_and_what_is_too_long_says_so() {
    let mut host = TestHost::recording(&manifest(""));
    let answer = host.call("run_code", json!({"code": "return 'x'.repeat(3000)"}));
    assert_eq!(answer.structured(), &json!({"result": "x".repeat(3_000)}));
    let answer = host.call("run_code", json!({"code": "return 'x'.repeat(4.5 * 1024 * 1024)"}));
    assert_eq!(answer.error_text(), "the result is larger than 4MiB (limit \"output\")");
    // The oldest of one client make room for new ones.
    let code = json!({"code": "return 'x'.repeat(3.5 * 1024 * 1024)"});
    let all: Vec<Vec<String>> = (0..3).map(|_| pages(&host.call("run_code", code.clone()), "result")).collect();
    let first = host.request("resources/read", json!({"uri": all[0][0]}));
    assert_eq!(first["error"]["code"], -32602, "{first}");
    for uris in &all[1..] {
        assert_eq!(read(&mut host, uris).len(), 7 << 19);
    }
}

#[test]
fn nobody_else_reads_the_pages_and_where_none_are_kept_the_script_is_told() {
    let folder = Folder::with_manifest(&manifest("[http]\ntokens = \"tokens.jsonl\"\n"));
    let bearer = |name: &str| {
        let made = Command::in_folder(&folder, &["token", "new", name]).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let ann = bearer("ann");
    let bob = bearer("bob");
    let host = WebHost::in_folder(folder.clone(), &["--http", "127.0.0.1:0"]);
    let run = Ask::call("run_code", json!({"code": LONG}));
    let uris = pages(&Answer::new(host.ask(&run.clone().with("authorization", &ann)).frame()), "result");
    let read = |uri: &str, token: &str| {
        let ask = Ask::modern(3, "resources/read", json!({"uri": uri})).with("mcp-name", uri);
        host.ask(&ask.with("authorization", token))
    };
    let text: String = uris.iter().map(|uri| page(&read(uri, &ann).frame())).collect();
    assert_eq!(text, long());
    assert_eq!(read(&uris[0], &bob).error(), (200, -32602));
    let list = Ask::modern(4, "resources/list", json!({})).with("authorization", &bob);
    assert_eq!(host.ask(&list).frame()["result"]["resources"], json!([]));
    // Who is not told from others has nothing kept.
    let open = WebHost::with_manifest(&manifest(""));
    let answer = Answer::new(open.ask(&run).frame());
    let text = "the result is larger than 8KiB (limit \"output\"), and nothing is kept for this client: return less";
    assert_eq!(answer.error_text(), text);
}
