//! The command lines of those who write tools: `inspect`, `annotate` and `new`.
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{CodeCacheArgs, ManifestArg};

/// `toolcell inspect`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell inspect weather.wasm
  toolcell inspect oci://ghcr.io/acme/weather:1.2.0 --json

A component of a registry is pulled into the store and added to nothing. Who signed it is checked where [trust] of the
manifest has a rule for it; one that the rule does not take is not looked into. What it requests is in its own words.")]
pub struct InspectArgs {
    /// The component's file, or oci://HOST/REPOSITORY:TAG
    #[arg(value_name = "COMPONENT")]
    pub file: PathBuf,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// End with 1 where there are warnings, too
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell annotate`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell annotate weather.wasm --wit wit/
  toolcell annotate weather.wasm --wants wants.toml
  toolcell annotate weather.wasm --metadata toolcell.toml

wants.toml has the keys with which a manifest narrows a tool, all of which may be left out:
  env = [\"UNITS\"]
  config = [\"theme\"]
  secrets = [\"API_KEY\"]
  keyvalue = true
  filesystem = { \"/data\" = { access = \"read\" } }
  network = { http = [\"GET https://api.example.com/v1/*\"] }

Requested permissions grant nothing: they are shown to the person who adds the component, with a warning for grants
beyond them.

--metadata takes titles, descriptions, hints and limits of the component's entry, and nothing that grants something.")]
pub struct AnnotateArgs {
    /// The component
    #[arg(value_name = "FILE.wasm")]
    pub component: PathBuf,
    /// The `.wit` file or folder that it was built of
    #[arg(long, value_name = "PATH", required_unless_present_any = ["wants", "metadata"])]
    pub wit: Option<PathBuf>,
    /// A file with the permissions that it requests, at most 16 KiB of TOML
    #[arg(long, value_name = "FILE")]
    pub wants: Option<PathBuf>,
    /// The manifest with titles, descriptions, hints and limits to suggest to those who add it
    #[arg(long, value_name = "MANIFEST")]
    pub metadata: Option<PathBuf>,
    /// Where to write it; in place of the component by default
    #[arg(short, long, value_name = "FILE.wasm")]
    pub output: Option<PathBuf>,
}

/// `toolcell new`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell new word_count --lang rust
  toolcell new tickets --lang python --example secret
  toolcell new thumbnails --lang c --example image --path tools/thumbnails

Not every language has every example: a program in Go or C has no HTTP, state and questions.

Shapes: typed, functions over WIT values; contract, all that MCP's tools can answer; program, a
command-line program.")]
pub struct NewArgs {
    /// The component's name: 1 to 64 of a-z 0-9 _ -
    pub name: String,
    /// The language of its source
    #[arg(long, value_name = "LANGUAGE")]
    pub lang: Language,
    /// What its tools do, to begin with
    #[arg(long, value_name = "EXAMPLE", default_value = "words")]
    pub example: Example,
    /// What kind of component it is [default: what suits the example]
    #[arg(long, value_name = "SHAPE")]
    pub shape: Option<Shape>,
    /// What runs JavaScript in it [default: quickjs, if it has what the example needs]
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<Engine>,
    /// Write it into this folder, which does not exist yet or is empty [default: NAME]
    #[arg(long, value_name = "FOLDER")]
    pub path: Option<PathBuf>,
}

/// What runs JavaScript in a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// QuickJS: components of 2 MB, which compile in a seventh of the time and have no fetch
    Quickjs,
    /// StarlingMonkey: components of 12 MB, with fetch and most else of the web
    Starlingmonkey,
}

/// What a new project is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Rust, with cargo
    Rust,
    /// Python, with componentize-py
    Python,
    /// TypeScript, with npm
    #[value(alias = "ts")]
    Typescript,
    /// JavaScript, with npm
    #[value(alias = "javascript")]
    Js,
    /// Go, with its own tools
    Go,
    /// C, with make
    C,
}

/// The work of the tools of a new project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Example {
    /// Count the words of a text
    Words,
    /// Ask an HTTP API for JSON
    Fetch,
    /// Read and write files of a folder
    Files,
    /// Answer with a picture
    Image,
    /// Ask an HTTP API with a token that only the host holds
    Secret,
    /// Keep state between calls
    State,
    /// Ask the person in the middle of a call
    Ask,
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
