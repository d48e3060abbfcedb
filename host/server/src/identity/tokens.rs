//! Bearer tokens of the file: whom each admits, until when, and when it was last used. A token is
//! never given to a guest.
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use toolcell_mcp::http::{Admitted, AuthFailure, CredentialValidity};
use toolcell_mcp::{Caller, Cancellation};

use super::announced::AnnouncedLines;
use super::token_file::{TokenEntry, TokenFile, hash};
use crate::files::FilePolling;
use crate::replicas::replicated_sets::ReplicatedSetName::Revoked;
use crate::replicas::replicated_sets::ReplicatedSets;

/// How long a token stays revoked after a replica saw its line disappear. A replica that still has
/// the line extends it.
const REVOKED_FOR: Duration = Duration::from_secs(90 * 24 * 3_600);

/// Time that a caller waits until revoked tokens are known: that of the shared state, and a little
/// more.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// Longest time from now that a stream may last with its token: some lines name times that clocks
/// cannot represent.
const HOLDS_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// The tokens of the file with their callers. If replicas share state, a token that one of them saw
/// disappear is rejected by the others too, whatever their files contain.
pub struct Tokens(Arc<KnownTokens>);

struct KnownTokens {
    file: TokenFile,
    lines: Mutex<TokenLines>,
    callers: RwLock<CallersByHash>,
    shared: OnceLock<SharedTokens>,
}

/// What replicas that share state know of tokens.
struct SharedTokens {
    sets: Arc<ReplicatedSets>,
    announced: AnnouncedLines,
    /// True once the lines of the start were compared with the revoked tokens.
    is_compared: AtomicBool,
}

struct TokenLines {
    /// The valid lines: none if the file cannot be read.
    now: Vec<TokenEntry>,
    /// Last uses by hash, for all lines that were in the file when it was last readable.
    read: UsesByHash,
}

/// The time of a token's last use in this process.
#[derive(Default)]
struct LastUse {
    /// Milliseconds since 1970; 0 before the first one.
    at_ms: AtomicU64,
}

/// A token that admits its caller.
struct KnownToken {
    caller: Caller,
    ends: Option<SystemTime>,
    /// Cancelled once it is revoked.
    revoked: Cancellation,
    used: Arc<LastUse>,
}

type CallersByHash = HashMap<String, KnownToken>;
type UsesByHash = HashMap<String, Arc<LastUse>>;

impl Tokens {
    /// Reads the file, now and whenever it changes. `Err` is one sentence.
    pub fn open(file: TokenFile, polling: &mut FilePolling) -> Result<Self, String> {
        let now = file.read()?;
        let read = uses(&now, &UsesByHash::new());
        let callers = RwLock::new(known(&now, &read, &mut CallersByHash::new()));
        let lines = Mutex::new(TokenLines { read, now });
        let known = Arc::new(KnownTokens { file, lines, callers, shared: OnceLock::new() });
        let changed = Arc::clone(&known);
        polling.files(vec![known.file.path().to_owned()], move || changed.read_again());
        Ok(Self(known))
    }

    /// From now on, replicas notify each other of revoked tokens. What they know is kept in the
    /// folder `state`.
    pub fn share(&self, sets: &Arc<ReplicatedSets>, state: &Path) {
        let present = hashes(&self.0.lines.lock().read);
        let announced = AnnouncedLines::open(state, self.0.file.path(), &present);
        announced.write();
        let shared = SharedTokens { sets: Arc::clone(sets), announced, is_compared: false.into() };
        if self.0.shared.set(shared).is_ok() {
            let known = Arc::downgrade(&self.0);
            sets.on_read(Revoked, move || {
                if let Some(known) = known.upgrade() {
                    known.compare_with_revoked();
                    known.count_again();
                    // The disk takes time that the thread that drives connections does not have.
                    drop(tokio::task::spawn_blocking(move || known.write_announced()));
                }
            });
            // It may have been read before.
            self.0.count_again();
        }
    }

    /// The caller with this token.
    ///
    /// # Errors
    /// [`AuthFailure::NotNow`] while the tokens that other replicas revoked are unknown.
    pub async fn find(&self, token: &str) -> Result<Option<Admitted>, AuthFailure> {
        let Some(admitted) = self.0.caller_with(token) else { return Ok(None) };
        match self.0.sets() {
            Some(sets) if !sets.has_read(Revoked) => match sets.was_read(Revoked, READ_WITHIN).await {
                true => Ok(self.0.caller_with(token)),
                false => Err(AuthFailure::NotNow),
            },
            _ => Ok(Some(admitted)),
        }
    }

