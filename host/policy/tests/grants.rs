//! Decisions of grants, their narrowing by tools, and the truth of the words about them: a denial's
//! hint allows what was denied, a suggestion allows what was tried.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use toolcell_policy::edit::ManifestEdit;
use toolcell_policy::{
    Access, Ask, Attempt, Capability, Denial, EnvSource, FileAccess, Grants, HttpAsk, Manifest, MountKind, Quota,
    Reason, Resolved, Source, Style, parse, parse_expectations, render_all, suggest,
};

const TEXT: &str = "version = 1
[components.weather]
source = 'weather.wasm'
prefix = 'wx_'
args = ['--fast']
stdin = 'text'
[components.weather.filesystem]
'/data' = { path = 'data' }
'/data/out' = { path = 'out', access = 'write', quota = '10MiB', files = 5 }
'/conf.toml' = { path = 'conf.toml' }
'/tmp' = { scratch = '8MiB' }
[components.weather.network]
http = ['GET https://api.example.com/v1/*', 'http://127.0.0.1:8080', 'https://*.example.org']
tcp = ['db.example.com:5432', '10.0.0.0/8:5432']
private = ['127.0.0.1:8080', '10.0.0.0/16']
[components.weather.env]
UNITS = 'metric'
CITY = { from = 'env:HOME_CITY' }
[components.weather.config]
theme = 'dark'
[components.weather.keyvalue]
[components.weather.secrets]
KEY = { from = 'env:KEY', header = 'Authorization', value = 'Bearer {}', for = 'GET https://api.example.com' }
PART = { from = 'file:part', query = 'k', for = 'https://*.example.org/v2/*' }
TOKEN = { from = 'keyring:a/b/c', expose = true }
[components.weather.tools.now]
filesystem = { '/data/out' = { access = 'read' } }
network = { http = ['GET https://api.example.com/v1/now'] }
env = ['UNITS']
config = []
secrets = ['KEY']
keyvalue = false
[components.weather.tools.nothing]
filesystem = {}
network = {}
[components.sealed]
source = 'sealed.wasm'
";

fn manifest(text: &str) -> Manifest {
    let source = Source { name: "m.toml", text };
    parse(&source).map_err(|problems| panic!("{}", render_all(&source, &problems, Style::Plain))).unwrap().manifest
}

fn grants(tool: &str) -> Arc<Grants> {
    manifest(TEXT).component("weather").unwrap().tool_grants(tool)
}

fn allowed(grants: &Grants, ask: &str) -> bool {
    grants.explain(&Ask::parse(ask).unwrap()).is_allowed()
}

#[test]
fn a_component_without_grants_reaches_nothing() {
    let manifest = manifest(TEXT);
    let sealed = manifest.component("sealed").unwrap();
    assert!(sealed.grants().is_sealed() && sealed.tool_grants("t").is_sealed());
    assert_eq!(sealed.grants().as_ref(), &Grants::sealed("sealed", None));
    assert_eq!(sealed.tool_grants("t").as_ref(), &Grants::sealed("sealed", Some("t")));
    assert_eq!(sealed.grants().reach(), []);
    for ask in [
        "GET https://a.example",
        "read /",
        "write /x",
        "tcp 8.8.8.8:1",
        "udp a.example:1",
        "lookup a.example",
        "env A",
        "config A",
        "keyvalue",
        "secret A",
    ] {
        assert!(!allowed(sealed.grants(), ask), "{ask}");
    }
}

