//! The folder where a build puts components for `toolcell dev`, which read the project's files when
//! they run, and those files.
//!
//! A build finds the folder in the variable `TOOLCELL_DEV`. Of the component `NAME` of the manifest
//! it may write `NAME.wasm` and a folder `NAME` there. Both together are served in place of the
//! component's `source`.
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ignore::WalkBuilder;
use serde::Serialize;
use toolcell_policy::quantity::show_bytes;

/// The variable of a build that names the folder, relative to the project.
pub const DEV_VARIABLE: &str = "TOOLCELL_DEV";

/// The folder in a project. Projects of `toolcell new` have it in their `.gitignore`.
pub const DEV_FOLDER: &str = ".toolcell/dev";

/// Most files of a component's source. A tool has dozens.
const FILES_MAX: usize = 2_000;

/// Bytes of all of them together, as the guest gets them: each call reads them again.
const SOURCE_BYTES_MAX: usize = 1 << 20;

/// The folder in which builds put what is served.
#[derive(Clone, Debug)]
pub struct DevFolder(PathBuf);

/// A component that a build put there.
pub(crate) struct DevComponent {
    /// The file of the component.
    pub(crate) component: PathBuf,
    folder: PathBuf,
}

/// The content of a file: a text, or the Base64 of other bytes.
#[derive(Serialize)]
#[serde(untagged)]
enum DevContent {
    Text(String),
    Bytes([String; 1]),
}

impl DevFolder {
    /// The folder of this project, whose path has no links.
    #[must_use]
    pub fn of(project: &Path) -> Self {
        Self(project.join(DEV_FOLDER))
    }

    /// The component of this name, if a build of this process put it there.
    pub(crate) fn component(&self, name: &str) -> Option<DevComponent> {
        let component = self.0.join(format!("{name}.wasm"));
        let folder = self.0.join(name);
        (component.is_file() && folder.is_dir()).then_some(DevComponent { component, folder })
    }

    /// Removes the sources of an earlier process: old ones must not be served once a build no
    /// longer writes here. The components stay, so that builds find them.
    ///
    /// # Errors
    /// They cannot be removed, or the folder is a link to another place.
    pub fn clear(&self) -> io::Result<()> {
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        if self.0.canonicalize()? != self.0 {
            return Err(io::Error::other(format!("{} is a link", self.0.display())));
        }
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

impl DevComponent {
    /// The files that it reads, as [`DEV_SOURCE`](toolcell_sandbox::DEV_SOURCE) has them. Links are
    /// not followed.
    ///
    /// # Errors
    /// One sentence.
    pub(crate) fn source(&self) -> Result<Arc<str>, String> {
        let mut files: BTreeMap<String, DevContent> = BTreeMap::new();
        let mut left = SOURCE_BYTES_MAX as u64;
        for entry in WalkBuilder::new(&self.folder).standard_filters(false).build() {
            let entry = entry.map_err(|error| format!("the project's files cannot be read: {error}"))?;
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let path = entry.path().strip_prefix(&self.folder).ok().and_then(Path::to_str);
            let path = path.ok_or("the name of a file of the project is not UTF-8")?;
            let content = read(entry.path(), &mut left).map_err(|error| format!("{path} cannot be read: {error}"))?;
            files.insert(path.to_owned(), content);
            if files.len() > FILES_MAX {
                return Err(format!("the project has more than {FILES_MAX} files that its component would read"));
            }
        }
        let source = serde_json::to_string(&files).map_err(|error| error.to_string())?;
        if left == 0 || source.len() > SOURCE_BYTES_MAX {
            let bytes_max = show_bytes(SOURCE_BYTES_MAX as u64);
            return Err(format!("the project's files have more than the {bytes_max} that its component would read"));
        }
        Ok(source.into())
    }
}

/// The content of a file, of at most as many bytes as are left.
fn read(path: &Path, left: &mut u64) -> io::Result<DevContent> {
    let mut bytes = Vec::new();
    let taken = std::fs::File::open(path)?.take(*left).read_to_end(&mut bytes)?;
    *left = left.saturating_sub(taken as u64);
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(DevContent::Text(text)),
        Err(other) => other.into_bytes(),
    };
    Ok(DevContent::Bytes([STANDARD.encode(bytes)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn staged() -> (tempfile::TempDir, DevFolder) {
        let project = tempfile::tempdir().unwrap();
        let folder = DevFolder::of(&project.path().canonicalize().unwrap());
        std::fs::create_dir_all(folder.0.join("tool/schemas")).unwrap();
        std::fs::write(folder.0.join("tool.wasm"), "code").unwrap();
        (project, folder)
    }

    #[test]
    fn files_of_all_folders_are_read_texts_as_they_are_and_others_in_base64() {
        let (_project, folder) = staged();
        std::fs::write(folder.0.join("tool/component.py"), "print('é')\n").unwrap();
        std::fs::write(folder.0.join("tool/schemas/input.json"), "{}").unwrap();
        std::fs::write(folder.0.join("tool/.hidden"), [0xff, 0]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.0.join("tool/link")).unwrap();
        let source = folder.component("tool").unwrap().source().unwrap();
        let expected = r#"{".hidden":["/wA="],"component.py":"print('é')\n","schemas/input.json":"{}"}"#;
        assert_eq!(&*source, expected);
    }

    #[test]
    fn a_component_is_there_with_its_files_alone_and_files_of_an_earlier_process_do_not_count() {
        let (_project, folder) = staged();
        assert!(folder.component("other").is_none());
        assert!(folder.component("tool").is_some());
        folder.clear().unwrap();
        assert!(folder.component("tool").is_none());
        assert!(folder.0.join("tool.wasm").exists(), "the next build need not make it again");
        DevFolder::of(Path::new("/nonexistent")).clear().unwrap();
    }

    #[test]
    fn nothing_is_removed_behind_a_link() {
        let (project, folder) = staged();
        let other = tempfile::tempdir().unwrap();
        std::fs::create_dir(other.path().join(".toolcell")).unwrap();
        std::os::unix::fs::symlink(&folder.0, other.path().join(DEV_FOLDER)).unwrap();
        let refused = DevFolder::of(&other.path().canonicalize().unwrap()).clear().unwrap_err();
        assert!(refused.to_string().ends_with(" is a link"), "{refused}");
        assert!(project.path().join(DEV_FOLDER).join("tool/schemas").exists());
    }

    #[test]
    fn more_than_a_call_should_read_is_refused() {
        let (_project, folder) = staged();
        let write = |bytes: usize| std::fs::write(folder.0.join("tool/a.py"), vec![b'a'; bytes]).unwrap();
        let around = r#"{"a.py":""}"#.len();
        write(SOURCE_BYTES_MAX - around);
        assert_eq!(folder.component("tool").unwrap().source().unwrap().len(), SOURCE_BYTES_MAX);
        for bytes in [SOURCE_BYTES_MAX - around + 1, 3 * SOURCE_BYTES_MAX] {
            write(bytes);
            let refused = folder.component("tool").unwrap().source().unwrap_err();
            assert_eq!(refused, "the project's files have more than the 1MiB that its component would read");
        }
    }
}
