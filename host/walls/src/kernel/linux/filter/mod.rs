//! The allowed system calls. Must not hold: which ones, and why.
//!
//! | file | holds |
//! |---|---|
//! | `free.rs` | calls that are left whatever their arguments |
//! | `checked.rs` | calls that are left with some arguments |
//! | `refused.rs` | calls that fail, where any other would end the process |
//! | `arguments.rs` | words for the checks of arguments |

mod arguments;
mod checked;
mod free;
mod refused;

use std::collections::BTreeMap;
use std::ffi::c_long;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompFilter, SeccompRule, TargetArch, apply_filter_all_threads,
};

use super::refusal::Refusal;

/// Calls with the arguments for which a rule applies; an empty list means any.
type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Restricts every thread of the process to a short list of system calls. Any other ends the
/// process.
///
/// The filter also ends the process if a call uses another architecture's table.
pub(super) fn install(new_threads: bool) -> Result<String, Refusal> {
    for program in programs(new_threads).map_err(|error| Refusal::new(error.to_string()))? {
        apply_filter_all_threads(&program).map_err(|error| refused(&error))?;
    }
    Ok(String::new())
}

/// Why the kernel accepts no filter.
fn refused(error: &seccompiler::Error) -> Refusal {
    match error {
        seccompiler::Error::Seccomp(error) => Refusal::filtered("seccomp", error),
        other => Refusal::new(other.to_string()),
    }
}

/// With several filters the kernel follows the strictest answer. The short list comes last, as it
/// refuses further filters.
fn programs(new_threads: bool) -> Result<Vec<BpfProgram>, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut filters = Vec::new();
    for (errno, rules) in refused::calls(new_threads)? {
        let refuse = SeccompAction::Errno(errno.cast_unsigned());
        filters.push(SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?);
    }
    let end = SeccompAction::KillProcess;
    let allow = SeccompAction::Allow;
    filters.push(SeccompFilter::new(allowed()?, end, allow, arch)?);
    filters.into_iter().map(BpfProgram::try_from).collect()
}

fn allowed() -> Result<Rules, BackendError> {
    let mut rules = checked::calls(std::process::id())?;
    rules.extend(free::CALLS.iter().chain(refused::ALWAYS).map(|call| (*call, Vec::new())));
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_stands_in_two_lists() {
        let checked = checked::calls(1).expect("the checked calls");
        let mut all: Vec<c_long> = checked.keys().copied().collect();
        all.extend(free::CALLS.iter().chain(refused::ALWAYS));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn the_list_stays_short() {
        let calls = allowed().expect("the filter").len();
        assert!(calls <= 100, "{calls} system calls are left");
    }

    #[test]
    fn filters_are_built_for_each_architecture() {
        for name in ["x86_64", "aarch64"] {
            let arch = TargetArch::try_from(name).expect("an architecture");
            let filter = SeccompFilter::new(
                allowed().expect("the filter"),
                SeccompAction::KillProcess,
                SeccompAction::Allow,
                arch,
            );
            let program = BpfProgram::try_from(filter.expect("a filter")).expect("a program");
            assert!(program.len() < 4096, "{name}: {} instructions", program.len());
        }
    }
}
