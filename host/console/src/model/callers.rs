//! The view of who may call what.

use super::Moment;

/// The view "Callers".
#[derive(Debug, Clone, Default)]
pub struct Callers {
    /// Rules of `[callers]`, in the order of the manifest; empty where every caller sees
    /// everything.
    pub rules: Vec<CallerRule>,
    /// Tokens; none where the server has no file of tokens.
    pub tokens: Option<Vec<TokenRow>>,
    /// The token that was just made.
    pub fresh: Option<FreshToken>,
    /// Callers that were refused within the last hour, newest first.
    pub refused: Vec<RefusedCaller>,
    /// Refusals that are in no row, because there were too many.
    pub refused_beyond: u64,
}

/// A rule: who may call what.
#[derive(Debug, Clone, Default)]
pub struct CallerRule {
    /// Its name in the manifest.
    pub name: String,
    /// Whom it holds for: `scope read`, `the token ann`.
    pub who: Vec<String>,
    /// Patterns of tools.
    pub tools: Vec<String>,
    /// Tools that these patterns match now.
    pub matching: u64,
    /// Patterns of prompts.
    pub prompts: Vec<String>,
    /// Patterns of skills.
    pub skills: Vec<String>,
    /// Rate and concurrency in words: `600/min, 4 at once`. May be empty.
    pub bounds: String,
    /// Where it stands; none where the manifest's file does not have it as it serves.
    pub place: Option<super::Place>,
}

/// A token.
#[derive(Debug, Clone, Default)]
pub struct TokenRow {
    /// The name in forms: ASCII letters and digits, `-`, `_` and `.`.
    pub id: String,
    /// The caller's name.
    pub name: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// The time when it was made.
    pub made: Option<Moment>,
    /// The time when it ends.
    pub expires: Option<Moment>,
    /// The time of its last use, as far as this process knows.
    pub last_used: Option<Moment>,
    /// True if it is revoked.
    pub revoked: bool,
    /// True if its time is over.
    pub ended: bool,
}

/// A token that was just made: shown once.
#[derive(Debug, Clone, Default)]
pub struct FreshToken {
    /// The caller's name.
    pub name: String,
    /// The token.
    pub secret: String,
}

/// Refused requests of the same kind.
#[derive(Debug, Clone, Default)]
pub struct RefusedCaller {
    /// Who: a caller's name, or the range of addresses of strangers.
    pub who: String,
    /// The reason: `unknown_credential: a token that is not known`.
    pub reason: String,
    /// The HTTP status, where it was one: 401.
    pub status: Option<u16>,
    /// Number of times within the hour.
    pub count: u64,
    /// The last time.
    pub last: Moment,
}
