//! Reports grants for capabilities that a component does not import: they can never be used.

use crate::diagnostic::{Diagnostic, Span};
use crate::grants::Capability;
use crate::manifest::ComponentPolicy;
use crate::rights::ALL;
use crate::rights::args::ARGS;
use crate::rights::env::ENV;
use crate::rights::stdin::STDIN;

/// A grant, and imports of which any can use it.
pub(crate) struct Use {
    pub(crate) what: &'static str,
    /// Where it is granted, if it is.
    pub(crate) span: Option<Span>,
    pub(crate) imports: &'static [&'static str],
}

impl Use {
    /// True if a component with these imports can use it.
    fn is_possible(&self, imports: &[String]) -> bool {
        imports.iter().any(|import| self.imports.iter().any(|prefix| import.starts_with(prefix)))
    }

    /// What a component that cannot use it lacks.
    fn lack(&self) -> String {
        let wanted: Vec<&str> = self.imports.iter().map(|import| import.trim_end_matches(['@', '/'])).collect();
        format!("it does not import {}", wanted.join(" or "))
    }
}

/// Why a component with these imports cannot use what a rule would grant, as a sentence without a
/// full stop; `None` if it can.
pub(crate) fn unusable(capability: Capability, imports: &[String]) -> Option<String> {
    let used = ALL.iter().find(|right| right.evidence == Some(capability))?.used(None);
    let is_known = !used.imports.is_empty() && !used.is_possible(imports);
    is_known.then(|| format!("the component cannot use {}: {}", used.what, used.lack()))
}

impl ComponentPolicy {
    /// Compares the component's grants with the interfaces it really imports, as they are named in
    /// it: `wasi:http/outgoing-handler@0.2.4`. Returns an error for each grant that the component
    /// cannot use.
    #[must_use]
    pub fn check_imports(&self, imports: &[String]) -> Vec<Diagnostic> {
        let unused = self.uses().into_iter().filter(|used| !used.is_possible(imports));
        let problems = unused.filter_map(|used| {
            let span = used.span.clone()?;
            let name = self.name();
            let what = used.what;
            Some(
                Diagnostic::error("grants::not_imported", format!("component {name:?} cannot use {what}"))
                    .at(span)
                    .label(used.lack())
                    .hint("remove the grant; toolcell inspect shows what a component imports"),
            )
        });
        problems.collect()
    }

