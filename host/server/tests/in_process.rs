//! The server as a library, in process: tests start it, send requests and stop it without the
//! binary.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::expect_used)]
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use toolcell_mcp::stdio::StdioEnd;
use toolcell_policy::ListenAddress;
use toolcell_server::control::ControlSocket;
use toolcell_server::http::HttpAddress;
use toolcell_server::machine::GuestRunners;
use toolcell_server::{
    CodeCacheOptions, ManifestFile, OpenOptions, Ready, Running, Server, ServerOptions, StartError, TransportOptions,
};
use toolcell_walls::process::Command;

/// A component with one function, which is its tool.
const ANSWERS: &str = r#"(component
    (core module $module (func (export "answer") (result i32) (i32.const 42)))
    (core instance $instance (instantiate $module))
    (func (export "answer") (result u32) (canon lift (core func $instance "answer"))))"#;

/// Its manifest: this program does not start itself as a sandbox process.
const MANIFEST: &str = "version = 1\n[server]\nwalls = \"none\"\n[components.answers]\nsource = \"answers.wasm\"\n";

/// Guests run in threads of this program.
fn guests() -> GuestRunners {
    GuestRunners { process: None, threads: Some(toolcell_guest::sandbox_threads), relay: None }
}

fn opened(folder: &tempfile::TempDir) -> Ready {
    let manifest = folder.path().join("toolcell.toml");
    std::fs::write(folder.path().join("answers.wasm"), wat::parse_str(ANSWERS).unwrap()).unwrap();
    std::fs::write(&manifest, MANIFEST).unwrap();
    let code = CodeCacheOptions { off: true, ..CodeCacheOptions::default() };
    let opened = ManifestFile::read(&manifest)
        .unwrap()
        .open(&OpenOptions { code, guests: guests(), ..OpenOptions::default() })
        .unwrap();
    opened.ready.expect("nothing is wrong with the manifest")
}

fn started(folder: &tempfile::TempDir, address: &str) -> Result<Running, StartError> {
    let address = HttpAddress::At(ListenAddress::parse(address).unwrap());
    let transport = TransportOptions::Http(address);
    let options = ServerOptions { transport, control: ControlSocket::Off, ..ServerOptions::default() };
    Server::start(opened(folder), options)
}

/// The answer to one modern request.
fn ask(endpoint: &str, method: &str, mut params: Value) -> Value {
    let revision = "2026-07-28";
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "in_process", "version": "1"},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let name = params["name"].as_str().map_or(String::new(), |name| format!("mcp-name: {name}\r\n"));
    let address = endpoint.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, \
         text/event-stream\r\nmcp-protocol-version: {revision}\r\nmcp-method: {method}\r\n{name}content-length: \
         {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let object =
        answer.split_once("\r\n\r\n").and_then(|(_, body)| body.find('{').zip(body.rfind('}')).zip(Some(body)));
    let ((from, to), body) = object.unwrap_or_else(|| panic!("no object in {answer:?}"));
    serde_json::from_str(&body[from..=to]).unwrap_or_else(|error| panic!("{error} in {answer:?}"))
}

#[test]
fn a_program_serves_a_manifest_and_stops_it() {
    let folder = tempfile::tempdir().unwrap();
    let running = started(&folder, "127.0.0.1:0").unwrap();
    let endpoint = running.endpoints().first().unwrap().clone();
    let stop = running.stopper();
    let orders = running.orders().clone();
    let serving = std::thread::spawn(move || running.serve());
    let called = ask(&endpoint, "tools/call", json!({"name": "answer", "arguments": {}}));
    assert_eq!(called["result"]["structuredContent"], json!({"result": 42}), "{called}");
    // The server reloads to another manifest.
    let other = format!("{MANIFEST}prefix = \"my_\"\n");
    std::fs::write(folder.path().join("toolcell.toml"), other).unwrap();
    let outcome = orders.ask().unwrap().blocking_recv().unwrap();
    assert!(!matches!(outcome, toolcell_server::reload::ReloadOutcome::Failed(_)), "{outcome:?}");
    let listed = ask(&endpoint, "tools/list", json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "my_answer", "{listed}");
    stop();
    assert_eq!(serving.join().unwrap().unwrap(), StdioEnd::Shutdown);
}

#[test]
fn where_no_sandbox_process_starts_the_machine_is_at_fault_and_no_guest_runs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("answers.wasm"), wat::parse_str(ANSWERS).unwrap()).unwrap();
    let manifest = folder.path().join("toolcell.toml");
    for walls in ["best", "required"] {
        std::fs::write(&manifest, MANIFEST.replace("none", walls)).unwrap();
        let code = CodeCacheOptions { off: true, ..CodeCacheOptions::default() };
        let guests = GuestRunners { process: Some(Command::program("/nowhere/at/all")), ..guests() };
        let options = OpenOptions { code, guests, ..OpenOptions::default() };
        let refused = ManifestFile::read(&manifest).unwrap().open(&options).err();
        assert!(
            matches!(refused, Some(StartError::Machine { step: "cannot start a sandbox process", .. })),
            "{walls}: {refused:?}"
        );
    }
}

#[test]
fn a_wrong_option_is_told_from_a_broken_machine() {
    let folder = tempfile::tempdir().unwrap();
    let Err(StartError::Refused { message, hint }) = started(&folder, "0.0.0.0:0") else {
        panic!("anyone could call the tools")
    };
    assert!(message.contains("can be reached from other machines"), "{message}");
    assert!(hint.is_some_and(|hint| hint.contains("toolcell token new")));
}
