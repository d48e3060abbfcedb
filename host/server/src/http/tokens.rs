//! Bearer tokens: a file of their hashes with the callers' names. A token is never written down
//! here, and never given to a guest.
use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use toolcell_mcp::http::{Admitted, AuthFailure, CredentialValidity};
use toolcell_mcp::{Caller, Cancellation};
use toolcell_sandbox::Digest;

use super::watch::FilePolling;
use crate::boards::BoardName::Revoked;
use crate::boards::Boards;
use crate::file::read_bounded;

/// Longest file of tokens, in bytes: some five thousand of them.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Time for which a token stays revoked by a replica that saw its line go. A replica that still has
/// the line makes it longer.
const REVOKED_FOR: Duration = Duration::from_secs(90 * 24 * 3_600);

/// Time that a caller waits until it is known which tokens were revoked: the state's, and a little
/// more.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// Time to wait for others who change the file: each reads and writes it once.
const LOCKED_WITHIN: Duration = Duration::from_secs(30);

/// Time between two looks whether the file is free. Nobody notices so little.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Random bytes of a token. So many cannot be guessed, so a plain hash protects them.
const TOKEN_BYTES: usize = 32;

/// Prefix of every token, for scanners that look for leaked secrets.
pub const TOKEN_PREFIX: &str = "toolcell_";

/// Longest name of a caller, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Names that stand for callers without a token, and for calls from the console.
const TAKEN: [&str; 3] = ["local", "anyone", "console"];

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// Name of its caller.
    pub name: String,
    /// `sha256:…` of the token.
    pub hash: String,
    /// Scopes of its caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// The file of tokens.
#[derive(Clone, Debug)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// The file at this path.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its lines. `Err` is one sentence.
    pub fn read(&self) -> Result<Vec<TokenEntry>, String> {
        let shown = self.0.display();
        let bytes = read_bounded(&self.0, FILE_BYTES_MAX).map_err(|problem| format!("{shown} {problem}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{shown} is not UTF-8 text"))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let entry = |(index, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| format!("{shown}:{}: no token's line: {error}", index + 1))
        };
        lines.map(entry).collect()
    }

    /// Changes its lines. Nobody else changes them meanwhile, so no revoked token comes back. `Err`
    /// is one sentence, and nothing is written.
    pub fn change<T>(&self, change: impl FnOnce(&mut Vec<TokenEntry>) -> Result<T, String>) -> Result<T, String> {
        let _alone = self.lock()?;
        let mut entries = if self.0.exists() { self.read()? } else { Vec::new() };
        let done = change(&mut entries)?;
        self.write(&entries)?;
        Ok(done)
    }

    /// Keeps other processes and threads from changing it: a lock of a file beside it, as the file
    /// itself is replaced.
    fn lock(&self) -> Result<std::fs::File, String> {
        let mut path = self.0.clone().into_os_string();
        path.push(".lock");
        let shown = Path::new(&path).display();
        let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed();
        let mut open = std::fs::OpenOptions::new();
        let lock = open.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(&path);
        let lock = lock.map_err(|error| format!("{shown} cannot be opened: {error}"))?;
        let end = Instant::now() + LOCKED_WITHIN;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(lock),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => std::thread::sleep(LOOK_EVERY),
                Err(Errno::WOULDBLOCK) => return Err(format!("{shown} is kept by another process; try again later")),
                Err(error) => return Err(format!("{shown} cannot be locked: {error}")),
            }
        }
    }

    /// Gives this caller a token, which is returned and kept nowhere. `Err` is one sentence.
    pub fn add(&self, name: &str, scopes: &[String]) -> Result<String, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) || TAKEN.contains(&name) {
            let taken = TAKEN.join(", ");
            return Err(format!(
                "{name:?} cannot be a caller's name: 1 to {NAME_CHARS_MAX} of A-Z a-z 0-9 - _ . @, and none of {taken}"
            ));
        }
        self.change(|entries| {
            if entries.iter().any(|entry| entry.name == name) {
                return Err(format!("{name} has a token already; `toolcell token revoke {name}` takes it away"));
            }
            let token = new_token()?;
            entries.push(TokenEntry { name: name.to_owned(), hash: hash(&token), scopes: scopes.to_vec() });
            Ok(token)
        })
    }

    /// Writes the file whole, or not at all. `Err` is one sentence.
    pub fn write(&self, entries: &[TokenEntry]) -> Result<(), String> {
        let wrong = |error: std::io::Error| format!("{} cannot be written: {error}", self.0.display());
        let mut text = String::new();
        for entry in entries {
            text.push_str(&serde_json::to_string(entry).map_err(|error| error.to_string())?);
            text.push('\n');
        }
        let draft = self.0.with_extension(format!("draft-{}", std::process::id()));
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(wrong)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| std::fs::rename(&draft, &self.0)).map_err(|error| {
            let _ = std::fs::remove_file(&draft);
            wrong(error)
        })
    }
}

