//! What the command line says of the operator's log.
use clap::{Args as ClapArgs, ValueEnum};
use toolcell_server::LogLevel;

use super::AskArgs;

/// The log of a process that serves.
#[derive(Debug, ClapArgs)]
pub struct LogArgs {
    /// What to write to stderr; `toolcell log-level` changes it while it serves [default: as the
    /// manifest says, else info]
    #[arg(long, value_name = "LEVEL", env = "TOOLCELL_LOG")]
    pub log: Option<LogFilter>,
    /// In which form: lines for people, or a JSON object a line
    #[arg(long, value_name = "FORMAT", default_value = "text", env = "TOOLCELL_LOG_FORMAT")]
    pub log_format: LogFormat,
}

/// `toolcell log-level`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell log-level           say what they write to stderr
  toolcell log-level debug     have them write everything, until they end")]
pub struct LogLevelArgs {
    /// What they write from now on [default: as it is]
    pub level: Option<LogFilter>,
    #[command(flatten)]
    pub ask: AskArgs,
}

/// How much is written to stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFilter {
    /// Nothing
    Off,
    /// What went wrong in the host, and errors that tools log
    Error,
    /// Also traps and warnings
    Warn,
    /// Also what tools print
    Info,
    /// Everything
    Debug,
}

/// The form of the log's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// A JSON object a line
    Json,
}

impl From<LogFilter> for LogLevel {
    fn from(filter: LogFilter) -> Self {
        match filter {
            LogFilter::Off => Self::Off,
            LogFilter::Error => Self::Error,
            LogFilter::Warn => Self::Warn,
            LogFilter::Info => Self::Info,
            LogFilter::Debug => Self::Debug,
        }
    }
}
