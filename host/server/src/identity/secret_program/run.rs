//! One run of a program that prints a secret: no shell, no input, a clean environment, a group of
//! its own, and an end.
use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use toolcell_policy::SecretProgram;
use toolcell_sandbox::SECRET_BYTES_MAX;
use toolcell_walls::kernel;
use zeroize::Zeroizing;

/// Where programs that this one starts are found, whatever the host's own search path is.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The language of its messages, which nobody reads.
const LANG: &str = "C.UTF-8";

/// Time between two looks at whether a program that prints nothing has ended.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// Others than its owner and their group may change the file.
const CHANGED_BY_ANYONE: u32 = 0o002;

/// Bytes read at once.
const CHUNK_BYTES: usize = 4 * 1024;

/// Groups of programs that run: the numbers of their leaders, which are not reaped yet.
static GROUPS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Why a program gave no value.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    /// It cannot be started.
    #[error("cannot be started: {0}")]
    NotStarted(#[source] io::Error),
    /// Its file can be changed by anyone.
    #[error("can be changed by every user of this machine")]
    Changeable,
    /// It took too long.
    #[error("gave no value within {} ms", .0.as_millis())]
    Late(Duration),
    /// It printed too much.
    #[error("prints more than {} KiB", SECRET_BYTES_MAX / 1024)]
    Long,
    /// It failed.
    #[error("ended with {0}")]
    Failed(String),
    /// It printed something else than text.
    #[error("prints what is not UTF-8 text")]
    NotText,
    /// It cannot be waited for.
    #[error("cannot be waited for: {0}")]
    Lost(#[source] io::Error),
}

/// Runs the program. The line that it prints, without its end.
pub(super) fn run(program: &SecretProgram) -> Result<Zeroizing<String>, RunError> {
    let [path, arguments @ ..] = program.command() else {
        return Err(RunError::NotStarted(io::ErrorKind::NotFound.into()));
    };
    let file = std::fs::metadata(path).map_err(RunError::NotStarted)?;
    if file.mode() & CHANGED_BY_ANYONE != 0 {
        return Err(RunError::Changeable);
    }
    let mut command = Command::new(path);
    command.args(arguments).env_clear().env("PATH", PATH).env("LANG", LANG);
    for name in std::iter::once("HOME").chain(program.inherit().iter().map(String::as_str)) {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.envs(program.env().iter().map(|(name, value)| (name, value)));
    // What it says besides may hold the value.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.current_dir(Path::new("/")).process_group(0);
    // On a kernel that cannot, the program gets what others left open for it.
    let _ = kernel::keep_descriptors();
    let child = command.spawn().map_err(RunError::NotStarted)?;
    let mut running = RunningProgram::of(child);
    let until = Instant::now().checked_add(program.timeout());
    let printed = running.printed(until).map_err(|error| error.at_most(program.timeout()))?;
    let status = running.end(until).map_err(|error| error.at_most(program.timeout()))?;
    if !status.success() {
        return Err(RunError::Failed(ended(status)));
    }
    let text = std::str::from_utf8(&printed).map_err(|_| RunError::NotText)?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    Ok(Zeroizing::new(line.strip_suffix('\r').unwrap_or(line).to_owned()))
}

fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}

impl RunError {
    /// With the time that it had.
    fn at_most(self, timeout: Duration) -> Self {
        match self {
            Self::Late(_) => Self::Late(timeout),
            other => other,
        }
    }
}

/// A program that runs. Dropping it ends its group.
struct RunningProgram {
    child: Child,
    reaped: bool,
}

impl RunningProgram {
    fn of(child: Child) -> Self {
        GROUPS.lock().insert(child.id());
        Self { child, reaped: false }
    }

    /// What it prints, to the end of its output or its own end.
    fn printed(&mut self, until: Option<Instant>) -> Result<Zeroizing<Vec<u8>>, RunError> {
        // One byte more for the end of the line, one for a carriage return, one that reveals more.
        let bytes_max = SECRET_BYTES_MAX + 3;
        let mut printed = Zeroizing::new(Vec::with_capacity(bytes_max + CHUNK_BYTES));
        let Some(mut output) = self.child.stdout.take() else { return Ok(printed) };
        let flags = fcntl_getfl(&output).map_err(|error| RunError::Lost(error.into()))?;
        fcntl_setfl(&output, flags | OFlags::NONBLOCK).map_err(|error| RunError::Lost(error.into()))?;
        loop {
            // Looked at before reading: what it printed before its end is then there.
            let has_ended = self.has_ended()?;
            let is_at_end = read_all(&mut output, &mut printed, bytes_max)?;
            if printed.len() >= bytes_max {
                return Err(RunError::Long);
            }
            if is_at_end || has_ended {
                return Ok(printed);
            }
            let left = left(until)?;
            let descriptor = output.as_fd();
            let mut ready = [PollFd::new(&descriptor, PollFlags::IN)];
            let wait = left.min(LOOKS_EVERY).try_into().map_err(|_| RunError::Late(left))?;
            match poll(&mut ready, Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(RunError::Lost(error.into())),
            }
        }
    }

    /// Waits for its end, and ends what it has left behind.
    fn end(mut self, until: Option<Instant>) -> Result<ExitStatus, RunError> {
        while !self.has_ended()? {
            std::thread::sleep(left(until)?.min(LOOKS_EVERY));
        }
        self.reap().map_err(RunError::Lost)
    }

    /// Ends what is left of its group, and takes its number back.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        self.reaped = true;
        kill(self.child.id());
        // From now on the number may be another's.
        GROUPS.lock().remove(&self.child.id());
        self.child.wait()
    }

    /// True once it has ended. It stays to be reaped, so that its number is not another's.
    fn has_ended(&self) -> Result<bool, RunError> {
        let Some(pid) = pid(self.child.id()) else { return Ok(true) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(pid), options) {
            Ok(ended) => Ok(ended.is_some()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(RunError::Lost(error.into())),
        }
    }
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Ends every process of a group that is left.
fn kill(group: u32) {
    // An error: no process of the group is left.
    let _ = pid(group).map(|group| kill_process_group(group, Signal::KILL));
}

/// Ends all programs that run, at the end of the process.
pub fn end_all() {
    GROUPS.lock().iter().for_each(|group| kill(*group));
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        if !self.reaped {
            drop(self.reap());
        }
    }
}

/// Reads what is there. True at the end of the output.
fn read_all(output: &mut ChildStdout, printed: &mut Zeroizing<Vec<u8>>, bytes_max: usize) -> Result<bool, RunError> {
    let mut chunk = Zeroizing::new([0; CHUNK_BYTES]);
    while printed.len() < bytes_max {
        match output.read(chunk.as_mut_slice()) {
            Ok(0) => return Ok(true),
            Ok(count) => printed.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(RunError::Lost(error)),
        }
    }
    Ok(false)
}

/// The time that is left.
fn left(until: Option<Instant>) -> Result<Duration, RunError> {
    let left = until.map_or(LOOKS_EVERY, |until| until.saturating_duration_since(Instant::now()));
    if left.is_zero() { Err(RunError::Late(left)) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::super::tests::{program, script};
    use super::*;

    fn said(text: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), text);
        run(&program(&path, "timeout = '2s'")).map(|value| value.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn one_line_of_a_program_is_its_value() {
        for (text, expected) in [
            ("echo value", Ok("value")),
            ("printf 'value\\r\\n'", Ok("value")),
            ("printf value", Ok("value")),
            ("printf ''", Ok("")),
            ("echo value >&2", Ok("")),
            ("echo value; exit 3", Err("ended with exit code 3")),
            ("kill -9 $$", Err("ended with signal 9")),
            ("printf '\\377'", Err("prints what is not UTF-8 text")),
            ("head -c 40000 /dev/zero", Err("prints more than 32 KiB")),
            ("cat /dev/zero", Err("prints more than 32 KiB")),
            ("cat", Ok("")),
            ("pwd", Ok("/")),
        ] {
            let said = said(text);
            assert_eq!(said.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn a_program_gets_no_descriptor_that_was_left_open() {
        let left_open = std::fs::File::open("/dev/null").unwrap();
        let left_open = rustix::io::fcntl_dupfd_cloexec(&left_open, 200).unwrap();
        rustix::io::fcntl_setfd(&left_open, rustix::io::FdFlags::empty()).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&left_open);
        let text = format!("if [ -e /proc/self/fd/{number} ]; then echo open; else echo closed; fi");
        assert_eq!(said(&text).as_deref(), Ok("closed"));
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_all_that_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let text = format!("sleep 600 &\necho $! $$ > {}\nsleep 600", pids.display());
        let path = script(folder.path(), &text);
        let began = Instant::now();
        let late = run(&program(&path, "timeout = '500ms'")).unwrap_err();
        assert_eq!(late.to_string(), "gave no value within 500 ms");
        assert!(began.elapsed() < Duration::from_secs(30));
        for pid in std::fs::read_to_string(&pids).unwrap().split_whitespace() {
            ends(pid);
        }
    }

    #[test]
    fn a_program_that_leaves_others_behind_gives_its_value_and_they_end() {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let path = script(folder.path(), &format!("sleep 600 &\necho $! > {}\necho value", pids.display()));
        assert_eq!(*run(&program(&path, "timeout = '20s'")).unwrap(), "value");
        ends(std::fs::read_to_string(&pids).unwrap().trim());
    }

    /// Waits until a process is gone, or is only left to be reaped.
    fn ends(pid: &str) {
        let status = PathBuf::from(format!("/proc/{pid}/stat"));
        let is_over = || {
            let stat = std::fs::read_to_string(&status);
            stat.map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
        };
        let until = Instant::now() + Duration::from_secs(30);
        while !is_over() {
            assert!(Instant::now() < until, "process {pid} still runs");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_program_sees_the_variables_that_it_is_given_and_a_few_fixed_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "/usr/bin/env | grep -v '^_=\\|^PWD=\\|^SHLVL=' | sort | tr '\\n' ' '");
        let env = "inherit = ['CARGO_MANIFEST_DIR']\nenv = { B = 'x y', LANG = 'de' }";
        let value = run(&program(&path, env)).unwrap();
        let names: Vec<&str> = value.split('=').filter_map(|part| part.rsplit(' ').next()).collect();
        assert!(value.contains("B=x y ") && value.contains("LANG=de ") && value.contains(PATH), "{}", *value);
        assert!(value.contains(&format!("CARGO_MANIFEST_DIR={}", env!("CARGO_MANIFEST_DIR"))), "{}", *value);
        assert!(!names.contains(&"CARGO_PKG_NAME") && names.len() <= 7, "{names:?}");
    }

    #[test]
    fn a_program_that_anyone_may_change_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "echo value");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        let text = run(&program(&path, "")).unwrap_err().to_string();
        assert_eq!(text, "can be changed by every user of this machine");
        let missing = run(&program(&folder.path().join("none"), "")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot be started: "), "{missing}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(run(&program(&path, "")), Err(RunError::NotStarted(_))));
    }
}
