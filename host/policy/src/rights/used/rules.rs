//! The rules that the uses of one rule need: each lies within it, and all together take every use.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::patterns;
use crate::explain::Ask;
use crate::grants::{CallRule, Capability, Host, HttpAsk, HttpRule, SocketRule};

/// Rules that one rule becomes at most: a person reads them. Beyond that, a wider one stands for
/// all.
const RULES_MAX: usize = 8;

/// The methods of each path, on one host and port.
type HostPaths = BTreeMap<String, BTreeSet<String>>;

/// A rule, and the texts that may take its place; `None` where it stays.
pub(crate) struct NeededRules<'r, R> {
    pub(crate) rule: &'r R,
    pub(crate) instead: Option<Vec<String>>,
}

/// A list of rules whose uses are known.
pub(crate) trait UsedRule: Sized {
    /// True if it is the one that allows this use. Look-ups belong to each rule for the name.
    fn takes(&self, ask: &Ask) -> bool;
    /// The narrower rules for these uses, widest last: the first that fits is taken.
    fn candidates(&self, uses: &[&Ask]) -> Vec<Vec<String>>;
    /// The rule of this text, if it lies within this one. True if it is the same.
    fn within(&self, text: &str) -> Option<(Self, bool)>;
}

/// What each rule of a list becomes. A use belongs to the first rule that allows it.
pub(crate) fn rules_for<'r, R: UsedRule>(rules: &'r [R], uses: &[&Ask]) -> Vec<NeededRules<'r, R>> {
    let mut left: Vec<&Ask> = uses.to_vec();
    let mut needed = Vec::with_capacity(rules.len());
    for rule in rules {
        let (mine, others): (Vec<&Ask>, Vec<&Ask>) = left.iter().partition(|ask| rule.takes(ask));
        left = others;
        needed.push(NeededRules { rule, instead: instead(rule, &mine) });
    }
    needed
}

/// The texts that take a rule's place; `None` where it stays as it is.
fn instead<R: UsedRule>(rule: &R, uses: &[&Ask]) -> Option<Vec<String>> {
    if uses.is_empty() {
        return Some(Vec::new());
    }
    let fits = |texts: &Vec<String>| {
        let read: Option<Vec<(R, bool)>> = texts.iter().map(|text| rule.within(text)).collect();
        let Some(read) = read.filter(|read| !read.is_empty() && read.len() <= RULES_MAX) else { return false };
        uses.iter().all(|ask| read.iter().any(|(narrower, _)| narrower.takes(ask)))
    };
    let found = rule.candidates(uses).into_iter().find(fits)?;
    let stays = found.iter().any(|text| rule.within(text).is_some_and(|(_, is_same)| is_same));
    (!stays).then_some(found)
}

/// The names that some use needs.
pub(crate) fn needed_names<'u>(uses: &[&'u Ask], kind: Capability) -> BTreeSet<&'u str> {
    uses.iter().filter_map(|ask| ask.name(kind)).collect()
}

impl UsedRule for HttpRule {
    fn takes(&self, ask: &Ask) -> bool {
        matches!(ask, Ask::Http(ask) if self.matches(ask))
    }

    fn candidates(&self, uses: &[&Ask]) -> Vec<Vec<String>> {
        let asks: Vec<&HttpAsk> =
            uses.iter().filter_map(|ask| if let Ask::Http(ask) = ask { Some(ask) } else { None }).collect();
        let mut hosts: BTreeMap<String, HostPaths> = BTreeMap::new();
        for ask in &asks {
            let host = format!("{}://{}", ask.scheme().name(), ask.authority());
            add_path(hosts.entry(host).or_default(), ask);
        }
        let all = hosts.values().flatten().flat_map(|(_, methods)| methods.iter().cloned()).collect();
        let methods = methods_text(&all);
        let own_path = if self.path().is_any() { String::new() } else { self.path().to_string() };
        let each = |form: &dyn Fn(&str, &HostPaths) -> Vec<String>| -> Vec<String> {
            hosts.iter().flat_map(|(host, paths)| form(host, paths)).collect()
        };
        let scheme = self.scheme();
        let port = if self.port() == scheme.default_port() { String::new() } else { format!(":{}", self.port()) };
        let own_host = format!("{}://{}{port}", scheme.name(), self.host());
        let merged = hosts.values().flatten().fold(HostPaths::new(), |mut all, (path, methods)| {
            all.entry(path.clone()).or_default().extend(methods.iter().cloned());
            all
        });
        vec![
            each(&exact),
            each(&|host, paths| vec![in_folder(host, paths)]),
            each(&|host, _| vec![format!("{methods}{host}{own_path}")]),
            exact(&own_host, &merged),
            vec![in_folder(&own_host, &merged)],
            vec![format!("{methods}{own_host}{own_path}")],
        ]
    }

