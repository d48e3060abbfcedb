//! The table `[packages]`: which registry says where the packages of a namespace are.

use super::registries::is_registry;
use crate::package::is_label;
use crate::read::{Entry, Problems, Section};
use crate::settings::accessors;

/// Most namespaces. A team uses those of some organisations.
pub(crate) const PACKAGES_MAX: usize = 64;

accessors! {
    /// An entry of `[packages]`.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PackageRegistry {
        /// The namespace: `acme` of `acme:weather`.
        pub(crate) namespace: String => &str,
        /// The host, and port, whose well-known metadata says where the packages are.
        pub(crate) registry: String => &str,
    }
}

/// The namespaces, in the order of the file.
pub(crate) fn read(root: &Section<'_>, problems: &mut Problems) -> Vec<PackageRegistry> {
    let Some(entry) = root.get("packages") else { return Vec::new() };
    let entries = entry.entries(PACKAGES_MAX, "packages::too_many", "namespaces", problems);
    entries.iter().filter_map(|entry| read_one(entry, problems)).collect()
}

fn read_one(entry: &Entry<'_>, problems: &mut Problems) -> Option<PackageRegistry> {
    let is_namespace = is_label(entry.key);
    if !is_namespace {
        let problem = entry.key_error("packages::namespace", format!("{:?} is not a package namespace", entry.key));
        problems.add(problem.hint("write the part before the colon: acme of \"acme:weather\""));
    }
    let registry = entry.string(problems)?;
    if !is_registry(registry) {
        let problem = entry.error("packages::registry", format!("{registry:?} is not a registry host"));
        problems.add(problem.hint("write its host, and its port where it has one: \"registry.example.com\""));
        return None;
    }
    is_namespace.then(|| PackageRegistry { namespace: entry.key.to_owned(), registry: registry.to_owned() })
}
