//! Security schemes as secrets that the host adds to requests. The guest never has a value.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use toolcell_policy::{is_login_endpoint, is_login_issuer, is_scope, is_secret_query, secret_header_fault};

use crate::BridgeOptions;
use crate::document::Document;
use crate::grants::{BridgeGrants, LoginGrant, SecretGrant, SecretPlace, ToolSecrets};
use crate::limits::NAME_CHARS_MAX;
use crate::names::{Names, shown, variable};
use crate::parameters::Filled;
use crate::selection::Operation;

/// Schemes of a document. 20: the largest public ones have four.
const SCHEMES_MAX: usize = 20;

/// Scopes of a login. 50: the manifest's own bound is larger.
const SCOPES_MAX: usize = 50;

/// Requirements that one operation may choose from.
const REQUIREMENTS_MAX: usize = 20;

/// What a scheme becomes.
#[derive(Clone)]
enum Scheme {
    Secret(SecretPlace),
    Login(LoginGrant),
}

impl Scheme {
    /// Where its value stands in a request.
    fn place(&self) -> SecretPlace {
        match self {
            Self::Secret(place) => place.clone(),
            Self::Login(_) => SecretPlace::Header { name: "Authorization".to_owned(), value: "Bearer {}".to_owned() },
        }
    }
}

/// Schemes of a document, and what its operations use of them.
pub(crate) struct Security<'o> {
    schemes: BTreeMap<String, Scheme>,
    options: &'o BridgeOptions,
    /// Schemes that requests carry: of each place in a request the one that most operations need,
    /// since a manifest has one secret for it.
    placed: Vec<String>,
    /// Scopes of the schemes that the tools use.
    used: BTreeMap<String, BTreeSet<String>>,
    /// The schemes of each tool.
    by_tool: Vec<ToolSchemes>,
    /// Texts that are not scopes.
    refused_scopes: BTreeSet<String>,
    notes: Vec<String>,
}

/// Operations that need a scheme. More of the first come before more of the second.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct SchemeNeed {
    /// Those that cannot be called without it.
    without_other: usize,
    /// Those whose first requirement has it.
    named_first: usize,
}

/// What a tool's requests carry.
struct ToolSchemes {
    tool: String,
    schemes: Vec<String>,
}

/// The requirement of an operation that its requests meet: schemes with their scopes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Requirement<'a> {
    schemes: Option<&'a Map<String, Value>>,
}

impl<'a> Requirement<'a> {
    fn names(self) -> impl Iterator<Item = &'a String> {
        self.schemes.into_iter().flat_map(Map::keys)
    }

    fn has(self, name: &str) -> bool {
        self.names().any(|own| own == name)
    }

    fn is_empty(self) -> bool {
        self.names().next().is_none()
    }
}

