//! Reports grants for capabilities that a component does not import: they can never be used.

use crate::diagnostic::{Diagnostic, Span};
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

impl ComponentPolicy {
    /// Compares the component's grants with the interfaces it really imports, as they are named in
    /// it: `wasi:http/outgoing-handler@0.2.4`. Returns an error for each grant that the component
    /// cannot use.
    #[must_use]
    pub fn check_imports(&self, imports: &[String]) -> Vec<Diagnostic> {
        let imported =
            |wanted: &[&str]| imports.iter().any(|import| wanted.iter().any(|prefix| import.starts_with(prefix)));
        let unused = self.uses().into_iter().filter(|used| !imported(used.imports));
        let problems = unused.filter_map(|used| {
            let span = used.span?;
            let name = self.name();
            let what = used.what;
            let wanted = used.imports.iter().map(|import| import.trim_end_matches(['@', '/'])).collect::<Vec<_>>();
            Some(
                Diagnostic::error("grants::not_imported", format!("component {name:?} cannot use {what}"))
                    .at(span)
                    .label(format!("it does not import {}", wanted.join(" or ")))
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

    use crate::{Source, Style, parse, render_all};

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
