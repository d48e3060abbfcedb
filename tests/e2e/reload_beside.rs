//! Files next to components that the manifest names and that decide what tools may reach. A change
//! of such a file is a change of the component.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use toolcell_tests::loopback::{Authority, HttpServer};
use toolcell_tests::{Folder, TestHost, manifest_of};

/// A manifest whose tool may send requests to this server. `lines` belong to its tables.
fn manifest(server: &HttpServer, scheme: &str, lines: &str) -> String {
    let address = server.address();
    format!(
        "version = 1\n[components.reach_http]\nsource = \"components/reach_http.wasm\"\n[components.reach_http.network]\n\
         http = [\"{scheme}://{address}\"]\nprivate = [\"{address}\"]\n{lines}"
    )
}

/// Replaces a file in one step with one that only this user may read.
fn put_private(folder: &Folder, relative: &str, text: &str) {
    folder.write("draft", text);
    let draft = folder.path().join("draft");
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(draft, folder.path().join(relative)).unwrap();
}

/// Sends a request to the server and returns the value of this header that the server saw.
fn seen_in_header(host: &mut TestHost, server: &HttpServer, header: &str) -> Vec<String> {
    let answer = host.call("http", json!({"url": server.url("/echo")}));
    assert_eq!(answer.structured()["ok"]["status"], 200, "{}", answer.everything());
    server.seen().last().unwrap().values(header)
}

const SECRET: &str = "[components.reach_http.secrets]\n\
                      TOKEN = { from = \"file:mounted/token\", header = \"X-Token\", for = \"http://{a}\" }\n";

fn with_secret(server: &HttpServer) -> Folder {
    let lines = SECRET.replace("{a}", &server.address().to_string());
    let folder = Folder::with_manifest(&manifest(server, "http", &lines));
    folder.make("mounted");
    folder
}

#[test]
fn a_secret_that_is_replaced_goes_with_the_next_request_and_nobody_is_told_of_a_list() {
    for watch in ["auto", "poll"] {
        let server = HttpServer::start();
        let folder = with_secret(&server);
        put_private(&folder, "mounted/token", "first");
        let mut host = TestHost::recording_with(folder, &["--watch", watch]);
        host.initialize("2025-11-25");
        assert_eq!(seen_in_header(&mut host, &server, "x-token"), ["first"], "{watch}");
        put_private(host.folder(), "mounted/token", "second");
        host.serves_generation(2);
        assert_eq!(seen_in_header(&mut host, &server, "x-token"), ["second"], "{watch}");
        assert_eq!(host.list_changes(), 0, "{watch}");
        let replaced = host.recorded("the reload", |record| record["event"] == "catalog.replaced");
        assert_eq!(replaced["summary"], "files and variables checked again: reach_http");
        assert!(!host.said().contains("second"), "{}", host.said());
    }
}

#[test]
fn secrets_behind_a_link_that_is_swapped_are_looked_at_anew() {
    let server = HttpServer::start();
    let folder = with_secret(&server);
    // The layout of a Kubernetes volume: one link swaps the folder that holds the file.
    for (version, value) in [("mounted/one", "first"), ("mounted/two", "second")] {
        folder.make(version);
        put_private(&folder, &format!("{version}/token"), value);
    }
    folder.link("mounted/..data", "one");
    folder.link("mounted/token", "..data/token");
    let mut host = TestHost::recording_in(folder, &[]);
    assert_eq!(seen_in_header(&mut host, &server, "x-token"), ["first"]);
    host.folder().link("mounted/..data_tmp", "two");
    let mounted = host.folder().path().join("mounted");
    fs::rename(mounted.join("..data_tmp"), mounted.join("..data")).unwrap();
    host.serves_generation(2);
    assert_eq!(seen_in_header(&mut host, &server, "x-token"), ["second"]);
}

