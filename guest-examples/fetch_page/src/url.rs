//! As much of URLs as links and redirects need: joining. The host decides what a URL means; nothing is decided here.

/// A URL's scheme, authority, and the rest.
pub fn parts(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    (!authority.is_empty()).then_some((scheme, authority, path))
}

/// Where a link of a page leads.
pub fn joined(base: &str, link: &str) -> String {
    let Some((scheme, authority, path)) = parts(base) else { return link.to_owned() };
    let path = path.split(['?', '#']).next().unwrap_or("");
    let has_scheme = link.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    });
    match link {
        _ if has_scheme => link.to_owned(),
        _ if link.starts_with("//") => format!("{scheme}:{link}"),
        _ if link.starts_with('/') => format!("{scheme}://{authority}{}", tidy(link)),
        _ if link.starts_with('#') || link.is_empty() => format!("{scheme}://{authority}{path}{link}"),
        _ if link.starts_with('?') => format!("{scheme}://{authority}{path}{link}"),
        _ => {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{scheme}://{authority}{}", tidy(&format!("{folder}/{link}")))
        }
    }
}

/// A path without `.` and `..`; what follows it stays.
fn tidy(path: &str) -> String {
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let (path, rest) = path.split_at_checked(end).unwrap_or((path, ""));
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (number, part) in parts.iter().enumerate() {
        let is_last = number + 1 == parts.len();
        match *part {
            "." if is_last => kept.push(""),
            "." => {}
            ".." => {
                kept.pop();
                if is_last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}{rest}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_where_a_browser_would_go() {
        let base = "https://a.example:8443/docs/one/page.html?q=1#part";
        for (link, goal) in [
            ("two.html", "https://a.example:8443/docs/one/two.html"),
            ("../two/", "https://a.example:8443/docs/two/"),
            ("../../../x", "https://a.example:8443/x"),
            (".", "https://a.example:8443/docs/one/"),
            ("/root?x=../y", "https://a.example:8443/root?x=../y"),
            ("//b.example/z", "https://b.example/z"),
            ("http://c.example/", "http://c.example/"),
            ("mailto:me@a.example", "mailto:me@a.example"),
            ("?q=2", "https://a.example:8443/docs/one/page.html?q=2"),
            ("#end", "https://a.example:8443/docs/one/page.html#end"),
            ("", "https://a.example:8443/docs/one/page.html"),
        ] {
            assert_eq!(joined(base, link), goal, "{link}");
        }
        assert_eq!(joined("https://a.example", "x"), "https://a.example/x");
    }
}
