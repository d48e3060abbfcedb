//! The form of grants: sorted wherever the manifest's order means nothing.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::{Value, json};

use crate::grants::{Delivery, EnvSource, Grants, Mount, MountKind, Network, Quota, Secret, SecretSource, Ungranted};
use crate::manifest::{LoginLimit, LoginPolicy};

/// The grants; null without any.
pub(super) fn form(grants: &Grants) -> Value {
    if grants.is_sealed() {
        return Value::Null;
    }
    let env = grants.env().iter().map(|variable| (variable.name(), source(variable.source())));
    let config = grants.config().iter().map(|(name, value)| (name.as_str(), json!(value)));
    let secrets = grants.secrets().iter().map(|entry| (entry.name(), secret(entry)));
    let files = grants.files().iter().map(|entry| (entry.guest(), mount(entry)));
    let keyvalue = grants.keyvalue().map(|state| {
        json!({
            "quota": state.quota_bytes(), "entries": state.entries(), "value": state.value_bytes(),
            "per_caller": state.per_caller(),
        })
    });
    let parts = [
        ("args", json!(grants.args())),
        ("stdin", json!(grants.stdin())),
        ("env", sorted(env)),
        ("config", sorted(config)),
        ("filesystem", sorted(files)),
        ("network", network(grants.network())),
        ("secrets", sorted(secrets)),
        ("keyvalue", json!(keyvalue)),
        ("ungranted", json!((grants.ungranted() == Ungranted::Ask).then(|| grants.ungranted().name()))),
    ];
    sorted(parts.into_iter().filter(|(_, value)| !is_empty(value)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

/// An object with its keys in order, whatever the map keeps.
fn sorted<'n>(entries: impl Iterator<Item = (&'n str, Value)>) -> Value {
    let entries: BTreeMap<&str, Value> = entries.collect();
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn rules<R: Display>(rules: &[R]) -> Value {
    let mut texts: Vec<String> = rules.iter().map(R::to_string).collect();
    texts.sort();
    json!(texts)
}

fn source(source: &EnvSource) -> Value {
    match source {
        EnvSource::Text(text) => json!({ "text": text }),
        EnvSource::Host(name) => json!({ "host": name }),
    }
}

fn mount(mount: &Mount) -> Value {
    let quota = |quota: Quota| json!({ "bytes": quota.bytes, "files": quota.files });
    match mount.kind() {
        MountKind::Host { path, access, create, quota: limit } => json!({
            "path": path, "access": access.name(), "create": create, "quota": limit.map(quota),
        }),
        MountKind::Scratch { quota: limit } => json!({ "scratch": quota(*limit) }),
    }
}

fn network(network: &Network) -> Value {
    if network.is_empty() {
        return Value::Null;
    }
    let ca: Vec<&str> = network.ca().iter().map(|file| file.path()).collect();
    let parts = [
        ("http", rules(network.http_rules())),
        ("tcp", rules(network.tcp_rules())),
        ("udp", rules(network.udp_rules())),
        ("private", rules(network.private())),
        ("ca", json!(ca)),
        ("proxy", json!(network.proxy().map(ToString::to_string))),
    ];
    sorted(parts.into_iter().filter(|(_, value)| !is_empty(value)))
}

fn secret(secret: &Secret) -> Value {
    let from = secret.source().to_string();
    let mut shown = match secret.delivery() {
        Delivery::Header { name, template, target } => {
            json!({ "from": from, "header": name, "value": template.to_string(), "for": target.to_string() })
        }
        Delivery::Query { name, target } => json!({ "from": from, "query": name, "for": target.to_string() }),
        Delivery::Expose => json!({ "from": from, "expose": true }),
    };
    if let (SecretSource::Login(login), Some(parts)) = (secret.source(), shown.as_object_mut()) {
        let mut shown = login.canonical();
        if let Some(shown) = shown.as_object_mut() {
            // These change no login that was made, and are read when its tools are.
            shown.extend(login.client_secret().map(|from| ("client_secret".to_owned(), json!(from.to_string()))));
            shown.insert("early".to_owned(), json!(login.limits().get(LoginLimit::Early)));
        }
        parts.insert("login".to_owned(), shown);
    }
    shown
}

impl LoginPolicy {
    /// The server that gives the tokens, and what they are for. A login that differs in it is
    /// another one.
    #[must_use]
    pub fn canonical(&self) -> Value {
        let parts = [
            ("issuer", json!(self.issuer())),
            ("authorize", json!(self.authorize())),
            ("token", json!(self.token())),
            ("device", json!(self.device())),
            ("client_id", json!(self.client_id())),
            ("scopes", json!(self.scopes())),
            ("resource", json!(self.resource())),
            ("audience", json!(self.audience())),
        ];
        sorted(parts.into_iter().filter(|(_, value)| !is_empty(value)))
    }
}
