//! Names that lead elsewhere: rebinding, private and metadata addresses, aliases, mixed answers,
//! and names that do not exist.
//!
//! Promise: a name grants only checked addresses.
//! Promise: no rebinding.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};
use toolcell_tests::TestHost;
use toolcell_tests::loopback::{HttpServer, NameServer, Named};

use super::{Denied, assert_denied, came_to, host};

const FIXTURE: &str = "reach_http";
const REFUSED: &str = "response: ErrorCode::HttpRequestDenied";

/// Another loopback address, which the manifest names. It stands for a public one.
const ALLOWED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A server at the allowed address, and one at 127.0.0.1 on the same port, which is not allowed.
fn servers() -> (HttpServer, HttpServer) {
    for _ in 0..100 {
        let allowed = HttpServer::at((ALLOWED, 0));
        let address = (Ipv4Addr::LOCALHOST, allowed.port());
        // Another program may use that port at that address.
        if std::net::TcpListener::bind(address).is_ok() {
            return (allowed, HttpServer::at(address));
        }
    }
    panic!("no port is free at both addresses");
}

fn serving(names: &NameServer, p: u16) -> TestHost {
    host(
        FIXTURE,
        &format!(
            "[server]\ndns = [\"{}\"]\n\n[{{c}}.network]\nhttp = [\"http://*.example:{p}\"]\nprivate = [\"{ALLOWED}:{p}\"]\n",
            names.address()
        ),
    )
}

fn get(host: &mut TestHost, name: &str, p: u16) -> Result<Value, String> {
    came_to(&host.call("http", json!({"url": format!("http://{name}:{p}/")}))).map(|found| found["status"].clone())
}

#[test]
fn what_was_resolved_and_checked_is_what_is_connected_to() {
    let (allowed, private) = servers();
    let p = allowed.port();
    let names = NameServer::answering(&[("rebinds.example", &[Named::at(&["127.0.0.2"]), Named::at(&["127.0.0.1"])])]);
    let mut host = serving(&names, p);
    assert_eq!(get(&mut host, "rebinds.example", p), Ok(json!(200)));
    assert_eq!((allowed.seen().len(), names.asked_for("rebinds.example")), (1, 1), "one look-up, one connection");
    // The name now leads elsewhere.
    let answer = host.call("http", json!({"url": format!("http://rebinds.example:{p}/")}));
    assert_eq!(came_to(&answer), Err(REFUSED.to_owned()));
    let asked = format!("GET http://rebinds.example:{p}/");
    let allow = format!("private = [\"127.0.0.1:{p}\"]");
    let because = "its address is not public, and no rule of tool \"http\" names it";
    let section = "components.reach_http.network";
    assert_denied(&host, &answer, &Denied { capability: "http", asked: &asked, because, section, allow: &allow });
    assert!(!answer.everything().contains("127.0.0.1"), "the guest and its model learn no address");
    assert_eq!(private.connections(), 0);
}

#[test]
fn a_name_that_changes_between_two_requests_of_a_call_leads_nowhere_private() {
    let (allowed, private) = servers();
    let p = allowed.port();
    let names = NameServer::answering(&[("rebinds.example", &[Named::at(&["127.0.0.2"]), Named::at(&["127.0.0.1"])])]);
    let mut host = serving(&names, p);
    let requests: Vec<Value> = (0..4).map(|_| json!({"url": format!("http://rebinds.example:{p}/")})).collect();
    let found = came_to(&host.call("http_each", json!({"requests": requests}))).unwrap();
    assert_eq!(found[0]["ok"]["status"], 200);
    assert_eq!(private.connections(), 0);
    assert_eq!(allowed.seen().len(), found.as_array().unwrap().iter().filter(|it| it["ok"]["status"] == 200).count());
}

#[test]
fn of_several_addresses_only_those_that_are_allowed_are_used() {
    let (allowed, private) = servers();
    let p = allowed.port();
    let names = NameServer::answering(&[
        ("private-first.example", &[Named::at(&["127.0.0.1", "10.0.0.1", "127.0.0.2"])]),
        ("private-last.example", &[Named::at(&["127.0.0.2", "127.0.0.1"])]),
        ("six-first.example", &[Named::at(&["::1", "127.0.0.2"])]),
        ("private-only.example", &[Named::at(&["127.0.0.1", "::1", "10.0.0.1"])]),
    ]);
    let mut host = serving(&names, p);
    for name in ["private-first.example", "private-last.example", "six-first.example"] {
        let found = get(&mut host, name, p);
        assert!(found == Ok(json!(200)) || found == Err(REFUSED.to_owned()), "{name}: {found:?}");
    }
    assert_eq!(get(&mut host, "private-only.example", p), Err(REFUSED.to_owned()));
    assert_eq!(private.connections(), 0);
}

