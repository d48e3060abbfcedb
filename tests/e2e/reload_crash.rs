//! Processes that are killed (`kill -9`) while they write: the files they leave, and the start of
//! the next process.
//!
//! No test waits for a time. A process is killed after a number of events in a folder that it
//! writes to, which inotify reports. Each round lets one more event happen, until the process
//! reaches its end.

use std::fs;
use std::io::{Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::io::Errno;
use serde_json::Value;
use toolcell_tests::{Command, Finished, Folder, fixture_bytes};

/// Time to wait for an event before checking if the process has ended.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Three components, so that a folder is written to more than once.
const THREE: &str = "version = 1
[components.one]
source = \"components/numbered.wasm\"
prefix = \"one_\"
[components.two]
source = \"components/growing_table.wasm\"
prefix = \"two_\"
[components.three]
source = \"components/post_return_spins.wasm\"
prefix = \"three_\"
";

/// The events in some folders: entries that are made, written, closed, renamed and removed.
struct Deeds(OwnedFd);

impl Deeds {
    fn of(folders: &[&Path]) -> Self {
        let told = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let which =
            WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::MOVE | WatchFlags::DELETE;
        for folder in folders {
            inotify::add_watch(&told, *folder, which).unwrap();
        }
        Self(told)
    }

    /// The number of events since the last call. Waits a moment for one.
    fn count(&self) -> usize {
        let looked = poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&LOOK_EVERY));
        // The kernel may end the wait early for reasons other than an event.
        assert!(matches!(looked, Ok(_) | Err(Errno::INTR)), "{looked:?}");
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.0, &mut buffer);
        std::iter::from_fn(|| reader.next().ok().map(|_| ())).count()
    }

    /// Kills the process after that many events. False if it ended before.
    fn kill_after(&self, deeds: usize, process: &mut Child) -> bool {
        let mut seen = 0;
        while seen < deeds {
            if process.try_wait().unwrap().is_some() {
                return false;
            }
            seen += self.count();
        }
        process.kill().unwrap();
        // The signal ended it, unless it was just ending by itself.
        process.wait().unwrap().code().is_none()
    }
}

/// A manifest whose user has an empty home.
struct Home(Folder);

