//! The server that a document names: variables with their defaults, and addresses relative to the
//! document's own.
use std::fmt;

use serde_json::Value;

use crate::document::Document;
use crate::names::shown;
use crate::{BridgeError, BridgeOptions};

/// Variables of one server's address. 20: the largest public ones have four.
const VARIABLES_MAX: usize = 20;

/// Servers that are looked at for one with a host. 20: the largest public list has some ten.
const SERVERS_MAX: usize = 20;

/// Longest address of a server, in bytes.
const ADDRESS_BYTES_MAX: usize = 2_048;

/// A server's scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: String,
    /// The host in lower case, with the port unless it is the scheme's own.
    pub authority: String,
}

/// A server with the path that all its paths begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) origin: Origin,
    /// Empty, or a path that does not end with a slash.
    pub(crate) path: String,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme, self.authority)
    }
}

impl fmt::Display for Base {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.origin, self.path)
    }
}

/// The server of a document: that of the command line, or the first of its own.
pub(crate) fn of_document(document: &Document<'_>, options: &BridgeOptions) -> Result<Base, BridgeError> {
    let hint = "name the server with --server, such as --server https://api.example.com/v1";
    if let Some(server) = &options.server {
        return Base::parse(server).map_err(|problem| BridgeError::new(format!("--server {problem}"), hint));
    }
    let own = address_of_part(document.root.get("servers"), options).unwrap_or_else(|| Ok("/".to_owned()));
    own.and_then(|own| resolved(&own, options.address.as_deref())).map_err(|problem| BridgeError::new(problem, hint))
}

/// The server of a path or an operation, if it has one of its own.
pub(crate) fn of_part(part: &Value, options: &BridgeOptions) -> Option<Result<Base, String>> {
    if options.server.is_some() {
        return None;
    }
    let own = address_of_part(part.get("servers"), options)?;
    Some(own.and_then(|own| resolved(&own, options.address.as_deref())))
}

/// The address of the first server. In a file, which relative ones cannot refer to, that of the
/// first one with a host.
fn address_of_part(servers: Option<&Value>, options: &BridgeOptions) -> Option<Result<String, String>> {
    let mut addresses = servers?.as_array()?.iter().take(SERVERS_MAX).map(address_of);
    let first = addresses.next()?;
    if options.address.is_some() || first.as_ref().map_or(true, |first| has_host(first)) {
        return Some(first);
    }
    Some(addresses.flatten().find(|other| has_host(other)).map_or(first, Ok))
}

fn has_host(address: &str) -> bool {
    address.contains("://") || address.starts_with("//")
}

/// A server's address with the defaults of its variables.
fn address_of(server: &Value) -> Result<String, String> {
    let url = server.get("url").and_then(Value::as_str).ok_or("a server of the document has no url")?;
    let mut address = String::new();
    let mut rest = url;
    for _ in 0..=VARIABLES_MAX {
        let Some((before, behind)) = rest.split_once('{') else {
            address.push_str(rest);
            return Ok(address);
        };
        let (name, behind) = behind.split_once('}').ok_or_else(|| format!("the server {} is cut off", shown(url)))?;
        let value = server.get("variables").and_then(|variables| variables.get(name)?.get("default"));
        let value = match value {
            Some(Value::String(value)) => value.clone(),
            Some(Value::Number(value)) => value.to_string(),
            _ => return Err(format!("the server {} has no default for {}", shown(url), shown(name))),
        };
        address.push_str(before);
        address.push_str(&value);
        rest = behind;
    }
    Err(format!("the server {} has more than {VARIABLES_MAX} variables", shown(url)))
}

/// A server's address as it stands in a document of this address.
fn resolved(address: &str, document: Option<&str>) -> Result<Base, String> {
    if address.contains("://") {
        return Base::parse(address);
    }
    if let Some(rest) = address.strip_prefix("//") {
        // A file has no scheme.
        let scheme = document.and_then(|document| document.split_once("://")).map_or("https", |(scheme, _)| scheme);
        return Base::parse(&format!("{scheme}://{rest}"));
    }
    let relative = || format!("the document's server {} has no host, and a file has none either", shown(address));
    let document = Base::of_document(document.ok_or_else(relative)?)?;
    let path = if address.starts_with('/') {
        address.to_owned()
    } else {
        let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{address}")
    };
    Base::parse(&format!("{}{}", document.origin, without_dots(&path)))
}

/// A path without the segments `.` and `..`, merged as RFC 3986, section 5.2.4, has it.
fn without_dots(path: &str) -> String {
    let mut merged: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(merged.pop()),
            segment => merged.push(segment),
        }
    }
    format!("/{}", merged.join("/"))
}

impl Base {
    /// A server's address. `Err` is a sentence's end, or a whole one.
    pub(crate) fn parse(address: &str) -> Result<Self, String> {
        let wrong = |problem: &str| format!("{} {problem}", shown(address));
        if address.len() > ADDRESS_BYTES_MAX {
            return Err(wrong("is too long for the address of a server"));
        }
        let (scheme, rest) = address.split_once("://").ok_or_else(|| wrong("is not an address"))?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "https" && scheme != "http" {
            return Err(wrong("is not the address of an HTTP server"));
        }
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let authority = authority_of(&scheme, authority).ok_or_else(|| wrong("has no proper host"))?;
        let path = path.trim_end_matches('/');
        if !path.split('/').all(is_segment) {
            return Err(wrong("has a path that servers may read in several ways, or a query"));
        }
        Ok(Self { origin: Origin { scheme, authority }, path: path.to_owned() })
    }

    /// The address of a document, whose query does not count.
    fn of_document(address: &str) -> Result<Self, String> {
        Self::parse(address.split(['?', '#']).next().unwrap_or(address))
    }
}

/// Host and port in their usual form. `None` if it is not a plain one, or has a name and a
/// password.
fn authority_of(scheme: &str, authority: &str) -> Option<String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (inner, behind) = rest.split_once(']')?;
            inner.parse::<std::net::Ipv6Addr>().ok()?;
            let port = if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) };
            (format!("[{}]", inner.to_ascii_lowercase()), port)
        }
        None => {
            let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
            let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if host.is_empty() || !host.bytes().all(is_host) {
                return None;
            }
            (host.to_ascii_lowercase(), port)
        }
    };
    let default = if scheme == "https" { 443 } else { 80 };
    let is_number = |port: &&str| port.bytes().all(|byte| byte.is_ascii_digit());
    match port {
        None => Some(host),
        Some(port) => {
            let port: u16 = Some(port).filter(is_number)?.parse().ok().filter(|port| *port > 0)?;
            Some(if port == default { host } else { format!("{host}:{port}") })
        }
    }
}

/// True if every server reads this part of a path in the same way.
pub(crate) fn is_segment(segment: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'(),;=:@+".contains(&byte);
    segment.bytes().all(is_plain) && !matches!(segment, "." | "..") && !segment.starts_with("..;")
}
