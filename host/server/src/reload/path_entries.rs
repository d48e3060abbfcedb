//! Directory entries that decide where a path leads. Watching them all reveals every way to replace
//! a file.
//!
//! A path leads elsewhere once an entry along it is replaced: the file itself, a link (Kubernetes
//! swaps `..data`, a link to a folder, under links that never change), or a folder that is moved
//! away. A watch on the file alone would follow the old file.
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// Most links followed along one path, as in Linux.
const LINKS_MAX: usize = 40;

/// One entry of a directory. The directory's path has no links.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathEntry {
    pub folder: PathBuf,
    /// Empty: any name in the folder.
    pub name: OsString,
}

/// Entries that decide where an absolute path leads: every link along it, every folder below `base`
/// (a path without links), and the last entry. For a folder, also everything directly in it. Stops
/// at a missing entry.
pub fn of(path: &Path, base: &Path) -> Vec<PathEntry> {
    let mut steps = Vec::new();
    let mut links = 0;
    let mut is_whole = true;
    let mut folder = PathBuf::from("/");
    let mut ahead = names(path);
    while let Some(name) = ahead.pop_front() {
        if name == OsStr::new("..") {
            folder.pop();
            continue;
        }
        let place = folder.join(&name);
        let link = std::fs::read_link(&place).ok();
        let is_there = link.is_some() || std::fs::symlink_metadata(&place).is_ok();
        if link.is_some() || ahead.is_empty() || !is_there || folder.starts_with(base) {
            steps.push(PathEntry { folder: folder.clone(), name });
        }
        match link {
            Some(target) if links < LINKS_MAX => {
                links += 1;
                if target.is_absolute() {
                    folder = PathBuf::from("/");
                }
                names(&target).into_iter().rev().for_each(|name| ahead.push_front(name));
            }
            None if is_there => folder = place,
            _ => {
                is_whole = false;
                break;
            }
        }
    }
    // A folder changes with each of its entries.
    if is_whole && folder.is_dir() {
        steps.push(PathEntry { folder, name: OsString::new() });
    }
    steps
}

fn names(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn shown(root: &Path, steps: &[PathEntry]) -> Vec<String> {
        let show = |step: &PathEntry| {
            let place = step.folder.join(&step.name);
            let end = if step.name.is_empty() { "/" } else { "" };
            format!("{}{end}", place.strip_prefix(root).unwrap().display())
        };
        steps.iter().map(show).collect()
    }

    #[test]
    fn a_plain_file_is_decided_by_its_entry_and_the_folders_below_the_base() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        assert_eq!(shown(&root, &of(&root.join("a/b/file"), &root)), ["a", "a/b", "a/b/file"]);
        assert_eq!(shown(&root, &of(&root.join("a/b/file"), &root.join("a/b"))), ["a/b/file"]);
        assert_eq!(shown(&root, &of(&root.join("a/b/../b/file"), &root.join("a/b"))), ["a/b/file"]);
    }

    #[test]
    fn a_folder_is_decided_by_what_is_in_it_as_well() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        assert_eq!(shown(&root, &of(&root.join("a/b"), &root.join("a"))), ["a/b", "a/b/"]);
        assert_eq!(shown(&root, &of(&root.join("a/c"), &root.join("a"))), ["a/c"]);
    }

    #[test]
    fn links_are_followed_as_kubernetes_lays_them() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("..2026_01")).unwrap();
        fs::write(root.join("..2026_01/tool.toml"), "").unwrap();
        symlink("..2026_01", root.join("..data")).unwrap();
        symlink("..data/tool.toml", root.join("tool.toml")).unwrap();
        let steps = of(&root.join("tool.toml"), &root);
        assert_eq!(shown(&root, &steps), ["tool.toml", "..data", "..2026_01", "..2026_01/tool.toml"]);
    }

    #[test]
    fn what_is_not_there_ends_the_way_and_loops_do_too() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        assert_eq!(shown(&root, &of(&root.join("a/b/file"), &root)), ["a"]);
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(of(&root.join("loop"), &root).len(), LINKS_MAX + 1);
    }
}
