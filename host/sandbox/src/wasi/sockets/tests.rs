//! A guest's operations on sockets, without the guest: allowed, denied and at the boundary, on
//! loopback.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket as Peer};
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::p2::bindings::sockets::tcp::HostTcpSocket as Tcp;
use wasmtime_wasi::p2::bindings::sockets::udp::{
    HostIncomingDatagramStream as Incoming, HostOutgoingDatagramStream as Outgoing, HostUdpSocket as Udp,
    OutgoingDatagram,
};
use wasmtime_wasi::p2::bindings::sockets::{instance_network, tcp_create_socket, udp_create_socket};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, Network, Pollable as _, SocketError, SocketResult, TcpSocket, UdpSocket,
};
use wasmtime_wasi::sockets::WasiSocketsView as _;

use super::bindings::wasi::sockets::ip_name_lookup::{Host as _, HostResolveAddressStream as _};
use crate::caller::NoCaller;
use crate::wasi::capabilities::{Capabilities, GrantSources};
use crate::wasi::net::testing::NameServer;
use crate::wasi::state::CallState;

const V4: IpAddressFamily = IpAddressFamily::Ipv4;

/// A call of a tool with these lines of `[network]` and of `[limits]`.
fn call(network: &str, limits: &str, name_servers: &[SocketAddr]) -> CallState {
    let text = format!(
        "version = 1\n[components.it]\nsource = \"it.wasm\"\n[components.it.limits]\n{limits}\n\
         [components.it.network]\n{network}\n"
    );
    let source = toolcell_policy::Source { name: "toolcell.toml", text: &text };
    let manifest = toolcell_policy::parse(&source).unwrap_or_else(|problems| panic!("{problems:?}")).manifest;
    let component = manifest.component("it").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let setting = GrantSources {
        behind_wall: None,
        observing: false,
        folder: folder.path(),
        variable: &|_| None,
        secret: &|_| Err((String::new(), String::new())),
        state_folder: folder.path(),
        shared_state: None,
        name_servers,
    };
    let capabilities =
        Capabilities::prepare(&component.tool_grants("tool"), &setting).unwrap_or_else(|p| panic!("{p:?}"));
    CallState::new(component.tool_limits("tool"), capabilities, Arc::new(NoCaller))
}

fn denials(call: &CallState) -> Vec<String> {
    call.denials.take().0.iter().map(ToString::to_string).collect()
}

fn network(call: &mut CallState) -> Resource<Network> {
    instance_network::Host::instance_network(&mut call.sockets()).unwrap()
}

fn code<T>(result: SocketResult<T>) -> Result<T, ErrorCode> {
    result.map_err(|error: SocketError| error.downcast().unwrap())
}

fn tcp(call: &mut CallState) -> Result<Resource<TcpSocket>, ErrorCode> {
    code(tcp_create_socket::Host::create_tcp_socket(call, V4))
}

fn borrow<T: 'static>(resource: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(resource.rep())
}

type Streams = (Resource<DynInputStream>, Resource<DynOutputStream>);

async fn connect(call: &mut CallState, to: SocketAddr) -> Result<Streams, ErrorCode> {
    let (socket, network) = (tcp(call)?, network(call));
    code(Tcp::start_connect(call, borrow(&socket), network, to.into()))?;
    loop {
        match code(Tcp::finish_connect(call, borrow(&socket))) {
            Err(ErrorCode::WouldBlock) => tokio::task::yield_now().await,
            result => return result,
        }
    }
}

async fn lookup(call: &mut CallState, name: &str) -> Result<Vec<IpAddr>, ErrorCode> {
    let network = network(call);
    let answers = code(call.resolve_addresses(network, name.to_owned()))?;
    let mut addresses = Vec::new();
    loop {
        match code(call.resolve_next_address(borrow(&answers))) {
            Err(ErrorCode::WouldBlock) => tokio::task::yield_now().await,
            Ok(Some(IpAddress::Ipv4((a, b, c, d)))) => addresses.push(IpAddr::from([a, b, c, d])),
            Ok(Some(IpAddress::Ipv6(_))) => panic!("no IPv6 here"),
            Ok(None) => return Ok(addresses),
            Err(code) => return Err(code),
        }
    }
}

