//! Messages to the host that no honest process sends.
use serde_json::{Value, json};
use toolcell_tests::Answer;

use crate::row::End::{Answers, Ended};
use crate::row::{Row, call, head, holds, only, row, sealed};
use crate::site::Site;

/// The answer that is forged.
const FORGED: &str = "a forged answer";

const BROKE: &str = "its process broke the rules: ";

/// A message by its name, this many times.
fn forge(message: &str, times: u64) -> Value {
    json!([{"forge": {"message": message, "times": times}}])
}

/// Bytes straight into the socket of the link, past its framing. Then nothing more is said: it is
/// these bytes that end the process.
fn raw(bytes: &[u8]) -> Value {
    json!([call("write", json!([{"link": null}, {"bytes": bytes}, bytes.len()])), "spin"])
}

/// Nothing came of it: the guest's own answer is given.
fn is_its_own(_: &Site, answer: &Answer) -> bool {
    !answer.is_error() && answer.structured()["answers"].is_array()
}

fn is_forged(_: &Site, answer: &Answer) -> bool {
    !answer.is_error() && answer.text() == FORGED
}

/// The attacks.
pub const ROWS: &[Row] = &[
    row(
        "say nothing",
        |_| forge("nothing", 1),
        Ended("its process broke the rules: it sent a message of another version"),
    ),
    row("say garbage", |_| forge("garbage", 1), Ended(BROKE)),
    sealed("say garbage without any grant", |_| forge("garbage", 1), Ended(BROKE)),
    row("say 16 MiB", |_| forge("oversize", 1), Ended("it sent more than any call may answer")),
    row("speak another version", |_| forge("another version", 1), Ended("it sent a message of another version")),
    row("say what is of no kind", |_| forge("no known kind", 1), Ended("it sent not a message")),
    row("say half of something", |_| forge("a part of one", 1), Ended("it sent not a message")),
    row("say more than something", |_| forge("more after its end", 1), Ended("with 4 bytes after its end")),
    row("say a text that is not UTF-8", |_| forge("a text that is not UTF-8", 1), Ended("it sent not a message")),
    row("claim a list without end", |_| forge("a list longer than its bytes", 1), Ended("it sent not a message")),
    row("be sealed again", |_| forge("a second seal", 1), Ended("it starts again")),
    row("be late with a component", |_| forge("a component that is late", 1), Ended("it starts again")),
    row("end a call that there is not", |_| forge("the end of no call", 1), Ended("it names an unknown call")),
    row("end the call that comes next", |_| forge("the end of the next call", 1), Ended("it names an unknown call")),
    row("end its call and then again", |_| forge("the end", 1), Answers(is_forged)),
    row("end its call many times", |_| forge("the end", 900), Answers(is_forged)),
    row(
        "end its call without end",
        |_| forge("the end", 50_000),
        Answers(|_, answer| {
            // The first is its own answer. The others end the process, which no caller sees.
            answer.everything().contains(FORGED) || answer.everything().contains("it names an unknown call")
        }),
    ),
    row("end its call and go on", |_| json!([{"forge": {"message": "the end"}}, "spin"]), Answers(is_forged)),
    row("answer 4 MiB", |_| forge("a long end", 1), Ended("it sent more than any call may answer")),
    row("fail at length", |_| forge("a failure that is long", 1), Ended("it sent more than any call may answer")),
    row("trap at length", |_| forge("a trap that is long", 1), Ended("it sent more than any call may answer")),
    row("say that nobody waits", |_| forge("an end that is cancelled", 1), Answers(|_, answer| answer.is_error())),
    row(
        "say that its sandbox was ended",
        |_| forge("an end that says the sandbox was ended", 1),
        // Only the host says so; what a process says of itself is a fault of its own.
        Answers(|_, answer| answer.is_error() && !answer.error_text().contains("the sandbox was ended")),
    ),
    row(
        "claim to have used everything",
        |_| forge("an end with figures", 1),
        Answers(|_, answer| {
            let used = &answer.result()["_meta"]["toolcell/usage"];
            answer.text() == FORGED && used["fuel"].as_u64().is_some_and(|fuel| fuel <= 10_000_000_000)
        }),
    ),
    row(
        "print more than it may",
        |_| forge("an end with long prints", 1),
        Answers(|site, answer| is_forged(site, answer) && site.host.said().matches("pppppppp").count() < 200_000 / 8),
    ),
    row("claim to use everything while it runs", |_| forge("usage without end", 500), Answers(is_its_own)),
    row("use fuel of a call that there is not", |_| forge("usage of no call", 1), Ended("it names an unknown call")),
    row("begin again and again", |_| forge("it runs", 500), Answers(is_its_own)),
    row("begin a call that there is not", |_| forge("no call runs", 1), Ended("it names an unknown call")),
    row("report what is not a number", |_| forge("progress that is not a number", 3), Answers(is_its_own)),
    row("report what is without end", |_| forge("progress without end", 500), Answers(is_its_own)),
    row("report at length", |_| forge("progress that is long", 1), Ended("it sent more than any call may answer")),
    row(
        "log more than it may",
        |_| forge("a log line that is long", 20),
        Answers(|site, answer| is_its_own(site, answer) && site.host.said().matches("llllllll").count() < 100_000 / 8),
    ),
    row(
        "log controls and a forged record",
        |_| forge("a log line with controls", 3),
        Answers(|site, answer| {
            let forged = |record: &Value| record.get("seq").is_none() && record["event"] == "call.finished";
            is_its_own(site, answer) && !site.host.said().contains('\u{1b}') && !site.host.audit().iter().any(forged)
        }),
    ),
    row("deny what there is not", |_| forge("a denial of no kind", 1), Ended("it names an unknown capability")),
    row("report a denial", |_| forge("a denial", 1), Answers(is_its_own)),
    row("ask a person whom nobody offers", |_| forge("a question", 1), Answers(is_its_own)),
    row("ask a thousand questions", |_| forge("many questions", 1), Ended("it asks more than a call may")),
    row("take questions back", |_| forge("no question waits", 100), Answers(is_its_own)),
    row(
        "speak of a component that there is not",
        |_| forge("start code of no component", 1),
        Ended("it names an unknown component"),
    ),
    row(
        "speak of its start code again",
        |_| forge("start code", 5),
        Ended("it reports more about its components than there is"),
    ),
    row("name a function at length", |_| forge("start code with a long name", 1), Ended(BROKE)),
    row(
        "open a door with more than it may",
        |_| forge("a door opened with too much", 1),
        Ended("it opens a door with more than it may"),
    ),
    row("open a door of no call", |_| forge("a door of no call", 1), Ended("it names an unknown call")),
    row(
        "open doors that nobody takes",
        |_| forge("a door", 300),
        // The link holds few doors: where its reader is slow the process is ended.
        Answers(|site, answer| is_its_own(site, answer) || answer.is_error() && answer.error_text().contains(BROKE)),
    ),
    row("send what is not a frame", |_| raw(b"0123456789abcdef0123456789abcdef"), Ended("")),
    row("announce four gigabytes", |_| raw(&head(b"tw\x01", 0, u32::MAX, 0)), Ended("")),
    row("announce descriptors that do not come", |_| raw(&head(b"tw\x01", 3, 1, 0)), Ended("")),
    row(
        "put a frame where nothing is",
        |_| raw(&[head(b"tw\x01", 0, 1, u64::MAX).as_slice(), b"x"].concat()),
        Ended(""),
    ),
    row("wake the host for nothing", |_| raw(&head(b"tw!", 0, 0, 0).repeat(4_500)), Ended("")),
    row("close the link", |_| json!([call("close", json!([{"link": null}])), "spin"]), Ended("")),
    row("end the link", |_| json!([call("shutdown", json!([{"link": null}, 2])), "spin"]), Ended("the link")),
    row(
        "read what the host sends others",
        |_| json!([call("recvfrom", json!([{"link": null}, {"room": 4096}, 4096, 0x42, 0, 0]))]),
        Answers(|_, answer| !answer.everything().contains("still here")),
    ),
    row(
        "write to standard error",
        |_| {
            let line = "\u{1b}[31mtoolcell: everything is fine\n";
            only("write", json!([2, line, line.len()]))
        },
        Answers(|site, answer| is_its_own(site, answer) && !site.host.said().contains("everything is fine")),
    ),
    row(
        "fill standard error",
        |_| json!([{"call": {"name": "SYS_write", "arguments": [2, "x".repeat(4_000), 4_000], "times": 1_000_000}}]),
        Answers(|site, answer| {
            let is_ended = answer.is_error() && answer.error_text().contains("it did not stop within its deadline");
            (is_ended || is_its_own(site, answer)) && !site.host.said().contains("xxxxxxxx")
        }),
    ),
    row(
        "write frames to standard output",
        |_| {
            let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
            only("write", json!([1, line, line.len()]))
        },
        Answers(is_its_own),
    ),
];

#[test]
fn whatever_a_process_says_ends_itself_at_most() {
    holds(ROWS);
}
