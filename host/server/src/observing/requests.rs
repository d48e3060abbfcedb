//! Counts requests, and passes them to tracing.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolcell_mcp::{Caller, ErrorCode, Method, ObservedRequest, Observer};

use crate::observing::refusals::Refusals;
use crate::observing::traces::Traces;

/// Counts of one method: requests by era, and error replies by code.
#[derive(Default)]
struct MethodCounts {
    came: [AtomicU64; 2],
    errors: [AtomicU64; ErrorCode::ALL.len()],
}

#[derive(Default)]
pub struct RequestCounters {
    /// In the order of [`methods`].
    counts: [MethodCounts; Method::ALL.len() + 1],
    traces: Option<Arc<Traces>>,
    refusals: Option<Arc<Refusals>>,
}

impl RequestCounters {
    /// Also traces requests, and counts names that callers may not see as refused.
    pub fn new(traces: Option<Arc<Traces>>, refusals: Arc<Refusals>) -> Self {
        Self { traces, refusals: Some(refusals), ..Self::default() }
    }

    /// Number of requests, by method and era.
    pub fn came(&self) -> impl Iterator<Item = (Option<Method>, &'static str, u64)> {
        let counts = methods().zip(&self.counts);
        counts.flat_map(|(method, counts)| {
            let eras = ["legacy", "modern"].into_iter().zip(&counts.came);
            eras.map(move |(era, count)| (method, era, count.load(Ordering::Relaxed)))
        })
    }

    /// Number of error replies, by method and error code, without zeros.
    pub fn errors(&self) -> Vec<(Option<Method>, i32, u64)> {
        let mut errors: Vec<(Option<Method>, i32, u64)> = Vec::new();
        for (method, counts) in methods().zip(&self.counts) {
            for (code, count) in ErrorCode::ALL.into_iter().zip(&counts.errors) {
                let number = code.number();
                let count = count.load(Ordering::Relaxed);
                match errors.iter_mut().find(|(known, same, _)| *known == method && *same == number) {
                    Some((_, _, sum)) => *sum += count,
                    None => errors.push((method, number, count)),
                }
            }
        }
        errors.retain(|(_, _, count)| *count > 0);
        errors
    }

    fn of(&self, method: Option<Method>) -> Option<&MethodCounts> {
        let place = methods().position(|known| known == method)?;
        self.counts.get(place)
    }
}

impl Observer for RequestCounters {
    fn wants_details(&self) -> bool {
        self.traces.is_some()
    }

    fn requested(&self, method: Option<Method>, is_modern: bool) {
        count(self.of(method).and_then(|counts| counts.came.get(usize::from(is_modern))));
    }

    fn unseen(&self, caller: &Caller, hidden: Option<&str>) {
        if let Some(refusals) = &self.refusals {
            refusals.unseen(caller, hidden);
        }
    }

    fn answered(&self, request: &ObservedRequest<'_>) {
        if let Some(error) = request.error {
            let place = ErrorCode::ALL.iter().position(|known| *known == error);
            count(self.of(request.method).zip(place).and_then(|(counts, place)| counts.errors.get(place)));
        } else if request.method == Some(Method::CallTool) {
            // //The catalog counts it.
            return;
        }
        if let Some((traces, details)) = self.traces.as_ref().zip(request.details.as_ref()) {
            traces.request(request, details);
        }
    }
}

/// The counted methods; `None` is any method that the server does not have.
fn methods() -> impl Iterator<Item = Option<Method>> {
    Method::ALL.into_iter().map(Some).chain([None])
}

fn count(counter: Option<&AtomicU64>) {
    if let Some(counter) = counter {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_one_number_are_one() {
        let requests = RequestCounters::default();
        let method = Some(Method::ListTools);
        for error in [None, Some(ErrorCode::InvalidParams), Some(ErrorCode::InvalidMeta), Some(ErrorCode::Internal)] {
            requests.requested(method, true);
            requests.answered(&ObservedRequest { method, is_modern: true, error, details: None });
        }
        assert_eq!(requests.errors(), [(method, -32602, 2), (method, -32603, 1)]);
        let came: Vec<_> = requests.came().filter(|(_, _, count)| *count > 0).collect();
        assert_eq!(came, [(method, "modern", 4)]);
    }
}
