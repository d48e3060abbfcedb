//! The command line of the benchmark, and how many rounds it stands for.

use std::time::Duration;

use anyhow::bail;

use crate::native::Native;

/// What `--help` prints.
pub const HELP: &str = "\
Measures toolcell over stdio and HTTP, beside a bare pipe, a spawned process and a server of the official SDK.

Usage: make bench
       cargo run --release -p toolcell-tests --bin toolcell-bench -- [OPTIONS]

  --quick          few rounds: shows that everything runs, judges nothing
  --filter NAME    only: serial, placed, pipelined, saturation, start, loops, memory,
                   reload, granted, decision, fetch, http, languages, peers
  --json           one JSON object on stdout instead of tables
  --help           this

Environment:
  PEER_WASSETTE    a wassette binary, to be measured in the same run (build its tool with tests/bench/peers/build.sh)
  PEER_HYPER_MCP   a hyper-mcp binary, likewise
  TOOLCELL_BIN     the binary to measure (default: target/release/toolcell)
  NO_COLOR         no colours, on a terminal too
";

/// What the command line asks for.
pub enum Asked {
    /// Be the other end of a baseline.
    Native(Native),
    /// Print the help.
    Help,
    /// Measure.
    Measure(Options),
}

/// How to measure.
pub struct Options {
    /// Few rounds, no verdicts.
    pub quick: bool,
    /// JSON instead of tables.
    pub json: bool,
    filter: Option<String>,
}

impl Options {
    /// Whether the measurement of this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.filter.as_deref().is_none_or(|filter| name.contains(filter))
    }

    /// The first count, or the second where only a quick look is asked for.
    pub fn count(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// How long one measurement may take: many times what it needs, so that a host that hangs ends the run.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(if self.quick { 120 } else { 600 })
    }
}

/// Reads the command line.
///
/// # Errors
/// It has something that is not known.
pub fn from_command_line() -> anyhow::Result<Asked> {
    let mut options = Options { quick: false, json: false, filter: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => options.quick = true,
            "--json" => options.json = true,
            "--filter" => match arguments.next() {
                Some(filter) => options.filter = Some(filter),
                None => bail!("--filter needs a name"),
            },
            "--help" => return Ok(Asked::Help),
            other => match Native::from_flag(other) {
                Some(native) => return Ok(Asked::Native(native)),
                None => bail!("what is {other:?}?"),
            },
        }
    }
    if !crate::MEASUREMENTS.iter().any(|(name, _)| options.wants(name)) {
        bail!("no measurement has {:?} in its name", options.filter.unwrap_or_default());
    }
    Ok(Asked::Measure(options))
}
