//! The units: what they measure, how large they are, what they are called.
use crate::bindings::{Dimension, Unit};

/// A unit's size in its dimension's smallest round unit (metre, gram, litre, second, kelvin), and what it is called in
/// texts, in lower case.
const UNITS: [(Unit, Dimension, f64, &[&str]); 31] = [
    (Unit::Millimetre, Dimension::Length, 0.001, &["mm", "millimetre", "millimeter"]),
    (Unit::Centimetre, Dimension::Length, 0.01, &["cm", "centimetre", "centimeter"]),
    (Unit::Inch, Dimension::Length, 0.0254, &["in", "inch", "inche", "\"", "″"]),
    (Unit::Foot, Dimension::Length, 0.3048, &["ft", "foot", "feet", "'", "′"]),
    (Unit::Yard, Dimension::Length, 0.9144, &["yd", "yard"]),
    (Unit::Metre, Dimension::Length, 1.0, &["m", "metre", "meter"]),
    (Unit::Kilometre, Dimension::Length, 1000.0, &["km", "kilometre", "kilometer"]),
    (Unit::Mile, Dimension::Length, 1609.344, &["mi", "mile"]),
    (Unit::NauticalMile, Dimension::Length, 1852.0, &["nmi", "nm"]),
    (Unit::Gram, Dimension::Mass, 1.0, &["g", "gram"]),
    (Unit::Ounce, Dimension::Mass, 28.349_523_125, &["oz", "ounce"]),
    (Unit::Pound, Dimension::Mass, 453.592_37, &["lb", "pound"]),
    (Unit::Kilogram, Dimension::Mass, 1000.0, &["kg", "kilogram"]),
    (Unit::Stone, Dimension::Mass, 6_350.293_18, &["st", "stone"]),
    (Unit::Tonne, Dimension::Mass, 1_000_000.0, &["t", "tonne"]),
    (Unit::Millilitre, Dimension::Volume, 0.001, &["ml", "millilitre", "milliliter"]),
    (Unit::Teaspoon, Dimension::Volume, 0.004_928_921_593_75, &["tsp", "teaspoon"]),
    (Unit::Tablespoon, Dimension::Volume, 0.014_786_764_781_25, &["tbsp", "tablespoon"]),
    (Unit::Cup, Dimension::Volume, 0.236_588_236_5, &["cup"]),
    (Unit::Pint, Dimension::Volume, 0.473_176_473, &["pt", "pint"]),
    (Unit::Litre, Dimension::Volume, 1.0, &["l", "litre", "liter"]),
    (Unit::Gallon, Dimension::Volume, 3.785_411_784, &["gal", "gallon"]),
    (Unit::CubicMetre, Dimension::Volume, 1000.0, &["m3", "m³"]),
    (Unit::Second, Dimension::Time, 1.0, &["s", "sec", "second"]),
    (Unit::Minute, Dimension::Time, 60.0, &["min", "minute"]),
    (Unit::Hour, Dimension::Time, 3600.0, &["h", "hr", "hour"]),
    (Unit::Day, Dimension::Time, 86_400.0, &["d", "day"]),
    (Unit::Week, Dimension::Time, 604_800.0, &["w", "week"]),
    (Unit::Kelvin, Dimension::Temperature, 1.0, &["k", "kelvin"]),
    (Unit::Fahrenheit, Dimension::Temperature, 5.0 / 9.0, &["f", "°f", "fahrenheit"]),
    (Unit::Celsius, Dimension::Temperature, 1.0, &["c", "°c", "celsius"]),
];

fn row(unit: Unit) -> (Dimension, f64) {
    let row = UNITS.iter().find(|row| row.0 == unit);
    row.map_or((Dimension::Length, 1.0), |row| (row.1, row.2))
}

/// What the unit measures.
pub fn dimension(unit: Unit) -> Dimension {
    row(unit).0
}

/// How large the unit is.
pub fn size(unit: Unit) -> f64 {
    row(unit).1
}

/// What is added to a value so that zero means nothing.
pub fn offset(unit: Unit) -> f64 {
    match unit {
        Unit::Celsius => 273.15,
        Unit::Fahrenheit => 459.67,
        _ => 0.0,
    }
}

/// Whether there is nothing below zero.
pub fn is_bounded(unit: Unit) -> bool {
    dimension(unit) == Dimension::Temperature
}

/// Every unit of a dimension, from the smallest to the largest.
pub fn units_of(dimension: Dimension) -> impl Iterator<Item = Unit> {
    UNITS.iter().filter(move |row| row.1 == dimension).map(|row| row.0)
}

/// The unit of this name, with or without the `s` of several.
pub fn named(name: &str) -> Option<Unit> {
    let name = name.to_lowercase();
    let exact = |name: &str| UNITS.iter().find(|row| row.3.contains(&name)).map(|row| row.0);
    exact(&name).or_else(|| exact(name.strip_suffix('s').filter(|name| name.len() > 1)?))
}
