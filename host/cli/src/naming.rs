//! The name that a component gets from its file, and the path by which a manifest names a file.
use std::path::{Component, Path, PathBuf};

use toolcell_policy::Reference;

use crate::exit::Failure;

/// Longest name of a component in a manifest.
const NAME_CHARS_MAX: usize = 64;

/// A valid name, based on the file's, or on the repository's where this is a reference to a
/// registry.
pub fn component_name(file: &Path) -> String {
    let reference = file.to_str().and_then(|text| Reference::parse(text).ok());
    let repository = reference.as_ref().and_then(|reference| reference.repository().rsplit('/').next());
    let file = repository.map_or(file, Path::new);
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default();
    let letters = stem.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    let name: String = letters.skip_while(|letter| *letter == '_').take(NAME_CHARS_MAX).collect();
    if name.is_empty() { "component".to_owned() } else { name }
}

/// The path of a file relative to a folder, without links on the way.
pub fn relative(folder: &Path, file: &Path) -> Result<String, Failure> {
    let wrong = |path: &Path, error: std::io::Error| {
        Failure::at_fault(format!("{} cannot be found: {error}", path.display()), "make the folder first")
    };
    let from = folder.canonicalize().map_err(|error| wrong(folder, error))?;
    // The file itself may be a link, which builds replace, so it is not resolved.
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = parent.canonicalize().map_err(|error| wrong(parent, error))?;
    let to = file.file_name().map_or_else(|| parent.clone(), |name| parent.join(name));
    let common = from.components().zip(to.components()).take_while(|(from, to)| from == to).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(common)).collect();
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::at_fault(format!("{} is not UTF-8 text", path.display()), "a manifest can name no such path")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_named_after_its_file_or_repository() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        for (file, expected) in [
            ("out/My Units.wasm".to_owned(), "my_units"),
            ("oci://ghcr.io/acme/echo:1.0.0".to_owned(), "echo"),
            (format!("oci://127.0.0.1:5000/echo@{digest}"), "echo"),
            (format!("oci://ghcr.io/acme/word-count:1.2.0@{digest}"), "word_count"),
        ] {
            assert_eq!(component_name(Path::new(&file)), expected, "{file}");
        }
    }

    #[test]
    fn a_path_leads_from_the_manifest_to_the_file() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a/b", "c/d"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let relative = |from: &str, to: &str| relative(&root.path().join(from), &root.path().join(to)).unwrap();
        assert_eq!(relative("a", "a/x.wasm"), "x.wasm");
        assert_eq!(relative("a", "a/b/x.wasm"), "b/x.wasm");
        assert_eq!(relative("a/b", "c/d/x.wasm"), "../../c/d/x.wasm");
        assert_eq!(relative("a/b", "a/b/../b/wit"), "wit");
    }
}
