//! The path of the binary under test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The `toolcell` under test: the file in `TOOLCELL_BIN` if that is set, else the release build of
/// this workspace.
///
/// # Panics
/// If there is no such file.
#[must_use]
pub fn toolcell() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/toolcell");
    let path = std::env::var_os("TOOLCELL_BIN").map_or_else(built, PathBuf::from);
    path.canonicalize().unwrap_or_else(|error| {
        panic!("no binary at {}: {error}; run `cargo build --release` or `make test`", path.display())
    })
}

/// A command of the `toolcell` under test, in a process with at most this many KiB of address
/// space.
pub(crate) fn within_address_space(kib: u64) -> Command {
    let mut process = Command::new("sh");
    process
        .args(["-c", &format!("ulimit -v {kib} && exec \"$0\" \"$@\"")])
        .arg(toolcell())
        .env_remove("RUST_BACKTRACE");
    process
}

/// The program of the drill, next to the `toolcell` under test: its guests can do anything.
///
/// # Panics
/// If there is no such file.
#[must_use]
pub fn drill() -> PathBuf {
    let path = toolcell().with_file_name("toolcell-drill");
    assert!(path.exists(), "no program of the drill at {}; run `make drill`", path.display());
    path
}
