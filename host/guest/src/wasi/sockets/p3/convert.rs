//! The types of WASI 0.3's sockets, from and to those of 0.2 and of Rust.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use wasmtime_wasi::p2::SocketError;
use wasmtime_wasi::p2::bindings::sockets::network as p2;

use super::Refused;
use super::bindings::types as p3;

pub(super) fn error(code: p2::ErrorCode) -> p3::ErrorCode {
    use p2::ErrorCode as P2;
    match code {
        P2::AccessDenied => p3::ErrorCode::AccessDenied,
        P2::NotSupported => p3::ErrorCode::NotSupported,
        P2::InvalidArgument => p3::ErrorCode::InvalidArgument,
        P2::OutOfMemory => p3::ErrorCode::OutOfMemory,
        P2::Timeout => p3::ErrorCode::Timeout,
        P2::InvalidState | P2::ConcurrencyConflict | P2::NotInProgress => p3::ErrorCode::InvalidState,
        P2::AddressNotBindable => p3::ErrorCode::AddressNotBindable,
        P2::AddressInUse => p3::ErrorCode::AddressInUse,
        P2::RemoteUnreachable => p3::ErrorCode::RemoteUnreachable,
        P2::ConnectionRefused => p3::ErrorCode::ConnectionRefused,
        P2::ConnectionReset => p3::ErrorCode::ConnectionReset,
        P2::ConnectionAborted => p3::ErrorCode::ConnectionAborted,
        P2::DatagramTooLarge => p3::ErrorCode::DatagramTooLarge,
        P2::NewSocketLimit => p3::ErrorCode::Other(Some("the call has as many sockets as it may".to_owned())),
        P2::Unknown
        | P2::WouldBlock
        | P2::NameUnresolvable
        | P2::TemporaryResolverFailure
        | P2::PermanentResolverFailure => p3::ErrorCode::Other(None),
    }
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
