//! The command line. The commands themselves are in `commands`, one file each.
mod authors;
mod bundle;
mod clients;
mod components;
mod edit;
mod help;
mod log;
mod records;
mod registries;
mod secret_login;
mod secrets;
mod sketch;
mod top;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use toolcell_server::Watch;
use toolcell_server::control::ControlSocket;
use toolcell_server::http::HttpAddress;
use toolcell_server::lock::SeenDigest;
use toolcell_server::{CodeCacheOptions, ConsoleAddress, shell};

pub use authors::{AnnotateArgs, Engine, Example, InspectArgs, Language, NewArgs, Shape};
pub use bundle::{BundleArgs, ManArgs};
pub use clients::{ClientConfigArgs, ClientName, TokenArgs, TokenCommand, TokenFileArg};
pub use components::{AddArgs, RemoveArgs, RenameArgs};
pub use edit::{Consent, ConsentArg, GrantArgs, RevokeArgs};
pub use help::wrapped;
pub use log::{LogArgs, LogFormat, LogLevelArgs};
pub use records::{
    AUDIT, AuditArgs, AuditCommand, AuditFileArg, AuditFilterArgs, AuditShowArgs, AuditTailArgs, AuditVerifyArgs,
    ExplainArgs, FuzzArgs, PolicyArgs, PolicyCommand, PolicyTestArgs, SuggestArgs, UsageArgs,
};
pub use registries::{
    OutdatedArgs, PullArgs, PushArgs, SearchArgs, StoreArg, StoreArgs, StoreCommand, StoreExportArgs, StoreGcArgs,
    StoreImportArgs, StoreListArgs, UpdateArgs,
};
pub use secret_login::{
    LoginsArgs, LoginsCommand, LoginsListArgs, LoginsRevokeArgs, LoginsSetArgs, SecretLoginArgs, SecretLogoutArgs,
};
pub use secrets::{SecretArgs, SecretCommand, SecretListArgs, SecretRemoveArgs, SecretSetArgs};
pub use sketch::{ServeCommandArgs, SketchRights};
pub use top::TopArgs;

/// The manifest's default name.
pub const MANIFEST: &str = shell::MANIFEST;

/// ` --manifest FILE` for a command that a person is told to type; empty where that file is the
/// default.
pub fn manifest_words(manifest: &Path) -> String {
    shell::manifest_words(&manifest.to_string_lossy())
}

/// The variable that names another manifest.
pub const MANIFEST_VARIABLE: &str = "TOOLCELL_MANIFEST";

/// The version. That of a drill says what it is: its guests can do anything.
const VERSION: &str =
    if cfg!(feature = "drill") { concat!(env!("CARGO_PKG_VERSION"), "+drill") } else { env!("CARGO_PKG_VERSION") };

/// Run MCP tools that nobody has to trust.
///
/// Each tool is a WebAssembly component. Each call gets a sandbox of its own, with a fuel budget, a
/// memory limit and a deadline, and no files, network, environment or arguments but what the
/// manifest grants.
#[derive(Debug, Parser)]
#[command(name = "toolcell", version = VERSION, propagate_version = true, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "\
Examples:
  toolcell check                        look for problems in ./toolcell.toml
  toolcell list                         show the tools
  toolcell call echo '{\"text\":\"hi\"}'    run one tool once
  toolcell serve                        be an MCP server on stdin and stdout