/// A new random token. `Err` is one sentence.
fn new_token() -> Result<String, String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{TOKEN_PREFIX}{digits}"))
}

/// Hash of a token, which the file stores.
fn hash(token: &str) -> String {
    Digest::of(token.as_bytes()).to_string()
}

/// The tokens of the file with their callers. Where replicas share state, a token that one of them
/// saw go is of no use to the others either, whatever their files say.
pub struct Tokens(Arc<KnownTokens>);

struct KnownTokens {
    file: TokenFile,
    lines: Mutex<Lines>,
    callers: RwLock<CallersByHash>,
    boards: OnceLock<Arc<Boards>>,
}

/// Lines of the file.
struct Lines {
    /// As they count now: none where the file cannot be read.
    now: Vec<TokenEntry>,
    /// Hashes that were in the file when it could be read last.
    read: HashSet<String>,
}

/// By hash of a token: its caller, and what is cancelled once the token is revoked.
type CallersByHash = HashMap<String, (Caller, Cancellation)>;

impl Tokens {
    /// Reads the file, now and whenever it changes. `Err` is one sentence.
    pub fn open(file: TokenFile, polling: &mut FilePolling) -> Result<Self, String> {
        let now = file.read()?;
        let callers = RwLock::new(known(&now, &mut CallersByHash::new()));
        let lines = Mutex::new(Lines { read: hashes(&now), now });
        let known = Arc::new(KnownTokens { file, lines, callers, boards: OnceLock::new() });
        let changed = Arc::clone(&known);
        polling.files(vec![known.file.path().to_owned()], move || changed.read_again());
        Ok(Self(known))
    }

    /// From now on replicas tell each other of tokens that are revoked.
    pub fn share(&self, boards: &Arc<Boards>) {
        if self.0.boards.set(Arc::clone(boards)).is_ok() {
            let known = Arc::downgrade(&self.0);
            boards.on_read(Revoked, move || {
                if let Some(known) = known.upgrade() {
                    known.renew();
                    known.count_again();
                }
            });
            // It may have been read before.
            self.0.count_again();
        }
    }

    /// The caller with this token.
    ///
    /// # Errors
    /// [`AuthFailure::NotNow`] while it is not known which tokens other replicas have revoked.
    pub async fn find(&self, token: &str) -> Result<Option<Admitted>, AuthFailure> {
        let Some(admitted) = self.0.caller_with(token) else { return Ok(None) };
        match self.0.boards.get() {
            Some(boards) if !boards.has_read(Revoked) => match boards.was_read(Revoked, READ_WITHIN).await {
                true => Ok(self.0.caller_with(token)),
                false => Err(AuthFailure::NotNow),
            },
            _ => Ok(Some(admitted)),
        }
    }
}

impl KnownTokens {
    fn caller_with(&self, token: &str) -> Option<Admitted> {
        let callers = self.callers.read().unwrap_or_else(PoisonError::into_inner);
        let (caller, revoked) = callers.get(&hash(token))?;
        let validity = CredentialValidity { until: None, revoked: Some(revoked.clone()) };
        Some(Admitted { caller: caller.clone(), validity })
    }

    /// Reads the file, and tells other replicas of lines that went, or came back.
    fn read_again(&self) {
        let read = self.file.read();
        let mut lines = self.lines();
        match read {
            Ok(now) => {
                let before = std::mem::replace(&mut lines.read, hashes(&now));
                lines.now = now;
                if let Some(boards) = self.boards.get() {
                    let (gone, come) = (before.difference(&lines.read), lines.read.difference(&before));
                    gone.for_each(|hash| boards.post_later(Revoked, &[hash], REVOKED_FOR));
                    come.for_each(|hash| boards.take_down_later(Revoked, &[hash]));
                }
            }
            // Somebody may have removed the file so that nobody gets in. Others have their own.
            Err(problem) => {
                tracing::error!("no token is known any more: {problem}");
                lines.now = Vec::new();
            }
        }
        drop(lines);
        self.count_again();
    }

