//! Types that the files of messages name, for the targets that include those files: what is no part
//! of a message stands here with as much as they need. Must not hold: the messages.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

#[path = "../../../host/sandbox/src/counted.rs"]
pub(crate) mod counted;
#[path = "../../../host/sandbox/src/encoding.rs"]
pub(crate) mod encoding;
#[path = "../../../host/sandbox/src/failure.rs"]
pub(crate) mod failure;
#[path = "../../../host/sandbox/src/wall/loading/message.rs"]
pub(crate) mod loading;
#[path = "../../../host/sandbox/src/wall/message.rs"]
pub(crate) mod message;
#[path = "../../../host/sandbox/src/run/weight.rs"]
pub(crate) mod weight;

/// The message of these bytes, if they are one: what it is written as is read as the same.
pub(crate) fn means_the_same<M: Serialize + DeserializeOwned + Debug>(data: &[u8]) -> Option<M> {
    let message: M = encoding::decode(data).ok()?;
    let written = encoding::encode(&message).expect("a message that was read is written");
    let again: M = encoding::decode(&written).expect("a message that was written is read");
    assert_eq!(format!("{message:?}"), format!("{again:?}"));
    Some(message)
}

/// The contract's types, from the same text.
#[allow(missing_docs, clippy::all, rust_2018_idioms)]
pub(crate) mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "toolcell:mcp/tool-component",
        additional_derives: [serde::Serialize, serde::Deserialize],
    });

    mod with_prompts {
        wasmtime::component::bindgen!({
            path: "../../wit",
            inline: "package host:prompts; world prompts-export { export toolcell:mcp/prompts@1.2.0; }",
            world: "host:prompts/prompts-export",
            with: { "toolcell:mcp/types": crate::bindings::toolcell::mcp::types },
            additional_derives: [serde::Serialize, serde::Deserialize],
        });
    }

    mod with_resources {
        wasmtime::component::bindgen!({
            path: "../../wit",
            inline: "package host:resources; world resources-export { export toolcell:mcp/resources@1.2.0; }",
            world: "host:resources/resources-export",
            with: { "toolcell:mcp/types": crate::bindings::toolcell::mcp::types },
            additional_derives: [serde::Serialize, serde::Deserialize],
        });
    }

    pub mod contract {
        pub use super::toolcell::mcp::types::{
            Annotations, CallResult, Content, Failure, Icon, ResourceBody, ResourceLink, Tool,
        };
        pub use super::with_prompts::exports::toolcell::mcp::prompts::Prompt;
        pub use super::with_resources::exports::toolcell::mcp::resources::Definition as Resource;
    }
}

pub(crate) mod caller {
    pub(crate) use crate::bindings::toolcell::mcp::log::Level as LogLevel;

    #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
    pub(crate) struct Trace {
        pub(crate) traceparent: String,
        pub(crate) tracestate: Option<String>,
        pub(crate) baggage: Option<String>,
    }

    pub(crate) mod asking {
        pub(crate) use crate::bindings::toolcell::mcp::asking::{Answer, Inquiry, Kind, Refusal};

        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) enum Asked {
            Answered(Result<Vec<Answer>, Refusal>),
            Ended(Option<String>),
        }
    }
}

pub(crate) mod load {
    pub(crate) mod cache {
        pub(crate) const ENTRY_BYTES_MAX: u64 = 1 << 30;
    }

    pub(crate) mod component {
        /// Counts and a digest.
        #[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct CodeFacts {
            digest: [u8; 32],
            size_bytes: u64,
            adapted: bool,
            survey: super::survey::Survey,
        }
    }

    pub(crate) mod definitions {
        use std::time::Duration;

        /// Numbers.
        #[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct SchemaLimits {
            tools: usize,
            definition_bytes: usize,
            time: Duration,
        }
    }

    pub(crate) mod error {
        /// Only its texts are told.
        #[derive(Debug, thiserror::Error)]
        #[error("refused")]
        pub(crate) struct LoadError;

        impl LoadError {
            pub(crate) fn hint(&self) -> &'static str {
                ""
            }
        }
    }

    pub(crate) mod held {
        /// The fields of the facts in `load/held.rs`, in their order.
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct ComponentFacts {
            exports: Vec<String>,
            imports: Vec<String>,
            shape: ShapeName,
            is_program: bool,
            left_out: Vec<LeftOut>,
            functions: Option<Vec<String>>,
            describable: Option<Vec<String>>,
            wishes: CarriedWishes,
        }

        #[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
        enum ShapeName {
            Contract,
            Typed,
            Program,
        }

        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        struct LeftOut {
            function: String,
            reason: String,
        }

        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        enum CarriedWishes {
            None,
            Text(String),
            Damaged(SectionDamage),
        }

        #[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
        enum SectionDamage {
            Twice,
            TooLong { bytes_max: usize },
            NotText,
            Version,
            Sections,
        }
    }

    pub(crate) mod survey {
        /// Counts.
        #[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct Survey([u64; 7]);
    }
}

pub(crate) mod run {
    pub(crate) use super::weight;

    pub(crate) mod call {
        use crate::bindings::contract;
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

        #[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
        pub(crate) struct ListedBeside {
            pub(crate) prompts: Vec<contract::Prompt>,
            pub(crate) resources: Vec<contract::Resource>,
        }
    }
}

pub(crate) mod secrets {
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

pub(crate) mod wall {
    pub(crate) use crate::message;

    pub(crate) mod loading {
        pub(crate) use crate::loading as message;
    }
}

pub(crate) mod wasi {
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
