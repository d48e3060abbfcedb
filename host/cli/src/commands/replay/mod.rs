//! `toolcell replay`: recorded calls, run again against what they got, with the component that was
//! recorded or with a new version of it.
//!
//! | file | holds |
//! |---|---|
//! | `anonymous.rs` | copies without their content |
//! | `stage.rs` | the component of a recording, opened without rights |
//! | `verdict.rs` | a replayed call, beside the recorded one |
//! | `shown.rs` | the table, and JSON |
mod anonymous;
mod shown;
mod stage;
mod verdict;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcell_policy::{Manifest, RecordingsPolicy};
use toolcell_sandbox::ComponentDigest;
use toolcell_server::HeldVersion;
use toolcell_server::catalog::folder_of;
use toolcell_server::file::write_whole;
use toolcell_server::recordings::{NotARecording, Recording};

use crate::args::{CodeCacheArgs, ReplayArgs};
use crate::commands::registries::read_manifest;
use crate::exit::{Exit, Failure, reported};
use crate::terminal::{self, Progress};
pub use shown::HeldAgainst;
pub use stage::of_manifest as component_bytes;
use stage::{Components, Stages};
use verdict::{ReplayedCall, Verdict};

/// Recordings of one command. Each is replayed in milliseconds, and holds some KiB meanwhile.
const RECORDINGS_MAX: usize = 10_000;

/// Recorded calls that a new version is held against before it is taken: the last ones. They take a
/// second.
const HELD_AGAINST_MAX: usize = 200;

/// Time after which no further one of them is run: recorded calls that failed may each take a
/// deadline.
const HELD_AGAINST_WITHIN: Duration = Duration::from_secs(20);

/// Bytes of the files of those that end otherwise: both of their answers are in memory until they
/// are shown.
const OTHERWISE_BYTES_MAX: u64 = 64 << 20;

/// Folders within a folder of recordings that are looked into: one for each component.
const DEPTH_MAX: usize = 2;

/// The end of the name of a recording in a folder.
const ENDING: &str = "jsonl";

/// Replays and prints. A call that does not end as it was recorded is at fault.
pub fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    reported(replay(args), args.json)
}

fn replay(args: &ReplayArgs) -> anyhow::Result<Exit> {
    let files = find_all(&args.recordings)?;
    let components = match &args.component {
        Some(path) => Components::File(path),
        None => Components::Manifest(&args.manifest.manifest),
    };
    let mut stages = Stages::new(components, &args.code);
    if let Some(folder) = &args.anonymous {
        anonymous::write(folder, &files, &mut stages)?;
        return Ok(Exit::Done);
    }
    let progress = Progress::new("replaying calls", files.len());
    let mut calls = Vec::with_capacity(files.len());
    // One at a time is in memory.
    for (number, path) in files.iter().enumerate() {
        calls.push(replay_one(path, &read(path)?, &mut stages, args.runs)?);
        progress.at(number + 1);
    }
    drop(progress);
    shown::print(args, &calls)?;
    if let Some(folder) = &args.save {
        save(folder, &files)?;
    }
    if args.update {
        calls.iter().try_for_each(update)?;
    }
    let is_done = |call: &ReplayedCall| call.verdict == Verdict::AsBefore || (args.update && call.is_updatable());
    Ok(if calls.iter().all(is_done) { Exit::Done } else { Exit::AtFault })
}

/// Replays one call as often as asked, until one ends otherwise than recorded.
fn replay_one(path: &Path, recording: &Recording, stages: &mut Stages<'_>, runs: u32) -> anyhow::Result<ReplayedCall> {
    let stage = match stages.of(recording)? {
        Ok(stage) => stage,
        Err(problem) => return Ok(ReplayedCall::not_run(path, recording, problem)),
    };
    let mut call = ReplayedCall::not_run(path, recording, "it was not run".to_owned());
    for _ in 0..runs {
        call = match stage.replay(recording) {
            Ok(replayed) => ReplayedCall::of(path, recording, replayed, stage.is_recorded(recording)),
            Err(problem) => ReplayedCall::not_run(path, recording, problem),
        };
        if call.verdict != Verdict::AsBefore {
            break;
        }
    }
    Ok(call)
}

