//! The command lines of `audit` and `policy`: queries of records and of the manifest.
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::{CodeCacheArgs, ConsentArg, ManifestArg};

/// The audit's name where none is given.
pub const AUDIT: &str = "audit.jsonl";

/// `toolcell audit`.
#[derive(Debug, ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "\
An audit is FILE and, once that was full, FILE.1, FILE.2 and so on, FILE.1 being the newest of them. All are read.

Examples:
  toolcell audit verify                            is it as it was written?
  toolcell audit show --since 1h --outcome trap    traps of the last hour
  toolcell audit show --denials                    what tools were denied
  toolcell audit tail -f                           calls as they end"
)]
pub struct AuditArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: AuditCommand,
}

/// Which audit.
#[derive(Clone, Debug, ClapArgs)]
pub struct AuditFileArg {
    /// The audit [default: the one that the manifest names, or audit.jsonl
    /// beside ./toolcell.toml]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub manifest: ManifestArg,
}

/// What to do with an audit.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Look whether a record was changed, removed or added
    Verify(AuditVerifyArgs),
    /// Show the records, oldest first: a call where it ended
    Show(AuditShowArgs),
    /// Show the last records, and go on as more are written
    Tail(AuditTailArgs),
}

/// `toolcell audit verify`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "\
Every record carries the hash of the one before. Whoever changes, removes or adds one breaks the chain there: the
command says where, and ends with 1. A server may go on writing meanwhile.

A chain whose end is cut off is still whole. To see that too, keep the hash that this command prints, elsewhere, and
give it back the next time:
  toolcell audit verify --head 3f0c…    the record with this hash must be there")]
pub struct AuditVerifyArgs {
    #[command(flatten)]
    pub file: AuditFileArg,
    /// The hash of a record that must be there: what an earlier check called the head
    #[arg(long, value_name = "HASH")]
    pub head: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which records, and how.
#[derive(Debug, ClapArgs)]
pub struct AuditFilterArgs {
    /// Only records of this tool
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// Only records of this caller
    #[arg(long, value_name = "NAME")]
    pub caller: Option<String>,
    /// Only calls that ended so: ok, trap, deadline, invalid_input, …
    #[arg(long, value_name = "OUTCOME", value_parser = outcomes(), hide_possible_values = true)]
    pub outcome: Option<String>,
    /// Only records since then: 30m, 12h, 7d, or a time such as 2026-01-12,
    /// 2026-01-12T15:00 (both in UTC) or 2026-01-12T15:00:00+02:00
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Only records of the call with this number; numbers begin anew with every process
    #[arg(long, value_name = "ID")]
    pub call: Option<u64>,
    /// Only what tools asked for and did not get
    #[arg(long)]
    pub denials: bool,
    /// Print the records as they are: JSON Lines
    #[arg(long)]
    pub json: bool,
}

/// `toolcell audit show`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell audit show --tool fetch_page --since 2026-01-12
  toolcell audit show --caller ann --outcome deadline
  toolcell audit show --denials         each with the line that would allow it
  toolcell audit show --json --outcome out_of_fuel | jq .usage.fuel

A call is one line, once it ended; with --json its start and its end are records of their own. Components that are
loaded again as they were are one line together. Times are in UTC.")]
pub struct AuditShowArgs {
    #[command(flatten)]
    pub file: AuditFileArg,
    #[command(flatten)]
    pub filter: AuditFilterArgs,
}

/// `toolcell audit tail`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell audit tail                 the last records
  toolcell audit tail -f --denials    what tools are denied, as it happens
  toolcell audit tail -n 0 -f --json | jq 'select(.event == \"call.finished\")'")]
pub struct AuditTailArgs {
    #[command(flatten)]
    pub file: AuditFileArg,
    /// How many of the last records to read
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub records: u64,
    /// Go on as more are written, from file to file, until interrupted
    #[arg(short, long)]
    pub follow: bool,
    #[command(flatten)]
    pub filter: AuditFilterArgs,
}

/// `toolcell usage`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell usage                        every caller on every day
  toolcell usage --since 7d             the last week
  toolcell usage --caller ann --json    one caller, for scripts

It reads the audit: what rotation has removed is not counted. A call counts on the day (UTC) on which it ended, and
calls that tools make count for the caller of the client's call. BYTES are arguments and results, NETWORK what tools
sent and received.")]
pub struct UsageArgs {
    #[command(flatten)]
    pub file: AuditFileArg,
    /// Only this caller
    #[arg(long, value_name = "NAME")]
    pub caller: Option<String>,
    /// Only calls since then: 12h, 7d, or a time such as 2026-01-12
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn outcomes() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(toolcell_audit::Outcome::ALL.map(toolcell_audit::Outcome::name))
}

/// `toolcell policy`.
#[derive(Debug, ClapArgs)]
pub struct PolicyArgs {
    /// What to ask.
    #[command(subcommand)]
    pub command: PolicyCommand,
}

/// What to ask of a manifest.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Say whether a tool may do something, and by which line
    Explain(ExplainArgs),
    /// Hold a table of expectations against the manifest
    Test(PolicyTestArgs),
    /// Write the lines that would allow what tools tried; or take out what they do not use
    Suggest(SuggestArgs),
    /// Try requests around each rule, and list what it allows and nobody needs
    Fuzz(FuzzArgs),
}

