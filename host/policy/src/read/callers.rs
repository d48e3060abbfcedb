//! Reads `[callers]`.

use std::collections::HashMap;
use std::sync::Arc;

use super::arguments::{self, CONDITIONS_ALL_MAX, ConditionsOf};
use super::{Entry, Problems, Section};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::callers::{
    ANYONE, CONCURRENCY, CONCURRENCY_SHARED, CONSOLE, CallerRule, Callers, DEFAULT, LOCAL, QUOTA, RATE,
    SCOPE_BYTES_MAX, TakenNames, ToolPattern, is_caller_name, is_caller_scope,
};
use crate::manifest::{ArgumentConditions, ComponentPolicy, HttpPolicy};
use crate::names::{check_component, check_tool, did_you_mean, toml_key};
use crate::table::table;

/// Rules of one manifest: one for each team and program, not for each person: people have scopes.
pub(crate) const RULES_MAX: usize = 200;

/// Names, scopes or tools of one rule.
const LISTED_MAX: usize = 1_000;

/// The longest name of a rule, in characters.
const RULE_NAME_CHARS_MAX: usize = 64;

table! {
    /// The tools that some callers see and call. A caller named in a rule has that rule alone;
    /// others have all rules with a scope of theirs.
    pub(crate) CALLER "Caller" {
        /// Its callers: names of tokens (`toolcell token new NAME`), `ISSUER:SUBJECT` from an
        /// issuer of `[http.oauth]`, `local` over stdio, `anyone` where callers need no token.
        /// Without this and `scopes`, the rule's own name.
        "names": List(&Text),
            {"minItems": 1, "maxItems": LISTED_MAX, "examples": [["ci", "corp:248289761001"]]};
        /// Scopes: it is for callers that have one of them.
        "scopes": List(&Text), {"minItems": 1, "maxItems": LISTED_MAX, "examples": [["tools:read"]]};
        /// The tools that these callers see and call: `*` for all, `COMPONENT/*`, `COMPONENT/TOOL`,
        /// or a tool's name as clients see it. Others are unknown to them.
        "tools" required: List(&Text), {"maxItems": LISTED_MAX, "examples": [["weather/*", "echo"]]};
        /// The prompts that these callers see and get: `*` for all, `COMPONENT/*`,
        /// `COMPONENT/PROMPT`, or a prompt's name as clients see it. None by default.
        "prompts": List(&Text), {"maxItems": LISTED_MAX, "examples": [["review"], ["*"]]};
        /// The skills that these callers see and read: `*` for all, `FOLDER/*` for those directly
        /// in a folder, or a skill's path. None by default.
        "skills": List(&Text), {"maxItems": LISTED_MAX, "examples": [["acme/billing/*"], ["*"]]};
        /// Conditions on arguments, by tool (`COMPONENT/TOOL`) and argument: a pattern (`*` for any
        /// characters but `/`, `**` for any), several, or a JSON Schema. A named argument must be
        /// there, unless its table has `optional = true`. A caller with several rules meets the
        /// conditions of each.
        "arguments": Named(&Any), {"propertyNames": {"pattern": "^[^/]+/[^/]+$"}, "maxProperties": LISTED_MAX,
            "examples": [{"github/create_issue": {"repo": "sandbox-*"}}]};
        /// The rate of one caller, all tools together.
        "rate": Limit(&RATE), {"examples": ["600/min"]};
        /// A second bound on the calls of one caller, all tools together, over a longer time. All
        /// of it may come at once; it refills evenly, not at a time of day.
        "quota": Limit(&QUOTA), {"examples": ["2_000/d"]};
        /// Calls of one caller that run at once in each replica, all tools together. More wait as
        /// for a tool.
        "concurrency": Limit(&CONCURRENCY), {"examples": [8]};
        /// Calls of one caller that run at once over all replicas that share state.
        "concurrency_shared": Limit(&CONCURRENCY_SHARED), {"examples": [20]};
    }
    other names {
        "name" => "names", "tokens" => "names", "subjects" => "names", "scope" => "scopes", "tool" => "tools",
        "allow" => "tools", "prompt" => "prompts", "skill" => "skills",
    }
}

