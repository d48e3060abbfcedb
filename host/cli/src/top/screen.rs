//! The terminal: polls the processes once a second, reads keys, draws, and restores the terminal.
use std::io::{Stdout, stdin, stdout};
use std::sync::mpsc::{self as std_mpsc, RecvTimeoutError};
use std::time::Duration;

use ratatui::backend::TermionBackend;
use ratatui::layout::Rect;
use ratatui::termion;
use ratatui::termion::event::Key;
use ratatui::termion::input::TermRead as _;
use ratatui::termion::raw::{IntoRawMode as _, RawTerminal};
use ratatui::termion::screen::{AlternateScreen, IntoAlternateScreen as _};
use ratatui::{Terminal, TerminalOptions, Viewport};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::ask::{Processes, Seen, decide};
use super::draw::Screen;
use super::press::{AfterKey, press};
use super::state::TopState;
use crate::exit::Exit;

/// Time between two polls of the processes, whose figures change once a second.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// Columns and rows of a terminal that does not know its size, such as a serial line.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// Keys and answers in the queue. Senders wait while it is full.
const QUEUE_MAX: usize = 64;

/// Consecutive malformed inputs. More of them mean that the terminal is gone.
const WRONG_KEYS_MAX: usize = 16;

type Screens = Terminal<TermionBackend<AlternateScreen<RawTerminal<Stdout>>>>;

enum ScreenMessage {
    Key(Key),
    /// No more keys will come.
    NoKeys,
    Seen(Seen),
    Came(Result<String, String>),
}

/// Signals that end the screen, and the one for a changed size.
struct Signals {
    terminated: Signal,
    interrupted: Signal,
    hung_up: Signal,
    resized: Signal,
}

/// Shows the processes until the person quits, or a signal comes.
pub fn run(processes: Processes, seen: Seen, has_colours: bool) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (sender, messages) = channel(QUEUE_MAX);
    let (look, looks) = std_mpsc::channel();
    let signals = {
        let _inside = runtime.enter();
        Signals::new()?
    };
    let watched = sender.clone();
    std::thread::Builder::new().name("top-looks".to_owned()).spawn(move || watch(&processes, &looks, &watched))?;
    let writer = stdout().into_raw_mode()?.into_alternate_screen()?;
    // The signal reports size changes: drawing never queries a terminal that does not know its
    // size.
    let options = TerminalOptions { viewport: Viewport::Fixed(area()) };
    let mut screen = Terminal::with_options(TermionBackend::new(writer), options)?;
    let keyed = sender.clone();
    std::thread::Builder::new().name("top-keys".to_owned()).spawn(move || read_keys(&keyed))?;
    let table = BetweenDrawings { seen, state: TopState::default(), has_colours, sender, look };
    let shown = runtime.block_on(table.show(&mut screen, messages, signals));
    // The screen is restored before an error is printed. Threads that wait for a key or a process
    // are abandoned.
    drop(screen);
    runtime.shutdown_background();
    shown.map(|()| Exit::Done)
}

/// Everything between two drawings.
struct BetweenDrawings {
    seen: Seen,
    state: TopState,
    has_colours: bool,
    sender: Sender<ScreenMessage>,
    look: std_mpsc::Sender<()>,
}

impl BetweenDrawings {
    async fn show(
        mut self,
        screen: &mut Screens,
        mut messages: Receiver<ScreenMessage>,
        mut signals: Signals,
    ) -> anyhow::Result<()> {
        screen.resize(area())?;
        loop {
            let Self { seen, state, has_colours, .. } = &self;
            let page = Screen { seen, state, has_colours: *has_colours };
            screen.draw(|frame| frame.render_widget(page, frame.area()))?;
            tokio::select! {
                ends = signals.end() => if ends { return Ok(()) } else { screen.resize(area())? },
                message = messages.recv() => match message {
                    Some(ScreenMessage::NoKeys) | None => return Ok(()),
                    Some(message) => if self.take(message)? { return Ok(()) },
                },
            }
        }
    }

    /// Handles a message. True at the end.
    fn take(&mut self, message: ScreenMessage) -> anyhow::Result<bool> {
        match message {
            ScreenMessage::Key(key) => match press(&mut self.state, &self.seen, key) {
                AfterKey::Stay => {}
                AfterKey::Quit => return Ok(true),
                AfterKey::Decide(target) => {
                    let sender = self.sender.clone();
                    let tell = move || drop(sender.blocking_send(ScreenMessage::Came(decide(&target))));
                    std::thread::Builder::new().name("top-decision".to_owned()).spawn(tell)?;
                }
            },
            ScreenMessage::Seen(seen) if !self.state.paused => {
                self.state.settle(&seen);
                self.seen = seen;
            }
            ScreenMessage::Seen(_) => {}
            ScreenMessage::Came(came) => {
                (self.state.is_deciding, self.state.notice) = (false, Some(came));
                // The thread lives as long as the program.
                let _ = self.look.send(());
            }
            ScreenMessage::NoKeys => return Ok(true),
        }
        Ok(false)
    }
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminated: signal(SignalKind::terminate())?,
            interrupted: signal(SignalKind::interrupt())?,
            hung_up: signal(SignalKind::hangup())?,
            resized: signal(SignalKind::window_change())?,
        })
    }

    /// Waits for a signal. True if it ends the screen.
    async fn end(&mut self) -> bool {
        tokio::select! {
            _ = self.terminated.recv() => true,
            _ = self.interrupted.recv() => true,
            _ = self.hung_up.recv() => true,
            _ = self.resized.recv() => false,
        }
    }
}

/// The terminal's area.
fn area() -> Rect {
    let known = termion::terminal_size().ok().filter(|(width, height)| *width > 0 && *height > 0);
    let (width, height) = known.unwrap_or(USUAL_SIZE);
    Rect::new(0, 0, width, height)
}

/// Polls the processes once a second, and at once after a decision.
fn watch(processes: &Processes, looks: &std_mpsc::Receiver<()>, sender: &Sender<ScreenMessage>) {
    while looks.recv_timeout(POLL_EVERY) != Err(RecvTimeoutError::Disconnected) {
        if sender.blocking_send(ScreenMessage::Seen(processes.poll())).is_err() {
            return;
        }
    }
}

fn read_keys(sender: &Sender<ScreenMessage>) {
    let mut wrong = 0;
    for key in stdin().lock().keys() {
        match key {
            Ok(key) => {
                wrong = 0;
                if sender.blocking_send(ScreenMessage::Key(key)).is_err() {
                    return;
                }
            }
            Err(_) if wrong < WRONG_KEYS_MAX => wrong += 1,
            Err(_) => break,
        }
    }
    // The receiver is gone once the screen is restored.
    let _ = sender.blocking_send(ScreenMessage::NoKeys);
}
