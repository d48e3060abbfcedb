//! The page in the older text form of Prometheus (0.0.4), which tools such as `promtool` read.

/// The page of OpenMetrics in the older form: its comments use the full names of samples, it has
/// fewer types, and neither units nor an end marker.
pub fn of(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), meaning) => help = Some((name, meaning.unwrap_or_default())),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                // //The suffix that the samples of this figure have.
                let (suffix, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    other => ("", other),
                };
                if let Some((_, meaning)) = help.take().filter(|(named, _)| *named == name) {
                    text.push_str(&format!("# HELP {name}{suffix} {meaning}\n"));
                }
                text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
            }
            (Some("#"), ..) => {}
            _ => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_and_types_are_those_of_the_older_form() {
        let page = "# HELP a_build The program.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
                    # HELP a_calls Calls of \"all\".\n# TYPE a_calls counter\na_calls_total{tool=\"# EOF\"} 5\n\
                    # HELP a_time_seconds Time.\n# TYPE a_time_seconds histogram\n# UNIT a_time_seconds seconds\n\
                    a_time_seconds_sum 0.5\na_time_seconds_count 1\na_time_seconds_bucket{le=\"+Inf\"} 1\n\
                    # HELP a_now Now.\n# TYPE a_now gauge\na_now 2\n# EOF\n";
        let expected = "# HELP a_build_info The program.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n\
                        # HELP a_calls_total Calls of \"all\".\n# TYPE a_calls_total counter\n\
                        a_calls_total{tool=\"# EOF\"} 5\n\
                        # HELP a_time_seconds Time.\n# TYPE a_time_seconds histogram\n\
                        a_time_seconds_sum 0.5\na_time_seconds_count 1\na_time_seconds_bucket{le=\"+Inf\"} 1\n\
                        # HELP a_now Now.\n# TYPE a_now gauge\na_now 2\n";
        assert_eq!(of(page), expected);
    }
}
