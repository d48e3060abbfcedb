//! Addresses that the host itself may connect to, and what a URL says of its server.
use std::net::IpAddr;

use toolcell_policy::{AddressClass, is_loopback};
use url::Url;

/// Addresses that a request may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Any address that the operator's URL leads to.
    Any,
    /// Addresses of the internet, this machine and private networks; not of metadata services.
    Private,
    /// Only addresses of the internet.
    Public,
    /// Only loopback addresses, over plain HTTP without a setting.
    Loopback,
}

impl Reach {
    /// The class of the address if it is not allowed.
    #[must_use]
    pub fn refused(self, address: IpAddr) -> Option<AddressClass> {
        if self == Self::Any {
            return None;
        }
        let class = AddressClass::of(address);
        match class {
            // Such an address is as public as the one that packets end at.
            Some(AddressClass::V4Mapped | AddressClass::Nat64) => match AddressClass::carried(address) {
                Some(carried) => self.refused(carried),
                None => class,
            },
            None => (self == Self::Loopback).then_some(AddressClass::Reserved),
            Some(AddressClass::Loopback) if self != Self::Public => None,
            Some(AddressClass::Private | AddressClass::SharedNat | AddressClass::UniqueLocal)
                if self == Self::Private =>
            {
                None
            }
            class => class,
        }
    }
}

/// The host of an address with its port, as errors and the `Host` header show it.
#[must_use]
pub fn shown(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// True if nobody on the way to this address can read or change a request: https, or this machine.
#[must_use]
pub fn is_protected(url: &Url) -> bool {
    url.host().is_some() && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url)))
}

/// True if both URLs have the same server: scheme, host and port.
#[must_use]
pub fn is_same_server(a: &Url, b: &Url) -> bool {
    (a.scheme(), a.host(), a.port_or_known_default()) == (b.scheme(), b.host(), b.port_or_known_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_reach_or_not() {
        for (address, public, private, loopback) in [
            ("1.1.1.1", true, true, false),
            ("2606:4700::1", true, true, false),
            ("127.0.0.1", false, true, true),
            ("::1", false, true, true),
            ("10.0.0.1", false, true, false),
            ("10.1.2.3", false, true, false),
            ("172.16.0.1", false, true, false),
            ("192.168.1.1", false, true, false),
            ("100.64.0.1", false, true, false),
            ("fd00::1", false, true, false),
            ("::ffff:10.0.0.1", false, true, false),
            ("::ffff:127.0.0.1", false, true, true),
            ("::ffff:1.1.1.1", true, true, false),
            ("64:ff9b::1.1.1.1", true, true, false),
            ("64:ff9b::10.0.0.1", false, true, false),
            ("64:ff9b::169.254.169.254", false, false, false),
            ("169.254.169.254", false, false, false),
            ("::ffff:169.254.169.254", false, false, false),
            ("fd00:ec2::254", false, false, false),
            ("100.100.100.200", false, false, false),
            ("169.254.1.1", false, false, false),
            ("fe80::1", false, false, false),
            ("0.0.0.0", false, false, false),
            ("::", false, false, false),
            ("224.0.0.1", false, false, false),
            ("ff02::1", false, false, false),
            ("255.255.255.255", false, false, false),
            ("2002:7f00:1::1", false, false, false),
            ("2001::1", false, false, false),
            ("192.0.2.1", false, false, false),
        ] {
            let address: IpAddr = address.parse().unwrap();
            let reached = [Reach::Public, Reach::Private, Reach::Loopback].map(|r| r.refused(address).is_none());
            assert_eq!(reached, [public, private, loopback], "{address}");
            assert_eq!(Reach::Any.refused(address), None, "{address}");
        }
    }

    #[test]
    fn numbers_in_other_clothes_are_the_addresses_that_they_are() {
        for text in ["http://127.1/", "http://2130706433/", "http://0x7f.0.0.1/", "http://[::1]/", "http://localhost/"]
        {
            assert!(is_loopback(&Url::parse(text).unwrap()), "{text}");
        }
        for text in ["http://localhost.example.com/", "http://127.0.0.1.example.com/", "http://10.0.0.1/"] {
            assert!(!is_loopback(&Url::parse(text).unwrap()), "{text}");
        }
    }

    #[test]
    fn only_https_and_this_machine_are_protected() {
        for (address, expected) in [
            ("https://example.com/a.wasm", true),
            ("https://login.example.com/keys", true),
            ("http://127.0.0.1:8080/a.wasm", true),
            ("http://127.0.0.1:9/keys", true),
            ("http://[::1]/a.wasm", true),
            ("http://[::1]:9/keys", true),
            ("http://localhost/a.wasm", true),
            ("http://example.com/a.wasm", false),
            ("http://localhost.example.com/a.wasm", false),
            ("http://127.0.0.1.example.com/keys", false),
            ("http://10.0.0.1/a.wasm", false),
            ("ftp://127.0.0.1/a.wasm", false),
            ("file:///a.wasm", false),
        ] {
            assert_eq!(is_protected(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }
}
