//! Units of measure, and numbers as people write them. Holds nothing about weather.

use serde::{Deserialize, Serialize, Serializer};

/// The units that an answer is given in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Units {
    /// Degrees Celsius and millimetres.
    #[default]
    Metric,
    /// Degrees Fahrenheit and inches.
    Imperial,
}

/// Millimetres in an inch, by definition.
const MM_PER_INCH: f64 = 25.4;

impl Units {
    /// A temperature, rounded to a whole degree.
    #[must_use]
    pub fn temperature(self, celsius: i8) -> i32 {
        let celsius = i32::from(celsius);
        match self {
            Self::Metric => celsius,
            // Nine fifths in whole numbers; adding half a degree first makes the floor a rounding.
            Self::Imperial => (celsius * 18 + 325).div_euclid(10),
        }
    }

    /// A depth of water: whole millimetres, or tenths of an inch.
    #[must_use]
    pub fn depth(self, mm: u32) -> Depth {
        match self {
            Self::Metric => Depth(f64::from(mm)),
            Self::Imperial => Depth((f64::from(mm) / MM_PER_INCH * 10.0).round() / 10.0),
        }
    }
}

/// A depth of water in the units asked for.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Depth(pub f64);

impl Serialize for Depth {
    /// Whole numbers without a fraction: `67`, not `67.0`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 { serializer.serialize_u32(self.0 as u32) } else { serializer.serialize_f64(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_round_to_the_nearest_degree() {
        for (celsius, fahrenheit) in [(0, 32), (100, 212), (-40, -40), (1, 34), (-1, 30), (21, 70), (-18, 0)] {
            assert_eq!(Units::Imperial.temperature(celsius), fahrenheit, "{celsius} °C");
            assert_eq!(Units::Metric.temperature(celsius), i32::from(celsius));
        }
    }

    #[test]
    fn depths_round_to_tenths_of_an_inch() {
        assert_eq!(Units::Imperial.depth(254), Depth(10.0));
        assert_eq!(Units::Imperial.depth(58), Depth(2.3));
        assert_eq!(Units::Metric.depth(58), Depth(58.0));
    }
}
