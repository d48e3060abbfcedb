//! What `[http.oauth]` comes to: whose tokens callers may show, and what these must say. Must not hold: keys, tokens, or
//! how either is fetched or checked.

use std::time::Duration;

use crate::limits::{Spec, Unit};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The algorithms of signatures that are known, by their names in tokens (RFC 7518, RFC 8037). None has a shared key.
pub(crate) const ALGORITHMS: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

pub(crate) static LEEWAY: Spec = Spec {
    key: "leeway",
    unit: Unit::Millis,
    default: 30 * SECOND,
    min: 0,
    max: 5 * MINUTE,
    reason: "By how much the clocks of issuer and server may differ, where a token begins and ends to hold.",
};

pub(crate) static FRESH: Spec = Spec {
    key: "fresh",
    unit: Unit::Millis,
    default: 10 * MINUTE,
    min: SECOND / 10,
    max: 24 * HOUR,
    reason: "After which an issuer's keys are fetched again: for so long a key that was taken back is still taken.",
};

pub(crate) static REFRESH: Spec = Spec {
    key: "refresh",
    unit: Unit::Millis,
    default: 10 * SECOND,
    min: SECOND / 10,
    max: HOUR,
    reason: "The least time between two fetches of an issuer's keys. A token of a key that is not known asks for one, and \
             anybody can make such a token.",
};

pub(crate) static OUTAGE: Spec = Spec {
    key: "outage",
    unit: Unit::Millis,
    default: HOUR,
    min: 0,
    max: 7 * 24 * HOUR,
    reason: "For how long past `fresh` known keys go on while the issuer gives none. After it, callers are told to come \
             again (503).",
};

/// The server as a resource of OAuth 2.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthPolicy {
    pub(crate) resource: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) issuers: Vec<IssuerPolicy>,
}

/// One authorization server whose tokens are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerPolicy {
    pub(crate) name: String,
    pub(crate) issuer: String,
    pub(crate) jwks: Option<String>,
    pub(crate) audiences: Vec<String>,
    pub(crate) algorithms: Vec<&'static str>,
    pub(crate) values: [u64; 4],
}

impl OauthPolicy {
    /// The server's own address, as clients know it.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The scopes that every caller with a token of an issuer needs, all of them.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The issuers, in the order of the file; at least one.
    #[must_use]
    pub fn issuers(&self) -> &[IssuerPolicy] {
        &self.issuers
    }
}

impl IssuerPolicy {
    /// The times of an issuer, in the order of reports.
    pub const LIMITS: [&'static Spec; 4] = [&LEEWAY, &FRESH, &REFRESH, &OUTAGE];

    /// Its name in the manifest, which stands before the names of its callers: `NAME:SUBJECT`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its tokens say as `iss`.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Where its keys are; `None`: where its metadata says.
    #[must_use]
    pub fn jwks(&self) -> Option<&str> {
        self.jwks.as_deref()
    }

    /// What its tokens must say as `aud`, one of these.
    #[must_use]
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// How its tokens may be signed, by the names of RFC 7518 and RFC 8037.
    #[must_use]
    pub fn algorithms(&self) -> &[&'static str] {
        &self.algorithms
    }

    /// By how much clocks may differ: 30 s by default.
    #[must_use]
    pub const fn leeway(&self) -> Duration {
        let [leeway, _, _, _] = self.values;
        Duration::from_millis(leeway)
    }

    /// After which its keys are fetched again: 10 minutes by default.
    #[must_use]
    pub const fn fresh(&self) -> Duration {
        let [_, fresh, _, _] = self.values;
        Duration::from_millis(fresh)
    }

    /// The least time between two fetches: 10 s by default.
    #[must_use]
    pub const fn refresh(&self) -> Duration {
        let [_, _, refresh, _] = self.values;
        Duration::from_millis(refresh)
    }

    /// For how long past [`fresh`](Self::fresh) known keys go on while there are no others: an hour by default.
    #[must_use]
    pub const fn outage(&self) -> Duration {
        let [_, _, _, outage] = self.values;
        Duration::from_millis(outage)
    }
}
