//! The files of a folder of skills, read whole: which folders are skills, and what is in them.
//!
//! Names that begin with a dot do not belong to a skill. Anything else that cannot be served is an
//! error: the list of a skill's files is complete, so nothing is left out silently.
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;
use toolcell_policy::quantity::show_bytes;

use crate::files::blocking_files::Heartbeat;
use crate::files::file::plain;

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// Files and folders that one look takes in, in skills or not.
const ENTRIES_MAX: usize = 20_000;

/// Deepest folder. A tree that is deeper is made to be.
const DEPTH_MAX: usize = 16;

/// Most skills: hosts show all of them to their models.
const SKILLS_MAX: usize = 1_000;

/// Most files of one skill (ext-skills, "Limits").
const FILES_MAX: usize = 512;

/// Most bytes of one skill's files (ext-skills, "Limits").
const SKILL_BYTES_MAX: u64 = 16 << 20;

/// Most bytes of a `SKILL.md`. 256 KiB, as a prompt: more tokens than most models take.
const SKILL_FILE_BYTES_MAX: u64 = 256 << 10;

/// Everything in the skills of a folder, by paths below it.
#[derive(Debug, Default)]
pub struct SkillTree {
    /// The folders with a `SKILL.md`.
    pub skills: BTreeSet<String>,
    /// The files of skills.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The folders of skills, themselves included.
    pub folders: BTreeSet<String>,
}

/// The names in a folder, before any file is read.
#[derive(Default)]
struct FolderNames {
    files: BTreeMap<String, u64>,
    folders: BTreeSet<String>,
}

/// Reads the tree. `Err` is the end of a sentence that begins with the folder.
pub fn read(root: &Path, bytes_max: u64, heartbeat: &Heartbeat) -> Result<SkillTree, String> {
    let dir = open(root).map_err(|error| format!("cannot be read: {}", plain(&error)))?;
    let (names, problem) = names(dir, heartbeat);
    problem.map_or(Ok(()), Err)?;
    let skills: BTreeSet<String> = names
        .files
        .keys()
        .filter_map(|path| path.strip_suffix(SKILL_FILE)?.strip_suffix('/'))
        .map(str::to_owned)
        .collect();
    if names.files.contains_key(SKILL_FILE) {
        return Err(format!("has a {SKILL_FILE} itself: each skill needs a folder of its own in it"));
    }
    if skills.len() > SKILLS_MAX {
        return Err(format!("has more than {SKILLS_MAX} skills"));
    }
    check_sizes(&names, &skills)?;
    let mut tree = SkillTree { skills, ..SkillTree::default() };
    let dir = open(root).map_err(|error| format!("cannot be read: {}", plain(&error)))?;
    let mut left = bytes_max;
    for path in names.files.keys() {
        if !tree.is_in_skill(path) {
            continue;
        }
        heartbeat.beat();
        let bytes = contents(&dir, path, left)
            .map_err(|error| format!("has {path}, which cannot be read: {}", plain(&error)))?;
        let Some(rest) = left.checked_sub(bytes.len() as u64) else {
            return Err(format!("has skills of more than {} (limit \"size\")", show_bytes(bytes_max)));
        };
        left = rest;
        tree.files.insert(path.clone(), bytes);
    }
    tree.folders =
        names.folders.into_iter().filter(|path| tree.skills.contains(path) || tree.is_in_skill(path)).collect();
    Ok(tree)
}

/// The folders and files that a change of the skills shows in.
pub fn watched(root: &Path) -> BTreeSet<PathBuf> {
    let mut paths = BTreeSet::from([root.to_owned()]);
    let Ok(dir) = open(root) else { return paths };
    let (found, _) = names(dir, &Heartbeat::default());
    paths.extend(found.folders.iter().map(|path| root.join(path)));
    paths.extend(found.files.keys().map(|path| root.join(path)));
    paths
}

impl SkillTree {
    /// True if a path lies in a skill.
    fn is_in_skill(&self, path: &str) -> bool {
        self.holders(path).next().is_some()
    }

    /// The skills that a path lies in, the innermost first.
    pub fn holders<'t>(&'t self, path: &'t str) -> impl Iterator<Item = &'t str> {
        let above = path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at));
        above.filter_map(|folder| self.skills.get(folder).map(String::as_str))
    }
}

fn open(root: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(root, ambient_authority())
}

