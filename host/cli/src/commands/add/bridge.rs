//! A bridge that is being added: its component, what the manifest gets, and what a person sees.
//! Must not hold: where its definitions come from.
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcell_bridge::lines::Era;
use toolcell_bridge::{Bridge, SecretPlace, embedded};
use toolcell_mcp::sanitize;
use toolcell_policy::edit::{ComponentEntry, ManifestEdit, ManifestEntry};
use toolcell_sandbox::COMPONENT_BYTES_MAX;
use toolcell_server::file::read_bounded;
use toolcell_server::shipped;

use super::remote;
use super::texts::{ShownTexts, first_lines};
use crate::args::manifest_words;
use crate::exit::Failure;
use crate::naming::component_name;

/// Longest prefix made of a component's name, in characters: it leaves 40 for the tool's own name.
const PREFIX_CHARS_MAX: usize = 24;

/// Parts of a host's name that say nothing.
const PLAIN: [&str; 3] = ["www.", "api.", "mcp."];

/// Tools of a document or another server, which became a component.
pub struct AddedBridge {
    pub bridge: Bridge,
    pub prefix: String,
    /// Entries for a server that is not public.
    pub private: Vec<ManifestEntry>,
    pub kind: BridgeKind,
}

/// Where its definitions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BridgeKind {
    /// An OpenAPI document.
    Document,
    /// The list of an MCP server of this era.
    Server(Era),
}

/// The component of a bridge. `file` is the one without tools, if a person names it.
pub fn component(bridge: &Bridge, file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let guest = BridgeGuest::read(file)?;
    embedded(&guest.bytes, &bridge.definitions.bytes()).map_err(|error| {
        let problem = format!("{} cannot be used: {error}", guest.path.display());
        Failure::at_fault(problem, "`make guests` builds the bridge of this version")
    })
}

/// The name of a component after the host of its address; `None` where that is not a name.
pub fn name_of_host(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("://")?;
    let mut host = rest.split(['/', ':', '?', '#']).next()?;
    if host == "localhost" || host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok() {
        return None;
    }
    while let Some(rest) = PLAIN.iter().find_map(|plain| host.strip_prefix(plain)) {
        host = rest;
    }
    Some(component_name(Path::new(host.split('.').next()?)))
}

/// What stands before the name of each tool: the component's name.
pub fn prefix_of(name: &str) -> String {
    let short: String = name.chars().take(PREFIX_CHARS_MAX).collect();
    format!("{}_", short.replace('-', "_").trim_end_matches('_'))
}

/// The bridge's component, which has no tools by itself.
struct BridgeGuest {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl BridgeGuest {
    fn read(file: Option<&Path>) -> Result<Self, Failure> {
        let hint = "`make guests` builds it in a clone; --bridge names it elsewhere";
        let path = match file {
            Some(path) => path.to_owned(),
            None => shipped::bridge()
                .ok_or_else(|| Failure::at_fault("the bridge's component is not beside this program", hint))?,
        };
        let bytes = read_bounded(&path, COMPONENT_BYTES_MAX)
            .map_err(|problem| Failure::at_fault(format!("{} {problem}", path.display()), hint))?;
        Ok(Self { path, bytes })
    }
}

impl AddedBridge {
    /// Sets the keys of its component: a prefix always, and an approval if a tool may change
    /// something. A server's tools may be others after an update, so those are always approved.
    pub fn enter(&self, entry: &mut ComponentEntry) {
        entry.set("prefix", self.prefix.as_str().into());
        let changes = self.bridge.definitions.tools.iter().any(|tool| tool.hints.read_only != Some(true));
        if changes || self.kind != BridgeKind::Document {
            entry.set("approval", "destructive".into());
        }
    }

    /// Adds its grants to the manifest. `Err` is one sentence.
    pub fn grant(&self, component: &str, edit: &mut ManifestEdit) -> Result<(), String> {
        edit.merge(&self.bridge.grants.tables(component))?;
        self.private.iter().try_for_each(|entry| edit.add(component, entry))
    }

    /// What it makes, what that reaches, and what is left out.
    pub fn text(&self) -> String {
        let mut text = match self.kind {
            BridgeKind::Document => self.operations(),
            BridgeKind::Server(era) => remote::tools_text(&self.bridge, &self.prefix, era),
        };
        for secret in &self.bridge.grants.secrets {
            let place = match &secret.place {
                SecretPlace::Header { name, value } if value == "Basic {}" => {
                    format!("header {name}: USER:PASSWORD in base64")
                }
                SecretPlace::Header { name, .. } => format!("header {name}"),
                SecretPlace::Query { name } => format!("query {name}"),
            };
            text.push_str(&sanitize::line(&format!("  secret   {} from {}, {place}", secret.name, secret.from)));
            text.push('\n');
        }
        let left_out = self.bridge.left_out.iter().map(|left| format!("{} {}", left.operation, left.reason));
        text.push_str(&first_lines("  left out", left_out));
        text.push_str(&first_lines("  note    ", self.bridge.notes.iter().cloned()));
        text
    }

