//! Other hosts, driven by one client with one kind of tool. Each peer whose binary the environment
//! names runs in the same rounds as toolcell and the bare pipe. Their tools are in `peers/`, and
//! they are started as their own documentation says.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use tempfile::TempDir;

use crate::frame::{self, Ask, Era, Reply, Tool};
use crate::lane::{self, Lane, Lanes, Seen, Shared};
use crate::link::{Link, Wire};
use crate::options::Options;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::serving::Serving;
use crate::stream::{Stream, converse};
use crate::subject::Subject;

/// The columns of serial calls, and one more.
const COLUMNS: &[Column] = &{
    let [p50, p99, above, q1, q3, ratio, cpu] = *lane::COLUMNS;
    let rate = Column { key: "pipelined_calls_per_s", heading: "pipelined/s", decimals: 0 };
    [p50, p99, above, q1, q3, ratio, cpu, rate]
};

/// Outstanding calls when they are pipelined. Few enough for a host that takes them one after
/// another.
const WINDOW: usize = 16;

/// The id of requests for the list. It is above those of calls.
const LIST_ID: u64 = 1 << 51;

/// Times that the list of tools is requested at most: once at first, and after each notification of
/// a change. A peer that loads its tools while it serves sends one for each.
const LISTS_MAX: u64 = 16;

const BARE: &str = "bare pipe";

const NOTE: &str = "\
Each has one tool, in Rust, that gives back its text; peers/ has those of the peers. Serial as in the first table; pipelined:
16 calls outstanding, the median of all rounds. toolcell has an instance for each call; what a peer has is its own affair.";

/// Another host of tools.
struct Peer {
    /// Its name in the table.
    name: &'static str,
    /// The environment variable that names its binary.
    variable: &'static str,
    /// Its tool, in `peers/components`.
    tool: &'static str,
    /// Prepares a folder for it, and returns the subject that serves from there.
    prepare: fn(&Given<'_>) -> anyhow::Result<Subject>,
}

/// Everything a peer is prepared from.
struct Given<'a> {
    name: &'static str,
    program: PathBuf,
    tool: PathBuf,
    folder: &'a Path,
}

const PEERS: [Peer; 3] = [
    Peer { name: "ACT", variable: "PEER_ACT", tool: "act.wasm", prepare: act },
    Peer { name: "wassette", variable: "PEER_WASSETTE", tool: "wassette.wasm", prepare: wassette },
    Peer { name: "hyper-mcp", variable: "PEER_HYPER_MCP", tool: "hyper_mcp.wasm", prepare: hyper_mcp },
];

/// True if the environment names a peer.
pub fn is_any_given() -> bool {
    PEERS.iter().any(|peer| std::env::var_os(peer.variable).is_some())
}

/// Measures the peers that the environment names.
///
/// # Errors
/// A peer does not start or answers wrongly, or its tool was not built.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let rounds = options.count(20, 2);
    let calls = options.count(250, 20);
    let serving = Serving::examples()?;
    let fresh = Serving::fresh()?;
    let echo = Ask::Call(Tool::Echo, Era::Legacy);
    let server = |serving: &Serving| lane::server(&serving.subject(), Wire::Pipes, &[Tool::Echo]);
    let mut asked = vec![
        (BARE, lane::bare(Wire::Pipes)?, Ask::Line),
        ("toolcell", server(&serving)?, echo),
        ("toolcell, prewarm = 0", server(&fresh)?, echo),
    ];
    let folder = tempfile::tempdir()?;
    for peer in &PEERS {
        if let Some(program) = std::env::var_os(peer.variable) {
            asked.push(peer.start(program, &folder).with_context(|| peer.name)?);
        }
    }
    let lane = |(name, link, ask): &(&'static str, Shared, Ask)| Lane {
        name,
        link: link.clone(),
        ask: *ask,
        baseline: BARE,
        seen: Seen::default(),
    };
    let mut lanes = Lanes::new(asked.iter().map(lane).collect());
    let mut rates = vec![Samples::default(); asked.len()];
    for round in 0..rounds {
        lanes.round(round, calls)?;
        for ((name, link, ask), rates) in asked.iter().zip(&mut rates) {
            rates.push(pipelined(link, *ask, calls).with_context(|| *name)?);
        }
    }
    let rows = lanes.rows().into_iter().zip(&rates).map(|(row, rates)| with_rate(row, rates)).collect();
    Ok(Section { title: "Peers", note: NOTE.to_owned(), columns: COLUMNS, rows, measured: Vec::new() })
}

fn with_rate(mut row: Row, rates: &Samples) -> Row {
    row.values.push(rates.median());
    row
}

fn pipelined(link: &Shared, ask: Ask, calls: usize) -> anyhow::Result<f64> {
    let begun = Instant::now();
    converse(&mut link.borrow_mut(), Stream { ask, calls, window: WINDOW })?;
    Ok(calls as f64 / begun.elapsed().as_secs_f64())
}

