//! The schema of `[callers]`. Must not hold: reading, or the schema of anything else.

use schemars::JsonSchema;

/// What some callers see and call. Who is named by one rule has that one alone; others have all rules with a scope of
/// theirs together.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Caller")]
pub(super) struct RawCaller {
    /// The callers it is for: names of tokens (`toolcell token new NAME`), `ISSUER:SUBJECT` for callers whom an issuer of
    /// `[http.oauth]` names, `local` for the one over stdio, `anyone` where nobody has to say who they are. The rule's
    /// own name where neither this nor `scopes` is there.
    #[schemars(length(min = 1, max = 1000), extend("examples" = [["ci", "corp:248289761001"]]))]
    names: Option<Vec<String>>,
    /// Scopes: it is for whoever has one of them.
    #[schemars(length(min = 1, max = 1000), extend("examples" = [["tools:read"]]))]
    scopes: Option<Vec<String>>,
    /// The tools that these callers see and call: `*` for all, `COMPONENT/*`, `COMPONENT/TOOL`, or a tool's name as
    /// clients see it. Others are unknown to them.
    #[schemars(length(max = 1000), extend("examples" = [["weather/*", "echo"]]))]
    tools: Vec<String>,
    /// How often one caller may call, all tools together: `1/h` to `1000000/s`.
    #[schemars(extend("default" = "1000000/s", "examples" = ["600/min"]))]
    rate: Option<String>,
    /// How many calls of one caller run at once, all tools together. Those past it wait as for a tool.
    #[schemars(range(min = 1, max = 4096), extend("default" = 4096, "examples" = [8]))]
    concurrency: Option<u64>,
}
