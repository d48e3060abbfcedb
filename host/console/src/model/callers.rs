//! The view of who may call what.

use super::Moment;

/// The view "Callers".
#[derive(Debug, Clone, Default)]
pub struct Callers {
    /// The text that is searched for in names; empty for all.
    pub query: String,
    /// Rules of `[callers]`, in the order of the manifest; empty where every caller sees
    /// everything.
    pub rules: Vec<CallerRule>,
    /// Tokens; none where the server has no file of tokens.
    pub tokens: Option<Vec<TokenRow>>,
    /// Logins that callers have of their own; none where the manifest has no such login.
    pub logins: Option<Vec<LoginRow>>,
    /// What callers used on each of the last seven days, newest first, and of a day those with most
    /// calls.
    pub days: Vec<CallerDay>,
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

/// A caller's login.
#[derive(Debug, Clone, Default)]
pub struct LoginRow {
    /// The name in the page: ASCII letters and digits.
    pub id: String,
    /// The login's name in the manifest.
    pub login: String,
    /// Whose it is.
    pub caller: String,
    /// Its state in words.
    pub state: String,
}

/// What a caller used on a day.
#[derive(Debug, Clone, Default)]
pub struct CallerDay {
    /// The caller's name.
    pub caller: String,
    /// A time of the day, which is that of UTC.
    pub day: Moment,
    /// Calls that ended, those that tools made included.
    pub calls: u64,
    /// Those of them that gave no result.
    pub failed: u64,
    /// Units of fuel.
    pub fuel: u64,
    /// Bytes of arguments and results.
    pub bytes: u64,
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
