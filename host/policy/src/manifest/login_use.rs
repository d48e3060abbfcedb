//! Which callers may use which logins, as far as the manifest says it: a login of a caller without
//! such a right is ended.

use std::collections::{BTreeMap, BTreeSet};

use super::{Callers, Manifest};

/// The logins of callers that components use, and the rules for callers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoginUse {
    callers: Callers,
    /// By login, the components that use it.
    components: BTreeMap<String, BTreeSet<String>>,
}

impl LoginUse {
    /// That of this manifest.
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let mut components: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for component in manifest.components() {
            for login in component.grants().caller_logins() {
                components.entry(login.name().to_owned()).or_default().insert(component.name().to_owned());
            }
        }
        Self { callers: manifest.callers().clone(), components }
    }

    /// True if the caller of this name may call something that uses the login. Scopes are not
    /// known here, so a caller may have any; nor are the tools of a component, so a rule that
    /// names a tool as clients see it may mean one of any component.
    #[must_use]
    pub fn allows(&self, login: &str, caller: &str) -> bool {
        let components = self.components.get(login);
        components.is_some_and(|names| names.iter().any(|name| self.callers.may_reach(caller, name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;

    const NOTES: &str = "[http]\ntokens = \"tokens.jsonl\"\n[oauth.notes]\nof = \"caller\"\nissuer = \"https://a.example\"\nclient_id = \"desk\"\n\
                         [components.c]\nsource = \"c.wasm\"\nnetwork = { http = [\"https://a.example\"] }\n\
                         [components.c.secrets]\nN = { from = \"oauth:notes\", header = \"x\", for = \"https://a.example\" }\n\
                         [components.other]\nsource = \"d.wasm\"\n";

    fn login_use(rules: &str) -> LoginUse {
        let text = format!("version = 1\n{NOTES}{rules}");
        let parsed = crate::parse(&Source { name: "test", text: &text });
        parsed.unwrap_or_else(|problems| panic!("{rules}: {problems:?}")).manifest.login_use()
    }

    #[test]
    fn a_caller_may_use_a_login_while_a_rule_lets_it_call_what_uses_it() {
        for (rules, ann, local) in [
            ("", true, true),
            ("[callers.default]\ntools = [\"*\"]", true, true),
            ("[callers.default]\ntools = [\"other/*\"]", false, true),
            ("[callers.default]\ntools = []", false, true),
            ("[callers.team]\nnames = [\"ann\"]\ntools = [\"c/*\"]", true, true),
            ("[callers.team]\nnames = [\"ann\"]\ntools = [\"c/read\"]", true, true),
            ("[callers.team]\nnames = [\"ann\"]\ntools = [\"seen_as\"]", true, true),
            ("[callers.team]\nnames = [\"ann\"]\ntools = [\"other/*\"]", false, true),
            ("[callers.team]\nnames = [\"bob\"]\ntools = [\"c/*\"]", false, true),
            ("[callers.team]\nnames = [\"local\"]\ntools = [\"other/*\"]", false, false),
            ("[callers.team]\nscopes = [\"notes\"]\ntools = [\"c/*\"]", true, true),
            // A rule with its name is the only one that holds.
            (
                "[callers.team]\nnames = [\"ann\"]\ntools = [\"other/*\"]\n[callers.all]\nscopes = [\"s\"]\ntools = [\"*\"]",
                false,
                true,
            ),
        ] {
            let login_use = login_use(rules);
            assert_eq!((login_use.allows("notes", "ann"), login_use.allows("notes", "local")), (ann, local), "{rules}");
            assert!(!login_use.allows("else", "ann"));
        }
        assert_eq!(login_use(""), login_use(""));
        assert_ne!(login_use(""), login_use("[callers.default]\ntools = [\"*\"]"));
    }
}
