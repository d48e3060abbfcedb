//! Components that come with this program, on disk.

use std::path::{Path, PathBuf};

/// Where programs and their data have folders of their own, from the program's.
const SHARED: &str = "../share/toolcell";

/// The file of the engine of scripts.
const ENGINE: &str = "toolcell-code.wasm";

/// The bridge's file, and that of a clone, whose program is in `target/release`.
const BRIDGE: [&str; 2] = ["toolcell-bridge.wasm", "../../guest-examples/components/bridge.wasm"];

/// How to get the bridge where it is missing.
pub const BRIDGE_HOW: &str = "in a clone, `make guests` builds it; every package has it";

/// How to get the engine where it is missing.
pub const HOW: &str = "in a clone, `make code` builds it; every package has it; or name one: engine = \"FILE.wasm\"";

/// The engine of scripts. `None` if it is nowhere.
pub fn engine() -> Option<PathBuf> {
    component(&[ENGINE])
}

/// The bridge without tools. `None` if it is nowhere.
pub fn bridge() -> Option<PathBuf> {
    component(&BRIDGE)
}

/// The first of these files, from this program's folder or that of its data. `None` if none of them
/// is there.
fn component(files: &[&str]) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    let places = files.iter().flat_map(|file| [folder.join(file), folder.join(SHARED).join(file)]);
    places.into_iter().find(|path| is_file(path))
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
