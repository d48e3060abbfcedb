//! `toolcell new NAME --lang LANGUAGE`: writes a project that builds a component with its
//! language's own tools.
//!
//! Must not hold: texts of the projects, which are in `templates/`; `new/template.rs` says which
//! file goes where.
mod template;

use std::io;
use std::path::{Path, PathBuf};

use toolcell_policy::names;

use crate::args::{Language, NewArgs, Shape};
use crate::exit::Exit;
use crate::terminal;
use template::Template;

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
    let shape = args.shape.unwrap_or_else(|| template::usual_shape(args.lang));
    let Some(template) = template::find(args.lang, shape) else {
        let message = format!("there is no template for {} in the shape {}", args.lang.label(), shape.label());
        return refused(&message, &format!("there are: {}", offered()));
    };
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    match write(&folder, template, &args.name) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let message = format!("{} is there already and is not empty", folder.display());
            return refused(&message, "name a folder that is not there yet, with --path");
        }
        Err(error) => {
            terminal::error(&format!("{} cannot be written: {error}", folder.display()), None);
            return Ok(Exit::HostFailed);
        }
    }
    terminal::print(&next_steps(&folder, template, &args.name))?;
    Ok(Exit::Done)
}

/// Every pair of language and shape that has a template.
fn offered() -> String {
    let pairs =
        template::ALL.iter().map(|template| format!("{} {}", template.language.label(), template.shape.label()));
    pairs.collect::<Vec<_>>().join(", ")
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

fn next_steps(folder: &Path, template: &Template, name: &str) -> String {
    let (language, shape) = (template.language.label(), template.shape.label());
    let steps: String = template.build.lines().chain(template.test.lines()).map(|step| format!("  {step}\n")).collect();
    format!(
        "{name}: a tool in {language} in the shape {shape}, in {folder}\n\n{needs}\n\n  cd {folder}\n{steps}  toolcell call count_words \
         '{{\"text\":\"one two\\nthree\"}}'\n\nREADME.md says more.\n",
        folder = folder.display(),
        needs = template.needs,
    )
}

impl Language {
    /// Its name on the command line.
    const fn label(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::Js => "js",
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
            Self::Python => "Python",
            Self::Go => "Go",
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
