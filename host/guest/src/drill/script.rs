//! The steps of a drill.
use std::os::fd::{IntoRawFd as _, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde_json::{Value, json};
use toolcell_walls::drill;
use toolcell_walls::link::Sender;

use super::{OPEN, forged};
use toolcell_wall::caller::Outside;
use toolcell_wall::message::CallId;

/// Bytes of one answer that the guest gets to see.
const PRINTABLE_BYTES_MAX: usize = 16 << 10;

/// `fcntl`'s command to set how a descriptor is used.
const F_SETFL: i32 = 4;

/// The sandbox process that native code runs in.
pub(super) struct Process {
    /// The link to the host, and its socket.
    pub(super) link: &'static (Sender, RawFd),
    /// The call that runs.
    pub(super) call: CallId,
    /// The way to doors.
    pub(super) outside: Option<Arc<dyn Outside>>,
}

/// One step of a script. Each has one answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScriptStep {
    /// A system call by its name, up to `times` until it fails.
    Call {
        name: String,
        #[serde(default)]
        arguments: Vec<Argument>,
        #[serde(default = "once")]
        times: u64,
    },
    /// Reads memory.
    Peek { at: Argument, bytes: usize },
    /// Writes memory.
    Poke { at: Argument, bytes: Vec<u8> },
    /// Writes to each page of memory.
    Touch { at: Argument, bytes: usize },
    /// Jumps to an address.
    Jump { at: Argument },
    /// Sends the host messages that no honest process sends.
    Forge {
        message: String,
        #[serde(default = "once")]
        times: u64,
    },
    /// Asks the host to open a door. The answer is its descriptor.
    Door,
    /// Sends the first frame of a door: its kind, and the target.
    Want { door: Argument, kind: String, of: String },
    /// Removes the bounds of guests in this process.
    Open,
    /// Never ends.
    Spin,
}

/// An argument, or an address.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Argument {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Zeroed memory of this many bytes; what the kernel wrote to it is part of the answer.
    Room(usize),
    /// Words of 64 bits, each an argument itself.
    Words(Vec<Argument>),
    /// The answer to an earlier step.
    Answer(usize),
    /// The socket of the link.
    Link(()),
    /// A number.
    #[serde(untagged)]
    Number(i64),
    /// A text, with a zero after it.
    #[serde(untagged)]
    Text(String),
}

impl<N: Into<i64>> From<N> for Argument {
    fn from(number: N) -> Self {
        Self::Number(number.into())
    }
}

const fn once() -> u64 {
    1
}

/// Runs a script. Returns the answers as a JSON list.
pub(super) async fn run(script: &str, process: &Process) -> Result<String, String> {
    let steps: Vec<ScriptStep> = serde_json::from_str(script).map_err(|error| format!("not a script: {error}"))?;
    let mut answers: Vec<(i64, Value)> = Vec::new();
    for step in steps {
        let answer = taken(step, process, &answers).await?;
        answers.push(answer);
    }
    Ok(Value::from_iter(answers.into_iter().map(|(_, told)| told)).to_string())
}

