//! Secrets.
mod program;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::http::IMPORTS;
use super::network::rule_problem;
use super::values::{kept, name_problem};
use super::{Narrowing, Right};
use crate::canonical::sorted;
use crate::capabilities::ReachRow;
use crate::diagnostic::Diagnostic;
use crate::edit;
use crate::grants::{
    Capability, Delivery, Grants, HttpRule, Network, RuleRef, Scheme, Secret, SecretSource, SecretTemplate, is_token,
};
use crate::imports::Use;
use crate::manifest::{LoginLimit, LoginOwner, LoginPolicy};
use crate::names::{check_component, did_you_mean, toml_key, toml_string};
use crate::read::{Entry, Problems, Section, paths};
use crate::table::{keys, table};

use program::{SECRET_PROGRAM, program};

/// The sources of a secret of the host itself.
pub(crate) const FORMS_OF_HOST: &str = "write \"env:NAME\", \"file:PATH\" or \"keyring:SERVICE/ACCOUNT\"";

/// The most secrets of a component: responses are searched for each of them.
const SECRETS_MAX: usize = 64;

/// The longest header name, name of a query's part, and text around a secret, in bytes.
const PART_BYTES_MAX: usize = 256;

/// Headers that say where a message goes and ends: setting one would make another request.
const REFUSED_HEADERS: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

table! {
    /// A secret: the host adds it to matching requests (`header` or `query`, with `for`), or the
    /// guest gets it (`expose`).
    SECRET "Secret" {
        /// The source of its value: `env:NAME`, `file:PATH`, `keyring:SERVICE/ACCOUNT`,
        /// `oauth:NAME` for the access token of a login, or `caller:NAME` for a key that each
        /// caller pastes; or a table with a program that prints it.
        "from" required: Either(&[(Text, ""), (Table(&SECRET_PROGRAM), "")]),
            {"pattern": "^(env:.+|file:.+|keyring:.+/.+|oauth:.+|caller:.+)$", "examples": ["env:API_KEY"]};
        /// The header that holds it.
        "header": Text, {"examples": ["Authorization"]};
        /// The name of the query's part that holds it, in place of `header`.
        "query": Text, {"examples": ["api_key"]};
        /// The header's value, the secret instead of `{}`.
        "value": Text, {"default": "{}", "examples": ["Bearer {}"]};
        /// The requests that carry it, as an `http` rule.
        "for": Text, {"examples": ["https://api.example.com"]};
        /// True gives it to the guest, as environment variable and `wasi:config` value of the
        /// secret's name.
        "expose": Flag, {"default": false, "examples": [true]};
    }
    other names {
        "source" => "from", "template" => "value", "url" => "for", "env" => "from",
    }
}

