//! The section `[callers]`: who may see and call which tools, how often, and how many at once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;

use super::arguments::ArgumentConditions;
use crate::diagnostic::{Diagnostic, Span};
use crate::limits::{Spec, spec};
use crate::names::did_you_mean;
use crate::quantity::Rate;
use crate::settings::accessors;
use crate::words::words;

/// The longest name of a caller or a scope, in bytes: an issuer's subject has at most 255
/// characters.
pub const SCOPE_BYTES_MAX: usize = 320;

/// The name of the rule for callers without a rule of their own.
pub(crate) const DEFAULT: &str = "default";

/// The caller over stdio: the person who started the process.
pub(crate) const LOCAL: &str = "local";

/// The caller over HTTP where callers need no token.
pub(crate) const ANYONE: &str = "anyone";

/// The caller of calls that operators try in the console.
pub(crate) const CONSOLE: &str = "console";

pub(crate) const RATE: Spec = spec! {
    "rate" Rate { min: Rate::LEAST.number(), default: Rate::MOST.number(), max: Rate::MOST.number() },
    "The most there is: each tool's own rate bounds a caller already."
};

pub(crate) const QUOTA: Spec = spec! {
    "quota" Rate { min: Rate::LEAST.number(), default: Rate::MOST.number(), max: Rate::MOST.number() },
    "The most there is: a rate alone bounds a caller. It is for a second bound over a longer time, such as a day."
};

pub(crate) const CONCURRENCY: Spec = spec! {
    "concurrency" Count { min: 1, default: 4_096, max: 4_096 },
    "The most there is: the tools and the process bound a caller already. Further calls wait."
};

pub(crate) const CONCURRENCY_SHARED: Spec = spec! {
    "concurrency_shared" Count { min: 1, default: 100_000, max: 100_000 },
    "The most there is, and no bound. It is for callers that must not get more from more replicas."
};

/// What bounds the number of a caller's calls over all tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerRates {
    /// `rate`; `None`: the tools' own.
    pub rate: Option<Rate>,
    /// `quota`, over a longer time; `None`: no further bound.
    pub quota: Option<Rate>,
}

/// Stands before the conditions in the text that says who may call a tool.
pub const IF: &str = ", if ";

/// Who may call what. Without `[callers]` in the manifest, everybody may call every tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Callers {
    /// `None`: the manifest has no such table.
    rules: Option<Vec<CallerRule>>,
    /// The number of the rule that has a name; each name is in one rule.
    named: HashMap<String, usize>,
}

accessors! {
    /// One `[callers.NAME]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CallerRule {
        /// Its name in the manifest.
        pub(crate) name: String => &str,
        /// The place of that name in the manifest's text.
        pub(crate) span: Span => &Span,
        pub(crate) names: Vec<String>,
        /// The scopes that it is for.
        pub(crate) scopes: Vec<String> => &[String],
        pub(crate) tools: Vec<(ToolPattern, Span)>,
        pub(crate) prompts: Vec<(ToolPattern, Span)>,
        pub(crate) skills: Vec<(ToolPattern, Span)>,
        pub(crate) rate: Option<u64>,
        pub(crate) quota: Option<u64>,
        pub(crate) concurrency: Option<usize>,
        pub(crate) concurrency_shared: Option<usize>,
        /// The patterns of tools, prompts and skills, by the names that they take.
        pub(crate) taken: [TakenNames; 3],
        /// Conditions on arguments, one entry for each tool.
        pub(crate) arguments: Vec<Arc<ArgumentConditions>> => &[Arc<ArgumentConditions>],
    }
}

/// The names that some patterns take: looking one up takes the same time for any number of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TakenNames {
    all: bool,
    components: HashSet<String>,
    own: HashMap<String, HashSet<String>>,
    exposed: HashSet<String>,
}

/// Some tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolPattern {
    /// `*`: all.
    All,
    /// `weather/*`: those of one component; of skills those of one folder.
    Component(String),
    /// `weather/forecast`: one tool of a component, by its own name.
    Own(String, String),
    /// `wx_forecast`: one tool, by the name that clients see.
    Exposed(String),
}

words! {
    /// The list in which clients find something that they call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Callable {
        /// That of tools.
        Tool "tool",
        /// That of prompts.
        Prompt "prompt",
        /// That of skills.
        Skill "skill",
    }
}

impl Callable {
    /// The thing that it belongs to.
    const fn holder(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "component",
            Self::Skill => "folder",
        }
    }
}

