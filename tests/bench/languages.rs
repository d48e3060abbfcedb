//! The examples in five languages, with the calls of their own tests. It measures their size, the
//! time to load them, and the time of a call with an instance of its own. `toolcell bench` makes
//! the calls, so there is no wire between client and host.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use serde_json::Value;
use toolcell_tests::toolchain::Toolchain;
use toolcell_tests::{Command, Folder};

use crate::goals::{Goal, Measured};
use crate::options::Options;
use crate::report::{Column, Row, Section};
use crate::subject::Subject;

const COLUMNS: &[Column] = &[
    Column { key: "artifact_kib", heading: "artifact KiB", decimals: 0 },
    Column { key: "load_uncached_ms", heading: "load, compiling ms", decimals: 0 },
    Column { key: "load_cached_ms", heading: "load, compiled ms", decimals: 1 },
    Column { key: "call_p50_ms", heading: "fresh call p50 ms", decimals: 3 },
    Column { key: "call_p99_ms", heading: "p99", decimals: 3 },
    Column { key: "all_cores_ratio", heading: "all cores ×", decimals: 2 },
    Column { key: "memory_kib", heading: "memory KiB", decimals: 0 },
];

const NOTE: &str = "\
load: from starting the process to its end, with all that loading takes; compiling: nothing was kept. fresh call: by `toolcell bench`, without a wire,
in a sandbox process, on an instance made at the call and thrown away. all cores ×: calls per second on all cores beside those of one call after the other. memory: what the guest had at most. Each example with a call of its calls.json; (new): the project that
`toolcell new` writes for C, which counts the words of a sentence: what the language itself takes, where html_tidy is a library of 40,000 lines.";

/// Part of a row's name: the component was not built.
const NOT_BUILT: &str = "not built: `make guests languages`";

/// Part of a row's name: the project cannot be built, since there is no compiler.
const NO_TOOLCHAIN: &str = "its compiler cannot be had";

/// One example.
struct Example {
    language: &'static str,
    /// Its folder in `guest-examples`.
    name: &'static str,
    /// The tool to call. Its first call in `calls.json` gives the arguments; `echo` has no such
    /// file.
    tool: &'static str,
    goal: Goal,
}

/// A project as `toolcell new` writes it: the smallest tool in its language.
struct Template {
    language: &'static str,
    /// The name of its language, as `--lang` takes it.
    lang: &'static str,
    shape: &'static str,
    goal: Goal,
}

const TEMPLATES: [Template; 1] = [Template { language: "C", lang: "c", shape: "program", goal: Goal::CTemplateCall }];

/// The tool of every project, and the arguments to call it with.
const TEMPLATE_TOOL: &str = "count_words";
const TEMPLATE_ARGUMENTS: &str = r#"{"text":"the quick brown fox jumps over the lazy dog"}"#;

const EXAMPLES: [Example; 5] = [
    Example { language: "Rust", name: "echo", tool: "echo", goal: Goal::RustCall },
    Example { language: "C", name: "html_tidy", tool: "html_tidy", goal: Goal::CCall },
    Example { language: "JavaScript", name: "markdown", tool: "markdown_outline", goal: Goal::JavaScriptCall },
    Example { language: "Python", name: "statistics", tool: "table_relate", goal: Goal::PythonCall },
    Example { language: "Go", name: "template", tool: "template_fields", goal: Goal::GoCall },
];