    fn within(&self, text: &str) -> Option<(Self, bool)> {
        let rule = Self::parse(text, 0..0).ok().filter(|rule| rule.lies_within(self))?;
        let is_same = self.lies_within(&rule);
        Some((rule, is_same))
    }
}

/// Adds a request: a path that no rule can name counts as every path, a method without a name as
/// every method.
fn add_path(paths: &mut HostPaths, ask: &HttpAsk) {
    let has_name = HttpRule::parse(&format!("{} https://a.example", ask.method()), 0..0).is_ok();
    let url = format!("{}://{}{}", ask.scheme().name(), ask.authority(), ask.path().replace('*', "x"));
    let is_plain = HttpRule::parse(&url, 0..0).is_ok();
    let path = if is_plain { ask.path() } else { "" };
    let method = if has_name { ask.method() } else { "" };
    paths.entry(path.to_owned()).or_default().insert(method.to_owned());
}

/// `GET,HEAD `; nothing where a method has no name.
fn methods_text(methods: &BTreeSet<String>) -> String {
    if methods.contains("") {
        return String::new();
    }
    format!("{} ", methods.iter().map(String::as_str).collect::<Vec<_>>().join(","))
}

/// A rule for each pattern of the paths.
fn exact(host: &str, paths: &HostPaths) -> Vec<String> {
    if let Some(methods) = paths.get("") {
        let all = paths.values().flatten().chain(methods).cloned().collect();
        return vec![format!("{}{host}", methods_text(&all))];
    }
    patterns(paths).iter().map(|(pattern, methods)| format!("{}{host}{pattern}", methods_text(methods))).collect()
}

/// One rule for everything below the folder that all paths have in common.
fn in_folder(host: &str, paths: &HostPaths) -> String {
    let all = paths.values().flatten().cloned().collect();
    let mut folders = paths.keys().map(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder));
    let first: Vec<&str> = folders.next().unwrap_or_default().split('/').collect();
    let shared = folders.fold(first, |mut shared, folder| {
        let same = shared.iter().zip(folder.split('/')).take_while(|(one, other)| *one == other).count();
        shared.truncate(same);
        shared
    });
    format!("{}{host}{}/*", methods_text(&all), shared.join("/"))
}

/// A rule of `tcp` or of `udp`: the list says which.
pub(crate) struct ListedSocket<'r> {
    pub(crate) kind: Capability,
    pub(crate) rule: std::borrow::Cow<'r, SocketRule>,
}

impl UsedRule for ListedSocket<'_> {
    fn takes(&self, ask: &Ask) -> bool {
        match ask {
            Ask::Socket(kind, host, port) => {
                *kind == self.kind && self.rule.ports().contains(*port) && self.rule.matches_name(host)
            }
            Ask::Named(Capability::Lookup, name) => Host::parse(name).is_ok_and(|host| self.rule.matches_name(&host)),
            _ => false,
        }
    }

    fn candidates(&self, uses: &[&Ask]) -> Vec<Vec<String>> {
        let mut targets: BTreeSet<String> = BTreeSet::new();
        let mut hosts: BTreeSet<String> = BTreeSet::new();
        for ask in uses {
            if let Ask::Socket(_, host, port) = ask {
                targets.insert(format!("{host}:{port}"));
                hosts.insert(host.to_string());
            }
        }
        let ports = self.rule.ports();
        let looked_up =
            uses.iter().filter_map(|ask| ask.name(Capability::Lookup)).filter_map(|name| Host::parse(name).ok());
        let only_names: BTreeSet<String> =
            looked_up.map(|host| host.to_string()).filter(|host| !hosts.contains(host)).collect();
        let with_ports = |host: &String| format!("{host}:{ports}");
        let exact = targets.iter().cloned().chain(only_names.iter().map(with_ports)).collect();
        vec![exact, hosts.iter().chain(&only_names).map(with_ports).collect()]
    }

    fn within(&self, text: &str) -> Option<(Self, bool)> {
        let rule = SocketRule::parse(text, 0..0).ok().filter(|rule| rule.lies_within(&self.rule))?;
        let is_same = self.rule.lies_within(&rule);
        Some((Self { kind: self.kind, rule: std::borrow::Cow::Owned(rule) }, is_same))
    }
}

impl UsedRule for CallRule {
    fn takes(&self, ask: &Ask) -> bool {
        ask.name(Capability::Call).is_some_and(|tool| Self::takes(self, tool))
    }

    fn candidates(&self, uses: &[&Ask]) -> Vec<Vec<String>> {
        vec![needed_names(uses, Capability::Call).into_iter().map(str::to_owned).collect()]
    }

    fn within(&self, text: &str) -> Option<(Self, bool)> {
        let rule = Self::parse(text, 0..0).filter(|rule| rule.lies_within(self))?;
        let is_same = self.lies_within(&rule);
        Some((rule, is_same))
    }
}