/// One tool, prompt or skill, as rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolName<'n> {
    /// Tells tools, prompts and skills apart.
    pub kind: Callable,
    /// Its component; of a skill the folder that it lies in.
    pub component: &'n str,
    /// Its own name, without prefix.
    pub own: &'n str,
    /// The name that clients see.
    pub exposed: &'n str,
}

/// The tools that one caller may see and call, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights<'c> {
    rules: Option<Vec<(usize, &'c CallerRule)>>,
}

impl Callers {
    pub(crate) fn new(rules: Vec<CallerRule>) -> Self {
        let numbered = rules.iter().enumerate();
        let named = numbered.flat_map(|(number, rule)| rule.names.iter().map(move |name| (name.clone(), number)));
        Self { named: named.collect(), rules: Some(rules) }
    }

    /// The rules, in the order of the file; none without `[callers]`.
    #[must_use]
    pub fn rules(&self) -> &[CallerRule] {
        self.rules.as_deref().unwrap_or_default()
    }

    /// True if callers see and call different tools.
    #[must_use]
    pub const fn tells_apart(&self) -> bool {
        self.rules.is_some()
    }

    /// The rights of the caller of this name and these scopes. A rule that has its name is the only
    /// one that holds; else all rules do that have one of its scopes; else `default`, if there is
    /// one. `local`, the user who started the process, may call everything if no rule has that
    /// name.
    #[must_use]
    pub fn rights<'c, 's>(&'c self, name: &str, scopes: impl Iterator<Item = &'s str> + Clone) -> Rights<'c> {
        let Some(rules) = &self.rules else { return Rights { rules: None } };
        let numbered = || rules.iter().enumerate();
        let own = self.named.get(name).and_then(|number| Some((*number, rules.get(*number)?)));
        if let Some(own) = own {
            return Rights { rules: Some(vec![own]) };
        }
        let has = |rule: &CallerRule| rule.scopes.iter().any(|wanted| scopes.clone().any(|scope| scope == wanted));
        let by_scope: Vec<_> = numbered().filter(|(_, rule)| has(rule)).collect();
        if !by_scope.is_empty() {
            return Rights { rules: Some(by_scope) };
        }
        if name == LOCAL {
            return Rights { rules: None };
        }
        Rights { rules: Some(numbered().filter(|(_, rule)| rule.name == DEFAULT).collect()) }
    }

    /// True if the caller of this name may call something of this component, with some scopes.
    pub(crate) fn may_reach(&self, name: &str, component: &str) -> bool {
        let Some(rules) = &self.rules else { return true };
        let reaches = |rule: &CallerRule| rule.taken.iter().any(|taken| taken.may_have(component));
        if let Some(own) = self.named.get(name).and_then(|number| rules.get(*number)) {
            return reaches(own);
        }
        let may_hold = |rule: &&CallerRule| !rule.scopes.is_empty() || rule.name == DEFAULT;
        name == LOCAL || rules.iter().filter(may_hold).any(reaches)
    }

    /// Compares the names in the rules with the existing tools and prompts. Returns every name that
    /// does not exist.
    #[must_use]
    pub fn check_tools(&self, tools: &[ToolName<'_>]) -> Vec<Diagnostic> {
        let of_kind = |kind: Callable| {
            let known = KnownNames::of(kind, tools);
            let patterns = self.rules().iter().flat_map(|rule| rule.patterns(kind));
            let unknown = patterns.filter(|(pattern, _)| !known.have(pattern));
            unknown.filter_map(|(pattern, span)| pattern.unknown(kind, &known.all, span)).collect::<Vec<_>>()
        };
        let mut problems = Callable::ALL.map(of_kind).concat();
        let known = KnownNames::of(Callable::Tool, tools);
        for rule in self.rules() {
            problems.extend(rule.arguments.iter().filter_map(|conditions| rule.check_conditions(conditions, &known)));
        }
        problems
    }

    /// Who may call one tool, one line for each rule, sorted: an additional line is an additional
    /// right. Empty if everybody may.
    #[must_use]
    pub fn words(&self, tool: &ToolName<'_>) -> Vec<String> {
        let rules = self.rules().iter().filter(|rule| rule.takes(tool));
        let line = |rule: &CallerRule| match rule.conditions(tool) {
            Some(conditions) => format!("be called by {}{IF}{}", rule.whom(), conditions.words()),
            None => format!("be called by {}", rule.whom()),
        };
        let mut lines: Vec<String> = rules.map(line).collect();
        lines.sort();
        lines
    }

    /// The rules as JSON with sorted keys: equal rules give equal texts, however they were written.
    #[must_use]
    pub fn canonical(&self) -> String {
        let rules: BTreeMap<&str, CanonicalCallers> =
            self.rules().iter().map(|rule| (rule.name.as_str(), rule.canonical())).collect();
        let rules = self.tells_apart().then_some(rules);
        // Maps with text keys, numbers and texts always serialize.
        serde_json::to_string(&rules).unwrap_or_default()
    }

    /// The names of rules that differ.
    #[must_use]
    pub fn differing<'c>(&'c self, other: &'c Self) -> Vec<&'c str> {
        let named = |callers: &'c Self| -> BTreeMap<&'c str, CanonicalCallers> {
            callers.rules().iter().map(|rule| (rule.name.as_str(), rule.canonical())).collect()
        };
        let here = named(self);
        let there = named(other);
        let changed = here.iter().filter(|(name, rule)| there.get(*name) != Some(rule)).map(|(name, _)| *name);
        let mut names: Vec<&str> =
            changed.chain(there.keys().copied().filter(|name| !here.contains_key(name))).collect();
        names.sort_unstable();
        names
    }
}

