//! Code that the fuzz targets share: an MCP server in memory and the frames that it sends. Its
//! calls run at once, on the thread that read them. Must not hold: the inputs and the checks of a
//! target.
#![allow(clippy::expect_used, reason = "what cannot happen is a finding where it does")]

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use serde_json::json;
use toolcell_mcp::{
    Call, CallResult, CheckedResult, ClientConnection, ClientLogLevel, Executor, Host, McpServer, McpTool, Outbox,
    Patience, ServedCatalog, ServerInfo, ServerOptions, ToolDefinition, ToolList, Work,
};

/// Calls that run at once. The number is small, so that short inputs reach the queue behind them.
const IN_FLIGHT_MAX: usize = 4;

/// A host that never changes.
#[derive(Debug)]
pub struct MemoryHost(Arc<MemoryCatalog>);

/// The tools of the host.
#[derive(Debug)]
pub struct MemoryCatalog(ToolList);

impl Host for MemoryHost {
    type Catalog = MemoryCatalog;

    fn snapshot(&self) -> Arc<MemoryCatalog> {
        Arc::clone(&self.0)
    }
}

impl ServedCatalog for MemoryCatalog {
    fn tools(&self) -> &ToolList {
        &self.0
    }

    async fn call(self: Arc<Self>, call: Call) -> CheckedResult {
        match self.0.tools().get(call.tool).cloned() {
            Some(tool) => tool.finish(answer(&tool.definition().name, call).await, &Patience::default()),
            None => CheckedResult::error("no such tool"),
        }
    }
}

async fn answer(name: &str, call: Call) -> CallResult {
    match name {
        "echo" => CallResult::text(call.arguments.get()),
        "hold" => {
            call.context.cancellation.cancelled().await;
            CallResult::error("stopped")
        }
        "report" => {
            for progress in [1.0, 1.0, 0.5, f64::NAN, 2.5] {
                call.context.events.progress(progress, Some(4.0), Some(call.arguments.get()));
            }
            for level in ClientLogLevel::ALL {
                call.context.events.log(level, call.arguments.get(), Some(&call.context.meta_json));
            }
            CallResult::text(call.context.request_id)
        }
        _ => CallResult::structured(call.arguments),
    }
}

/// The tools of the targets that feed frames. A tool that is not named in [`MemoryCatalog`] returns
/// its arguments, structured.
///
/// # Panics
/// If a definition of its own does not compile.
#[must_use]
pub fn tools(names: &[&str]) -> ToolList {
    let compiled = names.iter().map(|name| {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}});
        let definition = ToolDefinition::new(*name, "A tool of a fuzz target.", schema);
        Arc::new(McpTool::compile(definition).expect("a plain definition compiles"))
    });
    ToolList::new(1, compiled.collect()).expect("the names differ")
}

/// A server over these tools.
#[must_use]
pub fn server(tools: ToolList) -> Arc<McpServer<MemoryHost>> {
    let host = Arc::new(MemoryHost(Arc::new(MemoryCatalog(tools))));
    let info = ServerInfo { name: "fuzzed".to_owned(), version: "1".to_owned(), ..ServerInfo::default() };
    let options = ServerOptions { in_flight_max: IN_FLIGHT_MAX, listens_max: 2, page_size: 2, ..Default::default() };
    Arc::new(McpServer::new(host, info, options))
}

/// An executor that stores work and polls it on request.
#[derive(Clone, Default)]
pub struct Inline(Arc<Mutex<Vec<Work>>>);

impl Inline {
    /// Polls all work until none of it makes progress.
    pub fn poll(&self) {
        loop {
            let taken = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
            let before = taken.len();
            let mut context = Context::from_waker(Waker::noop());
            let still = |mut work: Work| matches!(work.as_mut().poll(&mut context), Poll::Pending).then_some(work);
            let pending: Vec<Work> = taken.into_iter().filter_map(still).collect();
            let ended = before - pending.len();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(pending);
            if ended == 0 {
                return;
            }
        }
    }
}

impl Executor for Inline {
    fn run(&self, work: Work) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(work);
    }
}

/// An executor that runs work on the calling thread, up to its first wait. The tools of a target
/// that uses this never wait.
#[derive(Clone, Copy, Debug)]
pub struct AtOnce;

impl Executor for AtOnce {
    fn run(&self, mut work: Work) {
        let _ = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// Frames that the server sent.
#[derive(Debug, Default)]
pub struct Frames(Mutex<Vec<Vec<u8>>>);

impl Frames {
    /// The frames since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Outbox for Frames {
    fn queue(&self, frame: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
    }
}

/// A connection whose calls make progress when they are polled.
pub struct Client {
    /// Takes frames in.
    pub connection: ClientConnection<MemoryHost>,
    /// Collects the frames that come out.
    pub frames: Arc<Frames>,
    work: Inline,
}

impl Client {
    /// Connects to this server.
    #[must_use]
    pub fn of(server: &Arc<McpServer<MemoryHost>>) -> Self {
        let frames = Arc::new(Frames::default());
        let work = Inline::default();
        let outbox: Arc<dyn Outbox> = Arc::<Frames>::clone(&frames);
        let connection = server.connect(outbox, Arc::new(work.clone()));
        Self { connection, frames, work }
    }

    /// Sends a frame, lets every call make progress, and returns the frames that came.
    #[must_use]
    pub fn ask(&self, frame: &[u8]) -> Vec<Vec<u8>> {
        self.connection.receive(frame);
        self.work.poll();
        self.frames.take()
    }

    /// Closes the connection and returns the frames that still came. Nothing is open afterwards.
    #[must_use]
    pub fn leave(&self) -> Vec<Vec<u8>> {
        self.connection.cancel_all();
        self.connection.end_subscriptions();
        self.work.poll();
        assert!(self.connection.is_idle(), "calls are open though all were cancelled");
        self.frames.take()
    }
}
