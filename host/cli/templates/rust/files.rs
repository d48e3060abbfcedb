//! The component's exports are in `component`, for WebAssembly alone; the rest is tested natively.

use std::fs;
use std::path::{Path, PathBuf};

#[cfg(target_family = "wasm")]
mod component {
    wit_bindgen::generate!({ world: "tool" });

    use std::path::Path;

    use exports::local::tool::notes::Guest;

    /// The folder that toolcell.toml mounts.
    const NOTES: &str = "/notes";

    struct Component;
    export!(Component);

    impl Guest for Component {
        fn read_note(name: String) -> Result<String, String> {
            crate::read(Path::new(NOTES), &name)
        }

        fn write_note(name: String, text: String) -> Result<u32, String> {
            crate::write(Path::new(NOTES), &name, &text)
        }
    }
}

pub fn read(folder: &Path, name: &str) -> Result<String, String> {
    fs::read_to_string(path(folder, name)?).map_err(|error| format!("the note {name} cannot be read: {error}"))
}

pub fn write(folder: &Path, name: &str, text: &str) -> Result<u32, String> {
    fs::write(path(folder, name)?, text).map_err(|error| format!("the note {name} cannot be written: {error}"))?;
    Ok(text.len() as u32)
}

/// The note's file: never one of another folder.
fn path(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        return Err(format!("{name:?} is not a name: 1 to 64 letters, digits, - and _"));
    }
    Ok(folder.join(format!("{name}.txt")))
}

#[cfg(test)]
mod tests {
    use super::{read, write};

    #[test]
    fn what_is_written_is_read() {
        let folder = std::env::temp_dir().join(format!("notes-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(write(&folder, "tea", "größe"), Ok(7));
        assert_eq!(read(&folder, "tea"), Ok("größe".to_owned()));
        assert!(read(&folder, "milk").unwrap_err().starts_with("the note milk cannot be read"));
        assert!(write(&folder, "../tea", "").unwrap_err().contains("is not a name"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