/// Secrets.
pub(crate) static SECRETS: Right = Right {
    section: "secrets",
    named: Some(Capability::Secret),
    keys: keys! {
        /// Secrets, by name.
        "secrets": Named(&Table(&SECRET)),
            {"propertyNames": {"pattern": "^[^=\\s]+$"}, "maxProperties": SECRETS_MAX};
    },
    keys_of_tool: keys! {
        /// The component's secrets that this tool's requests carry.
        "secrets": List(&Text), {"examples": [["API_KEY"]]};
    },
    keys_of_request: keys! {
        /// Names of secrets.
        "secrets": List(&Text), {};
    },
    narrowing: Some(Narrowing::Names),
    read: |_, entry, logins, grants, problems| {
        for entry in entry.entries(SECRETS_MAX, "grants::too_many", "entries", problems) {
            let Some(secret) = secret(&entry, &grants.network, logins, problems) else { continue };
            if let Some(other) = grants.secrets.iter().find(|other| same_place(other, &secret)) {
                let message =
                    format!("{:?} goes to the same place of the same requests as {:?}", secret.name(), other.name());
                problems.add(Diagnostic::error("grants::duplicate", message).at(secret.span()));
            }
            grants.secrets.push(secret);
        }
    },
    narrow: |_, entry, grants, problems| {
        let granted = std::mem::take(&mut grants.secrets);
        let named = kept(entry, "secret", granted.iter().map(|secret| secret.name()), problems);
        grants.secrets = granted.iter().filter(|secret| named.contains(&secret.name())).cloned().collect();
        true
    },
    beyond: |_, requested, grants| {
        let beyond = grants.secrets().iter().filter(|secret| !requested.has(Capability::Secret, secret.name()));
        beyond.map(|secret| secret.span()).collect()
    },
    canonical: |_, grants| sorted(grants.secrets().iter().map(|secret| (secret.name(), canonical(secret)))),
    reach: |_, grants| {
        let row = |secret: &Secret| {
            let name = secret.name();
            let source = secret.source();
            let text = match secret.delivery() {
                Delivery::Header { name: header, target, .. } => {
                    format!("{name} from {source}, as {header} of {target}")
                }
                Delivery::Query { name: part, target } => {
                    format!("{name} from {source}, as {part} in the query of {target}")
                }
                Delivery::Expose => format!("{name} from {source}, held by the guest"),
            };
            ReachRow::new(Capability::Secret, text, Some(secret.span()))
        };
        grants.secrets().iter().map(row).collect()
    },
    lock_lines: |_, grants| {
        let line = |secret: &Secret| {
            let name = secret.name();
            let source = secret.source();
            match secret.delivery() {
                Delivery::Header { name: header, target, .. } => {
                    format!("secret {name} ({source}) in the header {header} for {target}")
                }
                Delivery::Query { name: key, target } => {
                    format!("secret {name} ({source}) in the query {key} for {target}")
                }
                Delivery::Expose => format!("secret {name} ({source}), its value given to the tool"),
            }
        };
        let logins: BTreeSet<String> =
            grants.secrets().iter().filter_map(|secret| login_line(secret.source())).collect();
        grants.secrets().iter().map(line).chain(logins).collect()
    },
    uses: |_, grants| {
        let used = |secret: &Secret| match secret.delivery() {
            Delivery::Expose => Use {
                what: "an exposed secret",
                span: Some(secret.span()),
                imports: &["wasi:config/", "wasi:cli/environment@"],
            },
            Delivery::Header { .. } | Delivery::Query { .. } => {
                Use { what: "a secret of HTTP requests", span: Some(secret.span()), imports: IMPORTS }
            }
        };
        grants.secrets().iter().map(used).collect()
    },
    verbs: &["secret"],
    ask_forms: &["secret NAME"],
    explain: |right, grants, ask, notes| {
        let name = ask.name(Capability::Secret)?;
        let Some(secret) = grants.secrets().iter().find(|secret| secret.name() == name) else {
            return Some(Err(right.denied(grants, name)));
        };
        notes.push(match secret.delivery() {
            Delivery::Header { name, target, .. } => format!("it is the header {name:?} of requests for {target}"),
            Delivery::Query { name, target } => format!("it is {name:?} in the query of requests for {target}"),
            Delivery::Expose => "the guest holds it".to_owned(),
        });
        Some(Ok(RuleRef::new(&format!("{name} from {}", secret.source()), secret.span())))
    },
    line: |name| format!("{} = {{ from = {}, expose = true }}", toml_key(name), toml_string(&format!("env:{name}"))),
    forms: &["secret NAME = SOURCE as HEADER: Bearer {} for https://…"],
    help: "  secret NAME = SOURCE as HEADER: Bearer {} for RULE
                              a secret that the host adds to requests;
                              SOURCE is env:NAME, file:PATH, oauth:LOGIN or
                              keyring:SERVICE/ACCOUNT; `as ?NAME`: the query
  secret NAME = SOURCE exposed
                              a secret that the component is given\n",
    // `SOURCE as HEADER: VALUE for URL`, `SOURCE as ?NAME for URL`, or `SOURCE exposed`. A name
    // alone revokes the secret.
    value: |name, value| {
        let Some(value) = value else { return Some(edit::table([("from", format!("env:{name}").into())])) };
        if let Some(from) = value.strip_suffix(" exposed") {
            return Some(edit::table([("from", from.trim().into()), ("expose", true.into())]));
        }
        let (from, rest) = value.split_once(" as ")?;
        let (place, target) = rest.rsplit_once(" for ")?;
        let from = ("from", edit::Value::from(from.trim()));
        let target = ("for", edit::Value::from(target.trim()));
        let place = place.trim();
        Some(match (place.strip_prefix('?'), place.split_once(':')) {
            (Some(query), _) => edit::table([from, ("query", query.into()), target]),
            (None, Some((header, value))) => {
                edit::table([from, ("header", header.trim().into()), ("value", value.trim().into()), target])
            }
            (None, None) => edit::table([from, ("header", place.into()), target]),
        })
    },
    blank: " = SOURCE as HEADER: Bearer {} for URL",
    ..Right::NONE
};

