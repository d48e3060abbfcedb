//! One entry of a registry of MCP servers: a `server.json` (schema 2025-12-11) with what the
//! registry adds.
use serde::Deserialize;
use toolcell_policy::{Digest, Reference};

use super::{FoundPackage, FoundServer, Hint};

/// Most packages of an entry that are kept; entries have one or two.
const PACKAGES_MAX: usize = 16;

/// Longest name that is kept, in characters: as the schema says.
const NAME_CHARS_MAX: usize = 200;

/// Longest description that is kept, in characters. The schema allows 100.
const DESCRIPTION_CHARS_MAX: usize = 500;

/// Longest version that is kept, in characters. The schema allows 255; a line shows less.
const VERSION_CHARS_MAX: usize = 100;

/// Values of `runtimeHint` that say that a package is WebAssembly.
const WASM_RUNTIMES: [&str; 8] = ["toolcell", "wasm", "wasi", "wasmtime", "wassette", "wasmcloud", "spin", "wasmedge"];

/// Values of `runtimeHint` that say that a package is an image for a machine.
const IMAGE_RUNTIMES: [&str; 5] = ["docker", "podman", "nerdctl", "container", "containerd"];

/// Media types of components as registries have them.
const WASM_TYPES: [&str; 3] =
    ["application/wasm", crate::document::WASM_CONFIG, "application/vnd.wasm.component.v1+wasm"];

/// Registry of packages that name none, in entries of older schemas.
const REGISTRY_DEFAULT: &str = "docker.io";

#[derive(Deserialize)]
struct CatalogueEntry {
    server: CatalogueServer,
    #[serde(rename = "_meta", default)]
    meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol.registry/official", default)]
    official: Option<Official>,
}

#[derive(Default, Deserialize)]
struct Official {
    status: Option<String>,
}

#[derive(Deserialize)]
struct CatalogueServer {
    name: String,
    title: Option<String>,
    description: Option<String>,
    version: Option<String>,
    packages: Option<Vec<Package>>,
    #[serde(rename = "_meta", default)]
    meta: Option<ServerMeta>,
}

#[derive(Default, Deserialize)]
struct ServerMeta {
    #[serde(rename = "io.modelcontextprotocol.registry/publisher-provided", default)]
    publisher: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    #[serde(alias = "registry_type", default)]
    registry_type: Option<String>,
    #[serde(alias = "registry_base_url", default)]
    registry_base_url: Option<String>,
    identifier: Option<String>,
    version: Option<String>,
    #[serde(alias = "runtime_hint", default)]
    runtime_hint: Option<String>,
}

/// Reads an entry. `None` if it holds nothing that may be a component, or was withdrawn.
pub(super) fn read(text: &str) -> Result<Option<FoundServer>, serde_json::Error> {
    let CatalogueEntry { server, meta } = serde_json::from_str(text)?;
    let status = meta.and_then(|meta| meta.official).and_then(|official| official.status).unwrap_or_default();
    let says_wasm = server.meta.and_then(|meta| meta.publisher).is_some_and(|said| names_wasm(&said));
    let packages = server.packages.unwrap_or_default();
    let mut packages: Vec<FoundPackage> =
        packages.iter().filter_map(|package| found(package, says_wasm)).take(PACKAGES_MAX).collect();
    packages.sort_by_key(|package| package.hint);
    if packages.is_empty() || status == "deleted" {
        return Ok(None);
    }
    Ok(Some(FoundServer {
        name: cut(&server.name, NAME_CHARS_MAX),
        title: server.title.map(|title| cut(&title, NAME_CHARS_MAX)),
        description: cut(&server.description.unwrap_or_default(), DESCRIPTION_CHARS_MAX),
        version: cut(&server.version.unwrap_or_default(), VERSION_CHARS_MAX),
        is_deprecated: status == "deprecated",
        packages,
    }))
}

fn found(package: &Package, says_wasm: bool) -> Option<FoundPackage> {
    if package.registry_type.as_deref() != Some("oci") {
        return None;
    }
    let runtime = package.runtime_hint.as_deref().unwrap_or_default().to_ascii_lowercase();
    if IMAGE_RUNTIMES.contains(&runtime.as_str()) {
        return None;
    }
    let is_said = says_wasm || WASM_RUNTIMES.contains(&runtime.as_str());
    let hint = if is_said { Hint::Component } else { Hint::Unsaid };
    Some(FoundPackage { reference: reference(package)?, hint })
}

/// The reference of a package: `ghcr.io/acme/weather:1.2.0` as one text, or in parts as schemas
/// before 2025-10-17 have it. `None` if it is not a reference.
fn reference(package: &Package) -> Option<Reference> {
    let identifier = package.identifier.as_deref()?;
    let whole = Reference::parse(&format!("oci://{identifier}"));
    let reference = whole.ok().or_else(|| {
        let base = package.registry_base_url.as_deref().unwrap_or(REGISTRY_DEFAULT);
        let host = base.strip_prefix("https://").unwrap_or(base).trim_end_matches('/');
        if host.contains(['/', '@']) {
            return None;
        }
        Reference::parse(&format!("oci://{host}/{identifier}")).ok()
    })?;
    if reference.tag().is_some() || reference.digest().is_some() {
        return Some(reference);
    }
    match package.version.as_deref() {
        None | Some("") => Some(reference),
        Some(version) => match Digest::parse(version) {
            Ok(digest) => Some(reference.with_digest(digest)),
            Err(_) => reference.with_tag(version).ok(),
        },
    }
}

