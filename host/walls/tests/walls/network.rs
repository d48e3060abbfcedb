//! Attempts at the network.

use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};

use rustix::net::{AddressFamily, SendFlags, SocketType};

use crate::site::{Site, number};
use crate::stage::abstract_name;
use crate::syscalls::call;

fn socket_of(family: AddressFamily, kind: SocketType) -> io::Result<()> {
    Ok(rustix::net::socket(family, kind, None).map(drop)?)
}

pub(crate) fn socket(_: &Site) -> io::Result<()> {
    socket_of(AddressFamily::INET, SocketType::STREAM)
}

pub(crate) fn datagram_socket(_: &Site) -> io::Result<()> {
    socket_of(AddressFamily::INET6, SocketType::DGRAM)
}

pub(crate) fn unix_socket(_: &Site) -> io::Result<()> {
    socket_of(AddressFamily::UNIX, SocketType::STREAM)
}

pub(crate) fn netlink_socket(_: &Site) -> io::Result<()> {
    socket_of(AddressFamily::NETLINK, SocketType::RAW)
}

pub(crate) fn packet_socket(_: &Site) -> io::Result<()> {
    socket_of(AddressFamily::PACKET, SocketType::RAW)
}

pub(crate) fn connect_loose(site: &Site) -> io::Result<()> {
    Ok(rustix::net::connect(&site.loose, &site.listener)?)
}

/// A socket that is made behind the walls lies in their network namespace.
pub(crate) fn connect_new(site: &Site) -> io::Result<()> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    Ok(rustix::net::connect(&socket, &site.listener)?)
}

pub(crate) fn bind(site: &Site) -> io::Result<()> {
    let any: std::net::SocketAddr = ([127, 0, 0, 1], 0).into();
    Ok(rustix::net::bind(&site.loose, &any)?)
}

/// The namespace of abstract names is the network's; the socket here is of the host's.
pub(crate) fn connect_abstract(site: &Site) -> io::Result<()> {
    let name = UnixAddr::from_abstract_name(abstract_name(site.parent))?;
    let name = rustix::net::SocketAddrUnix::new_abstract_name(name.as_abstract_name().unwrap_or_default())?;
    Ok(rustix::net::connect(&site.loose_unix, &name)?)
}

pub(crate) fn connect_abstract_anew(site: &Site) -> io::Result<()> {
    let name = UnixAddr::from_abstract_name(abstract_name(site.parent))?;
    UnixStream::connect_addr(&name).map(drop)
}

pub(crate) fn send_to_another(site: &Site) -> io::Result<()> {
    site.datagrams.send_to(b"stolen", site.listener).map(drop)
}

pub(crate) fn send_with_descriptors(site: &Site) -> io::Result<()> {
    let nothing = &mut rustix::net::SendAncillaryBuffer::default();
    let bytes = [io::IoSlice::new(b"x")];
    rustix::net::sendmsg(&site.connected, &bytes, nothing, SendFlags::empty())?;
    Ok(())
}

pub(crate) fn send_to_the_connected(site: &Site) -> io::Result<()> {
    site.datagrams.send(b"allowed")?;
    (&site.connected).write_all(b"allowed")
}

/// The other end never writes: the call itself is what is tried.
pub(crate) fn receive(site: &Site) -> io::Result<()> {
    site.connected.set_nonblocking(true)?;
    match (&site.connected).read(&mut [0; 8]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        other => Err(io::Error::other(format!("{other:?}"))),
    }
}

pub(crate) fn without_delay(site: &Site) -> io::Result<()> {
    site.connected.set_nodelay(true)?;
    if site.connected.nodelay()? { Ok(()) } else { Err(io::Error::other("delayed")) }
}

/// An option of a socket that is not of the few.
pub(crate) fn option(site: &Site, name: i32) -> io::Result<()> {
    let name = usize::try_from(name).map_err(io::Error::other)?;
    let level = usize::try_from(libc::SOL_SOCKET).map_err(io::Error::other)?;
    call(libc::SYS_setsockopt, [number(&site.connected), level, name, 0, 0, 0]).map(drop)
}
