//! Grants for what a component does not import: they can never be used. Must not hold: how imports become known.

use crate::diagnostic::{Diagnostic, Span};
use crate::grants::Delivery;
use crate::manifest::ComponentPolicy;

/// A grant, where it stands, and the imports of which one uses it.
struct Use {
    what: &'static str,
    span: Option<Span>,
    imports: &'static [&'static str],
}

impl ComponentPolicy {
    /// Compares the component's grants with the interfaces it really imports, as they are named in it:
    /// `wasi:http/outgoing-handler@0.2.4`. Gives an error for each grant that the component has no way to use.
    #[must_use]
    pub fn check_imports(&self, imports: &[String]) -> Vec<Diagnostic> {
        let imported =
            |wanted: &[&str]| imports.iter().any(|import| wanted.iter().any(|prefix| import.starts_with(prefix)));
        let unused = self.uses().into_iter().filter(|used| !imported(used.imports));
        let problems = unused.filter_map(|used| {
            let span = used.span?;
            let (name, what) = (self.name(), used.what);
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

    fn uses(&self) -> Vec<Use> {
        let grants = self.grants();
        let (places, network) = (&grants.places, grants.network());
        let first = |span: Option<Span>, is_granted: bool| span.filter(|_| is_granted);
        let http = network.http_rules().first().map(|rule| rule.rule().span());
        let tcp = network.tcp_rules().first().map(|rule| rule.rule().span());
        let udp = network.udp_rules().first().map(|rule| rule.rule().span());
        let mut uses = vec![
            Use {
                what: "files",
                span: first(places.files.clone(), !grants.files().is_empty()),
                imports: &["wasi:filesystem/"],
            },
            Use { what: "HTTP requests", span: http, imports: &["wasi:http/outgoing-handler@", "wasi:http/client@"] },
            Use { what: "TCP", span: tcp, imports: &["wasi:sockets/tcp", "wasi:sockets/types@"] },
            Use { what: "UDP", span: udp, imports: &["wasi:sockets/udp", "wasi:sockets/types@"] },
            Use {
                what: "environment variables",
                span: first(places.env.clone(), !grants.env().is_empty()),
                imports: &["wasi:cli/environment@"],
            },
            Use {
                what: "arguments",
                span: first(places.args.clone(), !grants.args().is_empty()),
                imports: &["wasi:cli/environment@"],
            },
            Use {
                what: "standard input",
                span: first(places.stdin.clone(), grants.stdin().is_some()),
                imports: &["wasi:cli/stdin@"],
            },
            Use {
                what: "settings",
                span: first(places.config.clone(), !grants.config().is_empty()),
                imports: &["wasi:config/"],
            },
            Use {
                what: "state between calls",
                span: grants.keyvalue().map(crate::grants::KeyValue::span),
                imports: &["wasi:keyvalue/"],
            },
        ];
        uses.extend(grants.secrets().iter().map(|secret| match secret.delivery() {
            Delivery::Expose => Use {
                what: "a secret that is given to it",
                span: Some(secret.span()),
                imports: &["wasi:config/", "wasi:cli/environment@"],
            },
            Delivery::Header { .. } | Delivery::Query { .. } => Use {
                what: "a secret of HTTP requests",
                span: Some(secret.span()),
                imports: &["wasi:http/outgoing-handler@", "wasi:http/client@"],
            },
        }));
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
