//! The schema of `[metrics]` and `[traces]`. Must not hold: reading, or the schema of anything else.

use schemars::JsonSchema;

/// Where the server's figures are read, as Prometheus reads them.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Metrics")]
pub(super) struct RawMetrics {
    /// The address and port; `serve --metrics ADDRESS` wins. One that other machines reach needs `--insecure-public`.
    #[schemars(length(min = 1), extend("examples" = ["127.0.0.1:9464"]))]
    listen: Option<String>,
    /// Names that the address goes by, beside itself; with a port where only that one is meant.
    #[schemars(length(max = 64), extend("examples" = [["toolcell.internal"]]))]
    hosts: Option<Vec<String>>,
}

/// Where traces of calls are sent, and of which.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Traces")]
pub(super) struct RawTraces {
    /// The collector, which takes OTLP over HTTP: a URL, with a path where that is not `/v1/traces`.
    #[schemars(length(min = 1, max = 2048), extend("examples" = ["http://127.0.0.1:4318"]))]
    endpoint: String,
    /// Which part of the calls is traced, 0 to 1. What a client has decided for its own trace holds instead.
    #[schemars(range(min = 0, max = 1), extend("default" = 1, "examples" = [0.1]))]
    sample: Option<f64>,
    /// The name under which the traces are told apart from those of other services.
    #[schemars(length(min = 1, max = 128), extend("default" = "toolcell", "examples" = ["acme-tools"]))]
    service: Option<String>,
}
