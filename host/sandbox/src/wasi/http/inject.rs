//! Putting secrets into the requests that the manifest names them for.
//!
//! It happens after the policy's decision and after everything that a guest can see of its request:
//! the value goes to the server and nowhere else. The response is searched for it.
use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use toolcell_policy::{Delivery, HttpAsk, SecretTemplate};
use toolcell_wall::doors::http_fault::HttpFault;
use zeroize::Zeroizing;

use crate::secrets::{HeldSecret, NoValue, Redactor, SecretValue, Secrets, percent_query};

/// Adds secrets to requests.
pub(super) struct Injector(Arc<Secrets>);

/// Why a request lacks its secret, and is therefore not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotInjected {
    /// The secret has no value now.
    NoValue,
    /// A header cannot have its characters.
    Unfit,
}

impl From<NotInjected> for HttpFault {
    fn from(not_injected: NotInjected) -> Self {
        match not_injected {
            NotInjected::NoValue => Self::HttpRequestDenied,
            NotInjected::Unfit => Self::ConfigurationError,
        }
    }
}

impl Injector {
    pub(super) const fn new(secrets: Arc<Secrets>) -> Self {
        Self(secrets)
    }

    /// Replaces the values that were added so far in everything that a server may send back.
    pub(super) fn redactor(&self) -> Redactor {
        self.0.injected().now()
    }

    /// Adds each secret for this request, replacing the guest's own field. Returns true if there
    /// was any.
    pub(super) async fn inject(
        &self,
        ask: &HttpAsk,
        fields: &mut HeaderMap,
        target: &mut String,
    ) -> Result<bool, NotInjected> {
        let mut any = false;
        for (secret, held) in self.0.iter().filter(|(secret, _)| secret.matches(ask)) {
            let current;
            let value = match held {
                HeldSecret::Fixed(value) => value,
                HeldSecret::Live(live) => {
                    current = live.value().await.map_err(|NoValue| NotInjected::NoValue)?;
                    &current
                }
                HeldSecret::OfCaller(_) => return Err(NotInjected::NoValue),
            };
            match secret.delivery() {
                Delivery::Header { name, template, .. } => {
                    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| NotInjected::Unfit)?;
                    fields.insert(name, header_value(template, value).ok_or(NotInjected::Unfit)?);
                }
                Delivery::Query { name, .. } => *target = with_query(target, name, value),
                Delivery::Expose => continue,
            }
            any = true;
        }
        if any {
            // The response is searched for secrets, so it must not be compressed.
            fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        Ok(any)
    }
}

/// The value of a header with a secret; `None` if a header cannot have its characters.
fn header_value(template: &SecretTemplate, value: &SecretValue) -> Option<HeaderValue> {
    let text = [template.before().as_bytes(), value.reveal().as_bytes(), template.after().as_bytes()].concat();
    let text = Zeroizing::new(text);
    let mut value = HeaderValue::from_bytes(&text).ok()?;
    // It must not appear in logs or in HTTP/2's table of headers.
    value.set_sensitive(true);
    Some(value)
}

/// The target with `name=value` at the end of its query, and without other parts of that name.
fn with_query(target: &str, name: &str, value: &SecretValue) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let others = query.split('&').filter(|part| {
        let key = part.split('=').next().unwrap_or_default();
        !part.is_empty() && decoded(key) != name.as_bytes()
    });
    let name = percent_query(name.as_bytes());
    let value = percent_query(value.reveal().as_bytes());
    let own = Zeroizing::new(format!("{}={}", String::from_utf8_lossy(&name), String::from_utf8_lossy(&value)));
    let parts: Vec<&str> = others.chain([own.as_str()]).collect();
    format!("{path}?{}", parts.join("&"))
}

/// A part of a query without its percent-encoding and its plus signs, as servers read it.
fn decoded(text: &str) -> Vec<u8> {
    let hex =
        |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16)).and_then(|it| u8::try_from(it).ok());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let encoded = hex(after.first()).zip(hex(after.get(1))).filter(|_| *first == b'%');
        match encoded {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_secret_takes_the_place_of_every_part_with_its_name() {
        let value = SecretValue::new(Zeroizing::new("a b&c=d".to_owned())).unwrap();
        let cases = [
            ("/x", "/x?key=a%20b%26c%3Dd"),
            ("/x?", "/x?key=a%20b%26c%3Dd"),
            ("/x?q=1&r", "/x?q=1&r&key=a%20b%26c%3Dd"),
            ("/x?key=mine&q=1&key&k%65y=2&KEY=3", "/x?q=1&KEY=3&key=a%20b%26c%3Dd"),
        ];
        for (target, expected) in cases {
            assert_eq!(with_query(target, "key", &value), expected);
        }
    }
}
