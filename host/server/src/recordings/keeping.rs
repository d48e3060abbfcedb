//! Recordings on their way from calls to their files: a bounded queue, and the thread that reads
//! it. Must not hold: which calls are recorded.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolcell_sandbox::step_back;

use super::folder::{NotKept, RecordingsFolder, RecordingsPlace};
use super::naming::{self, RecordingName};
use super::taped::TapedCall;

/// Recordings that wait to be written: a disk that takes a millisecond for each catches up in half
/// a second. Further ones are dropped.
const WAITING_MAX: usize = 512;

/// Bytes of those: eight of the longest. They are in memory.
const WAITING_BYTES_MAX: u64 = 128 << 20;

/// Calls come first: next to threads that always compute, the thread keeps a tenth of a core.
const NICER: i32 = 10;

/// Time between two looks at recordings that have grown too old, if no call is recorded meanwhile.
const LOOKS_EVERY: Duration = Duration::from_secs(600);

/// Time between two warnings of one kind.
const WARNS_EVERY: Duration = Duration::from_secs(60);

/// Time for writing what waits when the server ends: a disk that hangs does not keep it.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// What came of recordings since the process started.
#[derive(Debug, Default)]
struct RecordingCounts {
    written: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

/// Takes recordings of calls, and writes them on a thread of its own.
#[derive(Debug)]
pub(crate) struct RecordingKeeper {
    /// Tells this process from others in names of files; `None` if there is no random number.
    process: Option<u64>,
    thread: Mutex<Option<WritingThread>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    counts: RecordingCounts,
    waiting_bytes: AtomicU64,
    dropping: Warning,
    failing: Warning,
}

#[derive(Debug)]
struct WritingThread {
    jobs: SyncSender<WritingJob>,
    /// Ends with the thread.
    ended: Receiver<()>,
}

enum WritingJob {
    /// Look at this folder: drafts are removed, and what is too much.
    Look(Arc<RecordingsPlace>),
    Write {
        taped: Box<TapedCall>,
        name: RecordingName,
        place: Arc<RecordingsPlace>,
        bytes: u64,
    },
}

/// A warning that is given once a minute at most.
#[derive(Debug, Default)]
struct Warning {
    last: Mutex<Option<Instant>>,
    /// What happened since.
    count: AtomicUsize,
}

impl Warning {
    /// Counts one. The number since the last warning, if another one is due.
    fn due(&self) -> Option<usize> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut last = self.last.lock();
        if last.is_some_and(|last| last.elapsed() < WARNS_EVERY) {
            return None;
        }
        *last = Some(Instant::now());
        Some(self.count.swap(0, Ordering::Relaxed))
    }
}

impl RecordingKeeper {
    /// One without a thread, which starts with the first recording.
    pub(crate) fn new() -> Self {
        let process = naming::process_number();
        let process = process.inspect_err(|error| tracing::warn!("no call is recorded: no random numbers: {error}"));
        Self { process: process.ok(), thread: Mutex::default(), shared: Arc::default() }
    }

    /// Looks at the folder of recordings when the server starts.
    pub(crate) fn look(&self, place: &Arc<RecordingsPlace>) {
        let _ = self.send(WritingJob::Look(Arc::clone(place)));
    }

    /// Takes the recording of a call that has ended. Returns its file, relative to the folder;
    /// `None` if it is dropped, since too many wait.
    pub(crate) fn keep(&self, taped: Box<TapedCall>, place: &Arc<RecordingsPlace>) -> Option<String> {
        let name = RecordingName::new(taped.ended, taped.call, self.process?);
        let file = format!("{}/{name}", taped.component);
        let bytes = taped.bytes();
        let waiting = self.shared.waiting_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let job = WritingJob::Write { taped, name, place: Arc::clone(place), bytes };
        if waiting <= WAITING_BYTES_MAX && self.send(job) {
            return Some(file);
        }
        self.shared.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
        if let Some(count) = self.shared.dropping.due() {
            tracing::warn!("recordings were dropped: {count}, since they are made faster than they are written");
        }
        None
    }

