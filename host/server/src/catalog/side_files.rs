//! Side files of a component: files besides its code that the manifest names and that are read once
//! at load. These are certificates that TLS trusts, secrets, and `.wit` files. A change of one is a
//! change of the component.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolcell_policy::{ComponentPolicy, Grants, SecretSource};

use crate::files::file::absolute;
use crate::files::file_stamp::{self, Stamps};
use crate::files::wit;

/// Paths of the side files; relative ones start from `folder`.
pub fn files(policy: &ComponentPolicy, folder: &Path) -> BTreeSet<PathBuf> {
    // A tool's grants are part of its component's.
    let named = named_by(policy.grants()).map(|written| absolute(&folder.join(written)));
    let wit = policy.typed().wit().into_iter().flat_map(|written| wit::places(&absolute(&folder.join(written))));
    named.chain(wit).collect()
}

/// Stamps of the side files now.
pub fn stamps(policy: &ComponentPolicy, folder: &Path) -> Stamps {
    file_stamp::all(&files(policy, folder))
}

fn named_by(grants: &Grants) -> impl Iterator<Item = &str> {
    let certificates = grants.network().ca().iter().map(|file| file.path());
    let secrets = grants.secrets().iter().filter_map(|secret| match secret.source() {
        SecretSource::File(path) => Some(path.as_str()),
        SecretSource::Env(_) | SecretSource::Keyring { .. } | SecretSource::Login(_) | SecretSource::Program(_) => None,
    });
    certificates.chain(secrets)
}

#[cfg(test)]
mod tests {
    use toolcell_policy::{Source, parse};

    use super::*;

    #[test]
    fn certificates_and_secrets_in_files_are_among_them_once_each() {
        let text = "version = 1\n[components.a]\nsource = \"a.wasm\"\n[components.a.network]\nhttp = [\"https://a.example\"]\n\
                    ca = [\"own.pem\"]\n[components.a.secrets]\n\
                    ONE = { from = \"file:one.txt\", header = \"X-One\", for = \"https://a.example\" }\n\
                    TWO = { from = \"env:TWO\", header = \"X-Two\", for = \"https://a.example\" }\n";
        let manifest = parse(&Source { name: "test", text }).unwrap().manifest;
        let found = files(&manifest.components()[0], Path::new("/folder"));
        assert_eq!(found, ["/folder/one.txt", "/folder/own.pem"].map(PathBuf::from).into());
    }
}