#[test]
fn every_kind_of_address_that_is_not_public_is_refused() {
    let server = HttpServer::start();
    let p = server.port();
    let addresses = [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.127.255.254",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.0.1",
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
        "3fff::1",
        "5f00::1",
        "4000::1",
    ];
    let names: Vec<(String, [Named; 1])> = addresses
        .iter()
        .enumerate()
        .map(|(number, address)| (format!("a{number}.example"), [Named::at(&[address])]))
        .collect();
    let script: Vec<(&str, &[Named])> = names.iter().map(|(name, answers)| (name.as_str(), &answers[..])).collect();
    let names = NameServer::answering(&script);
    let mut host = serving(&names, p);
    for (number, address) in addresses.iter().enumerate() {
        let name = format!("a{number}.example");
        let answer = host.call("http", json!({"url": format!("http://{name}:{p}/")}));
        assert_eq!(came_to(&answer), Err(REFUSED.to_owned()), "{address}");
        let asked = format!("GET http://{name}:{p}/");
        let because = format!("denied: {asked} — its address is not public, and no rule of tool \"http\" names it");
        assert_eq!(answer.denials(), [because.as_str()], "{address}");
        let record =
            host.recorded(&asked, |record| record["event"] == "call.denied" && record["asked"] == asked.as_str());
        let parsed: IpAddr = address.parse().unwrap();
        let allow = record["allow"].as_str().unwrap();
        assert!(allow.is_empty() || allow.contains(&parsed.to_string()), "{address}: {record}");
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn an_alias_to_a_private_name_is_refused() {
    let (allowed, private) = servers();
    let p = allowed.port();
    let names = NameServer::answering(&[
        ("alias.example", &[Named::Alias("inner.example".to_owned())]),
        ("inner.example", &[Named::at(&["127.0.0.1"])]),
        ("metadata.example", &[Named::Alias("far.elsewhere".to_owned())]),
        ("far.elsewhere", &[Named::at(&["169.254.169.254"])]),
        ("good-alias.example", &[Named::Alias("target.elsewhere".to_owned())]),
        ("target.elsewhere", &[Named::at(&["127.0.0.2"])]),
    ]);
    let mut host = serving(&names, p);
    for name in ["alias.example", "metadata.example"] {
        assert_eq!(get(&mut host, name, p), Err(REFUSED.to_owned()), "{name}");
    }
    assert_eq!(get(&mut host, "good-alias.example", p), Ok(json!(200)));
    assert_eq!(allowed.only_seen().values("host"), [format!("good-alias.example:{p}")]);
    assert_eq!(private.connections(), 0);
}

#[test]
fn a_name_with_very_many_addresses_does_no_harm() {
    let (allowed, private) = servers();
    let p = allowed.port();
    let many: Vec<String> = (0..30).map(|number| format!("10.0.1.{number}")).chain(["127.0.0.2".to_owned()]).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let names = NameServer::answering(&[("many.example", &[Named::at(&many)])]);
    let mut host = serving(&names, p);
    let found = get(&mut host, "many.example", p);
    assert!(found == Ok(json!(200)) || found == Err(REFUSED.to_owned()), "{found:?}");
    assert_eq!(private.connections(), 0);
    host.still_works();
}

#[test]
fn names_that_are_not_there_are_errors_of_their_own() {
    let names = NameServer::answering(&[("fails.example", &[Named::Failing]), ("empty.example", &[Named::at(&[])])]);
    let mut host = serving(&names, 8080);
    for (name, code) in [("missing.example", "NXDOMAIN"), ("empty.example", "NODATA"), ("fails.example", "SERVFAIL")] {
        let found = get(&mut host, name, 8080).unwrap_err();
        assert!(found.contains("DnsError") && found.contains(code), "{name}: {found}");
    }
    assert!(!host.audit().iter().any(|record| record["event"] == "call.denied"), "nothing was denied");
}

#[test]
fn the_name_servers_of_the_manifest_are_asked_and_no_others() {
    let (allowed, _private) = servers();
    let p = allowed.port();
    let names = NameServer::answering(&[("localhost.example", &[Named::at(&["127.0.0.2"])])]);
    let mut host = serving(&names, p);
    assert_eq!(get(&mut host, "localhost.example", p), Ok(json!(200)));
    assert!(names.asked().iter().all(|name| name == "localhost.example"), "{:?}", names.asked());
}