/// `toolcell policy explain`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell policy explain weather_now \"GET https://api.example.com/v1/now\"
  toolcell policy explain notes/append \"write /notes/a.txt\"
  toolcell policy explain search \"read /data/x\" --json
  toolcell policy explain weather/now 'call {\"city\":\"Oslo\"}' --caller ci

What can be asked: a request as above, \"read PATH\", \"write PATH\", \"tcp HOST:PORT\", \"udp HOST:PORT\", \"lookup NAME\",
\"env NAME\", \"config KEY\", \"keyvalue\", \"secret NAME\", and
\"call ARGUMENTS\" for a call of --caller. The exit code is 0 for either answer: see `policy test`.")]
pub struct ExplainArgs {
    /// The tool, as `toolcell list` shows it, or as COMPONENT/TOOL
    pub tool: String,
    /// What it would do
    pub ask: String,
    /// Who makes the call, for `call …`
    #[arg(long, value_name = "NAME", default_value = "local")]
    pub caller: String,
    /// A scope of that caller
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<String>,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell policy test`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The file holds one table for each expectation:

  [[expect]]
  tool = \"weather/now\"    # as `toolcell list` shows it, or COMPONENT/TOOL
  ask = \"GET https://api.example.com/v1/now\"
  allowed = true

With ask = 'call {\"city\": \"Oslo\"}', `caller` and `scopes` say who makes the call.

Exits with 1 where one is not met: run it in continuous integration, next to the manifest.")]
pub struct PolicyTestArgs {
    /// The expectations
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub code: CodeCacheArgs,
}

/// `toolcell policy suggest`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell serve --observe tried.jsonl           use the tools: they are denied
  toolcell policy suggest tried.jsonl            prints tables for the manifest
  toolcell policy suggest tried.jsonl --apply    merges them into it

Read them before you add them: they allow what was tried, whoever made the tools try it.

With --narrow it is the other way: the audit says what calls used, and the answer is a difference of the manifest that
takes out grants that no call used, and narrows the others to what was used. The audit says so where [audit] has
`uses = true`; it shows requests, sockets, state and calls of tools. Files and variables are only known of calls in
files of --uses. What is not known of every call stays as it is.
  toolcell policy suggest --narrow               the audit's last 30 days
  toolcell policy suggest --narrow | patch -p0   takes the difference over
  toolcell policy suggest --narrow --days 0      all that the audit has")]
pub struct SuggestArgs {
    /// What `toolcell serve --observe` wrote, or an audit [default with
    /// --narrow: the manifest's audit]
    #[arg(value_name = "FILE", required_unless_present = "narrow")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Print how the manifest becomes narrower: without what no call used
    #[arg(long)]
    pub narrow: bool,
    /// The days that calls are looked at; 0 takes all that the audit has
    #[arg(long, value_name = "DAYS", default_value_t = 30, requires = "narrow")]
    pub days: u32,
    /// Further calls and all that each used: JSON Lines
    #[arg(long, value_name = "FILE", requires = "narrow")]
    pub uses: Vec<PathBuf>,
    /// Print JSON
    #[arg(long, requires = "narrow", conflicts_with = "apply")]
    pub json: bool,
    /// Merge it into the manifest, which keeps its comments and order
    #[arg(long)]
    pub apply: bool,
    #[command(flatten)]
    pub consent: ConsentArg,
}

/// `toolcell policy fuzz`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  toolcell policy fuzz                     every rule, the widest first
  toolcell policy fuzz weather             those of one component
  toolcell policy fuzz notes/append        those of one tool, by its own name

Around each rule it makes other spellings of the host and the path, other methods, ports and schemes, what a redirect
may lead to, neighbours of folders and names, and asks the rules about them. Nothing is sent or opened. Listed is what
is allowed although no call of the audit needs it. Every query of an allowed path is allowed, and not listed.")]
pub struct FuzzArgs {
    /// A component, or a tool as COMPONENT/TOOL [default: all]
    pub name: Option<String>,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// The audit that says what calls used [default: the manifest's, if it
    /// exists]
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// Further calls and all that each used: JSON Lines
    #[arg(long, value_name = "FILE")]
    pub uses: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
