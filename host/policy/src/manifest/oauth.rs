//! The section `[http.oauth]`: whose tokens callers may show, and what these must say.

use std::time::Duration;

use url::{Host, Url};

use super::login::names_host;
use crate::diagnostic::{Diagnostic, Span};
use crate::limits::limits;
use crate::names::{check_component, did_you_mean};
use crate::quantity::{DAY, HOUR, MINUTE, SECOND};
use crate::read::{Entry, Problems};
use crate::settings::accessors;
use crate::table::{Definition, Keys, ONE_OR_SEVERAL, Shape, table};

/// The known algorithms of signatures, by their names in tokens (RFC 7518, RFC 8037). None has a
/// shared key.
pub(crate) const ALGORITHMS: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

/// Issuers of one server. Most have one.
const ISSUERS_MAX: usize = 8;

/// The most required scopes, and the most audiences of an issuer.
const LISTED_MAX: usize = 64;

/// The longest address, scope or audience, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

table! {
    /// The server as a resource of OAuth 2.1: whose tokens callers may show, besides those of
    /// `tokens`.
    pub(crate) OAUTH "Oauth" {
        /// The server's own address, as clients know it.
        "resource" required: Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://tools.example.com/mcp"]};
        /// The scopes that every caller with an issuer's token needs, all of them. `[callers]` says
        /// what further scopes allow.
        "scopes": List(&Text), {"maxItems": LISTED_MAX, "examples": [["tools"]]};
        /// The authorization servers whose tokens are taken, by name: 1 to 64 of `a-z`, `0-9`, `_`
        /// and `-`. A caller is `NAME:SUBJECT`.
        "issuers" required: Named(&Table(&ISSUER)),
            {"propertyNames": {"pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}, "minProperties": 1, "maxProperties": ISSUERS_MAX};
    }
    other names {
        "url" => "resource", "scope" => "scopes", "issuer" => "issuers", "audience" => "resource",
    }
}

table! {
    /// One authorization server.
    pub(crate) ISSUER "Issuer" {
        /// Its name in tokens, the claim `iss`.
        "issuer" required: Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://login.example.com"]};
        /// The address of its keys; by default from its metadata (RFC 8414, or OpenID Connect
        /// Discovery).
        "jwks": Text,
            {"minLength": 1, "maxLength": TEXT_BYTES_MAX, "examples": ["https://login.example.com/keys"]};
        /// The audiences of tokens that are taken, the claim `aud`: one of these; `resource` by
        /// default.
        "audience": Definition(&AUDIENCE),
            {"examples": ["api://tools", ["api://tools", "https://tools.example.com/mcp"]]};
        /// The algorithms that may sign its tokens; all of these by default. Neither shared keys
        /// nor `none` are possible.
        "algorithms": List(&Definition(&ALGORITHM)),
            {"minItems": 1, "maxItems": ALGORITHMS.len(), "examples": [["RS256", "ES256"]]};
    }
    and Keys::These(&IssuerLimit::KEYS);
    other names {
        "iss" => "issuer", "url" => "issuer", "aud" => "audience", "audiences" => "audience", "jwks_uri" => "jwks",
        "jwks_url" => "jwks", "keys" => "jwks", "cache" => "fresh", "skew" => "leeway",
    }
}

static AUDIENCE: Definition =
    Definition { name: "Audience", about: "One audience, or several.", shape: ONE_OR_SEVERAL };
static ALGORITHM: Definition =
    Definition { name: "Algorithm", about: "An algorithm of signatures.", shape: Shape::Words(&ALGORITHMS) };

limits! {
    /// The times of one issuer.
    IssuerLimit, IssuerLimits;
    /// The most by which the clocks of issuer and server may differ.
    Leeway leeway: Duration = "leeway" Millis { min: 0, default: 30 * SECOND, max: 5 * MINUTE }, like ["5s"],
        "Counts where a token begins and ends to hold.";
    /// The age at which its keys are fetched again.
    Fresh fresh: Duration = "fresh" Millis { min: SECOND / 10, default: 10 * MINUTE, max: DAY }, like ["1h"],
        "For so long a key that was taken back is still taken.";
    /// The least time between two fetches of its keys.
    Refresh refresh: Duration = "refresh" Millis { min: SECOND / 10, default: 10 * SECOND, max: HOUR }, like ["1m"],
        "A token of a key that is not known asks for a fetch, and anybody can make such a token.";
    /// The time past `fresh` for which known keys go on while the issuer gives none.
    Outage outage: Duration = "outage" Millis { min: 0, default: HOUR, max: 7 * DAY }, like ["10m"],
        "After it, callers get 503 and should try again.";
}

accessors! {
    /// The server as a resource of OAuth 2.1.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct OauthPolicy {
        /// The server's own address, as clients know it.
        pub(crate) resource: String => &str,
        /// The scopes that every caller with a token of an issuer needs, all of them.
        pub(crate) scopes: Vec<String> => &[String],
        /// The issuers, in the order of the file; at least one.
        pub(crate) issuers: Vec<IssuerPolicy> => &[IssuerPolicy],
    }
}

accessors! {
    /// One authorization server whose tokens are taken.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct IssuerPolicy {
        /// Its name in the manifest, which stands before the names of its callers: `NAME:SUBJECT`.
        pub(crate) name: String => &str,
        /// Its name in tokens, the claim `iss`.
        pub(crate) issuer: String => &str,
        /// The address of its keys; `None`: its metadata tells it.
        pub(crate) jwks: Option<String> => Option<&str>,
        /// The audiences of tokens that are taken, the claim `aud`: one of these.
        pub(crate) audiences: Vec<String> => &[String],
        /// The algorithms that may sign its tokens, by the names of RFC 7518 and RFC 8037.
        pub(crate) algorithms: Vec<&'static str> => &[&'static str],
        /// Its times.
        pub(crate) limits: IssuerLimits => &IssuerLimits,
    }
}

