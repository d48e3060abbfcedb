//! The operator's log: lines on stderr, written by a thread of their own so that nobody waits for whoever reads them.
use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};

use crate::args::LogFilter;

/// Lines held for a reader that is behind; past them, lines are dropped. A tool prints at most 64 KiB a call unless the
/// manifest says more.
const LINES_MAX: usize = 10_000;

/// Starts the log. Lines are written until the guard is dropped.
pub fn start(filter: LogFilter) -> WorkerGuard {
    let (writer, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES_MAX).finish(std::io::stderr());
    let level = match filter {
        LogFilter::Off => LevelFilter::OFF,
        LogFilter::Error => LevelFilter::ERROR,
        LogFilter::Warn => LevelFilter::WARN,
        LogFilter::Info => LevelFilter::INFO,
        LogFilter::Debug => LevelFilter::DEBUG,
    };
    // Fails only where a log was started before: then that one goes on.
    let _ = tracing_subscriber::fmt()
        .with_writer(writer)
        .with_max_level(level)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
        .with_target(false)
        .try_init();
    guard
}
