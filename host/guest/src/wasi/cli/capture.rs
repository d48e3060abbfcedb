//! A guest's standard output and error, kept up to the call's log limit. Nothing here reaches a
//! terminal or a client.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolcell_wall::report::{Captured, LINE_BYTES};

#[derive(Debug, Default)]
struct PrintedLog {
    limit_bytes: u64,
    kept: Vec<u8>,
    charged_bytes: u64,
    dropped_bytes: u64,
}

/// The call's log budget, shared by standard output, standard error and the contract's `log`.
#[derive(Clone, Debug)]
pub(crate) struct LogBudget {
    log: Arc<Mutex<PrintedLog>>,
}

impl LogBudget {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { log: Arc::new(Mutex::new(PrintedLog { limit_bytes, ..PrintedLog::default() })) }
    }

    /// Charges one log line that goes elsewhere; false if the budget is used up and the line must
    /// be dropped.
    pub(crate) fn charge(&self, text: &str) -> bool {
        let bytes = (text.len() as u64).saturating_add(LINE_BYTES);
        let mut log = self.lock();
        if bytes > log.limit_bytes.saturating_sub(log.charged_bytes) {
            log.dropped_bytes = log.dropped_bytes.saturating_add(bytes);
            return false;
        }
        log.charged_bytes += bytes;
        true
    }

    /// Resets the budget for the next call of the same instance.
    pub(crate) fn refill(&self, limit_bytes: u64) {
        *self.lock() = PrintedLog { limit_bytes, ..PrintedLog::default() };
    }

    /// Bytes kept so far.
    pub(crate) fn charged_bytes(&self) -> u64 {
        self.lock().charged_bytes
    }

    /// Takes the captured text.
    pub(crate) fn take(&self) -> Captured {
        let mut log = self.lock();
        let kept = std::mem::take(&mut log.kept);
        Captured { text: String::from_utf8_lossy(&kept).into_owned(), dropped_bytes: log.dropped_bytes }
    }

    /// Keeps as much as fits and lets the guest go on: a tool that prints too much is noisy, not
    /// broken.
    pub(crate) fn keep(&self, bytes: &[u8]) {
        let mut log = self.lock();
        let room = usize::try_from(log.limit_bytes.saturating_sub(log.charged_bytes)).unwrap_or(usize::MAX);
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        log.kept.extend_from_slice(kept);
        log.charged_bytes += kept.len() as u64;
        log.dropped_bytes = log.dropped_bytes.saturating_add(dropped.len() as u64);
    }

    /// A panic while printing leaves the log usable: its bytes are still text.
    fn lock(&self) -> MutexGuard<'_, PrintedLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Captured, LINE_BYTES, LogBudget};

    #[test]
    fn what_fits_is_kept_and_the_rest_is_counted() {
        let budget = LogBudget::new(5);
        budget.keep(b"abc");
        budget.keep(b"defg");
        assert_eq!(budget.charged_bytes(), 5);
        assert_eq!(budget.take(), Captured { text: "abcde".into(), dropped_bytes: 2 });
    }

    #[test]
    fn a_log_line_is_dropped_whole_and_counts_without_any_text() {
        let budget = LogBudget::new(5 + 2 * LINE_BYTES);
        assert!(budget.charge("12345") && budget.charge(""));
        assert!(!budget.charge(""));
        assert!(!LogBudget::new(0).charge(""));
        assert_eq!((budget.charged_bytes(), budget.take().dropped_bytes), (5 + 2 * LINE_BYTES, LINE_BYTES));
    }
}