/// A secret that the guest gets as a variable and as a setting.
pub(super) fn exposed(grants: &Grants, name: &str) -> Option<RuleRef> {
    let exposed = |secret: &&Secret| secret.name() == name && *secret.delivery() == Delivery::Expose;
    grants.secrets().iter().find(exposed).map(|secret| RuleRef::new(name, secret.span()))
}

/// An exposed secret must not share its name with a variable or a setting.
pub(super) fn refuse_second_names(grants: &Grants, problems: &mut Problems) {
    for secret in grants.secrets.iter().filter(|secret| *secret.delivery() == Delivery::Expose) {
        let variable = grants.env.iter().any(|variable| variable.name() == secret.name());
        let setting = grants.config.iter().any(|(name, _)| name == secret.name());
        if variable || setting {
            let table = if variable { "env" } else { "config" };
            let message = format!("{:?} is in {table} as well, and the guest can get one value only", secret.name());
            problems
                .add(Diagnostic::error("grants::duplicate", message).at(secret.span()).hint("give one another name"));
        }
    }
}

fn canonical(secret: &Secret) -> Value {
    let from = secret.source().to_string();
    let mut shown = match secret.delivery() {
        Delivery::Header { name, template, target } => {
            json!({ "from": from, "header": name, "value": template.to_string(), "for": target.to_string() })
        }
        Delivery::Query { name, target } => json!({ "from": from, "query": name, "for": target.to_string() }),
        Delivery::Expose => json!({ "from": from, "expose": true }),
    };
    if let (SecretSource::Program(program), Some(parts)) = (secret.source(), shown.as_object_mut()) {
        parts.insert("from".to_owned(), program.canonical());
    }
    if let (SecretSource::Login(login), Some(parts)) = (secret.source(), shown.as_object_mut()) {
        let mut shown = login.canonical();
        if let Some(shown) = shown.as_object_mut() {
            // These keys do not affect an existing login.
            shown.extend(login.client_secret().map(|from| ("client_secret".to_owned(), json!(from.to_string()))));
            shown.insert("early".to_owned(), json!(login.limits().get(LoginLimit::Early)));
        }
        parts.insert("login".to_owned(), shown);
    }
    shown
}

impl LoginPolicy {
    /// The server that issues the tokens, and their purpose. A login that differs in these is a
    /// different one.
    #[must_use]
    pub fn canonical(&self) -> Value {
        let of_all = [
            ("issuer", json!(self.issuer())),
            ("authorize", json!(self.authorize())),
            ("token", json!(self.token())),
            ("device", json!(self.device())),
            ("client_id", json!(Some(self.client_id()).filter(|id| !id.is_empty()))),
            ("scopes", json!(self.scopes())),
            ("resource", json!(self.resource())),
            ("audience", json!(self.audience())),
        ];
        let of_callers = (self.owner() == LoginOwner::Caller).then_some(("of", json!("caller")));
        let exchange = self.exchange().then_some(("exchange", json!(true)));
        let passthrough = self.passthrough().map(|origin| ("passthrough", json!(origin)));
        let pasted = self.pasted().then_some(("pasted", json!(true)));
        sorted(of_all.into_iter().chain(of_callers).chain(exchange).chain(passthrough).chain(pasted))
    }
}

/// The server that issues a secret, and the requested scope.
fn login_line(source: &SecretSource) -> Option<String> {
    let SecretSource::Login(login) = source else { return None };
    if login.pasted() {
        return Some(format!("key {} of each caller", login.name()));
    }
    let server = login.issuer().or(login.token()).unwrap_or_default();
    if let Some(origin) = login.passthrough() {
        return Some(format!("login {}: each caller's own token of {server}, given to {origin}", login.name()));
    }
    let whose = match login.owner() {
        LoginOwner::Server => "",
        LoginOwner::Caller if login.exchange() => " by exchange of each caller's token",
        LoginOwner::Caller => " of each caller",
    };
    let mut line = format!("login {}{whose} at {server} as {}", login.name(), login.client_id());
    if !login.scopes().is_empty() {
        line.push_str(&format!(", for {}", login.scopes().join(" ")));
    }
    line.extend(login.resource().or(login.audience()).map(|api| format!(", to use at {api}")));
    Some(line)
}

