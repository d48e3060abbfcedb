//! Requested permissions: what a component needs to reach, as it carries them itself. They grant
//! nothing; grants beyond them cause a warning.
//!
//! The text is TOML, and has the keys with which a manifest narrows a tool:
//!
//! ```
//! use toolcell_policy::RequestedPermissions;
//! let text = r#"
//! env = ["UNITS"]
//! config = ["theme"]
//! secrets = ["API_KEY"]
//! keyvalue = true
//! filesystem = { "/data" = { access = "read" } }
//! network = { http = ["GET https://api.example.com/v1/*"] }
//! "#;
//! let requested = RequestedPermissions::parse(text).map_err(|problems| problems.len());
//! let rights = requested.map(|requested| requested.rights());
//! let expected = ["read /data", "GET https://api.example.com/v1/*", "env UNITS", "config theme", "keyvalue", "secret API_KEY"];
//! assert_eq!(rights, Ok(expected.map(str::to_owned).to_vec()));
//! ```
//!
//! | grant | lies within the requested permissions |
//! |---|---|
//! | a mount | a request for its path or one above gives its access, and none below gives less |
//! | a rule of `http`, `tcp` or `udp`, an entry of `private` | it lies within one that is requested |
//! | a variable, a setting, a secret | its name is requested |
//! | state | it is requested |
//! | scratch space, arguments, standard input, `ca`, `proxy` | always: they lead nowhere |

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Span};
use crate::grants::{Access, Capability, Network, Subject};
use crate::manifest::ComponentPolicy;
use crate::parse::document;
use crate::read::{Problems, Section};
use crate::rights::ALL;
use crate::table::{Keys, table};

/// Longest requested permissions, in bytes: a hundred long rules.
pub const REQUESTED_PERMISSIONS_BYTES_MAX: usize = 16 << 10;

/// Warnings for one component; one more says how many are left out.
const WARNINGS_MAX: usize = 20;

table! {
    /// All permissions that a component requests.
    REQUESTED_PERMISSIONS "Requested permissions" {}
    and Keys::OfRights(|right| right.keys_of_request);
    other names {
        "fs" => "filesystem", "files" => "filesystem", "http" => "network", "environment" => "env",
        "kv" => "keyvalue", "secret" => "secrets",
    }
}

/// All permissions that a component requests. [`RequestedPermissions::parse`] makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedPermissions {
    /// Paths of the guest's tree, in the order of the text.
    pub(crate) files: Vec<(String, Access)>,
    pub(crate) network: Network,
    /// Names by capability; an empty name if the capability stands alone.
    pub(crate) named: BTreeMap<Capability, Vec<String>>,
}

impl RequestedPermissions {
    /// Reads requested permissions: at most [`REQUESTED_PERMISSIONS_BYTES_MAX`] bytes, 64 entries
    /// of each kind, and 200 bytes of visible ASCII for each.
    ///
    /// # Errors
    /// Every problem at once, in the order of the text.
    pub fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let named = "the requested permissions have";
        let read = document(text, REQUESTED_PERMISSIONS_BYTES_MAX, "permissions::too_large", named, Self::read);
        read.map(|(requested, _)| requested)
    }

    fn read(root: &Section<'_>, problems: &mut Problems) -> Self {
        let network = Network::sealed(Arc::new(Subject::new("", None)));
        let mut requested = Self { files: Vec::new(), network, named: BTreeMap::new() };
        root.check_keys(&REQUESTED_PERMISSIONS, problems);
        for right in ALL {
            if let Some(entry) = root.get(right.section) {
                (right.read_request)(right, &entry, &mut requested, problems);
            }
        }
        requested
    }

    /// Each requested permission in the form of `toolcell grant`, without what only a person can
    /// add: the folder of a path, the value of a name. In a normal form of visible ASCII.
    #[must_use]
    pub fn rights(&self) -> Vec<String> {
        ALL.iter().flat_map(|right| (right.requested)(right, self)).collect()
    }

    pub(crate) fn names(&self, capability: Capability) -> &[String] {
        self.named.get(&capability).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn has(&self, capability: Capability, name: &str) -> bool {
        self.names(capability).iter().any(|request| request == name)
    }
}

