//! `toolcell new NAME --lang LANGUAGE`: writes a project that builds a component with its
//! language's own tools.
//!
//! Must not hold: texts of the projects, which are in `templates/`; `new/template.rs` says which
//! file goes where.
mod starts;
mod template;

use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use toolcell_policy::names;
use toolcell_server::shell;

use crate::args::{Engine, Example, Language, NewArgs};
use crate::exit::{Exit, Failure};
use crate::terminal;
use starts::Base;
use template::{Template, Wanted};

/// Writes the project.
pub fn run(args: &NewArgs) -> anyhow::Result<Exit> {
    let forms = "a component's name is 1 to 64 of a-z 0-9 _ -, and begins with a letter or a digit, such as word_count";
    names::check_component(&args.name)
        .map_err(|problem| Failure::usage(format!("the name {:?} {problem}", args.name), forms))?;
    let template = template::find(Wanted::from(args)).ok_or_else(|| missing(args))?;
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    write(&folder, &template, &args.name).map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty => {
            let message = format!("{} exists already and is not empty", folder.display());
            Failure::usage(message, "name a folder that does not exist yet, with --path")
        }
        _ => Failure::of_machine(format!("{} cannot be written: {error}", folder.display()), ""),
    })?;
    terminal::print(&next_steps(&folder, template, &args.name, args.example))?;
    Ok(Exit::Done)
}

/// Why the project does not exist, and which ones do.
fn missing(args: &NewArgs) -> Failure {
    let example = args.example;
    let language = args.lang;
    if let Some(engine) = args.engine {
        if !matches!(language, Language::Js | Language::Typescript) {
            return Failure::usage(
                format!("--engine is for JavaScript and TypeScript, and this project is in {}", language.name()),
                "leave --engine out",
            );
        }
        let listed = template::examples_in(engine);
        if !listed.contains(&example) {
            let listed = listed.into_iter().map(label).collect::<Vec<_>>().join(", ");
            return Failure::usage(
                format!("there is no example {} for {}", label(example), engine.name()),
                format!("it has {listed}; leave --engine out for an engine with fetch, files and state"),
            );
        }
    }
    let shapes = template::shapes(example, language);
    if let Some(shape) = args.shape.filter(|_| !shapes.is_empty()) {
        let listed = shapes.into_iter().map(label).collect::<Vec<_>>().join(", ");
        let message =
            format!("there is no example {} in {} of the shape {}", label(example), label(language), label(shape));
        return Failure::usage(message, format!("it is there as {listed}"));
    }
    let listed: Vec<String> = template::languages(example).into_iter().map(label).collect();
    let message = format!("there is no example {} in {}", label(example), label(language));
    Failure::usage(message, format!("it is there in {}{}", listed.join(", "), reason(language)))
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
        example = label(example),
        language = label(*language),
        shape = label(*shape),
        folder = folder.display(),
        there = shell::word(&folder.to_string_lossy()),
        call = template::call(example),
        dev = base.build_at_each_save(),
    )
}

impl Language {
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

/// A value's name on the command line.
fn label(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
