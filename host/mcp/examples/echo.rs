//! Serves one in-process `echo` tool over stdio, to measure the cost of the protocol alone.
//!
//! `cargo run --release -p toolcell-mcp --example echo` speaks MCP on stdin and stdout.
//! `… --example echo -- measure` starts itself that way. It prints the cost of a call above a bare
//! pipe, and the share of the protocol core itself: decoding, checking and encoding, with no
//! descriptor and no other thread.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use serde_json::json;
use toolcell_mcp::stdio::{self, StdioOptions, StdioShutdown};
use toolcell_mcp::{
    Call, CallResult, CheckedResult, Executor, Host, McpServer, McpTool, Outbox, Patience, ServedCatalog, ServerInfo,
    ServerOptions, ToolDefinition, ToolList, Work,
};

struct Echo {
    tools: ToolList,
}

impl ServedCatalog for Echo {
    fn tools(&self) -> &ToolList {
        &self.tools
    }

    async fn call(self: Arc<Self>, call: Call) -> CheckedResult {
        let Some(tool) = self.tools.tools().get(call.tool) else {
            return CheckedResult::error("there is no such tool");
        };
        let arguments: serde_json::Value = serde_json::from_str(call.arguments.get()).unwrap_or_default();
        let text = arguments.get("text").and_then(|text| text.as_str()).unwrap_or_default();
        tool.finish(CallResult::text(text), &Patience::default())
    }
}

struct Fixed(Arc<Echo>);

impl Host for Fixed {
    type Catalog = Echo;

    fn snapshot(&self) -> Arc<Echo> {
        Arc::clone(&self.0)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("measure") => measure(),
        Some("bare") => bare(),
        Some("core") => writeln!(std::io::stdout(), "{:.2?} a call", core()?).map_err(Into::into),
        _ => serve(),
    }
}

fn server() -> Result<Arc<McpServer<Fixed>>, Box<dyn Error>> {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let definition = ToolDefinition::new("echo", "Gives back its text.", schema);
    let tool = McpTool::compile(definition).map_err(|problems| format!("{problems:?}"))?;
    let tools = ToolList::new(1, vec![Arc::new(tool)])?;
    let info = ServerInfo { name: "echo".to_owned(), version: "1.0.0".to_owned(), ..ServerInfo::default() };
    Ok(Arc::new(McpServer::new(Arc::new(Fixed(Arc::new(Echo { tools }))), info, ServerOptions::default())))
}

fn serve() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    stdio::serve(&server()?, StdioOptions::of_process()?, runtime.handle().clone(), &StdioShutdown::new()?)?;
    Ok(())
}

/// Runs work on the calling thread: `echo` never waits.
struct Here;

impl Executor for Here {
    fn run(&self, mut work: Work) {
        let _ = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

struct Nowhere;

impl Outbox for Nowhere {
    fn queue(&self, frame: Vec<u8>) {
        std::hint::black_box(frame);
    }
}

/// Measures one call in the protocol core alone.
fn core() -> Result<Duration, Box<dyn Error>> {
    let connection = server()?.connect(Arc::new(Nowhere), Arc::new(Here));
    let request = request(1);
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        connection.receive(request.trim_end().as_bytes());
    }
    Ok(begun.elapsed() / u32::try_from(ROUNDS)?)
}

/// Copies lines from stdin to stdout: the cost of any program behind a pipe.
fn bare() -> Result<(), Box<dyn Error>> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let bytes = input.read(&mut buffer)?;
        if bytes == 0 {
            return Ok(());
        }
        output.write_all(buffer.get(..bytes).unwrap_or_default())?;
        output.flush()?;
    }
}

const ROUNDS: usize = 20_000;

fn request(id: usize) -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello"}},"#,
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":"#,
            r#"{{"name":"measure","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#,
            "\n"
        ),
        id
    )
}

/// p50 and p99 of one request at a time.
fn serial(mode: &str) -> Result<(Duration, Duration), Box<dyn Error>> {
    let mut child =
        Command::new(std::env::current_exe()?).arg(mode).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().ok_or("no stdin")?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let mut times = Vec::with_capacity(ROUNDS);
    let mut line = String::new();
    for id in 0..ROUNDS {
        let request = request(id);
        let begun = Instant::now();
        input.write_all(request.as_bytes())?;
        line.clear();
        output.read_line(&mut line)?;
        times.push(begun.elapsed());
    }
    drop(input);
    child.wait()?;
    times.sort_unstable();
    let at = |share: usize| times.get(ROUNDS * share / 100).copied().unwrap_or_default();
    Ok((at(50), at(99)))
}

/// Calls per second with everything written at once.
fn pipelined() -> Result<f64, Box<dyn Error>> {
    let mut child =
        Command::new(std::env::current_exe()?).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().ok_or("no stdin")?;
    let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    let all: String = (0..ROUNDS).map(request).collect();
    let begun = Instant::now();
    let writer = std::thread::spawn(move || input.write_all(all.as_bytes()));
    let lines = output.lines().take(ROUNDS).filter(Result::is_ok).count();
    let time = begun.elapsed();
    writer.join().map_err(|_| "the writer panicked")??;
    child.wait()?;
    Ok(f64::from(u32::try_from(lines)?) / time.as_secs_f64())
}

fn measure() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let (bare, bare_99) = serial("bare")?;
    let (echo, echo_99) = serial("serve")?;
    writeln!(out, "bare pipe    p50 {bare:>9.1?}  p99 {bare_99:>9.1?}")?;
    writeln!(
        out,
        "echo         p50 {echo:>9.1?}  p99 {echo_99:>9.1?}  above the pipe {:.1?}",
        echo.saturating_sub(bare)
    )?;
    writeln!(out, "core alone   {:.2?} a call", core()?)?;
    writeln!(out, "pipelined    {:.0} calls/s", pipelined()?)?;
    Ok(())
}