#[derive(Serialize, PartialEq, Eq)]
struct CanonicalCallers {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    arguments: BTreeMap<String, serde_json::Value>,
    concurrency: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency_shared: Option<usize>,
    names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<String>,
    rate: Option<String>,
    scopes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skills: Vec<String>,
    tools: Vec<String>,
}

impl CallerRule {
    fn canonical(&self) -> CanonicalCallers {
        let sorted = |mut texts: Vec<String>| {
            texts.sort();
            texts.dedup();
            texts
        };
        let conditions = |conditions: &Arc<ArgumentConditions>| {
            (format!("{}/{}", conditions.component, conditions.tool), conditions.canonical())
        };
        CanonicalCallers {
            arguments: self.arguments.iter().map(conditions).collect(),
            concurrency: self.concurrency,
            concurrency_shared: self.concurrency_shared,
            names: sorted(self.names.clone()),
            quota: self.quota.map(|quota| Rate::of_number(quota).to_string()),
            rate: self.rate.map(|rate| Rate::of_number(rate).to_string()),
            scopes: sorted(self.scopes.clone()),
            tools: sorted(self.tools.iter().map(|(pattern, _)| pattern.to_string()).collect()),
            prompts: sorted(self.prompts.iter().map(|(pattern, _)| pattern.to_string()).collect()),
            skills: sorted(self.skills.iter().map(|(pattern, _)| pattern.to_string()).collect()),
        }
    }

    fn patterns(&self, kind: Callable) -> &[(ToolPattern, Span)] {
        match kind {
            Callable::Tool => &self.tools,
            Callable::Prompt => &self.prompts,
            Callable::Skill => &self.skills,
        }
    }

    /// True if this rule alone lets its callers see and call the tool.
    #[must_use]
    pub fn takes(&self, tool: &ToolName<'_>) -> bool {
        let [tools, prompts, skills] = &self.taken;
        match tool.kind {
            Callable::Tool => tools.has(tool),
            Callable::Prompt => prompts.has(tool),
            Callable::Skill => skills.has(tool),
        }
    }

    /// Its conditions on the arguments of this tool.
    #[must_use]
    pub fn conditions(&self, tool: &ToolName<'_>) -> Option<&Arc<ArgumentConditions>> {
        let is_of = |conditions: &&Arc<ArgumentConditions>| {
            conditions.component == tool.component && conditions.tool == tool.own
        };
        self.arguments.iter().find(is_of).filter(|_| tool.kind == Callable::Tool)
    }

    /// The problem of conditions on a tool that does not exist, or that the rule does not allow.
    fn check_conditions(&self, conditions: &ArgumentConditions, known: &KnownNames<'_>) -> Option<Diagnostic> {
        let tool = ToolPattern::Own(conditions.component.clone(), conditions.tool.clone());
        if !known.have(&tool) {
            return tool.unknown(Callable::Tool, &known.all, &conditions.span);
        }
        let is_it = |name: &&ToolName<'_>| name.component == conditions.component && name.own == conditions.tool;
        let is_allowed = known.all.iter().find(is_it).is_none_or(|name| self.takes(name));
        (!is_allowed).then(|| {
            let message = format!("[callers.{}] does not allow {tool}, so these conditions never apply", self.name);
            let problem = Diagnostic::error("callers::never", message).at(conditions.span.clone());
            problem.hint(format!("add \"{tool}\" to its tools, or remove the conditions"))
        })
    }

