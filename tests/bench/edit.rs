//! Edit, compile: the project of `toolcell new` in three languages, compiled as it was written,
//! then with one text of it changed, then another tool of the same language. The language's own
//! tools build it, which is a column of its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use toolcell_tests::toolchain::Toolchain;
use toolcell_tests::{Command, Folder};

use crate::goals::{Goal, Measured};
use crate::options::Options;
use crate::process;
use crate::report::{Column, Row, Section};
use crate::samples::Samples;
use crate::subject::Subject;

const COLUMNS: &[Column] = &[
    Column { key: "build_s", heading: "build s", decimals: 1 },
    Column { key: "cold_ms", heading: "nothing kept ms", decimals: 0 },
    Column { key: "edited_ms", heading: "edited ms", decimals: 0 },
    Column { key: "second_ms", heading: "second tool ms", decimals: 0 },
    Column { key: "cold_cpu_ms", heading: "CPU: nothing kept ms", decimals: 0 },
    Column { key: "edited_cpu_ms", heading: "edited ms", decimals: 0 },
    Column { key: "second_cpu_ms", heading: "second tool ms", decimals: 0 },
    Column { key: "edited_ratio", heading: "nothing kept ÷ edited", decimals: 1 },
    Column { key: "second_ratio", heading: "÷ second tool", decimals: 1 },
];

const NOTE: &str = "\
`toolcell compile`, from starting the process to its end. nothing kept: the folder of compiled code is empty. edited: the project with one
text of it changed, after that. second tool: an example in the same language, after the project alone was compiled. CPU: user and system time
of all threads. build: what `make` or `npm run build` of the edited project takes, before toolcell has anything to compile.";

/// Part of a row's name: the project cannot be built.
const NO_TOOLCHAIN: &str = "its compiler cannot be had";

const MANIFEST: &str = "\
version = 1

[components.tool]
source = \"tool.wasm\"

[components.tool.load]
compile_time = \"10m\"
";

/// A text of every project, and what it is edited to.
const BEFORE: &str = "the shortest word has 1 character";
const AFTER: &str = "every word has at least 1 character";

/// A language with what is compiled in it.
struct Language {
    name: &'static str,
    /// As `--lang` takes it.
    lang: &'static str,
    /// The project's file that has the text, and is edited.
    source: &'static str,
    /// The example that is the second tool, from `guest-examples`.
    second: &'static str,
    /// True if building and compiling take minutes.
    takes_long: bool,
    edited: Goal,
    second_goal: Option<Goal>,
}

const LANGUAGES: [Language; 3] = [
    Language {
        name: "Rust",
        lang: "rust",
        source: "src/counts.rs",
        second: "components/text_diff.wasm",
        takes_long: false,
        edited: Goal::RustEdit,
        second_goal: None,
    },
    Language {
        name: "Python",
        lang: "python",
        source: "counting.py",
        second: "statistics/statistics.wasm",
        takes_long: true,
        edited: Goal::PythonEdit,
        second_goal: Some(Goal::PythonSecond),
    },
    Language {
        name: "JavaScript",
        lang: "js",
        source: "src/counts.js",
        second: "markdown/markdown.wasm",
        takes_long: true,
        edited: Goal::JavaScriptEdit,
        second_goal: Some(Goal::JavaScriptSecond),
    },
];

/// Measures.
///
/// # Errors
/// A project does not build, or does not compile.
pub fn measure(options: &Options) -> anyhow::Result<Section> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let mut rows = Vec::new();
    let mut measured = Vec::new();
    for language in &LANGUAGES {
        if options.quick && language.takes_long {
            let name = format!("{} (left out of a quick look)", language.name);
            rows.push(Row { name, values: vec![None; COLUMNS.len()] });
            continue;
        }
        let Ok(toolchain) = Toolchain::of(language.lang, &repository) else {
            let name = format!("{} ({NO_TOOLCHAIN})", language.name);
            rows.push(Row { name, values: vec![None; COLUMNS.len()] });
            continue;
        };
        let folder = Folder::with_manifest("");
        let (first, _) = language.project(&toolchain, &folder, "first", false)?;
        let (edited, build) = language.project(&toolchain, &folder, "edited", true)?;
        let second = repository.join("guest-examples").join(language.second);
        let compiling = Compiling { folder: &folder };
        let mut figures = Figures::default();
        for _ in 0..options.count(3, 1) {
            compiling.round(&first, &edited, second.exists().then_some(&second), &mut figures)?;
        }
        let built = if second.exists() { "" } else { ", second tool not built: `make guests languages`" };
        rows.push(Row { name: format!("{}{built}", language.name), values: figures.in_columns(build) });
        let goals = [(Some(language.edited), &figures.edited), (language.second_goal, &figures.second)];
        measured.extend(
            goals.into_iter().filter_map(|(goal, took)| Some(Measured::alone(goal?, took.wall.median()? / 1e3))),
        );
    }
    let measured = if options.quick { Vec::new() } else { measured };
    Ok(Section {
        title: "Edit: from a built component to compiled code",
        note: NOTE.to_owned(),
        columns: COLUMNS,
        rows,
        measured,
    })
}

