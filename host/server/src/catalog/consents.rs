//! Requests that no rule allows and that persons allowed for more than one call, over all
//! generations.
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::quantity::{Per, Rate};
use toolcell_policy::{Askable, MANIFEST_BYTES_MAX, Source, parse};
use toolcell_shared::Allowances;

use super::queue::pace;
use crate::files::file::{read_bounded, write_whole};
use crate::replicas::replicated_sets::{ReplicatedSetName, ReplicatedSets};

/// Requests that are remembered, of at most 2 KiB each. A person allows a few a day. A request that
/// does not fit is asked about again.
const GIVEN_MAX: usize = 1_024;

/// The share of one caller, who may answer its own questions: a quarter, as for other state of
/// clients.
const GIVEN_PER_CALLER_MAX: usize = GIVEN_MAX / 4;

/// How long replicas remember a consent: a working day. None of them can know when all have ended.
const GIVEN_FOR: Duration = Duration::from_secs(12 * 3_600);

/// Questions that may be open at once. Beyond them, nobody is asked.
const OPEN_MAX: usize = 1_024;

/// How often one caller's person is asked: somebody who is asked every half minute for an hour
/// stops reading. A round that brings an answer counts as well.
const ASKED: Rate = Rate { count: 120, per: Per::Hour };

/// Callers whose questions are counted separately.
const ASKED_CALLERS_MAX: usize = 1_000;

/// A person at a terminal, who is asked there.
pub trait Person: Send + Sync {
    /// Asks, and waits for the answer. `None`: nothing was chosen.
    fn ask(&self, message: &str, choices: &[Choice]) -> Option<Choice>;
}

/// An answer to a request that no rule allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is allowed in this call.
    Once,
    /// It is allowed for this caller's calls of this tool, until the host ends or the component
    /// changes.
    Session,
    /// Its lines are written into the manifest.
    Manifest,
    /// It is denied.
    No,
}

/// Consents of persons.
pub struct Consents {
    given: Mutex<GivenConsents>,
    /// Running questions: a second caller with the same question waits for the first answer.
    open: Mutex<HashMap<String, Weak<Semaphore>>>,
    asked: Mutex<Allowances>,
    /// The manifest, if persons may have it written.
    manifest: OnceLock<PathBuf>,
    writing: Mutex<()>,
    /// Shares consents with all replicas.
    sets: OnceLock<Arc<ReplicatedSets>>,
    person: OnceLock<Arc<dyn Person>>,
}

/// Requests that were allowed, by caller.
#[derive(Default)]
struct GivenConsents {
    callers: HashMap<String, HashSet<String>>,
    count: usize,
}

impl GivenConsents {
    /// False if it is full.
    fn insert(&mut self, caller: &str, what: String) -> bool {
        let own = self.callers.get(caller);
        if own.is_some_and(|own| own.contains(&what)) {
            return true;
        }
        if self.count >= GIVEN_MAX || own.is_some_and(|own| own.len() >= GIVEN_PER_CALLER_MAX) {
            return false;
        }
        self.count += 1;
        self.callers.entry(caller.to_owned()).or_default().insert(what)
    }

    fn contains(&self, caller: &str, what: &str) -> bool {
        self.callers.get(caller).is_some_and(|own| own.contains(what))
    }
}

impl Default for Consents {
    fn default() -> Self {
        let given = Mutex::default();
        let open = Mutex::default();
        let asked = Mutex::new(Allowances::new(pace(ASKED), ASKED_CALLERS_MAX));
        let manifest = OnceLock::new();
        let sets = OnceLock::new();
        let person = OnceLock::new();
        Self { given, open, asked, manifest, writing: Mutex::default(), sets, person }
    }
}

impl Choice {
    /// Its name in forms and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Manifest => "manifest",
            Self::No => "no",
        }
    }

    /// Its meaning, for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Once => "allow it in this call",
            Self::Session => "allow it to this tool until the host ends",
            Self::Manifest => "write it into the manifest",
            Self::No => "deny it",
        }
    }
}

impl Consents {
    /// From now on, persons may have this manifest written.
    pub fn may_write(&self, manifest: &Path) {
        let _ = self.manifest.set(manifest.to_owned());
    }

    /// From now on, this person is asked, and no client.
    pub fn ask_on(&self, person: Arc<dyn Person>) {
        let _ = self.person.set(person);
    }

    /// The person at a terminal, if there is one.
    pub fn person(&self) -> Option<&Arc<dyn Person>> {
        self.person.get()
    }

    /// From now on, consents for more than one call are shared with all replicas.
    pub fn share(&self, sets: &Arc<ReplicatedSets>) {
        let _ = self.sets.set(Arc::clone(sets));
    }

    /// The meaning of a choice, for people.
    pub fn meaning(&self, choice: Choice) -> String {
        match (choice, self.sets.get()) {
            (Choice::Session, Some(_)) => format!("allow it to this tool for {} hours", GIVEN_FOR.as_secs() / 3_600),
            (choice, _) => choice.meaning().to_owned(),
        }
    }

    /// True if persons may have the manifest written, and it can be.
    pub fn writes(&self) -> bool {
        self.manifest.get().is_some_and(|path| std::fs::OpenOptions::new().append(true).open(path).is_ok())
    }

