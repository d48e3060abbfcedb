//! The process's limit on open descriptors.
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that the process needs besides connections: components, processes, files.
const BESIDE: u64 = 1_024;

/// Additional descriptors for calls: one may have some hundred doors and files, and 256 calls run
/// at once by default.
const OF_CALLS: u64 = 64 << 10;

/// Raises the limit to what the process may need with this many connections, as far as possible.
/// Warns if the connections alone may need more.
pub(crate) fn raise(connections: u64) {
    let limit = getrlimit(Resource::Nofile);
    let needed = connections.saturating_add(BESIDE);
    let wanted = needed.saturating_add(OF_CALLS);
    let Some(before) = limit.current.filter(|current| *current < wanted) else { return };
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted)).max(before);
    let is_set = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }).is_ok();
    let current = if is_set { raised } else { before };
    if current < needed {
        tracing::warn!("this process may have {current} descriptors, and {connections} connections are allowed");
    }
}
