//! Components from a registry on the loopback, next to components in files: adding one, and
//! starting with many.

use std::time::Instant;

use anyhow::ensure;
use toolcell_tests::loopback::Registry;
use toolcell_tests::{Command, Folder};

use crate::goals::{Goal, Measured};
use crate::options::Options;
use crate::report::{Column, Section};
use crate::samples::Samples;
use crate::serving::{self, Serving, SigningKey};
use crate::start::{self, ratio, row};

const COLUMNS: &[Column] = &[
    Column { key: "p50_ms", heading: "p50 ms", decimals: 1 },
    Column { key: "min_ms", heading: "min", decimals: 1 },
    Column { key: "max_ms", heading: "max", decimals: 1 },
    Column { key: "ratio", heading: "× files", decimals: 2 },
];

const NOTE: &str = "\
add: the whole command, with an empty store and nothing compiled; the component is echo, of 103 KB. Start: to the first answer,
with code that is compiled already; pulled components are read from the store, and verified. Signed components have a signature by
a key (ECDSA, P-256), and a rule of trust that asks for it.";

const REPOSITORY: &str = "bench/echo";
const SIGNED: &str = "bench/signed";
const FILE: &str = "echo.wasm";

/// Measures.
///
/// # Errors
/// Something does not start, or answers wrongly.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let registry = Registry::start();
    let echo = serving::echo()?;
    let key = SigningKey::new()?;
    serving::push(&folder(&registry, &echo), &registry.reference(REPOSITORY, "1.0.0"), FILE, None)?;
    serving::push(&trusting(&registry, &echo, &key), &registry.reference(SIGNED, "1.0.0"), FILE, Some(&key))?;
    let mut of_file = Samples::default();
    let mut of_registry = Samples::default();
    let mut of_signer = Samples::default();
    for _ in 0..options.count(20, 2) {
        of_file.push(add(&folder(&registry, &echo), FILE)?);
        of_registry.push(add(&folder(&registry, &echo), &registry.reference(REPOSITORY, "1.0.0"))?);
        of_signer.push(add(&trusting(&registry, &echo, &key), &registry.reference(SIGNED, "1.0.0"))?);
    }
    let many = options.count(50, 3);
    let files = Serving::copies(many)?;
    let pulled = Serving::pulled_copies(many, &registry, None)?;
    let signed = Serving::pulled_copies(many, &registry, Some(&key))?;
    let mut with_files = Samples::default();
    let mut with_pulled = Samples::default();
    let mut with_signed = Samples::default();
    let asked = registry.asked().len();
    for serving in [&files, &pulled, &signed] {
        serving.compile()?;
    }
    for _ in 0..options.count(30, 2) {
        with_files.push(start::once(&files, many)?);
        with_pulled.push(start::once(&pulled, many)?);
        with_signed.push(start::once(&signed, many)?);
    }
    ensure!(registry.asked().len() == asked, "a start asked the registry");
    let mut measured: Vec<_> =
        of_signer.median().into_iter().map(|value| Measured::alone(Goal::AddFromRegistry, value)).collect();
    // A quick look has fewer components than the goal is set for.
    if let Some(ratio) = ratio(&with_signed, &with_files).filter(|_| !options.quick) {
        measured.push(Measured::alone(Goal::StartOfPulled, ratio));
    }
    let rows = vec![
        row("add, from a file".to_owned(), &of_file, None),
        row("add, from a registry".to_owned(), &of_registry, Some(&of_file)),
        row("add, from a registry, signed".to_owned(), &of_signer, Some(&of_file)),
        row(format!("start, {many} components in files"), &with_files, None),
        row(format!("start, {many} components that were pulled"), &with_pulled, Some(&with_files)),
        row(format!("start, {many} components that were pulled, each signed"), &with_signed, Some(&with_files)),
    ];
    let title = "Registries: add, and start with what was pulled";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

/// A folder with a manifest that reaches the registry, and with the component in a file.
fn folder(registry: &Registry, component: &[u8]) -> Folder {
    let host = registry.host();
    let folder = Folder::with_manifest(&format!(
        "version = 1\n\n[server]\nstore = \"store\"\n\n[registries.\"{host}\"]\nprivate = true\n"
    ));
    folder.write(FILE, component);
    folder
}

/// A folder with a rule that trusts this key as well.
fn trusting(registry: &Registry, component: &[u8], key: &SigningKey) -> Folder {
    let folder = folder(registry, component);
    let manifest = std::fs::read_to_string(folder.manifest()).unwrap_or_default();
    folder.write("toolcell.toml", format!("{manifest}{}", SigningKey::trusted(registry)));
    key.place(&folder);
    folder
}

/// Adds a component. Returns the time of the command, in ms.
fn add(folder: &Folder, source: &str) -> anyhow::Result<f64> {
    // Code that was compiled before is in the cache of the user.
    let cache = folder.path().join("cache").to_string_lossy().into_owned();
    let add = Command::in_folder(folder, &["add", source, "--name", "added", "--yes"]);
    let begun = Instant::now();
    let added = add.with_variable("XDG_CACHE_HOME", &cache).run();
    let took = begun.elapsed().as_secs_f64() * 1e3;
    ensure!(added.code() == 0, "add failed: {}", added.stderr);
    Ok(took)
}