fn same_place(one: &Secret, other: &Secret) -> bool {
    match (&one.delivery, &other.delivery) {
        (Delivery::Header { name, target, .. }, Delivery::Header { name: other, target: others, .. })
        | (Delivery::Query { name, target }, Delivery::Query { name: other, target: others }) => {
            name == other && target.overlaps(others)
        }
        _ => false,
    }
}

fn secret(
    entry: &Entry<'_>,
    network: &Network,
    logins: &[Arc<LoginPolicy>],
    problems: &mut Problems,
) -> Option<Secret> {
    if let Some(wrong) = name_problem(entry.key) {
        let message = format!("the name {:?} {wrong}", entry.key);
        problems.add(entry.key_error("grants::name", message));
    }
    if let Some(text) = entry.as_str() {
        let problem = Diagnostic::error("grants::secret", format!("{} must not hold the secret itself", entry.key));
        let hint = format!(
            "write {} = {{ from = \"env:{}\", … }} and keep the value out of the manifest",
            entry.key, entry.key
        );
        return problems.refuse(problem.at(entry.key_span.clone()).concealing().hint(
            if text.contains(':') && text.starts_with("env:") {
                format!("write {} = {{ from = {text:?}, … }}", entry.key)
            } else {
                hint
            },
        ));
    }
    let section = entry.table(&SECRET, problems)?;
    let source = source(entry, &section, logins, problems);
    let delivery = delivery(entry, &section, network, problems);
    if let (Some(SecretSource::Program(_)), Some(Delivery::Expose)) = (&source, &delivery) {
        let message = format!("{:?} comes from a program, and the guest would keep an old value", entry.key);
        let problem = Diagnostic::error("grants::secret", message).at(entry.key_span.clone());
        return problems.refuse(problem.hint("remove expose, and say which requests carry it with for"));
    }
    if let (Some(SecretSource::Login(login)), Some(Delivery::Expose)) = (&source, &delivery) {
        let message = match login.pasted() {
            false => format!("{:?} would give the guest the token of the login {:?}", entry.key, login.name()),
            true => format!("{:?} would give the guest the keys {:?} of callers", entry.key, login.name()),
        };
        let problem = Diagnostic::error("grants::secret", message).at(entry.key_span.clone());
        let hint = "tokens of a login stay with the host: remove expose, and say which requests carry it with for";
        return problems.refuse(problem.hint(hint));
    }
    let source = source?;
    let delivery = delivery?;
    if let (SecretSource::Login(login), Delivery::Header { target, .. } | Delivery::Query { target, .. }) =
        (&source, &delivery)
    {
        check_passthrough(entry, login, target, problems);
    }
    Some(Secret { name: entry.key.to_owned(), source, delivery, span: entry.key_span.clone() })
}

/// Reports a secret that would take callers' own tokens to another origin than the one that their
/// login names.
fn check_passthrough(entry: &Entry<'_>, login: &LoginPolicy, target: &HttpRule, problems: &mut Problems) {
    let Some(origin) = login.passthrough() else { return };
    let is_that_origin = HttpRule::parse(origin, entry.key_span.clone()).is_ok_and(|named| {
        (named.scheme(), named.host(), named.port()) == (target.scheme(), target.host(), target.port())
    });
    if !is_that_origin {
        let message = format!("{:?} would give callers' own tokens to another server than {origin}", entry.key);
        let problem = entry.key_error("grants::secret", message);
        problems
            .add(problem.hint(format!("[oauth.{}] names that one alone: write for = \"{origin}/…\"", login.name())));
    }
}