Exit codes:
  0  done
  1  the manifest, a component or the called tool is at fault
  2  the command line is at fault
  3  this host or machine is at fault")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Be an MCP server with its tools, on stdio or over HTTP
    Serve(ServeCommandArgs),
    /// Serve, and build a component's project whenever it changes
    Dev(DevArgs),
    /// Look for problems in a manifest and its components, all at once
    Check(CheckArgs),
    /// Show the state of the processes that serve a manifest
    Status(AskArgs),
    /// Show calls, denials and approvals on this terminal, and decide
    Top(TopArgs),
    /// Print a link into the console of a serving process
    Console(AskArgs),
    /// Make the processes that serve a manifest reload it now
    Reload(AskArgs),
    /// Show or change the log level of processes that serve
    LogLevel(LogLevelArgs),
    /// Pin the components, and what their tools say and may do
    Lock(LockArgs),
    /// Show how the components differ from what is pinned
    Diff(DiffArgs),
    /// Pin one component as it is now, and serve it
    Approve(ApproveArgs),
    /// Show the tools, prompts, resources, skills and views
    List(ListArgs),
    /// Run one tool once and show what it answers
    Call(CallArgs),
    /// Run recorded calls again, with the same or a new component
    Replay(ReplayArgs),
    /// Run one tool over sample calls, and propose limits
    Calibrate(CalibrateArgs),
    /// Measure how fast one tool answers
    Bench(BenchArgs),
    /// Show what a component exports, imports and declares
    Inspect(InspectArgs),
    /// Put the comments of WIT files into a component
    Annotate(AnnotateArgs),
    /// Compile every component ahead of the next start
    Compile(CompileArgs),
    /// Check or show what `serve` has recorded
    Audit(AuditArgs),
    /// Show what each caller used on each day
    Usage(UsageArgs),
    /// Make, list and revoke tokens of callers over HTTP
    Token(TokenArgs),
    /// Show and revoke logins that callers have of their own
    Logins(LoginsArgs),
    /// Print the entry for an MCP client's configuration
    ClientConfig(ClientConfigArgs),
    /// Put a component into the manifest
    Add(AddArgs),
    /// Search a registry of MCP servers for components
    Search(SearchArgs),
    /// Bring what the manifest needs of registries into the store
    Pull(PullArgs),
    /// Show components of registries that have newer versions
    Outdated(OutdatedArgs),
    /// Pin what the tags of registries lead to now
    Update(UpdateArgs),
    /// Put a component into a registry
    Push(PushArgs),
    /// Look after what was pulled
    Store(StoreArgs),
    /// Take a component out of the manifest
    Remove(RemoveArgs),
    /// Give a component another name
    Rename(RenameArgs),
    /// Let a component do more: add rights to the manifest
    Grant(GrantArgs),
    /// Let a component do less: take rights out of the manifest
    Revoke(RevokeArgs),
    /// Keep, list and remove secrets, and log in where they are from
    Secret(SecretArgs),
    /// Ask what the manifest allows, without running anything
    Policy(PolicyArgs),
    /// Write a project that builds a tool, in one of six languages
    New(NewArgs),
    /// Pack a manifest and its components for desktop clients
    Bundle(BundleArgs),
    /// Show which walls this machine gives sandbox processes
    Walls(WallsArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write a manual page of each command
    #[command(hide = true)]
    Man(ManArgs),
}

/// The manifest's path.
#[derive(Clone, Debug, ClapArgs)]
pub struct ManifestArg {
    /// The manifest
    #[arg(short, long, value_name = "FILE", default_value = MANIFEST, env = MANIFEST_VARIABLE)]
    pub manifest: PathBuf,
}

/// The cache of compiled code.
#[derive(Clone, Debug, ClapArgs)]
pub struct CodeCacheArgs {
    /// Keep compiled code in this folder [default: toolcell/code in the user's cache folder]
    #[arg(long, value_name = "FOLDER", env = "TOOLCELL_CODE_CACHE")]
    pub code_cache: Option<PathBuf>,
    /// Do not keep compiled code, and do not use what was kept
    #[arg(long, conflicts_with = "code_cache")]
    pub no_code_cache: bool,
}

impl CodeCacheArgs {
    /// The server's options for it.
    pub fn options(&self) -> CodeCacheOptions {
        CodeCacheOptions { folder: self.code_cache.clone(), off: self.no_code_cache }
    }
}

/// `toolcell compile`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
In a container image, run this while building it: the host then starts without compiling. The folder and the key of
the cache (~/.local/state/toolcell/code-cache.key, or under XDG_STATE_HOME) must both be part of the image, and belong
to the user that serves.")]
pub struct CompileArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// Serving, as `serve` and `dev` do.
#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub code: CodeCacheArgs,
    /// Serve over HTTP, here or where the manifest says, instead of stdin and stdout:
    /// 127.0.0.1:8080, `[::1]:8080` or unix:PATH
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = false, default_missing_value = "")]
    pub http: Option<HttpAddress>,
    /// Listen on an address that other machines reach, even if callers need no token
    #[arg(long)]
    pub insecure_public: bool,
    /// Record every call in this file: JSON Lines, hash-chained [default: the manifest's, if it
    /// names one]. A call that cannot be recorded is refused, unless the manifest says otherwise
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// Record denied attempts of tools in this file, for `toolcell policy suggest`. It allows
    /// nothing
    #[arg(long, value_name = "FILE")]
    pub observe: Option<PathBuf>,
    /// How to notice changes of the manifest or a component, which are then loaded; clients hear of
    /// a changed list
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub watch: WatchArg,
    /// Serve only what toolcell.lock pins, and quarantine everything else, now and after changes;
    /// without a lock file, refuse to start
    #[arg(long)]
    pub locked: bool,
    /// Listen here for `toolcell status`, `reload` and `approve`, or nowhere: `off` [default: in
    /// this user's runtime folder]
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub control: ControlSocket,
    /// Serve metrics as Prometheus reads them, here: 127.0.0.1:9464 [default: where the manifest
    /// says, if it does]
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Serve the console, a page for operators, here: 127.0.0.1:9465; without ADDRESS where the
    /// manifest says, or on a free port of 127.0.0.1
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = false, default_missing_value = "")]
    pub console: Option<ConsoleAddress>,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Way to notice changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WatchArg {
    /// Through inotify; network filesystems are polled
    Auto,
    /// Through inotify
    Native,
    /// By polling twice a second: works everywhere
    Poll,
    /// Not at all: only SIGHUP and `toolcell reload`
    Off,
}