impl ComponentPolicy {
    /// Compares the grants with the component's requests. Returns a warning for each grant that
    /// goes beyond.
    #[must_use]
    pub fn check_requested(&self, requested: &RequestedPermissions) -> Vec<Diagnostic> {
        // If a grant is not clearly within the requested permissions, it counts as beyond.
        let spans: Vec<Span> = ALL.iter().flat_map(|right| (right.beyond)(right, requested, self.grants())).collect();
        let warning = |span: &Span| {
            let message = format!("component {:?} is granted more than it requests", self.name());
            Diagnostic::warning("grants::beyond_requested", message)
                .at(span.clone())
                .label("it does not request this")
                .hint("remove it unless you know what for; `toolcell inspect` shows what a component requests")
        };
        let mut warnings: Vec<Diagnostic> = spans.iter().take(WARNINGS_MAX).map(warning).collect();
        if spans.len() > WARNINGS_MAX {
            let more = spans.len() - WARNINGS_MAX;
            let message = format!("component {:?} has {more} more grants beyond what it requests", self.name());
            warnings.push(Diagnostic::warning("grants::beyond_requested", message).at(self.name_span()));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, parse};

    const REQUESTED_PERMISSIONS: &str = r#"
        env = ["UNITS"]
        config = ["theme"]
        secrets = ["API_KEY"]
        keyvalue = true
        [filesystem]
        "/data" = {}
        "/data/out" = { access = "write" }
        [network]
        http = ["GET,HEAD https://api.example.com/v1/*", "https://*.example.org", "http://127.0.0.1:8080"]
        tcp = ["db.example.com:5000-6000", "10.0.0.0/8:5432"]
        udp = ["8.8.8.0/24:53"]
        private = ["127.0.0.1:8080", "10.0.0.0/8:5432", "169.254.0.0/16"]
    "#;

    fn requested(text: &str) -> RequestedPermissions {
        RequestedPermissions::parse(text).unwrap_or_else(|problems| panic!("{problems:#?}"))
    }

    /// The parts of the manifest's text that go beyond the requested permissions.
    fn beyond(requested: &RequestedPermissions, tables: &str) -> Vec<String> {
        let text = format!("version = 1\n[components.c]\nsource = \"c.wasm\"\n{tables}\n");
        let parsed = parse(&Source { name: "toolcell.toml", text: &text });
        let manifest = parsed.unwrap_or_else(|problems| panic!("{tables}: {problems:#?}")).manifest;
        let found = manifest.components()[0].check_requested(requested);
        assert!(found.iter().all(|warning| warning.severity() == crate::Severity::Warning));
        found.iter().map(|warning| text[warning.span().unwrap().clone()].to_owned()).collect()
    }

    #[test]
    fn grants_lie_within_the_requested_permissions_or_their_line_is_named() {
        let requested = requested(REQUESTED_PERMISSIONS);
        for (tables, expected) in [
            ("", ""),
            ("network = { http = [\"GET https://api.example.com/v1/*\"] }", ""),
            ("network = { http = [\"GET https://api.example.com/v1/now\"] }", ""),
            ("network = { http = [\"HEAD https://api.example.com/v1/*/x\"] }", ""),
            ("network = { http = [\"DELETE https://a.b.example.org/x\"] }", ""),
            ("network = { http = [\"https://*.b.example.org\"] }", ""),
            ("network = { http = [\"https://api.example.com/v1/*\"] }", "\"https://api.example.com/v1/*\""),
            ("network = { http = [\"GET https://api.example.com\"] }", "\"GET https://api.example.com\""),
            ("network = { http = [\"GET https://api.example.com/v1\"] }", "\"GET https://api.example.com/v1\""),
            ("network = { http = [\"GET http://api.example.com/v1/*\"] }", "\"GET http://api.example.com/v1/*\""),
            (
                "network = { http = [\"GET https://api.example.com:444/v1/*\"] }",
                "\"GET https://api.example.com:444/v1/*\"",
            ),
            ("network = { http = [\"GET https://example.org\"] }", "\"GET https://example.org\""),
            ("network = { http = [\"GET https://*\"] }", "\"GET https://*\""),
            ("network = { http = [\"http://127.0.0.1:8080\"], private = [\"127.0.0.1:8080\"] }", ""),
            (
                "network = { http = [\"http://127.0.0.1:8080\"], private = [\"127.0.0.0/8:8080\"] }",
                "\"127.0.0.0/8:8080\"",
            ),
            ("network = { http = [\"http://127.0.0.1:8080\"], private = [\"127.0.0.1\"] }", "\"127.0.0.1\""),
            (
                "network = { http = [\"http://x.example.org\"], private = [\"169.254.169.254\"] }",
                "\"http://x.example.org\" \"169.254.169.254\"",
            ),
            ("network = { tcp = [\"db.example.com:5432\"] }", ""),
            ("network = { tcp = [\"10.1.0.0/16:5432\"], private = [\"10.1.0.0/16:5432\"] }", ""),
            ("network = { tcp = [\"db.example.com:5000-6001\"] }", "\"db.example.com:5000-6001\""),
            ("network = { tcp = [\"*.example.com:5432\"] }", "\"*.example.com:5432\""),
            ("network = { udp = [\"8.8.8.1:53\"] }", ""),
            ("network = { udp = [\"8.8.8.0/23:53\"] }", "\"8.8.8.0/23:53\""),
            ("network = { udp = [\"db.example.com:5432\"] }", "\"db.example.com:5432\""),
            ("filesystem = { \"/data\" = { path = \"d\" } }", ""),
            ("filesystem = { \"/data/in\" = { path = \"d\" } }", ""),
            ("filesystem = { \"/data/out/x\" = { path = \"d\", access = \"write\" } }", ""),
            ("filesystem = { \"/tmp\" = { scratch = \"8MiB\" } }", ""),
            ("filesystem = { \"/data\" = { path = \"d\", access = \"write\" } }", "\"/data\""),
            ("filesystem = { \"/database\" = { path = \"d\" } }", "\"/database\""),
            ("filesystem = { \"/\" = { path = \"d\" } }", "\"/\""),
            ("env = { UNITS = \"metric\" }", ""),
            ("env = { UNITS = \"metric\", HOME = { from = \"env:HOME\" } }", "HOME"),
            ("config = { theme = \"dark\" }", ""),
            ("config = { theme = \"dark\", other = \"x\" }", "config"),
            ("keyvalue = {}", ""),
            ("args = [\"--fast\"]\nstdin = \"x\"", ""),
        ] {
            assert_eq!(beyond(&requested, tables).join(" "), expected, "{tables}");
        }
        let secret = "network = { http = [\"GET https://api.example.com/v1/now\"] }\n[components.c.secrets]\n\
                      NAME = { from = \"env:A\", header = \"a\", for = \"https://api.example.com\" }";
        assert_eq!(beyond(&requested, &secret.replace("NAME", "API_KEY")), Vec::<String>::new());
        assert_eq!(beyond(&requested, secret), ["NAME"]);
    }

    #[test]
    fn no_requested_permissions_at_all_are_a_ceiling_too() {
        let none = requested("");
        assert_eq!(none.rights(), Vec::<String>::new());
        let tables = "keyvalue = {}\nenv = { A = \"b\" }\nnetwork = { tcp = [\"db.example.com:1\"] }\n\
                      filesystem = { \"/data\" = { path = \"d\" } }";
        assert_eq!(beyond(&none, tables), ["\"/data\"", "\"db.example.com:1\"", "A", "keyvalue"]);
        let rules: Vec<String> = (0..100).map(|number| format!("\"https://h{number}.example\"")).collect();
        let many = beyond(&none, &format!("network = {{ http = [{}] }}", rules.join(", ")));
        assert_eq!((many.len(), many.last().map(String::as_str)), (WARNINGS_MAX + 1, Some("c")));
    }

    #[test]
    fn a_folder_within_another_keeps_its_own_access() {
        let requested =
            requested("filesystem = { \"/\" = { access = \"write\" }, \"/fixed\" = { access = \"read\" } }");
        let mount = |path: &str, access: &str| {
            beyond(&requested, &format!("filesystem = {{ \"{path}\" = {{ path = \"d\", access = \"{access}\" }} }}"))
        };
        assert!(
            mount("/a", "write").is_empty() && mount("/fixed/x", "read").is_empty() && mount("/", "read").is_empty()
        );
        assert_eq!(mount("/", "write"), ["\"/\""], "it would write to /fixed");
        assert_eq!(mount("/fixed/x", "write"), ["\"/fixed/x\""]);
    }

    #[test]
    fn every_problem_of_requested_permissions_is_reported_at_once() {
        let codes = |text: &str| -> Vec<&'static str> {
            RequestedPermissions::parse(text).unwrap_err().iter().map(Diagnostic::code).collect()
        };
        assert_eq!(
            codes(
                "source = \"x\"\nkeyvalue = 1\n[network]\nhttp = [\"nonsense\"]\nca = [\"x\"]\n[filesystem]\ndata = {}\n"
            ),
            ["manifest::unknown_key", "manifest::type", "grants::rule", "manifest::unknown_key", "grants::mount"]
        );
        for (text, code) in [
            ("env = [", "manifest::syntax"),
            ("env = [\"A\\u001b[2J\"]", "grants::name"),
            ("env = [\"A B\"]", "grants::name"),
            ("env = [\"Ä\"]", "permissions::text"),
            ("secrets = [\"a\\u202eb\"]", "permissions::text"),
            ("filesystem = { \"/a b\" = {} }", "permissions::text"),
            ("network = { http = [\"https://example.com/ä\"] }", "permissions::text"),
            ("filesystem = { \"/a\" = { path = \"/etc\" } }", "manifest::unknown_key"),
            ("filesystem = { \"/a\" = {}, \"/a/\" = {} }", "grants::duplicate"),
            ("network = { http = [\"http://127.0.0.1\"] }", "grants::unreachable"),
        ] {
            assert_eq!(codes(text), [code], "{text}");
        }
        let long = format!("env = [\"{}\"]", "a".repeat(201));
        assert_eq!(codes(&long), ["permissions::text"]);
        let many: Vec<String> = (0..65).map(|number| format!("\"A{number}\"")).collect();
        assert_eq!(codes(&format!("env = [{}]", many.join(","))), ["grants::too_many"]);
        assert_eq!(codes(&"#".repeat(REQUESTED_PERMISSIONS_BYTES_MAX + 1)), ["permissions::too_large"]);
        let deep = format!("env = {}{}", "[".repeat(500), "]".repeat(500));
        assert!(!codes(&deep).is_empty());
    }
}
