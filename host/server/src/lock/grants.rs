//! Grants of a tool in words: one line for each right, so that an added line is an added right.
use std::collections::BTreeSet;

use toolcell_policy::quantity::show_bytes;
use toolcell_policy::{Access, Delivery, EnvSource, Grants, Mount, MountKind, Quota, Secret, SecretSource, Ungranted};

/// The lines, sorted; empty if the tool may reach nothing.
pub fn words(grants: &Grants) -> Vec<String> {
    let mut lines: Vec<String> = grants.files().iter().flat_map(mount).collect();
    let network = grants.network();
    lines.extend(network.http_rules().iter().map(|rule| format!("http {rule}")));
    lines.extend(network.tcp_rules().iter().map(|rule| format!("tcp {rule}")));
    lines.extend(network.udp_rules().iter().map(|rule| format!("udp {rule}")));
    lines.extend(network.private().iter().map(|rule| format!("private address {rule}")));
    lines.extend(network.ca().iter().map(|file| format!("trust the roots in {}", file.path())));
    lines.extend(network.proxy().map(|proxy| format!("through the proxy {proxy}")));
    lines.extend(grants.env().iter().map(|variable| match variable.source() {
        EnvSource::Text(text) => format!("variable {} = {text:?}", variable.name()),
        EnvSource::Host(name) => format!("variable {} from the host's {name}", variable.name()),
    }));
    lines.extend(grants.config().iter().map(|(name, value)| format!("config {name} = {value:?}")));
    if !grants.args().is_empty() {
        lines.push(format!("arguments {:?}", grants.args()));
    }
    lines.extend(grants.stdin().map(|text| format!("stdin {text:?}")));
    lines.extend(grants.secrets().iter().map(secret));
    let logins: BTreeSet<String> = grants.secrets().iter().filter_map(|secret| login(secret.source())).collect();
    lines.extend(logins);
    lines.extend(grants.keyvalue().map(|state| {
        let whose = if state.per_caller() { "each caller's own" } else { "shared by its callers" };
        let quota = show_bytes(state.quota_bytes());
        let value = show_bytes(state.value_bytes());
        format!("key-value store, {whose}: {quota} in {} entries of {value}", state.entries())
    }));
    if grants.ungranted() == Ungranted::Ask {
        lines.push("whatever else a person allows when asked".to_owned());
    }
    lines.sort();
    lines
}

/// True if the new grants lack anything of the old ones.
pub fn narrowed(old: &Grants, new: &Grants) -> bool {
    if old.reaches_like(new) {
        return false;
    }
    let now = words(new);
    words(old).iter().any(|line| !now.contains(line))
}

/// Reading and writing are separate lines: removing one leaves the other unchanged.
fn mount(mount: &Mount) -> Vec<String> {
    let guest = mount.guest();
    match mount.kind() {
        MountKind::Scratch { quota } => vec![format!("scratch {guest}: {}", room(*quota))],
        MountKind::Host { path, access, create, quota } => {
            let mut lines = vec![format!("read {guest}: {path}")];
            if *access == Access::Write {
                let room = quota.map(room).unwrap_or_default();
                let made = if *create { ", made where missing" } else { "" };
                lines.push(format!("write {guest}: {path}, {room}{made}"));
            }
            lines
        }
    }
}

fn room(quota: Quota) -> String {
    format!("{} in {} files", show_bytes(quota.bytes), quota.files)
}

fn secret(secret: &Secret) -> String {
    let name = secret.name();
    let source = secret.source();
    match secret.delivery() {
        Delivery::Header { name: header, target, .. } => {
            format!("secret {name} ({source}) in the header {header} for {target}")
        }
        Delivery::Query { name: key, target } => format!("secret {name} ({source}) in the query {key} for {target}"),
        Delivery::Expose => format!("secret {name} ({source}), its value given to the tool"),
    }
}

/// The server that gives a secret, and what it is asked for.
fn login(source: &SecretSource) -> Option<String> {
    let SecretSource::Login(login) = source else { return None };
    let server = login.issuer().or(login.token()).unwrap_or_default();
    let mut line = format!("login {} at {server} as {}", login.name(), login.client_id());
    if !login.scopes().is_empty() {
        line.push_str(&format!(", for {}", login.scopes().join(" ")));
    }
    line.extend(login.resource().or(login.audience()).map(|api| format!(", to use at {api}")));
    Some(line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolcell_policy::{Source, parse};

    use super::*;

    fn grants(lines: &str) -> Arc<Grants> {
        let text = format!("version = 1\n[components.a]\nsource = \"a.wasm\"\n{lines}\n");
        let parsed = parse(&Source { name: "test", text: &text }).unwrap_or_else(|problems| panic!("{problems:?}"));
        Arc::clone(parsed.manifest.component("a").unwrap().grants())
    }

    #[test]
    fn each_right_is_a_line_and_a_line_less_is_narrower() {
        let read = r#"filesystem = { "/d" = { path = "d" } }"#;
        let write = r#"filesystem = { "/d" = { path = "d", access = "write" } }"#;
        let table = [
            ("", r#"args = ["-x"]"#, false),
            (r#"args = ["-x"]"#, "", true),
            (read, write, false),
            (write, read, true),
            (read, read, false),
            (
                r#"network = { http = ["https://a.example/"] }"#,
                r#"network = { http = ["https://a.example/", "https://b.example/"] }"#,
                false,
            ),
            (r#"network = { http = ["https://a.example/"] }"#, r#"network = { http = ["https://b.example/"] }"#, true),
            (r#"env = { A = "1" }"#, r#"env = { A = "2" }"#, true),
        ];
        for (old, new, expected) in table {
            assert_eq!(narrowed(&grants(old), &grants(new)), expected, "{old} to {new}");
        }
        assert_eq!(words(&grants(read)), ["read /d: d"]);
        assert_eq!(words(&grants(write)), ["read /d: d", "write /d: d, 64MiB in 1000 files"]);
        assert_eq!(words(&grants("")), [""; 0]);
    }
}
