//! Filter of records from the command line.
use std::time::SystemTime;

use toolcell_audit::Filter;
use toolcell_audit::filter::time;
use toolcell_policy::quantity::parse_millis;

use crate::args::AuditFilterArgs;
use crate::exit::Failure;

/// The time in an argument.
pub fn since(text: Option<&str>) -> Result<Option<String>, Failure> {
    let since = text.map(|text| time(text, SystemTime::now(), |text| parse_millis(text).ok()));
    since.transpose().map_err(|problem| Failure::usage(problem, ""))
}

/// The filter in the arguments.
pub fn of(args: &AuditFilterArgs) -> Result<Filter, Failure> {
    Ok(Filter {
        caller: args.caller.clone(),
        tool: args.tool.clone(),
        outcome: args.outcome.clone(),
        since: since(args.since.as_deref())?,
        until: None,
        call: args.call,
        denials: args.denials,
    })
}
