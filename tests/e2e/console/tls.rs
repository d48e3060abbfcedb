//! The console over TLS, as other machines reach it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustls::version::TLS13;
use toolcell_tests::loopback::Authority;
use toolcell_tests::web::{Ask, Reply, Wire};
use toolcell_tests::{Command, Folder, TestHost, manifest_of, patience};

const CONSOLE: &str =
    "\n[console]\ndecide = true\nhosts = [\"localhost\"]\ncertificate = \"tls.pem\"\nkey = \"tls.key\"\n";

/// The protocols that a browser offers.
const BROWSER: [&str; 2] = ["h2", "http/1.1"];

/// Asks over a connection of its own.
fn ask(address: SocketAddr, authority: &Authority, ask: &Ask) -> Reply {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(patience())).unwrap();
    Wire::over(authority.connect("localhost", stream, &[&TLS13], &BROWSER).unwrap()).ask(ask)
}

#[test]
fn the_cookie_of_a_console_with_tls_never_goes_over_another_connection() {
    let authority = Authority::new();
    let folder = Folder::with_manifest(&format!("{}{CONSOLE}", manifest_of(&["good"])));
    let identity = authority.identity(&["localhost"]);
    folder.write("tls.pem", identity.chain_pem());
    folder.write("tls.key", identity.key_pem());
    let mut host = TestHost::recording_with(folder, &["--console", "127.0.0.1:0"]);
    host.will_say("console at ");
    let said = host.said();
    let link = said.split("console at ").nth(1).unwrap().split(' ').next().unwrap();
    let (address, link) = link.strip_prefix("https://").unwrap().split_once('/').unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let port = address.port();
    let name = format!("localhost:{}", address.port());
    let get = |path: &str| Ask::bare("GET", path).with("host", &name);

    let ask = |request: Ask| ask(address, &authority, &request);
    let entered = ask(get(&format!("/{link}")));
    assert_eq!(entered.status(), 303, "{entered:?}");
    let cookie = entered.field("set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("__Host-toolcell_console_{port}=")), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let page = ask(get("/audit").with("cookie", cookie));
    let page = String::from_utf8(page.body().to_vec()).unwrap();
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();

    let form = |path: &str, origin: &str| {
        let form = Ask::bare("POST", path).with("host", &name).with("cookie", cookie).with("origin", origin);
        form.with("content-type", "application/x-www-form-urlencoded").saying(&format!("csrf={csrf}&call=1"))
    };
    assert_eq!(ask(form("/calls/stop", "https://evil.example")).status(), 403);
    assert_eq!(ask(form("/calls/stop", &format!("https://{name}"))).status(), 303);
    // In the clear it says no word of HTTP.
    let mut plain = TcpStream::connect(address).unwrap();
    let mut said = Vec::new();
    plain.set_read_timeout(Some(patience())).unwrap();
    plain.write_all(&get("/audit").with("cookie", cookie).bytes()).unwrap();
    let _ = plain.read_to_end(&mut said);
    assert!(!String::from_utf8_lossy(&said).contains("HTTP"), "{said:?}");
    host.initialize("2025-11-25");
    host.still_works();
}

#[test]
fn a_console_for_other_machines_needs_tls() {
    let folder = Folder::with_manifest(&format!("{}\n[console]\n", manifest_of(&["good"])));
    let run = Command::in_folder(&folder, &["serve", "--console", "0.0.0.0:0"]).run();
    let said = run.failed_with(1);
    assert!(said.contains("could be reached from other machines, without TLS"), "{said}");
}

#[test]
fn a_console_for_other_machines_needs_operators() {
    let authority = Authority::new();
    for (console, arguments) in [
        (CONSOLE.to_owned(), &["serve", "--console", "0.0.0.0:0"][..]),
        (format!("{CONSOLE}listen = \"0.0.0.0:0\"\n"), &["serve"]),
        (format!("{CONSOLE}operators = []\n"), &["serve", "--console", "[::]:0"]),
    ] {
        let folder = Folder::with_manifest(&format!("{}{console}", manifest_of(&["good"])));
        let identity = authority.identity(&["localhost"]);
        folder.write("tls.pem", identity.chain_pem());
        folder.write("tls.key", identity.key_pem());
        let run = Command::in_folder(&folder, arguments).run();
        assert!(run.stderr.contains("nobody signs in") && run.stderr.contains("operators = "), "{console}: {run:?}");
    }
}
