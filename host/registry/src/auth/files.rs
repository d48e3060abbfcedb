//! Credentials as Docker, Podman and others keep them: `config.json` and `auth.json`.
//!
//! The form is that of Docker's `config.json` and of `containers-auth.json(5)`. The most specific
//! key counts: a repository, the folders above it, then the registry.
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use super::credential::Credential;
use super::helper;
use crate::error::PullError;
use crate::length;

/// Longest file of credentials, in bytes: some thousand entries.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Key of Docker Hub in files that `docker login` writes.
const HUB_KEY: &str = "https://index.docker.io/v1/";

/// The user name that marks a secret as an identity token (protocol of credential helpers).
pub(super) const TOKEN_USER: &str = "<token>";

#[derive(Deserialize)]
struct ConfigFile {
    #[serde(default)]
    auths: BTreeMap<String, CredentialEntry>,
    #[serde(default, rename = "credsStore")]
    creds_store: Option<String>,
    #[serde(default, rename = "credHelpers")]
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
struct CredentialEntry {
    #[serde(default, deserialize_with = "secret")]
    auth: Option<Zeroizing<String>>,
    username: Option<String>,
    #[serde(default, deserialize_with = "secret")]
    password: Option<Zeroizing<String>>,
    #[serde(default, rename = "identitytoken", deserialize_with = "secret")]
    identity_token: Option<Zeroizing<String>>,
    #[serde(default, rename = "registrytoken", deserialize_with = "secret")]
    registry_token: Option<Zeroizing<String>>,
}

/// A text that is overwritten when it is dropped.
pub(super) fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Zeroizing<String>>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map(Zeroizing::new))
}

/// The files that an environment names, in their order.
pub(crate) fn of_environment(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = folder("HOME");
    let docker = folder("DOCKER_CONFIG").map(|folder| folder.join("config.json"));
    let runtime = folder("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json"));
    let containers = home.as_ref().map(|home| home.join(".config/containers/auth.json"));
    let of_home = home.map(|home| home.join(".docker/config.json"));
    [docker, runtime, containers, of_home].into_iter().flatten().collect()
}

