//! The components under `tests/fixtures`: their names, and manifests that name them.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of a source in a test manifest, relative to the manifest.
const COMPONENTS: &str = "components";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// The name of every fixture, in alphabetical order. The names come from the sources, not from the
/// built files.
///
/// # Panics
/// If the sources cannot be listed.
#[must_use]
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = [("guests/tools", "rs"), ("wat", "wat")]
        .iter()
        .flat_map(|(folder, extension)| stems(&fixtures().join(folder), extension))
        .collect();
    names.sort();
    names
}

fn stems(folder: &Path, extension: &str) -> Vec<String> {
    fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect()
}

/// A manifest that serves these fixtures under the limits that the tests share. They are small, so
/// that they are exceeded at once. The deadline is long enough for a machine under load.
#[must_use]
pub fn manifest_of(fixtures: &[&str]) -> String {
    let mut manifest = String::from(
        "version = 1\n\n[defaults.limits]\nfuel = 20_000_000\ndeadline = \"5s\"\nmemory = \"16MiB\"\noutput = \"64KiB\"\nrate = \"1000000/s\"\n",
    );
    for name in fixtures {
        manifest.push_str(&format!("\n[components.{name}]\nsource = \"{COMPONENTS}/{name}.wasm\"\n"));
    }
    manifest
}

/// The manifest with `[server] usage = true`: each result says what its call used.
#[must_use]
pub fn telling_usage(manifest: &str) -> String {
    match manifest.split_once("[server]\n") {
        Some((before, after)) => format!("{before}[server]\nusage = true\n{after}"),
        // Behind all others, so that no line has another number.
        None => format!("{manifest}\n[server]\nusage = true\n"),
    }
}

/// The built component of this fixture.
///
/// # Panics
/// If it was not built.
#[must_use]
pub fn bytes(name: &str) -> Vec<u8> {
    let path = fixtures().join("components").join(format!("{name}.wasm"));
    fs::read(&path).unwrap_or_else(|error| panic!("fixture {name}: {error}; run `make fixtures`"))
}

/// Puts each fixture that the manifest names as `components/NAME.wasm` next to it. Other sources
/// are left to the test.
pub(crate) fn place_named_in(manifest: &str, folder: &Path) {
    let built = fixtures().join("components");
    let known = names();
    for name in sources_of(manifest).filter(|name| known.contains(name)) {
        let from = built.join(format!("{name}.wasm"));
        let to = folder.join(format!("{COMPONENTS}/{name}.wasm"));
        if to.exists() {
            continue;
        }
        fs::create_dir_all(folder.join(COMPONENTS)).unwrap();
        fs::copy(&from, &to).unwrap_or_else(|error| panic!("fixture {name}: {error}; run `make fixtures`"));
    }
}

/// The NAME of each `source = "components/NAME.wasm"` of the manifest.
fn sources_of(manifest: &str) -> impl Iterator<Item = String> {
    manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("source = \"components/")?.split_once(".wasm\""))
        .map(|(name, _)| name.to_owned())
}
