//! Ports and ranges of them.

use std::fmt;

use super::rule::RuleError;

/// An inclusive range of ports; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Every port.
    pub const ALL: Self = Self { first: 1, last: u16::MAX };

    /// Reads `443` or `1000-2000`.
    pub(crate) fn parse(text: &str) -> Result<Self, RuleError> {
        let wrong = || RuleError::Port(text.to_owned());
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let first = port(first).ok_or_else(wrong)?;
        let last = port(last).ok_or_else(wrong)?;
        if last < first { Err(wrong()) } else { Ok(Self { first, last }) }
    }

    /// The lowest port.
    #[must_use]
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The highest port.
    #[must_use]
    pub const fn last(self) -> u16 {
        self.last
    }

    /// True if a port is among them.
    #[must_use]
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }

    pub(crate) const fn lies_within(self, wider: Self) -> bool {
        wider.first <= self.first && self.last <= wider.last
    }

    pub(crate) const fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

impl fmt::Display for PortRange {
    /// `443` or `1000-2000`, as it is written.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return write!(formatter, "{}", self.first);
        }
        write!(formatter, "{}-{}", self.first, self.last)
    }
}

/// A port in plain digits, from 1.
pub(crate) fn port(text: &str) -> Option<u16> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|port| *port != 0)
}
