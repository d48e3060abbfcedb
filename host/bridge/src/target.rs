//! The path of an operation as documents write it: perhaps with a query, and with a fragment that
//! only tells operations apart.
use crate::limits::PATH_BYTES_MAX;
use crate::server::is_segment;

/// A path without what follows it, and its query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) path: &'a str,
    query: &'a str,
}

impl<'a> Target<'a> {
    pub(crate) fn of(written: &'a str) -> Self {
        let sent = written.split('#').next().unwrap_or_default();
        let (path, query) = sent.split_once('?').unwrap_or((sent, ""));
        Self { path, query }
    }

    /// A path that has neither.
    pub(crate) const fn of_path(path: &'a str) -> Self {
        Self { path, query: "" }
    }

    /// Parts of the query whose value is a parameter, with its name.
    pub(crate) fn in_query(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.parts().filter_map(|(name, value)| Some((name, braced(value)?)))
    }

    /// The parts of the query that never change, with what joins them to the path; may be empty.
    pub(crate) fn fixed(&self) -> String {
        let fixed = self.query.split('&').filter(|part| !part.is_empty() && !part.contains('{'));
        let fixed: Vec<&str> = fixed.collect();
        if fixed.is_empty() { String::new() } else { format!("?{}", fixed.join("&")) }
    }

    /// Why no request can be made for it; `None` if one can.
    pub(crate) fn problem(&self, method: &str) -> Option<&'static str> {
        let is_plain = |text: &str| text.is_empty() || is_segment(text);
        let is_part = |(name, value): (&str, &str)| is_plain(name) && (braced(value).is_some() || is_plain(value));
        match () {
            () if matches!(method, "OPTIONS" | "TRACE") => Some("is a method that no tool needs"),
            () if !self.path.starts_with('/') || self.path.len() > PATH_BYTES_MAX => Some("has no proper path"),
            () if !self.path.split('/').all(is_template) => Some("has a path that servers may read in several ways"),
            () if self.query.len() > PATH_BYTES_MAX || !self.parts().all(is_part) => {
                Some("has a query in its path that servers may read in several ways")
            }
            () => None,
        }
    }

    fn parts(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let parts = self.query.split('&').filter(|part| !part.is_empty());
        parts.map(|part| part.split_once('=').unwrap_or((part, "")))
    }
}

fn braced(value: &str) -> Option<&str> {
    let name = value.strip_prefix('{')?.strip_suffix('}')?;
    (!name.is_empty() && !name.contains(['{', '}'])).then_some(name)
}

/// True for a segment that is plain but for parameters.
fn is_template(segment: &str) -> bool {
    let mut text = String::new();
    let mut rest = segment;
    while let Some((before, behind)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, behind)) = behind.split_once('}').filter(|(name, _)| !name.is_empty()) else {
            return false;
        };
        if name.contains('{') {
            return false;
        }
        text.push('x');
        rest = behind;
    }
    text.push_str(rest);
    is_segment(&text)
}
