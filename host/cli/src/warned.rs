//! Shown warnings: a command that is often repeated shows them once a day.
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use toolcell_server::machine::user_folder;

/// Time until the same warnings are shown again.
const QUIET: Duration = Duration::from_hours(24);

/// Most stamps looked at when old ones are removed: far more manifests than a person has.
const STAMPS_MAX: usize = 1_000;

/// True if these warnings about the manifest are due. They then count as shown. Without a folder
/// for that, they are always due.
pub fn is_due(manifest: &Path, warnings: &str) -> bool {
    let folder = user_folder("XDG_STATE_HOME", ".local/state").map(|state| state.join("warned"));
    let manifest = std::fs::canonicalize(manifest);
    let (Some(folder), Ok(manifest)) = (folder, manifest) else { return true };
    is_due_in(&folder, &manifest, warnings)
}

fn is_due_in(folder: &Path, manifest: &Path, warnings: &str) -> bool {
    let stamp = folder.join(format!("{:016x}", hash(manifest)));
    let text = format!("{:016x}", hash(warnings));
    if is_recent(&stamp) && std::fs::read_to_string(&stamp).is_ok_and(|noted| noted == text) {
        return false;
    }
    // If the stamp cannot be written, the warnings are shown again.
    if std::fs::create_dir_all(folder).is_ok() {
        old_stamps(folder).into_iter().for_each(|old| drop(std::fs::remove_file(old)));
        drop(std::fs::write(stamp, text));
    }
    true
}

fn old_stamps(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(STAMPS_MAX);
    entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| !is_recent(path)).collect()
}

fn is_recent(stamp: &Path) -> bool {
    let written = std::fs::metadata(stamp).and_then(|about| about.modified());
    written.is_ok_and(|written| SystemTime::now().duration_since(written).is_ok_and(|age| age < QUIET))
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn warnings_are_due_once_a_day_and_whenever_they_are_others() {
        let folder = tempfile::tempdir().unwrap();
        let stamps = folder.path().join("warned");
        let one = Path::new("/a/toolcell.toml");
        let other = Path::new("/b/toolcell.toml");
        assert!(is_due_in(&stamps, one, "warning"));
        assert!(!is_due_in(&stamps, one, "warning"));
        assert!(is_due_in(&stamps, other, "warning"));
        assert!(is_due_in(&stamps, one, "another"));
        assert!(!is_due_in(&stamps, one, "another"));
        let yesterday = SystemTime::now() - QUIET;
        for stamp in std::fs::read_dir(&stamps).unwrap() {
            File::options().write(true).open(stamp.unwrap().path()).unwrap().set_modified(yesterday).unwrap();
        }
        assert!(is_due_in(&stamps, one, "another"));
        assert_eq!(std::fs::read_dir(&stamps).unwrap().count(), 1, "old stamps are removed");
    }

    #[test]
    fn without_a_place_for_the_stamp_warnings_are_always_due() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for _ in 0..2 {
            assert!(is_due_in(&file.join("warned"), Path::new("/a/toolcell.toml"), "warning"));
        }
    }
}