impl<'o> Security<'o> {
    pub(crate) fn of(document: &Document<'_>, operations: &[Operation<'_>], options: &'o BridgeOptions) -> Self {
        let mut security = Self {
            schemes: BTreeMap::new(),
            options,
            placed: Vec::new(),
            used: BTreeMap::new(),
            by_tool: Vec::new(),
            refused_scopes: BTreeSet::new(),
            notes: Vec::new(),
        };
        let written =
            document.root.get("components").and_then(|components| components.get("securitySchemes")?.as_object());
        for (name, scheme) in written.into_iter().flatten().take(SCHEMES_MAX) {
            let scheme = document.followed(scheme).and_then(|scheme| security.scheme(scheme));
            match scheme {
                Ok(scheme) => drop(security.schemes.insert(name.clone(), scheme)),
                Err(reason) => security.notes.push(format!("the security scheme {} {reason}", shown(name))),
            }
        }
        security.placed = security.places(document, operations);
        security
    }

    /// The schemes that get their place in requests: those without which most operations cannot be
    /// called, then those that most name first.
    fn places(&self, document: &Document<'_>, operations: &[Operation<'_>]) -> Vec<String> {
        let mut needs: BTreeMap<&String, SchemeNeed> = BTreeMap::new();
        for name in self.schemes.keys().filter(|name| self.has_value(name)) {
            needs.entry(name).or_default();
        }
        for operation in operations {
            let all = requirements(document, operation);
            let is_free = all.iter().any(|one| one.is_empty());
            let met: Vec<Requirement<'_>> = all.into_iter().filter(|one| self.can_meet(*one)).collect();
            for name in met.first().copied().unwrap_or_default().names() {
                let need = needs.entry(name).or_default();
                need.named_first += 1;
                need.without_other += usize::from(!is_free && met.iter().all(|one| one.has(name)));
            }
        }
        let mut by_need: Vec<&String> = needs.keys().copied().collect();
        by_need.sort_by_key(|name| Reverse(needs.get(name)));
        let mut placed: Vec<String> = Vec::new();
        for name in by_need {
            if self.rival(name, &placed).is_none() {
                placed.push(name.clone());
            }
        }
        placed
    }

    /// The other scheme that has this one's place in requests.
    fn rival<'p>(&self, name: &str, placed: &'p [String]) -> Option<&'p String> {
        let place = self.schemes.get(name)?.place();
        let has_it = |other: &&String| self.schemes.get(*other).is_some_and(|other| other.place().is_same(&place));
        placed.iter().find(has_it).filter(|other| *other != name)
    }

    /// True if the manifest can name the scheme's value.
    fn has_value(&self, name: &str) -> bool {
        match self.schemes.get(name) {
            Some(Scheme::Secret(_)) => true,
            Some(Scheme::Login(_)) => self.options.client_id.is_some(),
            None => false,
        }
    }

    fn can_meet(&self, one: Requirement<'_>) -> bool {
        !one.is_empty() && one.names().all(|name| self.has_value(name))
    }

    /// The requirement that the operation's requests meet: the first whose schemes have values and
    /// places, else the first of known schemes. `Err` is why it cannot be a tool, as the end of a
    /// sentence.
    pub(crate) fn requirement<'a>(
        &self,
        document: &Document<'a>,
        operation: &Operation<'a>,
    ) -> Result<Requirement<'a>, String> {
        let all = requirements(document, operation);
        // Of two schemes that one requirement has for one place, a request carries the first.
        let rival = |one: Requirement<'a>, name: &str| self.rival(name, &self.placed).filter(|other| !one.has(other));
        let has_places = |one: &&Requirement<'a>| one.names().all(|name| rival(**one, name).is_none());
        let met: Vec<Requirement<'a>> = all.iter().copied().filter(|one| self.can_meet(*one)).collect();
        if let Some(one) = met.iter().find(has_places) {
            return Ok(*one);
        }
        if all.iter().any(|one| one.is_empty()) {
            return Ok(Requirement::default());
        }
        let lost = met.iter().find_map(|one| one.names().find_map(|name| Some([name, rival(*one, name)?])));
        if let Some([name, other]) = lost {
            let name = shown(name);
            let other = shown(other);
            return Err(format!(
                "needs {name}, and a request has one place for it and {other}: add it by itself with --only"
            ));
        }
        let is_known = |one: &Requirement<'a>| one.names().all(|name| self.schemes.contains_key(name));
        Ok(all.into_iter().find(is_known).unwrap_or_default())
    }

    /// Headers and parts of the query that the host fills in for a requirement.
    pub(crate) fn filled(&self, requirement: Requirement<'_>) -> Filled {
        let mut filled = Filled::default();
        let placed = requirement.names().filter(|name| self.placed.contains(name));
        for place in placed.filter_map(|name| Some(self.schemes.get(name)?.place())) {
            let _ = match place {
                SecretPlace::Header { name, .. } => filled.headers.insert(name.to_ascii_lowercase()),
                SecretPlace::Query { name } => filled.query.insert(name),
            };
        }
        filled
    }

    /// Notes what a tool needs.
    pub(crate) fn need(&mut self, tool: &str, requirement: Requirement<'_>) {
        for (name, scopes) in requirement.schemes.into_iter().flatten() {
            let known = self.used.entry(name.clone()).or_default();
            for scope in scopes.as_array().into_iter().flatten().filter_map(Value::as_str).take(SCOPES_MAX) {
                let _ = if is_scope(scope) {
                    known.insert(scope.to_owned())
                } else {
                    self.refused_scopes.insert(scope.to_owned())
                };
            }
        }
        let schemes = requirement.names().cloned().collect();
        self.by_tool.push(ToolSchemes { tool: tool.to_owned(), schemes });
    }

    /// The secrets of the schemes that are used, for requests that this rule names, and the tools
    /// that use only some of them.
    pub(crate) fn grant(mut self, target: &str, grants: &mut BridgeGrants) -> Vec<String> {
        let mut names = Names::default();
        let mut secrets: BTreeMap<String, String> = BTreeMap::new();
        for (scheme, scopes) in std::mem::take(&mut self.used) {
            if let Some(other) = self.rival(&scheme, &self.placed) {
                let note =
                    format!("the security scheme {} is left out: {} has its place", shown(&scheme), shown(other));
                self.notes.push(note);
                continue;
            }
            let Some(known) = self.schemes.get(&scheme).cloned() else { continue };
            let place = known.place();
            let login = match known {
                Scheme::Secret(_) => None,
                Scheme::Login(login) => match self.login_of(&scheme, login, scopes) {
                    None => continue,
                    login => login,
                },
            };
            let name = names.unique(&variable(&[&self.options.name, &scheme]), NAME_CHARS_MAX);
            let from = login.as_ref().map_or_else(|| format!("env:{name}"), |login| format!("oauth:{}", login.name));
            grants.login = grants.login.take().or(login);
            secrets.insert(scheme, name.clone());
            grants.secrets.push(SecretGrant { name, from, place, target: target.to_owned() });
        }
        grants.fewer = self.fewer(&secrets);
        self.notes
    }

    /// The login with its client and its scopes; `None` without a client.
    fn login_of(&mut self, scheme: &str, login: LoginGrant, scopes: BTreeSet<String>) -> Option<LoginGrant> {
        let shown_name = shown(scheme);
        let Some(client_id) = &self.options.client_id else {
            let why = "--client-id names the client that you registered";
            self.notes.push(format!("the login {shown_name} is left out: {why}"));
            return None;
        };
        let refused = std::mem::take(&mut self.refused_scopes);
        let notes = refused
            .iter()
            .map(|scope| format!("the scope {} is left out: it has characters that no scope has", shown(scope)));
        self.notes.extend(notes);
        Some(LoginGrant {
            client_id: client_id.clone(),
            scopes: scopes.into_iter().take(SCOPES_MAX).collect(),
            ..login
        })
    }

    /// The tools whose requests carry some of these secrets and not all.
    fn fewer(&self, secrets: &BTreeMap<String, String>) -> Vec<ToolSecrets> {
        let own = |one: &ToolSchemes| ToolSecrets {
            tool: one.tool.clone(),
            secrets: one.schemes.iter().filter_map(|scheme| secrets.get(scheme).cloned()).collect(),
        };
        let tools = self.by_tool.iter().map(own);
        tools.filter(|tool| tool.secrets.len() < secrets.len()).collect()
    }

    /// `Err` is the end of a sentence.
    fn scheme(&self, scheme: &Value) -> Result<Scheme, String> {
        let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
        let header = |name: &str, value: &str| {
            Scheme::Secret(SecretPlace::Header { name: name.to_owned(), value: value.to_owned() })
        };
        match (text("type"), text("in"), text("scheme").to_ascii_lowercase().as_str()) {
            ("apiKey", "header", _) if secret_header_fault(text("name")).is_none() => Ok(header(text("name"), "{}")),
            ("apiKey", "query", _) if is_secret_query(text("name")) => {
                Ok(Scheme::Secret(SecretPlace::Query { name: text("name").to_owned() }))
            }
            ("apiKey", place @ ("header" | "query"), _) => {
                Err(format!("is left out: no secret can be the {place} {}", shown(text("name"))))
            }
            ("apiKey", "cookie", _) => Err("is a cookie, and is left out".to_owned()),
            ("http", _, "bearer") => Ok(header("Authorization", "Bearer {}")),
            // The value is what `basic` wants: USER:PASSWORD in base64.
            ("http", _, "basic") => Ok(header("Authorization", "Basic {}")),
            ("oauth2", ..) => self.oauth(scheme).map(Scheme::Login),
            ("openIdConnect", ..) => {
                let issuer = text("openIdConnectUrl").split_once("/.well-known/").map(|(issuer, _)| issuer);
                let issuer = issuer.filter(|issuer| is_login_issuer(issuer));
                let issuer = issuer.ok_or("has no proper address, and is left out")?;
                Ok(Scheme::Login(LoginGrant { issuer: Some(issuer.to_owned()), ..self.login() }))
            }
            _ => Err("is of a kind that is not known, and is left out".to_owned()),
        }
    }

    fn oauth(&self, scheme: &Value) -> Result<LoginGrant, String> {
        let flow = scheme.get("flows").and_then(|flows| flows.get("authorizationCode"));
        let flow = flow.ok_or("has no flow with an authorization code, and is left out")?;
        let address = |key: &str| {
            let address = flow.get(key).and_then(Value::as_str).filter(|address| is_login_endpoint(address));
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

/// The requirements of an operation, of which its requests meet one.
fn requirements<'a>(document: &Document<'a>, operation: &Operation<'a>) -> Vec<Requirement<'a>> {
    let required = operation.value.get("security").or_else(|| document.root.get("security"));
    let all = required.and_then(Value::as_array).into_iter().flatten().take(REQUIREMENTS_MAX);
    all.filter_map(Value::as_object).map(|schemes| Requirement { schemes: Some(schemes) }).collect()
}
