//! The keys of each table: those read now, those that a later version will read, and other names people try. Must not
//! hold: what the values of the keys are.

/// The keys of one kind of table.
pub(crate) struct Keys {
    /// Read by this version.
    pub(crate) now: &'static [&'static str],
    /// Designed, not enforced yet: refused with their own message, so that nobody relies on them.
    pub(crate) later: &'static [&'static str],
    /// What people write, and what it is called here.
    pub(crate) other_names: &'static [(&'static str, &'static str)],
}

pub(crate) const ROOT: Keys = Keys {
    now: &["version", "server", "http", "metrics", "traces", "defaults", "audit", "callers", "components"],
    later: &[],
    other_names: &[
        ("component", "components"),
        ("tools", "components"),
        ("limits", "defaults.limits"),
        ("caller", "callers"),
    ],
};

pub(crate) const SERVER: Keys = Keys {
    now: &[
        "name",
        "title",
        "instructions",
        "page_size",
        "line_max",
        "in_flight_max",
        "pending_max",
        "calls",
        "stack",
        "prewarm_memory",
        "narrow_cancels",
        "dns",
        "state",
        "state_key",
    ],
    later: &[],
    other_names: &[("description", "instructions")],
};

pub(crate) const HTTP: Keys = Keys {
    now: &[
        "listen",
        "path",
        "hosts",
        "origins",
        "certificate",
        "key",
        "tokens",
        "oauth",
        "body",
        "bodies",
        "head",
        "connections",
        "requests",
        "streams",
        "sessions",
        "connections_per_caller",
        "requests_per_caller",
        "streams_per_caller",
        "sessions_per_caller",
        "bodies_per_caller",
        "head_time",
        "body_time",
        "write_time",
        "idle",
        "keep_alive",
        "stream_time",
        "session_idle",
        "session_time",
        "drain",
    ],
    later: &[],
    other_names: &[
        ("address", "listen"),
        ("bind", "listen"),
        ("port", "listen"),
        ("cert", "certificate"),
        ("cors", "origins"),
        ("body_max", "body"),
        ("idle_time", "idle"),
    ],
};

pub(crate) const METRICS: Keys = Keys {
    now: &["listen", "hosts"],
    later: &[],
    other_names: &[("address", "listen"), ("bind", "listen"), ("port", "listen")],
};

pub(crate) const TRACES: Keys = Keys {
    now: &["endpoint", "sample", "service"],
    later: &[],
    other_names: &[("url", "endpoint"), ("address", "endpoint"), ("ratio", "sample"), ("name", "service")],
};

/// The server as a resource of OAuth.
pub(crate) const OAUTH: Keys = Keys {
    now: &["resource", "scopes", "issuers"],
    later: &[],
    other_names: &[("url", "resource"), ("scope", "scopes"), ("issuer", "issuers"), ("audience", "resource")],
};

/// One issuer of tokens.
pub(crate) const ISSUER: Keys = Keys {
    now: &["issuer", "jwks", "audience", "algorithms", "leeway", "fresh", "refresh", "outage"],
    later: &[],
    other_names: &[
        ("iss", "issuer"),
        ("url", "issuer"),
        ("aud", "audience"),
        ("audiences", "audience"),
        ("jwks_uri", "jwks"),
        ("jwks_url", "jwks"),
        ("keys", "jwks"),
        ("cache", "fresh"),
        ("skew", "leeway"),
    ],
};

pub(crate) const DEFAULTS: Keys = Keys { now: &["limits", "load"], later: &[], other_names: &[] };

pub(crate) const COMPONENT: Keys = Keys {
    now: &[
        "source",
        "prefix",
        "wit",
        "skip_unsupported",
        "describe",
        "limits",
        "load",
        "prewarm",
        "instance",
        "instance_idle",
        "instance_lifetime",
        "args",
        "stdin",
        "filesystem",
        "network",
        "env",
        "config",
        "keyvalue",
        "secrets",
        "approval",
        "remember",
        "resources",
        "tools",
    ],
    later: &[],
    other_names: &[
        ("path", "source"),
        ("file", "source"),
        ("wasm", "source"),
        ("fs", "filesystem"),
        ("files", "filesystem"),
        ("http", "network"),
        ("environment", "env"),
        ("arguments", "args"),
        ("tool", "tools"),
        ("skip-unsupported", "skip_unsupported"),
        ("descriptions", "describe"),
        ("docs", "describe"),
        ("kv", "keyvalue"),
        ("key_value", "keyvalue"),
        ("secret", "secrets"),
        ("resource", "resources"),
    ],
};

/// One address, or template of addresses, that a tool reads.
pub(crate) const RESOURCE: Keys = Keys {
    now: &["tool", "argument", "name", "title", "description", "mime_type"],
    later: &[],
    other_names: &[("type", "mime_type"), ("mimeType", "mime_type"), ("read", "tool"), ("arg", "argument")],
};

/// One rule for callers.
pub(crate) const CALLER: Keys = Keys {
    now: &["names", "scopes", "tools", "rate", "concurrency"],
    later: &[],
    other_names: &[
        ("name", "names"),
        ("tokens", "names"),
        ("subjects", "names"),
        ("scope", "scopes"),
        ("tool", "tools"),
        ("allow", "tools"),
    ],
};

pub(crate) const AUDIT: Keys = Keys {
    now: &["file", "rotate", "keep", "fsync", "required", "arguments"],
    later: &[],
    other_names: &[("path", "file"), ("sync", "fsync"), ("args", "arguments")],
};

