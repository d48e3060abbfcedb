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
    /// The audit [default: the one that the manifest names, or else audit.jsonl]
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
    /// Write the lines that would allow what tools tried and were denied
    Suggest(SuggestArgs),
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

Read them before you add them: they allow what was tried, whoever made the tools try it.")]
pub struct SuggestArgs {
    /// What `toolcell serve --observe` wrote, or an audit
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    #[command(flatten)]
    pub manifest: ManifestArg,
    /// Merge the tables into the manifest, which keeps its comments and order
    #[arg(long)]
    pub apply: bool,
    #[command(flatten)]
    pub consent: ConsentArg,
}
