//! The list of a component's tools, with all that is found in it: made, or kept from an earlier
//! start. Must not hold: how a component is asked for it (that is `call`), or lists of loaders.
use serde::{Deserialize, Serialize};
use toolcell_policy::Limits;
use toolcell_schema::SchemaFindings;

use super::call::{CallReport, ListedBeside};
use crate::bindings::contract;
use crate::encoding::encode;
use crate::failure::Failure;
use crate::load::cache::CodeCache;
use crate::load::component::ToolComponent;
use crate::load::definitions::{SchemaLimits, check_definitions};
use crate::load::told;
use crate::shape::typed::{Descriptions, WrittenDescriptions};
use crate::wasi::cli::capture::Captured;

/// Bytes of a list that is kept, with all that its component printed. A thousand tools with
/// definitions of 16 KiB fit.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// A list, or why there is none.
pub enum Listing {
    /// The report on listing, what else is listed, and the findings about the schemas of the tools.
    Report(Box<CallReport<Vec<contract::Tool>>>, ListedBeside, SchemaFindings),
    /// A text about the component is no WIT: its place, and the problem there.
    NotWit(String),
}

impl Listing {
    /// True if tools were listed, and time was there to look at all of them.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Report(report, _, schemas) => report.outcome.is_ok() && !schemas.too_late,
            Self::NotWit(_) => true,
        }
    }
}

/// The result of listing, before anybody decides on it.
pub(crate) struct Found {
    pub(crate) report: CallReport<Vec<contract::Tool>>,
    pub(crate) beside: Result<ListedBeside, Failure>,
    pub(crate) schemas: SchemaFindings,
}

/// The name of everything that a list of tools depends on.
pub(crate) struct ListName(String);

/// A list of this process, in a file. Another start would find no more.
#[derive(Serialize, Deserialize)]
struct KeptList {
    tools: Vec<contract::Tool>,
    beside: ListedBeside,
    schemas: SchemaFindings,
    printed: String,
    dropped_bytes: u64,
}

