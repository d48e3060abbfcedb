//! The stdio transport: newline-framed messages over a pair of descriptors (pipes, socketpairs,
//! files or a terminal), one reader, one writer. Only frames are ever written to the output.
//!
//! Inherited descriptors are never switched to non-blocking, since other processes may share them.
//! Every read and write follows a poll instead, and goes only as far as it cannot block.

mod drain;
mod output;
mod reader;
mod wake;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::host::{Executor, Host, Outbox};
use crate::server::McpServer;

use drain::Drain;
use output::StdioOutput;
use reader::{MoreInput, ReaderExecutor, StdioReader};
pub use wake::StdioShutdown;
use wake::Wake;

/// Longest message, in bytes. 16 MiB: a document as an argument fits, and an endless line is
/// stopped.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Unread output at which reading stops, in bytes. 8 MiB: a burst of results fits, and a client
/// that never reads uses no more.
pub const OUTPUT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Time for calls to finish after the input ended. 1.5 s: clients kill their child after 2 s, and
/// cancelled calls end within milliseconds.
pub const DRAIN: Duration = Duration::from_millis(1_500);

/// Time for calls to finish after shutdown began. 2 s: below the patience of service managers.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// The descriptors and limits of the transport.
#[derive(Debug)]
pub struct StdioOptions {
    /// The source of messages.
    pub input: OwnedFd,
    /// The destination of messages.
    pub output: OwnedFd,
    /// Longest message, in bytes ([`LINE_BYTES_MAX`]). A longer one is answered with an error and
    /// skipped.
    pub line_bytes_max: usize,
    /// Unread output at which reading stops and no further call begins, in bytes
    /// ([`OUTPUT_BYTES_MAX`]).
    pub output_bytes_max: usize,
    /// Time for calls to finish after the input ended ([`DRAIN`]); then they are cancelled.
    pub drain: Duration,
    /// Time for calls to finish after shutdown began ([`SHUTDOWN_GRACE`]); then they are cancelled.
    pub shutdown_grace: Duration,
}

impl StdioOptions {
    /// The defaults over these descriptors.
    #[must_use]
    pub fn over(input: OwnedFd, output: OwnedFd) -> Self {
        Self {
            input,
            output,
            line_bytes_max: LINE_BYTES_MAX,
            output_bytes_max: OUTPUT_BYTES_MAX,
            drain: DRAIN,
            shutdown_grace: SHUTDOWN_GRACE,
        }
    }

    /// The defaults over the process's own stdin and stdout.
    ///
    /// # Errors
    /// One of them is closed, or no descriptor is left.
    pub fn of_process() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self::over(input, output))
    }
}

/// Why serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdioEnd {
    /// The client closed the input. The usual way; exit code 0.
    Eof,
    /// [`StdioShutdown::begin`] was called.
    Shutdown,
    /// The client closed the output: nobody is left to answer.
    OutputClosed,
}

/// Why serving failed.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// A descriptor or a thread could not be created.
    #[error("stdio transport could not start")]
    Setup(#[source] io::Error),
    /// The input cannot be read.
    #[error("stdin could not be read")]
    Input(#[source] io::Error),
}

/// Serves one client over stdio. Blocks: the calling thread is the reader. It returns when
/// everything that was read is answered (or its time is over) and the answers are written.
///
/// # Errors
/// The transport could not start, or its input cannot be read.
pub fn serve<H: Host>(
    server: &Arc<McpServer<H>>,
    options: StdioOptions,
    executor: impl Executor,
    shutdown: &StdioShutdown,
) -> Result<StdioEnd, StdioError> {
    let StdioOptions { input, output, line_bytes_max, output_bytes_max, drain, shutdown_grace } = options;
    let wake = Arc::new(Wake::new().map_err(StdioError::Setup)?);
    let output = StdioOutput::start(output, output_bytes_max, Arc::clone(&wake)).map_err(StdioError::Setup)?;
    let outbox: Arc<dyn Outbox> = Arc::<output::SharedOutput>::clone(output.shared());
    let behind = MoreInput::default();
    let reader = std::thread::current().id();
    let executor: Arc<dyn Executor> = Arc::new(ReaderExecutor { executor, reader, behind: behind.clone() });
    let connection = server.connect(outbox, Arc::clone(&executor));
    let reader = StdioReader {
        input,
        line_bytes_max,
        connection: &connection,
        output: output.shared(),
        wake: &wake,
        shutdown,
        behind,
        executor: &*executor,
    };
    let ended = reader.run();
    executor.leave();
    let time = if matches!(ended, Ok(StdioEnd::Eof)) { drain } else { shutdown_grace };
    Drain { connection: &connection, output: output.shared(), wake: &wake, shutdown, shutdown_grace }.run(time);
    drop(output);
    ended.map_err(StdioError::Input)
}