#[test]
fn a_secret_that_is_gone_is_said_and_the_old_one_serves_until_there_is_another() {
    let server = HttpServer::start();
    let folder = with_secret(&server);
    put_private(&folder, "mounted/token", "first");
    let mut host = TestHost::recording_in(folder, &[]);
    host.still_answers();
    fs::remove_file(host.folder().path().join("mounted/token")).unwrap();
    host.will_say("not reloaded: component \"reach_http\": the secret \"TOKEN\": mounted/token cannot be read: there is no such file");
    assert_eq!(seen_in_header(&mut host, &server, "x-token"), ["first"]);
    put_private(host.folder(), "mounted/token", "second");
    host.serves_generation(2);
    assert_eq!(seen_in_header(&mut host, &server, "x-token"), ["second"]);
    assert_eq!(host.status()["failed"], Value::Null);
}

#[test]
fn certificates_that_are_replaced_are_trusted_from_the_next_request_on() {
    let ours = Authority::new();
    let other = Authority::new();
    let server = HttpServer::secure(&ours.identity(&["127.0.0.1"]));
    let folder = Folder::with_manifest(&manifest(&server, "https", "ca = [\"ca.pem\"]\n"));
    folder.write("ca.pem", other.pem());
    let mut host = TestHost::recording_in(folder, &[]);
    let url = json!({"url": server.url_as("127.0.0.1", "/echo")});
    let refused = host.call("http", url.clone());
    assert!(refused.structured()["error"].is_string(), "{}", refused.everything());
    host.folder().write("ca.pem", ours.pem());
    host.serves_generation(2);
    assert_eq!(host.call("http", url).structured()["ok"]["status"], 200);
}

/// The WIT text next to `drawings`, which gives its tools their descriptions.
const WIT: &str = include_str!("../fixtures/guests/wit/typed/drawings.wit");

/// A host of `drawings` with that WIT text.
fn described() -> TestHost {
    let folder = Folder::with_manifest(&format!("{}wit = \"wit/\"\n", manifest_of(&["drawings"])));
    folder.write("wit/drawings.wit", WIT);
    let mut host = TestHost::recording_in(folder, &[]);
    host.initialize("2025-11-25");
    host
}

/// The description of one of the tools.
fn said(host: &mut TestHost) -> Value {
    let tools = host.list();
    tools.iter().find(|tool| tool["name"] == "area").unwrap()["description"].clone()
}

#[test]
fn texts_that_are_replaced_are_another_list_over_the_same_code() {
    let mut host = described();
    assert_eq!(said(&mut host), "The area of a shape.");
    host.folder().write("wit/drawings.wit", WIT.replace("The area of a shape.", "How large a shape is."));
    host.serves_generation(2);
    assert_eq!(said(&mut host), "How large a shape is.");
    assert_eq!(host.list_changes(), 1);
}

#[test]
fn texts_that_are_no_wit_any_more_are_said_and_the_old_ones_serve_on() {
    let mut host = described();
    host.folder().write("wit/drawings.wit", WIT.replace("The area of a shape.", "How large.").replace("func(", "fun("));
    host.will_say("not reloaded: component \"drawings\": wit/drawings.wit:");
    assert_eq!(said(&mut host), "The area of a shape.");
    host.folder().write("wit/drawings.wit", WIT.replace("The area of a shape.", "How large."));
    host.serves_generation(2);
    assert_eq!(said(&mut host), "How large.");
    assert_eq!(host.list_changes(), 1);
}

#[test]
fn other_components_are_left_as_they_are() {
    let server = HttpServer::start();
    let folder = with_secret(&server);
    let more = "[components.numbered]\nsource = \"components/numbered.wasm\"\n";
    let manifest = format!("{}{more}", folder.read("toolcell.toml"));
    let folder = Folder::with_manifest(&manifest);
    folder.make("mounted");
    put_private(&folder, "mounted/token", "first");
    let mut host = TestHost::recording_in(folder, &[]);
    host.still_answers();
    put_private(host.folder(), "mounted/token", "second");
    host.serves_generation(2);
    let loaded = |generation: u64| {
        let records = host.audit();
        let of = move |record: &&Value| record["event"] == "component.loaded" && record["generation"] == generation;
        records.iter().filter(of).map(|record| record["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(loaded(1), ["reach_http", "numbered"]);
    assert_eq!(loaded(2), ["reach_http"]);
}
