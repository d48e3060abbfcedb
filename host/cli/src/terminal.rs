//! Messages for people: with colours only on a terminal, with progress only if somebody sees it,
//! and as JSON if the log is JSON.
//!
//! Promise: others' words do not act on a terminal.
use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use toolcell_policy::Style;
use toolcell_server::{LogLevel, shell};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

use crate::logging::escaped;

/// Style of stderr. `NO_COLOR` (any value but empty) and `TERM=dumb` turn colours off.
pub fn stderr_style() -> Style {
    style(std::io::stderr().is_terminal())
}

/// Style of stdout.
pub fn stdout_style() -> Style {
    style(std::io::stdout().is_terminal())
}

fn style(terminal: bool) -> Style {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let knows_none = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
    if terminal && !refused && !knows_none { Style::Color } else { Style::Plain }
}

/// Bold text, if the style has colours.
pub fn bold(text: &str, style: Style) -> String {
    paint(text, "1", style)
}

/// Faint text, if the style has colours.
pub fn faint(text: &str, style: Style) -> String {
    paint(text, "2", style)
}

/// Red text, if the style has colours.
pub fn red(text: &str, style: Style) -> String {
    paint(text, "31", style)
}

/// Green text, if the style has colours.
pub fn green(text: &str, style: Style) -> String {
    paint(text, "32", style)
}

/// Yellow text, if the style has colours.
pub fn yellow(text: &str, style: Style) -> String {
    paint(text, "33", style)
}

fn paint(text: &str, code: &str, style: Style) -> String {
    match style {
        Style::Color => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        Style::Plain => text.to_owned(),
    }
}

/// Columns of a list for people, at most.
const LIST_COLUMNS_MAX: usize = 100;

/// Names after a label, separated by commas; further lines are aligned with the first name.
pub fn listed(label: &str, names: &[String]) -> String {
    let indent = label.chars().count();
    let mut text = label.to_owned();
    let mut column = indent;
    for (at, name) in names.iter().enumerate() {
        let comma = if at + 1 < names.len() { "," } else { "" };
        let width = name.chars().count() + comma.len();
        if column > indent && column + 1 + width > LIST_COLUMNS_MAX {
            text.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        } else if column > indent {
            text.push(' ');
            column += 1;
        }
        text.push_str(&format!("{name}{comma}"));
        column += width;
    }
    format!("{}\n", text.trim_end())
}

/// True if stderr must be JSON.
static SPEAKS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on, each message on stderr is a line of JSON, like the log's lines.
pub fn speak_json() {
    SPEAKS_JSON.store(true, Ordering::Relaxed);
}

/// True if stderr must be JSON.
pub fn speaks_json() -> bool {
    SPEAKS_JSON.load(Ordering::Relaxed)
}

/// A line of JSON with this level and these fields, including `message`.
pub fn json_line(level: tracing::Level, fields: Map<String, Value>) -> String {
    let mut timestamp = String::new();
    // If the clock cannot be formatted, the line has no time.
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    let about = [("timestamp", timestamp), ("level", level.to_string())];
    let about = about.into_iter().map(|(key, text)| (key.to_owned(), Value::String(text)));
    let line = format!("{}\n", Value::Object(about.chain(fields).collect()));
    escaped(&line, false).unwrap_or(line)
}

fn json_text(level: tracing::Level, message: &str, hint: Option<&str>) -> String {
    let fields = [("message", Some(message)), ("hint", hint)];
    let fields = fields.into_iter().filter_map(|(key, text)| Some((key.to_owned(), Value::from(text?.trim()))));
    json_line(level, fields.collect())
}

/// Prints an error with advice to stderr. Commands in both name the manifest.
pub fn error(message: &str, hint: Option<&str>) {
    let message = &*shell::named(message);
    let hint = hint.map(shell::named);
    let hint = hint.as_deref();
    if speaks_json() {
        return write(&json_text(tracing::Level::ERROR, message, hint));
    }
    let style = stderr_style();
    let label = paint("error", "1;31", style);
    let mut text = format!("{label}: {}\n", clean(message, style));
    if let Some(hint) = hint {
        text.push_str(&format!("\n{}: {}\n", paint("hint", "1;36", style), clean(hint, style)));
    }
    write(&text);
}

/// The least severe messages that are shown outside the log; a process that does not serve shows
/// all.
static SHOWN: RwLock<LogLevel> = RwLock::new(LogLevel::Debug);

/// From now on, only shows messages that a log of this level would have, and those that end the
/// process.
pub fn show_from(level: LogLevel) {
    if let Ok(mut shown) = SHOWN.write() {
        *shown = level;
    }
}

/// True if messages of this level are shown.
pub fn shows(level: LogLevel) -> bool {
    SHOWN.read().is_ok_and(|shown| *shown >= level)
}

/// Prints a remark to stderr that needs no action.
pub fn note(text: &str) {
    if shows(LogLevel::Info) {
        eprint(text);
    }
}

/// Prints a message to stderr.
pub fn eprint(text: &str) {
    if speaks_json() {
        return write(&json_text(tracing::Level::INFO, text, None));
    }
    write(&clean(text, stderr_style()));
}