impl ListName {
    /// Of a component whose code has this name. `kind` begins it.
    pub(crate) fn of(
        (kind, name): (&str, &str),
        limits: &Limits,
        (written, schemas): (&WrittenDescriptions, &SchemaLimits),
    ) -> Option<Self> {
        let limits: Vec<(&str, u64)> = limits.entries().collect();
        // Another version of this program may describe a typed component otherwise.
        let of = (env!("CARGO_PKG_VERSION"), name, limits, written, schemas.bounds());
        Some(Self(format!("{kind}-{}", blake3::hash(&encode(&of).ok()?).to_hex())))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl KeptList {
    /// Of what was found; `None` where another start might find more.
    fn of(found: &Found) -> Option<Self> {
        let Found { report, beside, schemas } = found;
        let (Ok(tools), Ok(beside), false) = (&report.outcome, beside, schemas.too_late) else { return None };
        let Captured { text, dropped_bytes } = report.captured.clone();
        Some(Self {
            tools: tools.clone(),
            beside: beside.clone(),
            schemas: schemas.clone(),
            printed: text,
            dropped_bytes,
        })
    }

    fn into_listing(self) -> Listing {
        let Self { tools, beside, schemas, printed, dropped_bytes } = self;
        let captured = Captured { text: printed, dropped_bytes };
        let report = CallReport { captured, ..CallReport::without_running(tools) };
        Listing::Report(Box::new(report), beside, schemas)
    }
}

impl Found {
    fn into_listing(self) -> Listing {
        let Self { mut report, beside, schemas } = self;
        let beside = beside.unwrap_or_else(|failure| {
            report.outcome = Err(failure);
            ListedBeside::default()
        });
        Listing::Report(Box::new(report), beside, schemas)
    }
}

impl ToolComponent {
    /// Its tools and other entries, listed under these limits, and what is wrong with the schemas.
    /// A list of an earlier start is taken, if it was made of the same: nothing runs then.
    ///
    /// `schemas` is for those of the tools. Compiling them may take its time: call this where that
    /// is nobody's.
    pub async fn list(&self, limits: &Limits, written: &WrittenDescriptions, schemas: SchemaLimits) -> Listing {
        let kept = self
            .kept_as()
            .and_then(|(cache, name)| Some((cache, ListName::of(("own-list", name), limits, (written, &schemas))?)));
        if let Some(kept) = kept.as_ref().and_then(|(cache, name)| find(cache, name)) {
            return kept.into_listing();
        }
        let found = match written.clone().read() {
            Ok(descriptions) => self.look(limits, &descriptions, &schemas).await,
            Err(error) => return Listing::NotWit(error.to_string()),
        };
        if let Some(((cache, name), list)) = kept.zip(KeptList::of(&found)) {
            told::keep(cache, name.as_str(), &list, LIST_BYTES_MAX);
        }
        found.into_listing()
    }

    /// Lists its entries, and compiles the schemas of its tools for what is wrong with them.
    pub(crate) async fn look(&self, limits: &Limits, descriptions: &Descriptions, schemas: &SchemaLimits) -> Found {
        let report = self.list_tools(limits, descriptions).await;
        let schemas = check_definitions(report.outcome.as_deref().unwrap_or_default(), schemas);
        let beside = self.list_beside_tools(limits).await;
        Found { report, beside, schemas }
    }
}

fn find(cache: &CodeCache, name: &ListName) -> Option<KeptList> {
    told::find(cache, name.as_str(), LIST_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::Duration;

    use toolcell_policy::{Limit, LoadLimit, LoadLimits};

    use super::*;
    use crate::load::digest::Digest;
    use crate::load::precompiled::CodeOrigin;
    use crate::load::sandbox::{Sandbox, SandboxOptions};

    const ADDS: &str = r#"(component
        (core module $module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
        (core instance $instance (instantiate $module))
        (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $instance "add"))))"#;

    /// An engine that keeps what it finds in this folder.
    fn sandbox(root: &Path) -> Sandbox {
        let cache = CodeCache::open(&root.join("code"), &root.join("state/key"), 1 << 30).unwrap();
        let cache = Some(Arc::new(cache));
        Sandbox::new(SandboxOptions { cache, calls_max: 1, ..SandboxOptions::default() }).unwrap()
    }

    fn adds(sandbox: &Sandbox) -> ToolComponent {
        ToolComponent::load(sandbox, &wat::parse_str(ADDS).unwrap()).unwrap()
    }

    fn schemas(load: LoadLimits) -> SchemaLimits {
        SchemaLimits::of(&load, Duration::from_secs(600))
    }

    /// The descriptions of its tools, listed under these limits.
    async fn listed(component: &ToolComponent, limits: &Limits, written: &WrittenDescriptions) -> Vec<String> {
        listed_within(component, limits, written, LoadLimits::default()).await
    }

    async fn listed_within(
        component: &ToolComponent,
        limits: &Limits,
        written: &WrittenDescriptions,
        load: LoadLimits,
    ) -> Vec<String> {
        let Listing::Report(report, _, found) = component.list(limits, written, schemas(load)).await else {
            panic!("no list")
        };
        let tools = report.outcome.unwrap();
        assert_eq!(found.tools.len(), tools.len());
        tools.into_iter().map(|tool| tool.description).collect()
    }

    /// The kept files whose names begin so.
    fn kept(root: &Path, begin: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(root.join("code")).unwrap().map(|entry| entry.unwrap().path());
        let begins = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(begin);
        entries.filter(begins).collect()
    }

    fn tamper(path: &Path) {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Replaces the kept list by one that says this of its tool, as nobody without the key could.
    fn replace(component: &ToolComponent, kind: &str, description: &str) {
        let (limits, written, schemas) =
            (Limits::default(), WrittenDescriptions::default(), schemas(LoadLimits::default()));
        let (cache, code) = component.kept_as().unwrap();
        let own = ListName::of(("own-list", code), &limits, (&written, &schemas)).unwrap();
        let mut list = find(cache, &own).unwrap();
        list.tools.iter_mut().for_each(|tool| description.clone_into(&mut tool.description));
        let name = ListName::of((kind, code), &limits, (&written, &schemas)).unwrap();
        told::keep(cache, name.as_str(), &list, LIST_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_list_is_kept_for_all_that_it_was_made_of_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let (limits, written) = (Limits::default(), WrittenDescriptions::default());
        let first = adds(&sandbox(root.path()));
        let made = listed(&first, &limits, &written).await;
        replace(&first, "own-list", "kept");
        // Another start.
        let again = adds(&sandbox(root.path()));
        assert_eq!(again.code_origin(), CodeOrigin::Cache);
        assert_eq!(listed(&again, &limits, &written).await, ["kept"]);
        let less = limits.with(Limit::HostData, 1 << 20).unwrap();
        assert_eq!(listed(&again, &less, &written).await, made);
        let given = WrittenDescriptions {
            given: [("add".to_owned(), "adds".to_owned())].into(),
            ..WrittenDescriptions::default()
        };
        assert_eq!(listed(&again, &limits, &given).await, ["adds"]);
        let larger = LoadLimits::default().with(LoadLimit::Definition, 1 << 20).unwrap();
        assert_eq!(listed_within(&again, &limits, &written, larger).await, made);
    }

    #[tokio::test]
    async fn a_list_or_counts_that_were_tampered_with_are_made_again() {
        let root = tempfile::tempdir().unwrap();
        let (limits, written) = (Limits::default(), WrittenDescriptions::default());
        let first = adds(&sandbox(root.path()));
        let made = listed(&first, &limits, &written).await;
        replace(&first, "own-list", "kept");
        for begin in ["own-list-", "own-facts-"] {
            let [path] = kept(root.path(), begin).try_into().unwrap();
            tamper(&path);
            let again = adds(&sandbox(root.path()));
            assert_eq!(again.survey().host_bytes(), first.survey().host_bytes());
            assert_eq!(listed(&again, &limits, &written).await, made, "{begin}");
            assert_eq!(kept(root.path(), begin), [path], "it is mended");
        }
    }

    #[tokio::test]
    async fn a_list_that_a_loader_told_is_not_believed() {
        let root = tempfile::tempdir().unwrap();
        let (limits, written) = (Limits::default(), WrittenDescriptions::default());
        let first = adds(&sandbox(root.path()));
        let made = listed(&first, &limits, &written).await;
        replace(&first, "list", "told by a loader");
        let [own] = kept(root.path(), "own-list-").try_into().unwrap();
        let [told] = kept(root.path(), "list-").try_into().unwrap();
        std::fs::remove_file(&own).unwrap();
        assert_eq!(listed(&adds(&sandbox(root.path())), &limits, &written).await, made);
        // Nor under the name of this process's own.
        std::fs::rename(told, own).unwrap();
        assert_eq!(listed(&adds(&sandbox(root.path())), &limits, &written).await, made);
    }

    #[test]
    fn a_component_is_found_once_it_was_loaded_and_as_long_as_its_code_is_there() {
        let (root, bytes) = (tempfile::tempdir().unwrap(), wat::parse_str(ADDS).unwrap());
        let (sandbox, digest) = (sandbox(root.path()), Digest::of(&bytes));
        let find = || ToolComponent::find(&sandbox, &bytes, digest).unwrap();
        assert!(find().is_none());
        let loaded = ToolComponent::load(&sandbox, &bytes).unwrap();
        let found = find().unwrap();
        assert_eq!((found.code_origin(), found.digest()), (CodeOrigin::Cache, loaded.digest()));
        assert_eq!(found.inspection().exports(), loaded.inspection().exports());
        for path in kept(root.path(), "").into_iter().filter(|path| path.extension().is_some_and(|end| end == "cwasm"))
        {
            std::fs::remove_file(path).unwrap();
        }
        assert!(find().is_none());
    }
}