/// Measures.
///
/// # Errors
/// A component that was built does not load, or answers with an error.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let mut rows = Vec::new();
    let mut measured = Vec::new();
    for example in &EXAMPLES {
        let name = format!("{}: {}", example.language, example.tool);
        let Some(prepared) = example.prepare()? else {
            rows.push(Row { name: format!("{name} ({NOT_BUILT})"), values: vec![None; COLUMNS.len()] });
            continue;
        };
        let values = prepared.measure(example.tool, options)?;
        if !options.quick {
            measured.push(Measured::alone(example.goal, values.call_p50_ms));
        }
        rows.push(Row { name, values: values.in_columns() });
    }
    for template in &TEMPLATES {
        let name = format!("{} (new): {TEMPLATE_TOOL}", template.language);
        let Some(prepared) = template.prepare()? else {
            rows.push(Row { name: format!("{name} ({NO_TOOLCHAIN})"), values: vec![None; COLUMNS.len()] });
            continue;
        };
        let values = prepared.measure(TEMPLATE_TOOL, options)?;
        if !options.quick {
            measured.push(Measured::alone(template.goal, values.call_p50_ms));
        }
        rows.push(Row { name, values: values.in_columns() });
    }
    let title = "Languages: size, load and a fresh call";
    Ok(Section { title, note: NOTE.to_owned(), columns: COLUMNS, rows, measured })
}

impl Template {
    /// A folder with the built project, where no instance is made ahead. `None` if it cannot be
    /// built here.
    fn prepare(&self) -> anyhow::Result<Option<Prepared>> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        let Ok(toolchain) = Toolchain::of(self.lang, &repository) else { return Ok(None) };
        let folder = Folder::with_manifest("");
        let written = Command::in_folder(&folder, &["new", "tool", "--lang", self.lang, "--shape", self.shape]).run();
        anyhow::ensure!(written.code() == 0, "toolcell new: {}", written.stderr);
        let project = folder.path().join("tool");
        toolchain.build(&project, self.shape);
        let manifest = read(&project.join("toolcell.toml"))?;
        let source = manifest.lines().find_map(|line| line.strip_prefix("source = ")).context("no source")?;
        let artifact = project.join(source.trim_matches('"'));
        let artifact_bytes = usize::try_from(std::fs::metadata(&artifact)?.len())?;
        let line = format!("source = {source}\n");
        folder.write("tool/toolcell.toml", manifest.replace(&line, &format!("{line}prewarm = 0\n")));
        let manifest = project.join("toolcell.toml");
        Ok(Some(Prepared { folder, manifest, arguments: TEMPLATE_ARGUMENTS.to_owned(), artifact_bytes }))
    }
}

impl Example {
    /// A folder that serves the example, where no instance is made ahead. `None` if it was not
    /// built.
    fn prepare(&self) -> anyhow::Result<Option<Prepared>> {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-examples");
        let own = examples.join(self.name);
        let (component, manifest, arguments) = if own.join("calls.json").exists() {
            let manifest = read(&own.join("toolcell.toml"))?;
            (own.join(format!("{}.wasm", self.name)), manifest, self.arguments(&own)?)
        } else {
            let manifest = format!("version = 1\n\n[components.{0}]\nsource = \"{0}.wasm\"\n", self.name);
            let arguments = r#"{"text":"the quick brown fox jumps over the lazy dog"}"#.to_owned();
            (examples.join("components").join(format!("{}.wasm", self.name)), manifest, arguments)
        };
        let Ok(bytes) = std::fs::read(&component) else { return Ok(None) };
        let source = format!("source = \"{}.wasm\"\n", self.name);
        let manifest = manifest.replace(&source, &format!("{source}prewarm = 0\n"));
        let folder = Folder::with_manifest(&manifest);
        folder.write(&format!("{}.wasm", self.name), &bytes);
        for wit in std::fs::read_dir(own.join("wit")).into_iter().flatten() {
            let path = wit?.path();
            let file = path.file_name().context("a file without a name")?;
            folder.write(&Path::new("wit").join(file).to_string_lossy(), read(&path)?);
        }
        let manifest = folder.manifest();
        Ok(Some(Prepared { folder, manifest, arguments, artifact_bytes: bytes.len() }))
    }