/// Takes a step. Returns its number, for later steps, and the answer that the guest sees.
async fn taken(step: ScriptStep, process: &Process, answers: &[(i64, Value)]) -> Result<(i64, Value), String> {
    let mut memory = StepMemory { process, answers, buffers: Vec::new(), rooms: Vec::new() };
    match step {
        ScriptStep::Call { name, arguments, times } => memory.call(&name, &arguments, times),
        ScriptStep::Peek { at, bytes } => {
            let read = drill::peek(memory.number(&at)?, bytes);
            Ok((0, json!({"answer": 0, "data": [printable(&read)]})))
        }
        ScriptStep::Poke { at, bytes } => {
            drill::poke(memory.number(&at)?, &bytes);
            Ok(done())
        }
        ScriptStep::Touch { at, bytes } => {
            drill::touch(memory.number(&at)?, bytes);
            Ok(done())
        }
        ScriptStep::Jump { at } => {
            let answer = drill::jump(memory.number(&at)?).cast_signed();
            Ok((answer as i64, json!({"answer": answer})))
        }
        ScriptStep::Forge { message, times } => {
            let bytes = forged::message(&message, process.call).ok_or_else(|| format!("no message {message}"))?;
            let mut sent = 0_u64;
            // Frames that the host does not read yet wait in a queue; once that is full, sending
            // fails.
            while sent < times && process.link.0.send(&bytes, &[]).is_ok() {
                sent += 1;
            }
            Ok((sent.cast_signed(), json!({"answer": sent})))
        }
        ScriptStep::Door => {
            let outside = process.outside.as_ref().ok_or("there is no way to a door")?;
            match outside.open(Vec::new()).await {
                Ok(door) => {
                    let door = door.into_raw_fd();
                    // Reading waits for the host.
                    memory.call("SYS_fcntl", &[door.into(), F_SETFL.into(), 0.into()], 1)?;
                    Ok((door.into(), json!({"answer": door})))
                }
                Err(error) => Ok((-1, json!({"refused": error.to_string()}))),
            }
        }
        ScriptStep::Want { door, kind, of } => {
            let frame = forged::opening(&kind, &of).ok_or_else(|| format!("no door {kind} to {of}"))?;
            let bytes = i64::try_from(frame.len()).map_err(|error| error.to_string())?;
            memory.call("SYS_write", &[door, Argument::Bytes(frame), bytes.into()], 1)
        }
        ScriptStep::Open => {
            OPEN.store(true, Ordering::Relaxed);
            Ok(done())
        }
        ScriptStep::Spin => loop {
            std::hint::spin_loop();
        },
    }
}

fn done() -> (i64, Value) {
    (0, json!({"answer": 0}))
}

/// Bytes as the guest sees them.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..PRINTABLE_BYTES_MAX).unwrap_or(bytes)).trim_end_matches('\0').to_owned()
}

/// The buffers of one step.
struct StepMemory<'s> {
    process: &'s Process,
    answers: &'s [(i64, Value)],
    buffers: Vec<Vec<u8>>,
    /// Places in `buffers` that the kernel writes to.
    rooms: Vec<usize>,
}

impl StepMemory<'_> {
    fn call(&mut self, name: &str, arguments: &[Argument], times: u64) -> Result<(i64, Value), String> {
        let number = drill::number(name).ok_or_else(|| format!("no system call {name}"))?;
        let mut words = [0; 6];
        for (word, argument) in words.iter_mut().zip(arguments) {
            *word = self.number(argument)?;
        }
        let mut made = 0;
        let mut answer = Ok(0);
        while made < times && answer.is_ok() {
            answer = drill::call(number, words);
            made += u64::from(answer.is_ok());
        }
        let data: Vec<_> = self.rooms.iter().filter_map(|room| Some(printable(self.buffers.get(*room)?))).collect();
        Ok(match answer {
            Ok(answer) => {
                let answer = answer.cast_signed() as i64;
                (answer, json!({"answer": answer, "times": made, "data": data}))
            }
            Err(error) => (-i64::from(error), json!({"error": error, "times": made})),
        })
    }

    /// The number or address that an argument stands for.
    fn number(&mut self, argument: &Argument) -> Result<usize, String> {
        Ok(match argument {
            Argument::Number(number) => signed(*number),
            Argument::Text(text) => self.keep([text.as_bytes(), &[0]].concat()),
            Argument::Bytes(bytes) => self.keep(bytes.clone()),
            Argument::Room(bytes) => {
                self.rooms.push(self.buffers.len());
                self.keep(vec![0; *bytes])
            }
            Argument::Words(words) => {
                let words = words.iter().map(|word| self.number(word)).collect::<Result<Vec<_>, _>>()?;
                self.keep(words.into_iter().flat_map(usize::to_ne_bytes).collect())
            }
            Argument::Answer(step) => signed(self.answers.get(*step).ok_or("no such step")?.0),
            Argument::Link(()) => usize::try_from(self.process.link.1).map_err(|error| error.to_string())?,
        })
    }

    /// Keeps bytes until the step is done and returns their address. The kernel writes to some of
    /// them.
    fn keep(&mut self, mut bytes: Vec<u8>) -> usize {
        let address = bytes.as_mut_ptr().expose_provenance();
        self.buffers.push(bytes);
        address
    }
}

fn signed(number: i64) -> usize {
    (number as isize).cast_unsigned()
}
