//! Fields of forms and of addresses, bounded.
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use url::form_urlencoded;

/// Longest form, in bytes: arguments for a tool, rarely more than a page.
pub const FORM_BYTES_MAX: usize = 256 * 1_024;

/// Most fields. The form of a tool has at most 64 arguments.
const FIELDS_MAX: usize = 128;

/// Fields with their values, in the order of the form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

/// A body that is not a form of this size.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Fields {
    /// The fields of an address or a form; fields past the bound are ignored.
    pub fn of(text: &[u8]) -> Self {
        let fields = form_urlencoded::parse(text).take(FIELDS_MAX);
        Self(fields.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    /// Reads a body of at most `bytes_max` bytes.
    pub async fn read(body: Incoming, bytes_max: usize) -> Result<Self, TooLarge> {
        let body = Limited::new(body, bytes_max).collect().await.map_err(|_| TooLarge)?;
        Ok(Self::of(&body.to_bytes()))
    }

    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
    }

    /// The number in a field.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).parse().ok()
    }

    pub fn all(&self) -> &[(String, String)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_bounded() {
        let fields = Fields::of(b"a=1+%26%C3%A9&b&a=2&n=7&x=%FF%zz");
        assert_eq!((fields.get("a"), fields.get("b"), fields.get("c")), ("1 &\u{e9}", "", ""));
        assert_eq!((fields.number("n"), fields.number("a")), (Some(7), None));
        assert_eq!(fields.get("x"), "\u{fffd}%zz");
        assert_eq!(Fields::of("a&".repeat(10_000).as_bytes()).all().len(), FIELDS_MAX);
    }
}
