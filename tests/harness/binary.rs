//! Where the binary under test is.

use std::path::{Path, PathBuf};

/// The `toolcell` under test: `TOOLCELL_BIN` where it is set, else the release build of this
/// workspace.
///
/// # Panics
/// Where there is no such file.
#[must_use]
pub fn toolcell() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/toolcell");
    let path = std::env::var_os("TOOLCELL_BIN").map_or_else(built, PathBuf::from);
    path.canonicalize().unwrap_or_else(|error| {
        panic!("no binary at {}: {error}; run `cargo build --release` or `make test`", path.display())
    })
}
