//! The schema of `[http.oauth]`. Must not hold: reading, or the schema of anything else.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::RawDuration;

/// The server as a resource of OAuth 2.1: whose tokens callers may show, beside those of `tokens`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Oauth")]
pub(super) struct RawOauth {
    /// The server's own address, as clients know it.
    #[schemars(length(min = 1, max = 1024), extend("examples" = ["https://tools.example.com/mcp"]))]
    resource: String,
    /// The scopes that every caller with a token of an issuer needs, all of them. What further scopes allow is said in
    /// `[callers]`.
    #[schemars(length(max = 64), extend("examples" = [["tools"]]))]
    scopes: Option<Vec<String>>,
    /// The authorization servers whose tokens are taken, by name: 1 to 64 of `a-z`, `0-9`, `_` and `-`. A caller is called
    /// `NAME:SUBJECT`.
    #[schemars(extend("propertyNames" = {"pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"}, "minProperties" = 1, "maxProperties" = 8))]
    issuers: BTreeMap<String, RawIssuer>,
}

/// One authorization server.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Issuer")]
struct RawIssuer {
    /// What its tokens say as `iss`.
    #[schemars(length(min = 1, max = 1024), extend("examples" = ["https://login.example.com"]))]
    issuer: String,
    /// Where its keys are; by default where its metadata says (RFC 8414, or OpenID Connect Discovery).
    #[schemars(length(min = 1, max = 1024), extend("examples" = ["https://login.example.com/keys"]))]
    jwks: Option<String>,
    /// What its tokens must say as `aud`, one of these; `resource` by default.
    #[schemars(extend("examples" = ["api://tools", ["api://tools", "https://tools.example.com/mcp"]]))]
    audience: Option<RawAudience>,
    /// How its tokens may be signed; all of these by default. There is none with a shared key, and no `none`.
    #[schemars(length(min = 1, max = 9), extend("examples" = [["RS256", "ES256"]]))]
    algorithms: Option<Vec<RawAlgorithm>>,
    /// By how much the clocks may differ: `0ms` to `5m`.
    #[schemars(extend("default" = "30s", "examples" = ["5s"]))]
    leeway: Option<RawDuration>,
    /// After which its keys are fetched again: `100ms` to `24h`.
    #[schemars(extend("default" = "10m", "examples" = ["1h"]))]
    fresh: Option<RawDuration>,
    /// The least time between two fetches of its keys: `100ms` to `1h`.
    #[schemars(extend("default" = "10s", "examples" = ["1m"]))]
    refresh: Option<RawDuration>,
    /// For how long past `fresh` known keys go on while it gives none: `0ms` to `168h`.
    #[schemars(extend("default" = "1h", "examples" = ["10m"]))]
    outage: Option<RawDuration>,
}

/// One audience, or several.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "Audience")]
enum RawAudience {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// An algorithm of signatures.
#[derive(JsonSchema)]
#[schemars(rename = "Algorithm")]
enum RawAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}
