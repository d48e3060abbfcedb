//! The types of WASI 0.3's sockets, from and to those of 0.2 and of Rust.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use wasmtime_wasi::p2::SocketError;
use wasmtime_wasi::p2::bindings::sockets::network as p2;

use super::Refused;
use super::bindings::types as p3;

pub(super) fn error(code: p2::ErrorCode) -> p3::ErrorCode {
    macro_rules! same_error {
        ($($name:ident)*) => {
            match code {
                $(p2::ErrorCode::$name => p3::ErrorCode::$name,)*
                p2::ErrorCode::ConcurrencyConflict | p2::ErrorCode::NotInProgress => p3::ErrorCode::InvalidState,
                p2::ErrorCode::NewSocketLimit => {
                    p3::ErrorCode::Other(Some("the call has as many sockets as it may".to_owned()))
                }
                p2::ErrorCode::Unknown
                | p2::ErrorCode::WouldBlock
                | p2::ErrorCode::NameUnresolvable
                | p2::ErrorCode::TemporaryResolverFailure
                | p2::ErrorCode::PermanentResolverFailure => p3::ErrorCode::Other(None),
            }
        };
    }
    same_error!(
        AccessDenied NotSupported InvalidArgument OutOfMemory Timeout InvalidState AddressNotBindable AddressInUse
        RemoteUnreachable ConnectionRefused ConnectionReset ConnectionAborted DatagramTooLarge
    )
}

pub(super) fn refused(error: SocketError) -> Refused {
    match error.downcast() {
        Ok(code) => self::error(code).into(),
        Err(trap) => Refused::trap(trap),
    }
}

pub(super) fn family(family: p3::IpAddressFamily) -> p2::IpAddressFamily {
    match family {
        p3::IpAddressFamily::Ipv4 => p2::IpAddressFamily::Ipv4,
        p3::IpAddressFamily::Ipv6 => p2::IpAddressFamily::Ipv6,
    }
}

pub(super) fn family_of(family: p2::IpAddressFamily) -> p3::IpAddressFamily {
    match family {
        p2::IpAddressFamily::Ipv4 => p3::IpAddressFamily::Ipv4,
        p2::IpAddressFamily::Ipv6 => p3::IpAddressFamily::Ipv6,
    }
}

pub(super) fn ip(ip: IpAddr) -> p3::IpAddress {
    match ip {
        IpAddr::V4(ip) => p3::IpAddress::Ipv4(ip.octets().into()),
        IpAddr::V6(ip) => p3::IpAddress::Ipv6(ip.segments().into()),
    }
}

pub(super) fn target(address: p3::IpSocketAddress) -> SocketAddr {
    match address {
        p3::IpSocketAddress::Ipv4(p3::Ipv4SocketAddress { port, address: (a, b, c, d) }) => {
            SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port).into()
        }
        p3::IpSocketAddress::Ipv6(p3::Ipv6SocketAddress { port, flow_info, address, scope_id }) => {
            let (a, b, c, d, e, f, g, h) = address;
            SocketAddrV6::new(Ipv6Addr::new(a, b, c, d, e, f, g, h), port, flow_info, scope_id).into()
        }
    }
}

pub(super) fn address(address: SocketAddr) -> p3::IpSocketAddress {
    match address {
        SocketAddr::V4(address) => p3::IpSocketAddress::Ipv4(p3::Ipv4SocketAddress {
            port: address.port(),
            address: address.ip().octets().into(),
        }),
        SocketAddr::V6(address) => p3::IpSocketAddress::Ipv6(p3::Ipv6SocketAddress {
            port: address.port(),
            flow_info: address.flowinfo(),
            address: address.ip().segments().into(),
            scope_id: address.scope_id(),
        }),
    }
}