fn source(
    secret: &Entry<'_>,
    section: &Section<'_>,
    logins: &[Arc<LoginPolicy>],
    problems: &mut Problems,
) -> Option<SecretSource> {
    let forms = "write \"env:NAME\", \"file:PATH\", \"keyring:SERVICE/ACCOUNT\", \"oauth:NAME\", \"caller:NAME\" or \
                 { exec = [\"/PROGRAM\"] }";
    let Some(from) = section.get("from") else {
        let message = format!("the secret {:?} does not say where its value is from", secret.key);
        return problems.refuse(secret.key_error("manifest::missing", message).hint(forms));
    };
    if from.is_table() {
        return program(&from, problems).map(|program| SecretSource::Program(Arc::new(program)));
    }
    match from.as_str().and_then(|text| text.strip_prefix("oauth:")) {
        Some(name) => login(&from, name, logins, problems),
        None => match from.as_str().and_then(|text| text.strip_prefix("caller:")) {
            Some(name) => pasted(&from, name, logins, problems),
            None => named(&from, forms, problems),
        },
    }
}

/// A key of this name that each caller pastes.
fn pasted(from: &Entry<'_>, name: &str, logins: &[Arc<LoginPolicy>], problems: &mut Problems) -> Option<SecretSource> {
    if logins.iter().any(|login| login.name() == name) {
        let problem = from.error("grants::source", format!("{name:?} is the name of a login"));
        return problems.refuse(problem.hint(format!("write \"oauth:{name}\", or give the key another name")));
    }
    if check_component(name).is_err() {
        let problem = from.error("grants::source", format!("{name:?} is not the name of a key"));
        return problems.refuse(problem.hint("write 1 to 64 of a-z, 0-9, _ and -, a letter or a digit first"));
    }
    Some(SecretSource::Login(Arc::new(LoginPolicy::of_pasted(name))))
}

/// The login of this name.
fn login(from: &Entry<'_>, name: &str, logins: &[Arc<LoginPolicy>], problems: &mut Problems) -> Option<SecretSource> {
    if let Some(login) = logins.iter().find(|login| login.name() == name) {
        return Some(SecretSource::Login(Arc::clone(login)));
    }
    let problem = from.error("grants::source", format!("there is no login {name:?}"));
    problems.refuse(match did_you_mean(name, logins.iter().map(|login| login.name())) {
        Some(known) => problem.hint(format!("did you mean \"oauth:{known}\"?")),
        None => problem.hint("name its authorization server in [oauth.NAME], with issuer and client_id"),
    })
}

/// The place of a secret of the host itself.
pub(crate) fn source_of_host(from: &Entry<'_>, problems: &mut Problems) -> Option<SecretSource> {
    named(from, FORMS_OF_HOST, problems)
}

/// The place of a secret.
fn named(from: &Entry<'_>, forms: &str, problems: &mut Problems) -> Option<SecretSource> {
    let text = from.string(problems)?;
    let read = match text.split_once(':') {
        Some(("env", name)) if name_problem(name).is_none() => Some(SecretSource::Env(name.to_owned())),
        Some(("file", path)) => match paths::check_host_path(from.key, path) {
            Ok(path) => Some(SecretSource::File(path)),
            Err(problem) => {
                return problems.refuse(problem.at(from.span.clone()));
            }
        },
        Some(("keyring", entry)) => {
            entry.split_once('/').filter(|(service, account)| !service.is_empty() && !account.is_empty()).map(
                |(service, account)| SecretSource::Keyring { service: service.to_owned(), account: account.to_owned() },
            )
        }
        _ => None,
    };
    if read.is_none() {
        // The text may be the secret: it is neither quoted nor drawn.
        problems.add(
            from.key_error("grants::source", format!("{} is not a source of secrets", from.key))
                .concealing()
                .hint(forms),
        );
    }
    read
}

