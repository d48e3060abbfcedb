//! What one call used of its grants through the host, for its record: requests, connections,
//! look-ups, state and other tools. Files and variables are used in the sandbox process alone.
use std::sync::{Mutex, PoisonError};

/// Different uses of one call that are kept. With their longest texts they take an eighth of the
/// largest audit record.
const KEPT_MAX: usize = 32;

/// Bytes of one use: as long as what was asked for in a denial. A longer one is only counted.
const USE_BYTES_MAX: usize = 512;

/// The uses of one call.
#[derive(Debug, Default)]
pub struct CallUses(Mutex<KeptUses>);

#[derive(Debug, Default)]
struct KeptUses {
    texts: Vec<String>,
    left_out: u64,
}

impl CallUses {
    /// Notes a use, if it differs from those before.
    pub(crate) fn note(&self, text: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.texts.contains(&text) {
            return;
        }
        if kept.texts.len() < KEPT_MAX && text.len() <= USE_BYTES_MAX {
            kept.texts.push(text);
        } else {
            kept.left_out = kept.left_out.saturating_add(1);
        }
    }

    /// The uses so far, in the forms of `toolcell policy explain`.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).texts.clone()
    }

    /// How often something else was used that is not kept.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_use_is_kept_once_and_beyond_the_bounds_it_is_counted() {
        let uses = CallUses::default();
        for number in 0..KEPT_MAX + 3 {
            uses.note(format!("tcp a.example:{number}"));
            uses.note("tcp a.example:0".to_owned());
        }
        assert_eq!((uses.texts().len(), uses.left_out()), (KEPT_MAX, 3));
        let uses = CallUses::default();
        uses.note("x".repeat(USE_BYTES_MAX));
        uses.note("y".repeat(USE_BYTES_MAX + 1));
        assert_eq!((uses.texts().len(), uses.left_out()), (1, 1));
    }
}
