//! A page as it came, and its text. Holds no HTTP.

use toolkit::Failure;

use crate::html;

/// What came.
pub struct Page {
    /// Where it came from, after redirects.
    pub url: String,
    pub status: u16,
    /// The content type; empty where none was said.
    pub kind: String,
    pub body: Vec<u8>,
}

/// What there is to read.
pub struct Shown {
    pub title: Option<String>,
    pub text: String,
}

impl Page {
    /// Its text.
    pub fn shown(&self) -> Result<Shown, Failure> {
        let kind = self.kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        let text = self.decoded();
        match kind.as_str() {
            "text/html" | "application/xhtml+xml" => Ok(html::read(&text, &self.url)),
            "" if text.trim_start().starts_with('<') => Ok(html::read(&text, &self.url)),
            kind if kind.is_empty() || is_text(kind) => Ok(Shown { title: None, text }),
            kind => Err(Failure::Failed(format!("the page is {kind}, and no text"))),
        }
    }

    /// UTF-8, or else Latin-1: nearly all of the web is one of the two.
    fn decoded(&self) -> String {
        let says_latin =
            ["iso-8859-1", "windows-1252"].iter().any(|name| self.kind.to_ascii_lowercase().contains(name));
        match std::str::from_utf8(&self.body) {
            Ok(text) if !says_latin => text.trim_start_matches('\u{feff}').to_owned(),
            Err(error) if !says_latin && error.error_len().is_none() => {
                String::from_utf8_lossy(&self.body).into_owned()
            }
            _ => self.body.iter().map(|byte| char::from(*byte)).collect(),
        }
    }
}

fn is_text(kind: &str) -> bool {
    let application = ["json", "xml", "javascript", "yaml", "toml", "x-ndjson"];
    kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || kind.strip_prefix("application/").is_some_and(|name| application.contains(&name))
}
