//! Sockets and lookups of a guest in a sandbox process, without the guest.
//!
//! Promise: a name grants only checked addresses.
//! Promise: a socket goes where a rule says.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket as Peer};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolcell_wall::doors::Opening;
use toolcell_wall::doors::blob::Blob;
use toolcell_wall::doors::socket_options::SocketOptions;
use toolcell_wall::doors::sockets::{TcpWanted, UdpWanted, UdpWants};
use toolcell_wall::encoding::encode;
use toolcell_walls::door::{framed_data, framed_message};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::instance_network;
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, Network, Pollable as _, SocketError, SocketResult, StreamError,
};
use wasmtime_wasi::sockets::WasiSocketsView as _;

use super::bindings::wasi::sockets::tcp::{HostTcpSocket as Tcp, ShutdownType};
use super::bindings::wasi::sockets::udp::{
    HostIncomingDatagramStream as In, HostOutgoingDatagramStream as Out, HostUdpSocket as Udp, OutgoingDatagram,
};
use super::bindings::wasi::sockets::{tcp_create_socket, udp_create_socket};
use super::tcp::TcpSocket;
use crate::testing::TestDoors;
use crate::testing::name_server::NameServer;
use crate::wasi::guest_grants::{GuestGrants, HandedValues};
use crate::wasi::sockets::bindings::wasi::sockets::ip_name_lookup::{Host as _, HostResolveAddressStream as _};
use crate::wasi::state::CallState;
use toolcell_sandbox::{GrantSources, GrantedCapabilities};
use toolcell_wall::caller::ConsentAnswer;

const V4: IpAddressFamily = IpAddressFamily::Ipv4;

struct Call {
    state: CallState,
    doors: TestDoors,
}

/// A call of a tool with these lines of `[network]` and of `[limits]`. The process has no grants.
fn call(network: &str, limits: &str, name_servers: &[SocketAddr]) -> Call {
    call_of("", network, limits, name_servers)
}

fn call_of(component: &str, network: &str, limits: &str, name_servers: &[SocketAddr]) -> Call {
    let manifest = |network: &str| {
        let text = format!(
            "version = 1\n[components.it]\nsource = \"it.wasm\"\n{component}\n[components.it.limits]\n{limits}\n\
             [components.it.network]\n{network}\n"
        );
        let source = toolcell_policy::Source { name: "toolcell.toml", text: &text };
        toolcell_policy::parse(&source).unwrap_or_else(|problems| panic!("{problems:?}")).manifest
    };
    let folder = tempfile::tempdir().unwrap();
    let sources = GrantSources {
        observing: false,
        folder: folder.path(),
        variable: &|_| None,
        secret: &|_| Err(toolcell_policy::AdvisedFault::unadvised("")),
        state_folder: folder.path(),
        shared_state: None,
        name_servers,
    };
    let granted = manifest(network);
    let component = granted.component("it").unwrap();
    let capabilities = GrantedCapabilities::prepare(&component.tool_grants("tool"), &sources);
    let limits = *component.tool_limits("tool");
    let doors = TestDoors::new(&capabilities.unwrap_or_else(|p| panic!("{p:?}")), &limits);
    // Native code in the process may change its grants; that decides nothing.
    let process = manifest("");
    let process = process.component("it").unwrap().tool_grants("tool");
    let process = GuestGrants::of(&process, &HandedValues::default()).unwrap();
    Call { state: CallState::new(&limits, process, doors.caller()), doors }
}

/// The frame of a message.
fn framed(message: &impl serde::Serialize) -> Vec<u8> {
    framed_message(&encode(message).unwrap())
}

/// The bytes of the host's next message, without the version.
async fn said(door: &mut tokio::net::UnixStream) -> Vec<u8> {
    let mut head = [0; 16];
    door.read_exact(&mut head).await.unwrap();
    let mut message = vec![0; usize::from(head[4])];
    door.read_exact(&mut message).await.unwrap();
    message.split_off(1)
}

impl Call {
    fn denials(&self) -> Vec<String> {
        let denials: Vec<String> = self.doors.calls.denials().0.iter().map(ToString::to_string).collect();
        assert_eq!(std::mem::take(&mut *self.doors.caller.denied.lock().unwrap()), denials, "told once each");
        denials
    }

    fn network(&mut self) -> Resource<Network> {
        instance_network::Host::instance_network(&mut self.state.sockets()).unwrap()
    }

    fn tcp(&mut self) -> Result<Resource<TcpSocket>, ErrorCode> {
        code(tcp_create_socket::Host::create_tcp_socket(&mut self.state, V4))
    }

