//! The denials of one call. Its caller gets each as it happens; the first ones are kept for the
//! report. The call's HTTP requests are reported in the same way.
use std::sync::{Arc, Mutex, PoisonError};

use toolcell_policy::Denial;

use crate::caller::{CallerLink, Requested};

/// Denials that a call's report keeps: a model reads no more, and the audit has them all.
const KEPT_MAX: usize = 16;

/// Denials that a call's caller gets. A guest can ask in a loop; further denials are only counted.
const REPORTED_MAX: u64 = 64;

/// The denials of one call. Cheap to clone: host functions that outlive a borrow of the store hold
/// a clone.
#[derive(Clone)]
pub struct CallDenials(Arc<Mutex<DenialLog>>);

struct DenialLog {
    caller: Arc<dyn CallerLink>,
    kept: Vec<Denial>,
    count: u64,
}

impl CallDenials {
    /// No denials yet. This caller gets them.
    #[must_use]
    pub fn new(caller: Arc<dyn CallerLink>) -> Self {
        Self(Arc::new(Mutex::new(DenialLog { caller, kept: Vec::new(), count: 0 })))
    }

    /// A call begins or ends: from now on this caller gets the denials. Forgets those of an earlier
    /// call.
    pub fn hand_to(&self, caller: Arc<dyn CallerLink>) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *log = DenialLog { caller, kept: Vec::new(), count: 0 };
    }

    /// Adds a denial.
    pub fn add(&self, denial: Denial) {
        self.add_with(|| denial);
    }

    /// Adds a denial. It is not even made if it is only counted.
    pub fn add_with(&self, denial: impl FnOnce() -> Denial) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.count += 1;
        if log.count > REPORTED_MAX {
            return;
        }
        let denial = denial();
        log.caller.denied(&denial);
        if log.kept.len() < KEPT_MAX {
            log.kept.push(denial);
        }
    }

    /// True if its caller wants to know about HTTP requests.
    #[must_use]
    pub fn notes_requests(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).caller.notes_requests()
    }

    /// The guest made an HTTP request.
    pub fn requested(&self, request: &Requested<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).caller.requested(request);
    }

    /// The first denials, and the number of all.
    #[must_use]
    pub fn take(&self) -> (Vec<Denial>, u64) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut log.kept), log.count)
    }
}