/// The first credential for this repository.
///
/// # Errors
/// [`PullError::CredentialFile`] and [`PullError::Helper`].
pub(crate) async fn find(
    files: &[PathBuf],
    helper_folders: &[PathBuf],
    registry: &str,
    repository: &str,
) -> Result<Option<Credential>, PullError> {
    for path in files {
        let Some(file) = read(path)? else { continue };
        for key in keys(registry, repository) {
            if let Some((server, name)) = file.cred_helpers.iter().find(|(written, _)| normal(written) == key) {
                return helper::get(name, helper_folders, server).await;
            }
            let entry = file.auths.iter().find(|(written, _)| normal(written) == key);
            if let Some(found) = entry.map(|(_, entry)| credential(path, entry)).transpose()?.flatten() {
                return Ok(Some(found));
            }
        }
        if let Some(name) = file.creds_store.as_deref().filter(|name| !name.is_empty()) {
            let server = if is_hub(registry) { HUB_KEY } else { registry };
            if let Some(found) = helper::get(name, helper_folders, server).await? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

fn read(path: &Path) -> Result<Option<ConfigFile>, PullError> {
    let wrong = |problem: String| PullError::CredentialFile { path: path.to_owned(), problem };
    let file = match crate::store::open_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let mut text = Zeroizing::new(Vec::new());
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(|error| wrong(error.to_string()))?;
    if length(&text) > FILE_BYTES_MAX {
        return Err(wrong(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    // The parser's message could repeat a secret; its position cannot.
    serde_json::from_slice(&text).map(Some).map_err(|error| {
        wrong(format!("it is not a credentials file, at line {}, column {}", error.line(), error.column()))
    })
}

/// Keys to look for, the most specific first.
fn keys(registry: &str, repository: &str) -> Vec<String> {
    let mut keys = vec![format!("{registry}/{repository}")];
    let mut rest = repository;
    while let Some((folder, _)) = rest.rsplit_once('/') {
        keys.push(format!("{registry}/{folder}"));
        rest = folder;
    }
    keys.push(registry.to_owned());
    if is_hub(registry) {
        keys.push("index.docker.io".to_owned());
    }
    keys
}

fn is_hub(registry: &str) -> bool {
    registry == "docker.io"
}

/// The key without a scheme and the paths of the first protocols.
fn normal(key: &str) -> &str {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    bare.strip_suffix("/v1").or_else(|| bare.strip_suffix("/v2")).unwrap_or(bare)
}

/// The credential of an entry. An entry without one only says that a helper has it.
fn credential(path: &Path, entry: &CredentialEntry) -> Result<Option<Credential>, PullError> {
    let filled = |text: &Option<Zeroizing<String>>| text.clone().filter(|text| !text.is_empty());
    if let Some(token) = filled(&entry.identity_token) {
        return Ok(Some(Credential::IdentityToken(token)));
    }
    if let Some(token) = filled(&entry.registry_token) {
        return Ok(Some(Credential::RegistryToken(token)));
    }
    if let Some(auth) = filled(&entry.auth) {
        let wrong = || PullError::CredentialFile { path: path.to_owned(), problem: "an \"auth\" is not base64".into() };
        let decoded = Zeroizing::new(STANDARD.decode(auth.as_bytes()).map_err(|_| wrong())?);
        let text = std::str::from_utf8(&decoded).map_err(|_| wrong())?;
        let (user, password) = text.split_once(':').ok_or_else(wrong)?;
        return Ok(Some(of_pair(user, password.trim_end_matches('\0'))));
    }
    let pair = entry.username.as_ref().zip(filled(&entry.password));
    Ok(pair.map(|(user, password)| of_pair(user, &password)))
}

/// A name and its secret: a password, or a token where the name says so.
pub(super) fn of_pair(user: &str, secret: &str) -> Credential {
    let secret = Zeroizing::new(secret.to_owned());
    if user == TOKEN_USER {
        Credential::IdentityToken(secret)
    } else {
        Credential::Password { user: user.to_owned(), password: secret }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_files_in_their_order() {
        let files = of_environment(|name| match name {
            "HOME" => Some("/h".into()),
            "DOCKER_CONFIG" => Some("/d".into()),
            "XDG_RUNTIME_DIR" => Some("".into()),
            _ => None,
        });
        let expected = ["/d/config.json", "/h/.config/containers/auth.json", "/h/.docker/config.json"];
        assert_eq!(files, expected.map(PathBuf::from));
        assert_eq!(of_environment(|_| None), Vec::<PathBuf>::new());
    }

    #[tokio::test]
    async fn the_most_specific_entry_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        let auth = |text: &str| STANDARD.encode(text);
        let text = format!(
            r#"{{"auths": {{
                "ghcr.io": {{"auth": "{}"}}, "ghcr.io/a/b": {{"auth": "{}"}},
                "https://index.docker.io/v1/": {{"username": "hub", "password": "p"}},
                "https://quay.io/v2/": {{"auth": "{}", "identitytoken": "id"}},
                "empty.example": {{}}, "token.example": {{"auth": "{}"}},
                "registry.example": {{"registrytoken": "r"}}
            }}, "HttpHeaders": {{"a": [[[]]]}}}}"#,
            auth("all:1"),
            auth("one:2:3"),
            auth("x:y"),
            auth("<token>:t")
        );
        std::fs::write(&path, text).unwrap();
        let files = [folder.path().join("missing.json"), path];
        let password = |user: &str, password: &str| Credential::Password {
            user: user.to_owned(),
            password: Zeroizing::new(password.to_owned()),
        };
        for (registry, repository, expected) in [
            ("ghcr.io", "other", Some(password("all", "1"))),
            ("ghcr.io", "a/b", Some(password("one", "2:3"))),
            ("ghcr.io", "a/b/c", Some(password("one", "2:3"))),
            ("ghcr.io", "a/bc", Some(password("all", "1"))),
            ("docker.io", "library/a", Some(password("hub", "p"))),
            ("quay.io", "a", Some(Credential::IdentityToken(Zeroizing::new("id".to_owned())))),
            ("token.example", "a", Some(Credential::IdentityToken(Zeroizing::new("t".to_owned())))),
            ("registry.example", "a", Some(Credential::RegistryToken(Zeroizing::new("r".to_owned())))),
            ("empty.example", "a", None),
            ("xghcr.io", "a", None),
        ] {
            assert_eq!(find(&files, &[], registry, repository).await.unwrap(), expected, "{registry}/{repository}");
        }
        assert_eq!(format!("{:?}", password("a", "b")), "Password(…)");
    }

    #[tokio::test]
    async fn a_broken_file_is_an_error_without_its_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.json");
        for text in [r#"{"auths": {"a.b": {"auth": "hunter2!"}}}"#, r#"{"auths": {"a.b": "hunter2"}}"#, "hunter2"] {
            std::fs::write(&path, text).unwrap();
            let error = find(std::slice::from_ref(&path), &[], "a.b", "c").await.unwrap_err();
            assert!(matches!(error, PullError::CredentialFile { .. }) && !error.to_string().contains("hunter2"));
        }
        std::fs::write(&path, vec![b' '; 2 << 20]).unwrap();
        let error = find(std::slice::from_ref(&path), &[], "a.b", "c").await.unwrap_err();
        assert!(error.to_string().contains("1048576 bytes"), "{error}");
    }
}
