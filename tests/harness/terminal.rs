//! Commands on a terminal of their own. Python's `pty` makes the terminal, and passes on typed
//! input and shown output.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Runs its arguments on a new terminal, and ends with their exit code.
const SPAWN: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// The key that interrupts a command.
pub const CTRL_C: &str = "\u{3}";

/// Time that an interrupted command may show nothing before it is killed.
const FAREWELL: Duration = Duration::from_secs(5);

/// True if this machine has terminals. It may have no `/dev/ptmx`.
///
/// # Panics
/// If Python 3 cannot be started.
#[must_use]
pub fn can_be_had() -> bool {
    let tried = std::process::Command::new("python3").args(["-c", "import pty; pty.openpty()"]).output();
    tried.unwrap().status.success()
}

/// A command that runs on a terminal. Dropping this ends it.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: Option<ChildStdin>,
    screen: Receiver<Vec<u8>>,
    shown: Vec<u8>,
    end: Instant,
}

impl Terminal {
    /// Starts a command, which must end within `patience`.
    ///
    /// # Panics
    /// If Python 3 cannot be started.
    #[must_use]
    pub fn running(command: &std::process::Command, patience: Duration) -> Self {
        let mut python = std::process::Command::new("python3");
        python.args(["-c", SPAWN]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => python.env(name, value),
                None => python.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            python.current_dir(folder);
        }
        let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut part) {
                if sender.send(part[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keyboard = child.stdin.take();
        Self { child, keyboard, screen, shown: Vec::new(), end: Instant::now() + patience }
    }

    /// Waits until this text has been shown.
    ///
    /// # Panics
    /// If the command ends before that, or it takes too long.
    pub fn until(&mut self, text: &str) -> String {
        while !self.shown().contains(text) {
            assert!(self.read(), "it ends without {text:?}:\n{}", self.shown());
        }
        self.shown()
    }

    /// Types this.
    ///
    /// # Panics
    /// If the command has ended.
    pub fn type_in(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// Waits until the command has ended. Returns its exit code and everything shown.
    ///
    /// # Panics
    /// If that takes too long.
    #[must_use]
    pub fn ended(mut self) -> (i32, String) {
        while self.read() {}
        let status = self.child.wait().unwrap();
        (status.code().unwrap(), self.shown())
    }

    /// Takes in the output shown since the last call. `false` at the end.
    fn read(&mut self) -> bool {
        match self.screen.recv_timeout(self.end.saturating_duration_since(Instant::now())) {
            Ok(part) => self.shown.extend(part),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("it takes too long:\n{}", self.shown()),
        }
        true
    }

    /// Lines of a terminal also end with a carriage return.
    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown).replace("\r\n", "\n")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // For a server the end of its terminal would mean a reload. A command that has ended does
        // not get this key.
        let _ = self.keyboard.as_mut().map(|keyboard| keyboard.write_all(CTRL_C.as_bytes()));
        while self.screen.recv_timeout(FAREWELL).is_ok() {}
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
