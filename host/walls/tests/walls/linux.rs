//! Running the table.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitCode, ExitStatus};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Resource, Rlimit};
use tokio::runtime::Runtime;
use toolcell_walls::kernel::{Report, Wall, WallState, end_on_abort};
use toolcell_walls::process::{Command, Process, Starter};

use crate::rows::{End, Row, all};
use crate::site::{OlderThread, Site};
use crate::stage::{CHILD, Place, Stage};
use crate::syscalls::call;
use crate::{processes, reports};

/// Longer than any attempt takes on a loaded machine; past it the process is killed and the row
/// fails.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Said before an attempt, so that nothing earlier is taken for its end.
const READY: &str = "ready: ";

/// A user that owns nothing.
const NOBODY: u32 = 65_534;

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == CHILD => child(rest),
        Some((first, _)) if first == "measure" => {
            let measured = Stage::set().map_err(told).and_then(|stage| reports::measure(&stage));
            measured.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
        }
        _ => parent(),
    }
}

/// The means of starting processes.
fn starting() -> &'static (Runtime, Starter) {
    static STARTING: OnceLock<(Runtime, Starter)> = OnceLock::new();
    STARTING.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        (runtime.expect("a runtime"), Starter::new().expect("a thread"))
    })
}

/// A process, and this end of its link.
pub(crate) fn start(command: Command) -> Result<(Process, File), String> {
    let (runtime, starter) = starting();
    let (process, link) = runtime.block_on(starter.start(command)).map_err(told)?;
    Ok((process, link.into()))
}

fn child(arguments: &[String]) -> ExitCode {
    let word = arguments.first().map(String::as_str).unwrap_or_default();
    end_on_abort().expect("a handler");
    let Some(place) = Place::of(arguments) else { return ExitCode::FAILURE };
    match word {
        "host" => processes::be_a_host(arguments),
        "barred" => processes::be_barred(arguments),
        "foster" => processes::be_a_foster(arguments),
        "asleep" => attempt(&place, &ASLEEP),
        word => match word.parse().ok().and_then(|at: usize| all().get(at).copied()) {
            Some(row) => attempt(&place, row),
            None => reports::child(word, &place),
        },
    }
}

/// Waits forever, and signals when it is sealed.
const ASLEEP: Row = Row {
    name: "sleep",
    without: &[],
    threads_max: None,
    attempt: |_| {
        say("sealed");
        Ok(rustix::event::poll(&mut [], None).map(drop)?)
    },
    end: End::Works,
};

/// Tries one thing behind walls and prints the answer.
fn attempt(place: &Place, row: &Row) -> ExitCode {
    let mut site = Site::open(place).expect("the site");
    let expected = expected_missing(row);
    let entered = site.enter(row.without, row.threads_max);
    site.older_thread = Some(OlderThread::start());
    let report = entered.seal();
    let missing: Vec<Wall> = report.missing().map(|(wall, _)| wall).collect();
    if missing != expected {
        say(&report.summary());
        return ExitCode::FAILURE;
    }
    say(READY);
    match (row.attempt)(&site) {
        Ok(()) => say("works"),
        Err(error) => match error.raw_os_error() {
            Some(errno) => say(&format!("fails {errno}")),
            None => say(&format!("is odd: {error}")),
        },
    }
    // An attempt may have taken all memory, without which threads cannot end in order.
    let _ = call(libc::SYS_exit_group, [0; 6]);
    ExitCode::FAILURE
}

/// Without the filter nothing else refuses processes and threads; and root's threads are not
/// counted.
fn expected_missing(row: &Row) -> Vec<Wall> {
    let mut missing = row.without.to_vec();
    if row.without.contains(&Wall::SystemCalls) {
        missing.extend([Wall::Processes, Wall::Threads]);
    } else if row.threads_max.is_some() && rustix::process::geteuid().is_root() {
        missing.push(Wall::Threads);
    }
    missing.sort_unstable();
    missing
}

/// Tells the parent by the link, which a sealed process still has.
pub(crate) fn say(text: &str) {
    let _ = rustix::io::write(io::stdin().as_fd(), text.as_bytes());
}

