//! The operator's log: lines on stderr, as text or JSON, written by a thread of their own so that nobody waits for whoever
//! reads them. How much is written can change while it goes on. Must not hold: what there is to say.
mod escape;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ValueEnum as _;
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};

use crate::args::{LogArgs, LogFilter, LogFormat};
use crate::terminal;
use escape::Escaping;
pub use escape::escaped;

/// Lines held for a reader that is behind; past them, lines are dropped. A tool prints at most 64 KiB a call unless the
/// manifest says more.
const LINES_MAX: usize = 10_000;

/// The log. Lines are written until this is dropped.
pub struct Log {
    control: LogControl,
    _guard: WorkerGuard,
}

/// A way to the log for whoever looks after it. Cheap to clone.
#[derive(Clone)]
pub struct LogControl(Arc<Controlled>);

struct Controlled {
    handle: reload::Handle<LevelFilter, Registry>,
    /// The place of what is written among [`LogFilter`]'s values.
    filter: AtomicU8,
    format: LogFormat,
    errors: ErrorCounter,
}

impl Log {
    /// A way to it.
    pub fn control(&self) -> LogControl {
        self.control.clone()
    }
}

impl LogControl {
    /// How much is written.
    pub fn filter(&self) -> LogFilter {
        let place = usize::from(self.0.filter.load(Ordering::Relaxed));
        LogFilter::value_variants().get(place).copied().unwrap_or(LogFilter::Info)
    }

    /// From now on, so much is written. Gives whether that could be changed.
    pub fn set(&self, filter: LogFilter) -> bool {
        let set = self.0.handle.reload(level(filter)).is_ok();
        if set {
            self.0.filter.store(place(filter), Ordering::Relaxed);
        }
        set
    }

    /// Tells people something that is no line of the log: beside it, or where whoever reads it takes only JSON, as one.
    pub fn announce(&self, text: &str) {
        match self.0.format {
            LogFormat::Text => terminal::say(&format!("{text}\n")),
            LogFormat::Json => tracing::info!("{text}"),
        }
    }

    /// Lines that were dropped since nobody read them in time.
    pub fn lines_dropped(&self) -> u64 {
        u64::try_from(self.0.errors.dropped_lines()).unwrap_or(u64::MAX)
    }
}

/// Starts the log.
pub fn start(args: &LogArgs) -> Log {
    if args.log_format == LogFormat::Json {
        terminal::speak_json();
    }
    let (writer, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES_MAX).finish(std::io::stderr());
    let errors = writer.error_counter();
    let (filter, handle) = reload::Layer::new(level(args.log));
    let log = tracing_subscriber::registry().with(filter);
    let is_coloured = args.log_format == LogFormat::Text
        && std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = fmt::layer().with_target(false).with_ansi(is_coloured);
    let lines = lines.with_writer(move || Escaping::new(writer.clone(), is_coloured));
    // Fails only where a log was started before: then that one goes on.
    let _ = match args.log_format {
        LogFormat::Text => log.with(lines).try_init(),
        LogFormat::Json => {
            log.with(lines.json().flatten_event(true).with_current_span(false).with_span_list(false)).try_init()
        }
    };
    let (filter, format) = (AtomicU8::new(place(args.log)), args.log_format);
    Log { control: LogControl(Arc::new(Controlled { handle, filter, format, errors })), _guard: guard }
}

fn level(filter: LogFilter) -> LevelFilter {
    match filter {
        LogFilter::Off => LevelFilter::OFF,
        LogFilter::Error => LevelFilter::ERROR,
        LogFilter::Warn => LevelFilter::WARN,
        LogFilter::Info => LevelFilter::INFO,
        LogFilter::Debug => LevelFilter::DEBUG,
    }
}

fn place(filter: LogFilter) -> u8 {
    let place = LogFilter::value_variants().iter().position(|known| *known == filter);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or_default()
}
