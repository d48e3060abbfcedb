//! Messages to the host that no honest process sends, by name.
use std::net::SocketAddr;

use toolcell_wall::asking::{GuestQuestion, Inquiry};
use toolcell_wall::caller::{FIRST_BYTES_MAX, GuestLogLevel};
use toolcell_wall::contract;
use toolcell_wall::doors::Opening;
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::calling::CallingRequest;
use toolcell_wall::doors::consent::PermissionRequest;
use toolcell_wall::doors::http::{RequestHead, RequestWaits};
use toolcell_wall::doors::socket_options::SocketOptions;
use toolcell_wall::doors::sockets::{TcpWanted, UdpWanted};
use toolcell_wall::encoding::encode;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::message::{CallId, FromSandbox};
use toolcell_wall::nested::WantedCall;
use toolcell_wall::report::CallReport;
use toolcell_walls::door::framed_message;

/// Bytes of a text that is longer than any limit lets it be.
const LONG_BYTES: usize = 4 << 20;

/// The text of a forged answer.
const FORGED: &str = "a forged answer";

/// The bytes of the forged message with this name, for this call.
pub(super) fn message(name: &str, call: CallId) -> Option<Vec<u8>> {
    let long = || "x".repeat(LONG_BYTES);
    let said = match name {
        "nothing" => return Some(Vec::new()),
        "garbage" => return Some(vec![0xaa; 100]),
        "oversize" => return Some(vec![1; 16 << 20]),
        "another version" => return Some([&[0xff], rest(&FromSandbox::Instantiated(call))?.as_slice()].concat()),
        "no known kind" => return Some(vec![version()?, 0x7f, 0]),
        "a part of one" => {
            let mut whole = encode(&log(call, "text")).ok()?;
            whole.pop();
            return Some(whole);
        }
        "more after its end" => return Some([encode(&log(call, "text")).ok()?.as_slice(), b"more"].concat()),
        "a text that is not UTF-8" => {
            let mut whole = encode(&log(call, "text")).ok()?;
            *whole.last_mut()? = 0xff;
            return Some(whole);
        }
        "a list longer than its bytes" => {
            // A list of questions that claims to have 2^56 entries.
            let begun = rest(&FromSandbox::Ask(call, Vec::new()))?;
            let before = begun.get(..begun.len().checked_sub(1)?)?;
            return Some([&[version()?], before, &[0xff; 8], &[0x01]].concat());
        }
        "a second seal" => FromSandbox::Sealed { missing: Vec::new() },
        "a component that is late" => FromSandbox::NotLoaded(0, String::new()),
        "the end of no call" => ended(u64::MAX, Ok(FORGED.to_owned())),
        "the end of the next call" => ended(call + 1, Ok(FORGED.to_owned())),
        "the end of the first call" => ended(1, Ok(FORGED.to_owned())),
        "the end" => ended(call, Ok(FORGED.to_owned())),
        "a long end" => ended(call, Ok(long())),
        "a failure that is long" => ended(call, Err(CallFailure::Failed(long()))),
        "a trap that is long" => FromSandbox::Ended(
            call,
            Box::new(CallReport::not_run(CallFailure::Trapped { reason: long(), detail: long() })),
        ),
        "an end that is cancelled" => ended(call, Err(CallFailure::Cancelled)),
        "an end that says the sandbox was ended" => {
            ended(call, Err(CallFailure::SandboxEnded { reason: "nobody's fault".to_owned() }))
        }
        "an end with figures" => {
            let mut report = answered(FORGED.to_owned());
            report.usage.fuel = u64::MAX;
            report.usage.memory_peak_bytes = u64::MAX;
            report.usage.log_bytes = u64::MAX;
            report.usage.denials = u64::MAX;
            report.captured.dropped_bytes = u64::MAX;
            FromSandbox::Ended(call, Box::new(report))
        }
        "an end with long prints" => {
            let mut report = answered(FORGED.to_owned());
            report.captured.text = "p".repeat(600_000);
            FromSandbox::Ended(call, Box::new(report))
        }
        "it runs" => FromSandbox::Instantiated(call),
        "no call runs" => FromSandbox::Instantiated(u64::MAX),
        "progress that is not a number" => progress(call, f64::NAN, String::new()),
        "progress without end" => progress(call, f64::INFINITY, "again".to_owned()),
        "progress that is long" => progress(call, 1.0, long()),
        "a log line" => log(call, "a line"),
        "a log line that is long" => log(call, &"l".repeat(900_000)),
        "a log line with controls" => log(call, "\u{1b}]0;owned\u{7}\n{\"event\":\"call.finished\"}\r\n"),
        "a denial of no kind" => FromSandbox::Denied { call, capability: 99, asked: String::new() },
        "a denial" => FromSandbox::Denied { call, capability: 0, asked: "GET https://forged.example/".to_owned() },
        "a question" => FromSandbox::Ask(call, vec![inquiry()]),
        "many questions" => FromSandbox::Ask(call, (0..1_000).map(|_| inquiry()).collect()),
        "no question waits" => FromSandbox::TakeBack(call),
        "start code of no component" => FromSandbox::NotAhead(u32::MAX, String::new()),
        "usage of no call" => FromSandbox::Used { call: u64::MAX, fuel: 1, memory_bytes: 1 },
        "usage without end" => FromSandbox::Used { call, fuel: u64::MAX, memory_bytes: u64::MAX },
        "start code" => FromSandbox::NotAhead(0, "forged".to_owned()),
        "start code with a long name" => FromSandbox::NotAhead(0, "x".repeat(513)),
        "a door" => FromSandbox::OpenDoor(call, 1_000, Blob::default()),
        "a door opened with too much" => FromSandbox::OpenDoor(call, 1_000, Blob(vec![0; FIRST_BYTES_MAX + 1])),
        "a door of no call" => FromSandbox::OpenDoor(u64::MAX, 1, Blob::default()),
        _ => return None,
    };
    encode(&said).ok()
}

