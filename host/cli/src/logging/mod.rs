//! The operator's log: lines on stderr, as text or JSON. A separate thread writes them, so that a
//! slow reader delays nothing. Its level can change while it runs. Must not hold: messages.
mod escape;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use toolcell_server::{LogLevel, OperatorLog};
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt, reload};

use crate::args::{LogArgs, LogFormat};
use crate::terminal;
use escape::Escaping;
pub use escape::escaped;

/// Lines kept for a slow reader; further ones are dropped. A tool prints at most 64 KiB a call
/// unless the manifest allows more.
const LINES_MAX: usize = 10_000;

/// The log. Lines are written until it is dropped.
pub struct Log {
    control: LogControl,
    _guard: WorkerGuard,
}

/// A handle to the log. Cheap to clone.
#[derive(Clone)]
pub struct LogControl(Arc<LogState>);

struct LogState {
    handle: reload::Handle<LevelFilter, Registry>,
    /// Index of the level in [`LEVELS`].
    level: AtomicU8,
    /// True once a level was set, so that the manifest's is ignored.
    is_chosen: AtomicBool,
    format: LogFormat,
    errors: ErrorCounter,
}

impl Log {
    /// A handle to the log.
    pub fn control(&self) -> LogControl {
        self.control.clone()
    }
}

impl LogControl {
    fn apply(&self, level: LogLevel) -> bool {
        let set = self.0.handle.reload(filter(level)).is_ok();
        if set {
            self.0.level.store(place(level), Ordering::Relaxed);
            // Messages outside the log follow its level.
            terminal::show_from(level);
        }
        set
    }
}

impl OperatorLog for LogControl {
    fn level(&self) -> LogLevel {
        let place = usize::from(self.0.level.load(Ordering::Relaxed));
        LEVELS.get(place).copied().unwrap_or(LogLevel::Info)
    }

    fn set_level(&self, level: LogLevel) -> bool {
        self.0.is_chosen.store(true, Ordering::Relaxed);
        self.apply(level)
    }

    fn follow(&self, level: LogLevel) {
        if !self.0.is_chosen.load(Ordering::Relaxed) && level != self.level() {
            // If the level cannot change, it stays.
            let _ = self.apply(level);
        }
    }

    fn lines_dropped(&self) -> u64 {
        u64::try_from(self.0.errors.dropped_lines()).unwrap_or(u64::MAX)
    }

    /// Prints outside the log, or as a line of the log if stderr is JSON.
    fn announce(&self, text: &str) {
        match self.0.format {
            LogFormat::Text if self.level() >= LogLevel::Info => terminal::eprint(&format!("{text}\n")),
            LogFormat::Text => {}
            LogFormat::Json => tracing::info!("{text}"),
        }
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
    let level = args.log.map_or(LogLevel::Info, LogLevel::from);
    terminal::show_from(level);
    let (layer, handle) = reload::Layer::new(filter(level));
    let log = tracing_subscriber::registry().with(layer);
    let is_coloured = args.log_format == LogFormat::Text
        && std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = fmt::layer().with_target(false).with_ansi(is_coloured);
    let lines = lines.with_writer(move || Escaping::new(writer.clone(), is_coloured));
    // Fails only if a log was already started, which then stays.
    let _ = match args.log_format {
        LogFormat::Text => log.with(lines).try_init(),
        LogFormat::Json => {
            log.with(lines.json().flatten_event(true).with_current_span(false).with_span_list(false)).try_init()
        }
    };
    let level = AtomicU8::new(place(level));
    let format = args.log_format;
    let is_chosen = AtomicBool::new(args.log.is_some());
    Log { control: LogControl(Arc::new(LogState { handle, level, is_chosen, format, errors })), _guard: guard }
}

const LEVELS: [LogLevel; 5] = [LogLevel::Off, LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug];

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}

fn place(level: LogLevel) -> u8 {
    let place = LEVELS.iter().position(|known| *known == level);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or_default()
}