#[tokio::test]
async fn a_connection_to_a_permitted_address_is_made_and_its_bytes_are_charged() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    let mut call = call(&format!("tcp = [\"{to}\"]\nprivate = [\"{to}\"]"), "", &[]);
    let (input, output) = connect(&mut call, to).await.unwrap();
    let (mut peer, _) = server.accept().unwrap();
    let stream: &mut DynOutputStream = call.table().get_mut(&output).unwrap();
    stream.write_ready().await.unwrap();
    stream.write(bytes::Bytes::from_static(b"ping")).unwrap();
    let mut got = [0; 4];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"ping");
    peer.write_all(b"pong!").unwrap();
    let stream: &mut DynInputStream = call.table().get_mut(&input).unwrap();
    stream.ready().await;
    assert_eq!(stream.read(100).unwrap().as_ref(), b"pong!");
    assert_eq!(call.traffic_bytes(), (4, 5));
    assert!(denials(&call).is_empty());
}

#[tokio::test]
async fn what_no_rule_permits_is_denied_by_name_and_reaches_nobody() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let to = server.local_addr().unwrap();
    let other = if to.port() == 1 { 2 } else { 1 };
    let rows = [
        ("another port", format!("tcp = [\"127.0.0.1:{other}\"]\nprivate = [\"127.0.0.1\"]"), "no rule"),
        ("another address", format!("tcp = [\"127.0.0.2:{}\"]\nprivate = [\"127.0.0.0/8\"]", to.port()), "no rule"),
        (
            "a name that was not looked up",
            format!("tcp = [\"localhost:{}\"]\nprivate = [\"127.0.0.1\"]", to.port()),
            "no rule",
        ),
        ("not in private", format!("tcp = [\"64.0.0.0/2:{}\"]", to.port()), "not public"),
    ];
    for (name, lines, reason) in rows {
        let mut call = call(&lines, "", &[]);
        assert_eq!(connect(&mut call, to).await.unwrap_err(), ErrorCode::AccessDenied, "{name}");
        let denials = denials(&call);
        assert_eq!(denials.len(), 1, "{name}: {denials:?}");
        assert!(
            denials[0].starts_with(&format!("denied: tcp {to}")) && denials[0].contains(reason),
            "{name}: {denials:?}"
        );
    }
    assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "somebody connected");
}

#[tokio::test]
async fn without_rules_of_a_protocol_there_are_no_sockets_of_it() {
    let mut udp_alone = call("udp = [\"1.1.1.1:53\"]", "", &[]);
    assert_eq!(tcp(&mut udp_alone).unwrap_err(), ErrorCode::AccessDenied);
    let mut tcp_alone = call("tcp = [\"1.1.1.1:53\"]", "", &[]);
    let socket = udp_create_socket::Host::create_udp_socket(&mut tcp_alone, V4).await;
    assert_eq!(code(socket).unwrap_err(), ErrorCode::AccessDenied);
}

#[tokio::test]
async fn nothing_is_bound_but_what_every_client_binds_and_nothing_listens() {
    let mut call = call("tcp = [\"0.0.0.0/0:1-65535\"]\nprivate = [\"0.0.0.0/0\"]", "", &[]);
    for (address, allowed) in
        [("0.0.0.0:0", true), ("127.0.0.1:0", false), ("0.0.0.0:8080", false), ("1.2.3.4:5", false)]
    {
        let (socket, network) = (tcp(&mut call).unwrap(), network(&mut call));
        let address: SocketAddr = address.parse().unwrap();
        let bound = code(Tcp::start_bind(&mut call, borrow(&socket), network, address.into()).await);
        assert_eq!(bound.is_ok(), allowed, "{address}: {bound:?}");
        if allowed {
            code(Tcp::finish_bind(&mut call, borrow(&socket))).unwrap();
            let listening = code(Tcp::start_listen(&mut call, borrow(&socket)).await);
            assert_eq!(listening.unwrap_err(), ErrorCode::AccessDenied);
        }
        assert!(denials(&call).iter().all(|denial| denial.ends_with("tools never bind or listen")), "{address}");
    }
}

