//! The process that already listens at an address, for the error message.
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::machine::peer::peer;
use crate::machine::socket_paths::is_socket;

/// The kernel's tables of TCP sockets, one for each version of IP (Linux, `proc_pid_net(5)`).
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The state of a listening socket.
const LISTENS: &str = "0A";

/// Columns of a table: the own address, the state, and the number of the socket.
const ADDRESS: usize = 1;
const STATE: usize = 3;
const INODE: usize = 9;

/// Why nothing can listen at this address: the process that already does, if it belongs to this
/// user, or else the system's error.
pub(crate) fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    let holder = (error.kind() == io::ErrorKind::AddrInUse).then(|| of_address(address)).flatten();
    holder.map_or_else(|| error.to_string(), sentence)
}

/// Why nothing can listen at this path: the process that already does, or what else is there.
pub(crate) fn listens_on(socket: &Path) -> String {
    let connected = UnixStream::connect(socket).ok();
    let listens = connected.and_then(|stream| peer(&stream).ok());
    match listens {
        Some(listens) => sentence(listens.pid),
        None if is_socket(socket) => "something exists there already".to_owned(),
        None => "what is there is not a socket; move it away, or name another path".to_owned(),
    }
}

fn sentence(process: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let name: String = name.trim_end().chars().filter(|c| !c.is_control()).collect();
    let named = if name.is_empty() { String::new() } else { format!(" ({name})") };
    format!("process {process}{named} listens there")
}

/// The process that listens at this address, if this user may see it.
fn of_address(address: SocketAddr) -> Option<u32> {
    let tables = TABLES.iter().filter_map(|table| fs::read_to_string(table).ok());
    let sockets: Vec<String> = tables.flat_map(|table| sockets_at(&table, address)).collect();
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|process| *process != std::process::id()).find(|process| has_one(*process, &sockets))
}

/// Names of the sockets in this table that occupy the address.
fn sockets_at(table: &str, address: SocketAddr) -> Vec<String> {
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    let taking = rows.filter(|row| {
        let bound = row.get(ADDRESS).and_then(|text| parsed(text));
        row.get(STATE) == Some(&LISTENS) && bound.is_some_and(|bound| overlap(bound, address))
    });
    taking.filter_map(|row| row.get(INODE).map(|inode| format!("socket:[{inode}]"))).collect()
}

fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let is_any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && (is_any || one.ip() == other.ip())
}

/// An address in the table's format: words of 32 bits in the machine's byte order, and a port.
fn parsed(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..ip.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(SocketAddr::new(ip, port))
}

fn has_one(process: u32, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let links = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.filter_map(|link| link.into_os_string().into_string().ok()).any(|link| sockets.contains(&link))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_table_s_rows_are_read_as_the_kernel_writes_them() {
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let loopback = [word([0; 4]), word([0; 4]), word([0; 4]), word([0, 0, 0, 1])].concat();
        let table = format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: {}:1F90 00000000:0000 0A 0:0 0:0 0 0 0 11 1 0 100\n\
             1: {}:1F90 00000000:0000 01 0:0 0:0 0 0 0 12 1 0 100\n\
             2: {}:1F91 00000000:0000 0A 0:0 0:0 0 0 0 13 1 0 100\n\
             3: {loopback}:1F92 00000000:0000 0A 0:0 0:0 0 0 0 14 1 0 100\n",
            word([127, 0, 0, 1]),
            word([127, 0, 0, 1]),
            word([0, 0, 0, 0]),
        );
        for (address, expected) in [
            ("127.0.0.1:8080", vec!["socket:[11]"]),
            ("0.0.0.0:8080", vec!["socket:[11]"]),
            ("127.0.0.2:8080", vec![]),
            ("10.0.0.1:8081", vec!["socket:[13]"]),
            ("[::1]:8082", vec!["socket:[14]"]),
            ("[::2]:8082", vec![]),
        ] {
            assert_eq!(sockets_at(&table, address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn an_address_of_nobody_else_is_refused_in_the_system_s_words() {
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = TcpListener::bind(own.local_addr().unwrap()).unwrap_err();
        assert_eq!(cannot_listen(own.local_addr().unwrap(), &error), error.to_string());
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(cannot_listen("127.0.0.1:1".parse().unwrap(), &denied), denied.to_string());
    }
}
