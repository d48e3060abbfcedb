//! Pictures of definitions and links, as the protocol writes them.

use serde::Deserialize;
use toolkit::{Icon, Theme};

#[derive(Default)]
pub struct Icons(pub Vec<Icon>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    src: String,
    mime_type: Option<String>,
    #[serde(default)]
    sizes: Vec<String>,
    theme: Option<String>,
}

impl<'de> Deserialize<'de> for Icons {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Vec::<Written>::deserialize(deserializer)?;
        Ok(Self(written.into_iter().map(Written::icon).collect()))
    }
}

impl Written {
    fn icon(self) -> Icon {
        let theme = match self.theme.as_deref() {
            Some("light") => Some(Theme::Light),
            Some("dark") => Some(Theme::Dark),
            _ => None,
        };
        Icon { src: self.src, mime_type: self.mime_type, sizes: self.sizes, theme }
    }
}