/// The recordings in these files and folders, in the order of their paths.
fn find_all(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            list(path, DEPTH_MAX, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Err(Failure::at_fault(
            "there is no recording",
            format!(
                "recordings in a folder end with .{ENDING}; `toolcell call TOOL ARGUMENTS --record FILE` makes one"
            ),
        ));
    }
    if found.len() > RECORDINGS_MAX {
        let message = format!("{} recordings, at most {RECORDINGS_MAX} are replayed at once", found.len());
        return Err(Failure::usage(message, "name files, or smaller folders"));
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Recording, Failure> {
    Recording::read(path).map_err(|error| {
        let hint = "`toolcell call TOOL ARGUMENTS --record FILE` makes a recording";
        Failure::at_fault(format!("{}: {error}", path.display()), hint)
    })
}

fn list(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::at_fault(format!("cannot read {}: {error}", folder.display()), "");
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            if depth > 1 {
                list(&path, depth - 1, found)?;
            }
        } else if path.extension().is_some_and(|ending| ending == ENDING) && found.len() <= RECORDINGS_MAX {
            found.push(path);
        }
    }
    Ok(())
}

/// A new version of a component, held against recorded calls.
pub struct NewVersion<'a> {
    /// The folder of the component's recordings.
    pub recordings: &'a Path,
    /// Its bytes.
    pub bytes: &'a [u8],
    pub code: &'a CodeCacheArgs,
}

impl NewVersion<'_> {
    /// How the last recorded calls end with it, the newest first, in lines for people and as JSON.
    /// `None` if no call was recorded, or none can be read.
    pub fn against_recordings(&self) -> anyhow::Result<Option<HeldAgainst>> {
        let mut found = Vec::new();
        if !self.recordings.is_dir() || list(self.recordings, 1, &mut found).is_err() {
            return Ok(None);
        }
        // Their names begin with their times.
        found.sort();
        let files: Vec<PathBuf> = found.into_iter().rev().take(HELD_AGAINST_MAX).collect();
        let mut stages = Stages::new(Components::New(self.bytes), self.code);
        let progress = Progress::new("replaying recorded calls", files.len());
        let mut anonymous = 0;
        let (calls, left) = newest_within(HELD_AGAINST_WITHIN, files, |path, done| {
            progress.at(done);
            match Recording::read(path) {
                Ok(recording) => Ok(Some(replay_one(path, &recording, &mut stages, 1)?.without_same_answers())),
                Err(NotARecording::Anonymous) => {
                    anonymous += 1;
                    Ok(None)
                }
                // A file that cannot be read says nothing about the new version.
                Err(_) => Ok(None),
            }
        })?;
        drop(progress);
        warn_of_anonymous(anonymous);
        Ok((!calls.is_empty()).then(|| shown::held_against(&calls, left)))
    }
}

/// Replays these calls, and the first in any case, until the time is over, or the recordings of
/// calls that ended otherwise fill [`OTHERWISE_BYTES_MAX`]. Returns how many were left.
fn newest_within(
    time: Duration,
    files: Vec<PathBuf>,
    mut replay: impl FnMut(&Path, usize) -> anyhow::Result<Option<ReplayedCall>>,
) -> anyhow::Result<(Vec<ReplayedCall>, usize)> {
    let began = Instant::now();
    let mut calls = Vec::new();
    let mut left = files.len();
    let mut otherwise_bytes = 0_u64;
    for path in files {
        if !calls.is_empty() && began.elapsed() >= time || otherwise_bytes > OTHERWISE_BYTES_MAX {
            break;
        }
        left -= 1;
        let call = replay(&path, calls.len())?;
        if call.as_ref().is_some_and(|call| call.verdict != Verdict::AsBefore) {
            otherwise_bytes += path.metadata().map_or(0, |file| file.len());
        }
        calls.extend(call);
    }
    Ok((calls, left))
}

/// How recorded calls of a component end with its version that waits for approval, in lines.
pub fn held_against_recordings(version: &HeldVersion, code: &CodeCacheArgs) -> anyhow::Result<Option<String>> {
    let HeldVersion { manifest: path, component, digest } = version;
    let (_, manifest) = read_manifest(path)?;
    let bytes = component_bytes(path, component)?;
    anyhow::ensure!(ComponentDigest::of(&bytes).to_string() == *digest, "{component} has other bytes by now");
    let recordings = recordings_of(&manifest, path).join(component);
    let held = NewVersion { recordings: &recordings, bytes: &bytes, code }.against_recordings()?;
    Ok(held.map(|held| held.text))
}