/// The settings; `None` where the server's own address is missing or wrong.
pub(crate) fn read(entry: &Entry<'_>, problems: &mut Problems) -> Option<OauthPolicy> {
    let section = entry.table(&OAUTH, problems)?;
    let resource = match section.get("resource") {
        Some(entry) => address(&entry, problems),
        None => {
            let hint = "write resource = \"https://tools.example.com/mcp\": the address that clients connect to";
            problems.refuse(missing("the server's own address", &entry.key_span, hint))
        }
    };
    let scopes = section.get("scopes").map(|entry| texts(&entry, true, problems)).unwrap_or_default();
    let mut issuers: Vec<IssuerPolicy> = Vec::new();
    let named = section.get("issuers").and_then(|entry| Some((entry.section(problems)?, entry)));
    if let Some((table, at)) = &named {
        if table.len() > ISSUERS_MAX {
            let message = format!("{} issuers, at most {ISSUERS_MAX} are allowed", table.len());
            return problems.refuse(at.key_error("oauth::too_many", message));
        }
        for entry in table.entries() {
            let Some((issuer, span)) = issuer(&entry, resource.as_deref(), problems) else { continue };
            // Tokens repeat an issuer literally, and its keys come from its host.
            let is_same = |known: &IssuerPolicy| Url::parse(&known.issuer).ok() == Url::parse(&issuer.issuer).ok();
            if issuers.iter().any(is_same) {
                let message = format!("{:?} is an issuer already", issuer.issuer);
                problems.add(Diagnostic::error("oauth::twice", message).at(span));
            }
            issuers.push(issuer);
        }
    }
    if named.is_none_or(|(table, _)| table.len() == 0) && section.get("issuers").is_none_or(|entry| entry.is_table()) {
        let hint = "write [http.oauth.issuers.NAME] with issuer = \"https://login.example.com\"";
        problems.add(missing("an issuer whose tokens are taken", &entry.key_span, hint));
    }
    Some(OauthPolicy { resource: resource?, scopes, issuers })
}

fn missing(what: &str, span: &Span, hint: &str) -> Diagnostic {
    Diagnostic::error("oauth::missing", format!("[http.oauth] lacks {what}")).at(span.clone()).hint(hint)
}

/// Checks the name of a login or an issuer.
pub(super) fn check_name(entry: &Entry<'_>, what: &str, problems: &mut Problems) {
    if let Err(error) = check_component(entry.key) {
        problems.add(
            entry
                .key_error("oauth::name", format!("the {what}'s name {:?} {error}", entry.key))
                .hint("names are 1 to 64 of a-z, 0-9, _ and -, and start with a letter or a digit"),
        );
    }
}