/// A mount of the host's.
pub(crate) const MOUNT: Keys = Keys {
    now: &["path", "access", "create", "quota", "files", "scratch"],
    later: &[],
    other_names: &[("host", "path"), ("folder", "path"), ("size", "quota"), ("mode", "access")],
};

/// A mount as a tool narrows it.
pub(crate) const MOUNT_OF_TOOL: Keys =
    Keys { now: &["access", "quota", "files"], later: &[], other_names: &[("mode", "access")] };

pub(crate) const NETWORK: Keys = Keys {
    now: &["http", "tcp", "udp", "private", "ca", "proxy"],
    later: &[],
    other_names: &[("https", "http"), ("allow", "http"), ("hosts", "http"), ("certificates", "ca")],
};

pub(crate) const NETWORK_OF_TOOL: Keys = Keys {
    now: &["http", "tcp", "udp", "private"],
    later: &[],
    other_names: &[("https", "http"), ("allow", "http"), ("hosts", "http")],
};

/// A variable that is not a text.
pub(crate) const ENV_FROM: Keys = Keys { now: &["from"], later: &[], other_names: &[("value", "from")] };

pub(crate) const KEYVALUE: Keys = Keys {
    now: &["quota", "entries", "value", "per_caller"],
    later: &[],
    other_names: &[("size", "quota"), ("keys", "entries"), ("value_max", "value")],
};

pub(crate) const SECRET: Keys = Keys {
    now: &["from", "header", "query", "value", "for", "expose"],
    later: &[],
    other_names: &[("source", "from"), ("template", "value"), ("url", "for"), ("env", "from")],
};

pub(crate) const TOOL: Keys = Keys {
    now: &[
        "title",
        "description",
        "read_only",
        "destructive",
        "idempotent",
        "open_world",
        "input",
        "args",
        "stdin",
        "env",
        "files",
        "output",
        "output_schema",
        "exit_codes",
        "limits",
        "filesystem",
        "network",
        "config",
        "keyvalue",
        "secrets",
        "approval",
        "remember",
    ],
    later: &[],
    other_names: &[
        ("fs", "filesystem"),
        ("input_files", "files"),
        ("environment", "env"),
        ("arguments", "args"),
        ("argv", "args"),
        ("command", "args"),
        ("input_schema", "input"),
        ("inputSchema", "input"),
        ("parameters", "input"),
        ("outputSchema", "output_schema"),
        ("schema", "output_schema"),
        ("exit_code", "exit_codes"),
        ("stdout", "output"),
        ("readOnlyHint", "read_only"),
        ("readonly", "read_only"),
        ("destructiveHint", "destructive"),
        ("idempotentHint", "idempotent"),
        ("openWorldHint", "open_world"),
    ],
};

/// The keys of a tool that say how its program is run; `env` does as well where it is a table.
pub(crate) const PROGRAM: [&str; 7] = ["input", "args", "stdin", "files", "output", "output_schema", "exit_codes"];

/// What of a run is the answer, where it is bytes.
pub(crate) const OUTPUT: Keys = Keys {
    now: &["file", "type"],
    later: &[],
    other_names: &[("path", "file"), ("mime_type", "type"), ("mime", "type"), ("media_type", "type")],
};

/// A file of expectations.
pub(crate) const EXPECTATIONS: Keys = Keys {
    now: &["expect"],
    later: &[],
    other_names: &[("expects", "expect"), ("test", "expect"), ("tests", "expect")],
};

/// One of them.
pub(crate) const EXPECT: Keys = Keys {
    now: &["tool", "ask", "allowed"],
    later: &[],
    other_names: &[
        ("name", "tool"),
        ("component", "tool"),
        ("question", "ask"),
        ("allow", "allowed"),
        ("denied", "allowed"),
    ],
};

/// The keys of a `limits` table are those of [`crate::Limit`].
pub(crate) const LIMITS: Keys = Keys {
    now: &[
        "fuel",
        "deadline",
        "memory",
        "output",
        "output_items",
        "log",
        "host_data",
        "handles",
        "random",
        "arguments",
        "concurrency",
        "queue",
        "queue_wait",
        "rate",
        "progress",
        "http_requests",
        "http_concurrency",
        "egress",
        "ingress",
        "http_connect",
        "http_first_byte",
        "http_time",
        "http_headers",
        "http_header_bytes",
        "sockets",
        "lookups",
        "asks",
        "ask_bytes",
        "answer_bytes",
        "ask_wait",
    ],
    later: &["host_calls"],
    other_names: &[
        ("timeout", "deadline"),
        ("time", "deadline"),
        ("duration", "deadline"),
        ("cpu", "fuel"),
        ("gas", "fuel"),
        ("ram", "memory"),
        ("mem", "memory"),
        ("logs", "log"),
        ("pollables", "handles"),
        ("resources", "handles"),
        ("upload", "egress"),
        ("download", "ingress"),
        ("requests", "http_requests"),
        ("connections", "sockets"),
    ],
};

/// The keys of a `load` table are those of [`crate::LoadLimit`].
pub(crate) const LOAD: Keys = Keys {
    now: &["component_size", "compile_time", "tools", "definition"],
    later: &[],
    other_names: &[("size", "component_size"), ("time", "compile_time"), ("timeout", "compile_time")],
};
