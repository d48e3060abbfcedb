//! Secrets that programs print, as secrets that change.
//!
//! A value that holds is given at once. Otherwise one thread runs the program, and all requests
//! wait for it. While the program fails, the last value serves for a time, and the operator hears
//! of it. Must not hold: how a program is run (`run.rs`).
mod run;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcell_policy::{AdvisedFault, SecretProgram};
use toolcell_sandbox::{LiveSecret, NoValue, SecretValue, ValueInTime};
use zeroize::Zeroizing;

use super::flight::{Flight, FlightThread};

pub use run::end_all;

/// Values that are looked for in what servers send back: the newest, and those before it that a
/// slow answer may still hold.
const KNOWN_MAX: usize = 4;

/// Time after a run that failed before the next one: a vault that is down is not pressed.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// Time for which a run at load counts for all tools that are loaded: a component has many.
const LOADED_FOR: Duration = Duration::from_secs(5);

/// The thread that runs a program.
const THREAD: FlightThread = FlightThread { name: "toolcell-secret", stack_bytes: 256 << 10 };

/// Programs of this process. Secrets with the same command and times share one, and its runs.
static PROGRAMS: Mutex<Vec<Weak<Program>>> = Mutex::new(Vec::new());

/// Hears of each run that failed: the program's path.
pub type FailureListener = dyn Fn(&str) + Send + Sync;

/// Those who hear of runs that failed.
static LISTENERS: Mutex<Vec<Weak<FailureListener>>> = Mutex::new(Vec::new());

/// One program, as the requests of this process use it.
struct Program {
    policy: Arc<SecretProgram>,
    printed: Mutex<Printed>,
    version: AtomicU64,
    /// Held while it runs.
    turn: Mutex<()>,
    flight: Flight,
}

/// What it has printed.
#[derive(Default)]
struct Printed {
    /// The newest first.
    values: VecDeque<SecretValue>,
    /// When the newest was printed.
    at: Option<Instant>,
    /// The last run, and what was wrong with it.
    last_run: Option<Instant>,
    problem: Option<String>,
}

/// A program that other secrets have too.
struct SharedProgram(Arc<Program>);

/// Prepares a secret: runs its program, unless it ran just now.
///
/// # Errors
/// It gave no value, and no earlier value serves. One sentence, and advice; neither has any part of
/// a value.
pub fn load(policy: &Arc<SecretProgram>) -> Result<Arc<dyn LiveSecret>, AdvisedFault> {
    let program = shared(policy);
    program.renew_unless_since(Instant::now().checked_sub(LOADED_FOR));
    let held = program.serving();
    match held {
        Some(_) => Ok(Arc::new(SharedProgram(program))),
        None => Err(program.fault()),
    }
}

/// Runs a program once, for a command.
///
/// # Errors
/// It gave no text.
pub fn print(policy: &SecretProgram) -> Result<Zeroizing<String>, AdvisedFault> {
    run::run(policy).map_err(|error| fault(policy, &error.to_string()))
}

/// From now on `listener` hears of runs that fail, until it is dropped.
pub fn listen(listener: &Arc<FailureListener>) {
    let mut listeners = LISTENERS.lock();
    listeners.retain(|listener| listener.strong_count() > 0);
    listeners.push(Arc::downgrade(listener));
}

/// The programs that this process uses, with their states, as JSON.
#[must_use]
pub fn in_use() -> Vec<Value> {
    let programs: Vec<Arc<Program>> = PROGRAMS.lock().iter().filter_map(Weak::upgrade).collect();
    programs.iter().map(|program| program.to_json()).collect()
}

fn shared(policy: &Arc<SecretProgram>) -> Arc<Program> {
    let mut programs = PROGRAMS.lock();
    programs.retain(|program| program.strong_count() > 0);
    if let Some(program) = programs.iter().filter_map(Weak::upgrade).find(|program| program.policy == *policy) {
        return program;
    }
    let program = Arc::new(Program {
        policy: Arc::clone(policy),
        printed: Mutex::default(),
        version: AtomicU64::new(0),
        turn: Mutex::default(),
        flight: Flight::default(),
    });
    programs.push(Arc::downgrade(&program));
    program
}

fn fault(policy: &SecretProgram, problem: &str) -> AdvisedFault {
    let advice = format!("run it by hand as this user: {policy}");
    AdvisedFault::new(format!("the program {} {problem}", policy.path()), advice)
}

