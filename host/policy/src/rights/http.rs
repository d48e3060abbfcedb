//! HTTP requests. Their rules have no keyword: `GET https://api.example.com/v1/*`.

use std::collections::{BTreeMap, BTreeSet};

use super::network::{self, SECTION, list_entry, names_note, outside};
use super::used::{around_http, rules_for};
use super::{Example, Importer, Narrowing, Right};
use crate::capabilities::ReachRow;
use crate::edit::ManifestEntry;
use crate::explain::{Ask, AskTextError};
use crate::grants::{AskError, Capability, Denial, Grants, Host, HttpAsk, HttpRule, MethodSet, RuleRef};
use crate::names::did_you_mean;
use crate::suggest::Needs;

/// Paths of one host that are suggested individually; more become their common folder.
const PATHS_MAX: usize = 8;

/// Imports that send requests.
pub(super) const IMPORTS: &[&str] = &["wasi:http/outgoing-handler@", "wasi:http/client@"];

/// HTTP requests.
pub(crate) static HTTP: Right = Right {
    section: SECTION,
    narrowing: Some(Narrowing::Rules("http")),
    requested: |_, requested| requested.network.http_rules().iter().map(ToString::to_string).collect(),
    beyond: |_, requested, grants| {
        let rules = grants.network().http_rules();
        let beyond = outside(rules, requested.network.http_rules(), HttpRule::lies_within, HttpRule::rule);
        beyond.into_iter().map(RuleRef::span).collect()
    },
    reach: |_, grants| {
        let row = |rule: &HttpRule| {
            let text = if rule.methods() == MethodSet::ANY { format!("any method {rule}") } else { rule.to_string() };
            ReachRow::new(Capability::Http, text, Some(rule.rule().span()))
        };
        grants.network().http_rules().iter().map(row).collect()
    },
    lock_lines: |_, grants| grants.network().http_rules().iter().map(|rule| format!("http {rule}")).collect(),
    what: "HTTP requests",
    imports: IMPORTS,
    uses: |right, grants| vec![right.used(grants.network().http_rules().first().map(|rule| rule.rule().span()))],
    ask_forms: &["GET https://…"],
    evidence: Some(Capability::Http),
    own_table: |_, grants| grants.network().wider.is_some(),
    narrower: |_, used| {
        let needed = rules_for(used.grants.network().http_rules(), used.uses);
        network::narrower("http", needed.into_iter().map(|needed| (needed.rule.rule(), needed.instead)))
    },
    neighbours: |_, grants, uses| grants.network().http_rules().iter().map(|rule| around_http(rule, uses)).collect(),
    explain: |_, grants, ask, notes| {
        let Ask::Http(ask) = ask else { return None };
        Some(explain(grants, ask, notes))
    },
    forms: &["GET https://…"],
    help: "  METHOD URL                  requests: \"GET https://api.example.com/v1/*\"\n",
    example: Some(Example {
        imports: IMPORTS,
        importer: Importer::ToolOrEngine,
        what: "HTTP requests",
        grant: "network.http = [\"GET https://api.example.com/*\"]",
        right: "GET https://api.example.com/*",
    }),
    ..Right::NONE
};

fn explain(grants: &Grants, ask: &HttpAsk, notes: &mut Vec<String>) -> Result<RuleRef, Denial> {
    let permit = grants.network().http(ask).inspect_err(|_| {
        notes.extend(ask.own_rule().err().map(|why| format!("no rule can be for this request alone, as {why}")));
    })?;
    if !ask.has_named_method() {
        notes.push(format!("no rule can name the method {:?}: a rule without methods allows it", ask.method()));
    }
    match ask.host() {
        Host::Addr(address) => {
            permit.check_address(*address)?;
        }
        Host::Name(name) => notes.push(names_note(name)),
    }
    for secret in grants.secrets().iter().filter(|secret| secret.matches(ask)) {
        notes.push(format!("the request carries the secret {:?}", secret.name()));
    }
    if let Some(proxy) = grants.network().proxy() {
        notes.push(format!("the request goes through {proxy}"));
    }
    Ok(permit.rule().clone())
}

/// Refuses a method without a name in rules that is close to one with a name.
pub(crate) fn check_slip(method: &str) -> Result<(), AskTextError> {
    match did_you_mean(method, MethodSet::names().iter().copied()) {
        Some(meant) => {
            Err(AskTextError::hint_of(format!("unknown method {method:?}"), format!("did you mean {meant}?")))
        }
        None => Ok(()),
    }
}

/// The entry for a text with an address that begins with no other right's word.
pub(crate) fn entry(right: &str) -> Option<ManifestEntry> {
    right.contains("://").then(|| list_entry("http", right))
}

/// A question about a request.
pub(crate) fn request(method: &str, url: &str) -> Result<Ask, AskTextError> {
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let upper = method.to_ascii_uppercase();
        let meant = did_you_mean(&upper, MethodSet::names().iter().copied()).unwrap_or("GET");
        return Err(AskTextError::hint_of(
            format!("unknown method {method:?}"),
            format!("did you mean \"{meant} {url}\"?"),
        ));
    }
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let rest = rest.split('#').next().unwrap_or_default();
    let at = rest.find(['/', '?', '\\']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at_checked(at).unwrap_or((rest, ""));
    HttpAsk::new(method, scheme, authority, target).map(Ask::Http).map_err(|error| {
        let hint = match error {
            AskError::Scheme => "schemes are http and https; write \"tcp host:port\" for others",
            AskError::User => "leave the user out: secrets are added by the host",
            _ => "write \"GET https://api.example.com/v1/now\"",
        };
        AskTextError::hint_of(format!("the request is not well formed: {error}"), hint)
    })
}

/// Adds a request that has a rule of its own to the needs: the methods of each path, by scheme,
/// host and port.
pub(crate) fn need(needs: &mut Needs, ask: &HttpAsk) {
    let host = format!("{}://{}", ask.scheme().name(), ask.authority());
    let methods = needs.http.entry(host).or_default().entry(ask.path().to_owned()).or_default();
    methods.insert(if ask.has_named_method() { ask.method().to_owned() } else { String::new() });
}

/// The rules that would allow the requests.
pub(super) fn needed_rules(needs: &Needs) -> Vec<String> {
    needs.http.iter().flat_map(|(host, paths)| requests(host, paths)).collect()
}

/// The rules of one host: one for each path, or for their common folder if there are many.
fn requests(host: &str, paths: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let every = |methods: &BTreeSet<String>| {
        let methods = methods.iter().map(String::as_str).collect::<Vec<_>>();
        // An unnamed method needs a rule for every method.
        if methods.contains(&"") { String::new() } else { format!("{} ", methods.join(",")) }
    };
    if paths.len() > PATHS_MAX {
        let all: BTreeSet<String> = paths.values().flatten().cloned().collect();
        let folder = common_folder(paths.keys().map(String::as_str));
        return vec![format!("{}{host}{folder}/*", every(&all))];
    }
    paths.iter().map(|(path, methods)| format!("{}{host}{path}", every(methods))).collect()
}

/// `/v1` of `/v1/a/b` and `/v1/c`.
fn common_folder<'p>(mut paths: impl Iterator<Item = &'p str>) -> String {
    let folder = |path: &'p str| path.rsplit_once('/').map_or("", |(folder, _)| folder).split('/').collect::<Vec<_>>();
    let mut common = paths.next().map(folder).unwrap_or_default();
    for path in paths {
        let same = common.iter().zip(folder(path)).take_while(|(one, other)| *one == other).count();
        common.truncate(same);
    }
    common.join("/")
}
