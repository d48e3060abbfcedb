//! Axes: a range of round numbers around the values, the marks on it, and how they are written. Holds no pixels.

/// An axis for numbers.
#[derive(Debug, PartialEq)]
pub struct Scale {
    least: f64,
    most: f64,
    step: f64,
}

/// Powers of a thousand and the letters that stand for them, the largest first.
const PREFIXES: [(f64, &str); 5] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];

/// Numbers up to this are written out, without a letter.
const PLAIN_MAX: f64 = 99_999.0;

/// Where values are all above zero but the least is not far above it, the axis begins at zero: this part of the
/// greatest is "far".
const FROM_ZERO_BELOW: f64 = 0.6;

impl Scale {
    /// An axis around these values with about `marks` marks; through zero if asked for, or if it is near.
    pub fn around(least: f64, most: f64, from_zero: bool, marks: u32) -> Self {
        let near = (least >= 0.0 && least < most * FROM_ZERO_BELOW) || (most <= 0.0 && most > least * FROM_ZERO_BELOW);
        let mut least = least;
        let mut most = most;
        if from_zero || near {
            (least, most) = (least.min(0.0), most.max(0.0));
        }
        if least == most {
            // A flat line is drawn in the middle.
            let room = if least == 0.0 { 1.0 } else { least.abs() / 2.0 };
            (least, most) = (least - room, most + room);
            if from_zero {
                (least, most) = (least.min(0.0), most.max(0.0));
            }
        }
        let step = round_step((most - least) / f64::from(marks.max(1)));
        Self { least: (least / step).floor() * step, most: (most / step).ceil() * step, step }
    }

    /// Where a value lies: 0 at the least end of the axis, 1 at the other.
    pub fn part(&self, value: f64) -> f64 {
        (value - self.least) / (self.most - self.least)
    }

    /// The numbers that are marked.
    pub fn marks(&self) -> Vec<f64> {
        let count = ((self.most - self.least) / self.step).round() as u32;
        // Multiplied, not added up, so that no error gathers; and no negative zero.
        (0..=count).map(|mark| self.least + f64::from(mark) * self.step + 0.0).collect()
    }

    /// How a marked number is written: with as many decimals as the step needs, and k, M, G … for large ones.
    pub fn written(&self, mark: f64) -> String {
        let largest = self.least.abs().max(self.most.abs());
        let (unit, letter) = if largest <= PLAIN_MAX {
            (1.0, "")
        } else {
            PREFIXES.into_iter().find(|(unit, _)| *unit <= largest).unwrap_or((1.0, ""))
        };
        if mark.abs() < self.step / 2.0 {
            return "0".to_owned();
        }
        if largest < 1e-3 {
            return format!("{mark:.1e}");
        }
        let decimals = (-(self.step / unit).log10().floor()).clamp(0.0, 9.0) as usize;
        format!("{:.decimals$}{letter}", mark / unit)
    }
}

/// The next of …, 0.5, 1, 2, 5, 10, … from a number up.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let lead = [1.0, 2.0, 5.0].into_iter().find(|lead| lead * power >= rough * 0.999_999).unwrap_or(10.0);
    lead * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(least: f64, most: f64, from_zero: bool) -> Vec<String> {
        let scale = Scale::around(least, most, from_zero, 5);
        scale.marks().into_iter().map(|mark| scale.written(mark)).collect()
    }

    #[test]
    fn axes_have_round_numbers() {
        for (least, most, from_zero, written) in [
            (0.0, 10.0, false, "0 2 4 6 8 10"),
            (3.0, 9.5, false, "0 2 4 6 8 10"),
            (97.0, 103.0, false, "96 98 100 102 104"),
            (97.0, 103.0, true, "0 50 100 150"),
            (-5.0, -5.0, true, "-5 -4 -3 -2 -1 0"),
            (0.0, 0.0, false, "-1.0 -0.5 0 0.5 1.0"),
            (0.0, 0.33, false, "0 0.1 0.2 0.3 0.4"),
            (0.0, 2_500_000.0, false, "0 0.5M 1.0M 1.5M 2.0M 2.5M"),
            (-120_000.0, 80_000.0, false, "-150k -100k -50k 0 50k 100k"),
            (1e-9, 2e-9, false, "0 5.0e-10 1.0e-9 1.5e-9 2.0e-9"),
        ] {
            assert_eq!(marks(least, most, from_zero).join(" "), written, "{least} {most}");
        }
    }

    #[test]
    fn every_value_lies_on_its_axis() {
        for (least, most) in [(0.0, 1.0), (-3.7, 12.9), (1e15, 1e15), (-1e15, 1e15), (1e-300, 2e-300)] {
            let scale = Scale::around(least, most, false, 6);
            for value in [least, most] {
                assert!((0.0..=1.0).contains(&scale.part(value)), "{value} on {scale:?}");
            }
        }
    }
}
