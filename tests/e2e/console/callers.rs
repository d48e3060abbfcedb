//! The view of callers: rules, tokens with their last use, usage by day, and refused requests of a
//! real server; and a search in it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcell_tests::web::{Ask, Wire};
use toolcell_tests::{Command, Folder, manifest_of};

use super::Operator;
use super::tools::{rows, shown};

const CALLERS: &str = "
[http]
tokens = \"tokens.jsonl\"
[callers.readers]
scopes = [\"read\"]
tools = [\"echo\"]
[callers.writers]
scopes = [\"read\", \"write\"]
tools = [\"add\", \"slow\"]
[callers.ann]
tools = [\"good/*\"]
rate = \"5/s\"
";

#[test]
fn rules_tokens_and_refused_requests_of_a_server_are_shown() {
    let folder = Folder::with_manifest(&format!("{}{CALLERS}\n[console]\ndecide = true\n", manifest_of(&["good"])));
    let token = |arguments: &[&str]| {
        let made = Command::in_folder(&folder, &[&["token", "new"], arguments].concat()).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let ann = token(&["ann"]);
    let tom = token(&["tom", "--scope", "read"]);
    let operator = Operator::deciding(folder, &["--http", "127.0.0.1:0"]);
    let tokens = |page: &str| rows(page, "Tokens (times in UTC)");
    let last_uses = |page: &str| tokens(page).into_iter().map(|row| row[4].clone()).collect::<Vec<_>>();
    let page = operator.page("/callers");
    assert_eq!(last_uses(&page), ["not seen", "not seen"]);
    let of_rule = |name: &str| rows(&page, "Rules of the manifest").into_iter().find(|row| row[0] == name).unwrap();
    let all = operator.page("/tools").split_once(" tools").unwrap().0.rsplit_once('>').unwrap().1.to_owned();
    // Callers of the scope `read` have both rules: each row counts its own.
    for (name, who, tools, now) in [
        ("readers", "scope read", "echo", "1"),
        ("writers", "scope read, scope write", "add, slow", "2"),
        ("ann", "the caller ann", "good/*", all.as_str()),
    ] {
        assert_eq!(of_rule(name)[1..4], [who, tools, now].map(str::to_owned), "{name}");
    }
    assert!(of_rule("ann")[6].contains("5/s") && of_rule("ann")[7].contains("callers.ann"), "{:?}", of_rule("ann"));

    let asks = |token: &str, tool: &str| {
        let ask = Ask::call(tool, json!({"text": "a"})).with("authorization", token);
        Wire::to(operator.host.reached_at()).ask(&ask)
    };
    assert_eq!(asks(&ann, "echo").status(), 200);
    assert_eq!(asks("Bearer toolcell_wrong", "echo").status(), 401);
    assert_eq!((0..2).map(|_| asks(&tom, "says_error").error().0).collect::<Vec<_>>(), [200, 200]);
    let page = operator.page("/callers");
    assert!(last_uses(&page).iter().all(|used| used != "not seen"), "{page}");
    let refused = rows(&page, "Refused in the last hour, grouped");
    let of = |who: &str| {
        refused.iter().find(|row| row[0] == who).unwrap_or_else(|| panic!("{who}: {refused:?}"))[1..4].to_vec()
    };
    assert_eq!(of("tom"), ["hidden_tool \"says_error\": may not call it", "–none", "2"]);
    assert_eq!(of("127.0.0.0/24"), ["unknown_credential: a token that is not known", "401", "1"]);
}

#[test]
fn usage_by_day_is_that_of_the_audit_and_a_search_shows_those_of_a_name() {
    const USAGE: &str = "Calls by caller and day, of the last seven days";
    let folder = Folder::with_manifest(&format!("{}{CALLERS}[console]\n", manifest_of(&["good"])));
    let token = |arguments: &[&str]| {
        let made = Command::in_folder(&folder, &[&["token", "new"], arguments].concat()).run();
        format!("Bearer {}", made.succeeded().trim())
    };
    let ann = token(&["ann"]);
    let tom = token(&["tom", "--scope", "read"]);
    let operator = Operator::deciding(folder, &["--http", "127.0.0.1:0"]);
    let page = operator.page("/callers");
    assert!(page.contains("No call has ended in the last seven days."), "{page}");
    let asks = |token: &str, tool: &str, arguments: Value| {
        Wire::to(operator.host.reached_at()).ask(&Ask::call(tool, arguments).with("authorization", token))
    };
    assert_eq!(asks(&tom, "says_error", json!({})).error().0, 200);
    for (token, text) in [(&tom, json!("a")), (&ann, json!("a")), (&ann, json!("aaaa")), (&ann, json!(5))] {
        assert_eq!(asks(token, "echo", json!({"text": text})).status(), 200);
    }
    let is_last = |record: &Value| record["event"] == "call.finished" && record["outcome"] == "invalid_input";
    let _ = operator.host.recorded("the last end", is_last);

    let audit = Command::in_folder(operator.host.folder(), &["usage", "audit.jsonl", "--json"]).run().json();
    let of_audit = |row: &Value| -> Vec<String> {
        let number = |key: &str| row[key].as_u64().unwrap();
        let texts = ["caller", "day"].map(|key| row[key].as_str().unwrap().to_owned());
        let fuel = shown(number("fuel"), 1_000, &["", "k", "M", "G"]);
        let bytes = shown(number("message_bytes"), 1_024, &["B", "KiB", "MiB"]);
        texts.into_iter().chain(["calls", "failed"].map(|key| number(key).to_string())).chain([fuel, bytes]).collect()
    };
    let audit: BTreeMap<String, Vec<String>> =
        audit.as_array().unwrap().iter().map(of_audit).map(|row| (row[0].clone(), row)).collect();
    assert_eq!([&audit["ann"][2..4], &audit["tom"][2..4]], [["3", "1"], ["1", "0"]]);
    let page = operator.page("/callers");
    assert_eq!(rows(&page, USAGE), [audit["ann"].clone(), audit["tom"].clone()]);

    let firsts =
        |page: &str, caption: &str| rows(page, caption).into_iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    let page = operator.page("/callers?q=Tom");
    for caption in ["Tokens (times in UTC)", USAGE, "Refused in the last hour, grouped"] {
        assert_eq!(firsts(&page, caption), ["tom"], "{caption}");
    }
    assert!(page.contains("value=\"Tom\"") && page.matches("No name matches.").count() == 1, "{page}");
    // Rules are found by whom they hold for as well.
    assert_eq!(firsts(&operator.page("/callers?q=READ"), "Rules of the manifest"), ["readers", "writers"]);
    let page = operator.page("/callers?q=%3Cb%3Enobody");
    assert_eq!(page.matches("No name matches.").count(), 4, "{page}");
    assert!(!page.contains("every caller may call every tool") && !page.contains("<b>nobody"), "{page}");
}

#[test]
fn a_token_ends_after_the_time_of_its_form() {
    let manifest = format!("{}\n[http]\ntokens = \"tokens.jsonl\"\n", manifest_of(&["good"]));
    let operator = Operator::of(&manifest);
    operator.host.folder().write("tokens.jsonl", "");
    let makes = |fields: &str| operator.ask(&operator.form("/callers/tokens/new", fields));
    let wrong = makes("name=ann&expires=soon");
    assert_eq!(wrong.field("location"), Some("/callers"), "{wrong:?}");
    let page = operator.page("/callers");
    assert!(page.contains("is not a token lifetime") && page.contains("or never."), "{page}");
    assert_eq!(operator.host.folder().read("tokens.jsonl"), "");
    for (name, expires) in [("ann", "30d"), ("bob", ""), ("cleo", "never"), ("dan", "1s")] {
        assert_eq!(makes(&format!("name={name}&expires={expires}")).status(), 200, "{name}");
    }
    let written = operator.host.folder().read("tokens.jsonl");
    let entries: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let life = |entry: &Value| Some(entry["expires"].as_u64()? - entry["made"].as_u64()?);
    assert_eq!(entries.iter().map(life).collect::<Vec<_>>(), [Some(30 * 86_400), None, None, Some(1)]);
    let page = operator.page_with("/callers", "<span class=\"chip bad\">ended</span>");
    let ends: Vec<(String, bool)> =
        rows(&page, "Tokens (times in UTC)").into_iter().map(|row| (row[0].clone(), row[3] == "never")).collect();
    let expected = [("ann", false), ("bob", true), ("cleo", true), ("dan ended", false)];
    assert_eq!(ends, expected.map(|(name, never)| (name.to_owned(), never)));
    assert!(operator.page("/").contains("Callers"));
}
