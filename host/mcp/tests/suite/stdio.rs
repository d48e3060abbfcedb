//! The stdio transport over real descriptors: pipes and socketpairs, patient and hostile clients.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolcell_mcp::stdio::{StdioEnd, StdioError, StdioOptions, StdioShutdown, serve};
use toolcell_mcp::{CallContext, McpServer, ServerOptions};

use crate::host::{
    Begun, IDENTITY, MODERN, PATIENCE, Probe, RUNTIME, TestHost, error, legacy_text_result, server, text_result,
};

/// One served process, as its client sees it.
struct Process {
    server: Arc<McpServer<TestHost>>,
    shared: Arc<Probe>,
    begun: Begun,
    shutdown: StdioShutdown,
    serving: JoinHandle<Result<StdioEnd, StdioError>>,
}

#[derive(Clone, Copy, Debug)]
enum Over {
    Pipes,
    Sockets,
}

/// The client's ends.
struct Ends {
    input: Box<dyn Write + Send>,
    output: BufReader<Box<dyn Read + Send>>,
}

fn start(over: Over, options: ServerOptions, change: impl FnOnce(&mut StdioOptions)) -> (Process, Ends) {
    let (theirs_in, ours_in, ours_out, theirs_out): (OwnedFd, Box<dyn Write + Send>, Box<dyn Read + Send>, OwnedFd) =
        match over {
            Over::Pipes => {
                let (input, ours_in) = io::pipe().unwrap();
                let (ours_out, output) = io::pipe().unwrap();
                (input.into(), Box::new(ours_in), Box::new(ours_out), output.into())
            }
            Over::Sockets => {
                let (input, ours_in) = UnixStream::pair().unwrap();
                let (ours_out, output) = UnixStream::pair().unwrap();
                (input.into(), Box::new(ours_in), Box::new(ours_out), output.into())
            }
        };
    let mut stdio = StdioOptions::over(theirs_in, theirs_out);
    change(&mut stdio);
    let process = Process::start(options, stdio);
    (process, Ends { input: ours_in, output: BufReader::new(ours_out) })
}

impl Process {
    fn start(options: ServerOptions, stdio: StdioOptions) -> Self {
        let (_, server, shared, begun) = server(options);
        let shutdown = StdioShutdown::new().unwrap();
        let serving = std::thread::spawn({
            let server = Arc::clone(&server);
            let shutdown = shutdown.clone();
            move || serve(&server, stdio, RUNTIME.handle().clone(), &shutdown)
        });
        Self { server, shared, begun, shutdown, serving }
    }

    fn expect_begun(&self) -> CallContext {
        self.begun.recv_timeout(PATIENCE).expect("a call to begin").1
    }

    fn expect_begun_named(&self, name: &str) -> CallContext {
        loop {
            let (begun, context) = self.begun.recv_timeout(PATIENCE).expect("a call to begin");
            if begun == name {
                return context;
            }
        }
    }

    fn end(self) -> StdioEnd {
        self.serving.join().unwrap().unwrap()
    }
}

impl Ends {
    fn send(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.pop(), Some('\n'), "{line}");
        line
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.next()
    }

    /// Closes the input and returns the remaining output.
    fn rest(self) -> Vec<String> {
        let Self { input, output } = self;
        drop(input);
        output.lines().map(Result::unwrap).collect()
    }
}

fn call(id: usize, name: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{arguments},{MODERN}}}}}"#
    )
}

