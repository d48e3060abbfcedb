//! The file of tokens: a line for each, with its hash, its caller, and the time when it ends. A
//! token itself is never written down.
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use toolcell_policy::quantity::{parse_millis, show_bytes};
use toolcell_policy::{SCOPE_BYTES_MAX, is_caller_scope};
use toolcell_sandbox::{ComponentDigest, adopt};

use crate::files::file::{folder_of, read_bounded, write_private};

/// Longest file of tokens, in bytes: some nine thousand of them without scopes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Time to wait for the lock: every holder reads and writes the file once.
const LOCKED_WITHIN: Duration = Duration::from_secs(30);

/// Time between two attempts to lock the file. Too short to notice.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Random bytes of a token. They cannot be guessed, so a plain hash is enough.
const TOKEN_BYTES: usize = 32;

/// Prefix of every token, for scanners that look for leaked secrets.
pub const TOKEN_PREFIX: &str = "toolcell_";

/// Longest name of a caller, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Tokens of one caller at once: the present one, and the one that takes its place.
const TOKENS_OF_ONE: usize = 2;

/// Names that stand for callers without a token, and for calls from the console.
const TAKEN: [&str; 3] = ["local", "anyone", "console"];

/// Seconds of a day.
const DAY_SECONDS: u64 = 24 * 3_600;

/// Longest lifetime: ten years. Longer than that means no end.
const LIFETIME_MAX: Duration = Duration::from_secs(3_650 * DAY_SECONDS);

/// Shortest lifetime: the file stores whole seconds.
const LIFETIME_MIN: Duration = Duration::from_secs(1);

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
    /// The time when it was made, in seconds since 1970. Lines of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made: Option<u64>,
    /// The time when it ends, in seconds since 1970; never without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
}

/// A token to be made.
#[derive(Clone, Debug)]
pub struct NewToken<'a> {
    /// Its caller.
    pub name: &'a str,
    /// Scopes of its caller.
    pub scopes: &'a [String],
    /// The time after which it ends; `None`: never.
    pub lifetime: Option<Duration>,
}

/// The file of tokens.
#[derive(Clone, Debug)]
pub struct TokenFile(PathBuf);

impl TokenEntry {
    /// The entry of a new token.
    pub(super) fn new(new: &NewToken<'_>, hash: String, now: SystemTime) -> Self {
        let expires = new.lifetime.and_then(|lifetime| now.checked_add(lifetime));
        Self {
            name: new.name.to_owned(),
            hash,
            scopes: new.scopes.to_vec(),
            made: Some(seconds(now)),
            expires: expires.map(seconds),
        }
    }

    /// When it was created, if its line says so.
    pub fn made(&self) -> Option<SystemTime> {
        self.made.and_then(moment)
    }

    /// When it expires; `None`: never.
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires.and_then(moment)
    }

    /// True if it has expired.
    pub fn has_ended(&self, now: SystemTime) -> bool {
        self.expires().is_some_and(|end| end <= now)
    }
}

impl TokenFile {
    /// The file at this path.
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What to do about a file that cannot be read.
    pub fn hint(&self) -> &'static str {
        match self.0.try_exists() {
            Ok(false) => "`toolcell token new NAME` writes the file",
            _ => "it must be a regular file that the server's user can read, with one line for each token",
        }
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

    /// Changes its lines. The file is locked meanwhile, so no revoked token comes back. If `Err`,
    /// one sentence, nothing is written.
    pub fn change<T>(&self, change: impl FnOnce(&mut Vec<TokenEntry>) -> Result<T, String>) -> Result<T, String> {
        let _alone = self.lock()?;
        let mut entries = if self.0.exists() { self.read()? } else { Vec::new() };
        let done = change(&mut entries)?;
        self.write(&entries)?;
        Ok(done)
    }