impl Home {
    fn new(manifest: &str) -> Self {
        let folder = Folder::with_manifest(manifest);
        let home = Self(folder);
        for private in [home.code(), home.state(), home.run()] {
            use std::os::unix::fs::DirBuilderExt as _;
            fs::DirBuilder::new().recursive(true).mode(0o700).create(private).unwrap();
        }
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn code(&self) -> PathBuf {
        self.path().join("cache/toolcell/code")
    }

    fn state(&self) -> PathBuf {
        self.path().join("state/toolcell")
    }

    fn run(&self) -> PathBuf {
        self.path().join("runtime/toolcell")
    }

    fn variables(&self) -> [(&'static str, String); 3] {
        let at = |name: &str| self.path().join(name).display().to_string();
        [("XDG_CACHE_HOME", at("cache")), ("XDG_STATE_HOME", at("state")), ("XDG_RUNTIME_DIR", at("runtime"))]
    }

    /// Runs a command to its end.
    fn run_whole(&self, arguments: &[&str]) -> Finished {
        let command = Command::in_folder(&self.0, arguments);
        self.variables().iter().fold(command, |command, (name, value)| command.with_variable(name, value)).run()
    }

    /// Runs a command that must succeed.
    fn goes_well(&self, arguments: &[&str]) -> Finished {
        let finished = self.run_whole(arguments);
        assert_eq!(finished.code(), 0, "{finished:?}");
        finished
    }

    /// Starts a command that will be killed.
    fn start(&self, arguments: &[&str]) -> Child {
        let mut process = Process::new(toolcell_tests::toolcell());
        process.args(arguments).envs(self.variables()).current_dir(self.path());
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn lock(&self) -> String {
        self.0.read("toolcell.lock")
    }
}

/// The files in a folder whose names end with `end`.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().ends_with(end)).collect()
}

#[test]
fn a_lock_that_was_being_written_is_the_old_one_or_the_new_one() {
    let home = Home::new("version = 1\n[components.two]\nsource = \"components/growing_table.wasm\"\n");
    home.goes_well(&["lock"]);
    let old = home.lock();
    home.0.write("toolcell.toml", THREE);
    for name in ["numbered", "post_return_spins"] {
        home.0.write(&format!("components/{name}.wasm"), fixture_bytes(name));
    }
    home.goes_well(&["lock"]);
    let new = home.lock();
    assert_ne!(old, new);
    let mut round = 1;
    let mut ended_before = 0;
    loop {
        fs::write(home.path().join("toolcell.lock"), &old).unwrap();
        let deeds = Deeds::of(&[home.path()]);
        let was_killed = deeds.kill_after(round, &mut home.start(&["lock"]));
        let left = home.lock();
        assert!(left == old || left == new, "after {round}: {left}");
        let drafts = files(home.path(), ".new").len();
        let next = home.goes_well(&["lock"]);
        assert_eq!(next.stderr.contains("was removed"), drafts > 0, "after {round}: {next:?}");
        assert_eq!(home.lock(), new, "after {round}");
        assert_eq!(files(home.path(), ".new"), [""; 0].map(PathBuf::from), "after {round}");
        home.goes_well(&["serve", "--locked"]);
        // On a busy machine a process may end before its kill: its round is done again.
        match was_killed {
            true => (round, ended_before) = (round + 1, 0),
            false if round > 3 || ended_before == 20 => {
                assert!(round > 3, "it was killed only {round} times");
                break;
            }
            false => ended_before += 1,
        }
    }
}

#[test]
fn compiled_code_that_was_being_kept_is_whole_or_not_there() {
    let home = Home::new(THREE);
    let mut drafts_seen = 0;
    let mut round = 1;
    let mut ended_before = 0;
    loop {
        files(&home.code(), "")
            .into_iter()
            .chain(files(&home.state(), ""))
            .for_each(|file| fs::remove_file(file).unwrap());
        let deeds = Deeds::of(&[&home.code(), &home.state()]);
        let was_killed = deeds.kill_after(round, &mut home.start(&["compile"]));
        let drafts = files(&home.code(), ".new").len() + files(&home.state(), ".new").len();
        drafts_seen += drafts;
        let next = home.goes_well(&["compile"]);
        assert_eq!(next.stdout.lines().count(), 3, "after {round}: {next:?}");
        assert_eq!(next.stderr.contains("left by a process that was stopped"), drafts > 0, "after {round}: {next:?}");
        assert_eq!(files(&home.code(), ".new"), [""; 0].map(PathBuf::from), "after {round}");
        assert_eq!(files(&home.state(), ".new"), [""; 0].map(PathBuf::from), "after {round}");
        let again = home.goes_well(&["compile"]);
        assert_eq!(again.stdout.matches("was compiled already").count(), 3, "after {round}: {again:?}");
        // On a busy machine a process may end before its kill: its round is done again.
        match was_killed {
            true => (round, ended_before) = (round + 1, 0),
            false if round > 10 || ended_before == 20 => {
                assert!(round > 10, "it was killed only {round} times");
                break;
            }
            false => ended_before += 1,
        }
    }
    assert!(drafts_seen > 0, "no kill left a draft: nothing was interrupted");
}

/// Calls sent to a host before it is killed. They make more records than one file of the audit
/// holds.
const CALLS: usize = 200;

/// Number of hosts to kill.
const HOSTS: usize = 16;

/// Sends a host its calls and kills it after that many events. Returns the number of calls that it
/// had answered.
fn killed_at_work(home: &Home, deeds: usize) -> usize {
    let watched = Deeds::of(&[home.path()]);
    let mut host = home.start(&["serve", "--audit", "audit.jsonl", "--watch", "off"]);
    let mut input = host.stdin.take().unwrap();
    let mut output = host.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        output.read_to_end(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    let writer = std::thread::spawn(move || {
        for id in 0..CALLS {
            let params =
                serde_json::json!({"name": "one_now", "arguments": {}, "_meta": toolcell_tests::modern_meta()});
            let frame = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            // The host may be killed meanwhile.
            if writeln!(input, "{frame}").is_err() {
                break;
            }
        }
        // The end of its input ends a host that reads that far.
        drop(input);
    });
    watched.kill_after(deeds, &mut host);
    writer.join().unwrap();
    let text = reader.join().unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter(|line| serde_json::from_str::<Value>(line).unwrap()["result"]["isError"] == false).count()
}

/// The records of the last host, from all files of the audit.
fn records_of_the_last_host(home: &Home) -> Vec<Value> {
    let shown = home.run_whole(&["audit", "show", "--json"]);
    let records = shown.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let records: Vec<Value> = records.collect();
    let begins = records.iter().rposition(|record| record["event"] == "host.started").unwrap_or(0);
    records[begins..].to_vec()
}

#[test]
fn an_audit_that_was_being_written_goes_on_and_has_every_call_that_was_answered() {
    let home = Home::new(&format!(
        "{THREE}\n[audit]\nrotate = \"64KiB\"\nkeep = 8\n[defaults.limits]\nrate = \"1000000/s\"\n"
    ));
    let mut deeds = 7_usize;
    for host in 0..HOSTS {
        // Each host is killed at another point: the first ones while they start, others in the
        // middle of a rotation.
        deeds = (deeds * 31 + 17) % (2 * CALLS + 40) + host / 4;
        let answered = killed_at_work(&home, deeds);
        let started = records_of_the_last_host(&home).iter().filter(|record| record["event"] == "call.started").count();
        assert!(started >= answered, "{answered} calls answered, {started} recorded (killed after {deeds})");
        let audit = home.path().join("audit.jsonl");
        let bytes = fs::metadata(&audit).map_or(0, |metadata| metadata.len());
        // Half a record: a machine that stops leaves one, a killed process almost never.
        let is_torn = host % 2 == 1 && bytes > 7;
        if is_torn {
            fs::OpenOptions::new().write(true).open(&audit).unwrap().set_len(bytes - 7).unwrap();
        }
        let next = home.goes_well(&["serve", "--audit", "audit.jsonl"]);
        assert_eq!(next.stderr.contains("bytes were cut off"), is_torn, "killed after {deeds}: {next:?}");
        home.goes_well(&["audit", "verify"]);
        assert_eq!(files(&home.run(), ".sock"), [""; 0].map(PathBuf::from), "a socket of a host that is gone stays");
    }
}
