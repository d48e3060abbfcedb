//! Finds and reads `.wit` files: one file, or the files of a folder and of its `deps`.
use std::io;
use std::path::{Path, PathBuf};

use toolcell_sandbox::WitFile;

use crate::files::blocking_files;
use crate::files::file::{plain, read_bounded};

/// Most files read from one folder. WASI 0.2 has 40 in nine packages.
const FILES_MAX: usize = 256;

/// Most bytes of one file. The longest of WASI 0.2 has 34 KB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Folder of the packages that a package uses.
const DEPS: &str = "deps";

/// The files of one package, or of a folder with several.
struct FoundFiles {
    /// Paths of all files and folders examined.
    places: Vec<PathBuf>,
    packages: Vec<Vec<PathBuf>>,
}

/// Paths of all files and folders that [`files`] depends on, even missing ones.
pub fn places(path: &Path) -> Vec<PathBuf> {
    found(path).map_or_else(|_| vec![path.to_owned()], |found| found.places)
}

/// The texts of `.wit` files, those of each package together. They may be anything. `shown` is the
/// name of the path in problems.
///
/// # Errors
/// A text with the file.
pub fn files(path: &Path, shown: &str) -> Result<Vec<Vec<WitFile>>, String> {
    let found = found(path).map_err(|error| format!("{shown} cannot be read: {}", plain(&error)))?;
    let count: usize = found.packages.iter().map(Vec::len).sum();
    if count == 0 {
        return Err(format!("{shown} has no .wit files"));
    }
    if count > FILES_MAX {
        return Err(format!("{shown} has {count} .wit files; at most {FILES_MAX} are allowed"));
    }
    let mut packages = Vec::with_capacity(found.packages.len());
    for files in &found.packages {
        let files: Result<Vec<WitFile>, String> = files.iter().map(|file| read_file(file, path, shown)).collect();
        packages.push(files?);
    }
    Ok(packages)
}

fn read_file(file: &Path, root: &Path, shown: &str) -> Result<WitFile, String> {
    let within = file.strip_prefix(root).ok().filter(|within| !within.as_os_str().is_empty());
    let name = within.map_or_else(|| shown.to_owned(), |within| Path::new(shown).join(within).display().to_string());
    let bytes = read_bounded(file, FILE_BYTES_MAX).map_err(|problem| format!("{name} {problem}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8 text"))?;
    Ok(WitFile { name, text })
}

/// [`find`], within a time limit.
fn found(path: &Path) -> io::Result<FoundFiles> {
    let own = path.to_owned();
    blocking_files::run(path, move |_| find(&own)).flatten()
}

fn find(path: &Path) -> io::Result<FoundFiles> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(FoundFiles { places: vec![path.to_owned()], packages: vec![vec![path.to_owned()]] });
    }
    let (own, _) = listed(path)?;
    let deps = path.join(DEPS);
    let mut found = FoundFiles { places: vec![path.to_owned(), deps.clone()], packages: vec![own] };
    if deps.is_dir() {
        let (files, folders) = listed(&deps)?;
        // A file there is a package of its own.
        found.packages.extend(files.into_iter().map(|file| vec![file]));
        for folder in folders {
            found.packages.push(listed(&folder)?.0);
            found.places.push(folder);
        }
    }
    found.packages.retain(|files| !files.is_empty());
    found.places.extend(found.packages.iter().flatten().cloned());
    Ok(found)
}

/// The `.wit` files of a folder, and its folders, in order.
fn listed(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let mut files = Vec::new();
    let mut folders = Vec::new();
    // Twice the limit is enough to know that there are too many.
    for entry in std::fs::read_dir(folder)?.take(2 * FILES_MAX) {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        } else if path.extension().is_some_and(|extension| extension == "wit") {
            files.push(path);
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}