    /// Keeps other processes and threads from changing it: a lock of a file next to it, as the file
    /// itself is replaced.
    fn lock(&self) -> Result<std::fs::File, String> {
        let mut path = self.0.clone().into_os_string();
        path.push(".lock");
        let shown = Path::new(&path).display();
        let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK).bits().cast_signed();
        let mut open = std::fs::OpenOptions::new();
        let lock = open.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(&path);
        let lock = lock.map_err(|error| format!("{shown} cannot be opened: {error}"))?;
        let adopted = std::fs::File::open(folder_of(&self.0)).and_then(|folder| adopt(&lock, folder));
        adopted.map_err(|error| format!("{shown}: {error}"))?;
        let end = Instant::now() + LOCKED_WITHIN;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(lock),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => std::thread::sleep(POLL_EVERY),
                Err(Errno::WOULDBLOCK) => return Err(format!("{shown} is kept by another process; try again later")),
                Err(error) => return Err(format!("{shown} cannot be locked: {error}")),
            }
        }
    }

    /// Makes a token. It is returned and stored nowhere. A caller has at most two, so that a new
    /// one can be distributed while the old one is still valid. Expired ones do not count. `Err` is
    /// one sentence.
    pub fn add(&self, new: &NewToken<'_>) -> Result<String, String> {
        let name = new.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) || TAKEN.contains(&name) {
            let taken = TAKEN.join(", ");
            return Err(format!(
                "{name:?} cannot be a caller's name: 1 to {NAME_CHARS_MAX} of A-Z a-z 0-9 - _ . @, and not {taken}"
            ));
        }
        if let Some(scope) = new.scopes.iter().find(|scope| !is_caller_scope(scope)) {
            return Err(format!(
                "{scope:?} is not a scope: write 1 to {SCOPE_BYTES_MAX} visible characters without spaces, and give \
                 several scopes one by one"
            ));
        }
        self.change(|entries| {
            let now = SystemTime::now();
            entries.retain(|entry| entry.name != name || !entry.has_ended(now));
            if entries.iter().filter(|entry| entry.name == name).count() >= TOKENS_OF_ONE {
                return Err(format!(
                    "{name} has {TOKENS_OF_ONE} tokens already; `toolcell token revoke {name} --older` takes the older one \
                     away"
                ));
            }
            let token = new_token()?;
            entries.push(TokenEntry::new(new, hash(&token), now));
            Ok(token)
        })
    }

    /// Revokes the tokens of a caller: all, or all but the newest. Returns their number. `Err` is
    /// one sentence.
    pub fn revoke(&self, name: &str, older: bool) -> Result<usize, String> {
        self.change(|entries| {
            let before = entries.len();
            // Lines are in the order in which tokens were made.
            let newest = entries.iter().rposition(|entry| entry.name == name).filter(|_| older);
            let mut place = 0;
            entries.retain(|entry| {
                place += 1;
                entry.name != name || newest == Some(place - 1)
            });
            Ok(before - entries.len())
        })
    }

    /// Writes the file whole, or not at all. One that could not be read again is not written. `Err`
    /// is one sentence.
    pub fn write(&self, entries: &[TokenEntry]) -> Result<(), String> {
        let wrong = |error: std::io::Error| format!("{} cannot be written: {error}", self.0.display());
        let mut text = String::new();
        for entry in entries {
            text.push_str(&serde_json::to_string(entry).map_err(|error| error.to_string())?);
            text.push('\n');
        }
        if text.len() as u64 > FILE_BYTES_MAX {
            let shown = self.0.display();
            let most = show_bytes(FILE_BYTES_MAX);
            return Err(format!("{shown} would be larger than {most}: first revoke tokens that nobody uses any more"));
        }
        write_private(&self.0, text.as_bytes()).map_err(wrong)
    }
}

/// The life of a token as people write it: `30d`, `12h`, `1h30m`. `Err` is one sentence.
pub fn lifetime(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let days = text.strip_suffix('d').map(|days| days.parse::<u64>().ok()?.checked_mul(DAY_SECONDS));
    let read = match days {
        Some(seconds) => seconds.map(Duration::from_secs),
        None => parse_millis(text).ok().map(Duration::from_millis),
    };
    read.filter(|life| (LIFETIME_MIN..=LIFETIME_MAX).contains(life))
        .ok_or_else(|| format!("{text:?} is not a token lifetime: write 30d, 12h or 90m, from 1s to 3650d"))
}

/// A new random token. `Err` is one sentence.
fn new_token() -> Result<String, String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{TOKEN_PREFIX}{digits}"))
}

