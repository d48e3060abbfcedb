//! A turn for one thread at a time, without blocking: the second one leaves a note.

use std::sync::atomic::{AtomicU8, Ordering};

const FREE: u8 = 0;
const TAKEN: u8 = 1;
/// Taken, and another thread came meanwhile.
const ASKED: u8 = 2;

/// A turn that one thread holds. Since the note is part of the same number as the turn, a thread
/// that comes meanwhile either gets the turn or is seen by the one that leaves: no wake-up is lost.
#[derive(Debug, Default)]
pub(super) struct Turn(AtomicU8);

/// The turn, while it is held. Dropping it releases it, and ignores notes.
pub(super) struct TakenTurn<'a>(&'a Turn);

impl Turn {
    /// Takes the turn, or leaves a note for its holder.
    pub(super) fn enter(&self) -> Option<TakenTurn<'_>> {
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| Some(if now == FREE { TAKEN } else { ASKED }));
        (before == Ok(FREE)).then(|| TakenTurn(self))
    }

    /// Takes the turn if it is free.
    pub(super) fn try_enter(&self) -> Option<TakenTurn<'_>> {
        self.try_take().then(|| TakenTurn(self))
    }

    /// Takes the turn if it is free, for a caller that releases it explicitly.
    pub(super) fn try_take(&self) -> bool {
        self.0.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Releases the turn in any case. True if another thread came meanwhile and its work must be
    /// checked.
    pub(super) fn give_back(&self) -> bool {
        self.0.swap(FREE, Ordering::AcqRel) == ASKED
    }
}

impl<'a> TakenTurn<'a> {
    /// Releases the turn, unless another thread came meanwhile: then the turn continues, and the
    /// note is cleared.
    pub(super) fn leave(self) -> Option<TakenTurn<'a>> {
        let turn = self.0;
        let left = turn.0.compare_exchange(TAKEN, FREE, Ordering::AcqRel, Ordering::Acquire);
        if left.is_err() {
            turn.0.store(TAKEN, Ordering::Release);
            return Some(self);
        }
        std::mem::forget(self);
        None
    }

    /// Releases the turn in any case. True if another thread came meanwhile and its work must be
    /// checked.
    pub(super) fn leave_anyway(self) -> bool {
        let turn = self.0;
        std::mem::forget(self);
        turn.give_back()
    }
}

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        self.0.0.store(FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_has_the_turn() {
        let turn = Turn::default();
        let taken = turn.enter().expect("the turn is free");
        assert!(turn.try_enter().is_none());
        assert!(taken.leave().is_none());
        assert!(turn.try_enter().is_some());
    }

    #[test]
    fn a_note_keeps_the_turn_once() {
        let turn = Turn::default();
        let taken = turn.enter().expect("the turn is free");
        assert!(turn.enter().is_none());
        let again = taken.leave().expect("somebody came");
        assert!(again.leave().is_none());
    }

    #[test]
    fn a_note_is_told_to_who_leaves_anyway() {
        let turn = Turn::default();
        let taken = turn.enter().expect("the turn is free");
        assert!(turn.enter().is_none());
        assert!(taken.leave_anyway());
        let taken = turn.enter().expect("the turn is free");
        assert!(!taken.leave_anyway());
    }
}