impl LiveSecret for SharedProgram {
    fn value(&self) -> ValueInTime<'_> {
        Box::pin(async move {
            if let Some(value) = self.0.at_once() {
                return value;
            }
            let program = Arc::clone(&self.0);
            let asked = Instant::now();
            let renew = move || {
                program.renew_unless_since(Some(asked));
                program.serving().ok_or(NoValue)
            };
            self.0.flight.value(THREAD, renew).await
        })
    }

    fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    fn known(&self) -> Vec<SecretValue> {
        self.0.printed.lock().values.iter().cloned().collect()
    }

    fn lack(&self) -> Option<String> {
        let problem = self.0.printed.lock().problem.clone()?;
        self.0.serving().is_none().then(|| format!("the program {} {problem}", self.0.policy.path()))
    }
}

impl Program {
    /// The last value, if it may still serve.
    fn serving(&self) -> Option<SecretValue> {
        self.printed.lock().within(self.policy.ttl().saturating_add(self.policy.stale()))
    }

    /// The value, or that there is none, if that is known without waiting.
    fn at_once(&self) -> Option<Result<SecretValue, NoValue>> {
        let printed = self.printed.lock();
        if let Some(value) = printed.within(self.policy.ttl()) {
            return Some(Ok(value));
        }
        let waits = printed.problem.is_some() && printed.last_run.is_some_and(|run| run.elapsed() < RETRY_AFTER);
        drop(printed);
        waits.then(|| self.serving().ok_or(NoValue))
    }

    /// Runs the program, unless a run has begun since this time.
    fn renew_unless_since(&self, since: Option<Instant>) {
        let _turn = self.turn.lock();
        if self.printed.lock().last_run.is_some_and(|run| since.is_none_or(|since| run >= since)) {
            return;
        }
        let began = Instant::now();
        let value = run::run(&self.policy).map_err(|error| error.to_string());
        let value =
            value.and_then(|text| SecretValue::new(text).map_err(|problem| format!("gave a value that {problem}")));
        let mut printed = self.printed.lock();
        printed.last_run = Some(began);
        match value {
            Ok(value) => {
                if printed.problem.take().is_some() {
                    tracing::info!("the program {} gives a value again", self.policy.path());
                }
                printed.at = Some(began);
                if printed.values.front() != Some(&value) {
                    printed.values.retain(|known| *known != value);
                    printed.values.push_front(value);
                    printed.values.truncate(KNOWN_MAX);
                    self.version.fetch_add(1, Ordering::Release);
                }
            }
            Err(problem) => {
                let is_new = printed.problem.as_ref() != Some(&problem);
                printed.problem = Some(problem.clone());
                drop(printed);
                self.failed(&problem, is_new);
            }
        }
    }

    /// Tells the operator.
    fn failed(&self, problem: &str, is_new: bool) {
        let serves = if self.serving().is_some() { "the last value serves" } else { "no value serves" };
        let path = self.policy.path();
        if is_new {
            tracing::warn!("the program {path} {problem}; {serves}");
        } else {
            tracing::debug!("the program {path} {problem}; {serves}");
        }
        let listeners = LISTENERS.lock().clone();
        listeners.iter().filter_map(Weak::upgrade).for_each(|listener| listener(path));
    }

    fn fault(&self) -> AdvisedFault {
        let problem = self.printed.lock().problem.clone();
        fault(&self.policy, problem.as_deref().unwrap_or("gave no value"))
    }

    fn to_json(&self) -> Value {
        let serves = self.serving().is_some();
        let printed = self.printed.lock();
        let age_seconds = printed.at.map(|at| at.elapsed().as_secs());
        json!({
            "program": self.policy.path(),
            "value_age_seconds": age_seconds,
            "serves": serves,
            "problem": printed.problem,
        })
    }
}