/// Prints.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn parent() -> ExitCode {
    // A dump would be written if the walls let it.
    let core = rustix::process::getrlimit(Resource::Core);
    let core = Rlimit { current: core.maximum, maximum: core.maximum };
    rustix::process::setrlimit(Resource::Core, core).expect("RLIMIT_CORE");
    let stage = Stage::set().expect("the stage");
    let machine = reports::of_machine().expect("the machine's report");
    if machine.missing().next().is_some() {
        print(&format!("not tried, since each attempt needs every wall: this machine is {}\n", machine.summary()));
        return ExitCode::SUCCESS;
    }
    let mut failed = Vec::new();
    let mut passed = 0_usize;
    for (at, row) in all().into_iter().enumerate() {
        match judge(&stage, at, row) {
            Ok(()) => passed += 1,
            Err(what) => failed.push(format!("{}: {what}", row.name)),
        }
    }
    for (name, check) in reports::CHECKS {
        match check(&stage) {
            Ok(()) => passed += 1,
            Err(what) => failed.push(format!("{name}: {what}")),
        }
    }
    let mut text = String::new();
    for what in &failed {
        let _ = writeln!(text, "{what}");
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    let count = failed.len();
    let user = rustix::process::geteuid().as_raw();
    let _ = writeln!(text, "test result: {word}. {passed} passed; {count} failed; 0 ignored; by user {user}");
    print(&text);
    if failed.is_empty() && as_nobody() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// As root the attempts are made as another user too.
fn as_nobody() -> bool {
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    let mut command = std::process::Command::new("/proc/self/exe");
    command.args(std::env::args_os().skip(1)).uid(NOBODY).gid(NOBODY).status().is_ok_and(|status| status.success())
}

fn judge(stage: &Stage, at: usize, row: &Row) -> Result<(), String> {
    let command = stage.child(&[&at.to_string()]).map_err(told)?;
    let shares = row.without.contains(&Wall::PidNamespace);
    let ended = end(if shares { command.shares_process_ids() } else { command })?;
    let said = ended.said.strip_prefix(READY);
    let is_right = match row.end {
        End::Works => said == Some("works") && ended.status.success(),
        End::Fails(errors) => {
            let mut texts = errors.iter().map(|errno| format!("fails {errno}"));
            texts.any(|text| said == Some(&text)) && ended.status.success()
        }
        End::Killed(signal) => said == Some("") && ended.status.signal() == Some(signal),
    };
    if ended.status.core_dumped() {
        return Err("it left a core dump".to_owned());
    }
    if is_right { Ok(()) } else { Err(format!("expected {:?}, but it {ended}", row.end)) }
}

/// The end of a process, and its output.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: String,
    last_words: String,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "said {:?} and ended with {}, {:?}", self.said, self.status, self.last_words)
    }
}

/// A child of this binary.
pub(crate) fn run(stage: &Stage, arguments: &[&str]) -> Result<Ended, String> {
    end(stage.child(arguments).map_err(told)?)
}

/// Runs to the end, within [`TIME_MAX`].
pub(crate) fn end(command: Command) -> Result<Ended, String> {
    let (process, mut link) = start(command)?;
    let said = read(&mut link, None);
    // Its end of the link is closed, so its end is settled; or it took too long.
    process.kill();
    let end = starting().0.block_on(process.ended());
    Ok(Ended { status: end.status.ok_or("nobody knows its end")?, said: said?, last_words: end.last_words })
}

/// Reads to the end, or to a text.
pub(crate) fn read(from: &mut File, to: Option<&str>) -> Result<String, String> {
    let deadline = Instant::now() + TIME_MAX;
    let mut said = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(told)?;
        let ready = rustix::event::poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&left));
        if ready.map_err(told)? == 0 {
            return Err(format!("it neither ended nor said more than {said:?}"));
        }
        let mut piece = [0; 4096];
        let count = match from.read(&mut piece) {
            // It ended before it read everything.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            count => count.map_err(told)?,
        };
        said.extend(piece.iter().take(count));
        let text = String::from_utf8_lossy(&said).into_owned();
        if count == 0 || to.is_some_and(|to| text.ends_with(to)) {
            return Ok(text);
        }
    }
}

pub(crate) fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A wall's state in a report.
pub(crate) fn state(report: &Report, wall: Wall) -> Option<&WallState> {
    report.iter().find(|(known, _)| *known == wall).map(|(_, state)| state)
}
