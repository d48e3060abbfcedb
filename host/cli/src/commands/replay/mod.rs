//! `toolcell replay`: recorded calls, run again against what they got, with the component that was
//! recorded or with a new version of it.
//!
//! | file | holds |
//! |---|---|
//! | `stage.rs` | the component of a recording, opened without rights |
//! | `verdict.rs` | a replayed call, beside the recorded one |
//! | `shown.rs` | the table, and JSON |
mod shown;
mod stage;
mod verdict;

use std::path::{Path, PathBuf};

use toolcell_policy::{Manifest, RecordingsPolicy};
use toolcell_server::catalog::folder_of;
use toolcell_server::file::write_whole;
use toolcell_server::recordings::Recording;

use crate::args::{CodeCacheArgs, ReplayArgs};
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

/// Folders within a folder of recordings that are looked into: one for each component.
const DEPTH_MAX: usize = 2;

/// The end of the name of a recording in a folder.
const ENDING: &str = "jsonl";

/// A recording and its file.
struct RecordingFile {
    path: PathBuf,
    recording: Recording,
}

/// Replays and prints. A call that does not end as it was recorded is at fault.
pub fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    reported(replay(args), args.json)
}

fn replay(args: &ReplayArgs) -> anyhow::Result<Exit> {
    let mut files = read_all(&args.recordings)?;
    let components = match &args.component {
        Some(path) => Components::File(path),
        None => Components::Manifest(&args.manifest.manifest),
    };
    let mut stages = Stages::new(components, &args.code);
    let progress = Progress::new("replaying calls", files.len());
    let mut calls = Vec::with_capacity(files.len());
    for (number, file) in files.iter().enumerate() {
        calls.push(replay_one(file, &mut stages, args.runs)?);
        progress.at(number + 1);
    }
    drop(progress);
    shown::print(args, &calls)?;
    if let Some(folder) = &args.save {
        save(folder, &files)?;
    }
    if args.update {
        update(&mut files, calls.iter())?;
    }
    let is_done = |call: &ReplayedCall| call.verdict == Verdict::AsBefore || (args.update && call.is_updatable());
    Ok(if calls.iter().all(is_done) { Exit::Done } else { Exit::AtFault })
}

/// Replays one call as often as asked, until one ends otherwise than recorded.
fn replay_one(file: &RecordingFile, stages: &mut Stages<'_>, runs: u32) -> anyhow::Result<ReplayedCall> {
    let recording = &file.recording;
    let stage = match stages.of(recording)? {
        Ok(stage) => stage,
        Err(problem) => return Ok(ReplayedCall::not_run(&file.path, recording, problem)),
    };
    let mut call = ReplayedCall::not_run(&file.path, recording, "it was not run".to_owned());
    for _ in 0..runs {
        call = match stage.replay(recording) {
            Ok(replayed) => ReplayedCall::of(&file.path, recording, replayed, stage.is_recorded(recording)),
            Err(problem) => ReplayedCall::not_run(&file.path, recording, problem),
        };
        if call.verdict != Verdict::AsBefore {
            break;
        }
    }
    Ok(call)
}

/// The recordings in these files and folders, in the order of their paths.
fn read_all(paths: &[PathBuf]) -> Result<Vec<RecordingFile>, Failure> {
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
    found.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Result<RecordingFile, Failure> {
    match Recording::read(&path) {
        Ok(recording) => Ok(RecordingFile { path, recording }),
        Err(error) => {
            let hint = "`toolcell call TOOL ARGUMENTS --record FILE` makes a recording";
            Err(Failure::at_fault(format!("{}: {error}", path.display()), hint))
        }
    }
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
    /// How the last recorded calls end with it, in lines for people, and as JSON. `None` if no call
    /// was recorded, or none can be read.
    pub fn against_recordings(&self) -> anyhow::Result<Option<HeldAgainst>> {
        let mut found = Vec::new();
        if !self.recordings.is_dir() || list(self.recordings, 1, &mut found).is_err() {
            return Ok(None);
        }
        // Their names begin with their times.
        found.sort();
        let last = found.split_off(found.len().saturating_sub(HELD_AGAINST_MAX));
        let files: Vec<RecordingFile> = last.into_iter().filter_map(|path| read(path).ok()).collect();
        if files.is_empty() {
            return Ok(None);
        }
        let mut stages = Stages::new(Components::New(self.bytes), self.code);
        let progress = Progress::new("replaying recorded calls", files.len());
        let mut calls = Vec::with_capacity(files.len());
        for (number, file) in files.iter().enumerate() {
            calls.push(replay_one(file, &mut stages, 1)?);
            progress.at(number + 1);
        }
        Ok(Some(shown::held_against(&calls)))
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

/// Copies recordings into a folder of cases, for everybody to read.
fn save(folder: &Path, files: &[RecordingFile]) -> anyhow::Result<()> {
    use anyhow::Context as _;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for RecordingFile { path, recording } in files {
        let name = format!("{}-{}.{ENDING}", recording.head.listed, recording.digest_of_arguments());
        let to = folder.join(name);
        write_whole(&to, &recording.to_bytes()?).with_context(|| format!("cannot write {}", to.display()))?;
        terminal::eprint(&format!("saved {} as {}\n", path.display(), to.display()));
    }
    Ok(())
}

/// Takes the new answers of calls that differ in their answer alone.
fn update<'c>(files: &mut [RecordingFile], calls: impl Iterator<Item = &'c ReplayedCall>) -> anyhow::Result<()> {
    use anyhow::Context as _;
    for (file, call) in files.iter_mut().zip(calls) {
        let Some(outcome) = call.outcome.clone().filter(|_| call.is_updatable()) else { continue };
        file.recording.outcome = outcome;
        file.recording.used = call.after;
        let bytes = file.recording.to_bytes()?;
        write_whole(&file.path, &bytes).with_context(|| format!("cannot write {}", file.path.display()))?;
        terminal::eprint(&format!("updated {}\n", file.path.display()));
    }
    Ok(())
}