    /// The grants and program settings, each with the imports that can use it.
    fn uses(&self) -> Vec<Use> {
        let mut uses: Vec<Use> = ALL.iter().flat_map(|right| (right.uses)(right, self.grants())).collect();
        for program in self.tools().iter().filter_map(|tool| tool.program()) {
            let says = |it: bool| it.then(|| program.span());
            uses.push(ARGS.used(says(!program.args.is_empty())));
            uses.push(ENV.used(says(!program.env.is_empty())));
            uses.push(STDIN.used(says(program.stdin.is_some())));
        }
        uses
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::{Ask, Source, Style, parse, render_all};

    const TEXT: &str = "version = 1
[components.a]
source = 'a.wasm'
args = ['x']
stdin = 'y'
filesystem = { '/data' = { path = 'data' } }
network = { http = ['https://a.example'], tcp = ['a.example:1'], udp = ['a.example:1'] }
env = { A = '1' }
config = { b = '2' }
keyvalue = {}
[components.a.secrets]
K = { from = 'env:K', header = 'x-key', for = 'https://a.example' }
L = { from = 'env:L', expose = true }
";

    fn unused(imports: &[&str]) -> Vec<String> {
        let manifest = parse(&Source { name: "m.toml", text: TEXT }).unwrap().manifest;
        let imports: Vec<String> = imports.iter().map(|import| (*import).to_owned()).collect();
        let problems = manifest.component("a").unwrap().check_imports(&imports);
        problems.iter().map(|problem| TEXT.get(problem.span().unwrap().clone()).unwrap().to_owned()).collect()
    }

    #[test]
    fn each_grant_needs_an_import_that_can_use_it() {
        let everything = [
            "wasi:filesystem/types@0.2.6",
            "wasi:http/outgoing-handler@0.2.6",
            "wasi:sockets/tcp@0.2.6",
            "wasi:sockets/udp@0.2.6",
            "wasi:cli/environment@0.2.6",
            "wasi:cli/stdin@0.2.6",
            "wasi:config/store@0.2.0-rc.1",
            "wasi:keyvalue/store@0.2.0-draft2",
        ];
        assert_eq!(unused(&everything), Vec::<String>::new());
        for (without, expected) in [
            (0, vec!["filesystem"]),
            (1, vec!["'https://a.example'", "K"]),
            (2, vec!["'a.example:1'"]),
            (3, vec!["'a.example:1'"]),
            (4, vec!["env", "args"]),
            (5, vec!["stdin"]),
            (6, vec!["config"]),
            (7, vec!["keyvalue"]),
        ] {
            let mut imports = everything.to_vec();
            imports.remove(without);
            assert_eq!(unused(&imports), expected, "without {}", everything[without]);
        }
        let neither: Vec<&str> = everything
            .iter()
            .copied()
            .filter(|name| !name.contains("environment") && !name.contains("config"))
            .collect();
        assert_eq!(unused(&neither), ["env", "args", "config", "L"]);
        assert_eq!(unused(&["wasi:http/types@0.2.6", "wasi:clocks/wall-clock@0.2.6"]).len(), 11);
    }

    #[test]
    fn an_explanation_advises_no_line_that_the_component_cannot_use() {
        let manifest = parse(&Source { name: "m.toml", text: TEXT }).unwrap().manifest;
        let grants = manifest.component("a").unwrap().grants();
        for (asked, import, note) in [
            (
                "GET https://b.example/",
                "wasi:http/client@0.3.0",
                "the component cannot use HTTP requests: it does not import wasi:http/outgoing-handler or wasi:http/client",
            ),
            (
                "tcp b.example:1",
                "wasi:sockets/tcp@0.2.6",
                "the component cannot use TCP: it does not import wasi:sockets/tcp",
            ),
            ("read /x", "wasi:filesystem/types@0.2.6", "it does not import wasi:filesystem"),
            ("env B", "wasi:cli/environment@0.2.6", "it does not import wasi:cli/environment"),
            ("config x", "wasi:config/store@0.2.0-rc.1", "it does not import wasi:config"),
            ("call b", "toolcell:mcp/calling@1.3.0", "it does not import toolcell:mcp/calling"),
        ] {
            let explained = |imports: &[String]| grants.explain(&Ask::parse(asked).unwrap()).for_imports(imports);
            let usable = explained(&[import.to_owned()]);
            assert_eq!(usable, grants.explain(&Ask::parse(asked).unwrap()), "{asked}");
            let unusable = explained(&[]);
            assert!(unusable.denial().unwrap().allows().is_empty(), "{asked}");
            assert!(unusable.notes().iter().any(|found| found.contains(note)), "{asked}: {:?}", unusable.notes());
        }
        let allowed = grants.explain(&Ask::parse("GET https://a.example/").unwrap());
        assert_eq!(allowed.clone().for_imports(&[]), allowed);
    }

    #[test]
    fn what_a_program_is_run_with_needs_an_import_as_well() {
        let text = "version = 1\n[components.a]\nsource = 'a'\n[components.a.tools.t]\ndescription = 'd'\ninput = { x = 'x' }\n\
                    args = ['{x}']\nstdin = '{x}'\nenv = { X = '{x}' }\n";
        let manifest = parse(&Source { name: "m.toml", text }).unwrap().manifest;
        let problems = |imports: &[&str]| {
            let imports: Vec<String> = imports.iter().map(|import| (*import).to_owned()).collect();
            manifest.component("a").unwrap().check_imports(&imports).len()
        };
        assert_eq!(problems(&[]), 3);
        assert_eq!(problems(&["wasi:cli/stdin@0.2.6"]), 2);
        assert_eq!(problems(&["wasi:cli/environment@0.2.6", "wasi:cli/stdin@0.2.6"]), 0);
    }

    #[test]
    fn the_grant_is_shown_with_what_is_missing() {
        let source = Source { name: "m.toml", text: TEXT };
        let manifest = parse(&source).unwrap().manifest;
        let problems = manifest.component("a").unwrap().check_imports(&[]);
        let keyvalue: Vec<_> = problems.into_iter().filter(|problem| problem.message().contains("state")).collect();
        assert_eq!(
            render_all(&source, &keyvalue, Style::Plain),
            "\
error[grants::not_imported]: component \"a\" cannot use state between calls
  --> m.toml:10:1
   |
10 | keyvalue = {}
   | ^^^^^^^^ it does not import wasi:keyvalue
   |
   = hint: remove the grant; toolcell inspect shows what a component imports
"
        );
    }
}
