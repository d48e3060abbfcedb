//! Files of a project: all files of its folder that are neither hidden, nor ignored by git, nor
//! written by builds or tools.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::files::file::absolute;
use crate::files::file_stamp::{self, Stamps};
use ignore::{DirEntry, WalkBuilder};
use toolcell_policy::{Access, Manifest, MountKind, SourceRef};

/// Folders that tools of languages write, even if git does not ignore them.
const WRITTEN_BY_TOOLS: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// Most files and folders examined: a large project has thousands. Changes beyond these go unseen.
const ENTRIES_MAX: usize = 50_000;

/// A folder with sources of a build.
#[derive(Clone)]
pub struct Project {
    folder: PathBuf,
    /// Paths in the folder that do not belong to the project.
    outside: BTreeSet<PathBuf>,
}

/// State of a project at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectState {
    /// Its files with their stamps.
    pub files: Stamps,
    /// Its folders.
    pub folders: BTreeSet<PathBuf>,
    /// True if it has more entries than are examined.
    pub is_cut: bool,
}

impl ProjectState {
    /// True if all its files are the same in another state, which may have more.
    pub fn is_part_of(&self, other: &Self) -> bool {
        self.files.iter().all(|(path, stamp)| other.files.get(path) == Some(stamp))
    }
}

impl Project {
    /// The project in this folder. Files that the manifest in `home` writes or reads at run time do
    /// not belong to it: components, the audit, state, and writable mounts.
    pub fn new(folder: &Path, manifest: Option<&Manifest>, home: &Path) -> Self {
        let at = |written: &str| real(&home.join(written));
        let outside = manifest.into_iter().flat_map(|manifest| {
            let audit = manifest.audit().file().map(at);
            let of_components = manifest.components().iter().flat_map(|component| {
                let code = match component.source() {
                    SourceRef::File(source) => Some(at(source)),
                    _ => None,
                };
                let written = component.grants().files().iter().filter_map(|mount| match mount.kind() {
                    MountKind::Host { path, access: Access::Write, .. } => Some(at(path)),
                    _ => None,
                });
                written.chain(code).collect::<Vec<_>>()
            });
            of_components.chain(audit).chain([at(manifest.server().state())])
        });
        Self { folder: real(folder), outside: outside.collect() }
    }

    /// Excludes these paths as well.
    pub fn without(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.outside.extend(paths.into_iter().map(|path| real(&path)));
        self
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its state now.
    pub fn poll(&self) -> ProjectState {
        let outside = self.outside.clone();
        let is_part = move |entry: &DirEntry| {
            let is_written = entry.file_name().to_str().is_some_and(|name| WRITTEN_BY_TOOLS.contains(&name));
            entry.depth() == 0 || !(is_written || outside.contains(entry.path()))
        };
        let walk = WalkBuilder::new(&self.folder).require_git(false).filter_entry(is_part).build();
        let mut look = ProjectState::default();
        // Entries that cannot be read are skipped: no change of them could be seen.
        for entry in walk.flatten() {
            if look.files.len() + look.folders.len() >= ENTRIES_MAX {
                look.is_cut = true;
                break;
            }
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                look.folders.insert(entry.into_path());
            } else {
                let path = entry.into_path();
                let looks = file_stamp::of(&path);
                look.files.insert(path, looks);
            }
        }
        look
    }
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let path = absolute(path);
        // A file that does not exist yet is mostly in a folder that does.
        let above = path.parent().and_then(|above| above.canonicalize().ok());
        above.zip(path.file_name()).map_or(path.clone(), |(above, name)| above.join(name))
    })
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{Source, parse};

    use super::*;

    #[test]
    fn what_is_written_by_builds_and_tools_is_no_part_of_a_project() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".gitignore", "out/\n*.log\n");
        for path in
            ["src/main.rs", "Cargo.toml", "out/a.o", "b.log", "target/c", ".hidden", "tool.wasm", "data/d", "read/e"]
        {
            write(path, "");
        }
        write("audit.jsonl", "");
        let text = "version = 1\n[audit]\nfile = \"audit.jsonl\"\n[components.a]\nsource = \"tool.wasm\"\n\
                    [components.a.filesystem]\n\"/data\" = { path = \"data\", access = \"write\" }\n\
                    \"/read\" = { path = \"read\", access = \"read\" }\n";
        let manifest = parse(&Source { name: "test", text }).unwrap().manifest;
        let project = Project::new(folder.path(), Some(&manifest), folder.path());
        let inside = |path: PathBuf| path.strip_prefix(project.folder()).unwrap().to_owned();
        let files: Vec<PathBuf> = project.poll().files.into_keys().map(inside).collect();
        assert_eq!(files, ["Cargo.toml", "read/e", "src/main.rs"].map(PathBuf::from));
    }
}
