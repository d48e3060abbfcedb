//! The rights that a manifest grants, one file for each. A right's file holds its keys for
//! components, tools and requested permissions, its reading and narrowing, its canonical form, its
//! words, the line that grants it, and the imports that use it. All code that deals with rights
//! iterates over `ALL`. Must not hold: decisions (see `grants`), or acting on them.

pub(crate) mod args;
mod calls;
pub(crate) mod config;
pub(crate) mod env;
mod files;
mod http;
mod keyvalue;
mod network;
mod private;
mod secrets;
mod sockets;
pub(crate) mod stdin;
pub(crate) mod ungranted;
mod used;
mod values;

use std::sync::Arc;

use serde_json::Value;

use crate::canonical::is_empty;
use crate::capabilities::ReachRow;
use crate::diagnostic::{Diagnostic, Span};
use crate::edit::{self, ManifestEntry};
use crate::explain::{Ask, AskTextError, Verdict};
use crate::grants::{Capability, Denial, Grants, Reason, Subject};
use crate::imports::Use;
use crate::manifest::LoginPolicy;
use crate::read::{Entry, Problems, Section};
use crate::requested_permissions::RequestedPermissions;
use crate::suggest::Needs;
use crate::table::Key;

pub(crate) use http::{check_slip, entry as http_entry, need as need_request, request};
pub(crate) use secrets::{FORMS_OF_HOST, source_of_host};
pub use secrets::{is_secret_query, secret_header_fault};
pub(crate) use used::{ALL_NAMES, Narrower, RuleNeighbours, UsedGrants};
pub(crate) use values::named;

/// Every right, in the order in which people see them. Secrets are read after the rules of HTTP
/// that they need.
pub(crate) static ALL: [&Right; 14] = [
    &files::FILES,
    &network::NETWORK,
    &http::HTTP,
    &sockets::TCP,
    &sockets::UDP,
    &private::PRIVATE,
    &env::ENV,
    &args::ARGS,
    &stdin::STDIN,
    &config::CONFIG,
    &keyvalue::STATE,
    &calls::CALLS,
    &secrets::SECRETS,
    &ungranted::UNGRANTED,
];

/// One right. Defaults are in [`Right::NONE`]. Each function takes the right itself.
pub(crate) struct Right {
    /// The key in a component's table that grants it, and in a tool's that narrows it.
    pub(crate) section: &'static str,
    /// The kind of its requests, where each is a word and a name: `env UNITS`. The word is the
    /// kind's name.
    pub(crate) named: Option<Capability>,
    /// Its keys in a component's table.
    pub(crate) keys: &'static [Key],
    /// Its keys in a tool's table.
    pub(crate) keys_of_tool: &'static [Key],
    /// Its keys among the permissions that a component requests.
    pub(crate) keys_of_request: &'static [Key],
    /// How a tool's table narrows it; `None` if it cannot.
    pub(crate) narrowing: Option<Narrowing>,
    /// Reads a component's grant. Invalid values are reported and left out.
    read: fn(&Self, &Entry<'_>, &[Arc<LoginPolicy>], &mut Grants, &mut Problems),
    /// Applies a tool's table to the component's grants. False if the entry is about something
    /// else.
    narrow: fn(&Self, &Entry<'_>, &mut Grants, &mut Problems) -> bool,
    /// Reads a component's request.
    pub(crate) read_request: fn(&Self, &Entry<'_>, &mut RequestedPermissions, &mut Problems),
    /// A component's requests, in the form of `toolcell grant`.
    pub(crate) requested: fn(&Self, &RequestedPermissions) -> Vec<String>,
    /// The places of grants beyond the request.
    pub(crate) beyond: fn(&Self, &RequestedPermissions, &Grants) -> Vec<Span>,
    /// Its canonical form; null or empty if it is not granted.
    pub(crate) canonical: fn(&Self, &Grants) -> Value,
    /// What it allows, one row each.
    pub(crate) reach: fn(&Self, &Grants) -> Vec<ReachRow>,
    /// Its lines in a lock's difference, each a right by itself.
    pub(crate) lock_lines: fn(&Self, &Grants) -> Vec<String>,
    /// What it allows, for problems.
    what: &'static str,
    /// Imports of which any can use it.
    imports: &'static [&'static str],
    /// Where it is granted, and the imports that can use it.
    pub(crate) uses: fn(&Self, &Grants) -> Vec<Use>,
    /// The first words of questions about it.
    pub(crate) verbs: &'static [&'static str],
    /// True if its word stands alone: `keyvalue`.
    pub(crate) stands_alone: bool,
    /// The forms of questions about it.
    pub(crate) ask_forms: &'static [&'static str],
    /// A question about it, by its first word and the rest.
    pub(crate) ask: fn(&Self, &str, &str) -> Result<Ask, AskTextError>,
    /// The kind of its uses, as evidence knows them; `None` if no evidence shows them.
    pub(crate) evidence: Option<Capability>,
    /// True if a tool's grants have a table of their own for it, with these grants' own rules.
    pub(crate) own_table: fn(&Self, &Grants) -> bool,
    /// What its grants may become without what was used.
    pub(crate) narrower: fn(&Self, &UsedGrants<'_>) -> Vec<Narrower>,
    /// Requests around each of its grants.
    pub(crate) neighbours: fn(&Self, &Grants, &[&Ask]) -> Vec<RuleNeighbours>,
    /// The answer to a question about it; `None` for other questions.
    pub(crate) explain: fn(&Self, &Grants, &Ask, &mut Vec<String>) -> Option<Verdict>,
    /// The line of its section that grants a name.
    line: fn(&str) -> String,
    /// The lines of its section that would allow the denied requests.
    pub(crate) needed: fn(&Self, &Needs) -> Vec<String>,
    /// Its forms on the command line, for hints.
    forms: &'static [&'static str],
    /// Its lines in the help of `toolcell grant`.
    help: &'static str,
    /// The part that a person adds to a requested right.
    blank: &'static str,
    /// The entry for a text on the command line, by its first word and the rest. A right to revoke
    /// has no value.
    pub(crate) entry: fn(&Self, &str, &str) -> Option<ManifestEntry>,
    /// The value of an entry, by its name and the text after it.
    value: fn(&str, Option<&str>) -> Option<edit::Value>,
    /// What `toolcell inspect` shows for a component that can use it.
    example: Option<Example>,
}