#[test]
fn each_kind_of_grant_allows_what_it_says_and_no_more() {
    let component = grants("forecast");
    let now = grants("now");
    let nothing = grants("nothing");
    for (ask, in_component, in_now, in_nothing) in [
        ("read /data", true, false, false),
        ("read /data/a/b", true, false, false),
        ("read /data/out", true, true, false),
        ("read /data/../etc/passwd", false, false, false),
        ("write /data/a", false, false, false),
        ("create /data/a", false, false, false),
        ("write /data/out/a", true, false, false),
        ("remove /data/out/a", true, false, false),
        ("read /database", false, false, false),
        ("write /data/output", false, false, false),
        ("read /conf.toml", true, false, false),
        ("write /conf.toml", false, false, false),
        ("create /tmp/x", true, false, false),
        ("read /", false, false, false),
        ("GET https://api.example.com/v1/now", true, true, false),
        ("GET https://api.example.com/v1/then", true, false, false),
        ("GET https://api.example.com/v2", false, false, false),
        ("POST https://api.example.com/v1/now", false, false, false),
        ("POST https://x.example.org/y", true, false, false),
        ("GET http://127.0.0.1:8080/x", true, false, false),
        ("GET http://127.0.0.1:8081/x", false, false, false),
        ("tcp db.example.com:5432", true, false, false),
        ("tcp db.example.com:5433", false, false, false),
        ("tcp 10.0.1.1:5432", true, false, false),
        ("tcp 10.1.1.1:5432", false, false, false),
        ("udp db.example.com:5432", false, false, false),
        ("lookup db.example.com", true, false, false),
        ("lookup api.example.com", false, false, false),
        ("env UNITS", true, true, true),
        ("env CITY", true, false, true),
        ("env TOKEN", true, false, true),
        ("env PATH", false, false, false),
        ("config theme", true, false, true),
        ("config TOKEN", true, false, true),
        ("keyvalue", true, false, true),
        ("secret KEY", true, true, true),
        ("secret PART", true, false, true),
        ("secret OTHER", false, false, false),
    ] {
        assert_eq!(allowed(&component, ask), in_component, "{ask} of the component");
        assert_eq!(allowed(&now, ask), in_now, "{ask} of now");
        assert_eq!(allowed(&nothing, ask), in_nothing, "{ask} of nothing");
    }
}

#[test]
fn a_path_that_is_not_resolved_belongs_to_no_mount() {
    let grants = grants("t");
    for (path, allowed) in [("/data/a", true), ("/data/..", false), ("/data/../etc/passwd", false), ("/data/..a", true)]
    {
        assert_eq!(grants.file(FileAccess::Read, path).is_ok(), allowed, "{path}");
    }
}

#[test]
fn getters_give_what_the_manifest_says() {
    let grants = grants("t");
    let mounts: Vec<_> = grants.files().iter().map(|mount| (mount.guest(), mount.access())).collect();
    assert_eq!(
        mounts,
        [("/conf.toml", Access::Read), ("/data/out", Access::Write), ("/data", Access::Read), ("/tmp", Access::Write)]
    );
    let out = MountKind::Host {
        path: "out".to_owned(),
        access: Access::Write,
        create: false,
        quota: Some(Quota { bytes: 10 << 20, files: 5 }),
    };
    assert_eq!(grants.files()[1].kind(), &out);
    assert_eq!(grants.files()[2].quota(), None);
    assert_eq!(grants.files()[3].kind(), &MountKind::Scratch { quota: Quota { bytes: 8 << 20, files: 1_000 } });
    assert_eq!((grants.args(), grants.stdin()), (&["--fast".to_owned()][..], Some("text")));
    assert_eq!(grants.env()[1].source(), &EnvSource::Host("HOME_CITY".to_owned()));
    let state = grants.keyvalue().unwrap();
    assert_eq!(
        (state.quota_bytes(), state.entries(), state.value_bytes(), state.per_caller()),
        (1 << 20, 1_000, 256 << 10, false)
    );
    assert_eq!(grants.secrets()[2].source().to_string(), "keyring:a/b/c");
    assert_eq!((grants.subject().component(), grants.subject().tool()), ("weather", Some("t")));
}

#[test]
fn a_tool_without_lines_has_its_components_grants_under_its_own_name() {
    let manifest = manifest(TEXT);
    let weather = manifest.component("weather").unwrap();
    let tool = weather.tool_grants("forecast");
    assert_eq!(tool.reach(), weather.grants().reach());
    assert_eq!(weather.grants().subject().tool(), None);
    let denial = tool.network().http_request("GET", "https", "x.example", "/?secret=1").unwrap_err();
    assert_eq!(denial.to_string(), "denied: GET https://x.example/ — no rule of tool \"forecast\" allows it");
    let denial = weather.grants().network().http_request("GET", "https", "x.example", "/").unwrap_err();
    assert_eq!(denial.to_string(), "denied: GET https://x.example/ — no rule of component \"weather\" allows it");
}

