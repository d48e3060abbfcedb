//! The command lines that put components into a manifest and take them out: `add`, `remove` and
//! `rename`.
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

The manifest is made where there is none, and the lock pins the component. It reaches nothing until `toolcell grant`
says so. A linked component is pinned only where there is a lock already, since its code is still worked on.")]
pub struct AddArgs {
    /// A component's file, a project's folder, oci://HOST/REPOSITORY:TAG,
    /// NAMESPACE:NAME@VERSION, or URL@sha256:DIGEST
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
