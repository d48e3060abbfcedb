//! Filter of records from the command line.
use std::time::SystemTime;

use toolcell_audit::Filter;
use toolcell_audit::filter::time;
use toolcell_policy::quantity::parse_millis;

use crate::args::AuditFilterArgs;

/// The filter in the arguments. `Err` is the problem with them.
pub fn of(args: &AuditFilterArgs) -> Result<Filter, String> {
    let since = args.since.as_deref().map(|text| time(text, SystemTime::now(), |text| parse_millis(text).ok()));
    Ok(Filter {
        caller: args.caller.clone(),
        tool: args.tool.clone(),
        outcome: args.outcome.clone(),
        since: since.transpose()?,
        until: None,
        call: args.call,
        denials: args.denials,
    })
}