    /// Its callers, in words.
    fn whom(&self) -> String {
        let of = |what: &str, texts: &[String]| {
            let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            texts.sort_unstable();
            (!texts.is_empty()).then(|| format!("{what} {}", texts.join(", ")))
        };
        let whom: Vec<String> =
            [of("the name", &self.names), of("the scope", &self.scopes)].into_iter().flatten().collect();
        if whom.is_empty() { "everybody else".to_owned() } else { whom.join(" or ") }
    }
}

impl TakenNames {
    pub(crate) fn of(patterns: &[(ToolPattern, Span)]) -> Self {
        let mut taken = Self::default();
        for (pattern, _) in patterns {
            match pattern {
                ToolPattern::All => taken.all = true,
                ToolPattern::Component(component) => _ = taken.components.insert(component.clone()),
                ToolPattern::Own(component, own) => {
                    taken.own.entry(component.clone()).or_default().insert(own.clone());
                }
                ToolPattern::Exposed(exposed) => _ = taken.exposed.insert(exposed.clone()),
            }
        }
        taken
    }

    /// True if something of this component may be among them.
    fn may_have(&self, component: &str) -> bool {
        self.all || self.components.contains(component) || self.own.contains_key(component) || !self.exposed.is_empty()
    }

    fn has(&self, tool: &ToolName<'_>) -> bool {
        self.all
            || self.components.contains(tool.component)
            || self.own.get(tool.component).is_some_and(|own| own.contains(tool.own))
            || self.exposed.contains(tool.exposed)
    }
}

/// The names of all tools of a kind.
struct KnownNames<'n> {
    all: Vec<ToolName<'n>>,
    own: HashSet<(&'n str, &'n str)>,
    exposed: HashSet<&'n str>,
}

impl<'n> KnownNames<'n> {
    fn of(kind: Callable, tools: &[ToolName<'n>]) -> Self {
        let all: Vec<ToolName<'n>> = tools.iter().filter(|tool| tool.kind == kind).copied().collect();
        let own = all.iter().map(|tool| (tool.component, tool.own)).collect();
        let exposed = all.iter().map(|tool| tool.exposed).collect();
        Self { all, own, exposed }
    }

    /// True if a pattern for one tool names one of these. Other patterns may match nothing.
    fn have(&self, pattern: &ToolPattern) -> bool {
        match pattern {
            ToolPattern::All | ToolPattern::Component(_) => true,
            ToolPattern::Own(component, own) => self.own.contains(&(component.as_str(), own.as_str())),
            ToolPattern::Exposed(exposed) => self.exposed.contains(exposed.as_str()),
        }
    }
}

impl ToolPattern {
    /// The problem of a name that is not a tool's. `*` and `COMPONENT/*` never have it, even if
    /// they match nothing.
    fn unknown(&self, kind: Callable, tools: &[ToolName<'_>], span: &Span) -> Option<Diagnostic> {
        let what = kind.name();
        let (message, meant) = match self {
            Self::All | Self::Component(_) => return None,
            Self::Own(component, own) => {
                let of_component = tools.iter().filter(|tool| tool.component == component).map(|tool| tool.own);
                let meant = did_you_mean(own, of_component).map(|own| format!("{component}/{own}"));
                (format!("{} {component:?} has no {what} {own:?}", kind.holder()), meant)
            }
            Self::Exposed(exposed) => {
                let meant = did_you_mean(exposed, tools.iter().map(|tool| tool.exposed)).map(str::to_owned);
                (format!("there is no {what} {exposed:?}"), meant)
            }
        };
        let problem = Diagnostic::error("callers::unknown_tool", message).at(span.clone());
        Some(match meant {
            Some(name) => problem.hint(format!("did you mean \"{name}\"?")),
            None => {
                let one = what.to_ascii_uppercase();
                let all = kind.holder().to_ascii_uppercase();
                problem.hint(format!(
                    "write a {what}'s name as `toolcell list` shows it, \"{all}/{one}\", \"{all}/*\" or \"*\""
                ))
            }
        })
    }
}

impl std::fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Component(component) => write!(f, "{component}/*"),
            Self::Own(component, own) => write!(f, "{component}/{own}"),
            Self::Exposed(exposed) => f.write_str(exposed),
        }
    }
}

