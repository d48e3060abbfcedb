//! The files that pages refer to, embedded: one style sheet, one script, one icon. Their addresses
//! hold a hash of their content, so that they are kept as long as a browser wants. Must not hold:
//! anything written by others.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// Where assets are.
pub const ASSETS: &str = "/assets/";

/// A file.
#[derive(Debug)]
pub struct Asset {
    /// The path of its address: `/assets/0123456789abcdef/console.css`.
    pub path: String,
    /// Its content type.
    pub content_type: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

impl Asset {
    /// Time for which browsers may keep it: another content has another address.
    pub const CACHE_CONTROL: &'static str = "private, max-age=31536000, immutable";

    fn of(name: &str, content_type: &'static str, bytes: &'static [u8]) -> Self {
        let digest = Sha256::digest(bytes);
        let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { path: format!("{ASSETS}{hash}/{name}"), content_type, bytes }
    }
}

/// The style sheet.
pub static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::of("console.css", "text/css; charset=utf-8", include_bytes!("assets/console.css")));

/// The script.
pub static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::of("console.js", "text/javascript; charset=utf-8", include_bytes!("assets/console.js")));

/// The icon.
pub static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::of("icon.svg", "image/svg+xml", include_bytes!("assets/icon.svg")));

/// The file at a path.
#[must_use]
pub fn find(path: &str) -> Option<&'static Asset> {
    [&*STYLE, &*SCRIPT, &*ICON].into_iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::{ICON, SCRIPT, STYLE, find};

    #[test]
    fn an_asset_is_found_by_the_hash_of_its_content() {
        for asset in [&*STYLE, &*SCRIPT, &*ICON] {
            assert_eq!(find(&asset.path).map(|found| found.bytes), Some(asset.bytes));
        }
        assert!(find("/assets/0000000000000000/console.css").is_none() && find("").is_none());
    }

    #[test]
    fn assets_name_no_other_server() {
        for asset in [&*STYLE, &*SCRIPT] {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            assert!(!text.contains("//") || asset.path.ends_with("js"), "{}", asset.path);
            assert!(!text.contains("http") && !text.contains("eval") && !text.contains("@import"), "{}", asset.path);
        }
    }
}
