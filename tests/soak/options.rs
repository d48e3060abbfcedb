//! The command line of the soak.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

/// The text of `--help`.
pub const HELP: &str = "\
Drives one `toolcell serve` with good, hostile and cancelled calls in both eras, and checks every answer, and that
memory, threads and files stay what they are. Exits 0 where nothing was found.

Usage: make soak [SECONDS=600] [ARGS=--json]
       cargo run --release -p toolcell-tests --bin toolcell-soak -- [OPTIONS]

  --seconds N   how long (default: 600; 10 to 86400); memory is judged from 480 on
  --seed N      the same calls in the same order as the run that printed it
  --walls WORD  best (default): calls run in sandbox processes, one of which is killed each second; or none
  --keep-sandboxes  no sandbox process is killed
  --json        one JSON object on stdout instead of tables
  --help        this

Environment:
  TOOLCELL_BIN  the binary to drive (default: target/release/toolcell)
";

/// Default duration of a soak in seconds.
const SECONDS: u64 = 600;

/// Shortest duration in seconds. A shorter run has too few rounds to see a trend.
const SECONDS_MIN: u64 = 10;

/// Longest duration in seconds: a day.
const SECONDS_MAX: u64 = 86_400;

/// The command that the command line gives.
pub enum Asked {
    /// Print the help.
    Help,
    /// Run the soak.
    Soak(Options),
}

/// Settings of a soak.
pub struct Options {
    /// The duration.
    pub duration: Duration,
    /// The seed of the choice of calls.
    pub seed: u64,
    /// JSON instead of tables.
    pub json: bool,
    /// Calls run in sandbox processes.
    pub walls: bool,
    /// A sandbox process is killed each second.
    pub kills: bool,
}

/// Reads the command line.
///
/// # Errors
/// It has an unknown argument, or a number out of bounds.
pub fn from_command_line() -> anyhow::Result<Asked> {
    let mut options =
        Options { duration: Duration::from_secs(SECONDS), seed: seed_of_now(), json: false, walls: true, kills: true };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || -> anyhow::Result<u64> {
            let value = arguments.next().with_context(|| format!("{argument} needs a number"))?;
            value.parse().with_context(|| format!("{argument} needs a number, not {value:?}"))
        };
        match argument.as_str() {
            "--seconds" => {
                let seconds = number()?;
                ensure!((SECONDS_MIN..=SECONDS_MAX).contains(&seconds), "{SECONDS_MIN} to {SECONDS_MAX} seconds");
                options.duration = Duration::from_secs(seconds);
            }
            "--seed" => options.seed = number()?,
            "--json" => options.json = true,
            "--keep-sandboxes" => options.kills = false,
            "--walls" => match arguments.next().as_deref() {
                Some("best") => options.walls = true,
                Some("none") => (options.walls, options.kills) = (false, false),
                other => bail!("--walls needs best or none, not {other:?}"),
            },
            "--help" => return Ok(Asked::Help),
            other => bail!("what is {other:?}?"),
        }
    }
    Ok(Asked::Soak(options))
}

/// A seed that differs each time. A run prints its own.
fn seed_of_now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_secs())
}