fn delivery(secret: &Entry<'_>, section: &Section<'_>, network: &Network, problems: &mut Problems) -> Option<Delivery> {
    let expose = match section.get("expose") {
        Some(entry) => entry.boolean(problems)?,
        None => false,
    };
    let error = |message: String| Diagnostic::error("grants::secret", message);
    if expose {
        for entry in ["header", "query", "value", "for"].iter().filter_map(|key| section.get(key)) {
            let message = format!("{} with expose = true can never apply", entry.key);
            problems.add(error(message).at(entry.key_span).hint("the guest gets the value itself: remove one of them"));
        }
        return Some(Delivery::Expose);
    }
    match (section.get("header"), section.get("query")) {
        (Some(header), None) => {
            let name = header_name(&header, problems);
            let template = template(section, problems);
            let target = target(secret, section, network, problems);
            Some(Delivery::Header { name: name?, template: template?, target: target? })
        }
        (None, Some(query)) => {
            if let Some(value) = section.get("value") {
                problems.add(
                    error("value with query can never apply".to_owned())
                        .at(value.key_span)
                        .hint("the query holds the secret alone"),
                );
            }
            let name = query_name(&query, problems);
            let target = target(secret, section, network, problems);
            Some(Delivery::Query { name: name?, target: target? })
        }
        (Some(_), Some(query)) => {
            problems.refuse(error("a secret goes to a header or a query, not both".to_owned()).at(query.key_span))
        }
        (None, None) => {
            let message = format!("the secret {:?} is not used", secret.key);
            problems.refuse(error(message).at(secret.key_span.clone()).hint(
                "add header = \"Authorization\", value = \"Bearer {}\", for = \"https://…\"; or expose = true to give it to the guest",
            ))
        }
    }
}

fn header_name(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    match secret_header_fault(text) {
        None => Some(text.to_ascii_lowercase()),
        Some(wrong) => problems.refuse(entry.error("grants::secret", format!("header {text:?} {wrong}"))),
    }
}

/// Why no secret can be this header, as the end of a sentence; `None` if one can.
#[must_use]
pub fn secret_header_fault(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > PART_BYTES_MAX || !name.bytes().all(is_token) {
        return Some("is not a header name");
    }
    let is_refused = REFUSED_HEADERS.contains(&name.to_ascii_lowercase().as_str());
    is_refused.then_some("is a header that says where a message goes or ends, and no secret may set it")
}

/// True if a secret can be this part of the query.
#[must_use]
pub fn is_secret_query(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    !name.is_empty() && name.len() <= PART_BYTES_MAX && name.bytes().all(is_plain)
}

fn query_name(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let name = entry.string(problems)?;
    if is_secret_query(name) {
        return Some(name.to_owned());
    }
    let message = format!("query {name:?} is not the name of a query parameter");
    let problem = entry.error("grants::secret", message);
    problems.refuse(problem.hint("names are letters, digits, -, _, . and ~"))
}

fn template(section: &Section<'_>, problems: &mut Problems) -> Option<SecretTemplate> {
    let Some(entry) = section.get("value") else { return SecretTemplate::parse("{}") };
    let text = entry.string(problems)?;
    let wrong = if text.len() > PART_BYTES_MAX {
        "is too long"
    } else if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        "must hold only visible ASCII characters and spaces"
    } else if let Some(template) = SecretTemplate::parse(text) {
        return Some(template);
    } else {
        "must have {} once, where the secret goes"
    };
    // A text without {} may be the secret itself: it is neither quoted nor drawn.
    problems
        .refuse(entry.key_error("grants::secret", format!("value {wrong}")).concealing().hint("write \"Bearer {}\""))
}

/// The requests that carry the secret. A rule must allow some of them, or the secret could never be
/// sent.
fn target(secret: &Entry<'_>, section: &Section<'_>, network: &Network, problems: &mut Problems) -> Option<HttpRule> {
    let Some(entry) = section.get("for") else {
        let message = format!("the secret {:?} does not say which requests carry it", secret.key);
        let problem = secret.key_error("manifest::missing", message);
        return problems.refuse(problem.hint("add for = \"https://api.example.com\""));
    };
    let text = entry.string(problems)?;
    let rule = match HttpRule::parse(text, entry.span.clone()) {
        Ok(rule) => rule,
        Err(error) => {
            return problems.refuse(rule_problem("for", text, &error, entry.span));
        }
    };
    if !network.http.iter().any(|allowed| allowed.overlaps(&rule)) {
        let message = format!("no http rule allows a request that would carry {:?}", secret.key);
        let problem = entry.error("grants::unreachable", message);
        problems.add(problem.hint(format!("add http = [{text:?}] to the component's network, or mend one of them")));
    }
    if *rule.host() == crate::grants::HostPattern::Any {
        let problem = entry.error("grants::secret", "a secret must not go to every host");
        problems.add(problem.hint("name the host that knows the secret"));
    } else if rule.scheme() == Scheme::Http {
        let problem = Diagnostic::warning("grants::secret", "the secret is sent without encryption").at(entry.span);
        problems.add(problem.hint("use https where the host can"));
    }
    Some(rule)
}