/// True if the publisher's metadata has a media type of WebAssembly as `mediaType` or
/// `artifactType`.
fn names_wasm(said: &serde_json::Value) -> bool {
    ["mediaType", "artifactType"]
        .iter()
        .any(|key| said.get(key).and_then(serde_json::Value::as_str).is_some_and(|said| WASM_TYPES.contains(&said)))
}

fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(packages: &Value) -> Vec<(String, Hint)> {
        let entry = json!({"server": {"name": "a/b", "version": "1.0.0", "packages": packages}});
        let found = read(&entry.to_string()).unwrap().map(|server| server.packages).unwrap_or_default();
        found.into_iter().map(|package| (package.reference.to_string(), package.hint)).collect()
    }

    #[test]
    fn packages_are_references_in_either_form() {
        let hex = "ab".repeat(32);
        for (package, expected) in [
            (json!({"identifier": "ghcr.io/acme/weather:1.2.0"}), "oci://ghcr.io/acme/weather:1.2.0".to_owned()),
            (
                json!({"identifier": format!("ghcr.io/acme/weather@sha256:{hex}"), "version": "1"}),
                format!("oci://ghcr.io/acme/weather@sha256:{hex}"),
            ),
            (
                json!({"identifier": "ghcr.io/acme/weather", "version": "2.0.0"}),
                "oci://ghcr.io/acme/weather:2.0.0".into(),
            ),
            (json!({"identifier": "acme/weather", "version": "1.0.0"}), "oci://docker.io/acme/weather:1.0.0".into()),
            (
                json!({"identifier": "acme/weather", "registryBaseUrl": "https://ghcr.io", "version": format!("sha256:{hex}")}),
                format!("oci://ghcr.io/acme/weather@sha256:{hex}"),
            ),
            (
                json!({"identifier": "acme/weather", "registryBaseUrl": "https://ghcr.io/"}),
                "oci://ghcr.io/acme/weather".into(),
            ),
        ] {
            let mut package = package;
            package["registryType"] = json!("oci");
            assert_eq!(of(&json!([package])), [(expected, Hint::Unsaid)]);
        }
        for package in [
            json!({"registryType": "oci", "identifier": "ghcr.io/../x:1"}),
            json!({"registryType": "oci", "identifier": "x", "registryBaseUrl": "https://evil.example/a"}),
            json!({"registryType": "oci", "identifier": "x", "registryBaseUrl": "file:///etc"}),
            json!({"registryType": "oci", "identifier": "acme/x", "version": "1 2"}),
            json!({"registryType": "oci"}),
            json!({"registryType": "npm", "identifier": "ghcr.io/acme/x:1"}),
            json!({}),
        ] {
            assert_eq!(of(&json!([package])), [], "{package}");
        }
    }

    #[test]
    fn hints_tell_components_from_images() {
        let with = |hint: Value| json!({"registryType": "oci", "identifier": "ghcr.io/a/b:1", "runtimeHint": hint});
        for (hint, expected) in [
            (json!("wasmtime"), Some(Hint::Component)),
            (json!("Wassette"), Some(Hint::Component)),
            (json!("docker"), None),
            (json!("uvx"), Some(Hint::Unsaid)),
            (json!(null), Some(Hint::Unsaid)),
        ] {
            assert_eq!(of(&json!([with(hint.clone())])).first().map(|(_, hint)| *hint), expected, "{hint}");
        }
        let both = json!([with(json!(null)), with(json!("wasm"))]);
        assert_eq!(of(&both).iter().map(|(_, hint)| *hint).collect::<Vec<_>>(), [Hint::Component, Hint::Unsaid]);
        let publisher = "io.modelcontextprotocol.registry/publisher-provided";
        let entry = json!({"server": {
            "name": "a/b", "packages": [with(json!(null))], "_meta": {publisher: {"mediaType": "application/wasm"}},
        }});
        assert_eq!(read(&entry.to_string()).unwrap().unwrap().packages[0].hint, Hint::Component);
    }

    #[test]
    fn texts_are_cut_and_what_was_taken_back_is_left_out() {
        let entry = |status: &str| {
            json!({
                "server": {
                    "name": "n".repeat(5_000), "title": "t".repeat(5_000), "description": "é".repeat(5_000),
                    "version": "1".repeat(5_000),
                    "packages": vec![json!({"registryType": "oci", "identifier": "ghcr.io/a/b:1"}); 50],
                },
                "_meta": {"io.modelcontextprotocol.registry/official": {"status": status}},
            })
            .to_string()
        };
        let found = read(&entry("deprecated")).unwrap().unwrap();
        let lengths = [&found.name, found.title.as_ref().unwrap(), &found.description, &found.version];
        assert_eq!(lengths.map(|text| text.chars().count()), [200, 200, 500, 100]);
        assert!(found.is_deprecated && found.packages.len() == 16);
        assert_eq!(read(&entry("deleted")).unwrap(), None);
        for text in ["{}", "1", "{\"server\":{}}", "{\"server\":{\"name\":1}}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