/// The rules, in the order of the file.
pub(crate) fn read(
    root: &Section<'_>,
    http: Option<&HttpPolicy>,
    components: &[ComponentPolicy],
    problems: &mut Problems,
) -> Callers {
    let Some(entry) = root.get("callers") else { return Callers::default() };
    let Some(section) = entry.section(problems) else { return Callers::default() };
    if section.len() > RULES_MAX {
        let message = format!("{} rules for callers, at most {RULES_MAX} are allowed", section.len());
        problems.add(entry.key_error("callers::too_many", message));
        return Callers::default();
    }
    let mut seen = HashMap::new();
    let context = Context { http, components };
    let rules = section.entries().into_iter().filter_map(|entry| rule(&entry, &context, &mut seen, problems));
    let rules: Vec<CallerRule> = rules.collect();
    let conditions: usize = rules.iter().flat_map(|rule| &rule.arguments).map(|table| table.conditions().len()).sum();
    if conditions > CONDITIONS_ALL_MAX {
        let message = format!("{conditions} conditions on arguments, at most {CONDITIONS_ALL_MAX} are allowed");
        problems.add(entry.key_error("arguments::too_many", message));
    }
    Callers::new(rules)
}

/// Why no caller of this name can have a token, and a hint.
pub(crate) fn without_token(http: Option<&HttpPolicy>, name: &str) -> Option<(String, &'static str)> {
    if name.is_empty() || matches!(name, LOCAL | ANYONE | CONSOLE) {
        let hint = "name a caller that `toolcell token new NAME` makes, or one of an issuer: ISSUER:SUBJECT";
        return Some((format!("no token belongs to {name:?}"), hint));
    }
    Context { http, components: &[] }.nobody(name)
}

struct Context<'c> {
    http: Option<&'c HttpPolicy>,
    components: &'c [ComponentPolicy],
}

impl Context<'_> {
    /// Whether callers have tokens of a file, and whether they have tokens of an issuer.
    fn tokens(&self) -> (bool, bool) {
        let has = |has: fn(&HttpPolicy) -> bool| self.http.is_some_and(has);
        (has(|http| http.tokens().is_some()), has(|http| http.oauth().is_some()))
    }

    /// Why no caller has this name, and a hint.
    fn nobody(&self, name: &str) -> Option<(String, &'static str)> {
        const NO_FILE: &str = "name a file of tokens: [http] tokens = \"tokens.jsonl\"";
        let (file, issuers) = self.tokens();
        let issuer = name.split_once(':').map(|(issuer, _)| issuer);
        if let Some(issuer) = issuer {
            let oauth = self.http.and_then(HttpPolicy::oauth);
            let known = oauth.is_some_and(|oauth| oauth.issuers().iter().any(|known| known.name() == issuer));
            let hint = "a caller of an issuer is called ISSUER:SUBJECT, by the names in [http.oauth.issuers]";
            return (!known).then(|| (format!("[http.oauth] has no issuer {issuer:?}"), hint));
        }
        match name {
            LOCAL => None,
            ANYONE if file || issuers => {
                Some(("nobody can be \"anyone\" where callers show tokens".to_owned(), "remove it, or call it default"))
            }
            ANYONE => None,
            _ if !file => Some((format!("nobody is called {name:?}: there is no file of tokens"), NO_FILE)),
            _ => None,
        }
    }
}

fn rule(
    entry: &Entry<'_>,
    context: &Context<'_>,
    seen: &mut HashMap<String, String>,
    problems: &mut Problems,
) -> Option<CallerRule> {
    check_name(entry, problems);
    let section = entry.table(&CALLER, problems)?;
    let scopes = section.get("scopes");
    let names = names(entry, &section, scopes.as_ref(), problems);
    check_names(entry, &names, context, seen, problems);
    if let (Some(entry), (false, false)) = (&scopes, context.tokens()) {
        let problem = Diagnostic::error("callers::never", "no caller has scopes without tokens");
        let hint = "name a file of tokens ([http] tokens = \"tokens.jsonl\") or an issuer ([http.oauth])";
        problems.add(problem.at(entry.key_span.clone()).hint(hint));
    }
    let scopes = scopes.map(|entry| listed(&entry, problems)).unwrap_or_default();
    let rate = section.number(&RATE, problems);
    let quota = section.number(&QUOTA, problems);
    let concurrency = section.number(&CONCURRENCY, problems);
    let concurrency_shared = section.number(&CONCURRENCY_SHARED, problems);
    let tools = tools(entry, &section, context.components, problems);
    let prompts = section.get("prompts").map(|entry| patterns(&entry, context.components, problems));
    let prompts = prompts.unwrap_or_default();
    let skills = section.get("skills").map(|entry| skills(&entry, problems)).unwrap_or_default();
    let taken = [&tools, &prompts, &skills].map(|patterns| TakenNames::of(patterns));
    let arguments = section.get("arguments").map(|table| conditions(entry.key, &table, context, problems));
    Some(CallerRule {
        name: entry.key.to_owned(),
        span: entry.key_span.clone(),
        names: names.into_iter().map(|(name, _)| name).collect(),
        scopes: scopes.into_iter().map(|(scope, _)| scope).collect(),
        arguments: arguments.unwrap_or_default(),
        taken,
        tools,
        prompts,
        skills,
        rate,
        quota,
        concurrency: concurrency.and_then(|count| usize::try_from(count).ok()),
        concurrency_shared: concurrency_shared.and_then(|count| usize::try_from(count).ok()),
    })
}