fn issuer(entry: &Entry<'_>, resource: Option<&str>, problems: &mut Problems) -> Option<(IssuerPolicy, Span)> {
    check_name(entry, "issuer", problems);
    let section = entry.table(&ISSUER, problems)?;
    let Some(at) = section.get("issuer") else {
        let message = format!("[http.oauth.issuers.{}] does not name the issuer", entry.key);
        let problem = entry.key_error("oauth::missing", message);
        return problems
            .refuse(problem.hint("write issuer = \"https://login.example.com\": what its tokens say as `iss`"));
    };
    let span = at.span.clone();
    let issuer = address(&at, problems);
    let jwks = section.get("jwks").and_then(|entry| address(&entry, problems));
    let audiences = match section.get("audience") {
        Some(entry) => texts(&entry, false, problems),
        None => resource.map(str::to_owned).into_iter().collect(),
    };
    let algorithms =
        section.get("algorithms").map_or_else(|| ALGORITHMS.to_vec(), |entry| algorithms(&entry, problems));
    let limits = IssuerLimits::default().read(&section, problems);
    let name = entry.key.to_owned();
    Some((IssuerPolicy { name, issuer: issuer?, jwks, audiences, algorithms, limits }, span))
}

/// An address, unchanged: tokens repeat it literally.
fn address(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = match Url::parse(text) {
        _ if text.len() > TEXT_BYTES_MAX => Some("is too long"),
        Err(_) => Some("is not an address"),
        Ok(url)
            if !names_host(text) || url.host().is_none() || !url.username().is_empty() || url.password().is_some() =>
        {
            Some("is not a server address")
        }
        Ok(url) if url.fragment().is_some() || url.query().is_some() => Some("has a query or a fragment"),
        Ok(url) if url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url)) => None,
        Ok(_) => Some("is not reached over https"),
    };
    // The text goes into a header and a document unchanged.
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    let Some(wrong) = wrong.or((!plain).then_some("has characters that are not allowed in an address")) else {
        return Some(text.to_owned());
    };
    problems.refuse(
        entry
            .error("oauth::address", format!("{} {text:?} {wrong}", entry.key))
            .hint("write \"https://…\", without query and fragment; http is for loopback alone"),
    )
}

/// True if the address names this machine by itself.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// One text, or a list of them.
fn texts(entry: &Entry<'_>, scopes: bool, problems: &mut Problems) -> Vec<String> {
    let listed = match entry.as_str() {
        Some(text) if !scopes => vec![(text, entry.span.clone())],
        _ => entry.strings(LISTED_MAX, problems).unwrap_or_default(),
    };
    if listed.is_empty() && entry.is_empty_list() && !scopes {
        let message = format!("{} is empty, so no token could match", entry.key);
        let hint = "name at least one, or remove it: then it is the resource";
        problems.add(entry.error("oauth::audience", message).hint(hint));
    }
    let mut read = Vec::new();
    for (text, span) in listed {
        // Scopes are quoted and separated by spaces in a header (RFC 6749 section 3.3).
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
        if plain && !text.is_empty() && text.len() <= TEXT_BYTES_MAX {
            read.push(text.to_owned());
            continue;
        }
        let what = if scopes { "not a scope" } else { "not an audience" };
        let problem = Diagnostic::error("oauth::text", format!("{text:?} is {what}")).at(span);
        problems.add(problem.hint("write visible ASCII characters without quotes and backslashes, each by itself"));
    }
    read
}

fn algorithms(entry: &Entry<'_>, problems: &mut Problems) -> Vec<&'static str> {
    let texts = entry.strings(ALGORITHMS.len(), problems).unwrap_or_default();
    if entry.is_empty_list() {
        let problem = Diagnostic::error("oauth::algorithms", "algorithms is empty: no token could be checked");
        problems.add(problem.at(entry.span.clone()).hint("name at least one, or remove it: then all are accepted"));
    }
    let mut read = Vec::new();
    for (text, span) in texts {
        if let Some(known) = ALGORITHMS.into_iter().find(|known| *known == text) {
            read.push(known);
            continue;
        }
        let problem = Diagnostic::error("oauth::algorithms", format!("unsupported algorithm {text:?}")).at(span);
        problems.add(match did_you_mean(text, ALGORITHMS) {
            Some(known) if !text.starts_with("HS") => problem.hint(format!("did you mean {known:?}?")),
            _ => problem.hint(format!("write {}", ALGORITHMS.join(", "))),
        });
    }
    read
}
