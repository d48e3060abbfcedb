//! A hostile guest spells private addresses in every possible form. No form reaches anything that
//! the plain one does not reach.
//!
//! Promise: a request goes where its rule says.

use serde_json::{Value, json};
use toolcell_tests::TestHost;
use toolcell_tests::loopback::{HttpServer, NameServer, Named};

use super::{came_to, host};

const FIXTURE: &str = "address_forms";

/// Number of forms that the guest tries at least.
const FORMS_MIN: usize = 80;

fn serving(rules: &str, private: &str) -> (HttpServer, NameServer, TestHost) {
    let server = HttpServer::start();
    let names = NameServer::answering(&[("allowed.example", &[Named::at(&["127.0.0.1"])])]);
    let p = server.port().to_string();
    let tables = format!(
        "[server]\ndns = [\"{}\"]\n\n[{{c}}.network]\nhttp = [{}]\nprivate = [{}]\n\n[{{c}}.limits]\nhttp_requests = 1_000\n",
        names.address(),
        rules.replace("{p}", &p),
        private.replace("{p}", &p),
    );
    let host = host(FIXTURE, &tables);
    (server, names, host)
}

fn tried(host: &mut TestHost, port: u16) -> Vec<(String, Value)> {
    let found = came_to(&host.call("address_forms", json!({"port": port, "allowed": "allowed.example"}))).unwrap();
    let found: Vec<(String, Value)> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["form"].as_str().unwrap().to_owned(), row["came_to"].clone()))
        .collect();
    assert!(found.len() >= FORMS_MIN, "{}", found.len());
    found
}

#[test]
fn no_form_of_an_address_gets_by_a_rule_for_a_name() {
    let (server, _names, mut host) = serving("\"http://allowed.example:{p}\"", "");
    for (form, came_to) in tried(&mut host, server.port()) {
        assert!(came_to["error"].is_string(), "{form:?}: {came_to}");
    }
    assert_eq!(server.connections(), 0);
    host.still_works();
}

#[test]
fn no_form_of_an_address_gets_by_the_public_alone() {
    // Every name and every address on this port, if the address is public.
    let (server, _names, mut host) = serving("\"http://*:{p}\"", "");
    for (form, came_to) in tried(&mut host, server.port()) {
        assert!(came_to["error"].is_string(), "{form:?}: {came_to}");
    }
    assert_eq!(server.connections(), 0);
    host.still_works();
}

#[test]
fn forms_of_one_address_are_that_address_and_nothing_else() {
    let (server, _names, mut host) = serving("\"http://127.0.0.1:{p}\"", "\"127.0.0.1:{p}\"");
    let port = server.port();
    let reached: Vec<String> = tried(&mut host, port)
        .into_iter()
        .filter(|(_, came_to)| came_to["ok"]["status"] == 200)
        .map(|(form, _)| form)
        .collect();
    assert!(reached.contains(&format!("127.0.0.1:{port}")), "the plain form is allowed: {reached:?}");
    for form in &reached {
        for never in [
            "@",
            "#",
            "?",
            "/",
            "\\",
            " ",
            "::",
            "[",
            "localhost",
            "allowed",
            "169",
            "127.255",
            "10.0",
            "0xa9",
            "257",
            "4294967297",
        ] {
            assert!(!form.replace(&port.to_string(), "").contains(never), "{form:?} reached the server");
        }
    }
    // Every request reached the server in the form that the policy decided on.
    for seen in server.seen() {
        assert_eq!(seen.values("host"), [format!("127.0.0.1:{port}")], "{}", seen.head);
        assert_eq!(seen.target(), "/form", "{}", seen.head);
    }
    assert_eq!(server.seen().len(), reached.len());
}

#[test]
fn no_form_is_looked_up_that_no_rule_names() {
    let (_server, names, mut host) = serving("\"http://allowed.example:{p}\"", "");
    let found = came_to(&host.call("name_forms", json!({}))).unwrap();
    for row in found.as_array().unwrap() {
        assert!(row["came_to"]["error"].is_string(), "{row}");
    }
    assert_eq!(names.asked(), [""; 0]);
}