impl Language {
    /// Writes the project into this folder and builds it, as it is written or edited. Returns its
    /// component, and the time of building it.
    fn project(
        &self,
        toolchain: &Toolchain,
        folder: &Folder,
        path: &str,
        is_edited: bool,
    ) -> anyhow::Result<(PathBuf, Duration)> {
        let written = Command::in_folder(folder, &["new", "tool", "--lang", self.lang, "--path", path]).run();
        anyhow::ensure!(written.code() == 0, "toolcell new: {}", written.stderr);
        let project = folder.path().join(path);
        if is_edited {
            let source = std::fs::read_to_string(project.join(self.source))?;
            anyhow::ensure!(source.contains(BEFORE), "{} of {} has another text", self.source, self.lang);
            folder.write(&format!("{path}/{}", self.source), source.replace(BEFORE, AFTER));
        }
        let begun = Instant::now();
        toolchain.build(&project, "typed");
        let took = begun.elapsed();
        let manifest = std::fs::read_to_string(project.join("toolcell.toml"))?;
        let component = manifest.lines().find_map(|line| line.strip_prefix("source = ")).context("no source")?;
        // A copy: Rust builds all projects into one place.
        let copy = folder.path().join(format!("{path}.wasm"));
        std::fs::copy(project.join(component.trim_matches('"')), &copy)?;
        Ok((copy, took))
    }
}

/// Time from start to end, and CPU time, in ms.
#[derive(Default)]
struct Took {
    wall: Samples,
    cpu: Samples,
}

#[derive(Default)]
struct Figures {
    cold: Took,
    edited: Took,
    second: Took,
}

impl Figures {
    /// The figures in the order of the columns.
    fn in_columns(&self, build: Duration) -> Vec<Option<f64>> {
        let all = [&self.cold, &self.edited, &self.second];
        let walls = all.map(|took| took.wall.median());
        let cpus = all.map(|took| took.cpu.median());
        let ratio = |took: &Took| Some(self.cold.cpu.median()? / took.cpu.median()?);
        let ratios = [ratio(&self.edited), ratio(&self.second)];
        std::iter::once(Some(build.as_secs_f64())).chain(walls).chain(cpus).chain(ratios).collect()
    }
}

struct Compiling<'a> {
    folder: &'a Folder,
}

impl Compiling<'_> {
    /// Compiles all three, with what the round before kept forgotten.
    fn round(
        &self,
        first: &Path,
        edited: &Path,
        second: Option<&PathBuf>,
        figures: &mut Figures,
    ) -> anyhow::Result<()> {
        self.forget()?;
        self.compile(first, &mut figures.cold)?;
        self.compile(edited, &mut figures.edited)?;
        let Some(second) = second else { return Ok(()) };
        self.forget()?;
        self.compile(first, &mut Took::default())?;
        self.compile(second, &mut figures.second)
    }

    fn forget(&self) -> anyhow::Result<()> {
        match std::fs::remove_dir_all(self.kept()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn compile(&self, component: &Path, took: &mut Took) -> anyhow::Result<()> {
        std::fs::copy(component, self.folder.path().join("tool.wasm"))?;
        self.folder.write("toolcell.toml", MANIFEST);
        let begun = Instant::now();
        let cpu = process::cpu_time_of_children()?;
        Subject::toolcell("compile", &self.folder.manifest(), &self.kept()).run()?;
        took.wall.push(begun.elapsed().as_secs_f64() * 1e3);
        took.cpu.push((process::cpu_time_of_children()? - cpu).as_secs_f64() * 1e3);
        Ok(())
    }

    fn kept(&self) -> PathBuf {
        self.folder.path().join("kept")
    }
}
