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
    now: &["version", "server", "defaults", "components"],
    later: &["audit", "http"],
    other_names: &[("component", "components"), ("tools", "components"), ("limits", "defaults")],
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
    ],
    later: &[],
    other_names: &[("description", "instructions")],
};

pub(crate) const DEFAULTS: Keys = Keys { now: &["limits", "load"], later: &[], other_names: &[] };

pub(crate) const COMPONENT: Keys = Keys {
    now: &["source", "prefix", "limits", "load", "tools", "prewarm", "instance", "instance_idle", "instance_lifetime"],
    later: &["filesystem", "network", "env", "args", "stdin", "secrets", "config", "keyvalue", "wit", "program"],
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
    ],
};

pub(crate) const TOOL: Keys = Keys {
    now: &["limits"],
    later: &["approval", "filesystem", "network", "env", "args", "stdin", "secrets", "config", "keyvalue"],
    other_names: &[("fs", "filesystem"), ("files", "filesystem"), ("environment", "env")],
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
    ],
    later: &["host_calls", "http_requests", "egress", "ingress"],
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
    ],
};

/// The keys of a `load` table are those of [`crate::LoadLimit`].
pub(crate) const LOAD: Keys = Keys {
    now: &["component_size", "compile_time", "tools", "definition"],
    later: &[],
    other_names: &[("size", "component_size"), ("time", "compile_time"), ("timeout", "compile_time")],
};
