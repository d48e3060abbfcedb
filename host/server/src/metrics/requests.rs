//! Counters of requests, which also passes them to tracing. Must not hold: tool calls; the catalog
//! counts those.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use toolcell_mcp::{ErrorCode, Method, Observer, Seen};

use crate::traces::Traces;

/// Of each method, the number of requests by era and of error replies by code.
#[derive(Default)]
struct Counts {
    came: [AtomicU64; 2],
    errors: [AtomicU64; ErrorCode::ALL.len()],
}

/// Observes requests.
#[derive(Default)]
pub struct Requests {
    counts: [Counts; Method::ALL.len()],
    traces: Option<Arc<Traces>>,
}

impl Requests {
    /// Also traces them.
    pub fn traced(traces: Option<Arc<Traces>>) -> Self {
        Self { traces, ..Self::default() }
    }

    /// Number of requests, by method and era.
    pub fn came(&self) -> impl Iterator<Item = (Method, &'static str, u64)> {
        let counts = Method::ALL.into_iter().zip(&self.counts);
        counts.flat_map(|(method, counts)| {
            let eras = ["legacy", "modern"].into_iter().zip(&counts.came);
            eras.map(move |(era, count)| (method, era, count.load(Ordering::Relaxed)))
        })
    }

    /// Number of error replies, by method and error code, without zeros.
    pub fn errors(&self) -> Vec<(Method, i32, u64)> {
        let mut errors: Vec<(Method, i32, u64)> = Vec::new();
        for (method, counts) in Method::ALL.into_iter().zip(&self.counts) {
            for (code, count) in ErrorCode::ALL.into_iter().zip(&counts.errors) {
                let (number, count) = (code.number(), count.load(Ordering::Relaxed));
                match errors.iter_mut().find(|(known, same, _)| *known == method && *same == number) {
                    Some((_, _, sum)) => *sum += count,
                    None => errors.push((method, number, count)),
                }
            }
        }
        errors.retain(|(_, _, count)| *count > 0);
        errors
    }

    fn of(&self, method: Method) -> Option<&Counts> {
        let place = Method::ALL.iter().position(|known| *known == method)?;
        self.counts.get(place)
    }
}

impl Observer for Requests {
    fn follows(&self) -> bool {
        self.traces.is_some()
    }

    fn requested(&self, method: Method, is_modern: bool) {
        count(self.of(method).and_then(|counts| counts.came.get(usize::from(is_modern))));
    }

    fn answered(&self, request: &Seen<'_>) {
        if let Some(error) = request.error {
            let place = ErrorCode::ALL.iter().position(|known| *known == error);
            count(self.of(request.method).zip(place).and_then(|(counts, place)| counts.errors.get(place)));
        } else if request.method == Method::CallTool {
            // The catalog counts it.
            return;
        }
        if let Some((traces, followed)) = self.traces.as_ref().zip(request.followed.as_ref()) {
            traces.request(request, followed);
        }
    }
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
        let requests = Requests::default();
        for error in [None, Some(ErrorCode::InvalidParams), Some(ErrorCode::InvalidMeta), Some(ErrorCode::Internal)] {
            requests.requested(Method::ListTools, true);
            requests.answered(&Seen { method: Method::ListTools, is_modern: true, error, followed: None });
        }
        assert_eq!(requests.errors(), [(Method::ListTools, -32602, 2), (Method::ListTools, -32603, 1)]);
        let came: Vec<_> = requests.came().filter(|(_, _, count)| *count > 0).collect();
        assert_eq!(came, [(Method::ListTools, "modern", 4)]);
    }
}