impl Rights<'_> {
    /// True if the caller sees and calls this tool, or sees and gets this prompt.
    #[must_use]
    pub fn take(&self, tool: &ToolName<'_>) -> bool {
        let Some(rules) = &self.rules else { return true };
        rules.iter().any(|(_, rule)| rule.takes(tool))
    }

    /// The rules that hold for the caller, each with its number among all rules.
    pub fn rules(&self) -> impl Iterator<Item = (usize, &CallerRule)> {
        self.rules.iter().flatten().map(|(number, rule)| (*number, *rule))
    }

    /// A key that is equal for callers with equal rights of the same [`Callers`].
    #[must_use]
    pub fn key(&self) -> Option<Vec<usize>> {
        self.rules.as_ref().map(|rules| rules.iter().map(|(number, _)| *number).collect())
    }

    /// The caller's rate over all tools: the most generous one of its rules. `None`: the tools'
    /// own.
    fn rate(&self) -> Option<Rate> {
        self.most_generous(|rule| rule.rate)
    }

    /// Its bound over a longer time, by the same rule.
    fn quota(&self) -> Option<Rate> {
        self.most_generous(|rule| rule.quota)
    }

    /// What bounds the number of its calls over all tools.
    #[must_use]
    pub fn rates(&self) -> CallerRates {
        CallerRates { rate: self.rate(), quota: self.quota() }
    }

    fn most_generous(&self, rate: impl Fn(&CallerRule) -> Option<u64>) -> Option<Rate> {
        let rules = self.rules.as_ref()?;
        let all: Option<Vec<u64>> = rules.iter().map(|(_, rule)| rate(rule)).collect();
        let pace = |number: &u64| {
            let Rate { count, per } = Rate::of_number(*number);
            u128::from(count) * 86_400_000 / per.duration().as_millis().max(1)
        };
        all?.into_iter().max_by_key(pace).map(Rate::of_number)
    }

    /// The caller's concurrent calls in each replica over all tools: the most generous number of
    /// its rules. `None`: as many as the tools allow.
    #[must_use]
    pub fn concurrency(&self) -> Option<usize> {
        let all: Option<Vec<usize>> = self.rules.as_ref()?.iter().map(|(_, rule)| rule.concurrency).collect();
        all?.into_iter().max()
    }

    /// True if the caller may have fewer concurrent calls than its tools allow.
    #[must_use]
    pub fn bounds_calls(&self) -> bool {
        self.concurrency().is_some() || self.concurrency_shared().is_some()
    }

    /// The caller's concurrent calls over all replicas, by the same rule.
    #[must_use]
    pub fn concurrency_shared(&self) -> Option<usize> {
        let all: Option<Vec<usize>> = self.rules.as_ref()?.iter().map(|(_, rule)| rule.concurrency_shared).collect();
        all?.into_iter().max()
    }
}

/// True if this text names a caller or a scope.
pub(crate) fn is_caller_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= SCOPE_BYTES_MAX && !text.contains(char::is_control)
}

