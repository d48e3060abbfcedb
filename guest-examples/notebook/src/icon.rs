//! The tools' picture, for light and for dark backgrounds. Holds nothing else.

use toolkit::{Icon, Theme};

const LIGHT: &str = concat!("data:image/png;base64,", include_str!("../icons/light.png.base64"));
const DARK: &str = concat!("data:image/png;base64,", include_str!("../icons/dark.png.base64"));

/// A notebook, once for each kind of background.
pub fn icons() -> Vec<Icon> {
    [(LIGHT, Theme::Light), (DARK, Theme::Dark)]
        .into_iter()
        .map(|(src, theme)| Icon {
            src: src.to_owned(),
            mime_type: Some("image/png".to_owned()),
            sizes: vec!["48x48".to_owned()],
            theme: Some(theme),
        })
        .collect()
}
