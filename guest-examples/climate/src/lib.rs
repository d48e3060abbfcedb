//! The usual weather of some cities, as a table, and ways to find a city in it: what the examples
//! `weather` and `weather_live` share. Must hold no tool and no reading of arguments.

mod city;
mod month;
mod place;
mod units;

pub use city::{CITIES, City};
pub use month::month_name;
pub use place::{Unknown, find, known_as, of_country};
pub use units::{Depth, Units};
