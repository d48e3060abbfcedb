//! The section `[audit]`.

use crate::quantity::{GIB, KIB, MIB};
use crate::read::{Entry, paths};
use crate::settings::settings;
use crate::words::{Word as _, words};

words! {
    /// The moment when a record is on the disk.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Fsync {
        /// When the operating system writes it, within seconds. A crash of the process loses no
        /// record, one of the machine may.
        #[default]
        Never "never",
        /// Before the call goes on.
        Always "always",
    }
}

words! {
    /// The part of a call's arguments that is recorded.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum AuditArguments {
        /// Their digest and length.
        #[default]
        Digest "digest",
        /// Their text as well, clipped, without the values of secrets.
        Values "values",
    }
}

settings! {
    /// The record of calls, denials and loads.
    AuditPolicy AUDIT "Audit" {
        /// The file, relative to this one; `serve --audit FILE` wins. No audit without either.
        file: Option<String> => Option<&str> = "file" (Text, paths::host_path, else None),
            {"minLength": 1, "examples": ["audit.jsonl"]};
        /// The size at which one file ends and the next begins.
        rotate_bytes: u64 => u64 = "rotate" (
            Bytes { min: 64 * KIB, default: 64 * MIB, max: 64 * GIB },
            "About a hundred thousand calls."
        ), {"examples": ["1GiB"]};
        /// Full files that are kept next to the one being written.
        keep: u64 => u64 = "keep" (Count { min: 0, default: 8, max: 1_000 }, "The oldest is removed."),
            {"examples": [30]};
        /// When a record is on the disk: when the operating system writes it, or before the call
        /// goes on.
        fsync: Fsync => Fsync = "fsync" (Words(Fsync::WORDS), Entry::word::<Fsync>, else Fsync::default()),
            {"default": "never", "examples": ["always"]};
        /// True refuses a call that cannot be recorded.
        required: bool => bool = "required" (Flag, Entry::boolean, else true), {"default": true, "examples": [false]};
        /// The part of a call's arguments that is recorded: their digest, or their text as well,
        /// clipped.
        arguments: AuditArguments => AuditArguments = "arguments" (
            Words(AuditArguments::WORDS), Entry::word::<AuditArguments>, else AuditArguments::default()
        ), {"default": "digest", "examples": ["values"]};
        /// True records the grants that each call used through the host: requests without queries,
        /// connections, state, other tools. `toolcell policy suggest --narrow` reads them.
        uses: bool => bool = "uses" (Flag, Entry::boolean, else false), {"default": false, "examples": [true]};
    }
    other names { "path" => "file", "sync" => "fsync", "args" => "arguments" }
}
