//! Removing a folder with all its content.
use std::ffi::OsString;
use std::io;

use cap_std::fs::Dir;

/// Names that are read at once while a folder is removed.
const REMOVED_AT_ONCE: usize = 1024;

/// Removes the folder with this name and all its content. Inner folders are first moved out of it,
/// so that their depth, which guests choose, costs neither stack nor open files.
///
/// # Errors
/// An error of the system. The rest of it is left.
pub fn remove(home: &Dir, name: &str) -> io::Result<()> {
    let mut moved = 0_u64;
    let mut left = vec![name.to_owned()];
    while let Some(current) = left.pop() {
        let dir = home.open_dir(&current)?;
        loop {
            let entries: Vec<(OsString, bool)> = dir
                .entries()?
                .take(REMOVED_AT_ONCE)
                .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?.is_dir()))))
                .collect::<io::Result<_>>()?;
            if entries.is_empty() {
                break;
            }
            for (entry, is_folder) in entries {
                if is_folder {
                    let aside = format!("{name}.{moved}");
                    moved += 1;
                    dir.rename(&entry, home, &aside)?;
                    left.push(aside);
                } else {
                    dir.remove_file(&entry)?;
                }
            }
        }
        home.remove_dir(&current)?;
    }
    Ok(())
}