#[tokio::test]
async fn a_name_of_the_rules_leads_to_its_addresses_and_no_other_name_is_asked_for() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    let names = NameServer::start(|name, _| (name == "db.test").then(|| vec![IpAddr::from([127, 0, 0, 1])])).await;
    let lines = format!("tcp = [\"db.test:{}\", \"gone.test:1\"]\nprivate = [\"127.0.0.1\"]", to.port());
    let mut call = call(&lines, "lookups = 3", &[names.address]);
    assert_eq!(connect(&mut call, to).await.unwrap_err(), ErrorCode::AccessDenied, "before it was looked up");
    assert_eq!(lookup(&mut call, "DB.test").await.unwrap(), [to.ip()]);
    connect(&mut call, to).await.unwrap();
    denials(&call);
    let asked = names.asked();
    assert_eq!(lookup(&mut call, "evil.test").await.unwrap_err(), ErrorCode::AccessDenied);
    assert_eq!(names.asked(), asked);
    assert!(denials(&call)[0].starts_with("denied: lookup evil.test"));
    assert_eq!(lookup(&mut call, "gone.test").await.unwrap_err(), ErrorCode::NameUnresolvable);
    lookup(&mut call, "db.test").await.unwrap();
    assert_eq!(lookup(&mut call, "db.test").await.unwrap_err(), ErrorCode::PermanentResolverFailure, "the limit");
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_not_told_and_not_connected_to() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    let names = NameServer::start(|_, _| Some(vec![IpAddr::from([127, 0, 0, 1])])).await;
    let mut call = call(&format!("tcp = [\"db.test:{}\"]", to.port()), "", &[names.address]);
    assert_eq!(lookup(&mut call, "db.test").await.unwrap_err(), ErrorCode::AccessDenied);
    let told = denials(&call);
    assert!(told[0].contains("not public") && !told[0].contains("127.0.0.1"), "{told:?}");
    assert_eq!(connect(&mut call, to).await.unwrap_err(), ErrorCode::AccessDenied);
}

#[tokio::test]
async fn sockets_are_counted() {
    let mut call = call("tcp = [\"1.1.1.1:1\"]", "sockets = 2", &[]);
    for _ in 0..2 {
        tcp(&mut call).unwrap();
    }
    assert_eq!(tcp(&mut call).unwrap_err(), ErrorCode::NewSocketLimit);
}

#[tokio::test]
async fn packets_go_to_permitted_addresses_and_come_from_them_alone() {
    let (friend, stranger) = (Peer::bind("127.0.0.1:0").unwrap(), Peer::bind("127.0.0.1:0").unwrap());
    let (to, from) = (friend.local_addr().unwrap(), stranger.local_addr().unwrap());
    let mut call = call(&format!("udp = [\"{to}\"]\nprivate = [\"127.0.0.1\"]"), "", &[]);
    let socket: Resource<UdpSocket> = code(udp_create_socket::Host::create_udp_socket(&mut call, V4).await).unwrap();
    let network = network(&mut call);
    let any = IpSocketAddress::from(SocketAddr::from(([0, 0, 0, 0], 0)));
    code(Udp::start_bind(&mut call, borrow(&socket), network, any).await).unwrap();
    code(Udp::finish_bind(&mut call, borrow(&socket))).unwrap();
    let (incoming, outgoing) = code(Udp::stream(&mut call, borrow(&socket), None).await).unwrap();
    let packet =
        |address: SocketAddr| OutgoingDatagram { data: b"hello".to_vec(), remote_address: Some(address.into()) };
    let send = |call: &mut CallState, packets: Vec<OutgoingDatagram>| {
        code(Outgoing::check_send(call, borrow(&outgoing))).unwrap();
        code(Outgoing::send(call, borrow(&outgoing), packets))
    };
    assert_eq!(send(&mut call, vec![packet(from)]).unwrap_err(), ErrorCode::AccessDenied);
    assert!(denials(&call)[0].starts_with(&format!("denied: udp {from}")));
    assert_eq!(send(&mut call, vec![packet(to), packet(from), packet(to)]).unwrap(), 1, "up to the denied one");
    let mut got = [0; 16];
    let (bytes, guest) = friend.recv_from(&mut got).unwrap();
    assert_eq!(&got[..bytes], b"hello");
    let guest = SocketAddr::from(([127, 0, 0, 1], guest.port()));
    stranger.send_to(b"intruder", guest).unwrap();
    friend.send_to(b"answer", guest).unwrap();
    let received = loop {
        let datagrams = code(Incoming::receive(&mut call, borrow(&incoming), 10)).unwrap();
        if !datagrams.is_empty() {
            break datagrams;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(received.iter().map(|datagram| datagram.data.as_slice()).collect::<Vec<_>>(), [b"answer"]);
    assert_eq!(call.traffic_bytes(), (5, 6));
    stranger.set_nonblocking(true).unwrap();
    assert_eq!(stranger.recv(&mut got).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
