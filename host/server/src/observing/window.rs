//! A count within a time window. Its parts leave as a whole, so the window is up to one part
//! shorter.

#[derive(Clone, Copy)]
pub struct Window<const PARTS: usize> {
    parts: [u64; PARTS],
    /// Number of the newest part.
    newest: u64,
}

impl<const PARTS: usize> Default for Window<PARTS> {
    fn default() -> Self {
        Self { parts: [0; PARTS], newest: 0 }
    }
}

impl<const PARTS: usize> Window<PARTS> {
    /// Counts one in this part.
    pub fn add(&mut self, part: u64) {
        self.pass_to(part);
        if let Some(newest) = self.parts.last_mut() {
            *newest = newest.saturating_add(1);
        }
    }

    /// The sum of the window that ends with this part.
    pub fn sum(mut self, part: u64) -> u64 {
        self.pass_to(part);
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    pub fn clear(&mut self) {
        self.parts = [0; PARTS];
    }

    /// Removes parts that are too old.
    fn pass_to(&mut self, newest: u64) {
        let passed = usize::try_from(newest.saturating_sub(self.newest)).unwrap_or(PARTS).min(PARTS);
        self.parts.rotate_left(passed);
        self.parts.iter_mut().rev().take(passed).for_each(|part| *part = 0);
        self.newest = newest.max(self.newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_leave_as_a_whole_and_none_comes_back() {
        let mut window = Window::<3>::default();
        [5, 5, 6, 7].into_iter().for_each(|part| window.add(part));
        assert_eq!([7, 8, 9, 10, u64::MAX].map(|part| window.sum(part)), [4, 2, 1, 0, 0]);
        // If the clock goes back, the newest part counts.
        window.add(6);
        assert_eq!(window.sum(9), 2);
        window.clear();
        window.add(9);
        assert_eq!(window.sum(9), 1);
    }
}