impl From<WatchArg> for Watch {
    fn from(arg: WatchArg) -> Self {
        match arg {
            WatchArg::Auto => Self::Auto,
            WatchArg::Native => Self::Native,
            WatchArg::Poll => Self::Poll,
            WatchArg::Off => Self::Off,
        }
    }
}

/// `toolcell dev`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell dev --project guest -- cargo build --release --target wasm32-wasip2
  toolcell dev -m tools/toolcell.toml --project tools/chart -- make chart.wasm

The command runs in the project's folder, without a shell, when this starts and whenever a file of the project changes; a
build of older files is ended. It writes the file that the manifest names as `source`, whose change is then served.
Hidden files, what .gitignore names, `target`, `node_modules` and `__pycache__` are not looked at, nor is what the
manifest names as components, state, audit or folders that tools may write to. What a failed build says is on stderr
and in `toolcell status`; what served before goes on.")]
pub struct DevArgs {
    #[command(flatten)]
    pub serve: ServeArgs,
    /// The folder that is built
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub project: PathBuf,
    /// The command that builds it, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// `toolcell status`, `toolcell reload` and others that ask.
#[derive(Debug, ClapArgs)]
pub struct AskArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// The socket of one process [default: those of all that serve the manifest]
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub control: ControlSocket,
    /// Print JSON: a list, one value for each process
    #[arg(long)]
    pub json: bool,
}

