//! Real clients over HTTP, in each mode: list, call, progress, cancellation, and a list that changes under them.

use toolcell_tests::web::WebHost;

use crate::clients::{converse, node_client, python_client};

/// Serves a fixture, and gives the client what it needs to talk with it.
fn arguments(host: &WebHost) -> Vec<String> {
    let manifest = host.process().folder().manifest();
    vec![
        "--url".to_owned(),
        format!("http://{}/mcp", host.address()),
        "--manifest".to_owned(),
        manifest.display().to_string(),
    ]
}

#[test]
fn python_over_http_in_every_mode() {
    for mode in ["legacy", "auto", "2026-07-28"] {
        let host = WebHost::serving(&["good"]);
        converse(python_client("over_http.py").args(arguments(&host)), mode);
    }
}

#[test]
fn typescript_over_http_in_every_mode() {
    for mode in ["legacy", "auto", "2026-07-28"] {
        let host = WebHost::serving(&["good"]);
        converse(node_client("over_http.mjs").args(arguments(&host)), mode);
    }
}