/// The conditions of a rule on arguments of tools.
fn conditions(
    rule: &str,
    table: &Entry<'_>,
    context: &Context<'_>,
    problems: &mut Problems,
) -> Vec<Arc<ArgumentConditions>> {
    let entries = table.entries(LISTED_MAX, "arguments::too_many", "tools", problems);
    let read = entries.iter().filter_map(|entry| {
        let named = pattern(entry.key, &entry.key_span, context.components, problems)?;
        let ToolPattern::Own(component, tool) = named else {
            let problem = entry.key_error("arguments::tool", format!("{:?} does not name one tool", entry.key));
            return problems.refuse(problem.hint("write \"COMPONENT/TOOL\", with the tool's own name"));
        };
        let section = format!("callers.{}.arguments.{}", toml_key(rule), toml_key(entry.key));
        let of = ConditionsOf { section, component: &component, tool: &tool };
        arguments::read(entry, of, problems).map(Arc::new)
    });
    read.collect()
}

/// The callers that a rule names; by default the one with the rule's name.
fn names(
    entry: &Entry<'_>,
    section: &Section<'_>,
    scopes: Option<&Entry<'_>>,
    problems: &mut Problems,
) -> Vec<(String, Span)> {
    let names = section.get("names");
    if matches!(entry.key, DEFAULT | LOCAL | ANYONE) {
        for more in [names.as_ref(), scopes].into_iter().flatten() {
            let message = format!("{:?} has a fixed meaning: it cannot have {}", entry.key, more.key);
            problems.add(more.key_error("callers::reserved", message).hint("give the rule another name"));
        }
    }
    match names {
        Some(names) => listed(&names, problems),
        None if scopes.is_none() && entry.key != DEFAULT => vec![(entry.key.to_owned(), entry.key_span.clone())],
        None => Vec::new(),
    }
}

/// Reports names that no caller has, and names in several rules.
fn check_names(
    entry: &Entry<'_>,
    names: &[(String, Span)],
    context: &Context<'_>,
    seen: &mut HashMap<String, String>,
    problems: &mut Problems,
) {
    for (name, span) in names {
        if let Some((why, hint)) = context.nobody(name) {
            let message = format!("{why}; [callers.{}] can never apply to it", entry.key);
            problems.add(Diagnostic::error("callers::never", message).at(span.clone()).hint(hint));
        }
        match seen.get(name) {
            Some(rule) => problems.add(
                Diagnostic::error("callers::twice", format!("the caller {name:?} has a rule already"))
                    .at(span.clone())
                    .hint(format!("it is [callers.{rule}]; a named caller has only that rule")),
            ),
            None => drop(seen.insert(name.clone(), entry.key.to_owned())),
        }
    }
}

fn check_name(entry: &Entry<'_>, problems: &mut Problems) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    let name = entry.key;
    if name.is_empty() || name.len() > RULE_NAME_CHARS_MAX || !name.chars().all(plain) {
        problems.add(
            entry
                .key_error("callers::name", format!("{name:?} cannot be the name of a rule"))
                .hint(format!("write 1 to {RULE_NAME_CHARS_MAX} of A-Z a-z 0-9 - _ . @; other names go into `names`")),
        );
    }
}

