//! `toolcell new NAME --lang LANGUAGE`: writes a project that builds a component with its
//! language's own tools.
//!
//! Must not hold: texts of the projects, which are in `templates/`; `new/template.rs` says which
//! file goes where.
mod starts;
mod template;

use std::io;
use std::path::{Path, PathBuf};

use toolcell_policy::names;
use toolcell_server::shell;

use crate::args::{Engine, Example, Language, NewArgs, Shape};
use crate::exit::Exit;
use crate::terminal;
use starts::Base;
use template::{Template, Wanted};

/// Writes the project.
pub fn run(args: &NewArgs) -> anyhow::Result<Exit> {
    let refused = |message: &str, hint: &str| {
        terminal::error(message, Some(hint));
        Ok(Exit::Usage)
    };
    if let Err(problem) = names::check_component(&args.name) {
        let forms =
            "a component's name is 1 to 64 of a-z 0-9 _ -, and begins with a letter or a digit, such as word_count";
        return refused(&format!("the name {:?} {problem}", args.name), forms);
    }
    let Some(template) = template::find(Wanted::from(args)) else {
        let (message, hint) = missing(args);
        return refused(&message, &hint);
    };
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    match write(&folder, &template, &args.name) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let message = format!("{} exists already and is not empty", folder.display());
            return refused(&message, "name a folder that does not exist yet, with --path");
        }
        Err(error) => {
            terminal::error(&format!("{} cannot be written: {error}", folder.display()), None);
            return Ok(Exit::HostFailed);
        }
    }
    terminal::print(&next_steps(&folder, template, &args.name, args.example))?;
    Ok(Exit::Done)
}

/// Why the project does not exist, and which ones do.
fn missing(args: &NewArgs) -> (String, String) {
    let example = args.example;
    let language = args.lang;
    if let Some(engine) = args.engine {
        if !matches!(language, Language::Js | Language::Typescript) {
            return (
                format!("--engine is for JavaScript and TypeScript, and this project is in {}", language.name()),
                "leave --engine out".to_owned(),
            );
        }
        let listed = template::examples_in(engine);
        if !listed.contains(&example) {
            let listed = listed.into_iter().map(Example::label).collect::<Vec<_>>().join(", ");
            return (
                format!("there is no example {} for {}", example.label(), engine.name()),
                format!("it has {listed}; leave --engine out for an engine with fetch, files and state"),
            );
        }
    }
    let shapes = template::shapes(example, language);
    if let Some(shape) = args.shape.filter(|_| !shapes.is_empty()) {
        let listed = shapes.into_iter().map(Shape::label).collect::<Vec<_>>().join(", ");
        let message =
            format!("there is no example {} in {} of the shape {}", example.label(), language.label(), shape.label());
        return (message, format!("it is there as {listed}"));
    }
    let listed: Vec<&str> = template::languages(example).into_iter().map(Language::label).collect();
    let message = format!("there is no example {} in {}", example.label(), language.label());
    (message, format!("it is there in {}{}", listed.join(", "), reason(language)))
}

/// Why a language has fewer examples.
const fn reason(language: Language) -> &'static str {
    match language {
        Language::C | Language::Go => {
            "; a program has arguments, files and variables, and no HTTP, state and questions"
        }
        _ => "",
    }
}

fn write(folder: &Path, template: &Template, name: &str) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    if std::fs::read_dir(folder)?.next().is_some() {
        return Err(io::ErrorKind::DirectoryNotEmpty.into());
    }
    for (path, text) in template.written(name) {
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(file, text)?;
    }
    Ok(())
}

fn next_steps(folder: &Path, template: Template, name: &str, example: Example) -> String {
    let base = template.base;
    let Base { language, shape, needs, build, test, .. } = base;
    let steps: String = build.lines().chain(test.lines()).map(|step| format!("  {step}\n")).collect();
    format!(
        "{name}: {example} in {language}, a component of the shape {shape}, in {folder}\n\n{needs}\n\n  cd {there}\n{steps}  {call}\n  {dev}\n\nThe last one serves the tool to an MCP client, and builds it at each save. README.md says more.\n",
        example = example.label(),
        language = language.label(),
        shape = shape.label(),
        folder = folder.display(),
        there = shell::word(&folder.to_string_lossy()),
        call = template::call(example),
        dev = base.build_at_each_save(),
    )
}

impl Language {
    /// Every language.
    const ALL: [Self; 6] = [Self::Rust, Self::Python, Self::Typescript, Self::Js, Self::Go, Self::C];

    /// Its name on the command line.
    const fn label(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::Js => "js",
            Self::Typescript => "typescript",
            Self::Python => "python",
            Self::Go => "go",
        }
    }

    /// Its name for people.
    const fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::C => "C",
            Self::Js => "JavaScript",
            Self::Typescript => "TypeScript",
            Self::Python => "Python",
            Self::Go => "Go",
        }
    }
}

impl Engine {
    /// Its name for people.
    const fn name(self) -> &'static str {
        match self {
            Self::Starlingmonkey => "StarlingMonkey",
            Self::Quickjs => "QuickJS",
        }
    }
}

impl Shape {
    /// Its name on the command line.
    const fn label(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Typed => "typed",
            Self::Program => "program",
        }
    }
}

impl Example {
    /// Every example.
    const ALL: [Self; 7] = [Self::Words, Self::Fetch, Self::Files, Self::Image, Self::Secret, Self::State, Self::Ask];

    /// Its name on the command line.
    const fn label(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Fetch => "fetch",
            Self::Files => "files",
            Self::Image => "image",
            Self::Secret => "secret",
            Self::State => "state",
            Self::Ask => "ask",
        }
    }
}
