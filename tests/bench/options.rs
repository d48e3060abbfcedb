//! The command line of the benchmark, and the number of rounds that it sets.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;

use crate::native::Native;

/// The text of `--help`.
pub const HELP: &str = "\
Measures toolcell over stdio and HTTP, beside a bare pipe, a spawned process and a server of the official SDK.

Usage: make bench
       cargo run --release -p toolcell-tests --bin toolcell-bench -- [OPTIONS]

  --quick          few rounds: shows that everything runs, judges nothing
  --filter NAME    only those with NAME in their names; given again, those as well: serial, placed, pipelined,
                   saturation, start, loops, walls, memory, reload, registry, granted, decision, console, fetch, http,
                   replicas, languages, edit, peers
  --json           one JSON object on stdout instead of tables
  --markdown FILE  the tables into this file as well, between the lines <!-- bench: begin --> and <!-- bench: end -->
  --help           this

Environment:
  PEER_WASSETTE    a wassette binary, to be measured in the same run (build its tool with tests/bench/peers/build.sh)
  PEER_HYPER_MCP   a hyper-mcp binary, likewise
  TOOLCELL_BIN     the binary to measure (default: target/release/toolcell)
  NO_COLOR         no colours, on a terminal too
";

/// The command that the command line gives.
pub enum Asked {
    /// Run as the other end of a baseline.
    Native(Native),
    /// Print the help.
    Help,
    /// Measure.
    Measure(Options),
}

/// Settings of a run.
pub struct Options {
    /// Few rounds, no verdicts.
    pub quick: bool,
    /// JSON instead of tables.
    pub json: bool,
    /// The Markdown file that holds the tables.
    pub markdown: Option<PathBuf>,
    /// Parts of the names to measure. An empty list stands for all.
    filters: Vec<String>,
}

impl Options {
    /// True if the measurement of this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }

    /// A filter that matches no measurement's name.
    fn idle_filter(&self) -> Option<&str> {
        let has = |filter: &&String| crate::MEASUREMENTS.iter().any(|(name, _)| name.contains(filter.as_str()));
        self.filters.iter().find(|filter| !has(filter)).map(String::as_str)
    }

    /// The first count, or the second in a quick run.
    pub fn count(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Time that one measurement has: many times what it needs. A host that hangs ends the run.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(if self.quick { 120 } else { 600 })
    }
}

/// Reads the command line.
///
/// # Errors
/// It has an unknown argument.
pub fn from_command_line() -> anyhow::Result<Asked> {
    read(std::env::args().skip(1))
}

fn read(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Asked> {
    let mut options = Options { quick: false, json: false, markdown: None, filters: Vec::new() };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => options.quick = true,
            "--json" => options.json = true,
            "--filter" => match arguments.next() {
                Some(filter) => options.filters.push(filter),
                None => bail!("--filter needs a name"),
            },
            "--markdown" => match arguments.next() {
                Some(file) => options.markdown = Some(file.into()),
                None => bail!("--markdown needs a file"),
            },
            "--help" => return Ok(Asked::Help),
            other => match Native::from_flag(other) {
                Some(native) => return Ok(Asked::Native(native)),
                None => bail!("what is {other:?}?"),
            },
        }
    }
    if let Some(filter) = options.idle_filter() {
        bail!("no measurement has {filter:?} in its name");
    }
    if options.quick && options.markdown.is_some() {
        bail!("--quick measures too little for a page: leave out --quick or --markdown");
    }
    Ok(Asked::Measure(options))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    fn wanted(line: &str) -> Result<Vec<&'static str>, String> {
        match read(line.split_whitespace().map(str::to_owned)) {
            Ok(Asked::Measure(options)) => {
                let names = crate::MEASUREMENTS.iter().map(|(name, _)| *name);
                Ok(names.filter(|name| options.wants(name)).collect())
            }
            Ok(_) => panic!("{line:?} asks for no measurement"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_filter_that_is_given_counts() {
        assert_eq!(wanted("").unwrap().len(), crate::MEASUREMENTS.len());
        assert_eq!(wanted("--filter serial").unwrap(), ["serial"]);
        assert_eq!(wanted("--filter reload --quick --filter serial").unwrap(), ["serial", "reload"]);
        assert_eq!(wanted("--filter http --filter http").unwrap(), ["http"]);
        assert_eq!(
            wanted("--filter serial --filter nothing").unwrap_err(),
            "no measurement has \"nothing\" in its name"
        );
        assert_eq!(wanted("--filter").unwrap_err(), "--filter needs a name");
    }

    #[test]
    fn a_quick_look_is_not_written_into_a_page() {
        assert_eq!(wanted("--markdown page.md").unwrap().len(), crate::MEASUREMENTS.len());
        assert_eq!(wanted("--markdown").unwrap_err(), "--markdown needs a file");
        assert!(wanted("--quick --markdown page.md").unwrap_err().starts_with("--quick measures too little"));
    }
}
