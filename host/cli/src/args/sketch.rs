//! The command line of `serve` without a manifest, for a first look at components.
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{MANIFEST, ServeArgs};

/// `toolcell serve`, with a manifest or without.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
An MCP client starts this itself. In its configuration:
  {\"mcpServers\": {\"toolcell\": {\"command\": \"toolcell\",
    \"args\": [\"serve\", \"--manifest\", \"/path/toolcell.toml\"]}}}

Without a manifest, for a first look:
  toolcell serve weather.wasm --allow 'GET https://api.example.com/*'
  toolcell serve weather.wasm notes.wasm --mount /notes=./notes:rw --save

Only MCP frames are written to stdout. What tools print, and what the host has to say, goes to stderr.
The server ends when its input ends, or on SIGTERM or SIGINT; calls that run then are finished first, for a while.")]
pub struct ServeCommandArgs {
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Serve these components, which reach nothing but what the options allow, instead of a
    /// manifest
    #[arg(value_name = "FILE.wasm", conflicts_with = "locked")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub rights: SketchRights,
    /// Write the manifest that these options come to, and serve it
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = MANIFEST, requires = "files")]
    pub save: Option<PathBuf>,
}

/// Rights of components that no manifest names. Each goes to every component that can use it.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct SketchRights {
    /// Allow them this, in the words of `toolcell grant`, such as `GET https://api.example.com/*`
    /// or `tcp db.example.com:5432`
    #[arg(long, value_name = "RIGHT")]
    pub allow: Vec<String>,
    /// Show them a folder or a file of this machine at this path: PATH=FOLDER to read,
    /// PATH=FOLDER:rw to write as well
    #[arg(long = "mount", value_name = "PATH=FOLDER[:rw]")]
    pub mounts: Vec<String>,
    /// Set an environment variable, or pass this process's own
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub variables: Vec<String>,
}