/// Hash of a token, which the file stores.
pub(super) fn hash(token: &str) -> String {
    ComponentDigest::of(token.as_bytes()).to_string()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The time this many seconds since 1970; `None` if a clock cannot represent it.
fn moment(seconds: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_read_as_people_write_it() {
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3_600));
        for (text, expected) in [
            ("30d", hours(720)),
            (" 1d ", hours(24)),
            ("3650d", hours(87_600)),
            ("12h", hours(12)),
            ("1h30m", Some(Duration::from_secs(5_400))),
            ("1s", Some(Duration::from_secs(1))),
            ("3651d", None),
            ("0d", None),
            ("999ms", None),
            ("-1d", None),
            ("1d12h", None),
            ("30", None),
            ("d", None),
            ("99999999999999999999d", None),
            ("18446744073709551615d", None),
            ("never", None),
            ("", None),
        ] {
            assert_eq!(lifetime(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn lines_of_earlier_versions_are_read_and_an_ended_token_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::at(folder.path().join("tokens.jsonl"));
        std::fs::write(file.path(), "{\"name\":\"ann\",\"hash\":\"sha256:00\"}\n").unwrap();
        let ann = &file.read().unwrap()[0];
        assert_eq!((ann.made(), ann.expires(), ann.has_ended(SystemTime::now())), (None, None, false));
        let new = |name, lifetime| file.add(&NewToken { name, scopes: &[], lifetime });
        new("ann", None).unwrap();
        assert!(new("ann", None).unwrap_err().contains("has 2 tokens already"));
        assert_eq!(file.revoke("ann", true), Ok(1));
        assert_ne!(file.read().unwrap()[0].hash, "sha256:00", "the newer one stays");
        assert_eq!(file.revoke("ann", true), Ok(0), "there is no older one");
        let before = SystemTime::now() - Duration::from_secs(1);
        let bob = new("bob", Some(Duration::from_secs(60))).unwrap();
        let kept = file.read().unwrap()[1].clone();
        assert_eq!((kept.hash.as_str(), kept.name.as_str()), (hash(&bob).as_str(), "bob"));
        let made = kept.made().unwrap();
        assert!(made >= before && made <= SystemTime::now(), "{kept:?}");
        assert_eq!(kept.expires(), Some(made + Duration::from_secs(60)));
        assert!(!kept.has_ended(made + Duration::from_secs(59)) && kept.has_ended(made + Duration::from_secs(60)));
        std::fs::write(file.path(), "{\"name\":\"bob\",\"hash\":\"sha256:00\",\"expires\":1}\n").unwrap();
        let again = new("bob", None).unwrap();
        let kept = file.read().unwrap();
        assert_eq!((kept.len(), kept[0].hash.as_str(), kept[0].expires()), (1, hash(&again).as_str(), None));
    }

    #[test]
    fn a_file_that_is_full_stays_as_it_is_until_a_token_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::at(folder.path().join("tokens.jsonl"));
        let most = usize::try_from(FILE_BYTES_MAX).unwrap();
        let entry = |number: usize| TokenEntry::new(&new(&format!("c{number:05}")), hash("x"), SystemTime::now());
        let line_bytes = serde_json::to_string(&entry(0)).unwrap().len() + 1;
        let mut entries: Vec<_> = (0..most / line_bytes).map(entry).collect();
        file.write(&entries).unwrap();
        let before = std::fs::read(file.path()).unwrap();
        assert!(before.len() <= most && before.len() + line_bytes > most);
        let refused = file.add(&new("c99999")).unwrap_err();
        assert!(refused.ends_with("would be larger than 1MiB: first revoke tokens that nobody uses any more"));
        assert_eq!(std::fs::read(file.path()).unwrap(), before);
        assert_eq!(file.read().unwrap().len(), entries.len());
        assert_eq!(file.revoke("c00000", false), Ok(1));
        file.add(&new("c99999")).unwrap();
        // A file of just this size is read as well.
        entries.truncate(most / line_bytes - 1);
        let left = most - entries.len() * line_bytes;
        let name = "n".repeat(left - (line_bytes - "c00000".len()));
        entries.push(TokenEntry { name, ..entry(0) });
        file.write(&entries).unwrap();
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), FILE_BYTES_MAX);
        assert_eq!(file.read().unwrap().len(), entries.len());
    }

    #[test]
    fn a_scope_that_no_rule_can_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::at(folder.path().join("tokens.jsonl"));
        let add = |scope: &str| file.add(&NewToken { scopes: &["read".to_owned(), scope.to_owned()], ..new("ann") });
        for scope in ["", "dev read", "dev\tread", "dev\n", "dev\u{a0}read", "\u{1b}[31m", &"s".repeat(321)] {
            assert!(add(scope).unwrap_err().starts_with(&format!("{scope:?} is not a scope: ")), "{scope:?}");
        }
        assert!(!file.path().exists());
        add("tools:read/https://example.com").unwrap();
        add(&"s".repeat(320)).unwrap();
    }

    fn new(name: &str) -> NewToken<'_> {
        NewToken { name, scopes: &[], lifetime: None }
    }

    #[test]
    fn changes_of_the_file_at_once_are_all_kept_and_what_was_revoked_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::at(folder.path().join("tokens.jsonl"));
        file.add(&new("ann")).unwrap();
        std::thread::scope(|scope| {
            let (read, is_read) = std::sync::mpsc::channel();
            let first = file.clone();
            let second = file.clone();
            let revoking = scope.spawn(move || {
                first.change(|entries| {
                    entries.retain(|entry| entry.name != "ann");
                    // The other begins before this one writes.
                    read.send(()).map_err(|error| error.to_string())
                })
            });
            is_read.recv().unwrap();
            second.add(&new("bob")).unwrap();
            revoking.join().unwrap().unwrap();
        });
        let names: Vec<String> = file.read().unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["bob"]);
        let adding: Vec<_> = (0..8).map(|number| (number, file.clone())).collect();
        std::thread::scope(|scope| {
            for (number, file) in adding {
                scope.spawn(move || file.add(&new(&format!("c{number}"))).unwrap());
            }
        });
        assert_eq!(file.read().unwrap().len(), 9);
        assert!(file.change(|_| Err::<(), _>("no".to_owned())).is_err() && file.read().unwrap().len() == 9);
    }
}