impl Right {
    /// The defaults. Some functions work for any right with `named`.
    const NONE: Self = Self {
        section: "",
        named: None,
        keys: &[],
        keys_of_tool: &[],
        keys_of_request: &[],
        narrowing: None,
        read: |_, _, _, _, _| {},
        narrow: |_, _, _, _| false,
        read_request: |right, entry, requested, problems| {
            if let Some(capability) = right.named {
                requested.named.insert(capability, values::names(entry, problems));
            }
        },
        requested: |right, requested| {
            let Some(capability) = right.named else { return Vec::new() };
            requested.names(capability).iter().map(|name| edit::right_text(capability.name(), name)).collect()
        },
        beyond: |_, _, _| Vec::new(),
        canonical: |_, _| Value::Null,
        reach: |_, _| Vec::new(),
        lock_lines: |_, _| Vec::new(),
        what: "",
        imports: &[],
        uses: |right, grants| {
            let span = grants.place(right.section).filter(|_| !is_empty(&(right.canonical)(right, grants)));
            if right.imports.is_empty() { Vec::new() } else { vec![right.used(span)] }
        },
        verbs: &[],
        stands_alone: false,
        ask_forms: &[],
        ask: |right, _, rest| match right.named {
            Some(capability) => Ok(Ask::Named(capability, rest.to_owned())),
            None => Err(AskTextError::new("the question is empty")),
        },
        evidence: None,
        own_table: |_, _| false,
        narrower: |_, _| Vec::new(),
        neighbours: |_, _, _| Vec::new(),
        explain: |_, _, _, _| None,
        line: |_| String::new(),
        needed: |right, needs| {
            let names = right.named.into_iter().flat_map(|capability| needs.names(capability));
            names.map(|name| (right.line)(name)).collect()
        },
        forms: &[],
        help: "",
        blank: "",
        entry: |right, verb, rest| {
            let (name, value) = edit::name_and_value(rest);
            right.named.filter(|capability| capability.name() == verb && !name.is_empty())?;
            Some(ManifestEntry { section: right.section, key: name.to_owned(), value: (right.value)(name, value)? })
        },
        value: |_, _| None,
        example: None,
    };

    /// The denial of a name that is not granted.
    pub(crate) fn denied(&self, grants: &Grants, name: &str) -> Denial {
        let capability = self.named.unwrap_or(Capability::Filesystem);
        let asked = edit::right_text(capability.name(), name);
        Denial::new(capability, asked, Reason::NoRule, grants.subject())
            .allowed_by(&grants.subject().section(self.section), (self.line)(name))
    }

    /// Where it is granted, with the imports that can use it.
    pub(crate) fn used(&self, span: Option<Span>) -> Use {
        Use { what: self.what, span, imports: self.imports }
    }
}

/// How a tool's table narrows a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrowing {
    /// False removes it.
    Flag,
    /// A list of the remaining names.
    Names,
    /// A list of the remaining entries, in the component's own table.
    List,
    /// A table of the remaining mounts.
    Mounts,
    /// A list of rules at this key of the section. If it is missing, none remain.
    Rules(&'static str),
    /// A list of rules at this key of the section. If it is missing, the component's remain.
    RulesKept(&'static str),
}

/// A right that a component may need, with examples.
#[derive(Debug)]
pub struct Example {
    /// Imports that indicate it.
    pub imports: &'static [&'static str],
    /// The code whose import indicates the need.
    pub importer: Importer,
    /// What it allows.
    pub what: &'static str,
    /// An example in a manifest.
    pub grant: &'static str,
    /// An example for `toolcell grant`.
    pub right: &'static str,
}