/// Names of callers, or of scopes.
fn listed(entry: &Entry<'_>, problems: &mut Problems) -> Vec<(String, Span)> {
    let Some(texts) = entry.strings(LISTED_MAX, problems) else { return Vec::new() };
    if texts.is_empty() {
        let message = format!("{} is empty: the rule can never apply", entry.key);
        let problem = entry.error("callers::nobody", message);
        problems.add(problem.hint(format!("name at least one, or remove {}", entry.key)));
    }
    let mut read = Vec::new();
    for (text, span) in texts {
        let fits = if entry.key == "scopes" { is_caller_scope(text) } else { is_caller_name(text) };
        if fits {
            read.push((text.to_owned(), span));
            continue;
        }
        let what = if entry.key == "scopes" { "not a scope" } else { "not a caller's name" };
        let problem = Diagnostic::error("callers::text", format!("{text:?} is {what}")).at(span);
        problems.add(problem.hint(format!("write 1 to {SCOPE_BYTES_MAX} visible characters, each scope by itself")));
    }
    read
}

fn tools(
    entry: &Entry<'_>,
    section: &Section<'_>,
    components: &[ComponentPolicy],
    problems: &mut Problems,
) -> Vec<(ToolPattern, Span)> {
    let Some(tools) = section.get("tools") else {
        problems.add(
            entry
                .key_error("callers::tools", format!("[callers.{}] does not say which tools", entry.key))
                .hint("write tools = [\"*\"] for all, [\"COMPONENT/*\"] or [\"TOOL\"] for some, [] for none"),
        );
        return Vec::new();
    };
    patterns(&tools, components, problems)
}

fn patterns(entry: &Entry<'_>, components: &[ComponentPolicy], problems: &mut Problems) -> Vec<(ToolPattern, Span)> {
    let texts = entry.strings(LISTED_MAX, problems).unwrap_or_default();
    texts.into_iter().filter_map(|(text, span)| Some((pattern(text, &span, components, problems)?, span))).collect()
}

fn pattern(text: &str, span: &Span, components: &[ComponentPolicy], problems: &mut Problems) -> Option<ToolPattern> {
    if text == "*" {
        return Some(ToolPattern::All);
    }
    let Some((component, own)) = text.split_once('/') else {
        if check_tool(text).is_ok() {
            return Some(ToolPattern::Exposed(text.to_owned()));
        }
        return problems.refuse(no_pattern(text, span));
    };
    if check_component(component).is_err() || (own != "*" && check_tool(own).is_err()) {
        return problems.refuse(no_pattern(text, span));
    }
    if !components.iter().any(|known| known.name() == component) {
        let message = format!("there is no component {component:?}");
        let problem = Diagnostic::error("callers::unknown_component", message).at(span.clone());
        let meant = did_you_mean(component, components.iter().map(ComponentPolicy::name));
        problems.add(match meant {
            Some(name) => problem.hint(format!("did you mean \"{name}/{own}\"?")),
            None => problem,
        });
    }
    Some(match own {
        "*" => ToolPattern::Component(component.to_owned()),
        own => ToolPattern::Own(component.to_owned(), own.to_owned()),
    })
}

/// Patterns of skills, which are paths of folders.
fn skills(entry: &Entry<'_>, problems: &mut Problems) -> Vec<(ToolPattern, Span)> {
    let is_path = |path: &str| path.split('/').all(|part| !part.is_empty() && !part.contains('*'));
    let texts = entry.strings(LISTED_MAX, problems).unwrap_or_default();
    let patterns = texts.into_iter().filter_map(|(text, span)| {
        let pattern = match text.rsplit_once('/') {
            _ if text == "*" => ToolPattern::All,
            Some((folder, "*")) if is_path(folder) => ToolPattern::Component(folder.to_owned()),
            _ if is_path(text) => ToolPattern::Exposed(text.to_owned()),
            _ => {
                let problem = Diagnostic::error("callers::skill", format!("{text:?} names no skills")).at(span);
                let hint = "write \"*\", \"FOLDER/*\", or a skill's path as `toolcell list` shows it";
                return problems.refuse(problem.hint(hint));
            }
        };
        Some((pattern, span))
    });
    patterns.collect()
}

fn no_pattern(text: &str, span: &Span) -> Diagnostic {
    Diagnostic::error("callers::tool", format!("{text:?} names no tools or prompts"))
        .at(span.clone())
        .hint("write \"*\", \"COMPONENT/*\", \"COMPONENT/NAME\", or a name as clients see it")
}
