//! Evidence of what calls used: read from audits, and from files of further calls.
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use toolcell_audit::{Archive, timestamp};
use toolcell_policy::{Evidence, GrantUse, Seen};
use toolcell_server::file::plain;
use toolcell_server::recordings::{NotARecording, RecordedUses, Recording};

use crate::commands::audit::{each_chain, report_unreadable, unreadable};
use crate::commands::replay::{recordings_in, warn_of_anonymous};
use crate::exit::{Exit, Failure};

/// Bytes of one line of a file of uses: more than a call has.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Started calls that wait for their end, as for `toolcell usage`.
const STARTED_MAX: usize = 10_000;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Evidence, and the time that it is of.
#[derive(Default)]
pub struct ReadEvidence {
    pub evidence: Evidence,
    /// Calls before this time are left out.
    pub since: Option<String>,
    /// The time of the oldest record, of calls that are left out as well.
    pub begins: Option<String>,
    /// True if some call of an audit names its uses.
    pub names_uses: bool,
    /// Calls that a process left without an end.
    pub unended: u64,
    /// How reading went.
    pub exit: Exit,
}

/// A record of an audit.
#[derive(Deserialize)]
struct AuditLine {
    event: String,
    #[serde(default)]
    time: String,
    #[serde(default)]
    id: u64,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    component: String,
    uses: Option<Vec<String>>,
    #[serde(default)]
    uses_left_out: u64,
}

/// A call of a file of uses.
#[derive(Deserialize)]
struct UsesLine {
    component: String,
    tool: String,
    #[serde(default)]
    time: String,
    uses: Vec<String>,
}

impl ReadEvidence {
    /// Nothing yet, of the last `days`; of all time for 0.
    pub fn of_days(days: u32) -> Self {
        let since = SystemTime::now().checked_sub(DAY.saturating_mul(days)).filter(|_| days > 0);
        Self { since: since.map(timestamp), ..Self::default() }
    }

    /// True if what was read begins early enough.
    pub fn is_covered(&self) -> bool {
        self.since.as_ref().is_none_or(|since| self.begins.as_ref().is_some_and(|begins| begins <= since))
    }

    /// Adds the calls of an audit.
    pub fn audit(&mut self, file: &Path) -> anyhow::Result<()> {
        let exit = each_chain(file, |chain, archive| match self.chain(&archive) {
            Ok(lines) => Ok(report_unreadable(&chain.path, lines)),
            Err(error) => unreadable(&chain.path, &error).report(false),
        })?;
        self.exit = self.exit.or(exit);
        Ok(())
    }

    /// Adds the calls of one chain. Returns the number of lines that are not records.
    fn chain(&mut self, archive: &Archive) -> std::io::Result<u64> {
        let mut started: BTreeMap<u64, String> = BTreeMap::new();
        let mut unreadable = 0;
        for file in archive.files() {
            let mut lines = file.lines();
            while let Some(line) = lines.next_line().map_err(std::io::Error::other)? {
                match serde_json::from_slice::<AuditLine>(line) {
                    Ok(record) => self.record(record, &mut started),
                    Err(_) => unreadable += 1,
                }
            }
        }
        Ok(unreadable)
    }

    fn record(&mut self, record: AuditLine, started: &mut BTreeMap<u64, String>) {
        self.begins_by(&record.time);
        match record.event.as_str() {
            // Call numbers start again.
            "host.started" => {
                self.unended += started.len() as u64;
                started.clear();
            }
            "call.started" => {
                started.insert(record.id, record.component);
                if started.len() > STARTED_MAX {
                    started.pop_first();
                }
            }
            "call.finished" => {
                let Some(component) = started.remove(&record.id).filter(|_| self.is_asked_for(&record.time)) else {
                    return;
                };
                let seen = if record.uses.is_some() { Seen::HostSide } else { Seen::Nothing };
                self.names_uses |= record.uses.is_some();
                self.evidence.call(&component, seen);
                self.evidence.left_out(&component, record.uses_left_out);
                self.uses(&component, &record.tool, &record.uses.unwrap_or_default());
            }
            _ => {}
        }
    }

    fn uses(&mut self, component: &str, tool: &str, uses: &[String]) {
        for used in uses {
            match GrantUse::parse(component, tool, used) {
                Ok(used) => self.evidence.add(used),
                Err(_) => self.evidence.left_out(component, 1),
            }
        }
    }

    /// Adds the calls of a file of uses, each of which names all that it used.
    pub fn uses_of(&mut self, path: &Path) -> Result<(), Failure> {
        let wrong = |problem: &str| {
            let problem = format!("{} {problem}", path.display());
            let hint =
                "write a line for each call: {\"time\": …, \"component\": …, \"tool\": …, \"uses\": [\"env UNITS\"]}";
            Failure::at_fault(problem, hint)
        };
        let cannot = |error: std::io::Error| wrong(&format!("cannot be read: {}", plain(&error)));
        let mut reader = BufReader::new(std::fs::File::open(path).map_err(cannot)?);
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(cannot)?;
            if read == 0 {
                break;
            }
            let call: UsesLine = serde_json::from_slice(&line)
                .map_err(|error| wrong(&format!("is not a list of calls: line {number}: {error}")))?;
            self.begins_by(&call.time);
            if self.is_asked_for(&call.time) {
                self.evidence.call(&call.component, Seen::Everything);
                self.uses(&call.component, &call.tool, &call.uses);
            }
        }
        Ok(())
    }

    /// Adds the recorded calls in a folder, if there is one. A file that is not a recording is
    /// left out.
    pub fn recordings(&mut self, folder: &Path) {
        let begins = self.begins.take();
        let mut anonymous = 0;
        for path in recordings_in(folder) {
            let recording = match Recording::read(&path) {
                Ok(recording) => recording,
                Err(NotARecording::Anonymous) => {
                    anonymous += 1;
                    continue;
                }
                Err(_) => continue,
            };
            let time = &recording.head.recorded;
            self.begins_by(time);
            if self.is_asked_for(time) {
                let component = &recording.head.component;
                let RecordedUses { texts, unknown } = recording.uses();
                self.evidence.call(component, Seen::Everything);
                self.evidence.left_out(component, unknown);
                self.uses(component, &recording.head.listed, &Vec::from_iter(texts));
            }
        }
        warn_of_anonymous(anonymous);
        // Where an audit was read, only that one says which calls there were.
        self.begins = begins.or(self.begins.take());
    }

    /// Adds all of these files.
    pub fn all_uses_of(&mut self, files: &[PathBuf]) -> Result<(), Failure> {
        let begins = self.begins.take();
        files.iter().try_for_each(|file| self.uses_of(file))?;
        // Where an audit was read, only that one says which calls there were.
        self.begins = begins.or(self.begins.take());
        Ok(())
    }

    fn begins_by(&mut self, time: &str) {
        let is_earlier = self.begins.as_ref().is_none_or(|begins| time < begins.as_str());
        if is_earlier && !time.is_empty() {
            self.begins = Some(time.to_owned());
        }
    }

    fn is_asked_for(&self, time: &str) -> bool {
        self.since.as_ref().is_none_or(|since| time >= since.as_str())
    }
}
