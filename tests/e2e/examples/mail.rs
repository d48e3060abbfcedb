//! `mail` against a real mail server (aiosmtpd) with TLS and a login, and against servers that do
//! not behave.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use toolcell_tests::loopback::{Authority, NameServer, Named};
use toolcell_tests::{Answer, Folder, TestHost};

use super::{error_of, folder};
use crate::clients::python_client;

/// The password of the server's only user. It appears nowhere by chance.
const PASSWORD: &str = "s3cr3t-8d1f7c2a94";

const HOST: &str = "mail.example";

/// A running mail server. Dropping this ends it.
struct MailServer {
    child: Child,
    lines: BufReader<ChildStdout>,
    port: u16,
    ca: String,
}

impl MailServer {
    fn start(options: &[&str]) -> Self {
        let files = Folder::with_manifest("");
        let ca = files.path().join("ca.pem");
        let mut child = python_client("mail_server.py")
            .into_std()
            .arg("--ca")
            .arg(&ca)
            .args(options)
            .env("SMTP_PASSWORD", PASSWORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let first = event(&mut lines);
        let port = first["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap();
        Self { child, lines, port, ca: files.read("ca.pem") }
    }

    /// Ends the server. Returns the number of connections, and the messages that it took.
    fn ends(mut self) -> (usize, Vec<Value>) {
        drop(self.child.stdin.take());
        let mut connections = 0;
        let mut messages = Vec::new();
        loop {
            let event = event(&mut self.lines);
            match () {
                () if event["end"] == true => return (connections, messages),
                () if event["connected"] == true => connections += 1,
                () => messages.push(event),
            }
        }
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn event(lines: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("the mail server ended: {error}: {line:?}"))
}

/// The text of a message.
fn text_of(message: &Value) -> String {
    String::from_utf8(STANDARD.decode(message["data"].as_str().unwrap()).unwrap()).unwrap()
}

/// The names that the tool's host is found by.
fn names() -> NameServer {
    NameServer::answering(&[(HOST, &[Named::at(&["127.0.0.1"])])])
}

/// The example's manifest for a server at this port, with these further changes.
fn staged(names: &NameServer, port: u16, ca: &str, changes: &[(&str, &str)]) -> Folder {
    let server = format!("[server]\ndns = [\"{}\"]", names.address());
    let host = format!("{HOST}:{port}");
    let tables = "[components.mail.filesystem]\n\"/tls\" = { path = \"tls\" }\n\n\
                  [components.mail.network]\nprivate = [\"127.0.0.1\"]";
    let port = format!("\"{port}\"");
    let always = [
        ("[server]", server.as_str()),
        ("[components.mail.network]", tables),
        ("[components.mail.env]", "[components.mail.env]\nCA_FILE = \"/tls/ca.pem\""),
        ("smtp.example.com:587", &host),
        ("smtp.example.com", HOST),
        ("\"587\"", &port),
    ];
    let made = folder("mail", &[&always[..], changes].concat());
    made.write("tls/ca.pem", ca);
    made
}

const UNASKED: (&str, &str) = ("approval = \"destructive\"", "approval = \"never\"");

fn serving(folder: Folder) -> TestHost {
    TestHost::recording_in(folder, &[("SMTP_PASSWORD", PASSWORD)])
}

fn send(host: &mut TestHost, to: &[&str], subject: &str, body: &str) -> Answer {
    host.call("send_email", json!({"to": to, "subject": subject, "body": body}))
}

fn plain(host: &mut TestHost) -> Answer {
    send(host, &["a@example.com"], "Tea", "Hello.")
}

#[test]
fn a_message_arrives_as_it_was_written() {
    for options in [&["--tls", "starttls", "--key", "ec"][..], &["--tls", "implicit", "--key", "rsa"]] {
        let server = MailServer::start(options);
        let names = names();
        let security = ("\"starttls\"", if options[1] == "implicit" { "\"implicit\"" } else { "\"starttls\"" });
        let mut host = serving(staged(&names, server.port, &server.ca, &[UNASKED, security]));
        let body = "Grüße,\r\n.\n..dots\nMAIL FROM:<x@example.org>\r.\rend \n";
        let answer = send(&mut host, &["a@example.com", "B.c@Example.COM"], "Grüße: 5 €", body);
        let id = answer.structured()["message_id"].as_str().unwrap().to_owned();
        let (connections, messages) = server.ends();
        let [message] = &messages[..] else { panic!("one message was expected: {messages:?}") };
        assert_eq!(connections, 1);
        assert_eq!(message["sender"], "tools@example.com");
        assert_eq!(message["recipients"], json!(["a@example.com", "B.c@example.com"]));
        assert_eq!((&message["login"], &message["hello"]), (&json!(true), &json!("[127.0.0.1]")));
        let text = text_of(message);
        let (date, rest) = text.split_once("\r\n").unwrap();
        assert!(date.starts_with("Date: ") && date.ends_with(" +0000"), "{date}");
        let expected = format!(
            "From: Tools\r\n <tools@example.com>\r\nTo: a@example.com,\r\n B.c@example.com\r\nMessage-ID: <{id}>\r\n\
             Subject: =?utf-8?B?R3LDvMOfZTogNSDigqw=?=\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Transfer-Encoding: quoted-printable\r\n\r\n\
             Gr=C3=BC=C3=9Fe,\r\n.\r\n..dots\r\nMAIL FROM:<x@example.org>\r\n.\r\nend=20\r\n"
        );
        assert_eq!(rest, expected, "{options:?}");
    }
}

#[test]
fn nothing_is_sent_before_a_person_agreed() {
    let server = MailServer::start(&[]);
    let names = names();
    let mut host = serving(staged(&names, server.port, &server.ca, &[]));
    host.initialize_declaring("2025-11-25", json!({"elicitation": {}}));
    for (action, is_sent) in [("decline", false), ("cancel", false), ("accept", true)] {
        let arguments = json!({"to": ["a@example.com"], "subject": action, "body": "The text."});
        let id = host.start_call("send_email", arguments);
        let asked = host.next_of("elicitation/create");
        let message = asked["params"]["message"].as_str().unwrap();
        for part in ["\"send_email\"", "a@example.com", action, "The text."] {
            assert!(message.contains(part), "{part} is not in {message}");
        }
        host.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action, "content": {}}}));
        assert_eq!(host.answer_to(&id).is_error(), !is_sent, "{action}");
    }
    let (connections, messages) = server.ends();
    assert_eq!((connections, messages.len()), (1, 1));
    assert!(text_of(&messages[0]).contains("\r\nSubject: accept\r\n"));
}