    /// When this process last saw the token with this hash.
    pub fn last_use(&self, hash: &str) -> Option<SystemTime> {
        self.0.lines.lock().read.get(hash)?.last()
    }

    /// True if a replica revoked the token with this hash.
    pub fn is_revoked(&self, hash: &str) -> bool {
        self.0.is_revoked(hash)
    }
}

impl LastUse {
    /// Notes a use. This happens on every request, so it is a single relaxed store.
    fn note(&self, now: SystemTime) {
        let ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.at_ms.store(u64::try_from(ms).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn last(&self) -> Option<SystemTime> {
        let ms = Some(self.at_ms.load(Ordering::Relaxed)).filter(|ms| *ms > 0)?;
        UNIX_EPOCH.checked_add(Duration::from_millis(ms))
    }
}

impl KnownToken {
    /// Its caller; `None` if it has expired.
    fn admit(&self, now: SystemTime) -> Option<Admitted> {
        let until = match self.ends {
            None => None,
            Some(end) => {
                let left = end.duration_since(now).ok().filter(|left| !left.is_zero())?;
                Some(Instant::now().checked_add(left.min(HOLDS_MAX))?)
            }
        };
        self.used.note(now);
        let validity = CredentialValidity { until, revoked: Some(self.revoked.clone()) };
        Some(Admitted { caller: self.caller.clone(), validity })
    }
}

impl KnownTokens {
    fn caller_with(&self, token: &str) -> Option<Admitted> {
        let callers = self.callers.read();
        callers.get(&hash(token))?.admit(SystemTime::now())
    }

    fn is_revoked(&self, hash: &str) -> bool {
        self.sets().is_some_and(|sets| sets.has(Revoked, &[hash]))
    }

    fn sets(&self) -> Option<&ReplicatedSets> {
        self.shared.get().map(|shared| &*shared.sets)
    }

    /// Rereads the file, and notifies other replicas of lines that disappeared or came back.
    fn read_again(&self) {
        let read = self.file.read();
        let mut lines = self.lines.lock();
        match read {
            Ok(now) => {
                let read = uses(&now, &lines.read);
                let before = hashes(&std::mem::replace(&mut lines.read, read));
                lines.now = now;
                if let Some(SharedTokens { sets, announced, .. }) = self.shared.get() {
                    let now = hashes(&lines.read);
                    // First of all, so that a restart finds what may not be posted by then.
                    announced.note_gone(&now);
                    announced.write();
                    let gone = before.difference(&now);
                    let come = now.difference(&before);
                    gone.for_each(|hash| sets.post_later(Revoked, &[hash], REVOKED_FOR));
                    come.for_each(|hash| sets.take_down_later(Revoked, &[hash]));
                    if sets.has_read(Revoked) {
                        announced.compare(&now, |hash| sets.has(Revoked, &[hash]));
                    }
                }
            }
            // Somebody may have removed the file to lock everyone out. Other replicas have their
            // own files.
            Err(problem) => {
                tracing::error!("all tokens are refused from now on: {problem}");
                lines.now = Vec::new();
            }
        }
        drop(lines);
        self.count_again();
        self.write_announced();
    }

    fn write_announced(&self) {
        self.shared.get().iter().for_each(|shared| shared.announced.write());
    }

    /// Recomputes the callers from all lines that are not revoked.
    fn count_again(&self) {
        let lines = self.lines.lock();
        let entries: Vec<&TokenEntry> = lines.now.iter().filter(|entry| !self.is_revoked(&entry.hash)).collect();
        let mut callers = self.callers.write();
        let mut before = std::mem::take(&mut *callers);
        *callers = known(entries, &lines.read, &mut before);
        drop(callers);
        before.into_values().for_each(|token| token.revoked.cancel());
    }

    /// After the revoked tokens were read: posts at first what changed while no process ran here,
    /// and extends revocations for as long as this file has the line.
    fn compare_with_revoked(&self) {
        let Some(SharedTokens { sets, announced, is_compared }) = self.shared.get() else { return };
        let lines = self.lines.lock();
        let found = announced.compare(&hashes(&lines.read), |hash| sets.has(Revoked, &[hash]));
        // Later changes are posted when the file is read.
        if !is_compared.swap(true, Ordering::AcqRel) {
            found.went.iter().for_each(|hash| sets.post_later(Revoked, &[hash], REVOKED_FOR));
            found.came.iter().for_each(|hash| sets.take_down_later(Revoked, &[hash]));
        }
        let ends_soon = |hash: &str| sets.left(Revoked, &[hash]).is_some_and(|left| left < REVOKED_FOR / 2);
        let came: HashSet<&String> = found.came.iter().collect();
        let stay = lines.now.iter().filter(|entry| !came.contains(&entry.hash));
        let ending = stay.filter(|entry| ends_soon(&entry.hash));
        ending.for_each(|entry| sets.post_later(Revoked, &[&entry.hash], REVOKED_FOR));
    }
}

fn hashes(uses: &UsesByHash) -> HashSet<String> {
    uses.keys().cloned().collect()
}

/// The last uses of these lines' tokens; known ones are kept.
fn uses(entries: &[TokenEntry], before: &UsesByHash) -> UsesByHash {
    let used = |hash: &str| before.get(hash).map(Arc::clone).unwrap_or_default();
    entries.iter().map(|entry| (entry.hash.clone(), used(&entry.hash))).collect()
}

/// The callers of these lines. Unchanged ones are moved from `before`.
fn known<'e>(
    entries: impl IntoIterator<Item = &'e TokenEntry>,
    uses: &UsesByHash,
    before: &mut CallersByHash,
) -> CallersByHash {
    let entry = |entry: &TokenEntry| {
        let caller = Caller::new(&entry.name, entry.scopes.iter().map(String::as_str));
        let ends = entry.expires();
        let unchanged = match before.remove(&entry.hash) {
            Some(known) if known.caller == caller && known.ends == ends => Some(known),
            Some(known) => {
                known.revoked.cancel();
                None
            }
            None => None,
        };
        let made = || {
            let used = uses.get(&entry.hash).map(Arc::clone).unwrap_or_default();
            KnownToken { caller, ends, revoked: Cancellation::new(), used }
        };
        (entry.hash.clone(), unchanged.unwrap_or_else(made))
    };
    entries.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;

    use super::super::token_file::NewToken;
    use super::*;
    use crate::replicas::replicated_sets::tests::{comes_true, replicas};

    fn entry(name: &str, lifetime: Option<Duration>) -> TokenEntry {
        TokenEntry::new(&NewToken { name, scopes: &[], lifetime }, hash(name), SystemTime::now())
    }

    fn file(folder: &Path, names: &[&str]) -> TokenFile {
        let file = TokenFile::at(folder.join("tokens.jsonl"));
        file.write(&names.iter().map(|name| entry(name, None)).collect::<Vec<_>>()).unwrap();
        file
    }

    #[tokio::test]
    async fn a_token_ends_with_its_time_and_its_last_use_outlives_a_change_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut polling = FilePolling::new(&Handle::current());
        let file = TokenFile::at(folder.path().join("tokens.jsonl"));
        let day = Duration::from_secs(24 * 3_600);
        let ended = "{\"name\":\"old\",\"hash\":\"HASH\",\"expires\":1}\n";
        file.write(&[entry("ann", None), entry("bob", Some(day))]).unwrap();
        let lines = std::fs::read_to_string(file.path()).unwrap();
        std::fs::write(file.path(), lines + &ended.replace("HASH", &hash("old"))).unwrap();
        let tokens = Tokens::open(file.clone(), &mut polling).unwrap();
        let before = Instant::now();
        let found = tokens.find("bob").await.unwrap().unwrap();
        let left = found.validity.until.unwrap().duration_since(before);
        assert!(left <= day + Duration::from_secs(60) && left > day - Duration::from_secs(60), "{left:?}");
        assert!(tokens.find("old").await.unwrap().is_none(), "it has expired");
        assert!(tokens.last_use(&hash("ann")).is_none() && tokens.last_use(&hash("old")).is_none(), "not used");
        assert_eq!(tokens.find("ann").await.unwrap().unwrap().validity.until, None);
        let [ann, bob] = ["ann", "bob"].map(|name| tokens.last_use(&hash(name)).unwrap());
        assert!(ann >= bob && ann <= SystemTime::now());
        // The life of bob's token changes, and for a moment the file cannot be read.
        for _ in 0..2 {
            std::fs::write(file.path(), "no token's line").unwrap();
            tokens.0.read_again();
            assert!(tokens.find("bob").await.unwrap().is_none());
            file.write(&[entry("ann", None), entry("bob", Some(2 * day))]).unwrap();
            tokens.0.read_again();
            assert_eq!(tokens.last_use(&hash("bob")), Some(bob));
        }
        assert!(found.validity.revoked.unwrap().is_cancelled(), "what it began ends");
        file.write(&[entry("ann", None)]).unwrap();
        tokens.0.read_again();
        assert_eq!((tokens.last_use(&hash("bob")), tokens.last_use(&hash("ann"))), (None, Some(ann)));
    }

