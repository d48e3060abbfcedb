//! Serves every page with samples on the loopback, for tests in a browser and for anyone who
//! changes how pages look: `cargo run -p toolcell-console --example pages -- plain|hostile [PORT]`.
//! It prints its address. Forms redirect to their view and have no effect.

#[path = "../tests/samples/mod.rs"]
mod samples;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use samples::{Dress, Samples, hostile, plain};
use toolcell_console::model::{AuditQuery, Notice, SignInReason};
use toolcell_console::{asset, form, page, policy, routes, update};

/// The time between two events.
const TICK: Duration = Duration::from_secs(1);

fn main() -> std::io::Result<()> {
    let dress: Dress = if std::env::args().any(|word| word == "hostile") { hostile } else { plain };
    let port = std::env::args().nth(2).and_then(|port| port.parse().ok()).unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let mut out = std::io::stdout();
    writeln!(out, "http://{}", listener.local_addr()?)?;
    out.flush()?;
    for connection in listener.incoming().flatten() {
        std::thread::spawn(move || answer(connection, dress));
    }
    Ok(())
}

/// Reads one request and answers it.
fn answer(connection: TcpStream, dress: Dress) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) =
            header.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse().unwrap_or(0);
            let _ = name;
        }
    }
    let mut body = String::new();
    reader.by_ref().take(length).read_to_string(&mut body)?;
    let mut words = first.split(' ');
    let method = words.next().unwrap_or("");
    let target = words.next().unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let connection = reader.into_inner();
    let samples = Samples { dress, tools: 1_000 };
    if path == routes::EVENTS {
        return events(connection, &samples, &fields(query));
    }
    if let Some(asset) = asset::find(path) {
        let headers = [("content-type", asset.content_type), ("cache-control", asset::Asset::CACHE_CONTROL)];
        return send(connection, 200, &headers, asset.bytes);
    }
    let page =
        if method == "POST" { posted(&samples, path, &fields(&body)) } else { view(&samples, path, &fields(query)) };
    match page {
        Some(page) => send(connection, 200, &policy::PAGE_HEADERS, page.as_bytes()),
        None => send(connection, 404, &policy::PAGE_HEADERS, page::error(&samples.error(404)).as_bytes()),
    }
}

fn view(samples: &Samples, path: &str, fields: &[(String, String)]) -> Option<String> {
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str());
    let frame = samples.frame(field("read-only").is_empty());
    let query = |name: &str| field(name).to_owned();
    Some(match path {
        routes::NOW => page::now(&frame, &samples.now(0)),
        routes::TOOLS => {
            page::tools(&frame, &samples.tools(field(routes::QUERY), field(routes::PAGE).parse().unwrap_or(1)))
        }
        routes::DENIALS => page::denials(&frame, &samples.denials(), ""),
        routes::CHANGES => page::changes(&frame, &samples.changes()),
        routes::APPROVALS => page::approvals(&frame, &samples.approvals()),
        routes::CALLERS => page::callers(&frame, &samples.callers(field(routes::QUERY), false)),
        routes::SIGN_IN => page::sign_in(&samples.sign_in(match field("reason") {
            "link" => SignInReason::LinkSpent,
            "token" => SignInReason::WrongToken,
            _ => SignInReason::NotSignedIn,
        })),
        routes::AUDIT => page::audit(
            &frame,
            &samples.audit(AuditQuery {
                tool: query("tool"),
                caller: query("caller"),
                outcome: query("outcome"),
                since: query("since"),
                until: query("until"),
                text: query("text"),
            }),
        ),
        path if path.starts_with("/audit/calls/") => page::call(&frame, &samples.call()),
        path if path.starts_with("/tools/") => page::tool(&frame, &samples.tool(false)),
        _ => return None,
    })
}

fn posted(samples: &Samples, path: &str, fields: &[(String, String)]) -> Option<String> {
    let mut frame = samples.frame(true);
    frame.notice =
        Some(Notice { failed: path == routes::APPLY, text: (samples.dress)("This server changes nothing.") });
    Some(match path {
        routes::STOP => page::now(&frame, &samples.now(0)),
        routes::APPLY | routes::MUTE | routes::UNMUTE => page::denials(&frame, &samples.denials(), ""),
        routes::READ | routes::APPROVE => page::changes(&frame, &samples.changes()),
        routes::ANSWER_APPROVAL => page::approvals(&frame, &samples.approvals()),
        routes::NEW_TOKEN | routes::REVOKE_TOKEN => {
            page::callers(&frame, &samples.callers("", path == routes::NEW_TOKEN))
        }
        routes::CHECK_CHAIN => page::audit(&frame, &samples.audit(AuditQuery::default())),
        routes::SIGN_IN => page::sign_in(&samples.sign_in(SignInReason::WrongToken)),
        routes::SIGN_OUT => page::sign_in(&samples.sign_in(SignInReason::SignedOut)),
        path if path.ends_with("/try") => {
            let mut tool = samples.tool(true);
            tool.tried.problem = form::arguments(&tool.input_schema, fields).err();
            tool.tried.fields = fields.to_vec();
            page::tool(&frame, &tool)
        }
        _ => return None,
    })
}

/// Sends an event each second until the browser leaves.
fn events(mut connection: TcpStream, samples: &Samples, fields: &[(String, String)]) -> std::io::Result<()> {
    connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n\r\n")?;
    let key = fields.iter().find(|(name, _)| name == routes::VIEW).map_or("", |(_, value)| value.as_str());
    let frame = samples.frame(true);
    for tick in 1.. {
        let update = match key {
            "now" => update::now(&frame, &samples.now(tick)),
            "denials" => update::denials(&frame, &samples.denials(), ""),
            "changes" => update::changes(&frame, &samples.changes()),
            "approvals" => update::approvals(&frame, &samples.approvals()).saying("Two calls wait for a person."),
            _ => update::counts(&frame, toolcell_console::View::of_key(key).unwrap_or(toolcell_console::View::Now)),
        };
        connection.write_all(update.event(&update::Update::default()).as_bytes())?;
        std::thread::sleep(TICK);
    }
    Ok(())
}

fn send(mut connection: TcpStream, status: u16, headers: &[(&str, &str)], body: &[u8]) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    connection.write_all(format!("{head}\r\n").as_bytes())?;
    connection.write_all(body)
}

/// The fields of a form or a query.
fn fields(text: &str) -> Vec<(String, String)> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let hex: Option<u8> = (byte == b'%').then(|| {
            let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
            u8::from_str_radix(&String::from_utf8_lossy(&digits), 16).unwrap_or(b'?')
        });
        bytes.push(hex.unwrap_or(if byte == b'+' { b' ' } else { byte }));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
