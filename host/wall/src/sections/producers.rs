//! The engine that a component contains, according to its compiler.
//!
//! Compilers write a custom section `producers` at the top level, with names of languages and
//! tools, each behind its length.
use super::{SECTIONS_MAX, Sections};

/// The section's name.
const NAME: &str = "producers";

/// The language's name behind its length.
const JAVASCRIPT: &[u8] = b"\x0aJavaScript";

/// True if its compiler declares JavaScript: it then contains an engine, whose imports stand for
/// what any script could do.
#[must_use]
pub fn carries_javascript(binary: &[u8]) -> bool {
    let mut producers = Sections::of(binary).take(SECTIONS_MAX).filter_map(|section| section.custom(NAME));
    producers.any(|content| content.windows(JAVASCRIPT.len()).any(|window| window == JAVASCRIPT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty component with this custom section.
    fn with(name: &str, content: &[u8]) -> Vec<u8> {
        let body = [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), content].concat();
        [b"\0asm\x0d\0\x01\0", &[0, u8::try_from(body.len()).unwrap()][..], &body].concat()
    }

    #[test]
    fn javascript_is_told_by_what_its_compiler_writes() {
        let javascript = b"\x02\x08language\x01\x0aJavaScript\0\x0cprocessed-by\x01\x0eComponentizeJS\x060.23.0";
        let rust = b"\x01\x08language\x01\x04Rust\0";
        assert!(carries_javascript(&with("producers", javascript)));
        let both = [&with("producers", rust)[..], with("producers", javascript).get(8..).unwrap()].concat();
        assert!(carries_javascript(&both), "a linker's section stands before it");
        for binary in [with("producers", rust), with("other", javascript), with("producers", b""), Vec::new()] {
            assert!(!carries_javascript(&binary), "{binary:?}");
        }
    }
}
