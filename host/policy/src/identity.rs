//! Patterns of identities: exact text, with `*` where it cannot widen who is meant.

use std::fmt;

/// The longest pattern, in bytes: an address of a workflow with its branch takes 100 to 200.
pub const IDENTITY_PATTERN_BYTES_MAX: usize = 1_024;

/// The identities that a rule allows, matched whole and case-sensitively.
///
/// | form | meaning | example |
/// |---|---|---|
/// | text | itself; no character is special | `release@example.com` |
/// | `*` within | any characters but `/`, or none | `https://github.com/o/r/.github/workflows/*@refs/heads/main` |
/// | `*` as the last character | any rest | `https://github.com/o/r/.github/workflows/release.yml@refs/tags/*` |
///
/// In a URL `*` stands after the host only; elsewhere it stands before an `@`.
///
/// ```
/// # use toolcell_policy::IdentityPattern;
/// let pattern = IdentityPattern::parse("https://github.com/o/r/.github/workflows/*@refs/tags/v*").unwrap();
/// assert!(pattern.matches("https://github.com/o/r/.github/workflows/release.yml@refs/tags/v1.2"));
/// assert!(!pattern.matches("https://github.com/o/r/.github/workflows/a/b.yml@refs/tags/v1.2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityPattern(String);

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Empty, too long, or with invalid characters.
    #[error("an identity has 1 to {IDENTITY_PATTERN_BYTES_MAX} printable ASCII characters")]
    Text,
    /// A `*` where it would stand for other hosts or domains.
    #[error(
        "`*` in `{0}` could stand for another host: in a URL it may only follow the host, elsewhere it must precede an `@`"
    )]
    Place(String),
}

impl IdentityPattern {
    /// Reads a pattern. Up to [`IDENTITY_PATTERN_BYTES_MAX`] bytes of printable ASCII.
    ///
    /// # Errors
    /// [`PatternError`], a sentence.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if !is_plain(text) {
            return Err(PatternError::Text);
        }
        if text.contains('*') && !stars_keep_host(text) {
            return Err(PatternError::Place(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }

    /// True if the pattern matches all of `identity`. Costs the product of both lengths at most.
    #[must_use]
    pub fn matches(&self, identity: &str) -> bool {
        let mut reached = vec![false; identity.len() + 1];
        if let Some(first) = reached.first_mut() {
            *first = true;
        }
        let mut pattern = self.0.bytes().peekable();
        while let Some(byte) = pattern.next() {
            if byte == b'*' && pattern.peek().is_none() {
                return reached.contains(&true);
            }
            reached = advance(&reached, byte, identity.as_bytes());
        }
        reached.last() == Some(&true)
    }

    /// The text that was parsed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdentityPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The positions in `text` that one more byte of the pattern leads to, from the current ones.
fn advance(reached: &[bool], byte: u8, text: &[u8]) -> Vec<bool> {
    let mut next = Vec::with_capacity(reached.len());
    let star = byte == b'*';
    next.push(star && reached.first() == Some(&true));
    for (pair, found) in reached.windows(2).zip(text) {
        let before = pair.first() == Some(&true);
        let here = pair.last() == Some(&true);
        let carried = star && *found != b'/' && next.last() == Some(&true);
        next.push(if star { here || carried } else { before && *found == byte });
    }
    next
}

/// True for printable ASCII within the bound: identities in certificates have nothing else.
pub(crate) fn is_plain(text: &str) -> bool {
    (1..=IDENTITY_PATTERN_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn stars_keep_host(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.rsplit_once('@').is_some_and(|(_, domain)| !domain.is_empty() && !domain.contains('*'));
    };
    let host_end = rest.find('/').unwrap_or(rest.len());
    let host = rest.get(..host_end).unwrap_or(rest);
    !scheme.contains('*') && !host.is_empty() && !host.contains('*')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    const WORKFLOW: &str = "https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/v1.0.0";

    fn check(pattern: &str, identity: &str, expected: bool) {
        let parsed = IdentityPattern::parse(pattern).unwrap();
        assert_eq!(parsed.matches(identity), expected, "{pattern} on {identity}");
    }

    #[test]
    fn exact_text_matches_only_itself() {
        check(WORKFLOW, WORKFLOW, true);
        check(WORKFLOW, &WORKFLOW[..WORKFLOW.len() - 1], false);
        check(WORKFLOW, &format!("{WORKFLOW}.evil"), false);
        check(WORKFLOW, &format!("x{WORKFLOW}"), false);
        check(WORKFLOW, &WORKFLOW.replace("acme", "Acme"), false);
        check(WORKFLOW, &WORKFLOW.replace("acme", "acme-evil"), false);
        check("a@example.com", "a@exampleXcom", false);
        check("a@example.com", "a@example.com", true);
    }

    #[test]
    fn regular_expressions_are_plain_text() {
        for pattern in [
            "https://github.com/acme/.+",
            "https://github.com/(acme|x)/y",
            "^https://github.com/a$",
            "https://github.com/[a-z]/?",
        ] {
            check(pattern, pattern, true);
            check(pattern, "https://github.com/acme/y", false);
        }
    }

    #[test]
    fn star_within_stays_in_its_segment() {
        let pattern = "https://github.com/acme/*/.github/workflows/*.yml@refs/tags/v1.0.0";
        check(pattern, WORKFLOW, true);
        check(pattern, &WORKFLOW.replace("tools", "a/b"), false);
        check(pattern, &WORKFLOW.replace("release.yml", "x/release.yml"), false);
        check(pattern, &WORKFLOW.replace("tools", ""), true);
        check("https://github.com/acme*/tools", "https://github.com/acme-evil/tools", true);
        check("https://github.com/a*b*c/d", "https://github.com/axbxbxc/d", true);
        check("https://github.com/a*b*c/d", "https://github.com/axbx/bxc/d", false);
        check("*@example.com", "anna@example.com", true);
        check("*@example.com", "anna@example.com.evil", false);
        check("*@example.com", "a/b@example.com", false);
    }

    #[test]
    fn star_at_the_end_matches_any_rest() {
        let pattern = "https://github.com/acme/tools/.github/workflows/release.yml@refs/tags/*";
        check(pattern, WORKFLOW, true);
        check(pattern, &WORKFLOW.replace("v1.0.0", "a/b/c"), true);
        check(pattern, &WORKFLOW.replace("refs/tags", "refs/heads"), false);
        check("https://github.com/acme/*", "https://github.com/acme/", true);
        check("https://github.com/acme/*", "https://github.com/acme", false);
        check("https://github.com/acme/**", "https://github.com/acme/a/b", true);
    }

    #[test]
    fn stars_that_could_stand_for_another_host_are_refused() {
        for text in [
            "*",
            "https://*",
            "https://*/x",
            "https://github.com*",
            "https://*.github.com/x",
            "*://x/y",
            "a@*",
            "a@*.com",
            "a*",
            "*@",
            "https:///*",
        ] {
            assert_eq!(IdentityPattern::parse(text), Err(PatternError::Place(text.to_owned())), "{text}");
        }
        for text in ["", "a\nb", "é@example.com", &"a".repeat(1025)] {
            assert_eq!(IdentityPattern::parse(text), Err(PatternError::Text), "{text:?}");
        }
    }

    #[test]
    fn long_patterns_of_stars_end_at_once() {
        let pattern = format!("https://h/{}b", "*a".repeat(500));
        check(&pattern, &format!("https://h/{}", "a".repeat(2000)), false);
    }
}