/// The text with misleading characters escaped: most messages have parts from others.
fn clean(text: &str, style: Style) -> Cow<'_, str> {
    escaped(text, style == Style::Color).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// `1 rule`, `2 rules`: a number with a noun that takes an s.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Prints a warning of one sentence to stderr. Commands in it name the manifest.
pub fn warning(text: &str) {
    if !shows(LogLevel::Warn) {
        return;
    }
    let text = &*shell::named(text);
    if speaks_json() {
        return write(&json_text(tracing::Level::WARN, text, None));
    }
    write(&format!("warning: {}\n", clean(text, stderr_style())));
}

/// Writes to stderr unchanged. Errors are ignored: nobody is left to notify.
pub fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Writes data to stdout: unchanged to a program, escaped to a terminal.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let text = if stdout.is_terminal() { clean(text, stdout_style()) } else { Cow::Borrowed(text) };
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(unwritten)
}

/// Why stdout took no more: its reader closed it, or something is wrong.
fn unwritten(error: std::io::Error) -> std::io::Error {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => std::io::Error::new(std::io::ErrorKind::BrokenPipe, StdoutClosed),
        kind => std::io::Error::new(kind, format!("stdout cannot be written: {error}")),
    }
}

/// The reader of stdout closed it: it wants no more, and nothing is wrong.
#[derive(Debug)]
pub struct StdoutClosed;

impl std::fmt::Display for StdoutClosed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("stdout was closed")
    }
}

impl std::error::Error for StdoutClosed {}

/// True if stderr is a terminal for people, where a line can be redrawn.
pub fn draws() -> bool {
    std::io::stderr().is_terminal() && !speaks_json()
}

/// A line on a terminal with the number of finished steps, of all steps, and the time. It appears
/// after a second, is redrawn, and is removed at the end. Without a terminal it does nothing.
pub struct Progress {
    done: Arc<AtomicUsize>,
    /// The line is drawn until this is dropped.
    goes_on: Option<Sender<()>>,
    drawing: Option<JoinHandle<()>>,
}

impl Progress {
    pub fn new(what: &'static str, total: usize) -> Self {
        let done = Arc::new(AtomicUsize::new(0));
        let (goes_on, ends) = channel();
        let drawing = draws().then(|| {
            let done = Arc::clone(&done);
            std::thread::Builder::new().name("progress".to_owned()).spawn(move || draw(what, total, &done, &ends))
        });
        // Without a thread nothing is drawn, which is harmless.
        Self { done, goes_on: Some(goes_on), drawing: drawing.and_then(Result::ok) }
    }

    /// Sets the number of finished steps.
    pub fn at(&self, done: usize) {
        self.done.store(done, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.goes_on = None;
        // The thread removes its line first. A panic of it was already shown.
        let _ = self.drawing.take().map(JoinHandle::join);
    }
}

/// Time before the line appears.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// Interval of redraws.
const REDRAW: Duration = Duration::from_millis(250);

fn draw(what: &str, total: usize, done: &AtomicUsize, ends: &Receiver<()>) {
    let started = Instant::now();
    let mut pause = PROGRESS_AFTER;
    while ends.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let done = done.load(Ordering::Relaxed);
        let seconds = started.elapsed().as_secs();
        write(&format!("\r{what} {} {done}/{total}, {seconds} s\u{1b}[K", bar(done, total)));
        pause = REDRAW;
    }
    if started.elapsed() >= PROGRESS_AFTER {
        write("\r\u{1b}[K");
    }
}

/// Width of a progress bar, in columns.
const BAR_CELLS: usize = 24;

fn bar(done: usize, total: usize) -> String {
    let filled = (BAR_CELLS * done).checked_div(total).unwrap_or(BAR_CELLS).min(BAR_CELLS);
    format!("[{}{}]", "=".repeat(filled), " ".repeat(BAR_CELLS - filled))
}

#[cfg(test)]
mod tests {
    use toolcell_policy::Style;

    use super::{LIST_COLUMNS_MAX, bar, clean, listed};

    #[test]
    fn what_others_wrote_is_escaped_in_messages() {
        let said = "the server said: \u{202e}drowssap\u{1b}[2J\u{200b}\nnext \u{1b}[31mred";
        let expected = "the server said: \\u202edrowssap\\u001b[2J\\u200b\nnext ";
        assert_eq!(clean(said, Style::Plain), format!("{expected}\\u001b[31mred"));
        assert_eq!(clean(said, Style::Color), format!("{expected}\u{1b}[31mred"));
        assert_eq!(clean("plain é\n", Style::Plain), "plain é\n");
    }

    #[test]
    fn a_long_list_goes_on_below_its_first_name() {
        assert_eq!(listed("tools: ", &["a".to_owned(), "b".to_owned()]), "tools: a, b\n");
        assert_eq!(listed("tools: ", &[]), "tools:\n");
        let names: Vec<String> = (0..40).map(|number| format!("tool_{number}")).collect();
        let text = listed("tools: ", &names);
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.len() <= LIST_COLUMNS_MAX), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("       tool_")), "{text}");
        assert_eq!(text.split_whitespace().count(), 41);
    }

    #[test]
    fn a_bar_fills_from_the_left() {
        assert_eq!(bar(0, 8), "[                        ]");
        assert_eq!(bar(4, 8), "[============            ]");
        assert_eq!(bar(8, 8), "[========================]");
        assert_eq!(bar(1, 0), "[========================]");
    }
}