impl Printed {
    /// The newest value, if it was printed within this time.
    fn within(&self, time: Duration) -> Option<SecretValue> {
        let is_recent = self.at.is_some_and(|at| at.elapsed() < time);
        self.values.front().filter(|_| is_recent).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    use toolcell_policy::{SecretSource, Source, parse};

    use super::*;

    /// A program in this folder.
    pub(super) fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    /// The policy of a program with these further keys.
    pub(super) fn program(path: &Path, keys: &str) -> Arc<SecretProgram> {
        let keys = keys.replace('\n', ", ");
        let keys = if keys.is_empty() { keys } else { format!(", {keys}") };
        let text = format!(
            "version = 1\n[components.c]\nsource = 'c.wasm'\n[components.c.network]\nhttp = ['https://a.example']\n\
             [components.c.secrets]\nKEY = {{ from = {{ exec = [{:?}]{keys} }}, header = 'x-key', for = 'https://a.example' }}\n",
            path.to_str().unwrap()
        );
        let parsed = parse(&Source { name: "test", text: &text }).unwrap();
        match parsed.manifest.components()[0].grants().secrets()[0].source() {
            SecretSource::Program(program) => Arc::clone(program),
            other => panic!("{other}"),
        }
    }

    /// A program that counts its runs, and prints what the file `value` next to it holds.
    fn counting(folder: &Path, keys: &str) -> Arc<SecretProgram> {
        let text = format!("cd {}\necho run >> runs\ncat value", folder.display());
        program(&script(folder, &text), keys)
    }

    fn says(folder: &Path, value: &str) {
        std::fs::write(folder.join("value"), value).unwrap();
    }

    fn runs(folder: &Path) -> usize {
        std::fs::read_to_string(folder.join("runs")).map_or(0, |text| text.lines().count())
    }

    async fn value(secret: &Arc<dyn LiveSecret>) -> Option<String> {
        secret.value().await.ok().map(|value| value.reveal().to_owned())
    }

    /// Moves the times of a program into the past.
    fn ages(policy: &Arc<SecretProgram>, by: Duration) {
        let program = shared(policy);
        let mut printed = program.printed.lock();
        printed.at = printed.at.and_then(|at| at.checked_sub(by));
        printed.last_run = printed.last_run.and_then(|at| at.checked_sub(by));
    }

    #[tokio::test]
    async fn a_value_holds_for_its_time_and_then_the_program_runs_once_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let policy = counting(folder.path(), "ttl = '5m'");
        says(folder.path(), "first");
        let secret = load(&policy).unwrap();
        let again = load(&policy).unwrap();
        assert_eq!((value(&secret).await.as_deref(), value(&again).await.as_deref()), (Some("first"), Some("first")));
        assert_eq!(runs(folder.path()), 1);
        says(folder.path(), "second");
        assert_eq!(value(&secret).await.as_deref(), Some("first"));
        ages(&policy, Duration::from_secs(301));
        let version = secret.version();
        let asked: Vec<_> = (0..50)
            .map(|_| {
                let secret = Arc::clone(&secret);
                tokio::spawn(async move { value(&secret).await })
            })
            .collect();
        for one in asked {
            assert_eq!(one.await.unwrap().as_deref(), Some("second"));
        }
        assert_eq!((runs(folder.path()), secret.version() > version), (2, true));
        let known: Vec<String> = secret.known().iter().map(|value| value.reveal().to_owned()).collect();
        assert_eq!(known, ["second", "first"]);
    }

    #[tokio::test]
    async fn while_a_program_fails_the_last_value_serves_for_a_time_and_somebody_hears_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let policy = counting(folder.path(), "ttl = '1m'\nstale = '2m'");
        says(folder.path(), "first");
        let secret = load(&policy).unwrap();
        let heard = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&heard);
        let path = policy.path().to_owned();
        let listener: Arc<FailureListener> = Arc::new(move |program: &str| {
            counts.fetch_add(u64::from(program == path), Ordering::Relaxed);
        });
        listen(&listener);
        std::fs::remove_file(folder.path().join("value")).unwrap();
        ages(&policy, Duration::from_secs(61));
        assert_eq!(value(&secret).await.as_deref(), Some("first"));
        assert_eq!((heard.load(Ordering::Relaxed), secret.lack()), (1, None));
        // It is not pressed.
        assert_eq!((value(&secret).await.as_deref(), runs(folder.path())), (Some("first"), 2));
        // A reload is served by it as well.
        ages(&policy, Duration::from_secs(60));
        assert!(load(&policy).is_ok());
        assert_eq!((runs(folder.path()), heard.load(Ordering::Relaxed)), (3, 2));
        ages(&policy, Duration::from_secs(60));
        assert_eq!(value(&secret).await, None);
        let lack = secret.lack().unwrap();
        assert!(lack.ends_with("ended with exit code 1"), "{lack}");
        let fault = load(&policy).err().unwrap();
        assert!(fault.problem.ends_with("ended with exit code 1"), "{}", fault.problem);
        // An empty value is none.
        says(folder.path(), "");
        ages(&policy, RETRY_AFTER);
        assert_eq!(value(&secret).await, None);
        assert!(secret.lack().unwrap().ends_with("gave a value that is empty"));
        says(folder.path(), "second");
        ages(&policy, RETRY_AFTER);
        assert_eq!(value(&secret).await.as_deref(), Some("second"));
        assert_eq!(secret.lack(), None);
    }

    #[test]
    fn a_program_that_never_gave_a_value_is_a_fault_with_advice_and_without_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let policy = program(&script(folder.path(), "echo s3cr3t-part >&2; echo s3cr3t; exit 2"), "");
        let fault = load(&policy).err().unwrap();
        assert!(fault.problem.ends_with("program ended with exit code 2"), "{}", fault.problem);
        assert!(!format!("{fault:?}").contains("s3cr3t"), "{fault:?}");
    }
}