    /// What came of recordings, by outcome.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 3] {
        let RecordingCounts { written, dropped, failed } = &self.shared.counts;
        [("written", written), ("dropped", dropped), ("failed", failed)]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }

    /// Writes what waits, and ends the thread.
    pub(crate) fn end(&self) {
        let thread = self.thread.lock().take();
        let Some(WritingThread { jobs, ended }) = thread else { return };
        drop(jobs);
        if ended.recv_timeout(ENDS_WITHIN) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("recordings that were not written in time are lost");
        }
    }

    /// False if the queue is full, or there is no thread.
    fn send(&self, job: WritingJob) -> bool {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let started = WritingThread::start(&self.shared);
            *thread = started.inspect_err(|error| tracing::warn!("no thread to write recordings: {error}")).ok();
        }
        thread.as_ref().is_some_and(|thread| thread.jobs.try_send(job).is_ok())
    }
}

impl WritingThread {
    fn start(shared: &Arc<Shared>) -> std::io::Result<Self> {
        let (jobs, inbox) = sync_channel(WAITING_MAX);
        let (alive, ended) = sync_channel::<()>(0);
        let shared = Arc::clone(shared);
        let work = move || {
            step_back(NICER);
            write_all(&inbox, &shared);
            drop(alive);
        };
        std::thread::Builder::new().name("toolcell-record".to_owned()).spawn(work)?;
        Ok(Self { jobs, ended })
    }
}

/// The work of the thread, until nobody sends any more.
fn write_all(inbox: &Receiver<WritingJob>, shared: &Shared) {
    let mut folder: Option<RecordingsFolder> = None;
    loop {
        let (done, is_written) = match inbox.recv_timeout(LOOKS_EVERY) {
            Ok(WritingJob::Look(place)) => (opened(&mut folder, &place).map(drop), false),
            Ok(WritingJob::Write { taped, name, place, bytes }) => {
                let written = write(&mut folder, &taped, name, &place);
                drop(taped);
                shared.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
                (written, true)
            }
            Err(RecvTimeoutError::Timeout) => {
                let refreshed = folder.take().map(RecordingsFolder::refreshed).transpose();
                (refreshed.map(|refreshed| folder = refreshed).map_err(|error| error.to_string()), false)
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match done {
            Ok(()) if is_written => drop(shared.counts.written.fetch_add(1, Ordering::Relaxed)),
            Ok(()) => {}
            Err(problem) => shared.failed(&problem),
        }
    }
}

impl Shared {
    fn failed(&self, problem: &str) {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        if let Some(count) = self.failing.due() {
            tracing::warn!("a recording is not kept ({count} since the last warning): {problem}");
        }
    }
}

/// Writes one recording. The rest of a sentence says why it is not kept.
fn write(
    folder: &mut Option<RecordingsFolder>,
    taped: &TapedCall,
    name: RecordingName,
    place: &Arc<RecordingsPlace>,
) -> Result<(), String> {
    let recording = taped.made()?;
    let bytes = recording.to_bytes().map_err(|error| error.to_string())?;
    let open = opened(folder, place)?;
    let kept = open.keep(&taped.component, name, &bytes);
    if kept.as_ref().is_err_and(NotKept::is_gone) {
        // Somebody removed the folder: it is made again.
        *folder = None;
        return opened(folder, place)?.keep(&taped.component, name, &bytes).map_err(|error| named(place, &error));
    }
    kept.map_err(|error| named(place, &error))
}

/// The folder of this place.
fn opened<'f>(
    folder: &'f mut Option<RecordingsFolder>,
    place: &Arc<RecordingsPlace>,
) -> Result<&'f mut RecordingsFolder, String> {
    let open = match folder.take().filter(|open| open.is_at(place)) {
        Some(open) => open.refreshed(),
        None => RecordingsFolder::open(place),
    };
    Ok(folder.insert(open.map_err(|error| named(place, &error))?))
}

