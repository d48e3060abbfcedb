//! Functions over WIT values as tools: no word of the tool contract. What the tools are stands in `wit/units.wit` alone,
//! descriptions included; the host makes names and schemas of it.

mod bindings;
mod reading;
mod table;

use bindings::{Guest, Mismatch, Problem, Quantity, Rounding, Unit};

/// Digits that a result has where the caller does not say.
const SIGNIFICANT: u8 = 6;

/// More digits than a 64-bit float has say nothing.
const DIGITS_MAX: u8 = 17;

pub(crate) struct Units;

impl Guest for Units {
    fn convert(value: f64, from: Unit, to: Unit, rounding: Option<Rounding>) -> Result<Quantity, Problem> {
        let value = converted(Quantity { value, unit: from }, to)?;
        Ok(Quantity { value: rounded(value, rounding.unwrap_or(Rounding::Significant(SIGNIFICANT))), unit: to })
    }

    fn everywhere(quantity: Quantity) -> Result<Vec<Quantity>, Problem> {
        let all = table::units_of(table::dimension(quantity.unit));
        all.map(|unit| {
            Ok(Quantity { value: rounded(converted(quantity, unit)?, Rounding::Significant(SIGNIFICANT)), unit })
        })
        .collect()
    }

    fn read(text: String) -> Result<Quantity, Problem> {
        let mut parts = reading::quantities(&text)?.into_iter();
        let first = parts.next().ok_or(Problem::NothingGiven)?;
        let mut value = first.value;
        for part in parts {
            // What is below zero is so in all its parts.
            let sign = if first.value < 0.0 { -1.0 } else { 1.0 };
            value += sign * converted(part, first.unit)?;
        }
        converted(Quantity { value, ..first }, first.unit)?;
        Ok(Quantity { value: rounded(value, Rounding::Significant(SIGNIFICANT)), unit: first.unit })
    }

    fn split(quantity: Quantity, units: Vec<Unit>) -> Result<Vec<Quantity>, Problem> {
        let mut units = units;
        units.sort_by(|one, other| table::size(*other).total_cmp(&table::size(*one)));
        let (last, rest) = units.split_last().ok_or(Problem::NothingGiven)?;
        let mut left = quantity;
        let mut parts = Vec::with_capacity(units.len());
        for unit in rest {
            let value = converted(left, *unit)?;
            // As little below a whole number as floats miss it by is that number.
            let whole = (value + value.signum() * 1e-9).trunc();
            parts.push(Quantity { value: whole, unit: *unit });
            left = Quantity { value: value - whole, unit: *unit };
        }
        let value = rounded(converted(left, *last)?, Rounding::Decimals(SIGNIFICANT));
        parts.push(Quantity { value, unit: *last });
        Ok(parts)
    }
}

/// The value in another unit, unrounded.
fn converted(quantity: Quantity, to: Unit) -> Result<f64, Problem> {
    let Quantity { value, unit } = quantity;
    let from_dimension = table::dimension(unit);
    let to_dimension = table::dimension(to);
    if !value.is_finite() {
        return Err(Problem::NotFinite);
    }
    if from_dimension != to_dimension {
        return Err(Problem::Incompatible(Mismatch { from: from_dimension, to: to_dimension }));
    }
    let base = (value + table::offset(unit)) * table::size(unit);
    if table::is_bounded(unit) && base < 0.0 {
        return Err(Problem::BelowAbsoluteZero(-table::offset(unit)));
    }
    Ok(base / table::size(to) - table::offset(to))
}

fn rounded(value: f64, rounding: Rounding) -> f64 {
    let text = match rounding {
        Rounding::Exact => return value,
        Rounding::Decimals(digits) => format!("{value:.*}", usize::from(digits.min(DIGITS_MAX))),
        Rounding::Significant(digits) => format!("{value:.*e}", usize::from(digits.clamp(1, DIGITS_MAX) - 1)),
    };
    // What was written as a number is one; no digit of zero is below zero.
    text.parse().map_or(value, |value: f64| value + 0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn quantity(value: f64, unit: Unit) -> Quantity {
        Quantity { value, unit }
    }

    #[test]
    fn units_of_one_dimension_convert() {
        for (value, from, to, expected) in [
            (1.0, Unit::Mile, Unit::Kilometre, 1.60934),
            (100.0, Unit::Celsius, Unit::Fahrenheit, 212.0),
            (-40.0, Unit::Fahrenheit, Unit::Celsius, -40.0),
            (1.0, Unit::Gallon, Unit::Litre, 3.78541),
            (0.0, Unit::Stone, Unit::Pound, 0.0),
        ] {
            let converted = Units::convert(value, from, to, None).unwrap();
            assert_eq!((converted.value, converted.unit), (expected, to));
        }
        let exact = Units::convert(1.0, Unit::Inch, Unit::Metre, Some(Rounding::Exact)).unwrap();
        assert_eq!(exact.value, 0.0254);
        assert_eq!(Units::convert(2.0, Unit::Foot, Unit::Metre, Some(Rounding::Decimals(1))).unwrap().value, 0.6);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let incompatible = Units::convert(1.0, Unit::Metre, Unit::Gram, None).unwrap_err();
        assert!(matches!(incompatible, Problem::Incompatible(_)));
        let cold = Units::convert(-300.0, Unit::Celsius, Unit::Kelvin, None).unwrap_err();
        assert!(matches!(cold, Problem::BelowAbsoluteZero(least) if least == -273.15));
        assert!(matches!(Units::convert(f64::NAN, Unit::Day, Unit::Week, None).unwrap_err(), Problem::NotFinite));
        assert!(matches!(Units::split(quantity(1.0, Unit::Day), vec![]).unwrap_err(), Problem::NothingGiven));
    }

    #[test]
    fn texts_are_read() {
        for (text, value, unit) in [
            ("5 ft 11 in", 5.91667, Unit::Foot),
            ("2.5kg", 2.5, Unit::Kilogram),
            ("-40 °F", -40.0, Unit::Fahrenheit),
            ("1 hour, 30 minutes", 1.5, Unit::Hour),
            ("-1 h 30 min", -1.5, Unit::Hour),
        ] {
            let read = Units::read(text.to_owned()).unwrap();
            assert_eq!((read.value, read.unit), (value, unit), "{text}");
        }
        for text in ["", "  ", ","] {
            assert!(matches!(Units::read(text.to_owned()).unwrap_err(), Problem::NothingGiven), "{text:?}");
        }
        for (text, word) in [("5 parsecs", "parsecs"), ("about 5 m", "about"), ("5", "5")] {
            assert!(
                matches!(Units::read(text.to_owned()).unwrap_err(), Problem::NotUnderstood(found) if found == word)
            );
        }
        assert!(matches!(Units::read("1 m 2 kg".to_owned()).unwrap_err(), Problem::Incompatible(_)));
    }

    #[test]
    fn a_quantity_is_split_and_shown_everywhere() {
        let parts = Units::split(quantity(7384.0, Unit::Second), vec![Unit::Second, Unit::Hour, Unit::Minute]).unwrap();
        assert_eq!(parts.iter().map(|part| part.value).collect::<Vec<_>>(), [2.0, 3.0, 4.0]);
        let everywhere = Units::everywhere(quantity(0.0, Unit::Celsius)).unwrap();
        assert_eq!(everywhere.iter().map(|part| part.value).collect::<Vec<_>>(), [273.15, 32.0, 0.0]);
        assert_eq!(Units::everywhere(quantity(1.0, Unit::Day)).unwrap().len(), 5);
    }
}
