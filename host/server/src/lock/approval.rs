//! Approval of one component, bound to the bytes that a person saw.
use serde::{Deserialize, Serialize};

use super::differ::signers_differ;
use super::pinned::PinnedComponent;

/// Fewest hexadecimal digits of a digest in an approval: 64 bits cannot be found by trying.
const DIGITS_MIN: usize = 16;

/// Hexadecimal digits of a digest in a suggested command.
const DIGITS_SHOWN: usize = 32;

/// Prefix of a digest.
const ALGORITHM: &str = "sha256:";

/// Approval of one component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The component's name, or that of one of its tools.
    pub name: String,
    /// Digest of the bytes that were seen; `None`: approves any bytes.
    pub digest: Option<SeenDigest>,
    /// True if the signers may differ from those in the lock.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_signer_change: bool,
}

/// Digest of bytes that a person saw, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SeenDigest(String);

impl Approval {
    /// Checks that these are the bytes that were seen. `Err` is one sentence.
    pub fn check(&self, component: &str, digest: &str) -> Result<(), String> {
        let is_it =
            |seen: &SeenDigest| digest.strip_prefix(ALGORITHM).is_some_and(|digits| digits.starts_with(&seen.0));
        if self.digest.as_ref().is_none_or(is_it) {
            return Ok(());
        }
        Err(format!("{component} is not what was seen any more: the digest of its bytes is {digest} now"))
    }

    /// Checks that the pinned signers signed, unless that may differ. `Err` is one sentence.
    pub fn check_signers(
        &self,
        component: &str,
        locked: Option<&PinnedComponent>,
        now: &PinnedComponent,
    ) -> Result<(), String> {
        if self.allow_signer_change || !locked.is_some_and(|locked| signers_differ(locked, now)) {
            return Ok(());
        }
        Err(format!("{component} is not signed as the lock pins it; --allow-signer-change approves that as well"))
    }
}

/// The command that approves a component with these bytes only; with `other_signers`, although its
/// signers differ from the lock.
pub fn command(component: &str, digest: &str, other_signers: bool) -> String {
    let digits = digest.strip_prefix(ALGORITHM).and_then(|digits| digits.get(..DIGITS_SHOWN));
    let seen = digits.map(|digits| format!(" --digest {digits}")).unwrap_or_default();
    let signers = if other_signers { " --allow-signer-change" } else { "" };
    format!("toolcell approve {component}{seen}{signers}")
}

impl std::str::FromStr for SeenDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(ALGORITHM).unwrap_or(text);
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() >= DIGITS_MIN && digits.bytes().all(is_digit) {
            return Ok(Self(digits.to_owned()));
        }
        Err(format!("a digest, or at least its first {DIGITS_MIN} digits (0-9, a-f), as `toolcell status` shows it"))
    }
}

impl TryFrom<String> for SeenDigest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SeenDigest> for String {
    fn from(seen: SeenDigest) -> Self {
        seen.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_of_the_bytes_that_were_seen() {
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let approval = |digest: Option<&str>| Approval {
            name: "tool".to_owned(),
            digest: digest.map(|digest| digest.parse().unwrap()),
            allow_signer_change: false,
        };
        for (seen, is_it) in [
            (None, true),
            (Some("0123456789abcdef"), true),
            (Some("sha256:0123456789abcdef0123"), true),
            (Some(digest.as_str()), true),
            (Some("0123456789abcde0"), false),
        ] {
            assert_eq!(approval(seen).check("tool", &digest).is_ok(), is_it, "{seen:?}");
        }
        for wrong in ["", "0123", "0123456789ABCDEF", "sha1:0123456789abcdef"] {
            assert!(wrong.parse::<SeenDigest>().is_err(), "{wrong}");
        }
        let suggested = "toolcell approve tool --digest 0123456789abcdef0123456789abcdef";
        assert_eq!(command("tool", &digest, false), suggested);
        assert_eq!(command("tool", &digest, true), format!("{suggested} --allow-signer-change"));
        assert_eq!(command("tool", "", false), "toolcell approve tool");
    }
}
