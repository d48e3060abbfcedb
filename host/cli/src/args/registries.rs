//! The command lines that talk to registries and keep what comes from them: `search`, `pull`,
//! `push`, `update`, `outdated` and `store`.
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::{CodeCacheArgs, ConsentArg, ManifestArg};

/// `toolcell search`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell search weather
  toolcell search weather --registry https://registry.example.com --json

The word and nothing else goes to the registry, by default https://registry.modelcontextprotocol.io. It looks for the
word in names of servers. Shown are entries that say of an OCI package that it is a component, with the command that
adds it. Nothing is pulled. Ends with 3 where no network is.")]
pub struct SearchArgs {
    /// A part of a server's name
    #[arg(value_name = "WORD")]
    pub word: String,
    /// Search this registry: one with the API of the MCP registry
    #[arg(long, value_name = "URL")]
    pub registry: Option<String>,
    /// Show OCI packages that do not say what they are, too
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell pull`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell pull
  toolcell pull --manifest team.toml --json

Asks registries for what the store lacks, and for signatures. Each component is the one whose digest the manifest
names, and is checked against [trust]. `serve` needs no network then.")]
pub struct PullArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell push`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell push oci://ghcr.io/acme/weather:1.2.0 a.wasm
  toolcell push oci://ghcr.io/acme/weather:1.2.0 a.wasm --sign-key acme.key

The registry is asked as [registries] of the manifest says, if there is one. The password of an encrypted key is read
from TOOLCELL_KEY_PASSWORD.")]
pub struct PushArgs {
    /// The place: oci://HOST/REPOSITORY:TAG
    #[arg(value_name = "REFERENCE")]
    pub reference: String,
    /// The component's file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Sign with this private key in PEM: ECDSA P-256 or Ed25519, as `cosign generate-key-pair` or
    /// openssl makes it
    #[arg(long, value_name = "FILE")]
    pub sign_key: Option<PathBuf>,
    /// Attach this list of parts, SPDX or CycloneDX in JSON, signed with the key
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    pub sbom: Option<PathBuf>,
    /// Attach this record of the build, a predicate of SLSA provenance in JSON, signed with the key
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    pub provenance: Option<PathBuf>,
    /// Write this annotation: org.opencontainers.image.source=https://…
    #[arg(long = "annotation", value_name = "KEY=VALUE")]
    pub annotations: Vec<String>,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell update`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell update                        all whose tags lead elsewhere now
  toolcell update weather --tag 1.3.0    one, to another tag
  toolcell update --json                 the changes as JSON; nothing is written

Shows for each component the digest, who signed it, how its tools and imports differ, and asks. Then the manifest and
the lock pin the new one. A bridge's server is asked for its list again; the words that changed are shown.")]
pub struct UpdateArgs {
    /// The component, as the manifest names it [default: all that come from registries or servers]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Follow this tag from now on
    #[arg(long, value_name = "TAG", requires = "name")]
    pub tag: Option<String>,
    /// Take it even if others signed it than those that the lock pins
    #[arg(long)]
    pub allow_signer_change: bool,
    /// The component of bridges [default: beside this program]
    #[arg(long, value_name = "FILE")]
    pub bridge: Option<PathBuf>,
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

/// `toolcell outdated`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell outdated
  toolcell outdated --json    for a program that opens pull requests

Asks registries where tags lead, and for the newest version. Asks the servers of bridges for their lists. Changes
nothing. Ends with 1 if something is outdated. Ends with 3 if nothing is, as far as is known, and one did not answer.")]
pub struct OutdatedArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell store`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell store ls
  toolcell store gc --keep other.toml
  toolcell store export tools.tar    for a machine without a network")]
pub struct StoreArgs {
    /// What to do
    #[command(subcommand)]
    pub command: StoreCommand,
}

/// What to do with the store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Show what is in the store
    Ls(StoreListArgs),
    /// Check each digest in the store
    Verify(StoreListArgs),
    /// Remove what no manifest names
    Gc(StoreGcArgs),
    /// Write a manifest's components, with their signatures, into one tar file
    Export(StoreExportArgs),
    /// Take over what is in a tar file
    Import(StoreImportArgs),
}

/// Where the store is.
#[derive(Debug, ClapArgs)]
pub struct StoreArg {
    /// The store [default: the manifest's, if there is a manifest, else the user's]
    #[arg(long, value_name = "FOLDER")]
    pub store: Option<PathBuf>,
}

/// `toolcell store ls` and `toolcell store verify`.
#[derive(Debug, ClapArgs)]
pub struct StoreListArgs {
    #[command(flatten)]
    pub store: StoreArg,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell store gc`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The store of a user serves all manifests that do not name another: name each of them with --keep, or what they need is
removed. `toolcell pull` brings it back.")]
pub struct StoreGcArgs {
    #[command(flatten)]
    pub store: StoreArg,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Keep what this manifest names as well
    #[arg(long, value_name = "FILE")]
    pub keep: Vec<PathBuf>,
    #[command(flatten)]
    pub consent: ConsentArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell store export`.
#[derive(Debug, ClapArgs)]
pub struct StoreExportArgs {
    /// The tar file, which does not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub store: StoreArg,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell store import`.
#[derive(Debug, ClapArgs)]
pub struct StoreImportArgs {
    /// The tar file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub store: StoreArg,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
