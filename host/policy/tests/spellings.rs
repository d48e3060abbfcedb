//! One table of spellings of hosts, through each place where the manifest names a server: rules,
//! registries, trust, hosts and origins, issuers, messages and the shared state. A spelling is the
//! same as its normal form, or is refused. It never stands for a server of its own.
//!
//! Promise: a server's name has one form.

use std::net::IpAddr;

use toolcell_policy::{Host, HostPattern, HostPort, HttpAsk, Manifest, Reference, Source, parse};

/// Spellings, and the host that each is.
const SPELLINGS: [(&str, &str); 22] = [
    ("127.0.0.1", "127.0.0.1"),
    ("0x7f000001", "127.0.0.1"),
    ("0X7F.0.0.1", "127.0.0.1"),
    ("0x7f.1", "127.0.0.1"),
    ("0177.0.0.1", "127.0.0.1"),
    ("017700000001", "127.0.0.1"),
    ("2130706433", "127.0.0.1"),
    ("127.1", "127.0.0.1"),
    ("127.0.0.1.", "127.0.0.1"),
    ("127.0.0.0x1", "127.0.0.1"),
    ("%31%32%37.0.0.1", "127.0.0.1"),
    ("１２７.0.0.1", "127.0.0.1"),
    ("[::ffff:127.0.0.1]", "127.0.0.1"),
    ("[::FFFF:7f00:1]", "127.0.0.1"),
    ("[0:0:0:0:0:0:0:1]", "[::1]"),
    ("tools.example.com", "tools.example.com"),
    ("TOOLS.Example.com", "tools.example.com"),
    ("tools.example.com.", "tools.example.com"),
    ("tools%2eexample.com", "tools.example.com"),
    ("tools。example.com", "tools.example.com"),
    ("bücher.example", "xn--bcher-kva.example"),
    ("BÜCHER.example", "xn--bcher-kva.example"),
];

/// Texts that are not a host, wherever one stands.
const NOT_HOSTS: [&str; 6] = ["user@tools.example.com", "tools..example.com", "", "[::1", "tools example.com", "a/b"];

const COMPONENT: &str = "\n[components.a]\nsource = \"a.wasm\"\n";

fn manifest(text: &str) -> Option<Manifest> {
    let text = format!("version = 1\n{text}{COMPONENT}");
    parse(&Source { name: "toolcell.toml", text: &text }).ok().map(|parsed| parsed.manifest)
}

