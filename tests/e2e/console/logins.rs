//! Logins and keys of callers in the console: shown to operators, and revoked by those who decide.

use serde_json::json;
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
