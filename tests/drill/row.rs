//! One attack, how it ends, and what has to hold after each.
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::{Answer, patience};

use crate::site::{CANARY, Site};

/// One attack.
pub struct Row {
    pub name: &'static str,
    /// The tool that attacks: that of a component with rights, that of one without, or that of one
    /// with keys of its own.
    pub tool: &'static str,
    /// The keys and tables of that one.
    pub own: Option<&'static str>,
    /// Its steps.
    pub steps: fn(&Site) -> Value,
    pub end: End,
}

/// The end of an attack.
pub enum End {
    /// The kernel killed the process at a system call.
    Killed,
    /// The sandbox was ended, for a reason with these words.
    Ended(&'static str),
    /// The sandbox was ended, for a reason with these words. No other starts while this folder
    /// holds what was written.
    Fills(&'static str, &'static str),
    /// The last step failed with one of these errors.
    Fails(&'static [i32]),
    /// Every step but the first few failed with one of these errors.
    AllFailFrom(usize, &'static [i32]),
    /// The last step worked, and gained nothing.
    Works,
    /// The call was answered so that this holds.
    Answers(fn(&Site, &Answer) -> bool),
}

/// An attack by the component that is granted something.
pub const fn row(name: &'static str, steps: fn(&Site) -> Value, end: End) -> Row {
    Row { name, tool: "attack", own: None, steps, end }
}

/// An attack by the component that is granted nothing and shares its processes.
pub const fn sealed(name: &'static str, steps: fn(&Site) -> Value, end: End) -> Row {
    Row { name, tool: "sealed_attack", own: None, steps, end }
}

/// An attack by a component with these keys and tables in the manifest, `components.own` by name.
pub const fn of_own(name: &'static str, own: &'static str, steps: fn(&Site) -> Value, end: End) -> Row {
    Row { name, tool: "own_attack", own: Some(own), steps, end }
}

/// The head of a frame: its mark, descriptors, bytes and place.
pub fn head(mark: &[u8; 3], fds: u8, bytes: u32, place: u64) -> Vec<u8> {
    [&mark[..], &[fds], &bytes.to_le_bytes(), &place.to_le_bytes()].concat()
}

/// A step: a system call.
pub fn call(name: &str, arguments: Value) -> Value {
    json!({"call": {"name": format!("SYS_{name}"), "arguments": arguments}})
}

/// A system call up to this many times, until it fails.
pub fn often(name: &str, arguments: Value, times: u64) -> Value {
    json!({"call": {"name": format!("SYS_{name}"), "arguments": arguments, "times": times}})
}

/// The only step of an attack.
pub fn only(name: &str, arguments: Value) -> Value {
    json!([call(name, arguments)])
}

/// Opens a path from the working folder, with these flags.
pub fn open(path: &str, flags: u32) -> Value {
    let mode = if flags & CREATE == 0 { 0 } else { 0o666 };
    call("openat2", json!([HERE, path, {"words": [flags, mode, 0]}, 24]))
}

/// Opens a path to read it, and reads it.
pub fn read(path: &str) -> Value {
    json!([open(path, 0), call("read", json!([{"answer": 0}, {"room": 4096}, 4096]))])
}

/// The working folder, `AT_FDCWD`.
pub const HERE: i32 = -100;
/// `O_CREAT`.
pub const CREATE: u32 = 0o100;

/// Error numbers of Linux.
pub mod errors {
    pub const PERM: i32 = 1;
    pub const NOENT: i32 = 2;
    pub const SRCH: i32 = 3;
    pub const BADF: i32 = 9;
    pub const AGAIN: i32 = 11;
    pub const NOMEM: i32 = 12;
    pub const ACCES: i32 = 13;
    pub const FAULT: i32 = 14;
    pub const XDEV: i32 = 18;
    pub const NODEV: i32 = 19;
    pub const NOTDIR: i32 = 20;
    pub const INVAL: i32 = 22;
    pub const MFILE: i32 = 24;
    pub const SPIPE: i32 = 29;
    pub const ROFS: i32 = 30;
    pub const PIPE: i32 = 32;
    pub const NOSYS: i32 = 38;
    pub const LOOP: i32 = 40;
    pub const CONNRESET: i32 = 104;
}

/// A path that is refused: by the empty root, or by Landlock where there is no such root.
pub const NO_PATH: End = End::AllFailFrom(0, &[errors::NOENT, errors::ACCES, errors::BADF]);

/// Tries each attack on a host of its own. All that goes wrong is reported at once.
pub fn holds(rows: &[Row]) {
    hold_without("", rows, &[]);
}

/// Tries each attack where the machine does not give these walls. Those that `reach` what is no
/// secret may end otherwise; the host and all others hold as after any attack.
pub fn hold_without(walls: &str, rows: &[Row], reach: &[&str]) {
    assert!(reach.iter().all(|name| rows.iter().any(|row| row.name == *name)), "{reach:?}");
    let wrong = |row: &Row| Some(format!("{}: {}", row.name, row.wrong(walls, reach.contains(&row.name))?));
    let wrong: Vec<String> = rows.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{} of {} attacks:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

impl Row {
    /// The fault of how the attack ended, if there is one.
    fn wrong(&self, walls: &str, reaches: bool) -> Option<String> {
        let mut site = Site::with(walls, self.own);
        let steps = (self.steps)(&site);
        let answer = site.attack(self.tool, &steps);
        if answer.everything().contains(CANARY) {
            return Some(format!("it sees a secret: {}", answer.everything()));
        }
        if !reaches && !self.end.is(&site, &answer) {
            return Some(answer.everything());
        }
        if answer.is_error() && answer.error_text().starts_with(ENDED) {
            let ended = site.host.recorded("the end", |record| record["outcome"] == "sandbox_ended");
            if ended["event"] != "call.finished" || ended["tool"] != self.tool {
                return Some(format!("it is recorded as {ended}"));
            }
        }
        site.holds();
        if let End::Fills(_, folder) = self.end {
            let refused = site.attack(self.tool, &only("getpid", json!([])));
            if refused.error_text() != "the host could not run the tool; its log says why" {
                return Some(format!("beside a folder that is full: {}", refused.everything()));
            }
            site.host.will_say("remove what is too much");
            let written = std::fs::read_dir(site.path(folder)).unwrap().map(|entry| entry.unwrap().path());
            written.for_each(|file| std::fs::remove_file(file).unwrap());
        }
        // The next call runs, in this process or in another. A process that was honest for as long
        // as its call ran may be ended after that, with the next call in it.
        let until = Instant::now() + patience();
        let next = loop {
            let next = site.attack(self.tool, &only("getpid", json!([])));
            let ended = next.is_error() && next.error_text().starts_with(ENDED);
            if !ended || Instant::now() > until {
                break next;
            }
        };
        (!matches!(last(&next), Some(Ok(1..)))).then(|| format!("the next call: {}", next.everything()))
    }
}

/// The words that begin the answer to a call whose sandbox was ended.
const ENDED: &str = "the sandbox was ended: ";

impl End {
    fn is(&self, site: &Site, answer: &Answer) -> bool {
        let ended = || answer.is_error().then(|| answer.error_text().strip_prefix(ENDED)).flatten();
        match self {
            Self::Killed => ended().is_some_and(|reason| reason.contains("SIGSYS")),
            Self::Ended(words) | Self::Fills(words, _) => ended().is_some_and(|reason| reason.contains(words)),
            Self::Fails(errors) => last(answer).is_some_and(|last| last.is_err_and(|error| errors.contains(&error))),
            Self::AllFailFrom(first, errors) => results(answer).is_some_and(|results| {
                let tried = results.get(*first..).unwrap_or_default();
                !tried.is_empty() && tried.iter().all(|result| result.is_err_and(|error| errors.contains(&error)))
            }),
            Self::Works => last(answer).is_some_and(|last| last.is_ok()),
            Self::Answers(holds) => holds(site, answer),
        }
    }
}

/// The answers to the steps, or their error numbers.
pub fn results(answer: &Answer) -> Option<Vec<Result<i64, i32>>> {
    let result = |answer: &Value| match answer["error"].as_i64() {
        Some(error) => Err(i32::try_from(error).unwrap_or(i32::MAX)),
        None => Ok(answer["answer"].as_i64().unwrap_or_default()),
    };
    (!answer.is_error()).then(|| answers(answer).iter().map(result).collect())
}

/// The answers to the steps, as they were reported.
pub fn answers(answer: &Answer) -> &[Value] {
    answer.structured()["answers"].as_array().map_or(&[], Vec::as_slice)
}

/// The data that the last step read.
pub fn data(answer: &Answer) -> String {
    if answer.is_error() {
        return String::new();
    }
    answers(answer).last().map(|last| last["data"][0].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
}

fn last(answer: &Answer) -> Option<Result<i64, i32>> {
    results(answer)?.last().copied()
}