    /// A line for each operation of a document, with the texts that a model reads.
    fn operations(&self) -> String {
        let mut shown = ShownTexts::default();
        shown.line("  document", &self.bridge.title);
        for tool in &self.bridge.definitions.tools {
            let operation = tool.operation();
            let (method, path) = operation.split_once(' ').unwrap_or((&operation, ""));
            let line = format!("{method:<6} {}{path}  {}{}", self.bridge.origin, self.prefix, tool.name);
            shown.operation(tool, &line);
        }
        shown.ended()
    }

    /// The member of the command's JSON that says this.
    pub const fn key(&self) -> &'static str {
        match self.kind {
            BridgeKind::Document => "document",
            BridgeKind::Server(_) => "server",
        }
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        let operations = self.bridge.definitions.tools.iter().map(|tool| {
            json!({
                "tool": format!("{}{}", self.prefix, tool.name),
                "operation": tool.operation(),
                "read_only": tool.hints.read_only == Some(true),
            })
        });
        let left_out = self.bridge.left_out.iter();
        let left_out = left_out.map(|left| json!({"operation": left.operation, "reason": left.reason}));
        json!({
            "title": self.bridge.title,
            "server": self.bridge.origin.to_string(),
            "operations": operations.collect::<Vec<_>>(),
            "http": self.bridge.grants.http,
            "secrets": self.bridge.grants.secrets,
            "login": self.bridge.grants.login,
            "left_out": left_out.collect::<Vec<_>>(),
            "notes": self.bridge.notes,
        })
    }

    /// The command that gives a secret its value.
    pub fn secret_command(&self, manifest: &Path) -> Option<String> {
        let secret = self.bridge.grants.secrets.iter().find(|secret| secret.from.starts_with("env:"))?;
        Some(format!("toolcell secret set {}{}", secret.name, manifest_words(manifest)))
    }

    /// The command by which a person logs in, if its requests need that.
    pub fn login_command(&self, manifest: &Path) -> Option<String> {
        let login = self.bridge.grants.login.as_ref()?;
        Some(format!("toolcell secret login {}{}", login.name, manifest_words(manifest)))
    }
}

#[cfg(test)]
mod tests {
    use toolcell_bridge::BridgeOptions;
    use toolcell_policy::{Source, parse};

    use super::*;

    #[test]
    fn a_bridge_is_named_after_its_host_unless_that_is_a_number() {
        for (address, name) in [
            ("https://mcp.example.com/mcp", Some("example")),
            ("https://www.api.weather.example/", Some("weather")),
            ("https://mcp.com", Some("com")),
            ("http://127.0.0.1:8080/mcp", None),
            ("http://localhost:8080/mcp", None),
            ("http://[::1]:8080/mcp", None),
            ("file", None),
        ] {
            assert_eq!(name_of_host(address).as_deref(), name, "{address}");
        }
        assert_eq!(prefix_of("pet-store"), "pet_store_");
        assert_eq!(prefix_of(&"a".repeat(64)).len(), PREFIX_CHARS_MAX + 1);
    }

    /// The bridge knows what a manifest takes, and cannot ask it.
    #[test]
    fn a_manifest_takes_the_secrets_and_logins_of_every_scheme_that_is_not_left_out() {
        let headers = ["Host", "Cookie", "TE", "Expect", "Upgrade", "Http2-Settings", "X-A", "Content-Type", "a b", ""];
        let parts = ["key[]", "api key", "a.b", "a~b", "ä", "k"];
        let of_headers = headers.map(|name| json!({"type": "apiKey", "in": "header", "name": name}));
        let of_parts = parts.map(|name| json!({"type": "apiKey", "in": "query", "name": name}));
        let addresses = ["https://a.example/a?b=c", "https://a.example/\\", "https://u@a.example/", "https://[::1]/a"];
        let logins = addresses.map(|address| {
            let flow = json!({"authorizationUrl": address, "tokenUrl": "https://a.example/t", "scopes": {}});
            json!({"type": "oauth2", "flows": {"authorizationCode": flow}})
        });
        let issuers = ["https://a.example/?x=y", "https://a.example"].map(|issuer| {
            json!({"type": "openIdConnect", "openIdConnectUrl": format!("{issuer}/.well-known/openid-configuration")})
        });
        let mut taken = 0;
        for scheme in of_headers.iter().chain(&of_parts).chain(&logins).chain(&issuers) {
            let document = json!({
                "openapi": "3.0.3", "info": {"title": "x", "version": "1"},
                "servers": [{"url": "https://api.example.com"}],
                "components": {"securitySchemes": {"s": scheme}},
                "paths": {
                    "/a": {"get": {"operationId": "a", "security": [{"s": ["read all", "a\"b", "read"]}]}},
                    "/b": {"get": {"operationId": "b", "security": []}},
                },
            });
            let client_id = Some("desk".to_owned());
            let options = BridgeOptions { name: "x".to_owned(), client_id, ..BridgeOptions::default() };
            let bridge = Bridge::of(&document, &options, |_| Ok(())).unwrap();
            let tables = bridge.grants.tables("x");
            let text = format!("version = 1\n[components.x]\nsource = \"x.wasm\"\n{tables}");
            let parsed = parse(&Source { name: "", text: &text });
            assert!(parsed.is_ok(), "{scheme}\n{text}");
            taken += bridge.grants.secrets.len();
        }
        assert_eq!(taken, 9);
    }
}
