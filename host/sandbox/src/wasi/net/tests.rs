//! Names, addresses and counters, against servers on loopback.
#![allow(clippy::unwrap_used)]

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::testing::NameServer;
use super::{CallNet, LookupError, MeteredStream, NetGuard, OverDirection, Resolver};
use toolcell_wall::doors::net_limits::NetLimits;

const WAIT: Duration = Duration::from_secs(5);

pub(crate) fn limits() -> NetLimits {
    NetLimits::from(&toolcell_policy::Limits::default())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test]
async fn the_manifests_name_servers_are_asked_and_no_file_of_the_system() {
    let server = NameServer::start(|name, _| match name {
        "two.example" => Some(vec![ip("192.0.2.1"), ip("192.0.2.2"), ip("2001:db8::1")]),
        "localhost.example" => Some(vec![]),
        _ => None,
    })
    .await;
    let resolver = Resolver::new(&[server.address]);
    let found = resolver.addresses("two.example", WAIT).await.unwrap();
    assert_eq!(found, [ip("2001:db8::1"), ip("192.0.2.1"), ip("192.0.2.2")]);
    assert_eq!(resolver.addresses("localhost.example", WAIT).await, Err(LookupError::NoAddress));
    assert_eq!(resolver.addresses("missing.example", WAIT).await, Err(LookupError::NoName));
}

#[tokio::test]
async fn a_name_is_asked_for_as_it_is_written_and_only_so() {
    let server = NameServer::start(|_, _| None).await;
    let resolver = Resolver::new(&[server.address]);
    assert_eq!(resolver.addresses("db", WAIT).await, Err(LookupError::NoName));
    assert_eq!(server.asked(), 1, "no search domain was tried");
}

#[tokio::test]
async fn an_answer_with_more_addresses_than_anybody_needs_is_cut() {
    let many = |_: &str, _| Some((0..20).map(|last| IpAddr::from([192, 0, 2, last])).collect());
    let server = NameServer::start(many).await;
    let found = Resolver::new(&[server.address]).addresses("many.example", WAIT).await.unwrap();
    assert_eq!(found.len(), super::resolver::ADDRESSES_MAX);
}

#[tokio::test]
async fn a_silent_name_server_costs_no_more_than_the_wait() {
    let server = NameServer::silent().await;
    let resolver = Resolver::new(&[server.address]);
    let wait = Duration::from_millis(50);
    let looked_up = tokio::time::timeout(WAIT, resolver.addresses("slow.example", wait)).await.unwrap();
    assert_eq!(looked_up, Err(LookupError::Timeout));
}

#[tokio::test]
async fn bytes_are_charged_both_ways_to_the_last_one_and_not_past_it() {
    let net = CallNet::new(NetLimits { egress_bytes: 5, ingress_bytes: 4, ..limits() });
    let (near, mut far) = duplex(64);
    let mut near = MeteredStream::new(near, Arc::clone(&net));
    near.write_all(b"12345").await.unwrap();
    assert_eq!((net.egress_bytes(), net.over()), (5, None));
    assert!(near.write_all(b"6").await.is_err());
    assert_eq!(net.over(), Some(OverDirection::Egress));
    let mut sent = [0; 5];
    far.read_exact(&mut sent).await.unwrap();
    assert_eq!(&sent, b"12345");

    let net = CallNet::new(NetLimits { egress_bytes: 5, ingress_bytes: 4, ..limits() });
    let (near, mut far) = duplex(64);
    let mut near = MeteredStream::new(near, Arc::clone(&net));
    far.write_all(b"1234").await.unwrap();
    let mut got = [0; 4];
    near.read_exact(&mut got).await.unwrap();
    assert_eq!((net.ingress_bytes(), net.over()), (4, None));
    far.write_all(b"5").await.unwrap();
    assert!(near.read(&mut got).await.is_err());
    assert_eq!(net.over(), Some(OverDirection::Ingress));
}

#[tokio::test]
async fn counts_end_where_the_limits_say() {
    let net = CallNet::new(NetLimits { requests: 2, sockets: 1, lookups: 0, ..limits() });
    assert_eq!([net.request(), net.request(), net.request()], [true, true, false]);
    assert_eq!([net.socket(), net.socket()], [true, false]);
    assert!(!net.lookup());
}

#[tokio::test]
async fn a_call_that_ends_takes_its_tasks_and_waiting_turns_with_it() {
    let guard = NetGuard::new(NetLimits { concurrency: 1, ..limits() }, None);
    let net = Arc::clone(guard.net());
    let (told, gone) = tokio::sync::oneshot::channel::<()>();
    net.spawn(async move {
        let _told = told;
        std::future::pending::<()>().await;
    })
    .unwrap();
    let _turn = net.turn().await.unwrap();
    drop(guard);
    assert!(gone.await.is_err());
    assert!(net.turn().await.is_none());
    assert!(net.spawn(async {}).is_none());
    net.ended().await;
}
