//! Weather in words: codes of the WMO as the service uses them, and the winds. Holds nothing else.

/// The words for a code of WMO table 4677, as far as the service has it.
pub fn in_words(code: u8) -> &'static str {
    match code {
        0 => "clear sky",
        1 => "mainly clear",
        2 => "partly cloudy",
        3 => "overcast",
        45 => "fog",
        48 => "fog with rime",
        51 => "light drizzle",
        53 => "drizzle",
        55 => "dense drizzle",
        56 => "light freezing drizzle",
        57 => "freezing drizzle",
        61 => "light rain",
        63 => "rain",
        65 => "heavy rain",
        66 => "light freezing rain",
        67 => "heavy freezing rain",
        71 => "light snow",
        73 => "snow",
        75 => "heavy snow",
        77 => "snow grains",
        80 => "light showers",
        81 => "showers",
        82 => "violent showers",
        85 => "light snow showers",
        86 => "heavy snow showers",
        95 => "thunderstorm",
        96 => "thunderstorm with light hail",
        99 => "thunderstorm with heavy hail",
        _ => "unknown",
    }
}

/// Where a wind comes from, of eight directions.
pub fn wind_from(degrees: f64) -> &'static str {
    const NAMES: [&str; 8] = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];
    // NaN becomes 0.
    let eighth = (degrees.rem_euclid(360.0) / 45.0).round() as usize % NAMES.len();
    NAMES.get(eighth).copied().unwrap_or("N")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn winds_have_names() {
        for (degrees, name) in [
            (0.0, "N"),
            (22.0, "N"),
            (23.0, "NE"),
            (180.0, "S"),
            (337.0, "NW"),
            (338.0, "N"),
            (-90.0, "W"),
            (f64::NAN, "N"),
        ] {
            assert_eq!(wind_from(degrees), name, "{degrees}");
        }
    }
}
