//! The components whose calls can be recorded: by the manifest's rules, or since an operator may
//! order it. Must not hold: which calls are recorded.
use std::sync::Arc;

use toolcell_policy::{RecordRule, is_later_wasi};

use super::{CallTarget, Catalog, CatalogSettings, LoadedComponent, targets};

/// The components whose sandbox processes get a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedComponents {
    /// Those for which the manifest has a rule.
    Ruled,
    /// All that can be recorded: operators may have calls recorded while they are served.
    Orderable,
    /// All, by an option of the command.
    All,
}

/// Why an operator cannot have a tool's calls recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRecordable {
    /// The manifest names no folder of recordings.
    NoFolder,
    /// The manifest lets no operator decide.
    OnlyShows,
    /// All of its calls are recorded.
    AllAre,
    /// Its calls share instances.
    SharesInstances,
    /// The component imports WASI 0.3.
    LaterWasi,
    /// This process has nothing to record it with: the log says why.
    Unavailable,
}

impl RecordedComponents {
    /// Those of a manifest with these settings. `all` is an option of the command; `serves` is true
    /// if operators may decide.
    pub(super) fn of(all: bool, serves: bool, settings: &CatalogSettings) -> Self {
        match settings.recordings {
            _ if all => Self::All,
            Some(_) if serves && settings.console.decide => Self::Orderable,
            _ => Self::Ruled,
        }
    }

    pub(super) fn has(self, component: &LoadedComponent) -> bool {
        match self {
            Self::All => true,
            Self::Orderable => component.policy().may_be_recorded() || !has_later_wasi(component),
            Self::Ruled => component.policy().may_be_recorded(),
        }
    }
}

impl NotRecordable {
    /// The lines that the manifest lacks, where some would help.
    pub(crate) const fn lines(self) -> Option<&'static str> {
        match self {
            Self::NoFolder => Some("[recordings]\nfolder = \"recordings\""),
            Self::OnlyShows => Some("[console]\ndecide = true"),
            _ => None,
        }
    }

    /// A sentence or two for operators.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::NoFolder => "The manifest names no folder for recordings.",
            Self::OnlyShows => "Operators may not decide.",
            Self::AllAre => "All calls of this tool are recorded: its rule in the manifest is record = \"all\".",
            Self::SharesInstances => {
                "Calls of this tool share instances (instance = \"per-caller\"), and a recorded call has its own."
            }
            Self::LaterWasi => "The component imports WASI 0.3, whose calls cannot be recorded yet.",
            Self::Unavailable => "This process cannot record its calls. The log says why.",
        }
    }
}

impl Catalog {
    /// Whether an operator can have the calls of this tool recorded.
    pub(crate) fn is_recordable(&self, target: &CallTarget) -> Result<(), NotRecordable> {
        if self.settings.recordings.is_none() {
            return Err(NotRecordable::NoFolder);
        }
        if !self.settings.console.decide {
            return Err(NotRecordable::OnlyShows);
        }
        if target.record == RecordRule::All {
            return Err(NotRecordable::AllAre);
        }
        if target.instances.is_some() {
            return Err(NotRecordable::SharesInstances);
        }
        if has_later_wasi(&target.component) {
            return Err(NotRecordable::LaterWasi);
        }
        let has_relay = self.walled.recorded_manifest(target).is_some();
        (has_relay && self.services.recordings.is_some()).then_some(()).ok_or(NotRecordable::Unavailable)
    }

    /// Ends recordings of calls that operators ordered, of tools that are gone or can no longer be
    /// recorded.
    pub(crate) fn end_ordered_recordings(&self) {
        self.services.ordered_recordings.end_where(|ordered| {
            let is_it =
                |target: &&Arc<CallTarget>| target.component.name() == ordered.component && target.name == ordered.tool;
            match targets(&self.entries).find(is_it) {
                None => Some("the manifest was reloaded, and the tool is gone".to_owned()),
                Some(target) => {
                    let problem = self.is_recordable(target).err()?;
                    Some(format!("the manifest was reloaded. {}", problem.text()))
                }
            }
        });
    }
}

fn has_later_wasi(component: &LoadedComponent) -> bool {
    component.component.inspection().imports().iter().any(|name| is_later_wasi(name))
}