#[test]
fn recipients_are_those_that_the_manifest_names() {
    let server = MailServer::start(&[]);
    let names = names();
    let mut host = serving(staged(&names, server.port, &server.ca, &[UNASKED]));
    for to in [&["a@example.org"][..], &["a@example.com", "b@sub.example.com"], &["a@example.com.evil.example"]] {
        let answer = send(&mut host, to, "x", "x");
        let said = error_of(&answer);
        assert!(
            said.starts_with("nothing may be sent to") && said.contains("the manifest allows *@example.com"),
            "{said}"
        );
    }
    // Whom the server does not know stops the whole message.
    let answer = send(&mut host, &["a@example.com", "refused@example.com"], "x", "x");
    assert_eq!(error_of(&answer), "the server refused the recipient refused@example.com: 550 5.1.1 no such user here");
    let (connections, messages) = server.ends();
    assert_eq!((connections, messages.len()), (1, 0), "{messages:?}");
    let folder = staged(&names, 1, "", &[UNASKED, ("ALLOWED_RECIPIENTS = \"*@example.com\"", "")]);
    let answer = plain(&mut serving(folder));
    assert!(error_of(&answer).contains("the manifest allows nobody"), "{}", answer.everything());
}

#[test]
fn what_would_be_more_than_an_address_or_a_line_is_refused() {
    let server = MailServer::start(&[]);
    let names = names();
    let mut host = serving(staged(&names, server.port, &server.ca, &[UNASKED]));
    for to in [
        "a@example.com\r\nRCPT TO:<x@example.org>",
        "a@example.com>\r\nDATA",
        "x@example.org,a@example.com",
        "<x@example.org> a@example.com",
        "a\n@example.com",
        "a@example.com ",
        "\"x@example.org\"@example.com",
        "a@[127.0.0.1]",
        "ä@example.com",
    ] {
        let answer = send(&mut host, &[to], "x", "x");
        assert!(
            error_of(&answer).contains("is not an address that this tool accepts"),
            "{to:?}: {}",
            answer.everything()
        );
    }
    for subject in ["x\r\nBcc: y@example.org", "x\ny", "x\ry", "x\u{2028}y", "\u{0}"] {
        let answer = send(&mut host, &["a@example.com"], subject, "x");
        assert!(error_of(&answer).contains("the subject is one line"), "{subject:?}: {}", answer.everything());
    }
    assert_eq!(server.ends(), (0, Vec::new()));
}

#[test]
fn a_certificate_that_is_not_the_servers_or_of_nobody_known_is_refused() {
    let names = names();
    let stranger = MailServer::start(&["--name", "other.example"]);
    let other = MailServer::start(&[]);
    for (port, ca, said) in [
        (
            stranger.port,
            &stranger.ca,
            "TLS with mail.example: invalid peer certificate: certificate not valid for name",
        ),
        (other.port, &stranger.ca, "TLS with mail.example: invalid peer certificate: UnknownIssuer"),
    ] {
        let answer = plain(&mut serving(staged(&names, port, ca, &[UNASKED])));
        assert!(error_of(&answer).starts_with(said), "{}", answer.everything());
    }
    // Mozilla's roots, where no file is named.
    let usual = [UNASKED, ("CA_FILE = \"/tls/ca.pem\"\n", "")];
    let answer = plain(&mut serving(staged(&names, other.port, &other.ca, &usual)));
    assert!(error_of(&answer).contains("UnknownIssuer"), "{}", answer.everything());
    assert_eq!((stranger.ends().1, other.ends().1), (Vec::new(), Vec::new()));
}