    /// True if this was allowed to the caller for more than one call.
    pub fn holds(&self, caller: &str, what: &str) -> bool {
        match self.sets.get() {
            Some(sets) => sets.has_of(ReplicatedSetName::Consents, caller, &[what]),
            None => self.given.lock().contains(caller, what),
        }
    }

    /// Remembers that this was allowed to the caller. If it does not fit, the person is asked
    /// again.
    pub async fn remember(&self, caller: &str, what: String) {
        let remembered = match self.sets.get() {
            Some(sets) => {
                sets.post_of(ReplicatedSetName::Consents, caller, GIVEN_PER_CALLER_MAX, &[&what], GIVEN_FOR).await
            }
            None => Ok(self.given.lock().insert(caller, what)),
        };
        match remembered {
            Ok(true) => {}
            Ok(false) => tracing::warn!("what a person allowed is not remembered: there is no room"),
            Err(away) => tracing::warn!("what a person allowed is not remembered: {}", away.internal()),
        }
    }

    /// Takes one question from the caller's allowance. False if it is used up.
    pub fn charge(&self, caller: &str) -> bool {
        let mut asked = self.asked.lock();
        asked.take(caller, Instant::now()).is_ok()
    }

    /// The turn to ask about this; waits while another call asks the same. `None` if too many
    /// questions are open.
    pub async fn turn(&self, what: &str) -> Option<OwnedSemaphorePermit> {
        let turn = {
            let mut open = self.open.lock();
            if open.len() >= OPEN_MAX {
                open.retain(|_, turn| turn.strong_count() > 0);
            }
            let known = open.get(what).and_then(Weak::upgrade);
            if known.is_none() && open.len() >= OPEN_MAX {
                return None;
            }
            let turn = known.unwrap_or_else(|| Arc::new(Semaphore::new(1)));
            open.insert(what.to_owned(), Arc::downgrade(&turn));
            turn
        };
        turn.acquire_owned().await.ok()
    }

    /// Writes the lines of a request into the manifest.
    ///
    /// # Errors
    /// One sentence.
    pub fn write(&self, offer: &Askable) -> Result<(), String> {
        let path = self.manifest.get().ok_or("the manifest is not written to here")?;
        self.write_tables(path, &offer.table())
    }

    /// Merges these tables into a manifest.
    ///
    /// # Errors
    /// One sentence.
    pub fn write_tables(&self, path: &Path, tables: &str) -> Result<(), String> {
        let _alone = self.writing.lock();
        let name = path.display().to_string();
        let bytes = read_bounded(path, MANIFEST_BYTES_MAX as u64).map_err(|problem| format!("{name} {problem}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8 text"))?;
        let mut edit = ManifestEdit::of(&text)?;
        edit.merge(tables)?;
        let changed = edit.text();
        if changed == text {
            return Ok(());
        }
        if parse(&Source { name: &name, text: &changed }).is_err() {
            return Err(format!("{name} has other problems, or would have; `toolcell check` shows them"));
        }
        write_whole(path, changed.as_bytes()).map_err(|error| format!("{name} cannot be written: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_remembered_and_asked_is_bounded() {
        let consents = Consents::default();
        for caller in ["ann", "bob", "cay", "dan", "eve"] {
            for number in 0..GIVEN_PER_CALLER_MAX + 10 {
                consents.remember(caller, number.to_string()).await;
                consents.remember(caller, "0".to_owned()).await;
            }
        }
        let last = (GIVEN_PER_CALLER_MAX - 1).to_string();
        assert!(consents.holds("ann", &last) && !consents.holds("ann", &GIVEN_PER_CALLER_MAX.to_string()));
        assert!(consents.holds("dan", &last), "each caller has a share");
        assert!(!consents.holds("eve", "0"), "what all may have is given");
        let asked = (0..ASKED.count + 10).filter(|_| consents.charge("ann")).count();
        assert_eq!(asked as u64, ASKED.count);
        assert!(consents.charge("bob"), "each caller has an allowance");
    }

    #[tokio::test]
    async fn what_is_allowed_at_one_replica_is_allowed_at_all() {
        let sets = crate::replicas::replicated_sets::tests::replicas([1, 1]);
        let [one, other] = sets.each_ref().map(|sets| {
            let consents = Consents::default();
            consents.share(sets);
            consents
        });
        one.remember("ann", "a".to_owned()).await;
        assert!(one.holds("ann", "a") && !one.holds("bob", "a"));
        crate::replicas::replicated_sets::tests::comes_true("the other knows", || other.holds("ann", "a")).await;
        assert!(!other.holds("ann", "b"));
        assert_eq!(other.meaning(Choice::Session), "allow it to this tool for 12 hours");
        assert_eq!(Consents::default().meaning(Choice::Session), Choice::Session.meaning());
    }

    #[tokio::test]
    async fn two_that_ask_the_same_take_turns() {
        let consents = Consents::default();
        let first = consents.turn("same").await.unwrap();
        let _other = consents.turn("other").await.unwrap();
        let mut second = Box::pin(consents.turn("same"));
        let early = tokio::select! {
            biased;
            _ = &mut second => true,
            () = std::future::ready(()) => false,
        };
        assert!(!early);
        drop(first);
        assert!(second.await.is_some());
    }
}
