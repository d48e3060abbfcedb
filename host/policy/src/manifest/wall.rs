//! The sandbox processes that a component shares with others.
//!
//! | `wall` | the component's calls run in |
//! |---|---|
//! | absent | the processes of all that are granted nothing, or else its own |
//! | `"own"` | its own |
//! | another name | those of all components with this name |

use std::collections::BTreeMap;

use super::{ComponentPolicy, Server, Walls};
use crate::diagnostic::{Diagnostic, Span};
use crate::grants::Delivery;
use crate::names::{self, did_you_mean, meant_or};
use crate::read::{Entry, Problems, Section};

/// The group of sandbox processes that a component's calls run in. `wall` in the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Wall {
    /// No key: components that are granted nothing share processes, each other one has its own.
    #[default]
    Usual,
    /// `"own"`: processes of its own, whatever it is granted.
    Own,
    /// Another name: all components with it share processes, and so the rights of each other there.
    Named(String),
}

/// The word for processes of its own.
const OWN: &str = "own";

/// The walls by name, in the order in which `toolcell walls` prints them.
pub const NAMES: [&str; 17] = [
    "no-new-privileges",
    "dies-with-host",
    "user-namespace",
    "mount-namespace",
    "network-namespace",
    "ipc-namespace",
    "pid-namespace",
    "capabilities",
    "landlock",
    "not-dumpable",
    "fixed-code",
    "system-calls",
    "memory",
    "files",
    "processes",
    "threads",
    "core",
];

impl Wall {
    /// The text in the manifest; `None` without the key.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Usual => None,
            Self::Own => Some(OWN),
            Self::Named(name) => Some(name),
        }
    }
}

/// The component's wall, and the place of its name.
pub(crate) fn read(section: &Section<'_>, problems: &mut Problems) -> (Wall, Span) {
    let Some(entry) = section.get("wall") else { return (Wall::default(), 0..0) };
    let wall = match entry.string(problems) {
        None => Wall::default(),
        Some(OWN) => Wall::Own,
        Some(name) => match names::check_component(name) {
            Ok(()) => Wall::Named(name.to_owned()),
            Err(error) => {
                let message = format!("the wall's name {name:?} {error}");
                problems.add(
                    entry
                        .error("components::wall", message)
                        .hint("write \"own\", or a name of 1 to 64 of a-z, 0-9, _ and -, a letter or a digit first"),
                );
                Wall::default()
            }
        },
    };
    (wall, entry.span)
}

/// The key `walls_without` of `[server]`.
pub(crate) fn read_without(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let mut walls: Vec<String> = Vec::new();
    for (name, span) in entry.strings(NAMES.len(), problems)? {
        if !NAMES.contains(&name) {
            let problem = Diagnostic::error("server::walls_without", format!("{name:?} is not the name of a wall"));
            problems.add(problem.at(span).hint(meant_or(name, NAMES, "`toolcell walls` prints their names")));
        } else if !walls.iter().any(|known| known == name) {
            walls.push(name.to_owned());
        }
    }
    Some(walls)
}

/// Refuses a list of walls that may be missing if walls are off.
pub(crate) fn check_without(server: &Server, section: Option<&Section<'_>>, problems: &mut Problems) {
    let entry = section.and_then(|section| section.get("walls_without"));
    let Some(entry) = entry.filter(|_| server.walls() == Walls::None) else { return };
    let problem = entry.key_error("server::walls_without", "walls_without has no effect: there are no walls");
    problems.add(problem.hint("write walls = \"required\" next to it, or remove it"));
}

/// Reports walls without effect, and those that would share secrets between components.
pub(crate) fn check(server: &Server, components: &[ComponentPolicy], problems: &mut Problems) {
    let mut named: BTreeMap<&str, Vec<&ComponentPolicy>> = BTreeMap::new();
    for component in components.iter().filter(|component| component.wall != Wall::Usual) {
        if server.walls() == Walls::None {
            let problem =
                Diagnostic::warning("components::wall", "wall has no effect: calls run in the host's process");
            problems.add(problem.at(component.wall_span.clone()).hint("add walls = \"best\" to [server]"));
        }
        if let Wall::Named(name) = &component.wall {
            named.entry(name).or_default().push(component);
        }
    }
    for (name, members) in &named {
        match members.as_slice() {
            [alone] => problems.add(nobody_else(name, alone, named.keys().copied())),
            all => {
                all.iter().filter_map(|member| exposes_secrets(name, member)).for_each(|problem| problems.add(problem))
            }
        }
    }
}

fn nobody_else<'n>(name: &str, alone: &ComponentPolicy, all: impl Iterator<Item = &'n str>) -> Diagnostic {
    let problem = Diagnostic::warning("components::wall", format!("no other component has the wall {name:?}"));
    let problem = problem.at(alone.wall_span.clone());
    match did_you_mean(name, all.filter(|other| *other != name)) {
        Some(other) => problem.hint(format!("did you mean {other:?}? write \"own\" for processes of its own")),
        None => problem.hint("write \"own\" for processes of its own"),
    }
}

/// The problem of a component with a guest-held secret that shares its processes.
fn exposes_secrets(name: &str, member: &ComponentPolicy) -> Option<Diagnostic> {
    let exposed = member.grants().secrets().iter().find(|secret| *secret.delivery() == Delivery::Expose)?;
    let message = format!("the processes of the wall {name:?} would hold the secret {:?} for others", exposed.name());
    let hint = "remove the key, so that this component has processes of its own, or remove expose from the secret";
    let problem = Diagnostic::error("components::wall", message).at(member.wall_span.clone());
    Some(problem.label("other components have this wall too").hint(hint))
}