    #[tokio::test]
    async fn a_line_that_goes_or_comes_counts_for_all_and_one_that_cannot_be_read_for_itself_alone() {
        let sets = replicas([1, 1]);
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut polling = FilePolling::new(&Handle::current());
        let [one, other] = [0, 1].map(|place: usize| {
            let tokens = Tokens::open(file(folders[place].path(), &["ann", "bob"]), &mut polling).unwrap();
            tokens.share(&sets[place], folders[place].path());
            tokens
        });
        let revoked = other.find("ann").await.unwrap().unwrap().validity.revoked.unwrap();
        assert!(one.find("bob").await.unwrap().is_some() && one.find("eve").await.unwrap().is_none());
        let knows = |tokens: &Tokens, name: &str| tokens.0.callers.read().contains_key(&hash(name));
        file(folders[0].path(), &["bob"]);
        comes_true("it goes", || !knows(&one, "ann") && !knows(&other, "ann")).await;
        assert!(revoked.is_cancelled(), "what it began ends");
        assert!(knows(&one, "bob") && knows(&other, "bob"));
        // A file that cannot be read says nothing about anybody's token.
        std::fs::write(folders[0].path().join("tokens.jsonl"), "no token's line").unwrap();
        comes_true("nobody gets in", || !knows(&one, "bob")).await;
        file(folders[0].path(), &["bob"]);
        comes_true("it is back", || knows(&one, "bob")).await;
        assert!(knows(&other, "bob") && !knows(&other, "ann"));
        // The other's file had both all the time.
        file(folders[1].path(), &["bob", "ann", "cleo"]);
        comes_true("it is read", || knows(&other, "cleo")).await;
        assert!(!knows(&other, "ann"), "a line that was there has not come back");
        file(folders[0].path(), &["bob", "ann"]);
        comes_true("it comes back", || knows(&one, "ann") && knows(&other, "ann")).await;
    }

