//! Requests that the console refuses: they are shown to operators, and recorded together.

use serde_json::Value;
use toolcell_tests::Command;
use toolcell_tests::web::Ask;

use super::good;

#[test]
fn what_the_console_refuses_is_shown_and_recorded() {
    let operator = good();
    let get = |path: &str| operator.get(path).without("cookie");
    let form = operator.form("/calls/stop", "call=1");
    let other = format!("{}={}", operator.cookie.split_once('=').unwrap().0, "0".repeat(64));
    let statuses =
        |asks: &[Ask], status: u16| asks.iter().for_each(|ask| assert_eq!(operator.ask(ask).status(), status));
    let hosts = [operator.get("/").with("host", "evil.example"), form.clone().with("host", "evil.example")];
    let origins = [
        form.clone().with("origin", "http://evil.example"),
        form.clone().with("sec-fetch-site", "same-site"),
        form.clone().saying("call=1"),
        operator.get("/audit/export.csv").with("sec-fetch-site", "same-site").and("sec-fetch-mode", "navigate"),
    ];
    let unknown = [get(&operator.link), get("/enter/x"), get("/").with("cookie", &other)];
    [&hosts[..], &origins, &unknown].into_iter().for_each(|asks| statuses(asks, 403));
    // A visit without a session is none of these, and neither is a malformed request.
    statuses(&[get("/"), get("/audit"), get("/events?view=now")], 403);
    statuses(&[Ask::bare("DELETE", "/").with("host", &operator.address.to_string())], 405);

    let page = operator.page("/callers");
    let row = |reason: &str| {
        let cell = page.split_once(&format!("<bdi>{reason}:")).unwrap_or_else(|| panic!("no {reason}: {page}")).1;
        let cells: Vec<&str> =
            cell.split("<div>").skip(1).take(2).map(|cell| cell.split('<').next().unwrap()).collect();
        format!("{} {}", cells[0], cells[1])
    };
    assert_eq!([row("host"), row("origin"), row("unknown_credential")], ["403 2", "403 4", "403 3"]);
    operator.host.terminate();
    let folder = operator.host.ends_leaving_its_folder();
    let records = folder.read("audit.jsonl");
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let refused = records.filter(|record| record["event"] == "request.refused");
    let mut refused: Vec<_> = refused
        .map(|record| (record["reason"].as_str().unwrap().to_owned(), record["count"].as_u64().unwrap()))
        .collect();
    refused.sort_unstable();
    let expected = [("host", 2), ("origin", 4), ("unknown_credential", 3)];
    assert_eq!(refused, expected.map(|(reason, count)| (reason.to_owned(), count)));
    let _ = Command::in_folder(&folder, &["audit", "verify"]).run().succeeded();
}