#[test]
fn nothing_is_sent_without_tls() {
    let server = MailServer::start(&["--tls", "none"]);
    let names = names();
    let answer = plain(&mut serving(staged(&names, server.port, &server.ca, &[UNASKED])));
    assert_eq!(error_of(&answer), "the server offers no TLS here (STARTTLS), and nothing is sent without");
    assert_eq!(server.ends(), (1, Vec::new()));
}

#[test]
fn the_password_is_in_no_answer_and_no_record() {
    let server = MailServer::start(&["--echo"]);
    let names = names();
    let mut host = serving(staged(&names, server.port, &server.ca, &[UNASKED]));
    let answer = plain(&mut host);
    assert_eq!(answer.structured()["server_said"], "2.0.0 taken, [redacted:SMTP_PASSWORD]");
    let _ = host.recorded("the call", |record| record["event"] == "call.finished");
    let texts = [answer.everything(), host.said(), host.folder().read("audit.jsonl")];
    assert!(texts.iter().all(|text| !text.contains(PASSWORD)), "{texts:?}");
    let folder = staged(&names, server.port, &server.ca, &[UNASKED]);
    let answer = plain(&mut TestHost::recording_in(folder, &[("SMTP_PASSWORD", "another-password")]));
    assert_eq!(error_of(&answer), "the server refused the login: 535 5.7.8 Authentication credentials invalid");
    assert!(!answer.everything().contains("another-password"));
}

#[test]
fn a_message_that_is_too_long_for_the_server_is_told_so() {
    let server = MailServer::start(&[]);
    let names = names();
    let mut host = serving(staged(&names, server.port, &server.ca, &[UNASKED]));
    let answer = send(&mut host, &["a@example.com"], "long", &"é".repeat(100_000));
    assert!(error_of(&answer).starts_with("the server refused the message: 552"), "{}", answer.everything());
    assert!(!plain(&mut host).is_error());
}

#[test]
fn only_the_port_of_the_rule_is_connected_to() {
    let server = MailServer::start(&[]);
    let names = names();
    let rule = format!("tcp = [\"{HOST}:{}\"]", server.port);
    let mut host = serving(staged(&names, server.port, &server.ca, &[UNASKED, (&rule, "tcp = [\"mail.example:1\"]")]));
    let answer = plain(&mut host);
    assert!(error_of(&answer).contains("cannot be connected to"), "{}", answer.everything());
    assert!(answer.everything().contains("denied: tcp 127.0.0.1:"), "{}", answer.everything());
    assert_eq!(server.ends(), (0, Vec::new()));
}

/// A server that says this to everybody at once, and then nothing. Gives its port, and the bytes
/// that its first client sent until it went.
fn saying(text: String) -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, hears) = channel();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        // The client may go at any time.
        drop(client.write_all(text.as_bytes()));
        drop(client.read_to_end(&mut bytes));
        drop(heard.send(bytes));
    });
    (port, hears)
}

#[test]
fn servers_that_do_not_behave_are_given_up() {
    let names = names();
    let authority = Authority::new();
    let tls = "220 hi\r\n250-mail.example\r\n250 STARTTLS\r\n220 go\r\n";
    let rows = [
        (String::new(), "deadline"),
        ("220 hi\r\n".to_owned(), "deadline"),
        ("HTTP/1.1 200 OK\r\n\r\n".to_owned(), "the server does not speak SMTP"),
        ("554 no\r\n".to_owned(), "the server refused the connection: 554 no"),
        ("220-x\r\n".repeat(200), "the server's reply has more than 100 lines"),
        ("2".repeat(100_000), "the server's reply has a line of more than 4096 bytes"),
        (format!("{tls}250 injected\r\n"), "the server said more in plain text after it was asked for TLS"),
        (tls.to_owned(), "deadline"),
    ];
    for (text, said) in rows {
        let (port, heard) = saying(text.clone());
        let changes = [UNASKED, ("deadline = \"60s\"", "deadline = \"2s\"")];
        let answer = plain(&mut serving(staged(&names, port, authority.pem(), &changes)));
        assert!(error_of(&answer).contains(said), "{:.60}: {}", text, answer.everything());
        let heard = String::from_utf8_lossy(&heard.recv().unwrap()).into_owned();
        assert!(!heard.contains("AUTH") && !heard.contains("MAIL"), "{heard}");
    }
}
