//! The audit over several files: closed, continued, crashed at every step, read meanwhile.
//!
//! Promise: no edited record hides behind a gap.
//! Promise: the audit goes on after a stop at any moment.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use toolcell_audit::{
    Archive, Clipped, Dropped, Event, HostStopped, LineError, OpenError, Opened, Reason, Rotation, Settings, Sink,
    SinkError, Summary, record_number,
};

/// The file that the process that is killed writes.
const WRITES_TO: &str = "TOOLCELL_TEST_AUDIT";

/// Time that a process has to run its program.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of times it is killed.
const KILLS: u32 = 12;

struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn audit(&self) -> PathBuf {
        self.folder.path().join("audit.jsonl")
    }

    /// A closed file; 0 is the one that is written.
    fn file(&self, number: u32) -> PathBuf {
        if number == 0 { self.audit() } else { self.folder.path().join(format!("audit.jsonl.{number}")) }
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn open(&self, settings: Settings) -> (Sink, Opened) {
        // The child of another test has the lock of the last sink until it runs its own program.
        let end = Instant::now() + PATIENCE;
        loop {
            match Sink::open_with(&self.audit(), settings) {
                Ok((sink, _)) if sink.path() != Some(&*self.audit()) && Instant::now() < end => {
                    drop(sink);
                    fs::remove_file(self.folder.path().join("audit.jsonl-2")).unwrap();
                    std::thread::yield_now();
                }
                opened => return opened.unwrap(),
            }
        }
    }

    /// Writes that many records.
    fn write(&self, settings: Settings, records: u64) -> Opened {
        let (sink, opened) = self.open(settings);
        for calls in 0..records {
            sink.record(|| stopped(calls)).unwrap();
        }
        opened
    }

    fn verify(&self) -> Summary {
        let archive = Archive::open(&self.audit()).unwrap();
        let summary = archive.verify().unwrap_or_else(|(file, broken)| unreachable!("{:?}: {broken}", file.path()));
        assert_eq!(archive.files().last().unwrap().torn_bytes(), 0);
        summary
    }

    fn events(&self, number: u32) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.file(number)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn stopped<'a>(calls: u64) -> Event<'a> {
    Event::HostStopped(HostStopped { reason: Clipped("end of input"), calls })
}

/// Files of four records or so.
fn small(keep: u32) -> Settings {
    Settings { rotation: Some(Rotation { file_bytes_max: 1_000, keep }), ..Settings::default() }
}

#[test]
fn a_full_file_is_closed_and_the_chain_goes_on_in_the_next() {
    let folder = Folder::new();
    folder.write(small(100), 50);
    let closed = folder.names().len() as u32 - 1;
    assert!(closed >= 5, "{:?}", folder.names());
    for number in 0..=closed {
        let events = folder.events(number);
        let is_first = number == closed;
        assert_eq!(events[0]["event"] == "audit.rotated", !is_first, "file {number}");
        if !is_first {
            assert_eq!(events[0]["previous_bytes"], fs::metadata(folder.file(number + 1)).unwrap().len());
        }
        assert!(fs::metadata(folder.file(number)).unwrap().len() <= 1_000, "file {number}");
    }
    let summary = folder.verify();
    assert_eq!((summary.first, summary.last, summary.records), (1, 50 + u64::from(closed), 50 + u64::from(closed)));
}

#[test]
fn what_rotation_removes_is_counted_and_recorded() {
    let folder = Folder::new();
    let mut dropped = 0;
    for keep in [100, 2, 1, 0, 3] {
        let (sink, _) = Sink::open_with(&folder.file(0), small(keep)).unwrap();
        assert_eq!(sink.dropped(), Dropped::default());
        for calls in 0..50 {
            sink.record(|| stopped(calls)).unwrap();
        }
        let of_sink = sink.dropped();
        assert_eq!(of_sink.age.is_some(), keep != 100, "{keep}");
        assert!(of_sink.age.is_none_or(|age| age < Duration::from_secs(600)), "{of_sink:?}");
        dropped += of_sink.records;
        assert_eq!(dropped, folder.verify().first - 1, "{keep}");
        let last = &folder.events(0)[0];
        assert_eq!(last["dropped_records"].as_u64().is_some_and(|records| records > 0), keep != 100, "{last}");
    }
}

#[test]
fn only_so_many_closed_files_are_kept_and_the_chain_begins_with_the_oldest() {
    let folder = Folder::new();
    folder.write(small(2), 100);
    assert_eq!(folder.names(), ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]);
    let summary = folder.verify();
    assert!(summary.first > 1 && summary.records < summary.last, "{summary:?}");

    // Fewer are kept from now on, then none.
    for (keep, names) in [(1, &["audit.jsonl", "audit.jsonl.1"][..]), (0, &["audit.jsonl"])] {
        folder.write(small(keep), 10);
        assert_eq!(folder.names(), names);
        folder.verify();
    }
}

