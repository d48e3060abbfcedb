//! What the manifest grants a bridge: as wide as its operations, and no wider.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use toolcell_bridge_lines::{PASSED, PASSES_ELICITATION};

use crate::definitions::{ToolCall, ToolDefinition};
use crate::parameters::is_header;
use crate::server::Origin;

/// Grants of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgeGrants {
    /// Rules for requests, such as `GET,HEAD https://api.example.com/v1/pets/{}`.
    pub http: Vec<String>,
    /// Secrets that the host adds to requests.
    pub secrets: Vec<SecretGrant>,
    /// The tools whose requests carry some of the secrets, and not all.
    pub fewer: Vec<ToolSecrets>,
    /// The login of one of them.
    pub login: Option<LoginGrant>,
    /// True if the server may ask the person in the middle of a call.
    pub passes_elicitation: bool,
}

/// A secret of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretGrant {
    /// Its name in the manifest.
    pub name: String,
    /// Where its value is.
    pub from: String,
    /// Where it stands in a request.
    #[serde(flatten)]
    pub place: SecretPlace,
    /// The rule of the requests that carry it.
    #[serde(rename = "for")]
    pub target: String,
}

/// The secrets that the requests of one tool carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolSecrets {
    /// The tool's own name, without the component's prefix.
    pub tool: String,
    /// Names of secrets; may be empty.
    pub secrets: Vec<String>,
}

/// Where a secret stands in a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SecretPlace {
    /// In a header.
    Header {
        /// The header.
        #[serde(rename = "header")]
        name: String,
        /// Its value, with `{}` in the secret's place.
        value: String,
    },
    /// In the query.
    Query {
        /// The name of the query's part.
        #[serde(rename = "query")]
        name: String,
    },
}

/// A login at an authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoginGrant {
    /// Its name in the manifest.
    pub name: String,
    /// Where a person agrees.
    pub authorize: Option<String>,
    /// Where tokens come from.
    pub token: Option<String>,
    /// The server, where it publishes the others.
    pub issuer: Option<String>,
    /// The client that the person registered.
    pub client_id: String,
    /// Scopes that the operations need.
    pub scopes: Vec<String>,
}

/// Begins the source of a secret.
const SOURCES: [&str; 4] = ["env:", "file:", "keyring:", "oauth:"];

impl SecretGrant {
    /// The secret of `NAME=SECRET` on the command line, such as `Authorization=Bearer env:TOKEN`,
    /// for requests to this address. `None` if it has no name, or no source of a secret.
    #[must_use]
    pub fn of_header(component: &str, header: &str, target: &str) -> Option<Self> {
        let (name, value) = header.split_once('=')?;
        let name = name.trim();
        if !is_header(name) {
            return None;
        }
        let at = SOURCES.iter().filter_map(|source| value.find(source)).min()?;
        let (before, from) = value.split_at_checked(at)?;
        let from = from.trim();
        if before.contains('{') {
            return None;
        }
        let own = match from.strip_prefix("env:") {
            Some(variable) => crate::names::variable(&[variable]),
            None => crate::names::variable(&[component, name]),
        };
        let place = SecretPlace::Header { name: name.to_owned(), value: format!("{}{{}}", before.trim_start()) };
        Some(Self { name: own, from: from.to_owned(), place, target: target.to_owned() })
    }
}

impl SecretPlace {
    /// True if a request has one place for both.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Header { name, .. }, Self::Header { name: other, .. }) => name.eq_ignore_ascii_case(other),
            (Self::Query { name }, Self::Query { name: other }) => name == other,
            _ => false,
        }
    }
}

impl BridgeGrants {
    /// The rules for these tools' requests.
    pub(crate) fn of(origin: &Origin, tools: &[ToolDefinition]) -> Self {
        let mut paths: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for tool in tools {
            if let ToolCall::Http(request) = &tool.call {
                // A rule has no query.
                let path = request.path.split('?').next().unwrap_or_default();
                paths.entry(pattern(path)).or_default().insert(&request.method);
            }
        }
        let rule = |(path, methods): (String, BTreeSet<&str>)| {
            format!("{} {origin}{path}", methods.into_iter().collect::<Vec<_>>().join(","))
        };
        Self { http: paths.into_iter().map(rule).collect(), ..Self::default() }
    }

    /// The tables of a manifest for this component.
    #[must_use]
    pub fn tables(&self, component: &str) -> String {
        let component = quoted(component);
        let mut tables = format!("[components.{component}.network]\nhttp = [\n");
        for rule in &self.http {
            let _ = writeln!(tables, "    {},", quoted(rule));
        }
        tables.push_str("]\n");
        if self.passes_elicitation {
            let _ = write!(tables, "\n[components.{component}.env]\n{PASSES_ELICITATION} = {}\n", quoted(PASSED));
        }
        if !self.secrets.is_empty() {
            let _ = write!(tables, "\n[components.{component}.secrets]\n");
        }
        for secret in &self.secrets {
            let place = match &secret.place {
                SecretPlace::Header { name, value } if value == "{}" => format!("header = {}", quoted(name)),
                SecretPlace::Header { name, value } => format!("header = {}, value = {}", quoted(name), quoted(value)),
                SecretPlace::Query { name } => format!("query = {}", quoted(name)),
            };
            let from = quoted(&secret.from);
            let _ =
                writeln!(tables, "{} = {{ from = {from}, {place}, for = {} }}", secret.name, quoted(&secret.target));
        }
        for ToolSecrets { tool, secrets } in &self.fewer {
            let secrets: Vec<String> = secrets.iter().map(|name| quoted(name)).collect();
            let tool = quoted(tool);
            let _ = write!(tables, "\n[components.{component}.tools.{tool}]\nsecrets = [{}]\n", secrets.join(", "));
        }
        if let Some(login) = &self.login {
            let _ = write!(tables, "\n[oauth.{}]\n", login.name);
            let addresses = [("issuer", &login.issuer), ("authorize", &login.authorize), ("token", &login.token)];
            for (key, address) in addresses {
                if let Some(address) = address {
                    let _ = writeln!(tables, "{key} = {}", quoted(address));
                }
            }
            let scopes: Vec<String> = login.scopes.iter().map(|scope| quoted(scope)).collect();
            let _ = writeln!(tables, "client_id = {}\nscopes = [{}]", quoted(&login.client_id), scopes.join(", "));
        }
        tables
    }
}

/// The pattern of a path's requests: `{}` is one segment, and `*` a part of one.
fn pattern(path: &str) -> String {
    let segment = |segment: &str| {
        let mut text = String::new();
        let mut rest = segment;
        while let Some((before, behind)) = rest.split_once('{') {
            text.push_str(before);
            if !text.ends_with('*') {
                text.push('*');
            }
            rest = behind.split_once('}').map_or("", |(_, behind)| behind);
        }
        text.push_str(rest);
        if text == "*" { "{}".to_owned() } else { text }
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// A text of TOML. JSON's escapes are TOML's, and the one character that only TOML escapes is left
/// out.
fn quoted(text: &str) -> String {
    let text: String = text.chars().filter(|character| *character != '\u{7f}').collect();
    serde_json::Value::String(text).to_string()
}
