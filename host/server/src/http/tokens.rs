//! Bearer tokens: a file of their hashes with the callers' names. A token is never written down
//! here, and never given to a guest.
use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use toolcell_mcp::http::{Admitted, CredentialValidity};
use toolcell_mcp::{Caller, Cancellation};
use toolcell_sandbox::Digest;

use super::watch::FilePolling;
use crate::file::read_bounded;

/// Longest file of tokens, in bytes: some five thousand of them.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Random bytes of a token. So many cannot be guessed, so a plain hash protects them.
const TOKEN_BYTES: usize = 32;

/// Prefix of every token, for scanners that look for leaked secrets.
pub const TOKEN_PREFIX: &str = "toolcell_";

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
pub fn new_token() -> Result<String, String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{TOKEN_PREFIX}{digits}"))
}

/// Hash of a token, which the file stores.
pub fn hash(token: &str) -> String {
    Digest::of(token.as_bytes()).to_string()
}

/// The tokens of the file with their callers.
pub struct Tokens(Arc<RwLock<CallersByHash>>);

/// By hash of a token: its caller, and what is cancelled once the token is revoked.
type CallersByHash = HashMap<String, (Caller, Cancellation)>;

impl Tokens {
    /// Reads the file, now and whenever it changes. `Err` is one sentence.
    pub fn open(file: TokenFile, polling: &mut FilePolling) -> Result<Self, String> {
        let known = Arc::new(RwLock::new(known(&file.read()?, &mut CallersByHash::new())));
        let current = Arc::clone(&known);
        polling.files(vec![file.path().to_owned()], move || {
            // Somebody may have removed the file so that nobody gets in.
            let entries = file.read().unwrap_or_else(|problem| {
                tracing::error!("no token is known any more: {problem}");
                Vec::new()
            });
            let mut current = current.write().unwrap_or_else(PoisonError::into_inner);
            let mut before = std::mem::take(&mut *current);
            *current = self::known(&entries, &mut before);
            drop(current);
            before.into_values().for_each(|(_, revoked)| revoked.cancel());
        });
        Ok(Self(known))
    }

    /// The caller with this token.
    pub fn find(&self, token: &str) -> Option<Admitted> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (caller, revoked) = known.get(&hash(token))?;
        let validity = CredentialValidity { until: None, revoked: Some(revoked.clone()) };
        Some(Admitted { caller: caller.clone(), validity })
    }
}

/// The callers of these lines. Unchanged ones are moved over from `before`; the rest stays there.
fn known(entries: &[TokenEntry], before: &mut CallersByHash) -> CallersByHash {
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
    entries.iter().map(entry).collect()
}
