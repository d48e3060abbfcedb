//! Logins and keys of callers in the console: shown to operators, and revoked by those who decide.

use serde_json::{Value, json};
use toolcell_tests::{Command, Folder, manifest_of};

use super::Operator;
use super::tools::rows;

const KEY: &str = "
[components.reach_http.network]
http = [\"https://weather.example.com\"]
[components.reach_http.secrets]
KEY = { from = \"caller:weather\", header = \"X-Key\", for = \"https://weather.example.com\" }
[console]
decide = true
";

#[test]
fn an_operator_sees_whose_keys_there_are_and_revokes_one() {
    let folder = Folder::with_manifest(&format!("{}{KEY}", manifest_of(&["good", "reach_http"])));
    for caller in ["ann", "bob"] {
        let set = Command::in_folder(&folder, &["logins", "set", "weather", "--caller", caller]);
        let _ = set.with_input("a-key-of-a-caller\n").run().succeeded();
    }
    let operator = Operator::deciding(folder, &[]);
    let shown = |page: &str| rows(page, "Logins that callers have of their own");
    let page = operator.page("/callers");
    let callers: Vec<String> = shown(&page).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(callers, ["ann", "bob"]);
    assert!(!page.contains("a-key-of-a-caller"), "{page}");
    let page = operator.decides("/callers/logins/revoke", "login=weather&name=bob");
    assert_eq!(shown(&page).len(), 1, "{page}");
    let revoked = operator.host.recorded("an end", |record| record["event"] == "login.changed");
    assert_eq!(
        (&revoked["change"], &revoked["by"], &revoked["caller"]),
        (&json!("revoked"), &json!("operator"), &json!("bob"))
    );
    let _ = operator.decided("revoke");
}

#[test]
fn a_caller_whose_last_token_is_revoked_keeps_no_login() {
    let http = "[http]\ntokens = \"tokens.jsonl\"\n";
    let folder = Folder::with_manifest(&format!("{}{KEY}{http}", manifest_of(&["good", "reach_http"])));
    for caller in ["ann", "bob"] {
        let _ = Command::in_folder(&folder, &["token", "new", caller]).run().succeeded();
        let set = Command::in_folder(&folder, &["logins", "set", "weather", "--caller", caller]);
        let _ = set.with_input("a-key-of-a-caller\n").run().succeeded();
    }
    let operator = Operator::deciding(folder, &[]);
    let tokens = operator.host.folder().read("tokens.jsonl");
    let entry: Value = serde_json::from_str(tokens.lines().next().unwrap()).unwrap();
    let id = &entry["hash"].as_str().unwrap()["sha256:".len()..][..16];
    let _ = operator.decides("/callers/tokens/revoke", &format!("id={id}"));
    let revoked = operator.host.recorded("an end", |record| record["event"] == "login.changed");
    let caller = revoked["caller"].as_str().unwrap();
    assert!(["ann", "bob"].contains(&caller) && revoked["by"] == "server", "{revoked}");
    let left = rows(&operator.page("/callers"), "Logins that callers have of their own");
    assert!(left.len() == 1 && left[0][0] != caller, "{left:?}");
}
