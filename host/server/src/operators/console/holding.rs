//! New versions of components, held against recorded calls before somebody approves them: one at a
//! time, on a thread of its own, and each version until it has an outcome. Must not hold: how a
//! call is replayed.
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use toolcell_console::model::RecordedCalls;
use toolcell_console::routes;
use toolcell_sandbox::step_back;

use super::decisions::Came;
use super::form::Fields;
use super::gather::Sources;

/// Outcomes that are kept, the newest: the components of a large manifest.
const OUTCOMES_MAX: usize = 64;

/// Bytes of the lines of one outcome: ten calls that end otherwise, with a line each.
const LINES_BYTES_MAX: usize = 8 * 1_024;

/// Calls of clients come first: next to threads that always compute, the thread keeps a tenth of a
/// core.
const NICER: i32 = 10;

/// A new version of a component that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldVersion {
    /// The manifest.
    pub manifest: PathBuf,
    /// The component's name there.
    pub component: String,
    /// The digest of its new bytes.
    pub digest: String,
}

/// Runs the recorded calls of a component with its new version, in sandbox processes without
/// rights, and for a bounded time. Gives lines for people; `None` if no call was recorded. `Err` is
/// one sentence.
pub type HoldAgainst = dyn Fn(&HeldVersion) -> Result<Option<String>, String> + Send + Sync;

/// What came of the versions that were held against recorded calls.
#[derive(Clone)]
pub struct HeldOutcomes {
    hold: Option<Arc<HoldAgainst>>,
    state: Arc<Mutex<HoldingState>>,
}

#[derive(Debug, Default)]
struct HoldingState {
    running: Option<VersionPair>,
    /// The oldest first.
    outcomes: Vec<(VersionPair, HeldOutcome)>,
}

/// A version that serves, and the one that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct VersionPair {
    component: String,
    old: String,
    new: String,
}

#[derive(Clone, Debug)]
struct HeldOutcome {
    lines: Result<String, String>,
    at: SystemTime,
}

/// Clears the version that runs, whatever becomes of its thread.
struct RunningPair {
    state: Arc<Mutex<HoldingState>>,
    pair: VersionPair,
    lines: Option<Result<String, String>>,
}

impl HeldOutcomes {
    /// None yet. Without `hold`, versions are approved without.
    pub fn new(hold: Option<Arc<HoldAgainst>>) -> Self {
        Self { hold, state: Arc::default() }
    }

    /// Begins with a version, unless it was held already or another one is.
    fn begin(&self, version: HeldVersion, old: String) -> Came {
        let hold = self.hold.clone().ok_or("This server does not run recorded calls.")?;
        let HeldVersion { component, digest, .. } = &version;
        let pair = VersionPair { component: component.clone(), old, new: digest.clone() };
        let mut state = self.state.lock();
        if let Some(running) = &state.running {
            return Err(format!("Recorded calls of {} are being run. Try again after that.", running.component));
        }
        if state.of(&pair).is_some_and(|outcome| outcome.lines.is_ok()) {
            return Err("Its recorded calls were run already.".to_owned());
        }
        state.running = Some(pair.clone());
        drop(state);
        let came = format!("Recorded calls of {component} are being run. The page shows how they end.");
        let running = RunningPair { state: Arc::clone(&self.state), pair, lines: None };
        let work = move || {
            step_back(NICER);
            let found = hold(&version);
            running.end(found.and_then(|lines| lines.ok_or_else(|| "No call of it is recorded.".to_owned())));
        };
        let started = std::thread::Builder::new().name("toolcell-hold".to_owned()).spawn(work);
        started.map_err(|error| format!("Nothing was run: {error}."))?;
        Ok(came)
    }

    fn shown(&self, pair: &VersionPair) -> RecordedCalls {
        let state = self.state.lock();
        if state.running.as_ref() == Some(pair) {
            return RecordedCalls::Running;
        }
        match state.of(pair) {
            Some(HeldOutcome { lines: Ok(lines), at }) => RecordedCalls::Ran { lines: lines.clone(), at: (*at).into() },
            Some(HeldOutcome { lines: Err(problem), .. }) => RecordedCalls::Failed { problem: problem.clone() },
            None => RecordedCalls::Offered,
        }
    }
}

impl HoldingState {
    fn of(&self, pair: &VersionPair) -> Option<&HeldOutcome> {
        self.outcomes.iter().find(|(held, _)| held == pair).map(|(_, outcome)| outcome)
    }
}

impl RunningPair {
    fn end(mut self, lines: Result<String, String>) {
        self.lines = Some(lines);
    }
}

impl Drop for RunningPair {
    fn drop(&mut self) {
        let lines = self.lines.take().unwrap_or_else(|| Err("It ended before its time. The log says more.".to_owned()));
        let mut state = self.state.lock();
        state.running = None;
        // One that failed before makes room.
        state.outcomes.retain(|(held, _)| *held != self.pair);
        if state.outcomes.len() >= OUTCOMES_MAX {
            state.outcomes.remove(0);
        }
        let outcome = HeldOutcome { lines: lines.map(clipped), at: SystemTime::now() };
        state.outcomes.push((self.pair.clone(), outcome));
    }
}