/// True if a rule can name this scope. Scopes are separated by spaces (RFC 6749 section 3.3).
#[must_use]
pub fn is_caller_scope(text: &str) -> bool {
    is_caller_name(text) && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, parse};

    fn callers(text: &str) -> Callers {
        let text = format!(
            "version = 1\n[components.wx]\nsource = 'wx.wasm'\nprefix = 'wx_'\n[components.b]\nsource = 'b.wasm'\n[http]\ntokens = 't'\n[http.oauth]\nresource = 'https://r.example'\n[http.oauth.issuers.corp]\n\
             issuer = 'https://i.example'\n{text}"
        );
        parse(&Source { name: "m.toml", text: &text }).unwrap().manifest.callers().clone()
    }

    const TOOLS: [ToolName<'static>; 3] = [
        ToolName { kind: Callable::Tool, component: "wx", own: "now", exposed: "wx_now" },
        ToolName { kind: Callable::Tool, component: "wx", own: "soon", exposed: "wx_soon" },
        ToolName { kind: Callable::Tool, component: "b", own: "now", exposed: "now" },
    ];

    fn seen(callers: &Callers, name: &str, scopes: &[&str]) -> Vec<&'static str> {
        let rights = callers.rights(name, scopes.iter().copied());
        TOOLS.iter().filter(|tool| rights.take(tool)).map(|tool| tool.exposed).collect()
    }

    #[test]
    fn a_caller_sees_what_its_rules_say() {
        let callers = callers(
            "[callers.ann]\ntools = ['*']\n[callers.pair]\nnames = ['bob', 'corp:17']\ntools = ['wx/*']\n\
             [callers.now]\nscopes = ['now']\ntools = ['now', 'wx/now']\n\
             [callers.soon]\nscopes = ['soon', 'later']\ntools = ['wx_soon']\n[callers.default]\ntools = ['now']\n",
        );
        for (name, scopes, expected) in [
            ("ann", vec![], vec!["wx_now", "wx_soon", "now"]),
            ("bob", vec![], vec!["wx_now", "wx_soon"]),
            ("corp:17", vec!["now"], vec!["wx_now", "wx_soon"]),
            ("carl", vec!["now"], vec!["wx_now", "now"]),
            ("carl", vec!["x", "later"], vec!["wx_soon"]),
            ("carl", vec!["later", "now"], vec!["wx_now", "wx_soon", "now"]),
            ("carl", vec!["no", "now_"], vec!["now"]),
            ("anyone", vec![], vec!["now"]),
            ("pair", vec![], vec!["now"]),
            ("local", vec![], vec!["wx_now", "wx_soon", "now"]),
        ] {
            assert_eq!(seen(&callers, name, &scopes), expected, "{name} {scopes:?}");
        }
    }

    #[test]
    fn without_rules_everybody_sees_everything_and_without_a_default_others_see_nothing() {
        assert_eq!(seen(&callers(""), "x", &[]).len(), 3);
        assert_eq!(seen(&callers("[callers.a]\ntools = ['*']\n"), "x", &[]), [""; 0]);
        assert_eq!(seen(&callers("[callers.local]\ntools = []\n"), "local", &[]), [""; 0]);
    }

    #[test]
    fn of_several_rules_the_most_generous_bound_holds() {
        let callers = callers(
            "[callers.a]\nscopes = ['a']\ntools = ['*']\nrate = '100/min'\nconcurrency = 2\n\
             [callers.b]\nscopes = ['b']\ntools = []\nrate = '2/s'\nconcurrency = 5\n\
             [callers.c]\nscopes = ['c']\ntools = []\n",
        );
        let bounds = |scopes: &[&str]| {
            let rights = callers.rights("x", scopes.iter().copied());
            (rights.rates().rate.map(|rate| rate.to_string()), rights.concurrency())
        };
        assert_eq!(bounds(&["a"]), (Some("100/min".to_owned()), Some(2)));
        assert_eq!(bounds(&["a", "b"]), (Some("2/s".to_owned()), Some(5)));
        assert_eq!(bounds(&["a", "c"]), (None, None));
    }

    #[test]
    fn names_of_no_tool_are_found_and_rules_are_compared_by_what_they_say() {
        let one = callers("[callers.a]\ntools = ['wx_nwo', 'wx/noww', 'zzz', 'wx_now', 'b/*', '*']\n");
        let found = one.check_tools(&TOOLS);
        let said: Vec<(&str, Option<&str>)> = found.iter().map(|one| (one.message(), one.hint_text())).collect();
        let named = "write a tool's name as `toolcell list` shows it, \"COMPONENT/TOOL\", \"COMPONENT/*\" or \"*\"";
        assert_eq!(
            said,
            [
                ("there is no tool \"wx_nwo\"", Some("did you mean \"wx_now\"?")),
                ("component \"wx\" has no tool \"noww\"", Some("did you mean \"wx/now\"?")),
                ("there is no tool \"zzz\"", Some(named)),
            ]
        );
        let b = "[callers.b]\ntools = ['now', 'wx/*']\nrate = '60/min'\n";
        let also_b = "[callers.b]\n\nrate = '60/min'\ntools = ['wx/*', 'now', 'now']\n";
        assert_eq!(callers(b).canonical(), callers(also_b).canonical());
        assert_eq!(callers(b).differing(&callers(also_b)), [""; 0]);
        assert_eq!(callers(b).differing(&one), ["a", "b"]);
        assert_eq!(callers(b).words(&TOOLS[2]), ["be called by the name b"]);
        assert_eq!(callers("[callers.default]\ntools = ['*']\n").words(&TOOLS[0]), ["be called by everybody else"]);
    }
}