/// Parses the frames and returns their ids, each of which must come once.
fn ids(frames: &[String]) -> BTreeSet<u64> {
    let ids: BTreeSet<u64> =
        frames.iter().map(|frame| serde_json::from_str::<Value>(frame).unwrap()["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), frames.len(), "one answer for each");
    ids
}

#[test]
fn a_conversation_ends_with_its_input() {
    for over in [Over::Pipes, Over::Sockets] {
        let (process, mut ends) = start(over, ServerOptions::default(), |_| {});
        assert_eq!(ends.ask(&call(1, "echo", r#"{"n":1}"#)), text_result("1", r#"{"n":1}"#));
        assert_eq!(ends.ask("garbage"), error("", -32700, "Parse error: not valid JSON at byte 0"));
        assert_eq!(ends.ask(&call(2, "panic", "{}")), error("2", -32603, "Internal error"));
        assert_eq!(ends.ask(&format!("\n\r\n{}\r", call(3, "echo", "{}"))), text_result("3", "{}"));
        ends.send(&call(4, "hold", "{}"));
        let context = process.expect_begun_named("hold");
        ends.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#);
        assert_eq!(ends.ask(&call(5, "echo", "{}")), text_result("5", "{}"));
        assert!(context.cancellation.is_cancelled());
        assert_eq!(ends.rest(), Vec::<String>::new());
        assert_eq!(process.end(), StdioEnd::Eof, "{over:?}");
    }
}

#[test]
fn every_line_of_a_long_file_is_answered() {
    const LINES: usize = 5_000;
    for (over, options) in [
        (Over::Pipes, ServerOptions::default()),
        (Over::Sockets, ServerOptions::default()),
        (Over::Pipes, ServerOptions { in_flight_max: 2, pending_calls_max: 4, ..ServerOptions::default() }),
    ] {
        let (process, ends) = start(over, options, |_| {});
        let Ends { mut input, output } = ends;
        let writer = std::thread::spawn(move || {
            let all: Vec<String> = (0..LINES).map(|id| call(id, "echo", "{}")).collect();
            // Without a newline after the last.
            input.write_all(all.join("\n").as_bytes()).unwrap();
        });
        let frames: Vec<String> = output.lines().map(Result::unwrap).collect();
        assert_eq!(ids(&frames).len(), LINES);
        writer.join().unwrap();
        assert_eq!(process.end(), StdioEnd::Eof);
    }
}

/// The gate that holds lines back may open just after it was found closed. Nothing else comes then
/// that would make the reader look again: its input stays open, and empty.
#[test]
fn a_burst_is_answered_whole_while_the_input_stays_open_and_silent() {
    const LINES: usize = 40;
    let options = ServerOptions { in_flight_max: 1, pending_calls_max: 1, ..ServerOptions::default() };
    let (process, ends) = start(Over::Pipes, options, |_| {});
    let Ends { mut input, output } = ends;
    let (said, answers) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || output.lines().for_each(|line| drop(said.send(line.unwrap()))));
    for burst in 0..500 {
        let lines: String =
            (0..LINES).map(|line| call(burst * LINES + line, "echo", "{}") + "\n").collect::<Vec<_>>().concat();
        input.write_all(lines.as_bytes()).unwrap();
        for line in 0..LINES {
            answers.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("answer {line} of burst {burst} is missing"));
        }
    }
    drop(input);
    reader.join().unwrap();
    assert_eq!(process.end(), StdioEnd::Eof);
}

#[test]
fn frames_of_many_threads_never_mix() {
    for over in [Over::Pipes, Over::Sockets] {
        let (process, ends) = start(over, ServerOptions::default(), |_| {});
        let Ends { mut input, output } = ends;
        let writer = std::thread::spawn(move || {
            for id in 0..600 {
                let bytes = [1, 100, 4_000, 4_096, 5_000, 70_000, 300_000][id % 7] + id;
                writeln!(input, "{}", call(id, "big", &format!(r#"{{"bytes":{bytes}}}"#))).unwrap();
            }
        });
        let frames: Vec<String> = output.lines().map(Result::unwrap).collect();
        assert_eq!(ids(&frames).len(), 600, "{over:?}");
        writer.join().unwrap();
        assert_eq!(process.end(), StdioEnd::Eof);
    }
}

#[test]
fn a_client_that_never_reads_is_no_longer_read_and_loses_nothing() {
    const RESULT_BYTES: usize = 64 * 1024;
    const BUDGET_BYTES: usize = 1024 * 1024;
    let (theirs_in, mut input) = UnixStream::pair().unwrap();
    let (output, theirs_out) = UnixStream::pair().unwrap();
    let mut stdio = StdioOptions::over(theirs_in.into(), theirs_out.into());
    stdio.output_bytes_max = BUDGET_BYTES;
    let process = Process::start(ServerOptions { in_flight_max: 8, ..ServerOptions::default() }, stdio);
    input.set_write_timeout(Some(Duration::from_millis(500))).unwrap();

    // Writes whole lines until the server has stopped reading and the buffers between are full.
    let mut sent = 0;
    let mut rest = Vec::new();
    while rest.is_empty() {
        let line = format!("{}\n", call(sent, "big", &format!(r#"{{"bytes":{RESULT_BYTES}}}"#))).into_bytes();
        let mut written = 0;
        while written < line.len() {
            match input.write(&line[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    rest = line[written..].to_vec();
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        sent += 1;
        assert!(sent < 100_000, "the server reads without end");
    }
    // The calls that may have run: the budget, those in flight when it is reached, and those in the
    // socket itself.
    let most = BUDGET_BYTES / RESULT_BYTES + 8 + 8;
    let begun = std::iter::from_fn(|| process.begun.try_recv().ok()).count();
    assert!(begun <= most, "{begun} calls ran for a client that does not read, of {sent} sent");

    input.set_write_timeout(None).unwrap();
    let finisher = std::thread::spawn(move || input.write_all(&rest).unwrap());
    let frames: Vec<String> = BufReader::new(output).lines().map(Result::unwrap).collect();
    finisher.join().unwrap();
    assert_eq!(ids(&frames).len(), sent, "every call is answered once the client reads");
    assert_eq!(process.end(), StdioEnd::Eof);
}

/// The answer to a question may come behind calls for which there is no room.
#[test]
fn answers_and_cancellations_are_read_while_calls_wait() {
    let options = ServerOptions { in_flight_max: 1, pending_calls_max: 1, ..ServerOptions::default() };
    for options in [options.clone(), ServerOptions { pending_calls_max: 1_000, pending_bytes_max: 1, ..options }] {
        let (process, mut ends) = start(Over::Pipes, options, |_| {});
        ends.ask(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
        );
        let asking = |id: usize| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask","arguments":{{"rounds":[{{"where":{{}}}}]}}}}}}"#
            )
        };
        ends.send(&asking(1));
        for id in 1..=3 {
            assert!(ends.next().contains(&format!(r#""id":"toolcell/ask/{id}""#)));
            ends.send(&asking(id + 1));
            let refusal = ends.ask(&asking(100));
            let busy = "Too many calls wait to run: answer what the server asks, then call again";
            assert_eq!(refusal, error("100", -32603, busy));
            ends.send(&format!(r#"{{"jsonrpc":"2.0","id":"toolcell/ask/{id}","result":{{"roots":[]}}}}"#));
            assert_eq!(ends.next(), legacy_text_result(&id.to_string(), "roots "));
        }
        assert!(ends.next().contains(r#""id":"toolcell/ask/4""#));
        ends.send(&asking(5));
        ends.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#);
        assert!(ends.next().contains(r#""requestId":"toolcell/ask/4""#));
        assert!(ends.next().contains(r#""id":"toolcell/ask/5""#));
        ends.send(r#"{"jsonrpc":"2.0","id":"toolcell/ask/5","result":{"roots":[]}}"#);
        assert_eq!(ends.next(), legacy_text_result("5", "roots "));
        drop(ends);
        assert_eq!(process.end(), StdioEnd::Eof);
    }
}

/// The reader waits at a closed gate when the only running call asks.
#[test]
fn a_question_opens_the_gate_for_its_answer() {
    let options = ServerOptions { in_flight_max: 1, pending_calls_max: 1, ..ServerOptions::default() };
    let (process, mut ends) = start(Over::Pipes, options, |_| {});
    ends.ask(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
    );
    ends.send(&call(1, "hold", "{}"));
    process.expect_begun();
    ends.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"rounds":[{"where":{}}]}}}"#);
    ends.send(&call(3, "echo", "{}"));
    process.shared.gate.add_permits(1);
    assert_eq!(ends.next(), text_result("1", "held"));
    assert!(ends.next().contains(r#""id":"toolcell/ask/1""#));
    ends.send(r#"{"jsonrpc":"2.0","id":"toolcell/ask/1","result":{"roots":[]}}"#);
    assert_eq!(ends.next(), legacy_text_result("2", "roots "));
    assert_eq!(ends.next(), text_result("3", "{}"));
    drop(ends);
    assert_eq!(process.end(), StdioEnd::Eof);
}

/// The least that the manifest allows of each count.
#[test]
fn the_smallest_counts_answer_a_call() {
    let smallest = ServerOptions {
        page_size: 1,
        in_flight_max: 1,
        pending_calls_max: 1,
        listens_max: 1,
        watched_max: 1,
        caller_watched_max: 1,
        ..ServerOptions::default()
    };
    // Without room for one call, one may wait nevertheless.
    let none = ServerOptions { pending_calls_max: 0, pending_bytes_max: 0, in_flight_max: 0, ..smallest.clone() };
    for options in [smallest, none] {
        let (process, mut ends) = start(Over::Pipes, options, |_| {});
        assert_eq!(ends.ask(&call(1, "echo", "{}")), text_result("1", "{}"));
        assert_eq!(ends.rest(), Vec::<String>::new());
        assert_eq!(process.end(), StdioEnd::Eof);
    }
}

#[test]
fn an_overlong_line_is_answered_and_skipped() {
    let (process, ends) = start(Over::Pipes, ServerOptions::default(), |_| {});
    let Ends { mut input, mut output } = ends;
    let writer = std::thread::spawn(move || {
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..50 {
            input.write_all(&chunk).unwrap();
        }
        input.write_all(b"\n").unwrap();
        input.write_all(format!("{}\n", call(1, "echo", "{}")).as_bytes()).unwrap();
        input
    });
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), error("", -32600, "The message is longer than 16777216 bytes"));
    line.clear();
    output.read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), text_result("1", "{}"));
    let input = writer.join().unwrap();
    assert_eq!(Ends { input, output }.rest(), Vec::<String>::new());
    assert_eq!(process.end(), StdioEnd::Eof);
}

#[test]
fn a_line_of_the_greatest_length_is_served() {
    let empty = call(1, "echo", r#"{"s":""}"#).len();
    let filler = "x".repeat(100_000 - empty);
    let (process, mut ends) = start(Over::Sockets, ServerOptions::default(), |stdio| stdio.line_bytes_max = 100_000);
    let line = call(1, "echo", &format!(r#"{{"s":"{filler}"}}"#));
    assert_eq!(line.len(), 100_000);
    assert_eq!(ends.ask(&line), text_result("1", &format!(r#"{{"s":"{filler}"}}"#)));
    let longer = call(1, "echo", &format!(r#"{{"s":"{filler}x"}}"#));
    assert_eq!(ends.ask(&longer), error("1", -32600, "The message is longer than 100000 bytes"));
    drop(ends);
    assert!(matches!(process.end(), StdioEnd::Eof));
}

#[test]
fn the_end_of_input_lets_running_calls_finish() {
    let (process, mut ends) =
        start(Over::Pipes, ServerOptions { in_flight_max: 1, ..ServerOptions::default() }, |_| {});
    ends.send(&call(1, "hold", "{}"));
    ends.send(&call(2, "hold", "{}"));
    process.expect_begun();
    let Ends { input, output } = ends;
    drop(input);
    process.shared.gate.add_permits(2);
    let frames: Vec<String> = output.lines().map(Result::unwrap).collect();
    assert_eq!(frames, [text_result("1", "held"), text_result("2", "held")]);
    assert_eq!(process.end(), StdioEnd::Eof);
}

#[test]
fn calls_that_outlast_the_drain_are_cancelled_and_answered() {
    let options = ServerOptions { in_flight_max: 1, ..ServerOptions::default() };
    let (process, mut ends) = start(Over::Pipes, options, |stdio| stdio.drain = Duration::from_millis(50));
    ends.send(&call(1, "hold", "{}"));
    ends.send(&call(2, "hold", "{}"));
    let context = process.expect_begun();
    let mut frames = ends.rest();
    frames.sort();
    assert!(context.cancellation.is_cancelled());
    let stopped = text_result("1", "stopped").replace(r#""isError":false"#, r#""isError":true"#);
    assert_eq!(frames, [stopped, error("2", -32603, "The server is shutting down")]);
    assert_eq!(process.end(), StdioEnd::Eof);
}

#[test]
fn shutdown_ends_subscriptions_and_calls() {
    for over in [Over::Pipes, Over::Sockets] {
        let (process, mut ends) =
            start(over, ServerOptions::default(), |stdio| stdio.shutdown_grace = Duration::from_millis(50));
        let listen = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{MODERN}}}}}"#
        );
        assert!(ends.ask(&listen).contains("acknowledged"));
        process.server.catalog_changed(None);
        assert!(ends.next().contains("list_changed"));
        ends.send(&call(2, "hold", "{}"));
        process.expect_begun();
        process.shutdown.begin();
        process.shutdown.begin();
        let meta = IDENTITY.replacen('{', r#"{"io.modelcontextprotocol/subscriptionId":1,"#, 1);
        assert_eq!(ends.next(), format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete",{meta}}}}}"#));
        assert!(ends.next().contains(r#""method":"notifications/cancelled","params":{"requestId":1"#));
        assert!(ends.next().contains("stopped"));
        assert_eq!(process.end(), StdioEnd::Shutdown, "with the input still open");
    }
}

#[test]
fn shutdown_does_not_wait_for_a_client_that_never_reads() {
    for over in [Over::Pipes, Over::Sockets] {
        let (process, mut ends) =
            start(over, ServerOptions::default(), |stdio| stdio.shutdown_grace = Duration::from_millis(50));
        for id in 0..20 {
            ends.send(&call(id, "big", r#"{"bytes":1000000}"#));
        }
        process.expect_begun();
        let begun = Instant::now();
        process.shutdown.begin();
        assert_eq!(process.end(), StdioEnd::Shutdown);
        assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
    }
}

#[test]
fn a_client_that_is_gone_stops_its_calls() {
    for over in [Over::Pipes, Over::Sockets] {
        let (process, mut ends) =
            start(over, ServerOptions::default(), |stdio| stdio.shutdown_grace = Duration::from_millis(50));
        ends.send(&call(1, "hold", "{}"));
        let context = process.expect_begun();
        let Ends { mut input, output } = ends;
        drop(output);
        writeln!(input, "{}", call(2, "echo", "{}")).unwrap();
        let shared = Arc::clone(&process.shared);
        assert_eq!(process.end(), StdioEnd::OutputClosed, "{over:?}");
        assert!(context.cancellation.is_cancelled());
        assert_eq!(shared.running.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn an_idle_server_costs_nothing() {
    let (process, mut ends) = start(Over::Pipes, ServerOptions::default(), |_| {});
    assert_eq!(ends.ask(&call(1, "echo", "{}")), text_result("1", "{}"));
    process.shutdown.begin();
    assert!(process.shutdown.has_begun());
    assert_eq!(process.end(), StdioEnd::Shutdown);
    assert_eq!(ends.rest(), Vec::<String>::new());
}
