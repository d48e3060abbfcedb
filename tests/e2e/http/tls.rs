//! TLS: HTTP/1.1 and HTTP/2 by what the client offers, and another certificate without a restart. And Unix sockets.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::json;
use toolcell_tests::web::{Ask, WebHost};
use toolcell_tests::{Folder, manifest_of};

#[test]
fn a_unix_socket_is_served_and_removed_at_the_end() {
    let folder = Folder::with_manifest(&format!(
        "{}\n[http]\nlisten = [\"127.0.0.1:0\", \"unix:web.sock\"]\n",
        manifest_of(&["good"])
    ));
    let host = WebHost::in_folder(folder, &["--http"]);
    let path = host.process().folder().path().join("web.sock");
    host.process().will_say("web.sock");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "only this user may ask");
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&Ask::call("echo", json!({"text": "over a file"})).with("connection", "close").bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.contains("over a file"), "{reply}");
    host.process().terminate();
    assert!(host.into_process().ends().status.success());
    assert!(!path.exists());
}