#[test]
fn a_host_is_its_normal_form_and_so_is_one_with_a_port() {
    for (spelling, normal) in SPELLINGS {
        assert_eq!(HostPort::parse(spelling).unwrap().to_string(), normal, "{spelling}");
        assert_eq!(HostPort::parse(&format!("{spelling}:9715")).unwrap().to_string(), format!("{normal}:9715"));
        let canonical = match Host::parse(spelling).unwrap() {
            Host::Addr(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => continue,
            host => host,
        };
        assert_eq!(canonical, Host::parse(normal).unwrap(), "{spelling}");
    }
    for text in NOT_HOSTS {
        assert_eq!(HostPort::parse(text), None, "{text}");
    }
}

#[test]
fn a_rule_for_a_host_is_one_for_each_of_its_spellings() {
    for (spelling, normal) in SPELLINGS {
        let Host::Name(_) = Host::parse(normal).unwrap() else { continue };
        let rule = HostPattern::parse(normal).unwrap();
        assert!(rule.matches(&Host::parse(spelling).unwrap()), "{spelling}");
        let ask = HttpAsk::new("GET", "https", spelling, "/").unwrap();
        assert!(rule.matches(ask.host()), "{spelling}");
    }
}

#[test]
fn no_spelling_of_a_registry_gets_past_its_rule_of_trust_or_its_settings() {
    let mut refused = 0;
    for (spelling, normal) in SPELLINGS {
        let trust = format!("[trust.\"{normal}:9715/\"]\nsigned_by = [{{ key = \"acme.pub\" }}]\n");
        let trusted = manifest(&trust).unwrap();
        match Reference::parse(&format!("oci://{spelling}:9715/acme/tool")) {
            Ok(reference) => {
                assert_eq!(spelling, normal);
                assert!(trusted.trust_of(&reference).is_some(), "{spelling}");
            }
            Err(_) => refused += 1,
        }
        // Nor may a rule or a table be for a spelling that no reference has.
        let of_spelling = trust.replace(&format!("{normal}:"), &format!("{spelling}:"));
        assert_eq!(manifest(&of_spelling).is_some(), spelling == normal, "{spelling}");
        let table = format!("[registries.\"{spelling}:9715\"]\nprivate = true\n");
        assert_eq!(manifest(&table).is_some(), spelling == normal, "{spelling}");
    }
    assert_eq!(refused, SPELLINGS.len() - 2);
    for text in NOT_HOSTS {
        assert!(Reference::parse(&format!("oci://{text}:9715/acme/tool")).is_err(), "{text}");
    }
}

#[test]
fn names_of_the_server_and_origins_of_pages_are_their_normal_forms() {
    for (spelling, normal) in SPELLINGS {
        let read =
            manifest(&format!("[http]\nhosts = [\"{spelling}:8443\"]\norigins = [\"HTTPS://{spelling}:443\"]\n"));
        let read = read.unwrap_or_else(|| panic!("{spelling}"));
        let http = read.http().unwrap();
        assert_eq!(http.hosts(), [format!("{normal}:8443")], "{spelling}");
        assert_eq!(http.origins(), [format!("https://{normal}")], "{spelling}");
        let read = manifest(&format!("[metrics]\nhosts = [\"{spelling}\"]\n")).unwrap();
        assert_eq!(read.metrics().unwrap().hosts(), [normal.to_owned()], "{spelling}");
    }
    for text in NOT_HOSTS {
        assert!(manifest(&format!("[http]\nhosts = [\"{text}\"]\n")).is_none(), "{text}");
        assert!(manifest(&format!("[http]\norigins = [\"https://{text}\"]\n")).is_none(), "{text}");
    }
}

#[test]
fn messages_and_traces_go_to_the_normal_form_and_plain_http_is_for_this_machine_alone() {
    for (spelling, normal) in SPELLINGS {
        let is_here = matches!(normal, "127.0.0.1" | "[::1]");
        for (scheme, is_taken) in [("https", true), ("http", is_here)] {
            let alerts =
                format!("[alerts]\nurl = \"{scheme}://{spelling}:1/x\"\nsecret = \"env:KEY\"\nprivate = true\n");
            let url = manifest(&alerts).and_then(|read| read.alerts().unwrap().url().map(str::to_owned));
            assert_eq!(url, is_taken.then(|| format!("{scheme}://{normal}:1/x")), "{spelling}");
        }
        let traces = manifest(&format!("[traces]\nendpoint = \"http://{spelling}:1/x\"\n")).unwrap();
        assert_eq!(traces.traces().unwrap().endpoint(), format!("http://{normal}:1/x"), "{spelling}");
        let state = format!("[server]\nstate_key = \"env:KEY\"\n[state]\nshared = \"rediss://{spelling}:1\"\n");
        let state = manifest(&state).unwrap();
        let host = normal.trim_matches(['[', ']']);
        assert_eq!(state.state().unwrap().places(), [(host, 1)], "{spelling}");
    }
}

#[test]
fn an_issuer_over_plain_http_is_this_machine_however_it_is_written() {
    for (spelling, normal) in SPELLINGS.iter().filter(|(spelling, _)| spelling.is_ascii()) {
        let issuer = format!(
            "[http]\nlisten = \"127.0.0.1:1\"\n[http.oauth]\nresource = \"https://tools.example.com/mcp\"\n\
             [http.oauth.issuers.corp]\nissuer = \"http://{spelling}:1\"\n"
        );
        let is_here = matches!(*normal, "127.0.0.1" | "[::1]") && !spelling.to_lowercase().starts_with("[::ffff");
        assert_eq!(manifest(&issuer).is_some(), is_here, "{spelling}");
    }
}