    /// The arguments of the tool's first successful call.
    fn arguments(&self, folder: &Path) -> anyhow::Result<String> {
        let calls: Value = serde_json::from_str(&read(&folder.join("calls.json"))?)?;
        let wanted = |call: &&Value| call["tool"] == self.tool && call["is_error"] != true;
        let call = calls.as_array().and_then(|calls| calls.iter().find(wanted));
        Ok(call.with_context(|| format!("no call of {}", self.tool))?["arguments"].to_string())
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// An example or a project in a folder of its own.
struct Prepared {
    folder: Folder,
    manifest: PathBuf,
    arguments: String,
    artifact_bytes: usize,
}

/// The figures of one example or project.
struct Values {
    artifact_kib: f64,
    load_uncached_ms: f64,
    load_cached_ms: f64,
    call_p50_ms: f64,
    call_p99_ms: f64,
    all_cores_ratio: f64,
    memory_kib: f64,
}

/// An example to serve and call over a wire.
pub struct ServedExample {
    prepared: Prepared,
    /// The tool to call.
    pub tool: &'static str,
    /// The arguments of its first call.
    pub arguments: Value,
}

/// The example in this language, whose rate is never reached. `None` if it was not built.
///
/// # Errors
/// Its files cannot be read.
pub fn served(language: &str) -> anyhow::Result<Option<ServedExample>> {
    let example = EXAMPLES.iter().find(|example| example.language == language).context("no such language")?;
    let Some(prepared) = example.prepare()? else { return Ok(None) };
    let manifest = read(&prepared.manifest)?;
    let rated = format!("{manifest}\n[defaults.limits]\nrate = \"1000000/s\"\n");
    prepared.folder.write("toolcell.toml", rated);
    let arguments = serde_json::from_str(&prepared.arguments)?;
    Ok(Some(ServedExample { prepared, tool: example.tool, arguments }))
}

impl ServedExample {
    /// toolcell serving it.
    pub fn subject(&self) -> Subject {
        self.prepared.toolcell("serve")
    }

    /// Makes toolcell compile it.
    ///
    /// # Errors
    /// toolcell fails.
    pub fn compile(&self) -> anyhow::Result<()> {
        self.prepared.toolcell("compile").run()
    }
}

impl Prepared {
    fn measure(&self, tool: &str, options: &Options) -> anyhow::Result<Values> {
        let load_uncached_ms = self.load()?;
        let mut cached = Vec::new();
        for _ in 0..options.count(5, 1) {
            cached.push(self.load()?);
        }
        let runs = options.count(500, 5).to_string();
        let arguments = [tool.as_ref(), self.arguments.as_ref(), "--json".as_ref(), "--runs".as_ref(), runs.as_ref()];
        let said: Value = serde_json::from_str(&self.toolcell("bench").with(arguments).output()?)?;
        let figure = |at: &str| said.pointer(at).and_then(Value::as_f64).with_context(|| format!("{tool}: no {at}"));
        Ok(Values {
            artifact_kib: self.artifact_bytes as f64 / 1024.0,
            load_uncached_ms,
            load_cached_ms: cached.into_iter().fold(f64::INFINITY, f64::min),
            call_p50_ms: figure("/one_by_one/latency_us/p50")? / 1e3,
            call_p99_ms: figure("/one_by_one/latency_us/p99")? / 1e3,
            all_cores_ratio: figure("/on_every_core/calls_per_second")? / figure("/one_by_one/calls_per_second")?,
            memory_kib: figure("/memory_peak_bytes")? / 1024.0,
        })
    }

    /// The time to start, load the component and end, in ms.
    fn load(&self) -> anyhow::Result<f64> {
        let begun = Instant::now();
        self.toolcell("compile").run()?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }

    fn toolcell(&self, command: &str) -> Subject {
        Subject::toolcell(command, &self.manifest, &self.kept())
    }

    fn kept(&self) -> PathBuf {
        self.folder.path().join("kept")
    }
}

impl Values {
    /// The figures in the order of the columns.
    fn in_columns(&self) -> Vec<Option<f64>> {
        let Self { artifact_kib, load_uncached_ms, load_cached_ms, .. } = *self;
        let Self { call_p50_ms, call_p99_ms, all_cores_ratio, memory_kib, .. } = *self;
        let calls = [call_p50_ms, call_p99_ms, all_cores_ratio, memory_kib];
        [artifact_kib, load_uncached_ms, load_cached_ms].into_iter().chain(calls).map(Some).collect()
    }
}
