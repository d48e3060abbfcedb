//! Reads where files of a program's run lie: its input files, and its answer.
//!
//! All of them lie in scratch space, where they are the call's own. In any other folder they could
//! be left from an earlier call, or come from another one that runs at the same time.

use super::{Entry, Problems, paths};
use crate::grants::{Grants, Mount, MountKind};

/// The most files of a run: each is opened and written before the program begins, and few programs
/// read more than two.
pub(super) const FILES_MAX: usize = 32;

/// The entries of `files`: a path and a template each.
pub(crate) fn inputs<'a>(entry: &Entry<'a>, problems: &mut Problems) -> Vec<Entry<'a>> {
    entry.entries(FILES_MAX, "program::files", "files", problems)
}

/// The path of an input file. It must be directly in scratch space, since no folder is created for
/// it.
pub(crate) fn input_path(entry: &Entry<'_>, granted: &Grants, problems: &mut Problems) -> Option<String> {
    let wrong = |message: String| entry.key_error("program::files", message);
    let path = match paths::guest_path(entry.key) {
        Ok(path) if path != "/" => path,
        Ok(_) => {
            return problems
                .refuse(wrong("the file \"/\" is a folder".to_owned()).hint("write \"/in/NAME\" = \"{text}\""));
        }
        Err(why) => {
            return problems
                .refuse(wrong(format!("the file {:?} {why}", entry.key)).hint("write \"/in/NAME\" = \"{text}\""));
        }
    };
    let is_mounted = granted.files().iter().any(|mount| mount.guest() == path);
    let mount = mount_of(&path, granted).filter(|mount| is_scratch(mount) && mount.guest() == folder_of(&path));
    if mount.is_none() || is_mounted {
        let message = format!("the file {path:?} does not lie directly in scratch space of the call");
        return problems.refuse(wrong(message).hint(grant_some(&path)));
    }
    Some(path)
}

/// The path of the file that is the answer.
pub(crate) fn answer_path(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    match paths::guest_path(entry.string(problems)?) {
        Ok(path) => Some(path),
        Err(wrong) => problems.refuse(entry.error("program::output", format!("file {wrong}"))),
    }
}

/// Reports an answer's file outside of scratch space. `entry` is the one that names it.
pub(crate) fn check_answer(file: &str, entry: &Entry<'_>, granted: &Grants, problems: &mut Problems) {
    if mount_of(file, granted).filter(|mount| is_scratch(mount)).is_none() {
        let message = format!("the file {file:?} does not lie in scratch space of the call");
        let problem = entry.error("program::output", message);
        problems.add(problem.hint(grant_some(file)));
    }
}

/// The mount of a path: the longest one wins.
fn mount_of<'g>(path: &str, granted: &'g Grants) -> Option<&'g Mount> {
    let holds = |mount: &&Mount| {
        let below = path.strip_prefix(mount.guest());
        mount.guest() == "/" || below.is_some_and(|below| below.starts_with('/'))
    };
    granted.files().iter().filter(holds).max_by_key(|mount| mount.guest().len())
}

fn is_scratch(mount: &Mount) -> bool {
    matches!(mount.kind(), MountKind::Scratch { .. })
}

/// The folder part of a path.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("/", |(folder, _)| if folder.is_empty() { "/" } else { folder })
}

fn grant_some(path: &str) -> String {
    format!("grant the component some: filesystem = {{ {:?} = {{ scratch = \"8MiB\" }} }}", folder_of(path))
}