/// The code that causes an import. Only an import of the tool's own code indicates a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importer {
    /// The tool's code.
    Tool,
    /// The tool's code, or a JavaScript engine regardless of its script.
    ToolOrEngine,
    /// The libraries of most languages, regardless of the tool.
    Library,
}

/// A table of a component in which rights are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RightPlace {
    /// The section below `[components.NAME]`, such as `network`; or the list there, such as
    /// `calls`.
    pub section: &'static str,
    /// Its form.
    pub form: PlaceForm,
}

/// How rights are written at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceForm {
    /// A table whose keys are names.
    Names,
    /// A table with a list of rules at this key.
    Rules(&'static str),
    /// A list, in the component's own table.
    List,
}

/// Rights that components may need.
pub fn examples() -> impl Iterator<Item = &'static Example> {
    ALL.iter().filter_map(|right| right.example.as_ref())
}

/// The places of rights, in the order in which they are written.
pub fn places() -> impl Iterator<Item = RightPlace> {
    ALL.iter().filter_map(|right| {
        let form = match right.narrowing? {
            Narrowing::Rules(key) | Narrowing::RulesKept(key) => PlaceForm::Rules(key),
            Narrowing::List => PlaceForm::List,
            Narrowing::Flag | Narrowing::Names | Narrowing::Mounts => PlaceForm::Names,
        };
        Some(RightPlace { section: right.section, form })
    })
}

/// The forms of rights on the command line, for hints: `write "GET https://…", …`.
#[must_use]
pub fn forms() -> String {
    listed(|right| right.forms)
}

/// The part of the help of `toolcell grant` that has a line for each right.
#[must_use]
pub fn help() -> String {
    rule_first().map(|right| right.help).collect()
}

/// The part that a person adds to a requested right: ` = FOLDER`. Empty if nothing is missing.
#[must_use]
pub fn blank(right: &str) -> &'static str {
    let verb = right.split_once(' ').map_or("", |(verb, _)| verb);
    ALL.iter().find(|right| right.verbs.contains(&verb)).map_or("", |right| right.blank)
}

/// Every right, starting with the one whose texts begin with no word of its own.
fn rule_first() -> impl Iterator<Item = &'static Right> {
    let rest = ALL.iter().copied().filter(|right| right.help != http::HTTP.help);
    std::iter::once(&http::HTTP).chain(rest)
}

/// Forms in quotes, as the end of a sentence.
pub(crate) fn listed(forms: impl Fn(&Right) -> &'static [&'static str]) -> String {
    let quoted: Vec<String> = rule_first().flat_map(forms).map(|form| format!("{form:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => format!("write {last}"),
        Some((last, others)) => format!("write {} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// How a tool's table narrows the right at this key of a section.
pub(crate) fn narrowing_of(section: &str, key: &str) -> Option<Narrowing> {
    ALL.iter().filter(|right| right.section == section).find_map(|right| match right.narrowing? {
        Narrowing::Rules(list) | Narrowing::RulesKept(list) if list != key => None,
        narrowing => Some(narrowing),
    })
}

/// The grants of a component. Invalid ones are reported and left out.
pub(crate) fn read(
    component: &str,
    section: &Section<'_>,
    logins: &[Arc<LoginPolicy>],
    problems: &mut Problems,
) -> Arc<Grants> {
    let mut grants = Grants::sealed(component, None);
    for right in ALL {
        let Some(entry) = section.get(right.section) else { continue };
        grants.places.insert(right.section, entry.key_span.clone());
        (right.read)(right, &entry, logins, &mut grants, problems);
    }
    secrets::refuse_second_names(&grants, problems);
    Arc::new(grants)
}

/// A tool's grants: the component's, narrowed by its table.
pub(crate) fn narrow(
    tool: &str,
    section: &Section<'_>,
    component: &Arc<Grants>,
    problems: &mut Problems,
) -> Arc<Grants> {
    let subject = Arc::new(Subject::new(component.subject.component(), Some(tool)));
    let mut grants = component.of(&subject);
    let mut narrows = false;
    for right in ALL {
        if let Some(entry) = section.get(right.section) {
            narrows |= (right.narrow)(right, &entry, &mut grants, problems);
        }
    }
    grants.wider = narrows.then(|| Arc::clone(component));
    Arc::new(grants)
}

/// The advice to a tool's entry that its component does not have.
const ADDS_NOTHING: &str = "a tool narrows what its component is granted, and adds nothing";

/// The problem of a tool's entry that would add to its component's grants.
fn wider(message: &str, span: Span, hint: &str) -> Diagnostic {
    Diagnostic::error("grants::wider", message).at(span).hint(hint)
}
