//! The command lines of those who write tools: `inspect`, `annotate` and `new`.
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::CodeCacheArgs;

/// `toolcell inspect`.
#[derive(Debug, ClapArgs)]
pub struct InspectArgs {
    /// The component
    #[arg(value_name = "FILE.wasm")]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell annotate`.
#[derive(Debug, ClapArgs)]
pub struct AnnotateArgs {
    /// The component
    #[arg(value_name = "FILE.wasm")]
    pub component: PathBuf,
    /// The `.wit` file or folder that it was built of
    #[arg(long, value_name = "PATH")]
    pub wit: PathBuf,
    /// Where to write it; in place of the component by default
    #[arg(short, long, value_name = "FILE.wasm")]
    pub output: Option<PathBuf>,
}

/// `toolcell new`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell new word_count --lang rust
  toolcell new thumbnails --lang c --path tools/thumbnails
  toolcell new word_count --lang python --shape contract

Shapes: typed, functions over WIT values (rust, js, python); contract, all that MCP's tools can answer (rust, js, python);
program, a command-line program (rust, c, go).")]
pub struct NewArgs {
    /// The component's name: 1 to 64 of a-z 0-9 _ -
    pub name: String,
    /// The language of its source
    #[arg(long, value_name = "LANGUAGE")]
    pub lang: Language,
    /// What kind of component it is [default: typed for rust, js and python; program for c and go]
    #[arg(long, value_name = "SHAPE")]
    pub shape: Option<Shape>,
    /// Write it into this folder, which is not there yet or empty [default: NAME]
    #[arg(long, value_name = "FOLDER")]
    pub path: Option<PathBuf>,
}

/// What a new project is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Rust, with cargo
    Rust,
    /// C, with make
    C,
    /// JavaScript, with npm
    Js,
    /// Python, with componentize-py
    Python,
    /// Go, with its own tools
    Go,
}

/// What a component's tools are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// What its `list-tools` returns
    Contract,
    /// Its functions over WIT values
    Typed,
    /// What the manifest says of a command-line program
    Program,
}
