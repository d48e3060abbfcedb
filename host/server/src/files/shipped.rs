//! The engine of scripts that comes with this program, on disk.

use std::path::{Path, PathBuf};

/// Its file, in the program's folder.
const BESIDE: &str = "toolcell-code.wasm";

/// Its file where programs and their data have folders of their own, from the program's.
const SHARED: &str = "../share/toolcell/toolcell-code.wasm";

/// How to get it where it is missing.
pub const HOW: &str = "in a clone, `make code` builds it; every package has it; or name one: engine = \"FILE.wasm\"";

/// The engine, where this program is. `None` if it is nowhere.
pub fn engine() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.parent()?;
    [BESIDE, SHARED].map(|place| folder.join(place)).into_iter().find(|path| is_file(path))
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}
