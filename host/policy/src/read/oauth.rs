//! Reads `[http.oauth]`. Must not hold: what a token is.

use url::{Host, Url};

use super::{Entry, Problems, Section, keys, limits};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::oauth::{ALGORITHMS, IssuerPolicy, OauthPolicy};
use crate::names::{check_component, did_you_mean};

/// Issuers of one server. Most have one.
const ISSUERS_MAX: usize = 8;

/// Scopes that are needed, and audiences of an issuer.
const LISTED_MAX: usize = 64;

/// The longest address, scope or audience, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;

/// The settings; `None` where there is no such table.
pub(crate) fn read(http: &Section<'_>, problems: &mut Problems) -> Option<OauthPolicy> {
    let entry = http.get("oauth")?;
    let section = entry.section(problems)?;
    section.check_keys(&keys::OAUTH, problems);
    let resource = match section.get("resource") {
        Some(entry) => address(&entry, problems),
        None => {
            let hint = "write resource = \"https://tools.example.com/mcp\": the address that clients connect to";
            problems.add(missing("the server's own address", &entry.key_span, hint));
            None
        }
    };
    let scopes = section.get("scopes").map(|entry| texts(&entry, true, problems)).unwrap_or_default();
    let mut issuers: Vec<IssuerPolicy> = Vec::new();
    let named = section.get("issuers").and_then(|entry| Some((entry.section(problems)?, entry)));
    if let Some((table, at)) = &named {
        if table.len() > ISSUERS_MAX {
            let message = format!("{} issuers, {ISSUERS_MAX} are allowed", table.len());
            problems.add(Diagnostic::error("oauth::too_many", message).at(at.key_span.clone()));
            return None;
        }
        for entry in table.entries() {
            let Some((issuer, span)) = issuer(&entry, resource.as_deref(), problems) else { continue };
            if issuers.iter().any(|known| known.issuer == issuer.issuer) {
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

fn issuer(entry: &Entry<'_>, resource: Option<&str>, problems: &mut Problems) -> Option<(IssuerPolicy, Span)> {
    if let Err(error) = check_component(entry.key) {
        problems.add(
            Diagnostic::error("oauth::name", format!("the issuer's name {:?} {error}", entry.key))
                .at(entry.key_span.clone())
                .hint("names are 1 to 64 of a-z, 0-9, _ and -, and start with a letter or a digit"),
        );
    }
    let section = entry.section(problems)?;
    section.check_keys(&keys::ISSUER, problems);
    let Some(at) = section.get("issuer") else {
        let message = format!("[http.oauth.issuers.{}] does not name the issuer", entry.key);
        let problem = Diagnostic::error("oauth::missing", message).at(entry.key_span.clone());
        problems.add(problem.hint("write issuer = \"https://login.example.com\": what its tokens say as `iss`"));
        return None;
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
    let mut values = IssuerPolicy::LIMITS.map(|spec| spec.default);
    for (spec, value) in IssuerPolicy::LIMITS.into_iter().zip(&mut values) {
        let read = section.get(spec.key).and_then(|entry| limits::value(&entry, spec, problems));
        *value = read.unwrap_or(*value);
    }
    let name = entry.key.to_owned();
    Some((IssuerPolicy { name, issuer: issuer?, jwks, audiences, algorithms, values }, span))
}

/// An address, as it was written: tokens repeat it to the letter.
fn address(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let wrong = match Url::parse(text) {
        _ if text.len() > TEXT_BYTES_MAX => Some("is too long"),
        Err(_) => Some("is no address"),
        Ok(url) if url.host().is_none() || !url.username().is_empty() || url.password().is_some() => {
            Some("is no address of a server")
        }
        Ok(url) if url.fragment().is_some() || url.query().is_some() => Some("has a query or a fragment"),
        Ok(url) if url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url)) => None,
        Ok(_) => Some("is not reached over https"),
    };
    // What stands in a header and in a document is taken as it is.
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    let Some(wrong) = wrong.or((!plain).then_some("has characters that an address has not")) else {
        return Some(text.to_owned());
    };
    problems.add(
        Diagnostic::error("oauth::address", format!("{} {text:?} {wrong}", entry.key))
            .at(entry.span.clone())
            .hint("write \"https://…\", without query and fragment; http is for loopback alone"),
    );
    None
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// A text or several.
fn texts(entry: &Entry<'_>, scopes: bool, problems: &mut Problems) -> Vec<String> {
    let listed = match entry.as_str() {
        Some(text) if !scopes => vec![(text, entry.span.clone())],
        _ => entry.strings(LISTED_MAX, problems).unwrap_or_default(),
    };
    if listed.is_empty() && entry.is_empty_list() && !scopes {
        let message = format!("{} is empty: no token is meant for nobody", entry.key);
        let hint = "name at least one, or remove it: then it is the resource";
        problems.add(Diagnostic::error("oauth::audience", message).at(entry.span.clone()).hint(hint));
    }
    let mut read = Vec::new();
    for (text, span) in listed {
        // A scope stands between quotes in a header, with spaces between (RFC 6749 section 3.3).
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
        if plain && !text.is_empty() && text.len() <= TEXT_BYTES_MAX {
            read.push(text.to_owned());
            continue;
        }
        let what = if scopes { "no scope" } else { "no audience" };
        let problem = Diagnostic::error("oauth::text", format!("{text:?} is {what}")).at(span);
        problems.add(problem.hint("write visible ASCII characters without quotes and backslashes, each by itself"));
    }
    read
}

fn algorithms(entry: &Entry<'_>, problems: &mut Problems) -> Vec<&'static str> {
    let texts = entry.strings(ALGORITHMS.len(), problems).unwrap_or_default();
    if entry.is_empty_list() {
        let problem = Diagnostic::error("oauth::algorithms", "algorithms is empty: no token could be checked");
        problems.add(problem.at(entry.span.clone()).hint("name at least one, or remove it: then all are taken"));
    }
    let mut read = Vec::new();
    for (text, span) in texts {
        if let Some(known) = ALGORITHMS.into_iter().find(|known| *known == text) {
            read.push(known);
            continue;
        }
        let problem =
            Diagnostic::error("oauth::algorithms", format!("{text:?} is no algorithm that is taken")).at(span);
        problems.add(match did_you_mean(text, ALGORITHMS) {
            Some(known) if !text.starts_with("HS") => problem.hint(format!("did you mean {known:?}?")),
            _ => problem.hint(format!("write {}", ALGORITHMS.join(", "))),
        });
    }
    read
}
