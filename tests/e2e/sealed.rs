//! Sealed by default: a component without grants finds nothing, and learns nothing about the host.
//!
//! Promise: nothing of the machine is there.
//! Promise: errors tell nothing of the host.

use std::net::{TcpListener, UdpSocket};

use serde_json::{Value, json};
use toolcell_tests::{TestHost, manifest_of};

#[test]
fn there_is_no_environment_no_argument_no_input_no_terminal_and_no_folder() {
    // The host itself has a secret in its environment, and files next to its manifest.
    let mut host = TestHost::serving(&["good", "nosy"]);
    let rows: [(&str, &str); 6] = [
        ("environment", "0 variables"),
        ("argv", "0 arguments"),
        ("stdin", "std: Ok(0), wasi: Err(StreamError::Closed)"),
        ("working_folder", "None"),
        ("preopens", "0 folders"),
        ("terminals", "0 terminals"),
    ];
    for (tool, found) in rows {
        assert_eq!(host.call(tool, json!({})).text(), found, "{tool}");
    }
    host.still_works();
}

#[test]
fn no_file_can_be_opened_by_any_path() {
    let host = TestHost::serving(&["good", "nosy"]);
    host.folder().write("secret.txt", "the secret");
    let own = host.folder().path().join("secret.txt").to_string_lossy().into_owned();
    let mut host = host;
    for path in ["/etc/passwd", "secret.txt", "./secret.txt", "../../etc/passwd", "/", ".", "/proc/self/environ", &own]
    {
        for tool in ["read_file", "read_folder"] {
            let answer = host.call(tool, json!({"path": path}));
            assert!(answer.text().starts_with("refused: "), "{tool} {path}: {}", answer.text());
        }
    }
    for path in ["/tmp/toolcell-was-here", "was-here", &own] {
        let answer = host.call("write_file", json!({"path": path}));
        assert!(answer.text().starts_with("refused: "), "write_file {path}: {}", answer.text());
    }
    assert_eq!(std::fs::read_to_string(own).unwrap(), "the secret");
    assert!(!std::path::Path::new("/tmp/toolcell-was-here").exists());
    host.still_works();
}

#[test]
fn nothing_listens_for_a_guest_and_no_guest_connects() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let tcp_port = tcp.local_addr().unwrap().port();
    let udp_port = udp.local_addr().unwrap().port();
    let mut host = TestHost::serving(&["good", "nosy"]);
    let rows: [(&str, Value); 5] = [
        ("tcp_connect", json!({"port": tcp_port})),
        ("raw_tcp", json!({"port": tcp_port})),
        ("tcp_listen", json!({})),
        ("udp_send", json!({"port": udp_port})),
        ("raw_udp", json!({})),
    ];
    for (tool, arguments) in rows {
        let answer = host.call(tool, arguments);
        assert!(answer.text().starts_with("refused: "), "{tool}: {}", answer.text());
    }
    tcp.set_nonblocking(true).unwrap();
    assert_eq!(tcp.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "somebody connected");
    udp.set_nonblocking(true).unwrap();
    assert_eq!(udp.recv(&mut [0; 8]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "somebody sent");
    host.still_works();
}

#[test]
fn no_name_is_looked_up() {
    let mut host = TestHost::serving(&["good", "nosy"]);
    for name in ["localhost", "example.com", "127.0.0.1"] {
        let answer = host.call("lookup", json!({"host": name}));
        assert!(answer.text().starts_with("refused: "), "{name}: {}", answer.text());
    }
    host.still_works();
}

#[test]
fn clocks_and_random_bytes_are_there() {
    let mut host = TestHost::serving(&["good"]);
    let read = host.call("clocks", json!({})).structured().clone();
    assert_eq!(read["monotonic_grows"], true);
    assert_eq!(read["random_bytes"], 32);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(read["wall_seconds"].as_u64().unwrap().abs_diff(now) < 60, "{read}");
}

#[test]
fn an_error_names_nothing_of_the_host() {
    let fixtures = ["good", "loops", "hungry", "quitter", "nosy", "result_outside"];
    let mut host = TestHost::with_manifest(&manifest_of(&fixtures));
    let folder = host.folder().path().to_string_lossy().into_owned();
    for tool in ["panic", "trap", "recurse", "grow_steadily", "spin", "exit", "run"] {
        let answer = host.call(tool, json!({}));
        let text = answer.error_text();
        for secret in [folder.as_str(), "0x", ".rs", ".wasm", "wasmtime", "backtrace", "/"] {
            assert!(!text.contains(secret), "{tool} tells {secret:?}: {text}");
        }
    }
}
