//! Security schemes as secrets that the host adds to requests. The guest never has a value.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::BridgeOptions;
use crate::document::Document;
use crate::grants::{BridgeGrants, LoginGrant, SecretGrant, SecretPlace};
use crate::names::{shown, variable};
use crate::parameters::{Filled, is_header};

/// Schemes of a document. 20: the largest public ones have four.
const SCHEMES_MAX: usize = 20;

/// Scopes of a login. 50: the manifest's own bound is larger.
const SCOPES_MAX: usize = 50;

/// Requirements that one operation may choose from.
const REQUIREMENTS_MAX: usize = 20;

/// What a scheme becomes.
enum Scheme {
    Secret(SecretPlace),
    Login(LoginGrant),
}

/// Schemes that the operations use.
pub(crate) struct Security<'o> {
    schemes: BTreeMap<String, Scheme>,
    options: &'o BridgeOptions,
    used: BTreeMap<String, BTreeSet<String>>,
    pub(crate) notes: Vec<String>,
}

impl<'o> Security<'o> {
    pub(crate) fn of(document: &Document<'_>, options: &'o BridgeOptions) -> Self {
        let mut security = Self { schemes: BTreeMap::new(), options, used: BTreeMap::new(), notes: Vec::new() };
        let written =
            document.root.get("components").and_then(|components| components.get("securitySchemes")?.as_object());
        for (name, scheme) in written.into_iter().flatten().take(SCHEMES_MAX) {
            let scheme = document.followed(scheme).and_then(|scheme| security.scheme(scheme));
            match scheme {
                Ok(scheme) => drop(security.schemes.insert(name.clone(), scheme)),
                Err(reason) => security.notes.push(format!("the security scheme {} {reason}", shown(name))),
            }
        }
        security
    }

    /// Notes what an operation needs: of its requirements the first whose schemes are all known.
    pub(crate) fn need(&mut self, document: &Document<'_>, operation: &Value) {
        let required = operation.get("security").or_else(|| document.root.get("security"));
        let Some(Value::Array(required)) = required else { return };
        let is_known = |required: &&serde_json::Map<String, Value>| {
            required.keys().all(|name| self.schemes.contains_key(name)) && !required.is_empty()
        };
        let choice = required.iter().take(REQUIREMENTS_MAX).filter_map(Value::as_object).find(is_known);
        for (name, scopes) in choice.into_iter().flatten() {
            let known = self.used.entry(name.clone()).or_default();
            let scopes = scopes.as_array().into_iter().flatten().filter_map(Value::as_str);
            known.extend(scopes.take(SCOPES_MAX).map(str::to_owned));
        }
    }

    /// Headers and parts of the query that the host fills in.
    pub(crate) fn filled(&self) -> Filled {
        let mut filled = Filled::default();
        for scheme in self.schemes.values() {
            let _ = match scheme {
                Scheme::Secret(SecretPlace::Header { name, .. }) => filled.headers.insert(name.to_ascii_lowercase()),
                Scheme::Secret(SecretPlace::Query { name }) => filled.query.insert(name.clone()),
                Scheme::Login(_) => filled.headers.insert("authorization".to_owned()),
            };
        }
        filled
    }

    /// The secrets of the schemes that are used, for requests that this rule names.
    pub(crate) fn grant(mut self, target: &str, grants: &mut BridgeGrants) -> Vec<String> {
        for (name, scopes) in std::mem::take(&mut self.used) {
            let Some(scheme) = self.schemes.remove(&name) else { continue };
            let (place, from) = match scheme {
                Scheme::Secret(place) => (place, None),
                Scheme::Login(mut login) => {
                    let Some(client_id) = &self.options.client_id else {
                        self.notes.push(format!(
                            "the login {} is left out: --client-id names the client that you registered",
                            shown(&name)
                        ));
                        continue;
                    };
                    if grants.login.is_some() {
                        self.notes.push(format!("the login {} is left out: one is written", shown(&name)));
                        continue;
                    }
                    login.client_id.clone_from(client_id);
                    login.scopes = scopes.into_iter().take(SCOPES_MAX).collect();
                    let from = format!("oauth:{}", login.name);
                    grants.login = Some(login);
                    (
                        SecretPlace::Header { name: "Authorization".to_owned(), value: "Bearer {}".to_owned() },
                        Some(from),
                    )
                }
            };
            if let Some(other) = grants.secrets.iter().find(|other| other.place.is_same(&place)) {
                self.notes.push(format!(
                    "the security scheme {} is left out: {} has its place",
                    shown(&name),
                    other.name
                ));
                continue;
            }
            let name = variable(&[&self.options.name, &name]);
            let from = from.unwrap_or_else(|| format!("env:{name}"));
            if grants.secrets.iter().any(|other| other.name == name) {
                self.notes.push(format!("the secret {name} is left out: its name is taken"));
                continue;
            }
            grants.secrets.push(SecretGrant { name, from, place, target: target.to_owned() });
        }
        self.notes
    }

    /// `Err` is the end of a sentence.
    fn scheme(&self, scheme: &Value) -> Result<Scheme, String> {
        let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
        let header = |name: &str, value: &str| {
            Scheme::Secret(SecretPlace::Header { name: name.to_owned(), value: value.to_owned() })
        };
        match (text("type"), text("in"), text("scheme").to_ascii_lowercase().as_str()) {
            ("apiKey", "header", _) if is_header(text("name")) => Ok(header(text("name"), "{}")),
            ("apiKey", "query", _) if !text("name").is_empty() => {
                Ok(Scheme::Secret(SecretPlace::Query { name: text("name").to_owned() }))
            }
            ("apiKey", "cookie", _) => Err("is a cookie, and is left out".to_owned()),
            ("http", _, "bearer") => Ok(header("Authorization", "Bearer {}")),
            // The value is what `basic` wants: USER:PASSWORD in base64.
            ("http", _, "basic") => Ok(header("Authorization", "Basic {}")),
            ("oauth2", ..) => self.oauth(scheme).map(Scheme::Login),
            ("openIdConnect", ..) => {
                let issuer = text("openIdConnectUrl").split_once("/.well-known/").map(|(issuer, _)| issuer);
                let issuer = issuer.filter(|issuer| is_login_address(issuer)).ok_or("has no proper address")?;
                Ok(Scheme::Login(LoginGrant { issuer: Some(issuer.to_owned()), ..self.login() }))
            }
            _ => Err("is of a kind that is not known, and is left out".to_owned()),
        }
    }

    fn oauth(&self, scheme: &Value) -> Result<LoginGrant, String> {
        let flow = scheme.get("flows").and_then(|flows| flows.get("authorizationCode"));
        let flow = flow.ok_or("has no flow with an authorization code, and is left out")?;
        let address = |key: &str| {
            let address = flow.get(key).and_then(Value::as_str).filter(|address| is_login_address(address));
            address.map(str::to_owned).ok_or_else(|| format!("has no proper {key}, and is left out"))
        };
        let authorize = Some(address("authorizationUrl")?);
        let token = Some(address("tokenUrl")?);
        Ok(LoginGrant { authorize, token, ..self.login() })
    }

    fn login(&self) -> LoginGrant {
        let name = variable(&[&self.options.name]).to_ascii_lowercase();
        LoginGrant { name, authorize: None, token: None, issuer: None, client_id: String::new(), scopes: Vec::new() }
    }
}

/// True for an address that a login may have: https, or this machine.
fn is_login_address(address: &str) -> bool {
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic());
    let is_local = ["http://127.0.0.1:", "http://localhost:"].iter().any(|local| address.starts_with(local));
    is_plain && (address.starts_with("https://") || is_local)
}
