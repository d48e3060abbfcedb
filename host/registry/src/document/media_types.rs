//! Media types of components in registries, each with its source.

/// An OCI manifest (image specification 1.1).
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// An OCI index (image specification 1.1).
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Config of a component, as `wkg`, wasmCloud, Spin's `spin registry` for components and wassette
/// push it ("Wasm OCI Artifact layout" of the CNCF's working group for Wasm).
pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";

/// Layer of a component (the same place).
pub const COMPONENT_LAYER: &str = "application/wasm";

/// Config of an artifact without one (image specification 1.1, "Guidance for an Empty Descriptor").
pub const EMPTY_CONFIG: &str = "application/vnd.oci.empty.v1+json";

/// A manifest of Docker, version 2, schema 2.
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// A manifest list of Docker.
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// Documents that are asked for.
pub(crate) const MANIFEST_ACCEPT: &str = concat!(
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, ",
    "application/vnd.docker.distribution.manifest.v2+json, ",
    "application/vnd.docker.distribution.manifest.list.v2+json"
);

/// Version of an image layout (image specification 1.1, "Image Layout").
pub(crate) const LAYOUT_VERSION: &str = "1.0.0";

/// Ends of the tags under which cosign 2 keeps signatures, and attestations: records of the build,
/// and lists of parts.
pub(crate) const COSIGN_TAGS: [&str; 2] = [".sig", ".att"];

/// Layers that are components.
const LAYERS: [&str; 4] = [
    COMPONENT_LAYER,
    // runwasi, which runs components under containerd.
    "application/vnd.bytecodealliance.wasm.component.layer.v0+wasm",
    // `wasm-to-oci`, krustlet, Spin's applications, and `oci-client` up to today.
    "application/vnd.wasm.content.layer.v1+wasm",
    // wasmCloud up to 1.0, Istio's and Envoy's plugins, Trivy's modules.
    "application/vnd.module.wasm.content.layer.v1+wasm",
];

/// Types of artifacts that are components: what an index may say of an entry.
const ARTIFACTS: [&str; 8] = [
    WASM_CONFIG,
    COMPONENT_LAYER,
    // runwasi: components, programs, and the config that goes with its layer.
    "application/vnd.bytecodealliance.component.v1+wasm",
    "application/vnd.bytecodealliance.module.v1+wasm",
    "application/vnd.bytecodealliance.wasm.component.config.v0+json",
    // Config of `wasm-to-oci` and krustlet.
    "application/vnd.wasm.config.v1+json",
    // Config of wasmCloud up to 1.0.
    "application/vnd.wasmcloud.actor.archive.config",
    // Type of artifacts with the layer of the same name.
    "application/vnd.module.wasm.content.layer.v1+wasm",
];

/// True for a layer that is a component.
pub(super) fn is_component_layer(media_type: &str) -> bool {
    LAYERS.contains(&bare(media_type))
}

/// True for the type of an artifact that is a component.
pub(super) fn is_component_artifact(kind: &str) -> bool {
    ARTIFACTS.contains(&bare(kind))
}

/// The media type without its parameters.
fn bare(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim_end()
}

/// Checks the media type that a manifest states; none stands for OCI's.
pub(super) fn check_manifest(media_type: Option<&str>) -> Result<(), String> {
    match media_type {
        None | Some(OCI_MANIFEST | DOCKER_MANIFEST) => Ok(()),
        Some(other) => Err(format!("its media type {:?} is not that of a manifest", shown(other))),
    }
}

/// Checks the media type that an index states.
pub(super) fn check_index(media_type: Option<&str>) -> Result<(), String> {
    match media_type {
        None | Some(OCI_INDEX | DOCKER_INDEX) => Ok(()),
        Some(other) => Err(format!("its media type {:?} is not that of an index", shown(other))),
    }
}

/// The beginning of a media type, as errors show it.
pub(super) fn shown(media_type: &str) -> String {
    const CHARS_SHOWN: usize = 80;
    media_type.chars().take(CHARS_SHOWN).collect()
}