/// `toolcell lock`.
#[derive(Debug, ClapArgs)]
pub struct LockArgs {
    /// Pin components even if others signed them than those that the lock pins
    #[arg(long)]
    pub allow_signer_change: bool,
    #[command(flatten)]
    pub manifest: ManifestArg,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell diff`.
#[derive(Debug, ClapArgs)]
pub struct DiffArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell approve`.
#[derive(Debug, ClapArgs)]
pub struct ApproveArgs {
    /// The component, or one of its tools
    pub name: String,
    /// Only the bytes that were seen: their digest, or how it begins [default: whatever there is by
    /// now]
    #[arg(long, value_name = "DIGITS")]
    pub digest: Option<SeenDigest>,
    /// Approve it even if others signed it than those that the lock pins
    #[arg(long)]
    pub allow_signer_change: bool,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// The socket of one process [default: those of all that serve the manifest; the lock alone is
    /// written where none does]
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub control: ControlSocket,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell check`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Prints every problem with its place and what to do about it, a line that sums up, and what each tool can reach.
Then it warns of what some model API or client refuses of a tool's definition, or cuts.
With --json: {\"ok\": …, \"problems\": [{\"severity\", \"code\", \"message\", \"file\", \"line\", \"column\", …}],
\"warnings\": [{\"code\", \"tool\", \"component\", \"pointer\", \"who\", \"text\", \"served\"}], …}.")]
pub struct CheckArgs {
    /// The manifest, or one component [default: what --manifest names]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
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

/// `toolcell list`.
#[derive(Debug, ClapArgs)]
pub struct ListArgs {
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON: the whole definitions, with component and limits
    #[arg(long)]
    pub json: bool,
    /// Only what this caller sees by the rules of `[callers]`: a token's name, ISSUER:SUBJECT,
    /// local or anyone
    #[arg(long, value_name = "NAME")]
    pub caller: Option<String>,
    /// A scope that this caller has; may be given several times
    #[arg(long = "scope", value_name = "SCOPE", requires = "caller")]
    pub scopes: Vec<String>,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell call`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell call weather_normals '{\"city\":\"Oslo\"}'
  toolcell call text_diff @arguments.json --usage
  toolcell call json_query - --json < arguments.json
  toolcell call chart @numbers.json --save .    writes the picture into a file
  toolcell call fetch -m fetch.wasm --allow 'GET https://example.com/*'")]
pub struct CallArgs {
    /// The tool, as `toolcell list` shows it
    pub tool: String,
    /// The arguments: a JSON object, `@FILE` to read one, `-` for stdin
    #[arg(default_value = "{}")]
    pub arguments: String,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print the result as MCP has it, as JSON
    #[arg(long)]
    pub json: bool,
    /// Say on stderr what the call used: fuel, memory, time; with --json, in `_meta` as well
    #[arg(long)]
    pub usage: bool,
    /// Show all that the tool printed and logged; without it, the log only where the call failed
    #[arg(long)]
    pub log: bool,
    /// Write pictures, sounds and binary resources into this folder
    #[arg(long, value_name = "FOLDER")]
    pub save: Option<PathBuf>,
    /// Record the call in this file, for `toolcell replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub rights: SketchRights,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell replay`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell call echo '{\"text\":\"hi\"}' --record echo.jsonl
  toolcell replay echo.jsonl                       with the recorded component
  toolcell replay recordings --component new.wasm  with a new version of it
  toolcell replay recordings --save cases          keep them as test cases
  toolcell replay echo.jsonl --anonymous report    a copy without content

A replayed component reaches nothing: no network, no file, no clock. It gets what the recorded call got. The recorded
component must ask for the same things in the same order, and use the same fuel. Another one may ask in another order.

Exit codes:
  0  every call ended as it was recorded
  1  some did not, or a file is not a recording")]
pub struct ReplayArgs {
    /// Recordings: files, and folders with files that end with .jsonl
    #[arg(required = true, value_name = "FILE|FOLDER")]
    pub recordings: Vec<PathBuf>,
    /// The component to run, in place of the one in the manifest
    #[arg(long, value_name = "FILE")]
    pub component: Option<PathBuf>,
    /// How often each call is run, until one ends otherwise
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Copy the recordings into this folder, as test cases that can be checked in
    #[arg(long, value_name = "FOLDER")]
    pub save: Option<PathBuf>,
    /// Take the new answers into the files of calls that differ in their answer alone
    #[arg(long)]
    pub update: bool,
    /// Replay nothing: write copies without their content here, for a bug report
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["save", "update", "json", "runs"])]
    pub anonymous: Option<PathBuf>,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell calibrate`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell calibrate text_diff --with '{\"before\":\"a\",\"after\":\"b\"}' @largest.json
  toolcell calibrate chart --with @numbers.json --runs 20 >> toolcell.toml

Take the largest arguments that the tool should be able to answer. What the calls use is measured; the limits proposed
leave head-room above that, and are printed as a table for the manifest. The calls run under the limits that the
manifest has now, but for `rate`, `concurrency` and `queue`, about which samples tell nothing.")]
pub struct CalibrateArgs {
    /// The tool, as `toolcell list` shows it
    pub tool: String,
    /// Arguments of sample calls: each a JSON object, `@FILE` to read one, `-` for stdin
    #[arg(long = "with", value_name = "ARGUMENTS", required = true, num_args = 1..)]
    pub samples: Vec<String>,
    /// How often each sample is called: time differs from run to run
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON: what was used, and the limits proposed
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell bench`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell bench echo '{\"text\":\"hi\"}'
  toolcell bench text_diff @arguments.json --runs 1000 --json

Calls run in this process, one after the other and then on every core, under the manifest's limits but for `rate`,
`concurrency` and `queue`. A client's calls also take the way through its pipe.")]
pub struct BenchArgs {
    /// The tool, as `toolcell list` shows it
    pub tool: String,
    /// The arguments: a JSON object, `@FILE` to read one, `-` for stdin
    #[arg(default_value = "{}")]
    pub arguments: String,
    /// How many calls, one after the other and again on every core [default: what three seconds
    /// allow, at most 10000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell walls`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell walls
  toolcell walls --json")]
pub struct WallsArgs {
    /// Print the walls as JSON
    #[arg(long)]
    pub json: bool,
}

/// `toolcell completions`.
#[derive(Debug, ClapArgs)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}