impl Peer {
    /// Starts it, and reads its own name and that of its tool.
    fn start(&self, program: OsString, folder: &TempDir) -> anyhow::Result<(&'static str, Shared, Ask)> {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/peers/components").join(self.tool);
        ensure!(tool.exists(), "{} is not there; tests/bench/peers/build.sh builds it", tool.display());
        let program =
            PathBuf::from(&program).canonicalize().with_context(|| format!("{}={program:?}", self.variable))?;
        let folder = folder.path().join(self.name);
        std::fs::create_dir(&folder)?;
        let mut link =
            Link::open(&(self.prepare)(&Given { name: self.name, program, tool, folder: &folder })?, Wire::Pipes)?;
        let ask = Ask::Named(echo_of(&mut link)?);
        let mut request = Vec::new();
        for id in 0..lane::FIRST_CALLS {
            link.ask(ask, id, &mut request)?;
        }
        let name = kept(format!("{}: {}", self.name, link.server()));
        Ok((name, Shared::new(link.into()), ask))
    }
}

/// The full name of the tool `echo`, with any prefix that its host adds. A host may serve before it
/// has its tools. The list is then requested again after the notification of a change.
fn echo_of(link: &mut Link) -> anyhow::Result<&'static str> {
    for id in (LIST_ID..).take(LISTS_MAX as usize) {
        link.send(&frame::legacy(id, "tools/list"))?;
        let mut is_stale = false;
        let reply: serde_json::Value = loop {
            let frame = Reply::read(link.receive()?)?;
            is_stale |= frame.is_list_changed();
            if frame.id == Some(id) {
                break serde_json::from_slice(link.last())?;
            }
        };
        let tools = reply.pointer("/result/tools").and_then(serde_json::Value::as_array).context("no list of tools")?;
        let mut names = tools.iter().filter_map(|tool| tool.get("name")?.as_str());
        if let Some(name) = names.find(|name| name.ends_with("echo")) {
            return Ok(kept(name.to_owned()));
        }
        // The answer may or may not include a change that was announced before it. The list is
        // requested again in either case.
        while !is_stale {
            is_stale = Reply::read(link.receive()?)?.is_list_changed();
        }
    }
    bail!("no echo in its list, though the list changed {LISTS_MAX} times")
}

/// Leaks a name, so that it lives as long as this program. There are two for each peer.
fn kept(name: String) -> &'static str {
    Box::leak(name.into_boxed_str())
}

impl Given<'_> {
    /// The peer with these arguments, with its folder as its home.
    fn subject(&self, arguments: &[OsString]) -> Subject {
        let homes =
            ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HYPER_MCP_LOG_PATH"];
        let environment = homes.map(|variable| (variable, self.folder.as_os_str().to_owned())).to_vec();
        Subject { name: self.name, program: self.program.clone(), arguments: arguments.to_vec(), environment }
    }

    /// The tool as a URL.
    fn tool_url(&self) -> String {
        format!("file://{}", self.tool.display())
    }
}

/// `act run --mcp` serves one component on stdio.
fn act(given: &Given<'_>) -> anyhow::Result<Subject> {
    Ok(given.subject(&["run".into(), "--mcp".into(), given.tool.clone().into_os_string()]))
}

/// `wassette component load` puts the tool into a folder, `wassette run` serves that folder on
/// stdio.
fn wassette(given: &Given<'_>) -> anyhow::Result<Subject> {
    let kept = ["--component-dir".into(), given.folder.join("components").into_os_string()];
    let with_folder = |command: &[&str]| [command.iter().map(OsString::from).collect(), kept.to_vec()].concat();
    given.subject(&with_folder(&["component", "load", &given.tool_url()])).run()?;
    Ok(given.subject(&with_folder(&["run", "--disable-builtin-tools"])))
}

/// `hyper-mcp` reads its list of plugins from a file and serves them on stdio.
fn hyper_mcp(given: &Given<'_>) -> anyhow::Result<Subject> {
    let config = given.folder.join("config.json");
    std::fs::write(&config, serde_json::json!({"plugins": {"bench": {"url": given.tool_url()}}}).to_string())?;
    Ok(given.subject(&["--config-file".into(), config.into_os_string()]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Given, WINDOW, act, echo_of, hyper_mcp, wassette};
    use crate::frame::Ask;
    use crate::link::{Link, Wire};
    use crate::stream::{Stream, converse};

    #[test]
    fn a_stand_in_is_started_and_asked_as_a_peer_is() {
        let program = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/peers/stand_in.py");
        let prepares: [fn(&Given<'_>) -> _; 3] = [act, wassette, hyper_mcp];
        for prepare in prepares {
            let folder = tempfile::tempdir().unwrap();
            let tool = folder.path().join("tool.wasm");
            let given = Given { name: "stand-in", program: program.clone(), tool, folder: folder.path() };
            let mut link = Link::open(&prepare(&given).unwrap(), Wire::Pipes).unwrap();
            let ask = Ask::Named(echo_of(&mut link).unwrap());
            link.ask(ask, 7, &mut Vec::new()).unwrap();
            converse(&mut link, Stream { ask, calls: 100, window: WINDOW }).unwrap();
        }
    }

    #[test]
    fn each_peer_has_a_variable_of_its_own() {
        let variables: std::collections::BTreeSet<&str> = super::PEERS.iter().map(|peer| peer.variable).collect();
        assert_eq!(variables.len(), super::PEERS.len());
    }
}