/// The first frame of a door. `name` is its kind, `of` what it asks for.
pub(super) fn opening(name: &str, of: &str) -> Option<Vec<u8>> {
    let address = || of.parse::<SocketAddr>().ok();
    let opening = match name {
        "http" => {
            let request = http::Request::get(of).body(()).ok()?;
            Opening::Http(Box::new(RequestHead::new(&request, RequestWaits::default(), Some(0))))
        }
        "state" => Opening::State,
        "lookup" => Opening::Lookup(of.to_owned()),
        "tcp" => {
            let to = address()?;
            Opening::Tcp(TcpWanted { to, six: to.is_ipv6(), options: SocketOptions::default() })
        }
        "udp" => Opening::Udp(UdpWanted { six: false, options: SocketOptions::default() }),
        "consent" => Opening::Consent(PermissionRequest::Connect(address()?)),
        "calling" => return calling(of, 1),
        "calling too often" => return calling(of, 1_000),
        _ => return None,
    };
    Some(framed_message(&encode(&opening).ok()?))
}

/// The opening of a door to other tools, and so many calls of one at once.
fn calling(tool: &str, times: usize) -> Option<Vec<u8>> {
    let wanted = WantedCall { tool: tool.to_owned(), arguments_json: "{}".to_owned(), place: None };
    let request = CallingRequest::Call(vec![wanted; times]);
    Some([framed_message(&encode(&Opening::Calling).ok()?), framed_message(&encode(&request).ok()?)].concat())
}

fn version() -> Option<u8> {
    encode(&FromSandbox::Instantiated(1)).ok()?.first().copied()
}

/// A message without its version.
fn rest(message: &FromSandbox) -> Option<Vec<u8>> {
    Some(encode(message).ok()?.split_off(1))
}

fn answered(text: String) -> CallReport<contract::GuestResult> {
    let text = contract::TextContent { text, annotations: None, meta_json: None };
    let content = vec![contract::GuestContent::Text(text)];
    CallReport::without_running(contract::GuestResult {
        content,
        structured_json: None,
        is_error: false,
        meta_json: None,
    })
}

fn ended(call: CallId, outcome: Result<String, CallFailure>) -> FromSandbox {
    let report = outcome.map_or_else(CallReport::not_run, answered);
    FromSandbox::Ended(call, Box::new(report))
}

fn progress(call: CallId, progress: f64, text: String) -> FromSandbox {
    FromSandbox::Progress { call, progress, total: Some(f64::NEG_INFINITY), message: Some(text) }
}

fn log(call: CallId, text: &str) -> FromSandbox {
    FromSandbox::Log { call, level: GuestLogLevel::Error, message: text.to_owned() }
}

fn inquiry() -> Inquiry {
    Inquiry { key: "key".to_owned(), question: GuestQuestion::Roots }
}
