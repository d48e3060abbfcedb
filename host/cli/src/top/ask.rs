//! Requests to the processes that serve a manifest, over their control sockets.
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcell_mcp::sanitize;
use toolcell_server::control::{
    ActivitySnapshot, ControlSocket, Decision, DecisionRequest, Request, Unreachable, ask, sockets,
};

/// Processes that are shown. Each client over stdio has one.
const PROCESSES_MAX: usize = 64;

/// The processes that serve a manifest.
#[derive(Clone, Debug)]
pub struct Processes {
    pub control: ControlSocket,
    pub manifest: PathBuf,
}

/// Their activity at one time.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Those that answered.
    pub processes: Vec<Process>,
    /// One sentence for each of the others.
    pub problems: Vec<String>,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    pub socket: PathBuf,
    pub activity: ActivitySnapshot,
}

/// A socket, and the answer of its process.
pub type SocketAnswer = (PathBuf, Result<Value, Unreachable>);

/// What a decision is about: something that one process showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub socket: PathBuf,
    pub run: String,
    pub decision: Decision,
}

impl Processes {
    /// The answers of all, as they came.
    pub fn answers(&self) -> Result<Vec<SocketAnswer>, Unreachable> {
        let paths = sockets(&self.control, &self.manifest)?;
        let asked = paths.into_iter().take(PROCESSES_MAX).map(|path| {
            let answer = ask(&path, &Request::Activity);
            (path, answer)
        });
        Ok(asked.collect())
    }

    /// The activity of all.
    pub fn poll(&self) -> Seen {
        match self.answers() {
            Ok(answers) => Seen::of(answers),
            Err(nobody) => Seen { problems: vec![shown(&nobody.to_string())], ..Seen::default() },
        }
    }
}

impl Seen {
    /// The activity in these answers.
    pub fn of(answers: Vec<SocketAnswer>) -> Self {
        let mut seen = Self::default();
        for (socket, answer) in answers {
            match answer.map_err(|error| error.to_string()).and_then(read) {
                Ok(activity) => seen.processes.push(Process { socket, activity }),
                Err(problem) => seen.problems.push(shown(&problem)),
            }
        }
        seen
    }
}

fn read(answer: Value) -> Result<ActivitySnapshot, String> {
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        return Err(error.to_owned());
    }
    serde_json::from_value(answer).map_err(|_| "a process of another version serves the manifest".to_owned())
}

/// Sends a decision, and waits for its outcome: one sentence, as `Err` if it was not carried out.
pub fn decide(target: &Target) -> Result<String, String> {
    let request = DecisionRequest { run: target.run.clone(), decision: target.decision };
    came(&target.socket, &Request::Decide(request))
}

fn came(socket: &Path, request: &Request) -> Result<String, String> {
    let answer = ask(socket, request).map_err(|error| shown(&error.to_string()))?;
    let text = |key: &str| answer.get(key).and_then(Value::as_str).map(shown);
    match (text("text"), text("error"), text("hint")) {
        (Some(text), _, _) if answer.get("done") == Some(&Value::Bool(true)) => Ok(text),
        (Some(text), _, _) => Err(text),
        (None, Some(error), Some(hint)) => Err(format!("{error}: {hint}")),
        (None, error, _) => Err(error.unwrap_or_else(|| "the process gave no answer".to_owned())),
    }
}

fn shown(text: &str) -> String {
    sanitize::line(text).into_owned()
}
