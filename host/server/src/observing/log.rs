//! The operator's log: its level, its losses, and announcements.
use serde::{Deserialize, Serialize};
use toolcell_policy::LogWord;

/// Level of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Failures of the host, and errors that tools log.
    Error,
    /// Also traps and warnings.
    Warn,
    /// Also lines that tools print.
    Info,
    /// Everything.
    Debug,
}

/// The log of the program around the server. The server writes its lines through `tracing`.
pub trait OperatorLog: Send + Sync + 'static {
    /// The current level.
    fn level(&self) -> LogLevel;

    /// Changes the level. False if the log cannot do that.
    fn set_level(&self, level: LogLevel) -> bool;

    /// Takes the manifest's level, unless somebody has set another one.
    fn follow(&self, level: LogLevel);

    /// Lines dropped so far because nobody read them in time.
    fn lines_dropped(&self) -> u64;

    /// Shows people a text outside the log, such as the address of the server.
    fn announce(&self, text: &str);
}

impl From<LogWord> for LogLevel {
    fn from(word: LogWord) -> Self {
        match word {
            LogWord::Off => Self::Off,
            LogWord::Error => Self::Error,
            LogWord::Warn => Self::Warn,
            LogWord::Info => Self::Info,
            LogWord::Debug => Self::Debug,
        }
    }
}

impl std::fmt::Display for LogLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        })
    }
}

/// No log at all, for programs without one.
pub(crate) struct NoLog;

impl OperatorLog for NoLog {
    fn level(&self) -> LogLevel {
        LogLevel::Off
    }

    fn set_level(&self, _level: LogLevel) -> bool {
        false
    }

    fn follow(&self, _level: LogLevel) {}

    fn lines_dropped(&self) -> u64 {
        0
    }

    fn announce(&self, _text: &str) {}
}