    /// What ends with a process.
    struct Process {
        tokens: Tokens,
        _polling: FilePolling,
    }

    #[tokio::test]
    async fn a_line_that_goes_or_comes_while_no_process_runs_counts_for_all_after_the_next_start() {
        let sets = replicas([1, 1]);
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let start = |place: usize| {
            let mut polling = FilePolling::new(&Handle::current());
            let file = TokenFile::at(folders[place].path().join("tokens.jsonl"));
            let tokens = Tokens::open(file, &mut polling).unwrap();
            tokens.share(&sets[place], folders[place].path());
            Process { tokens, _polling: polling }
        };
        let knows = |process: &Process, name: &str| process.tokens.0.callers.read().contains_key(&hash(name));
        let is_compared = |process: &Process| {
            let shared = process.tokens.0.shared.get().unwrap();
            shared.is_compared.load(Ordering::Acquire)
        };
        folders.iter().for_each(|folder| drop(file(folder.path(), &["ann", "bob", "eve"])));
        let one = start(0);
        let other = start(1);
        comes_true("both run", || is_compared(&one) && is_compared(&other)).await;
        // It goes while one is stopped.
        drop(one);
        file(folders[0].path(), &["bob", "eve"]);
        let one = start(0);
        comes_true("it is revoked", || !knows(&other, "ann")).await;
        // Another line of the other's is new when that starts again.
        drop(other);
        file(folders[1].path(), &["ann", "bob", "eve", "frank"]);
        let other = start(1);
        comes_true("it is read", || is_compared(&other) && knows(&other, "frank")).await;
        file(folders[0].path(), &["eve"]);
        comes_true("a later change is known", || !knows(&other, "bob")).await;
        assert!(!knows(&other, "ann"), "it was there before");
        // It comes back while one is stopped.
        drop(one);
        file(folders[0].path(), &["ann", "eve"]);
        let one = start(0);
        comes_true("it is valid again", || knows(&one, "ann") && knows(&other, "ann")).await;
        assert!(!knows(&other, "bob"));
    }
}