/// Says how many recordings are left out, since they have no content.
pub fn warn_of_anonymous(count: usize) {
    match count {
        0 => {}
        1 => terminal::warning("1 recording was made anonymous and left out: it is for reading"),
        _ => terminal::warning(&format!("{count} recordings were made anonymous and left out: they are for reading")),
    }
}

/// The recordings in a folder, none if it cannot be read. Their number is bounded.
pub fn recordings_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if folder.is_dir() && list(folder, DEPTH_MAX, &mut found).is_err() {
        found.clear();
    }
    found
}

/// The folder of a manifest's recordings.
pub fn recordings_of(manifest: &Manifest, path: &Path) -> PathBuf {
    let folder = manifest
        .recordings()
        .map_or(RecordingsPolicy::default().folder().to_owned(), |recordings| recordings.folder().to_owned());
    folder_of(path).join(folder)
}

/// Copies recordings into a folder of cases, for everybody to read. Calls with other arguments, or
/// with another answer, are different cases.
fn save(folder: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    use anyhow::Context as _;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for path in files {
        let recording = read(path)?;
        // A recording may lie: its name must not lead out of the folder.
        let tool = recording.head.listed.replace(|letter: char| letter == '/' || letter.is_control(), "_");
        let name = format!("{tool}-{}.{ENDING}", recording.digest_of_case()?);
        let to = folder.join(name);
        let bytes = recording.to_bytes()?;
        let replaces = std::fs::read(&to).is_ok_and(|there| there != bytes);
        let replaced = if replaces { ", in place of the case there" } else { "" };
        write_whole(&to, &bytes).with_context(|| format!("cannot write {}", to.display()))?;
        terminal::eprint(&format!("saved {} as {}{replaced}\n", path.display(), to.display()));
    }
    Ok(())
}

/// Takes the new answer of a call that differs in its answer alone.
fn update(call: &ReplayedCall) -> anyhow::Result<()> {
    use anyhow::Context as _;
    let Some(outcome) = call.outcome.clone().filter(|_| call.is_updatable()) else { return Ok(()) };
    let mut recording = read(&call.file)?;
    recording.outcome = outcome;
    recording.used = call.after;
    write_whole(&call.file, &recording.to_bytes()?).with_context(|| format!("cannot write {}", call.file.display()))?;
    terminal::eprint(&format!("updated {}\n", call.file.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use toolcell_sandbox::CallFailure;
    use toolcell_server::recordings::RecordedUse;

    use super::*;

    fn as_before(path: &Path) -> ReplayedCall {
        ReplayedCall {
            file: path.to_owned(),
            component: "echo".to_owned(),
            tool: "echo".to_owned(),
            revision: String::new(),
            verdict: Verdict::AsBefore,
            recorded: Err(CallFailure::Cancelled),
            outcome: None,
            before: RecordedUse::default(),
            after: RecordedUse::default(),
        }
    }

    fn replayed_within(time: Duration, unreadable: &str) -> (usize, usize, String) {
        let files = ["4", "3", "2", "1"].map(PathBuf::from).to_vec();
        let replay = |path: &Path, _| Ok((path != Path::new(unreadable)).then(|| as_before(path)));
        let (calls, left) = newest_within(time, files, replay).unwrap();
        let text = if calls.is_empty() { String::new() } else { shown::held_against(&calls, left).text };
        (calls.len(), left, text)
    }

    #[test]
    fn a_new_version_is_held_against_the_newest_call_even_if_there_is_no_time() {
        let (run, left, text) = replayed_within(Duration::ZERO, "");
        assert_eq!((run, left), (1, 3));
        assert!(text.contains("1 of 1 recorded call answers as before"), "{text}");
        assert!(text.contains("3 older ones were not run, for want of time"), "{text}");
        // A file that cannot be read is not the first.
        assert_eq!(replayed_within(Duration::ZERO, "4").1, 2);
        let (run, left, text) = replayed_within(Duration::MAX, "");
        assert_eq!((run, left), (4, 0));
        assert!(!text.contains("older"), "{text}");
    }
}