#[test]
fn a_file_that_is_missing_in_between_or_changed_breaks_the_chain() {
    let folder = Folder::new();
    folder.write(small(100), 50);
    let audit = folder.audit();
    let closed = fs::read(folder.file(2)).unwrap();

    let mut torn = closed.clone();
    torn.extend_from_slice(b"{\"seq\":");
    fs::write(folder.file(2), &torn).unwrap();
    let archive = Archive::open(&audit).unwrap();
    let (file, broken) = archive.verify().unwrap_err();
    assert_eq!(file.path().file_name(), folder.file(2).file_name());
    assert!(matches!(broken.reason, Reason::Line(LineError::Torn)), "{broken}");

    let text = String::from_utf8(closed.clone()).unwrap();
    fs::write(folder.file(2), text.replace("end of input", "END of input")).unwrap();
    let archive = Archive::open(&audit).unwrap();
    let (_, broken) = archive.verify().unwrap_err();
    assert!(matches!(broken.reason, Reason::Previous), "{broken}");

    fs::write(folder.file(2), &closed).unwrap();
    folder.verify();
    fs::rename(folder.file(1), folder.file(2)).unwrap();
    fs::rename(folder.file(3), folder.file(1)).unwrap();
    assert!(Archive::open(&audit).unwrap().verify().is_err());
}

#[test]
fn a_crash_at_any_step_of_a_rotation_leaves_an_audit_that_goes_on() {
    type Crash = fn(&Folder);
    let steps: [(&str, u64, Crash); 7] = [
        ("the oldest file is removed", 0, |folder| fs::remove_file(folder.file(4)).unwrap()),
        ("a file has moved up", 0, |folder| fs::rename(folder.file(4), folder.file(5)).unwrap()),
        ("two files have moved up", 0, |folder| {
            fs::rename(folder.file(4), folder.file(5)).unwrap();
            fs::rename(folder.file(3), folder.file(4)).unwrap();
        }),
        ("the file is closed", 0, close),
        ("the new file is made", 0, |folder| {
            close(folder);
            fs::write(folder.audit(), "").unwrap();
        }),
        ("its first record is torn", 9, |folder| {
            close(folder);
            fs::write(folder.audit(), "{\"seq\":6,").unwrap();
        }),
        ("the closed file was torn by a power cut", 3, |folder| {
            close(folder);
            let mut closed = fs::OpenOptions::new().append(true).open(folder.file(1)).unwrap();
            closed.write_all(b"\0\0\0").unwrap();
        }),
    ];
    for (what, torn_bytes, crash) in steps {
        let folder = Folder::new();
        folder.write(small(4), 60);
        let last = folder.verify().last;
        crash(&folder);
        let opened = folder.write(small(4), 0);
        assert_eq!(opened, Opened { records: last, torn_bytes }, "{what}");
        folder.write(small(4), 60);
        assert!(folder.verify().last > last + 60, "{what}");
        assert_eq!(folder.names().len(), 5, "{what}: {:?}", folder.names());
        let repaired = (0..5).flat_map(|number| folder.events(number));
        let mut dropped = repaired.filter_map(|record| record["dropped_bytes"].as_u64());
        // Sixty records later it may be in a file that is gone.
        assert!(dropped.next().is_none_or(|dropped| dropped == torn_bytes), "{what}");
    }
}

