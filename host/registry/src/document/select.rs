//! The component in a manifest, and the manifest in an index.
use toolcell_policy::Digest;

use super::media_types::{is_component_artifact, is_component_layer, shown};
use super::{Descriptor, Index, Manifest};
use crate::error::{Compression, PullError};

/// Most layers and platforms that an error names.
const NAMED_MAX: usize = 3;

/// The one layer that is a component.
///
/// # Errors
/// [`PullError::NoComponent`], [`PullError::SeveralComponents`], [`PullError::Compressed`].
pub(crate) fn component_layer<'m>(digest: &Digest, manifest: &'m Manifest) -> Result<&'m Descriptor, PullError> {
    let found: Vec<_> = manifest.layers.iter().filter(|layer| is_component_layer(&layer.media_type)).collect();
    match found.as_slice() {
        [layer] => Ok(layer),
        [] => {
            for layer in &manifest.layers {
                let name = layer.media_type.as_str();
                if let Some((bare, compression)) = compressed(name)
                    && is_component_layer(bare)
                {
                    return Err(PullError::Compressed { digest: layer.digest.clone(), compression });
                }
            }
            let named = manifest.layers.iter().take(NAMED_MAX).map(|layer| format!("{:?}", shown(&layer.media_type)));
            let named = named.collect::<Vec<_>>().join(", ");
            let layers = if named.is_empty() { "none".to_owned() } else { named };
            Err(PullError::NoComponent { digest: digest.clone(), layers })
        }
        several => Err(PullError::SeveralComponents { digest: digest.clone(), count: several.len() }),
    }
}

/// The media type without the suffix for its compression.
fn compressed(media_type: &str) -> Option<(&str, Compression)> {
    let gzip = media_type.strip_suffix("+gzip").or_else(|| media_type.strip_suffix(".gzip"));
    let zstd = || media_type.strip_suffix("+zstd").map(|bare| (bare, Compression::Zstd));
    gzip.map(|bare| (bare, Compression::Gzip)).or_else(zstd)
}

/// The compression that the first bytes show, whatever the media type says.
pub(crate) fn starts_compressed(bytes: &[u8]) -> Option<Compression> {
    match bytes {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
        _ => None,
    }
}

/// The one entry of an index that is a component.
///
/// # Errors
/// [`PullError::OtherPlatforms`], [`PullError::SeveralComponents`].
pub(crate) fn manifest_of_index<'i>(digest: &Digest, index: &'i Index) -> Result<&'i Descriptor, PullError> {
    let found: Vec<_> = index.manifests.iter().filter(|entry| is_component(entry)).collect();
    match found.as_slice() {
        [entry] => Ok(entry),
        [] => {
            let platforms = index.manifests.iter().filter_map(|entry| entry.platform.as_ref()).take(NAMED_MAX);
            let platforms = platforms.map(|platform| {
                let text = format!("{}/{}", platform.os, platform.architecture);
                shown(&text.replace(|c: char| !c.is_ascii_graphic(), "?"))
            });
            let platforms = platforms.collect::<Vec<_>>().join(", ");
            let platforms = if platforms.is_empty() { "no platform".to_owned() } else { platforms };
            Err(PullError::OtherPlatforms { digest: digest.clone(), platforms })
        }
        several => Err(PullError::SeveralComponents { digest: digest.clone(), count: several.len() }),
    }
}

fn is_component(entry: &Descriptor) -> bool {
    let platform = entry.platform.as_ref();
    let is_wasm = platform.is_some_and(|platform| {
        matches!(platform.os.as_str(), "wasi" | "wasip1" | "wasip2" | "wasip3")
            || matches!(platform.architecture.as_str(), "wasm" | "wasm32" | "wasm64")
    });
    is_wasm || entry.artifact_type.as_deref().is_some_and(is_component_artifact)
}