fn named(place: &RecordingsPlace, error: &NotKept) -> String {
    format!("{}: {error}", place.folder.display())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;
    use std::time::SystemTime;

    use toolcell_policy::{Source, parse};
    use toolcell_sandbox::contract::GuestResult;
    use toolcell_sandbox::{GrantedCapabilities, Tape};

    use super::*;
    use crate::recordings::RecordedUse;

    fn place(folder: &Path) -> Arc<RecordingsPlace> {
        let text = "version = 1\n[recordings]\nfolder = 'recordings'\n[components.a]\nsource = 'a.wasm'\n";
        let parsed = parse(&Source { name: "toolcell.toml", text }).unwrap();
        RecordingsPlace::of(&parsed.manifest, folder).unwrap()
    }

    fn taped(call: u64, tape_bytes: u64) -> Box<TapedCall> {
        Box::new(TapedCall {
            call,
            revision: "2026-07-28",
            component: "a".to_owned(),
            digest: String::new(),
            tool: "t".to_owned(),
            listed: "t".to_owned(),
            caller: "local".to_owned(),
            arguments_json: "{}".to_owned(),
            is_conformed: false,
            manifest: String::new(),
            capabilities: GrantedCapabilities::sealed("t"),
            tape: Tape::recording(),
            tape_bytes,
            outcome: Ok(GuestResult { content: Vec::new(), structured_json: None, is_error: false, meta_json: None }),
            used: RecordedUse::default(),
            ended: SystemTime::now(),
            answer_bytes: 0,
            ordered: None,
        })
    }

    /// A keeper whose thread takes nothing: these many jobs wait at most.
    fn stuck(jobs_max: usize) -> (RecordingKeeper, Receiver<WritingJob>) {
        let keeper = RecordingKeeper::new();
        let (jobs, inbox) = sync_channel(jobs_max);
        let (_, ended) = sync_channel::<()>(0);
        *keeper.thread.lock() = Some(WritingThread { jobs, ended });
        (keeper, inbox)
    }

    #[test]
    fn what_waits_is_written_at_the_end_under_the_names_that_were_given() {
        let base = tempfile::tempdir().unwrap();
        let keeper = RecordingKeeper::new();
        let place = place(base.path());
        let files: Vec<String> = (1..=20).filter_map(|call| keeper.keep(taped(call, 0), &place)).collect();
        keeper.end();
        assert_eq!(files.len(), 20);
        for file in files {
            assert!(base.path().join("recordings").join(&file).is_file(), "{file}");
        }
        assert_eq!(keeper.counts(), [("written", 20), ("dropped", 0), ("failed", 0)]);
    }

    #[test]
    fn more_than_may_wait_are_dropped_and_counted() {
        let place = place(Path::new("/nowhere"));
        let (keeper, _inbox) = stuck(2);
        let kept: Vec<bool> = (1..=5).map(|call| keeper.keep(taped(call, 0), &place).is_some()).collect();
        assert_eq!(kept, [true, true, false, false, false]);
        assert_eq!(keeper.counts(), [("written", 0), ("dropped", 3), ("failed", 0)]);
        let (keeper, inbox) = stuck(10);
        let large = WAITING_BYTES_MAX / 2;
        let kept: Vec<bool> = (1..=3).map(|call| keeper.keep(taped(call, large), &place).is_some()).collect();
        assert_eq!(kept, [true, false, false], "each counts its texts besides");
        drop(inbox);
        assert_eq!(keeper.keep(taped(4, 0), &place), None);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_counted_and_stops_nothing() {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("recordings"), "a file").unwrap();
        let keeper = RecordingKeeper::new();
        for call in 1..=3 {
            assert!(keeper.keep(taped(call, 0), &place(base.path())).is_some());
        }
        keeper.end();
        assert_eq!(keeper.counts(), [("written", 0), ("dropped", 0), ("failed", 3)]);
    }

    #[test]
    fn a_warning_is_due_once_a_minute_and_counts_what_came_between() {
        let warning = Warning::default();
        assert_eq!([warning.due(), warning.due(), warning.due()], [Some(1), None, None]);
        *warning.last.lock() = Instant::now().checked_sub(WARNS_EVERY);
        assert_eq!(warning.due(), Some(3));
    }
}
