//! The grants of a component or a tool in words.

use crate::diagnostic::Span;
use crate::grants::{Capability, Grants};
use crate::rights::ALL;
use crate::settings::accessors;

accessors! {
    /// One line of a table: a kind of reach and how far it goes.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ReachRow {
        /// The kind of reach.
        capability: Capability => Capability,
        /// Its extent: `read /data from "data"`, `GET https://api.example.com/v1/*`. Holds no value
        /// of a secret.
        text: String => &str,
        /// Its place in the manifest.
        span: Option<Span> => Option<Span>,
    }
}

impl ReachRow {
    pub(crate) const fn new(capability: Capability, text: String, span: Option<Span>) -> Self {
        Self { capability, text, span }
    }
}

impl Grants {
    /// Everything that can be reached, one row for each rule, mount, variable and secret; empty
    /// without grants.
    #[must_use]
    pub fn reach(&self) -> Vec<ReachRow> {
        ALL.iter().flat_map(|right| (right.reach)(right, self)).collect()
    }

    /// The lines of a lock's difference, sorted: one for each right, so that an added line is an
    /// added right.
    #[must_use]
    pub fn lock_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = ALL.iter().flat_map(|right| (right.lock_lines)(right, self)).collect();
        lines.sort();
        lines
    }

    /// The [lines](Self::lock_lines) of rights that these grants have and the others lack; empty if
    /// the others reach as much. A rule within a wider one of the others is not one that they lack.
    #[must_use]
    pub fn beyond(&self, others: &Self) -> Vec<String> {
        let mut own = self.clone();
        let network = &mut own.network;
        let wider = &others.network;
        network.http.retain(|rule| !wider.allows_all_of(rule));
        network.tcp.retain(|rule| !wider.tcp.iter().any(|wider| rule.lies_within(wider)));
        network.udp.retain(|rule| !wider.udp.iter().any(|wider| rule.lies_within(wider)));
        let private = network.private.iter().filter(|rule| !wider.private.iter().any(|wider| rule.lies_within(wider)));
        network.private = private.cloned().collect();
        own.calls.retain(|rule| !others.calls.iter().any(|wider| rule.lies_within(wider)));
        let theirs = others.lock_lines();
        own.lock_lines().into_iter().filter(|line| !theirs.contains(line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Source, parse};

    #[test]
    fn a_rule_within_a_wider_one_is_not_lacking() {
        let table = [
            (r#"calls = ["slow", "weather_*"]"#, r#"calls = ["*"]"#, ""),
            (r#"calls = ["*"]"#, r#"calls = ["slow", "weather_*"]"#, "call *"),
            (r#"calls = ["slow", "weather_*"]"#, r#"calls = ["s*", "weather_now"]"#, "call weather_*"),
            (
                r#"network = { http = ["https://a.example/x"] }"#,
                r#"network = { http = ["https://*.example/*", "https://a.example/*"] }"#,
                "",
            ),
            (
                r#"network = { http = ["https://a.example/*"] }"#,
                r#"network = { http = ["https://a.example/x"] }"#,
                "http https://a.example",
            ),
            (
                r#"network = { tcp = ["a.example:443"] }"#,
                r#"network = { tcp = ["*.example:443", "a.example:400-500"] }"#,
                "",
            ),
            (r#"network = { udp = ["9.9.9.0/24:53"] }"#, r#"network = { udp = ["9.9.9.9:53"] }"#, "udp 9.9.9.0/24:53"),
            (
                r#"network = { tcp = ["10.0.0.1:53"], private = ["10.0.0.1:53"] }"#,
                r#"network = { tcp = ["10.0.0.0/8:53"], private = ["10.0.0.0/8:53"] }"#,
                "",
            ),
            (r#"env = { A = "1" }"#, "", "variable A = \"1\""),
            ("", r#"env = { A = "1" }"#, ""),
        ];
        for (own, others, expected) in table {
            let [own, others] = [own, others].map(|lines| {
                let text = format!("version = 1\n[components.a]\nsource = \"a.wasm\"\n{lines}\n");
                parse(&Source { name: "test", text: &text }).unwrap_or_else(|problems| panic!("{problems:?}"))
            });
            let [own, others] = [&own, &others].map(|parsed| parsed.manifest.component("a").unwrap().grants());
            assert_eq!(own.beyond(others).join("; "), expected);
        }
    }
}