/// Lists the files and folders, with the first problem. Links are followed as far as they stay
/// beneath the folder that they lie in.
fn names(root: Dir, heartbeat: &Heartbeat) -> (FolderNames, Option<String>) {
    let mut names = FolderNames::default();
    let mut problem = None;
    let mut entries = 0;
    let mut ahead = vec![(String::new(), root)];
    while let Some((path, dir)) = ahead.pop() {
        heartbeat.beat();
        let listed = match dir.entries() {
            Ok(listed) => listed,
            Err(error) => {
                problem = problem.or(Some(format!("has {path}, which cannot be read: {}", plain(&error))));
                continue;
            }
        };
        for entry in listed {
            entries += 1;
            if entries > ENTRIES_MAX {
                return (names, problem.or(Some(format!("has more than {ENTRIES_MAX} files and folders"))));
            }
            let found = entry.map_err(|error| format!("cannot be read: {}", plain(&error)));
            match found.and_then(|entry| examined(&dir, &path, entry.file_name())) {
                Ok(None) => {}
                Ok(Some((below, NodeKind::File(bytes)))) => drop(names.files.insert(below, bytes)),
                Ok(Some((below, NodeKind::Folder(inner)))) => {
                    names.folders.insert(below.clone());
                    ahead.push((below, inner));
                }
                Err(found) => problem = problem.or(Some(found)),
            }
        }
    }
    (names, problem)
}

enum NodeKind {
    File(u64),
    Folder(Dir),
}

/// The path and the kind of an entry; nothing for a hidden one. `Err` ends a sentence that begins
/// with the folder.
fn examined(dir: &Dir, path: &str, name: OsString) -> Result<Option<(String, NodeKind)>, String> {
    let name = name.into_string().map_err(|name| format!("has a file whose name is not UTF-8: {}", name.display()))?;
    if name.starts_with('.') {
        return Ok(None);
    }
    if name.chars().any(char::is_control) {
        return Err(format!("has a file whose name holds control characters: {name:?}"));
    }
    let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
    match kind(dir, &name) {
        Ok(NodeKind::Folder(_)) if below.split('/').count() > DEPTH_MAX => {
            Err(format!("has {below}, which is deeper than {DEPTH_MAX} folders"))
        }
        Ok(kind) => Ok(Some((below, kind))),
        Err(problem) => Err(format!("has {below}, which {problem}")),
    }
}

/// The kind of an entry. `Err` ends a sentence that begins with it.
fn kind(dir: &Dir, name: &str) -> Result<NodeKind, String> {
    let own = dir.symlink_metadata(name).map_err(|error| format!("cannot be read: {}", plain(&error)))?;
    if own.is_dir() {
        let inner = dir.open_dir(name).map_err(|error| format!("cannot be read: {}", plain(&error)))?;
        return Ok(NodeKind::Folder(inner));
    }
    match dir.metadata(name) {
        Ok(behind) if behind.is_file() => Ok(NodeKind::File(behind.len())),
        Ok(behind) if own.is_symlink() && behind.is_dir() => Err("is a link to a folder".to_owned()),
        Ok(_) => Err("is not a regular file".to_owned()),
        Err(_) if own.is_symlink() => Err("is a link that leads out of the folder, or nowhere".to_owned()),
        Err(error) => Err(format!("cannot be read: {}", plain(&error))),
    }
}

/// Counts the files and bytes of each skill, those of skills in it included.
fn check_sizes(names: &FolderNames, skills: &BTreeSet<String>) -> Result<(), String> {
    let tree = SkillTree { skills: skills.clone(), ..SkillTree::default() };
    let mut counts: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for (path, bytes) in &names.files {
        for skill in tree.holders(path) {
            let (files, sum) = counts.entry(skill).or_default();
            *files += 1;
            *sum = sum.saturating_add(*bytes);
            if *files > FILES_MAX {
                return Err(format!("has the skill {skill}, which has more than {FILES_MAX} files"));
            }
            if *sum > SKILL_BYTES_MAX {
                let most = show_bytes(SKILL_BYTES_MAX);
                return Err(format!("has the skill {skill}, whose files have more than {most}"));
            }
        }
    }
    let large = names
        .files
        .iter()
        .find(|(path, bytes)| path.ends_with(&format!("/{SKILL_FILE}")) && **bytes > SKILL_FILE_BYTES_MAX);
    match large {
        Some((path, _)) => Err(format!("has {path}, which has more than {}", show_bytes(SKILL_FILE_BYTES_MAX))),
        None => Ok(()),
    }
}

/// The bytes of a regular file, at most one more than `most`.
fn contents(dir: &Dir, path: &str, most: u64) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    // It may be a pipe by now. Opening that must not wait.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    options.read(true).custom_flags(i32::try_from(flags).unwrap_or_default());
    let file = dir.open_with(path, &options)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    let of_kind = if path.ends_with(SKILL_FILE) { SKILL_FILE_BYTES_MAX } else { SKILL_BYTES_MAX };
    file.take(most.min(of_kind).saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > of_kind {
        return Err(io::Error::other("it grows"));
    }
    Ok(bytes)
}
