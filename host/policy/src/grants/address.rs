//! Kinds of addresses that are not public.
//!
//! The tables follow the special-purpose registries of IANA and the addresses at which cloud hosts
//! answer with credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A kind of address that only `private` allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressClass {
    /// `0.0.0.0/8`, `::`: this host. No `private` allows it: `127.0.0.1` and `::1` can be named.
    Unspecified,
    /// `127.0.0.0/8`, `::1`
    Loopback,
    /// `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`
    Private,
    /// `100.64.0.0/10`: behind a provider's address translation.
    SharedNat,
    /// `169.254.0.0/16`, `fe80::/10`
    LinkLocal,
    /// Addresses at which cloud hosts answer with credentials: `169.254.169.254`, `fd00:ec2::254`
    /// and others. A range of `private` that covers one is not enough: it must be named alone.
    Metadata,
    /// `224.0.0.0/4`, `ff00::/8`
    Multicast,
    /// `255.255.255.255`
    Broadcast,
    /// `192.0.2.0/24`, `2001:db8::/32` and others: for examples.
    Documentation,
    /// `198.18.0.0/15`, `2001:2::/48`
    Benchmarking,
    /// `fc00::/7`: IPv6's private addresses.
    UniqueLocal,
    /// `fec0::/10`: what they were before.
    SiteLocal,
    /// `::ffff:0:0/96`, `::/96`: an IPv4 address in IPv6 form.
    V4Mapped,
    /// `64:ff9b::/96`, `64:ff9b:1::/48`
    Nat64,
    /// `2002::/16`, `192.88.99.0/24`
    SixToFour,
    /// `2001::/32`
    Teredo,
    /// Everything else that is not an address of the internet.
    Reserved,
}

use AddressClass as Class;

/// IPv4: the first row that matches.
const V4: [(Ipv4Addr, u8, Class); 23] = [
    (Ipv4Addr::new(169, 254, 169, 254), 32, Class::Metadata), // AWS, Azure, Google and most others
    (Ipv4Addr::new(169, 254, 170, 2), 32, Class::Metadata),   // AWS ECS
    (Ipv4Addr::new(169, 254, 170, 23), 32, Class::Metadata),  // AWS EKS
    (Ipv4Addr::new(100, 100, 100, 200), 32, Class::Metadata), // Alibaba
    (Ipv4Addr::new(192, 0, 0, 192), 32, Class::Metadata),     // Oracle
    (Ipv4Addr::new(168, 63, 129, 16), 32, Class::Metadata),   // Azure
    (Ipv4Addr::new(0, 0, 0, 0), 8, Class::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Class::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Class::SharedNat),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Class::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Class::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Class::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Class::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Class::Documentation),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Class::SixToFour),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Class::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Class::Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Class::Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Class::Documentation),
    (Ipv4Addr::new(233, 252, 0, 0), 24, Class::Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Class::Multicast),
    (Ipv4Addr::new(255, 255, 255, 255), 32, Class::Broadcast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Class::Reserved),
];

/// IPv6: the first row that matches; everything else outside `2000::/3` is reserved.
const V6: [(Ipv6Addr, u8, Class); 21] = [
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, Class::Metadata), // AWS
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23), 128, Class::Metadata),  // AWS EKS
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, Class::Metadata),  // Google
    (Ipv6Addr::UNSPECIFIED, 128, Class::Unspecified),
    (Ipv6Addr::LOCALHOST, 128, Class::Loopback),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, Class::V4Mapped),
    (Ipv6Addr::UNSPECIFIED, 96, Class::V4Mapped),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, Class::Nat64),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, Class::Nat64),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, Class::Teredo),
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, Class::Benchmarking),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Class::Documentation),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Class::Reserved),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, Class::SixToFour),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Class::Documentation),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Class::UniqueLocal),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Class::LinkLocal),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Class::SiteLocal),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Class::Multicast),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, Class::Reserved),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, Class::Reserved),
];

impl AddressClass {
    /// The class of an address; `None` if it is public.
    #[must_use]
    pub fn of(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => {
                let found = V4.iter().find(|(net, bits, _)| is_in_v4(address, *net, *bits));
                found.map(|(_, _, class)| *class)
            }
            IpAddr::V6(address) => {
                let found = V6.iter().find(|(net, bits, _)| is_in_v6(address, *net, *bits));
                let global = is_in_v6(address, Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
                found.map(|(_, _, class)| *class).or((!global).then_some(Self::Reserved))
            }
        }
    }

    /// The IPv4 address that packets to an IPv6 address end at, if it contains one.
    #[must_use]
    pub fn carried(address: IpAddr) -> Option<IpAddr> {
        carried(address)
    }

    /// The kind, in words: `a loopback address`.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Unspecified => "an address of this host without a name",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::SharedNat => "an address behind a provider's address translation",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "an address of a cloud's metadata service",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "the broadcast address",
            Self::Documentation => "an address for examples",
            Self::Benchmarking => "an address for measurements",
            Self::UniqueLocal => "a private IPv6 address",
            Self::SiteLocal => "a site-local IPv6 address",
            Self::V4Mapped => "an IPv4 address written as IPv6",
            Self::Nat64 => "a NAT64 address",
            Self::SixToFour => "a 6to4 address",
            Self::Teredo => "a Teredo address",
            Self::Reserved => "a reserved address",
        }
    }
}

/// The IPv4 address that packets to an IPv6 address end at, if it contains one.
pub(crate) fn carried(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else { return None };
    let bits = address.to_bits();
    let at = |shift: u32| Some(IpAddr::V4(Ipv4Addr::from_bits(u32::try_from((bits >> shift) & 0xffff_ffff).ok()?)));
    match AddressClass::of(IpAddr::V6(address))? {
        Class::V4Mapped | Class::Nat64 => at(0),
        Class::SixToFour => at(80),
        // The client's address, with all bits inverted.
        Class::Teredo => Some(IpAddr::V4(Ipv4Addr::from_bits(!u32::try_from(bits & 0xffff_ffff).ok()?))),
        _ => None,
    }
}

fn is_in_v4(address: Ipv4Addr, net: Ipv4Addr, bits: u8) -> bool {
    let shift = 32_u32.saturating_sub(u32::from(bits));
    (address.to_bits() ^ net.to_bits()).checked_shr(shift).unwrap_or(0) == 0
}

fn is_in_v6(address: Ipv6Addr, net: Ipv6Addr, bits: u8) -> bool {
    let shift = 128_u32.saturating_sub(u32::from(bits));
    (address.to_bits() ^ net.to_bits()).checked_shr(shift).unwrap_or(0) == 0
}

/// The first address of every class: a range that neither starts nor ends in a class overlaps it
/// only if it contains this address.
pub(crate) fn starts() -> impl Iterator<Item = IpAddr> {
    V4.iter().map(|(net, _, _)| IpAddr::V4(*net)).chain(V6.iter().map(|(net, _, _)| IpAddr::V6(*net)))
}