    async fn connect(&mut self, to: SocketAddr) -> Result<(Resource<TcpSocket>, Streams), ErrorCode> {
        let socket = self.tcp()?;
        let network = self.network();
        code(Tcp::start_connect(&mut self.state, borrow(&socket), network, to.into()).await)?;
        self.state.table().get_mut(&socket).unwrap().ready().await;
        let streams = code(Tcp::finish_connect(&mut self.state, borrow(&socket)))?;
        Ok((socket, streams))
    }

    async fn write(&mut self, output: &Resource<DynOutputStream>, bytes: &[u8]) -> Result<(), StreamError> {
        let stream: &mut DynOutputStream = self.state.table().get_mut(output).unwrap();
        assert!(stream.write_ready().await? >= bytes.len());
        stream.write(bytes::Bytes::copy_from_slice(bytes))
    }

    async fn read(&mut self, input: &Resource<DynInputStream>) -> Result<Vec<u8>, StreamError> {
        let stream: &mut DynInputStream = self.state.table().get_mut(input).unwrap();
        stream.ready().await;
        Ok(stream.read(1 << 20)?.to_vec())
    }

    async fn lookup(&mut self, name: &str) -> Result<Vec<IpAddr>, ErrorCode> {
        let network = self.network();
        let answers = code(self.state.resolve_addresses(network, name.to_owned()))?;
        self.state.table().get_mut(&answers).unwrap().ready().await;
        let mut addresses = Vec::new();
        loop {
            match code(self.state.resolve_next_address(borrow(&answers)))? {
                Some(IpAddress::Ipv4((a, b, c, d))) => addresses.push(IpAddr::from([a, b, c, d])),
                Some(IpAddress::Ipv6(_)) => panic!("no IPv6 here"),
                None => return Ok(addresses),
            }
        }
    }
}

fn code<T>(result: SocketResult<T>) -> Result<T, ErrorCode> {
    result.map_err(|error: SocketError| error.downcast().unwrap())
}

fn borrow<T: 'static>(resource: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(resource.rep())
}

type Streams = (Resource<DynInputStream>, Resource<DynOutputStream>);

