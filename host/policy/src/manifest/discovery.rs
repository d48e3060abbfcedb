//! The way in which clients get to know the tools.

use super::{ComponentPolicy, Server};
use crate::diagnostic::{Diagnostic, Span};
use crate::read::{Problems, Section};
use crate::words::words;

words! {
    /// The way in which clients get to know the tools. `discovery` in the manifest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Discovery or "server::discovery" {
        /// The default: `tools/list` has all of them.
        #[default]
        List "list",
        /// `tools/list` has two tools of the host, `find_tools` and `call_tool`, and those that are
        /// `listed`.
        Search "search",
    }
}

/// The value of `listed`, and its place; `None` without the key.
pub(crate) type ListsTools = Option<(bool, Span)>;

/// The key `listed` of a component or a tool.
pub(crate) fn listed(section: &Section<'_>, problems: &mut Problems) -> ListsTools {
    let entry = section.get("listed")?;
    Some((entry.boolean(problems)?, entry.span))
}

/// A component whose tools are listed unless it says otherwise.
pub(crate) fn pinned(mut component: ComponentPolicy, server: &Server) -> ComponentPolicy {
    if server.discovery() == Discovery::Search {
        component.listed.get_or_insert((true, component.name_span.clone()));
    }
    component
}

/// Reports each `listed` without effect, since all tools are listed.
pub(crate) fn check(server: &Server, components: &[ComponentPolicy], problems: &mut Problems) {
    if server.discovery() == Discovery::Search {
        return;
    }
    for component in components {
        let tools = component.tools.iter().filter_map(|tool| tool.listed.as_ref());
        for (_, span) in component.listed.iter().chain(tools) {
            problems.add(
                Diagnostic::error("tools::listed", "all tools are listed")
                    .at(span.clone())
                    .hint("add discovery = \"search\" to [server], or leave the key out"),
            );
        }
    }
}
