//! The files that pages refer to, embedded: one style sheet, one script, one icon, and the library
//! that draws charts. Their addresses contain a hash of their content, so browsers can cache them.
//!
//! uPlot 1.6.32 (MIT) is `dist/uPlot.iife.min.js` and `dist/uPlot.min.css` of its package, as
//! published.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// The path of assets.
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
    /// How long browsers may cache it: changed content has another address.
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

/// uPlot, which draws lines, with its licence and a shim for browsers.
pub static CHARTS: LazyLock<Asset> = LazyLock::new(|| {
    let bytes = concat!(
        "/*!\n",
        include_str!("assets/uplot.LICENSE"),
        "*/\n",
        include_str!("assets/language.js"),
        include_str!("assets/uplot.js"),
    );
    Asset::of("uplot.js", "text/javascript; charset=utf-8", bytes.as_bytes())
});

/// The style sheet of uPlot.
pub static CHARTS_STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::of("uplot.css", "text/css; charset=utf-8", include_bytes!("assets/uplot.css")));

/// The icon.
pub static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::of("icon.svg", "image/svg+xml", include_bytes!("assets/icon.svg")));

fn all() -> [&'static Asset; 5] {
    [&STYLE, &SCRIPT, &CHARTS, &CHARTS_STYLE, &ICON]
}

/// The file at a path.
#[must_use]
pub fn find(path: &str) -> Option<&'static Asset> {
    all().into_iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::{CHARTS, SCRIPT, STYLE, all, find};

    #[test]
    fn an_asset_is_found_by_the_hash_of_its_content() {
        for asset in all() {
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

    #[test]
    fn the_library_is_the_one_that_was_published_and_comes_with_its_licence() {
        let digests = [
            (
                include_bytes!("assets/uplot.js").as_slice(),
                "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
            ),
            (include_bytes!("assets/uplot.css"), "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
        ];
        for (bytes, digest) in digests {
            assert_eq!(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>(), digest);
        }
        let text = std::str::from_utf8(CHARTS.bytes).unwrap();
        assert!(text.starts_with("/*!\nThe MIT License (MIT)\n\nCopyright (c) 2022 Leon Sorokin\n"));
        assert_eq!(text.matches("http").count(), 1, "the address of its project");
        for call in ["eval(", "Function(", "fetch(", "XMLHttpRequest", "innerHTML", "import("] {
            assert!(!text.contains(call), "{call}");
        }
    }
}