fn to(address: SocketAddr) -> String {
    format!("tcp = [\"{address}\"]\nprivate = [\"{address}\"]")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_carries_bytes_both_ways_and_they_are_charged() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut call = call(&to(address), "", &[]);
    let (socket, (input, output)) = call.connect(address).await.unwrap();
    let (mut peer, from) = server.accept().unwrap();
    let local = code(Tcp::local_address(&mut call.state, borrow(&socket))).unwrap();
    assert_eq!(SocketAddr::from(local), from);
    let remote = code(Tcp::remote_address(&mut call.state, borrow(&socket))).unwrap();
    assert_eq!(SocketAddr::from(remote), address);
    call.write(&output, b"ping").await.unwrap();
    let mut got = [0; 4];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"ping");
    peer.write_all(b"pong!").unwrap();
    assert_eq!(call.read(&input).await.unwrap(), b"pong!");
    assert_eq!(call.doors.calls.traffic_bytes(), (4, 5));
    // Each direction ends by itself.
    code(Tcp::shutdown(&mut call.state, borrow(&socket), ShutdownType::Send)).unwrap();
    assert_eq!(peer.read(&mut got).unwrap(), 0);
    peer.write_all(b"last").unwrap();
    drop(peer);
    assert_eq!(call.read(&input).await.unwrap(), b"last");
    assert!(matches!(call.read(&input).await, Err(StreamError::Closed)));
    assert!(call.denials().is_empty() && call.doors.misuse().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_rule_permits_is_denied_by_the_host_and_reaches_nobody() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap();
    let other = if address.port() == 1 { 2 } else { 1 };
    let rows = [
        ("nothing", String::new(), "no rule"),
        ("another port", format!("tcp = [\"127.0.0.1:{other}\"]\nprivate = [\"127.0.0.1\"]"), "no rule"),
        (
            "another address",
            format!("tcp = [\"127.0.0.2:{}\"]\nprivate = [\"127.0.0.0/8\"]", address.port()),
            "no rule",
        ),
        ("a name", format!("tcp = [\"localhost:{}\"]\nprivate = [\"127.0.0.1\"]", address.port()), "no rule"),
        ("not in private", format!("tcp = [\"64.0.0.0/2:{}\"]", address.port()), "not public"),
    ];
    for (name, lines, reason) in rows {
        let mut call = call(&lines, "", &[]);
        assert_eq!(call.connect(address).await.unwrap_err(), ErrorCode::AccessDenied, "{name}");
        let denials = call.denials();
        assert_eq!(denials.len(), 1, "{name}: {denials:?}");
        assert!(denials[0].starts_with(&format!("denied: tcp {address}")) && denials[0].contains(reason), "{name}");
    }
    assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "somebody connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_a_connection_are_those_of_the_system() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut call = call(&to(gone), "sockets = 2", &[]);
    assert_eq!(call.connect(gone).await.unwrap_err(), ErrorCode::ConnectionRefused);
    assert!(call.tcp().is_ok());
    assert_eq!(call.tcp().unwrap_err(), ErrorCode::NewSocketLimit);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_no_socket_can_be_connected_to_is_decided_on_first() {
    let rules = "tcp = [\"127.0.0.1:1-65535\"]\nprivate = [\"127.0.0.1\"]";
    for wrong in [
        "[::ffff:127.0.0.1]:7",
        "127.0.0.1:0",
        "[::ffff:127.0.0.2]:7",
        "[::127.0.0.1]:7",
        "0.0.0.0:1",
        "224.0.0.1:1",
        "255.255.255.255:1",
    ] {
        let mut call = call(rules, "", &[]);
        let to: SocketAddr = wrong.parse().unwrap();
        let socket = call.tcp().unwrap();
        let network = call.network();
        let started = code(Tcp::start_connect(&mut call.state, socket, network, to.into()).await);
        assert_eq!(started.unwrap_err(), ErrorCode::AccessDenied, "{wrong}");
        assert_eq!(call.denials().len(), 1, "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_sends_past_its_limit_is_stopped_by_the_host() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut call = call(&to(address), "egress = \"64KiB\"", &[]);
    let (_socket, (input, output)) = call.connect(address).await.unwrap();
    let (mut peer, _) = server.accept().unwrap();
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = peer.read_to_end(&mut all);
        all.len()
    });
    call.write(&output, &[1; 64 << 10]).await.unwrap();
    let mut failed = call.write(&output, &[1]).await;
    while failed.is_ok() {
        failed = call.write(&output, &[1]).await;
    }
    let error = call.read(&input).await.unwrap_err();
    assert!(
        error.to_string().contains("whole limit \"egress\"") || format!("{error:?}").contains("egress"),
        "{error:?}"
    );
    assert_eq!(call.doors.calls.traffic_bytes().0, 64 << 10);
    assert_eq!(call.doors.calls.over(), Some(toolcell_policy::Limit::Egress));
    drop(call);
    assert_eq!(reading.join().unwrap(), 64 << 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_held_back_by_a_guest_that_does_not_read() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut call = call(&to(address), "", &[]);
    let (_socket, (input, _output)) = call.connect(address).await.unwrap();
    let (mut peer, _) = server.accept().unwrap();
    peer.set_nonblocking(true).unwrap();
    // As much as fits while nobody reads, and then all of it.
    let piece = [7; 64 << 10];
    let mut sent = 0;
    let mut idle = 0;
    while idle < 200 {
        match peer.write(&piece) {
            Ok(bytes) => (sent, idle) = (sent + bytes, 0),
            Err(_) => {
                idle += 1;
                tokio::task::yield_now().await;
            }
        }
    }
    let (_, received) = call.doors.calls.traffic_bytes();
    assert!(received <= 1 << 20, "{received} bytes of {sent} were taken");
    drop(peer);
    let mut got = 0;
    while let Ok(bytes) = call.read(&input).await {
        got += bytes.len();
    }
    assert_eq!(got, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_bytes_go_out_though_the_call_has_ended() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let mut call = call(&to(address), "", &[]);
    let (_socket, (_input, output)) = call.connect(address).await.unwrap();
    let (mut peer, _) = server.accept().unwrap();
    call.write(&output, b"QUIT").await.unwrap();
    let stream: &mut DynOutputStream = call.state.table().get_mut(&output).unwrap();
    stream.cancel().await;
    drop(call.state);
    call.doors.calls.close();
    let said = tokio::task::spawn_blocking(move || {
        let mut said = Vec::new();
        peer.read_to_end(&mut said).unwrap();
        said
    });
    assert_eq!(said.await.unwrap(), b"QUIT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_cannot_pass_the_hosts_limits_by_its_own_words() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap();
    let call = call(&to(address), "sockets = 2", &[]);
    let opening = |to| {
        let wanted = TcpWanted { to, six: to.is_ipv6(), options: SocketOptions::default() };
        framed(&Opening::Tcp(wanted))
    };
    let mut answers = Vec::new();
    let mut held = Vec::new();
    for to in [address, "192.0.2.1:1".parse().unwrap(), address] {
        let mut door = call.doors.knock();
        door.write_all(&opening(to)).await.unwrap();
        answers.push(said(&mut door).await[0]);
        held.push(door);
    }
    // Connected, refused by the rules, and refused by the limit.
    assert_eq!(answers, [0, 1, 1]);
    assert_eq!(call.doors.calls.denials().1, 1);
    let (mut peer, _): (TcpStream, _) = server.accept().unwrap();
    assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    // Garbage in the middle ends the connection.
    let mut door = held.remove(0);
    door.write_all(&framed_data(b"ok")).await.unwrap();
    door.write_all(&framed_message(&[0xff; 9])).await.unwrap();
    let mut rest = Vec::new();
    let _ = door.read_to_end(&mut rest).await;
    let said = tokio::task::spawn_blocking(move || {
        let mut said = Vec::new();
        peer.set_nonblocking(false).unwrap();
        let _ = peer.read_to_end(&mut said);
        said
    });
    assert_eq!(said.await.unwrap(), b"ok");
    assert_eq!(call.doors.misuse().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_bound_but_what_every_client_binds_and_nothing_listens() {
    let mut call = call("tcp = [\"0.0.0.0/0:1-65535\"]\nprivate = [\"0.0.0.0/0\"]", "", &[]);
    let socket = call.tcp().unwrap();
    let network = call.network();
    let any = IpSocketAddress::from(SocketAddr::from(([0, 0, 0, 0], 0)));
    code(Tcp::start_bind(&mut call.state, borrow(&socket), network, any)).unwrap();
    code(Tcp::finish_bind(&mut call.state, borrow(&socket))).unwrap();
    // The sandbox process denies these itself, since they are never allowed. The caller there would
    // be notified, which panics in this test.
    let denied = |denies: &mut dyn FnMut() -> SocketResult<()>| {
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(denies)).unwrap_err();
        let told = told.downcast_ref::<String>().unwrap();
        assert!(told.ends_with("tools never bind or listen"), "{told}");
    };
    denied(&mut || Tcp::start_listen(&mut call.state, borrow(&socket)));
    for address in ["127.0.0.1:0", "0.0.0.0:8080", "1.2.3.4:5"] {
        let socket = call.tcp().unwrap();
        let network = call.network();
        let address = IpSocketAddress::from(address.parse::<SocketAddr>().unwrap());
        denied(&mut || Tcp::start_bind(&mut call.state, borrow(&socket), borrow(&network), address));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_to_a_private_address_is_not_told_and_not_connected_to() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let names = NameServer::start(|_, _| Some(vec![IpAddr::from([127, 0, 0, 1])])).await;
    let mut call = call(&format!("tcp = [\"db.test:{}\"]", address.port()), "", &[names.address]);
    assert_eq!(call.lookup("db.test").await.unwrap_err(), ErrorCode::AccessDenied);
    let told = call.denials();
    assert!(told[0].contains("not public") && !told[0].contains("127.0.0.1"), "{told:?}");
    assert_eq!(call.connect(address).await.unwrap_err(), ErrorCode::AccessDenied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_looked_up_by_the_host_which_remembers_where_it_led() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let names = NameServer::start(|name, _| (name == "db.test").then(|| vec![IpAddr::from([127, 0, 0, 1])])).await;
    let lines = format!("tcp = [\"db.test:{}\", \"gone.test:1\"]\nprivate = [\"127.0.0.1\"]", address.port());
    let mut call = call(&lines, "lookups = 4", &[names.address]);
    assert_eq!(call.connect(address).await.unwrap_err(), ErrorCode::AccessDenied, "before it was looked up");
    assert_eq!(call.lookup("DB.test").await.unwrap(), [address.ip()]);
    call.connect(address).await.unwrap();
    call.denials();
    let asked = names.asked();
    assert_eq!(call.lookup("evil.test").await.unwrap_err(), ErrorCode::AccessDenied);
    assert_eq!(names.asked(), asked);
    assert!(call.denials()[0].starts_with("denied: lookup evil.test"));
    assert_eq!(call.lookup("gone.test").await.unwrap_err(), ErrorCode::NameUnresolvable);
    call.lookup("db.test").await.unwrap();
    assert_eq!(call.lookup("db.test").await.unwrap_err(), ErrorCode::PermanentResolverFailure, "the limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_go_to_permitted_addresses_and_come_from_them_alone() {
    let friend = Peer::bind("127.0.0.1:0").unwrap();
    let stranger = Peer::bind("127.0.0.1:0").unwrap();
    let to = friend.local_addr().unwrap();
    let from = stranger.local_addr().unwrap();
    let mut call = call(&format!("udp = [\"{to}\"]\nprivate = [\"127.0.0.1\"]"), "", &[]);
    let socket = code(udp_create_socket::Host::create_udp_socket(&mut call.state, V4)).unwrap();
    let network = call.network();
    let any = IpSocketAddress::from(SocketAddr::from(([0, 0, 0, 0], 0)));
    code(Udp::start_bind(&mut call.state, borrow(&socket), network, any).await).unwrap();
    code(Udp::finish_bind(&mut call.state, borrow(&socket))).unwrap();
    let (incoming, outgoing) = code(Udp::stream(&mut call.state, borrow(&socket), None).await).unwrap();
    let packet =
        |address: SocketAddr| OutgoingDatagram { data: b"hello".to_vec(), remote_address: Some(address.into()) };
    code(Out::check_send(&mut call.state, borrow(&outgoing))).unwrap();
    let sent = code(Out::send(&mut call.state, borrow(&outgoing), vec![packet(from)]).await);
    assert_eq!(sent.unwrap_err(), ErrorCode::AccessDenied);
    assert!(call.denials()[0].starts_with(&format!("denied: udp {from}")));
    code(Out::check_send(&mut call.state, borrow(&outgoing))).unwrap();
    let sent = code(Out::send(&mut call.state, borrow(&outgoing), vec![packet(to), packet(from), packet(to)]).await);
    assert_eq!(sent.unwrap(), 1, "up to the denied one");
    let mut got = [0; 16];
    let (bytes, guest) = friend.recv_from(&mut got).unwrap();
    assert_eq!(&got[..bytes], b"hello");
    stranger.send_to(b"intruder", guest).unwrap();
    friend.send_to(b"answer", guest).unwrap();
    call.state.table().get_mut(&incoming).unwrap().ready().await;
    let received = code(In::receive(&mut call.state, borrow(&incoming), 10)).unwrap();
    assert_eq!(received.iter().map(|datagram| datagram.data.as_slice()).collect::<Vec<_>>(), [b"answer"]);
    assert_eq!(call.doors.calls.traffic_bytes(), (5, 6));
    stranger.set_nonblocking(true).unwrap();
    assert_eq!(stranger.recv(&mut got).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packet_past_the_limit_is_not_sent() {
    let friend = Peer::bind("127.0.0.1:0").unwrap();
    let to = friend.local_addr().unwrap();
    let call = call(&format!("udp = [\"{to}\"]\nprivate = [\"127.0.0.1\"]"), "egress = \"5B\"\nsockets = 1", &[]);
    let mut door = call.doors.knock();
    let opening = Opening::Udp(UdpWanted { six: false, options: SocketOptions::default() });
    door.write_all(&framed(&opening)).await.unwrap();
    // The first has its socket by now.
    said(&mut door).await;
    let mut second = call.doors.knock();
    let opening = Opening::Udp(UdpWanted { six: false, options: SocketOptions::default() });
    second.write_all(&framed(&opening)).await.unwrap();
    assert_eq!(said(&mut second).await[..2], [0, 1], "refused: one socket");
    for (packet, done) in [(&b"hello"[..], [0, 0]), (b"!", [0, 1])] {
        let wants = UdpWants::Send(Some(to), Blob(packet.to_vec()));
        door.write_all(&framed(&wants)).await.unwrap();
        assert_eq!(said(&mut door).await[..2], done);
    }
    assert_eq!(call.doors.calls.traffic_bytes().0, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_by_the_host_and_the_call_goes_on_or_does_not() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let rows = [(ConsentAnswer::Given, None), (ConsentAnswer::Refused, Some(ErrorCode::AccessDenied))];
    for (consent, refused) in rows {
        let mut call = call_of("ungranted = \"ask\"", "", "", &[]);
        call.doors.caller.consent.lock().unwrap().push(consent);
        let connected = call.connect(address).await;
        assert_eq!(connected.as_ref().err(), refused.as_ref());
        // Asked once.
        let again = call.connect(address).await;
        assert_eq!(again.as_ref().err(), refused.as_ref());
        assert!(call.doors.caller.consent.lock().unwrap().is_empty());
    }
    let mut call = call_of("ungranted = \"ask\"", "", "", &[]);
    call.doors.caller.consent.lock().unwrap().push(ConsentAnswer::Ended(Some("come back".to_owned())));
    let socket = call.tcp().unwrap();
    let network = call.network();
    let ended = Tcp::start_connect(&mut call.state, socket, network, address.into()).await.unwrap_err();
    let ended = ended.downcast().unwrap_err();
    assert!(ended.to_string().contains("ended where the guest asked"), "{ended:?}");
}