/// The steps of a rotation up to the new file.
fn close(folder: &Folder) {
    fs::remove_file(folder.file(4)).unwrap();
    for number in (0..4).rev() {
        fs::rename(folder.file(number), folder.file(number + 1)).unwrap();
    }
}

#[test]
fn a_file_that_goes_on_says_so_before_it_says_what_was_cut_off() {
    let folder = Folder::new();
    folder.write(small(4), 3);
    fs::rename(folder.file(0), folder.file(1)).unwrap();
    fs::write(folder.audit(), "{\"seq\"").unwrap();
    assert_eq!(folder.write(small(4), 0), Opened { records: 3, torn_bytes: 6 });
    let events: Vec<_> = folder.events(0).iter().map(|record| record["event"].clone()).collect();
    assert_eq!(events, ["audit.rotated", "audit.repaired"]);
    assert_eq!(folder.verify().records, 5);
}

/// Not a test: the process that [`a_killed_writer_loses_nothing_that_it_reported`] kills.
#[test]
#[ignore = "started by another test, which kills it"]
fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(WRITES_TO) else { return };
    let (sink, opened) = Sink::open_with(Path::new(&path), small(10_000)).unwrap();
    let mut stdout = std::io::stdout();
    writeln!(stdout, "\nrepaired {}", opened.torn_bytes).unwrap();
    for calls in 0.. {
        sink.record(|| stopped(calls)).unwrap();
        writeln!(stdout, "recorded {calls}").unwrap();
    }
}

#[test]
fn a_killed_writer_loses_nothing_that_it_reported() {
    let folder = Folder::new();
    let mut reported = 0;
    for kill in 0..KILLS {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["writes_until_it_is_killed", "--exact", "--ignored", "--nocapture"])
            .env(WRITES_TO, folder.audit())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map(Result::unwrap);
        let recorded = |line: &String| line.starts_with("recorded");
        // Another number each time, so that it is somewhere else when it is killed.
        let seen = lines.by_ref().filter(recorded).take(7 + 3 * kill as usize).count();
        writer.kill().unwrap();
        writer.wait().unwrap();
        reported += (seen + lines.filter(recorded).count()) as u64;
        let archive = Archive::open(&folder.audit());
        if let Ok(archive) = archive {
            archive.verify().unwrap_or_else(|(file, broken)| unreachable!("{:?}: {broken}", file.path()));
        }
        drop(folder.open(small(10_000)));
        let summary = folder.verify();
        assert!(summary.first == 1 && summary.records >= reported, "{summary:?}, {reported} reported");
    }
    let stopped = Archive::open(&folder.audit()).unwrap();
    let mut records = 0;
    for file in stopped.files() {
        let mut lines = file.lines();
        while let Some(line) = lines.next_line().unwrap() {
            records += u64::from(line.windows(12).any(|found| found == b"host.stopped"));
        }
    }
    assert!(records >= reported && records <= reported + u64::from(KILLS), "{records} of {reported}");
}

#[test]
fn a_file_that_is_no_audit_is_never_moved() {
    let folder = Folder::new();
    for number in [4, 1] {
        fs::write(folder.file(number), "my notes\n").unwrap();
        let opened = Sink::open_with(&folder.audit(), small(4));
        assert!(matches!(opened, Err(OpenError::Foreign { number: found }) if found == number), "{opened:?}");
        assert_eq!(fs::read_to_string(folder.file(number)).unwrap(), "my notes\n");
    }
    // Without rotation nothing is moved; but is this where the audit goes on from?
    assert!(matches!(
        Sink::open_with(&folder.audit(), Settings { rotation: None, ..Settings::default() }),
        Err(OpenError::NotAnAudit)
    ));
    fs::remove_file(folder.file(1)).unwrap();
    folder.write(Settings { rotation: None, ..Settings::default() }, 3);
}

