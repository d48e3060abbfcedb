//! One run of a `toolcell` command, from its start to its end.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::folder::RUNTIME_FOLDER;
use crate::frames::last_lines;
use crate::patience;
use crate::terminal::Terminal;
use crate::{Folder, binary};

/// A command to run.
#[derive(Debug)]
pub struct Command {
    process: std::process::Command,
    input: Vec<u8>,
}

/// The result of a run. As text for people it has the end of all that was printed.
pub struct Finished {
    /// The exit status of the process.
    pub status: ExitStatus,
    /// All of its stdout.
    pub stdout: String,
    /// All of its stderr.
    pub stderr: String,
}

impl Command {
    /// `toolcell` with these arguments, in the folder where the tests run.
    #[must_use]
    pub fn toolcell(arguments: &[&str]) -> Self {
        let mut process = std::process::Command::new(binary::toolcell());
        process.args(arguments).env_remove("RUST_BACKTRACE");
        Self { process, input: Vec::new() }
    }

    /// `toolcell` with these arguments in this folder, where it finds the hosts that serve from it.
    #[must_use]
    pub fn in_folder(folder: &Folder, arguments: &[&str]) -> Self {
        Self::toolcell(arguments)
            .working_in(folder.path())
            .with_variable(RUNTIME_FOLDER, &folder.runtime().to_string_lossy())
    }

    /// Runs it in a process with at most this many KiB of address space.
    #[must_use]
    pub fn within_address_space(mut self, kib: u64) -> Self {
        let mut process = binary::within_address_space(kib);
        process.args(self.process.get_args());
        process.envs(self.process.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = self.process.get_current_dir() {
            process.current_dir(folder);
        }
        self.process = process;
        self
    }

    /// Runs it in this folder.
    #[must_use]
    pub fn working_in(mut self, folder: &Path) -> Self {
        self.process.current_dir(folder);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.process.env(name, value);
        self
    }

    /// Gives it this input on stdin. Without it, stdin is empty.
    #[must_use]
    pub fn with_input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Starts it on a terminal, which is also its stdin.
    ///
    /// # Panics
    /// If there is no terminal to be had.
    #[must_use]
    pub fn on_terminal(self) -> Terminal {
        Terminal::running(&self.process, 2 * patience())
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it does not start, or takes too long, in which case it is killed.
    #[must_use]
    pub fn run(mut self) -> Finished {
        self.process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.process.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.input;
        // A command that ends without reading its input is not a failure of the test.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let stdout = read_all(child.stdout.take().unwrap());
        let stderr = read_all(child.stderr.take().unwrap());
        let end = Instant::now() + 2 * patience();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                child.kill().unwrap();
                let status = child.wait().unwrap();
                let ended = Finished { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() };
                panic!("{:?} takes too long: {ended:?}", self.process);
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        writer.join().unwrap();
        Finished { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    }
}

fn read_all(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl std::fmt::Debug for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stdout = last_lines(&self.stdout);
        let stderr = last_lines(&self.stderr);
        write!(f, "{}\non stdout:\n{stdout}on stderr:\n{stderr}", self.status)
    }
}

impl Finished {
    /// The exit code.
    ///
    /// # Panics
    /// If a signal ended the process.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("ended by a signal: {self:?}"))
    }

    /// The stdout of a run that succeeded.
    ///
    /// # Panics
    /// If it failed.
    #[must_use]
    pub fn succeeded(&self) -> &str {
        assert_eq!(self.code(), 0, "{self:?}");
        &self.stdout
    }

    /// The stderr of a run that ended with this exit code.
    ///
    /// # Panics
    /// If it ended with another.
    #[must_use]
    pub fn failed_with(&self, code: i32) -> &str {
        assert_eq!(self.code(), code, "{self:?}");
        &self.stderr
    }

    /// Stdout as one JSON value.
    ///
    /// # Panics
    /// If it is not one JSON value.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Stdout as frames, one to a line.
    ///
    /// # Panics
    /// If a line is not JSON.
    #[must_use]
    pub fn frames(&self) -> Vec<Value> {
        let frame = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}: {self:?}"));
        self.stdout.lines().map(frame).collect()
    }
}
