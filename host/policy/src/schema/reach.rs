//! The schema of what components and tools may reach. Must not hold: reading, or the schema of anything else.

use schemars::JsonSchema;

use super::RawSize;

/// A folder or a file of the host, or space of the call's own: `path` or `scratch`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Mount")]
pub(super) struct RawMount {
    /// The folder or the file of the host, relative to this file.
    #[schemars(length(min = 1), extend("examples" = ["data"]))]
    path: Option<String>,
    /// What may be done.
    #[schemars(extend("enum" = ["read", "write"], "default" = "read", "examples" = ["write"]))]
    access: Option<String>,
    /// Whether a missing folder is made; otherwise it is an error of the manifest.
    #[schemars(extend("default" = false, "examples" = [true]))]
    create: Option<bool>,
    /// What a writable mount may hold: `1B` to `1024GiB`.
    #[schemars(extend("default" = "64MiB", "examples" = ["10MiB"]))]
    quota: Option<RawSize>,
    /// Files and folders that a writable mount may hold.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = 1000, "examples" = [100]))]
    files: Option<u64>,
    /// Space of the call's own, gone after it, in place of `path`: `4KiB` to `4GiB`.
    #[schemars(extend("examples" = ["8MiB"]))]
    scratch: Option<RawSize>,
}

/// A mount of the component as a tool has it: with less, or as it is.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "ToolMount")]
pub(super) struct RawToolMount {
    /// What the tool may do.
    #[schemars(extend("enum" = ["read", "write"], "examples" = ["read"]))]
    access: Option<String>,
    /// What the mount may hold: at most the component's quota.
    #[schemars(extend("examples" = ["1MiB"]))]
    quota: Option<RawSize>,
    /// Files and folders that the mount may hold: at most as many as the component's.
    #[schemars(range(min = 1, max = 1_000_000), extend("examples" = [10]))]
    files: Option<u64>,
}

/// Hosts and addresses.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Network")]
pub(super) struct RawNetwork {
    /// HTTP requests: `[METHODS] scheme://host[:port][/path]`. `*.example.com` is every name below, `*` within a path one
    /// segment, `/*` at its end everything below.
    #[schemars(length(max = 1000), extend("examples" = [["GET https://api.example.com/v1/*", "https://*.example.com"]]))]
    http: Option<Vec<String>>,
    /// TCP connections: `host:port`, `address:port` or `range:port`; ports such as `1000-2000`.
    #[schemars(length(max = 1000), extend("examples" = [["db.example.com:5432", "192.0.2.0/24:5432"]]))]
    tcp: Option<Vec<String>>,
    /// UDP packets, as `tcp`.
    #[schemars(length(max = 1000), extend("examples" = [["192.0.2.1:53"]]))]
    udp: Option<Vec<String>>,
    /// Addresses that are not public and may be reached where a rule leads there; all ports where none is named.
    #[schemars(length(max = 256), extend("examples" = [["127.0.0.1:8080", "10.0.0.0/8", "[::1]:80"]]))]
    private: Option<Vec<String>>,
    /// Files of certificates that TLS trusts besides the platform's, relative to this file.
    #[schemars(length(max = 16), extend("examples" = [["certs/ca.pem"]]))]
    ca: Option<Vec<String>>,
    /// The proxy of HTTP requests. Variables such as `HTTPS_PROXY` are not looked at.
    #[schemars(regex(pattern = "^https?://[^/@]+:[0-9]+/?$"), extend("examples" = ["http://proxy.example:3128"]))]
    proxy: Option<String>,
}

/// The rules that a tool has, each within one of the component's. A list that is missing is empty, `private` is the
/// component's.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "ToolNetwork")]
pub(super) struct RawToolNetwork {
    /// HTTP requests.
    #[schemars(length(max = 1000), extend("examples" = [["GET https://api.example.com/v1/now"]]))]
    http: Option<Vec<String>>,
    /// TCP connections.
    #[schemars(length(max = 1000), extend("examples" = [["db.example.com:5432"]]))]
    tcp: Option<Vec<String>>,
    /// UDP packets.
    #[schemars(length(max = 1000), extend("examples" = [["192.0.2.1:53"]]))]
    udp: Option<Vec<String>>,
    /// Addresses that are not public.
    #[schemars(length(max = 256), extend("examples" = [["127.0.0.1:8080"]]))]
    private: Option<Vec<String>>,
}

/// A variable's value: a text, or one of the host's variables.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "EnvVar")]
pub(super) enum RawEnvVar {
    /// The value.
    Text(String),
    /// From the host's environment.
    Host(RawEnvFrom),
}

/// A variable of the host's environment; an error of the manifest where it is missing.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "EnvFrom")]
pub(super) struct RawEnvFrom {
    /// `env:` and the variable's name.
    #[schemars(regex(pattern = "^env:."), extend("examples" = ["env:HOME_CITY"]))]
    from: String,
}

/// How much a component may keep between calls.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "KeyValue")]
pub(super) struct RawKeyValue {
    /// Keys and values together: `1KiB` to `1GiB`.
    #[schemars(extend("default" = "1MiB", "examples" = ["64KiB"]))]
    quota: Option<RawSize>,
    /// Entries.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = 1000, "examples" = [100]))]
    entries: Option<u64>,
    /// One value: `1B` to `16MiB`.
    #[schemars(extend("default" = "256KiB", "examples" = ["4KiB"]))]
    value: Option<RawSize>,
    /// Whether each caller has stores of its own.
    #[schemars(extend("default" = false, "examples" = [true]))]
    per_caller: Option<bool>,
}

/// A secret: the host adds it to matching requests (`header` or `query`, with `for`), or the guest gets it (`expose`).
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Secret")]
pub(super) struct RawSecret {
    /// Where its value is: `env:NAME`, `file:PATH` or `keyring:SERVICE/ACCOUNT`.
    #[schemars(regex(pattern = "^(env:.+|file:.+|keyring:.+/.+)$"), extend("examples" = ["env:API_KEY"]))]
    from: String,
    /// The header that holds it.
    #[schemars(extend("examples" = ["Authorization"]))]
    header: Option<String>,
    /// The name of the query's part that holds it, in place of `header`.
    #[schemars(extend("examples" = ["api_key"]))]
    query: Option<String>,
    /// The header's value, the secret in the place of `{}`.
    #[schemars(extend("default" = "{}", "examples" = ["Bearer {}"]))]
    value: Option<String>,
    /// The requests that carry it, as an `http` rule.
    #[schemars(extend("examples" = ["https://api.example.com"]))]
    r#for: Option<String>,
    /// Whether the guest gets it, as environment variable and `wasi:config` value of the secret's name.
    #[schemars(extend("default" = false, "examples" = [true]))]
    expose: Option<bool>,
}