    /// Makes the callers those of all lines that nobody revoked.
    fn count_again(&self) {
        let lines = self.lines();
        let is_revoked =
            |entry: &&TokenEntry| self.boards.get().is_some_and(|boards| boards.has(Revoked, &[&entry.hash]));
        let entries: Vec<&TokenEntry> = lines.now.iter().filter(|entry| !is_revoked(entry)).collect();
        let mut callers = self.callers.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *callers);
        *callers = known(entries, &mut before);
        drop(callers);
        before.into_values().for_each(|(_, revoked)| revoked.cancel());
    }

    /// Has tokens stay revoked for as long as a line of them stays in this file.
    fn renew(&self) {
        let Some(boards) = self.boards.get() else { return };
        let lines = self.lines();
        let ending = lines.now.iter().filter(|entry| boards.ends_within(Revoked, &[&entry.hash], REVOKED_FOR / 2));
        ending.for_each(|entry| boards.post_later(Revoked, &[&entry.hash], REVOKED_FOR));
    }

    /// A panic elsewhere leaves whole lines behind.
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hashes(entries: &[TokenEntry]) -> HashSet<String> {
    entries.iter().map(|entry| entry.hash.clone()).collect()
}

/// The callers of these lines. Unchanged ones are moved over from `before`; the rest stays there.
fn known<'e>(entries: impl IntoIterator<Item = &'e TokenEntry>, before: &mut CallersByHash) -> CallersByHash {
    let entry = |entry: &TokenEntry| {
        let caller = Caller::new(&entry.name, entry.scopes.iter().map(String::as_str));
        let unchanged = match before.remove(&entry.hash) {
            Some(known) if known.0 == caller => Some(known),
            Some((_, revoked)) => {
                revoked.cancel();
                None
            }
            None => None,
        };
        (entry.hash.clone(), unchanged.unwrap_or_else(|| (caller, Cancellation::new())))
    };
    entries.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;

    use super::*;
    use crate::boards::tests::{comes_true, replicas};

    fn file(folder: &Path, names: &[&str]) -> TokenFile {
        let file = TokenFile::at(folder.join("tokens.jsonl"));
        let entry = |name: &&str| TokenEntry { name: (*name).to_owned(), hash: hash(name), scopes: Vec::new() };
        file.write(&names.iter().map(entry).collect::<Vec<_>>()).unwrap();
        file
    }

    #[test]
    fn changes_of_the_file_at_once_are_all_kept_and_what_was_revoked_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), &["ann"]);
        std::thread::scope(|scope| {
            let (read, is_read) = std::sync::mpsc::channel();
            let (first, second) = (file.clone(), file.clone());
            let revoking = scope.spawn(move || {
                first.change(|entries| {
                    entries.retain(|entry| entry.name != "ann");
                    // The other begins before this one writes.
                    read.send(()).map_err(|error| error.to_string())
                })
            });
            is_read.recv().unwrap();
            second.add("bob", &[]).unwrap();
            revoking.join().unwrap().unwrap();
        });
        let names: Vec<String> = file.read().unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["bob"]);
        let adding: Vec<_> = (0..8).map(|number| (number, file.clone())).collect();
        std::thread::scope(|scope| {
            for (number, file) in adding {
                scope.spawn(move || file.add(&format!("c{number}"), &[]).unwrap());
            }
        });
        assert_eq!(file.read().unwrap().len(), 9);
        assert!(file.change(|_| Err::<(), _>("no".to_owned())).is_err() && file.read().unwrap().len() == 9);
    }

    #[tokio::test]
    async fn a_line_that_goes_or_comes_counts_for_all_and_one_that_cannot_be_read_for_itself_alone() {
        let boards = replicas([1, 1]);
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let mut polling = FilePolling::new(&Handle::current());
        let [one, other] = [0, 1].map(|place: usize| {
            let tokens = Tokens::open(file(folders[place].path(), &["ann", "bob"]), &mut polling).unwrap();
            tokens.share(&boards[place]);
            tokens
        });
        let revoked = other.find("ann").await.unwrap().unwrap().validity.revoked.unwrap();
        assert!(one.find("bob").await.unwrap().is_some() && one.find("eve").await.unwrap().is_none());
        let knows = |tokens: &Tokens, name: &str| tokens.0.callers.read().unwrap().contains_key(&hash(name));
        file(folders[0].path(), &["bob"]);
        comes_true("it goes", || !knows(&one, "ann") && !knows(&other, "ann")).await;
        assert!(revoked.is_cancelled(), "what it began ends");
        assert!(knows(&one, "bob") && knows(&other, "bob"));
        // A file that cannot be read says nothing of anybody's token.
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
}
