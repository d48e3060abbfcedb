//! The names of the months. Holds nothing else.

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The name of a month, 1 to 12; of any other number an empty text.
#[must_use]
pub fn month_name(month: usize) -> &'static str {
    MONTHS.get(month.wrapping_sub(1)).copied().unwrap_or("")
}