#[test]
fn another_writer_is_kept_out_while_the_file_changes() {
    let folder = Folder::new();
    let (sink, _) = folder.open(small(4));
    for calls in 0..40 {
        sink.record(|| stopped(calls)).unwrap();
        // A child that another test starts holds the lock of the last one until it runs, so this
        // waits for the first free name.
        let opens_second = || {
            let (other, _) = Sink::open_with(&folder.audit(), small(4)).unwrap();
            let name = other.path().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
            assert!(name.starts_with("audit.jsonl-"), "{name}");
            name == "audit.jsonl-2"
        };
        let is_second = (0..1_000).any(|_| {
            opens_second() || {
                std::thread::sleep(Duration::from_millis(5));
                false
            }
        });
        assert!(is_second, "audit.jsonl-2 is never free");
    }
    // Between its two steps, a rotation holds the lock of the closed file.
    let moved = Folder::new();
    let (_writer, _) = moved.open(small(4));
    fs::rename(moved.file(0), moved.file(1)).unwrap();
    drop(Sink::open_with(&moved.audit(), small(4)).unwrap());
    assert_eq!(moved.names(), ["audit.jsonl-2", "audit.jsonl.1"]);
}

#[test]
fn a_rotation_that_fails_leaves_the_file_and_refuses_the_record() {
    let folder = Folder::new();
    let (sink, _) = folder.open(small(4));
    while fs::metadata(folder.audit()).unwrap().len() < 800 {
        sink.record(|| stopped(0)).unwrap();
    }
    // A folder in the way of the file that would be closed.
    fs::create_dir(folder.file(1)).unwrap();
    fs::create_dir(folder.file(2)).unwrap();
    fs::write(folder.file(2).join("x"), "").unwrap();
    fs::create_dir(folder.file(3)).unwrap();
    fs::write(folder.file(3).join("x"), "").unwrap();
    fs::create_dir(folder.file(4)).unwrap();
    fs::write(folder.file(4).join("x"), "").unwrap();
    let refused = (0..3).map(|calls| sink.record(|| stopped(calls))).find_map(Result::err);
    assert!(matches!(refused, Some(SinkError::Io(_))), "{refused:?}");
    for number in 1..=4 {
        fs::remove_dir_all(folder.file(number)).unwrap();
    }
    sink.record(|| stopped(9)).unwrap();
    let events = folder.events(0);
    let events: Vec<_> = events.iter().map(|record| record["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["audit.rotated", "audit.missed", "host.stopped"]);
    folder.verify();
}

#[test]
fn an_audit_that_is_not_required_lets_things_happen_and_says_so_once() {
    let told = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let settings = Settings { required: false, ..Settings::default() };
    let (sink, _) = Sink::open_with(Path::new("/dev/full"), settings).unwrap();
    let count = std::sync::Arc::clone(&told);
    let sink = sink.telling(move |_| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    });
    for calls in 0..10 {
        sink.record(|| stopped(calls)).unwrap();
    }
    assert_eq!(told.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[test]
fn records_that_wait_for_the_disk_are_a_chain_like_any() {
    let folder = Folder::new();
    folder.write(Settings { synced: true, ..small(3) }, 20);
    folder.verify();
}

#[test]
fn an_audit_behind_a_link_is_closed_beside_the_file_and_not_beside_the_link() {
    let folder = Folder::new();
    let link = folder.folder.path().join("link");
    std::os::unix::fs::symlink(folder.audit(), &link).unwrap();
    fs::write(folder.audit(), "").unwrap();
    let (sink, _) = Sink::open_with(&link, small(1)).unwrap();
    (0..20).for_each(|calls| sink.record(|| stopped(calls)).unwrap());
    assert_eq!(folder.names(), ["audit.jsonl", "audit.jsonl.1", "link"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Archive::open(&link).unwrap().files().len(), 2);
}

#[test]
fn an_audit_whose_host_was_killed_between_two_renames_is_what_is_there() {
    let folder = Folder::new();
    folder.write(small(4), 60);
    let before = folder.verify();
    close(&folder);
    let archive = Archive::open(&folder.audit()).unwrap();
    assert!(archive.lacks_current());
    assert_eq!(archive.files().last().unwrap().path().file_name(), folder.file(1).file_name());
    let found = archive.verify().unwrap();
    assert_eq!((found.last, &found.head), (before.last, &before.head));
    assert_eq!(Archive::open_with_strays(&folder.audit()).unwrap().1, Vec::<PathBuf>::new());

    // A follower continues with the file that the next host makes.
    let mut follower = archive.follow(&folder.audit(), 1).unwrap();
    assert_eq!(record_number(follower.next_line().unwrap().unwrap()), Some(before.last));
    assert!(follower.next_line().unwrap().is_none());
    folder.write(small(4), 1);
    assert_eq!(record_number(follower.next_line().unwrap().unwrap()), Some(before.last + 1));
    assert!(!Archive::open(&folder.audit()).unwrap().lacks_current());

    // If nothing has that name, there is no audit.
    let missing = Archive::open(&folder.folder.path().join("missing.jsonl")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_link_to_an_audit_whose_file_is_closed_leads_to_the_closed_ones() {
    let folder = Folder::new();
    let beside = tempfile::tempdir().unwrap();
    let link = beside.path().join("link.jsonl");
    std::os::unix::fs::symlink(folder.audit(), &link).unwrap();
    folder.write(small(4), 60);
    let last = folder.verify().last;
    close(&folder);
    assert_eq!(Archive::open(&link).unwrap().verify().unwrap().last, last);
    let (_sink, opened) = Sink::open_with(&link, small(4)).unwrap();
    assert_eq!(opened.records, last);
}

#[test]
fn what_is_numbered_beyond_a_gap_is_found_whatever_its_number() {
    let strays = |folder: &Folder| {
        let (_, strays) = Archive::open_with_strays(&folder.audit()).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        strays.iter().map(name).collect::<Vec<_>>()
    };
    let written = || {
        let folder = Folder::new();
        folder.write(small(8), 200);
        assert_eq!(folder.names().len(), 9);
        assert_eq!(strays(&folder), [""; 0]);
        folder
    };
    for removed in [vec![3, 4], vec![1, 2], vec![2, 3, 5], vec![1, 2, 3, 4, 5, 6, 7], vec![6, 7]] {
        let folder = written();
        removed.iter().for_each(|number| fs::remove_file(folder.file(*number)).unwrap());
        let beyond = removed.windows(2).find(|pair| pair[0] + 1 == pair[1]).unwrap()[1];
        let left = (beyond + 1..=8).filter(|number| !removed.contains(number));
        let expected: Vec<_> = left.map(|number| format!("audit.jsonl.{number}")).collect();
        assert!(!expected.is_empty());
        assert_eq!(strays(&folder), expected, "without {removed:?}");
    }
    // Where no rotation could have put one.
    let folder = written();
    for name in ["audit.jsonl.11", "audit.jsonl.1001", "audit.jsonl.007", "audit.jsonl.20261122", "audit.jsonl.0"] {
        fs::write(folder.folder.path().join(name), "anything").unwrap();
    }
    fs::create_dir(folder.folder.path().join("audit.jsonl.99999999999999999999")).unwrap();
    // Without a number it belongs to something else.
    for name in ["audit.jsonl.gz", "audit.jsonl.1.gz", "audit.jsonl.", "other.jsonl.30", "audit.jsonl.-1"] {
        fs::write(folder.folder.path().join(name), "anything").unwrap();
    }
    let expected = ["0", "11", "007", "1001", "20261122", "99999999999999999999"];
    assert_eq!(strays(&folder), expected.map(|number| format!("audit.jsonl.{number}")));
}

#[test]
fn a_gap_that_a_stopped_rotation_leaves_has_nothing_beyond_it() {
    let folder = Folder::new();
    folder.write(small(8), 200);
    fs::remove_file(folder.file(8)).unwrap();
    for number in (1..8).rev() {
        fs::rename(folder.file(number), folder.file(number + 1)).unwrap();
        let (archive, strays) = Archive::open_with_strays(&folder.audit()).unwrap();
        assert_eq!(strays, Vec::<PathBuf>::new(), "{number}");
        archive.verify().unwrap();
    }
}

/// Bytes of all files of an audit, and their number.
fn held(folder: &Folder) -> (u64, usize) {
    let names = folder.names();
    let bytes = names.iter().map(|name| fs::metadata(folder.folder.path().join(name)).unwrap().len());
    (bytes.sum(), names.len())
}

/// Records of all chains of an audit.
#[derive(Debug, Default)]
struct ChainRecords {
    /// Those of all chains, with the ones that are gone.
    made: u64,
    /// Those of the first two.
    written: u64,
    kept: u64,
}

fn chain_records(folder: &Folder) -> ChainRecords {
    let mut records = ChainRecords::default();
    for chain in toolcell_audit::chains(&folder.audit()).unwrap() {
        let summary = Archive::open(&chain.path).unwrap().verify().unwrap();
        records.made += summary.last;
        records.kept += summary.records;
        if chain.number <= 2 {
            records.written += summary.last;
        }
    }
    records
}

#[test]
fn what_is_kept_is_bounded_for_all_chains_together() {
    let folder = Folder::new();
    let settings = small(4);
    let file_bytes_max = settings.rotation.unwrap().file_bytes_max;
    let record = |sink: &Sink, records: u64| (0..records).for_each(|n| sink.record(|| stopped(n)).unwrap());
    // Ten processes that ended, each with more than it may keep alone.
    let ended: Vec<Sink> = (0..10).map(|_| Sink::open_with(&folder.audit(), settings).unwrap().0).collect();
    ended.iter().for_each(|sink| record(sink, 100));
    let (together, _) = held(&folder);
    assert!(together <= (4 + 2 * 10) * file_bytes_max, "{together}: each has its file and one closed one at least");
    let dropped_of = |sinks: &[Sink]| sinks.iter().map(|sink| sink.dropped().records).sum::<u64>();
    let before = chain_records(&folder);
    let dropped_before = dropped_of(&ended);
    assert_eq!(before.made, before.kept + dropped_before);
    drop(ended);
    // Two go on in the first chains, and the rest shrinks as they write.
    let writing: Vec<Sink> = (0..2).map(|_| Sink::open_with(&folder.audit(), settings).unwrap().0).collect();
    writing.iter().for_each(|sink| record(sink, 200));
    let (together, files) = held(&folder);
    assert!(together <= (4 + 2 * 2) * file_bytes_max, "{together} bytes in {files} files");
    for chain in toolcell_audit::chains(&folder.audit()).unwrap() {
        let archive = Archive::open(&chain.path).unwrap();
        archive.verify().unwrap_or_else(|(file, broken)| panic!("{}: {broken:?}", file.path().display()));
        assert_eq!(toolcell_audit::is_written(&chain.path).unwrap(), chain.number <= 2, "{}", chain.path.display());
    }
    // What went to make room is counted as well, and the next file says so.
    let dropped = dropped_of(&writing);
    let after = chain_records(&folder);
    assert!(before.kept > 100 && dropped > 400, "{dropped} of {}", before.kept);
    assert_eq!(before.kept + after.written - before.written, after.kept + dropped);
    let said = folder.events(0)[0]["dropped_records"].as_u64();
    assert!(said.is_some_and(|records| records > 0), "{:?}", folder.events(0)[0]);
    drop(writing);
    // A single one has the whole room again.
    let (alone, _) = Sink::open_with(&folder.audit(), settings).unwrap();
    record(&alone, 300);
    let (together, _) = held(&folder);
    assert!(together <= (4 + 2) * file_bytes_max, "{together}");
    assert!(folder.file(4).exists() || together > 3 * file_bytes_max, "{:?}", folder.names());
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_told_and_not_waited_for() {
    let folder = Folder::new();
    folder.write(small(8), 100);
    for number in [0, 2] {
        let kept = folder.folder.path().join("kept");
        fs::rename(folder.file(number), &kept).unwrap();
        assert!(Command::new("mkfifo").arg(folder.file(number)).status().unwrap().success());
        let error = Archive::open_with_strays(&folder.audit()).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file", "{number}");
        if number > 0 {
            let error = Sink::open_with(&folder.audit(), small(8)).unwrap_err();
            assert!(matches!(error, OpenError::Foreign { number: 2 }), "{error}");
        }
        fs::rename(&kept, folder.file(number)).unwrap();
        folder.verify();
    }
}

#[test]
fn a_reader_follows_from_file_to_file_and_misses_nothing() {
    let folder = Folder::new();
    folder.write(small(1_000), 30);
    let last = folder.verify().last;
    let mut follower = Archive::open(&folder.audit()).unwrap().follow(&folder.audit(), 12).unwrap();
    let mut numbers = Vec::new();
    let mut read = |follower: &mut toolcell_audit::Follower| {
        while let Some(line) = follower.next_line().unwrap() {
            numbers.push(record_number(line).unwrap());
        }
        numbers.last().copied()
    };
    assert_eq!(read(&mut follower), Some(last));
    for _ in 0..4 {
        folder.write(small(1_000), 25);
        assert_eq!(read(&mut follower), Some(folder.verify().last));
    }
    let expected: Vec<u64> = (last - 11..=folder.verify().last).collect();
    assert_eq!(numbers, expected);
}

#[test]
fn a_reader_sees_a_record_once_it_is_whole_and_not_what_was_cut_off() {
    let folder = Folder::new();
    folder.write(small(4), 2);
    let mut follower = Archive::open(&folder.audit()).unwrap().follow(&folder.audit(), 0).unwrap();
    assert_eq!(follower.next_line().unwrap(), None);
    let mut file = fs::OpenOptions::new().append(true).open(folder.audit()).unwrap();
    file.write_all(b"{\"seq\":3,").unwrap();
    assert_eq!(follower.next_line().unwrap(), None);
    folder.write(small(4), 0);
    let line = follower.next_line().unwrap().unwrap();
    assert!(line.ends_with(b"\"event\":\"audit.repaired\",\"dropped_bytes\":9}"));
}

#[test]
fn a_reader_that_is_too_slow_goes_on_with_what_is_left() {
    let folder = Folder::new();
    folder.write(small(2), 10);
    let mut follower = Archive::open(&folder.audit()).unwrap().follow(&folder.audit(), 1).unwrap();
    let before = record_number(follower.next_line().unwrap().unwrap()).unwrap();
    folder.write(small(2), 100);
    // What was open stays readable; what was written and removed since is not.
    let mut numbers = Vec::new();
    while let Some(line) = follower.next_line().unwrap() {
        numbers.push(record_number(line).unwrap());
    }
    let summary = folder.verify();
    assert!(numbers[0] > before && numbers.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(numbers.contains(&summary.first) && numbers.last() == Some(&summary.last), "{numbers:?}");
}
