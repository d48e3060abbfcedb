//! The messages between the host and a sandbox process. Native code may send any bytes, so that
//! whatever comes is a message or is refused. A message that is read means the same once it is
//! written and read again. The report of a call keeps the limits of the call, whatever it says.
//!
//! The messages are included by their file, without the crate that runs guests. Types that the
//! file names and that are no part of a message stand here with as much as it needs.
#![no_main]
#![allow(dead_code, reason = "what the crate of these files uses besides")]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toolcell_policy::Limits;

use message::{FromSandbox, ToSandbox};

#[path = "../../../host/sandbox/src/failure.rs"]
mod failure;
#[path = "../../../host/sandbox/src/wall/message.rs"]
mod message;

/// The contract's types, from the same text.
#[allow(missing_docs, clippy::all, rust_2018_idioms)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "toolcell:mcp/tool-component",
        additional_derives: [serde::Serialize, serde::Deserialize],
    });

    pub mod contract {
        pub use super::toolcell::mcp::types::CallResult;
    }
}

mod caller {
    pub(crate) use crate::bindings::toolcell::mcp::log::Level as LogLevel;

    pub(crate) struct Trace {
        pub(crate) traceparent: String,
        pub(crate) tracestate: Option<String>,
        pub(crate) baggage: Option<String>,
    }

    pub(crate) mod asking {
        pub(crate) use crate::bindings::toolcell::mcp::asking::{Answer, Inquiry, Kind, Refusal};

        pub(crate) enum Asked {
            Answered(Result<Vec<Answer>, Refusal>),
            Ended(Option<String>),
        }
    }
}

mod load {
    pub(crate) mod component {
        /// Counts and a digest, which the host makes and nobody else.
        #[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct CodeFacts {
            digest: [u8; 32],
            size_bytes: u64,
        }
    }
}

mod run {
    pub(crate) mod call {
        use crate::failure::Failure;
        use crate::wasi::cli::capture::Captured;

        #[derive(Default)]
        pub(crate) struct SpentInstance;

        pub(crate) struct CallReport<T> {
            pub(crate) outcome: Result<T, Failure>,
            pub(crate) usage: toolcell_audit::Usage,
            pub(crate) captured: Captured,
            pub(crate) denials: Vec<toolcell_policy::Denial>,
            pub(crate) unfit: Option<String>,
            pub(crate) spent: SpentInstance,
            pub(crate) kept: bool,
        }
    }
}

mod secrets {
    use zeroize::Zeroizing;

    pub(crate) struct SecretValue(Zeroizing<String>);

    impl SecretValue {
        pub(crate) fn new(value: Zeroizing<String>) -> Result<Self, &'static str> {
            Ok(Self(value))
        }

        pub(crate) fn reveal(&self) -> &str {
            &self.0
        }
    }
}

mod wall {
    pub(crate) mod loading {
        pub(crate) mod message {
            /// Numbers, which the host makes and nobody else.
            #[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
            pub(crate) struct CompileSettings {
                stack_bytes: u64,
            }

            /// Numbers, which the host makes and nobody else.
            #[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
            pub(crate) struct LinkSettings {
                facts: crate::load::component::CodeFacts,
            }
        }
    }
}

mod wasi {
    pub(crate) mod files {
        /// A mount's place, which the host names and nobody else.
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct MountFacts {
            guest: String,
        }
    }

    pub(crate) mod cli {
        pub(crate) mod capture {
            pub(crate) struct Captured {
                pub(crate) text: String,
                pub(crate) dropped_bytes: u64,
            }
        }
    }
}

/// Bytes of a reason or a backtrace that the host takes, as `message.rs` has them.
const TEXT_BYTES_MAX: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    means_the_same::<ToSandbox>(data);
    let Some(said) = means_the_same::<FromSandbox>(data) else { return };
    let _ = said.call();
    if let FromSandbox::Ended(_, report) = said {
        let limits = Limits::default();
        let report = report.into_report(&limits);
        assert!(report.usage.fuel <= limits.fuel(), "more fuel than the call had");
        assert!(report.usage.log_bytes <= limits.log_bytes(), "more log than the call had");
        assert!(report.captured.text.len() as u64 <= limits.log_bytes() * 3, "more prints than the call had");
        let detail = report.outcome.err().map_or(0, |failure| failure.detail().len());
        assert!(detail <= TEXT_BYTES_MAX, "a detail of {detail} bytes");
    }
});

/// The message of these bytes, if they are one: what it is written as is read as the same.
fn means_the_same<M: Serialize + DeserializeOwned + Debug>(data: &[u8]) -> Option<M> {
    let message: M = message::decode(data).ok()?;
    let written = message::encode(&message).expect("a message that was read is written");
    let again: M = message::decode(&written).expect("a message that was written is read");
    assert_eq!(format!("{message:?}"), format!("{again:?}"));
    Some(message)
}