impl Sources {
    /// Runs the recorded calls of a component with its version that waits.
    pub fn hold_against_recordings(&self, fields: &Fields) -> Came {
        let component = fields.get(routes::COMPONENT);
        let digest = fields.get(routes::DIGEST);
        let quarantined = self.current.journal.quarantined();
        let is_held = quarantined.iter().any(|held| held.component == component && held.digest == digest);
        let catalog = self.catalog();
        let serving = catalog.component(component).filter(|_| is_held && catalog.settings.recordings.is_some());
        let old = serving.ok_or("This version does not wait any more.")?.digest().to_owned();
        let version =
            HeldVersion { manifest: self.manifest.clone(), component: component.to_owned(), digest: digest.to_owned() };
        self.held.begin(version, old)
    }

    /// How recorded calls of a component end with its version that waits.
    pub(super) fn recorded_calls(&self, component: &str, new: &str) -> RecordedCalls {
        let catalog = self.catalog();
        let serving = catalog.component(component).filter(|serving| serving.digest() != new);
        match serving.filter(|_| self.held.hold.is_some() && catalog.settings.recordings.is_some()) {
            Some(serving) => self.held.shown(&VersionPair {
                component: component.to_owned(),
                old: serving.digest().to_owned(),
                new: new.to_owned(),
            }),
            None => RecordedCalls::Unavailable,
        }
    }
}

fn clipped(mut lines: String) -> String {
    lines.truncate(lines.floor_char_boundary(LINES_BYTES_MAX));
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc::{channel, sync_channel};

    use super::*;

    fn version(component: &str) -> HeldVersion {
        HeldVersion { manifest: PathBuf::new(), component: component.to_owned(), digest: "new".to_owned() }
    }

    fn pair(component: &str) -> VersionPair {
        VersionPair { component: component.to_owned(), old: "old".to_owned(), new: "new".to_owned() }
    }

    fn ended(held: &HeldOutcomes) {
        while held.state.lock().running.is_some() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn one_version_is_held_at_a_time_and_each_once() {
        let (goes, waits) = sync_channel::<()>(0);
        let waits = Mutex::new(waits);
        let held = HeldOutcomes::new(Some(Arc::new(move |version: &HeldVersion| {
            let _ = waits.lock().recv();
            Ok(Some(format!("all of {}", version.component)))
        })));
        assert_eq!(held.shown(&pair("a")), RecordedCalls::Offered);
        assert!(held.begin(version("a"), "old".to_owned()).is_ok());
        assert_eq!(held.shown(&pair("a")), RecordedCalls::Running);
        let second = held.begin(version("b"), "old".to_owned());
        assert_eq!(second, Err("Recorded calls of a are being run. Try again after that.".to_owned()));
        drop(goes);
        ended(&held);
        let RecordedCalls::Ran { lines, .. } = held.shown(&pair("a")) else { unreachable!() };
        assert_eq!(lines, "all of a");
        let again = held.begin(version("a"), "old".to_owned());
        assert_eq!(again, Err("Its recorded calls were run already.".to_owned()));
        assert!(held.begin(version("a"), "other".to_owned()).is_ok(), "another version serves");
        ended(&held);
    }

    #[test]
    fn a_thread_that_breaks_and_endless_lines_leave_an_outcome() {
        let (sends, gets) = channel::<Result<Option<String>, String>>();
        let gets = Mutex::new(gets);
        let held = HeldOutcomes::new(Some(Arc::new(move |_: &HeldVersion| {
            let outcome = gets.lock().try_recv();
            outcome.unwrap()
        })));
        held.begin(version("a"), "old".to_owned()).unwrap();
        ended(&held);
        assert!(matches!(held.shown(&pair("a")), RecordedCalls::Failed { .. }));
        sends.send(Ok(Some("all".to_owned()))).unwrap();
        held.begin(version("a"), "old".to_owned()).unwrap();
        ended(&held);
        assert!(matches!(held.shown(&pair("a")), RecordedCalls::Ran { .. }), "what failed is tried again");
        assert_eq!(held.state.lock().outcomes.len(), 1);
        sends.send(Ok(Some("é".repeat(100_000)))).unwrap();
        held.begin(version("b"), "old".to_owned()).unwrap();
        ended(&held);
        assert!(matches!(held.shown(&pair("b")), RecordedCalls::Ran { lines, .. } if lines.len() <= LINES_BYTES_MAX));
        for number in 0..OUTCOMES_MAX * 2 {
            sends.send(Ok(None)).unwrap();
            held.begin(version(&number.to_string()), "old".to_owned()).unwrap();
            ended(&held);
        }
        assert_eq!(held.state.lock().outcomes.len(), OUTCOMES_MAX);
    }
}