#[test]
fn secrets_go_to_the_requests_they_are_for() {
    let grants = grants("t");
    let carried = |method: &str, authority: &str, target: &str| {
        let ask = HttpAsk::new(method, "https", authority, target).unwrap();
        let matching = grants.secrets().iter().filter(|secret| secret.matches(&ask));
        matching.map(|secret| secret.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(carried("GET", "api.example.com", "/v1/now"), ["KEY"]);
    assert_eq!(carried("POST", "api.example.com", "/v1/now"), Vec::<String>::new());
    assert_eq!(carried("GET", "evil.example.com", "/v1/now"), Vec::<String>::new());
    assert_eq!(carried("GET", "a.example.org", "/v2/x"), ["PART"]);
    assert_eq!(carried("GET", "a.example.org", "/v2/../v1"), Vec::<String>::new());
    assert_eq!(carried("GET", "a.example.org", "/v2/..%2fv1"), Vec::<String>::new());
}

#[test]
fn denials_say_nothing_that_the_guest_did_not_name() {
    let grants = grants("now");
    let network = grants.network();
    let permit = network.http_request("GET", "https", "api.example.com", "/v1/now").unwrap();
    let private = permit.check_address("10.9.8.7".parse().unwrap()).unwrap_err();
    let read_only = grants.file(FileAccess::Write, "/data/out/a").unwrap_err();
    let malformed = network.http_request("GET", "https", "user:pw@a.example", "/x?key=s3cr3t").unwrap_err();
    let listens = network.never_listens(Capability::Tcp, "listen", "0.0.0.0:80".parse().unwrap());
    let ambiguous = network.http_request("GET", "https", "api.example.com", "/v1/%2e%2e%2fx").unwrap_err();
    for (denial, shown, hint) in [
        (
            &private,
            "denied: GET https://api.example.com/v1/now — its address is not public, and no rule of tool \"now\" names it",
            Some("add to [components.weather.network]: private = [\"10.9.8.7:443\"]"),
        ),
        (
            &read_only,
            "denied: write /data/out/a — tool \"now\" may read there, not write",
            Some("add to [components.weather.tools.now.filesystem]: \"/data/out\" = { access = \"write\" }"),
        ),
        (&malformed, "denied: GET https://a.example/x — its address must not name a user", None),
        (&listens, "denied: tcp listen 0.0.0.0:80 — tools never bind or listen", None),
        (
            &ambiguous,
            "denied: GET https://api.example.com/v1/..%2Fx — its path can be read in two ways, and no rule of tool \"now\" \
             allows both",
            None,
        ),
    ] {
        assert_eq!((denial.to_string().as_str(), denial.hint().as_deref()), (shown, hint));
    }
    assert_eq!(read_only.reason(), &Reason::ReadOnly);
    assert!(std::mem::size_of::<Denial>() <= 8);
    let long = network.lookup(&"a".repeat(100_000)).unwrap_err();
    assert!(long.asked().len() <= 512 && !long.to_string().contains('\n'));
    let odd = network.lookup("a\u{1b}[31m\u{202e}").unwrap_err();
    assert!(odd.asked().is_ascii(), "{odd}");
}

/// Adds lines to tables of a manifest, as a person would: a key that is there gets its new value
/// as well.
fn with_lines(text: &str, denial: &Denial) -> String {
    let mut text = text.to_owned();
    for allow in denial.allows() {
        let header = format!("[{}]\n", allow.section());
        let (key, value) = allow.line().split_once(" = ").unwrap();
        let start = match text.find(&header) {
            Some(at) => at + header.len(),
            None => {
                text.push_str(&header);
                text.len()
            }
        };
        let end = text[start..].find("\n[").map_or(text.len(), |end| start + end + 1);
        let there = text[start..end].lines().find(|line| line.starts_with(&format!("{key} = ["))).map(str::to_owned);
        match (there, value.strip_prefix('[').and_then(|value| value.strip_suffix(']'))) {
            (Some(line), Some(value)) => {
                let longer = format!("{}, {value}]", line.strip_suffix(']').unwrap());
                text = format!("{}{}{}", &text[..start], text[start..end].replace(&line, &longer), &text[end..]);
            }
            _ => text.insert_str(start, &format!("{}\n", allow.line())),
        }
    }
    text
}

#[test]
fn the_line_that_a_denial_names_allows_what_was_denied() {
    let asks = [
        "GET https://x.example/",
        "POST https://x.example:8443/a/b",
        "ODD https://x.example/a",
        "GET https://api.example.com/v2/é",
        "read /other/file",
        "create /other/file",
        "tcp other.example:22",
        "tcp 8.8.8.8:53",
        "udp [2606:4700::1111]:53",
        "env OTHER",
        "config other",
        "secret OTHER",
        "keyvalue",
    ];
    let text = "version = 1\n[components.weather]\nsource = 'weather.wasm'\n[components.weather.network]\nhttp = ['GET \
                https://api.example.com/v1/*']\ntcp = ['1.1.1.1:53']\n";
    for ask in asks {
        let question = Ask::parse(ask).unwrap();
        let before = manifest(text).component("weather").unwrap().tool_grants("t").explain(&question);
        let after = manifest(&with_lines(text, before.denial().unwrap()));
        let explanation = after.component("weather").unwrap().tool_grants("t").explain(&question);
        assert!(
            explanation.is_allowed(),
            "{ask}: {:?}\n{}",
            before.denial().unwrap().hint(),
            explanation.render(&Source { name: "m", text })
        );
    }
}

#[test]
fn the_lines_that_a_narrowed_tool_lacks_are_named_for_tool_and_component() {
    let text = "version = 1\n[components.a]\nsource = 'a.wasm'\n[components.a.network]\nhttp = ['https://a.example']\ntcp = \
                ['a.example:1-9']\n[components.a.tools.t.network]\nhttp = ['GET https://a.example/x']\n";
    for (ask, tables) in [
        ("POST https://a.example/y", vec!["components.a.tools.t.network"]),
        ("POST https://b.example/y", vec!["components.a.network", "components.a.tools.t.network"]),
        ("tcp a.example:5", vec!["components.a.tools.t.network"]),
        ("tcp b.example:5", vec!["components.a.network", "components.a.tools.t.network"]),
    ] {
        let question = Ask::parse(ask).unwrap();
        let denied = manifest(text).component("a").unwrap().tool_grants("t").explain(&question);
        let denial = denied.denial().unwrap();
        assert_eq!(denial.allows().iter().map(|allow| allow.section()).collect::<Vec<_>>(), tables, "{ask}");
        let after = manifest(&with_lines(text, denial));
        assert!(after.component("a").unwrap().tool_grants("t").explain(&question).is_allowed(), "{ask}");
    }
}

#[test]
fn an_address_that_is_not_public_is_allowed_by_both_of_its_lines() {
    let text =
        "version = 1\n[components.a]\nsource = 'a.wasm'\n[components.a.network]\nhttp = ['http://a.example:8080']\n";
    let grants = manifest(text).component("a").unwrap().tool_grants("t");
    let address = "127.0.0.1".parse().unwrap();
    let permit = grants.network().http_request("GET", "http", "a.example:8080", "/").unwrap();
    let denial = permit.check_address(address).unwrap_err();
    let after = manifest(&with_lines(text, &denial)).component("a").unwrap().tool_grants("t");
    let permit = after.network().http_request("GET", "http", "a.example:8080", "/").unwrap();
    assert_eq!(permit.check_address(address).unwrap().address(), "127.0.0.1:8080".parse().unwrap());
    assert!(after.network().tcp("127.0.0.1:8080".parse().unwrap(), &Resolved::default()).is_err());
}

#[test]
fn a_suggestion_allows_what_was_tried_and_is_short() {
    let asks = [
        "GET https://api.example.com/v1/now",
        "HEAD https://api.example.com/v1/now",
        "POST https://api.example.com/v1/then",
        "GET https://a.example/z",
        "ODD https://b.example/z",
        "GET http://127.0.0.1:8080/health",
        "read /data/a.txt",
        "read /data/sub/b.txt",
        "create /out/c.txt",
        "read /top",
        "tcp db.example.com:5432",
        "lookup db.example.com",
        "lookup lonely.example",
        "udp 10.0.0.1:53",
        "env A",
        "env ODD.NAME",
        "config theme",
        "keyvalue",
        "tcp listen 0.0.0.0:80",
    ];
    let mut attempts: Vec<Attempt> = asks.iter().map(|ask| Attempt::new("weather", ask, None)).collect();
    attempts
        .extend((0..20).map(|number| Attempt::new("weather", &format!("GET https://many.example/d/{number}/x"), None)));
    attempts.push(Attempt::new("weather", "GET https://inside.example/", Some("private = [\"10.2.3.4:443\"]")));
    attempts.push(Attempt::new("not a name", "keyvalue", None));
    let suggestion = suggest(&attempts);
    assert_eq!(
        suggestion,
        r#"[components.weather.filesystem]
"/data" = { path = "data", access = "read" }
"/out" = { path = "out", access = "write", create = true }
"/top" = { path = "top", access = "read" }

[components.weather.network]
# lonely.example was looked up: a rule for it and its port allows that
http = [
    "GET http://127.0.0.1:8080/health",
    "GET https://a.example/z",
    "GET,HEAD https://api.example.com/v1/now",
    "POST https://api.example.com/v1/then",
    "https://b.example/z",
    "GET https://inside.example/",
    "GET https://many.example/d/*",
]
tcp = ["db.example.com:5432"]
udp = ["10.0.0.1:53"]
private = [
    "10.0.0.1:53",
    "10.2.3.4:443",
    "127.0.0.1:8080",
]

[components.weather.env]
A = { from = "env:A" }
"ODD.NAME" = { from = "env:ODD.NAME" }

[components.weather.config]
theme = "VALUE"

[components.weather.keyvalue]
quota = "1MiB"
# weather: nothing allows tcp listen 0.0.0.0:80
"#
    );
    let manifest = manifest(&format!("version = 1\n[components.weather]\nsource = 'weather.wasm'\n{suggestion}"));
    let grants = manifest.component("weather").unwrap().tool_grants("t");
    for ask in asks.iter().filter(|ask| !ask.contains("lonely") && !ask.contains("listen")) {
        assert!(allowed(&grants, ask), "{ask}");
    }
    assert_eq!(suggest(&[]), "");
    let told = |asked: &str, allow: Option<&str>| suggest(&[Attempt::new("a", asked, allow)]);
    for (asked, allow) in [
        ("GET http://169.254.169.254/latest/meta-data/", Some("private = [\"169.254.169.254:80\"]")),
        ("GET http://0xa9fea9fe/latest", None),
        ("GET http://[::ffff:169.254.169.254]/", None),
        ("GET http://metadata.example/", Some("private = [\"169.254.169.254:80\"]")),
        ("tcp [fd00:ec2::254]:80", None),
        ("tcp 169.254.1.1:80", None),
        ("udp [fe80::1]:53", None),
    ] {
        let text = told(asked, allow);
        assert!(text.starts_with("# a: nothing allows ") && text.lines().count() == 1, "{asked}: {text}");
        assert!(text.contains("write a rule by hand if that is meant"), "{asked}: {text}");
    }
    assert!(told("tcp 10.0.0.1:80", None).contains("private = [\"10.0.0.1:80\"]"));
}

#[test]
fn what_a_guest_names_never_becomes_a_pattern() {
    let text = "version = 1\n[components.a]\nsource = 'a.wasm'\n";
    let grants = manifest(text).component("a").unwrap().tool_grants("t");
    let long = format!("GET https://x.example/{}", "a".repeat(3_000));
    for (asked, why) in [
        ("GET https://x.example/v1/*", " alone, as a star in a rule is a pattern"),
        ("GET http://127.0.0.1:8080/v1/*", " alone, as a star in a rule is a pattern"),
        ("GET https://x.example/v1/day-*.json", " alone, as a star in a rule is a pattern"),
        ("GET https://x.example/v1/..%2Fv2", " alone, as its path can be read in two ways"),
        (&long, " alone, as no rule can name its path"),
        ("call *", " alone, as no tool can have this name"),
        ("call weather_*", " alone, as no tool can have this name"),
        ("call a\"]\nb", " alone, as no tool can have this name"),
        ("call {x", ""),
    ] {
        let suggestion = suggest(&[Attempt::new("a", asked, None)]);
        let shown = asked.replace('\n', "\\u{a}");
        assert_eq!(suggestion, format!("# a: nothing allows {shown}{why}\n"));
        if let Ok(ask) = Ask::parse(asked) {
            let explanation = grants.explain(&ask);
            assert_eq!(explanation.denial().unwrap().allows(), [], "{asked}");
        }
    }
    assert_eq!(suggest(&[Attempt::new("a", "call weather_now", None)]), "[components.a]\ncalls = [\"weather_now\"]\n");
}

#[test]
fn an_explanation_says_that_no_rule_can_name_a_method_or_a_path() {
    let text = "version = 1\n[components.a]\nsource = 'a.wasm'\nnetwork = { http = ['https://a.example/x'] }\n";
    let grants = manifest(text).component("a").unwrap().tool_grants("t");
    let notes = |asked: &str| grants.explain(&Ask::parse(asked).unwrap()).notes().join("; ");
    assert!(!notes("GET https://a.example/x").contains("no rule"));
    let method = "no rule can name the method \"BREW\": a rule without methods allows it";
    assert!(notes("BREW https://a.example/x").contains(method));
    let slip = Ask::of_person("GETT https://a.example/x").unwrap_err();
    assert_eq!((slip.to_string().as_str(), slip.hint()), ("unknown method \"GETT\"", "did you mean GET?"));
    let path = "no rule can be for this request alone, as a star in a rule is a pattern";
    assert_eq!(notes("GET https://a.example/*"), path);
}

#[test]
fn a_suggestion_for_a_mount_that_only_reads_keeps_its_folder() {
    for (guest, asked) in [("/data", "write /data/sub/a.txt"), ("/", "create /a.txt")] {
        let mount = format!("{guest:?} = {{ path = \"else/where\" }}\n");
        let text = format!("version = 1\n[components.a]\nsource = 'a.wasm'\n[components.a.filesystem]\n{mount}");
        let denied = manifest(&text).component("a").unwrap().tool_grants("t").explain(&Ask::parse(asked).unwrap());
        let attempts = [Attempt::of(denied.denial().unwrap()), Attempt::new("a", "read /other/x", None)];
        let suggestion = suggest(&attempts);
        let line = format!("{guest:?} = {{ path = \"else/where\", access = \"write\" }}");
        assert!(suggestion.lines().any(|suggested| suggested == line), "{suggestion}");
        let mut edit = ManifestEdit::of(&text).unwrap();
        edit.merge(&suggestion).unwrap();
        assert!(allowed(&manifest(&edit.text()).component("a").unwrap().tool_grants("t"), asked), "{suggestion}");
    }
}

#[test]
fn questions_are_read_or_refused_with_a_hint() {
    for (text, message, hint) in [
        ("", "the question is empty", "write \"GET https://…\""),
        ("https://a.example", "the request has no method", "write \"GET https://a.example\""),
        ("get https://a.example", "unknown method \"get\"", "did you mean \"GET https://a.example\"?"),
        ("GET ftp://a.example", "the request is not well formed: its scheme is neither http nor https", "schemes are"),
        (
            "GET https://u@a.example",
            "the request is not well formed: its address must not name a user",
            "leave the user",
        ),
        ("/data/x", "a path needs read or write before it", "write \"read /data/x\""),
        ("raed /data/x", "unknown permission \"raed\"", "did you mean \"read\"?"),
        ("read data/x", "the path is not absolute", "write \"read /data/x\""),
        ("read", "\"read\" of what?", "write \"GET https://…\""),
        ("tcp a.example", "the port is missing or invalid", "write \"tcp db.example.com:5432\""),
        ("tcp a b:1", "the host is neither a name nor an address", "write \"tcp db"),
        ("bind 0.0.0.0:1", "unknown permission \"bind\"", "write"),
    ] {
        let error = Ask::parse(text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
        assert!(error.hint().starts_with(hint), "{text}: {}", error.hint());
    }
}

#[test]
fn an_explanation_shows_the_line_that_decides() {
    let source = Source { name: "toolcell.toml", text: TEXT };
    let grants = grants("forecast");
    for (ask, expected) in [
        (
            "GET https://api.example.com/v1/now?q=1",
            "allowed: GET https://api.example.com/v1/now\n  by GET https://api.example.com/v1/*\n  at toolcell.toml:13:9\n  \
             note: each address that api.example.com leads to must be public, or one that private names with this port\n  \
             note: the request carries the secret \"KEY\"",
        ),
        (
            "write /data/x",
            "denied: write /data/x — tool \"forecast\" may read there, not write\n  hint: add to \
             [components.weather.filesystem]: \"/data\" = { path = \"data\", access = \"write\" }",
        ),
        (
            "write /data/out/x",
            "allowed: write /data/out/x\n  by \"/data/out\" = write\n  at toolcell.toml:9:1\n  note: at most 10MiB in \
             at most 5 files are allowed there",
        ),
        ("keyvalue", "allowed: keyvalue\n  by [components.weather.keyvalue]\n  at toolcell.toml:21:21"),
    ] {
        assert_eq!(grants.explain(&Ask::parse(ask).unwrap()).render(&source), expected);
    }
}

#[test]
fn expectations_are_met_or_shown_with_what_differs() {
    let text = "[[expect]]\ntool = 'wx_now'\nask = 'GET https://api.example.com/v1/now'\nallowed = true\n[[expect]]\ntool = \
                'weather/now'\nask = 'read /data/x'\nallowed = true\n[[expect]]\ntool = 'weather'\nask = 'read /data/x'\nallowed \
                = false\n[[expect]]\ntool = 'nobody'\nask = 'keyvalue'\nallowed = false\n";
    let source = Source { name: "expect.toml", text };
    let manifest = manifest(TEXT);
    let weather = manifest.component("weather").unwrap();
    let grants = |tool: &str| match tool {
        "wx_now" | "weather/now" => Some(weather.tool_grants("now")),
        "weather" => Some(std::sync::Arc::clone(weather.grants())),
        _ => None,
    };
    let results: Vec<_> = parse_expectations(&source)
        .unwrap()
        .iter()
        .map(|expectation| expectation.check(grants(expectation.tool()).as_ref()))
        .collect();
    assert_eq!(results.iter().map(|result| result.is_met()).collect::<Vec<_>>(), [true, false, false, false]);
    let problems: Vec<_> = results.iter().filter_map(|result| result.problem().cloned()).collect();
    assert_eq!(
        render_all(&source, &problems, Style::Plain),
        "\
error[expect::differs]: denied: read /data/x — no rule of tool \"now\" allows it
 --> expect.toml:8:11
  |
8 | allowed = true
  |           ^^^^ expected to be allowed
  |
  = hint: add to [components.weather.tools.now.filesystem]: \"/data\" = { access = \"read\" }

error[expect::differs]: read /data/x is allowed by \"/data\" = read
  --> expect.toml:12:11
   |
12 | allowed = false
   |           ^^^^^ expected to be denied

error[expect::tool]: there is no tool \"nobody\"
  --> expect.toml:14:8
   |
14 | tool = 'nobody'
   |        ^^^^^^^^
   |
   = hint: name it as clients see it, or as COMPONENT/TOOL
"
    );
    for (text, codes) in [
        ("", vec!["manifest::missing"]),
        ("expect = []", vec![]),
        ("expect = {}", vec!["manifest::type"]),
        ("expect = [1]", vec!["manifest::type"]),
        (
            "[[expect]]\nask = 'x'\nallow = true",
            vec!["manifest::missing", "manifest::missing", "expect::ask", "manifest::unknown_key"],
        ),
        ("[[expects]]\ntool = 'x'", vec!["manifest::missing", "manifest::unknown_key"]),
        ("[[expect]", vec!["manifest::syntax"]),
    ] {
        let found = parse_expectations(&Source { name: "e", text }).map_or_else(|problems| problems, |_| Vec::new());
        assert_eq!(found.iter().map(|problem| problem.code()).collect::<Vec<_>>(), codes, "{text}");
    }
}

#[test]
fn the_same_grants_have_the_same_canonical_form_and_others_another() {
    let canonical = |lines: &str| {
        let text = format!("version = 1\n[components.a]\nsource = 'a.wasm'\n{lines}\n");
        manifest(&text).component("a").unwrap().canonical()
    };
    for (one, same) in [
        ("filesystem = {}\nnetwork = {}\nenv = {}\nargs = []", ""),
        (
            "filesystem = { '/a' = { path = 'a' }, '/b' = { path = 'b' } }",
            "filesystem = { '/b/' = { path = 'b', access = 'read' }, '/a' = { path = 'a', create = false } }",
        ),
        (
            "filesystem = { '/a' = { path = 'a', access = 'write' } }",
            "filesystem = { '/a' = { path = 'a', access = 'write', quota = '64MiB', files = 1000 } }",
        ),
        (
            "network = { http = ['https://a.example', 'HEAD,GET http://b.example:80/x/**'] }",
            "network = { http = ['GET,HEAD http://B.example/x/*', 'https://a.example.:443/*'] }",
        ),
        ("env = { A = 'x' }\ntools.t = { env = ['A'] }", "env = { A = 'x' }"),
        ("keyvalue = {}", "keyvalue = { quota = '1024KiB', entries = 1000, value = '256KiB', per_caller = false }"),
    ] {
        assert_eq!(canonical(one), canonical(same), "{one}");
    }
    let base = "filesystem = { '/a' = { path = 'a', access = 'write' } }\nnetwork = { http = ['https://a.example'], private = \
                ['10.0.0.1:443'] }\nenv = { A = 'x' }\nargs = ['x']\nstdin = 'x'\nconfig = { A = 'x' }\nkeyvalue = {}\nsecrets = { \
                K = { from = 'env:K', header = 'x', for = 'https://a.example' } }\n";
    let mut seen = std::collections::BTreeSet::from([canonical(base)]);
    for (from, to) in [
        ("path = 'a'", "path = 'b'"),
        ("access = 'write'", "access = 'read'"),
        ("access = 'write'", "access = 'write', files = 2"),
        ("access = 'write'", "access = 'write', create = true"),
        ("['https://a.example']", "['https://a.example', 'http://a.example']"),
        ("['https://a.example']", "['GET https://a.example']"),
        ("10.0.0.1:443", "10.0.0.1"),
        ("env = { A = 'x' }", "env = { A = 'y' }"),
        ("env = { A = 'x' }", "env = { A = { from = 'env:x' } }"),
        ("args = ['x']", "args = ['x', 'x']"),
        ("stdin = 'x'", "stdin = 'y'"),
        ("config = { A = 'x' }", "config = { B = 'x' }"),
        ("keyvalue = {}", "keyvalue = { per_caller = true }"),
        ("from = 'env:K'", "from = 'env:L'"),
        ("header = 'x'", "query = 'x'"),
        ("header = 'x'", "header = 'x', value = 'b {}'"),
        ("keyvalue = {}", "keyvalue = {}\ntools.t.keyvalue = false"),
        ("keyvalue = {}", "keyvalue = {}\ntools.t.network = {}"),
        ("keyvalue = {}", "keyvalue = {}\ntools.t.filesystem = { '/a' = { access = 'read' } }"),
    ] {
        assert!(base.contains(from), "{from}");
        assert!(seen.insert(canonical(&base.replace(from, to))), "{to}");
    }
}

/// A component that may call some tools, and a tool of it that may call fewer.
const CALLING: &str = "version = 1
[components.report]
source = 'report.wasm'
calls = ['weather_*', 'notes_read']
[components.report.tools.short]
calls = ['weather_now']
";

#[test]
fn a_tool_calls_what_a_rule_names_and_no_other() {
    let component = || manifest(CALLING).component("report").unwrap().tool_grants("long");
    let tool = || manifest(CALLING).component("report").unwrap().tool_grants("short");
    for (name, all, narrowed) in [
        ("weather_now", true, true),
        ("weather_", true, false),
        ("weather", false, false),
        ("notes_read", true, false),
        ("notes_reads", false, false),
        ("Notes_read", false, false),
        ("", false, false),
    ] {
        assert_eq!(component().call(name).is_ok(), all, "{name}");
        assert_eq!(tool().call(name).is_ok(), narrowed, "{name}");
        let ask = Ask::parse(&format!("call {name}"));
        assert!(ask.is_err() || component().explain(&ask.unwrap()).is_allowed() == all, "{name}");
    }
    let hint = |denial: Denial| denial.hint().unwrap_or_default();
    assert_eq!(hint(component().call("x").unwrap_err()), "add to [components.report]: calls = [\"x\"]");
    let narrowed = hint(tool().call("notes_read").unwrap_err());
    assert_eq!(narrowed, "add to [components.report.tools.short]: calls = [\"notes_read\"]");
    assert_eq!(hint(component().call("no name").unwrap_err()), "", "no line allows what is not a name");
    assert_eq!(component().lock_lines(), ["call notes_read", "call weather_*"]);
    assert_eq!(component().reach().len(), 2);
}

#[test]
fn a_right_to_call_is_granted_revoked_and_suggested_in_the_component_s_own_table() {
    let right = |text: &str| toolcell_policy::edit::ManifestEntry::of_right(text).unwrap();
    let mut edit = ManifestEdit::of("[components.a]\nsource = 'a.wasm'\n").unwrap();
    edit.add("a", &right("call one")).unwrap();
    edit.add("a", &right("call two_*")).unwrap();
    let both = "[components.a]\nsource = 'a.wasm'\ncalls = [\"one\", \"two_*\"]\n";
    assert_eq!(edit.text(), both);
    assert!(edit.narrow("a", "t", &right("call one")).unwrap());
    assert_eq!(edit.text(), format!("{both}\n[components.a.tools.t]\ncalls = [\"two_*\"]\n"));
    assert!(edit.widen("a", "t", &right("call one")).unwrap());
    assert_eq!(edit.text(), format!("{both}\n[components.a.tools.t]\ncalls = [\"two_*\", \"one\"]\n"));
    assert!(edit.remove("a", &right("call two_*")) && !edit.remove("a", &right("call two_*")));
    assert!(edit.remove("a", &right("call one")));
    assert!(!edit.text().contains("\ncalls = []"), "{}", edit.text());
    let attempts = [Attempt::new("a", "call one", None), Attempt::new("a", "call two", None)];
    assert_eq!(suggest(&attempts), "[components.a]\ncalls = [\"one\", \"two\"]\n");
}
