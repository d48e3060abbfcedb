//! The command lines that put components into a manifest and take them out: `add`, `remove` and
//! `rename`.
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{CodeCacheArgs, ConsentArg, ManifestArg};

/// `toolcell add`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell add weather.wasm                         copies it to components/
  toolcell add word_count                           serves what is built there
  toolcell add https://example.com/a.wasm@sha256:…  downloads these very bytes
  toolcell add oci://ghcr.io/acme/weather:1.2.0     pulls and pins it
  toolcell add acme:weather@1.2.0                   pulls it as [packages] says
  toolcell add openapi.json --only pets             makes tools of an API
  toolcell add https://example.com/openapi.yaml
  toolcell add --mcp https://mcp.example.com/mcp    takes a server's tools

The manifest is made where there is none, and the lock pins the component. It reaches nothing until `toolcell grant`
says so. A linked component is pinned only where there is a lock already, since its code is still worked on.

An OpenAPI document (3.0 to 3.2, JSON or YAML) becomes a component with one tool for each operation. What that is
granted stands in the document: these methods and paths of its server, and secrets that the host adds.

Another MCP server is asked for its list once. Its tools are shown with all their texts, and pinned.")]
pub struct AddArgs {
    /// A component's file, a project's folder, oci://HOST/REPOSITORY:TAG,
    /// NAMESPACE:NAME@VERSION, URL@sha256:DIGEST, an OpenAPI document's file or URL, or
    /// with --mcp the URL of another MCP server
    #[arg(value_name = "SOURCE")]
    pub source: String,
    /// The component's name in the manifest [default: made of the file's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Put this before the name of each of its tools
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Take nothing of what the component's author suggests: titles, descriptions, hints, limits
    #[arg(long)]
    pub no_metadata: bool,
    /// Serve the file where it is, instead of a copy
    #[arg(long)]
    pub link: bool,
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub consent: ConsentArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub code: CodeCacheArgs,
    #[command(flatten)]
    pub bridge: BridgeArgs,
    #[command(flatten)]
    pub document: DocumentArgs,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Options of `toolcell add` for OpenAPI documents and other MCP servers.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "OpenAPI documents and other MCP servers")]
pub struct BridgeArgs {
    /// Only tools of this name, operation's id or tag; again for more
    #[arg(long, value_name = "TOOL|TAG")]
    pub only: Vec<String>,
    /// More than 100 tools
    #[arg(long)]
    pub all: bool,
    /// The bridge's component [default: beside this program]
    #[arg(long, value_name = "FILE")]
    pub bridge: Option<PathBuf>,
}

/// Options of `toolcell add` for other MCP servers.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Other MCP servers")]
pub struct ServerArgs {
    /// Take the tools of the MCP server at the URL SOURCE
    #[arg(long, conflicts_with_all = ["openapi", "link"])]
    pub mcp: bool,
    /// Have the host add this header, with a secret in it, to each request: 'Authorization=Bearer
    /// env:TOKEN'; again for more
    #[arg(long = "header", value_name = "NAME=SECRET", requires = "mcp")]
    pub headers: Vec<String>,
    /// Pass on what the server asks the person in the middle of a call
    #[arg(long, requires = "mcp")]
    pub elicitation: bool,
}

/// Options of `toolcell add` for OpenAPI documents.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "OpenAPI documents")]
pub struct DocumentArgs {
    /// Read SOURCE as a document, whatever its name is [default: .json, .yaml and .yml]
    #[arg(long)]
    pub openapi: bool,
    /// Deprecated operations too
    #[arg(long)]
    pub deprecated: bool,
    /// Send requests to this server instead of the document's
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// The client that you registered for the document's OAuth login
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
}

/// `toolcell remove`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell remove weather
  toolcell remove weather --delete-file --yes   and its file in components/

Takes out its entry with all sections, what [callers] says of it, and its lock. State that it kept stays.")]
pub struct RemoveArgs {
    /// The component, as the manifest names it
    pub component: String,
    /// Delete its file as well, if that is in components/ next to the manifest
    #[arg(long)]
    pub delete_file: bool,
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub consent: ConsentArg,
}

/// `toolcell rename`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell rename weather forecast

Renames its entry, its lock, and what [callers] says of it. Its tools keep their names. The command says what keeps the
old name: state and records of the audit.")]
pub struct RenameArgs {
    /// The component, as the manifest names it
    pub component: String,
    /// Its new name: 1 to 64 of a-z 0-9 _ -
    pub name: String,
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub consent: ConsentArg,
}
