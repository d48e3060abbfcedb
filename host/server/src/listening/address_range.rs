//! Ranges of addresses that count as one, where strangers share a bound.
use std::net::IpAddr;

/// A range of addresses: its first address, and its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AddressRange {
    V4([u8; 3]),
    V6([u16; 3]),
    Socket,
}

impl AddressRange {
    /// The range of an address: the size that one organisation or one customer has.
    pub(crate) fn of(address: Option<IpAddr>) -> Self {
        match address.map(|address| address.to_canonical()) {
            None => Self::Socket,
            Some(IpAddr::V4(address)) => {
                let [a, b, c, _] = address.octets();
                Self::V4([a, b, c])
            }
            Some(IpAddr::V6(address)) => {
                let [a, b, c, ..] = address.segments();
                Self::V6([a, b, c])
            }
        }
    }

    /// It in words, as in records.
    pub(crate) fn text(self) -> String {
        match self {
            Self::V4([a, b, c]) => format!("{a}.{b}.{c}.0/24"),
            Self::V6([a, b, c]) => format!("{}/48", std::net::Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)),
            Self::Socket => "local".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_ranges() {
        for (address, expected) in [
            ("203.0.113.7", "203.0.113.0/24"),
            ("::ffff:203.0.113.9", "203.0.113.0/24"),
            ("2001:db8:1:2::3", "2001:db8:1::/48"),
            ("::1", "::/48"),
        ] {
            assert_eq!(AddressRange::of(Some(address.parse().unwrap())).text(), expected);
        }
        assert_eq!(AddressRange::of(None).text(), "local");
    }
}
