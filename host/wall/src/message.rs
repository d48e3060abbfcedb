//! The messages between the host and a sandbox process: one frame each, in postcard's format. Both
//! ends are the same program, so there is one version.
//!
//! Promise: a sandbox process has its own guests' secrets only.
//! Promise: a process's messages harm nobody else.
//! Promise: an answer ends only its own call.
use serde::{Deserialize, Serialize};
use toolcell_policy::{Capability, Limit, Limits};
use toolcell_schema::{PROBLEMS_BYTES_MAX, SchemaTexts};
use zeroize::Zeroizing;

use crate::asking::{AskKind, AskResult, Inquiry};
use crate::caller::{GuestLogLevel, Trace};
use crate::contract::GuestResult;
use crate::doors::blob::Blob;
use crate::load::facts::{CodeFacts, GuestEngine};
use crate::load::message::{CompileSettings, LinkSettings};
use crate::mounts::MountFacts;
use crate::report::CallReport;
use crate::tape::TapeUse;

/// Names one call on a link. Numbers are not reused.
pub type CallId = u64;

/// Names a component that a process has loaded: its place in the order of loading.
pub type ComponentId = u32;

/// Names an instance that a process keeps for one caller. Numbers are not reused.
pub type InstanceId = u64;

/// Bytes of a message without its texts, and of one that is not about a call.
pub const BYTES_MIN: u64 = 64 << 10;

/// Bytes of a message without its texts, with the problems of a value.
const MESSAGE_HEAD_BYTES: u64 = BYTES_MIN + PROBLEMS_BYTES_MAX as u64;

/// Bytes of one item of an answer without its texts.
const ITEM_BYTES: u64 = 64;

/// The most bytes of a message about a call with these limits: its answer with everything that it
/// printed, or all of its questions at once.
#[must_use]
pub fn bytes_max(limits: &Limits) -> u64 {
    let items = u64::try_from(limits.output_items()).unwrap_or(u64::MAX).saturating_mul(ITEM_BYTES);
    // Invalid UTF-8 becomes three times as long.
    let printed = limits.log_bytes().saturating_mul(3);
    let answer = limits.output_bytes().saturating_add(items).saturating_add(printed);
    let asked = limits.get(Limit::Asks).saturating_mul(limits.get(Limit::AskBytes));
    answer.max(asked).saturating_add(MESSAGE_HEAD_BYTES)
}

/// Bytes of the message of a progress report. Clients get a fifth of it, after secrets are removed;
/// a longer one is cut before it is sent.
pub const PROGRESS_TEXT_BYTES_MAX: usize = 16 << 10;

/// Bytes of a message that count as another message: checking them costs as much.
const COUNTED_BYTES: u64 = 256;

/// How many messages one of this size counts as.
#[must_use]
pub const fn counted(bytes: u64) -> u64 {
    1 + bytes / COUNTED_BYTES
}

/// From the host to a sandbox process.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToSandbox {
    /// The first message: settings of the engine.
    Begin(ProcessSettings),
    /// A component. The descriptor is its code.
    Load(Box<LoadComponent>),
    /// The schemas of a tool of the component that came last.
    Schemas(Box<ToolSchemas>),
    /// A mount of the last component. The first descriptor is the folder or file; the second, if it
    /// is writable, is that of its counts.
    Mount(Box<MountFacts>),
    /// A folder for the scratch space of all calls, in the descriptor.
    Scratch,
    /// No more components follow. The process builds its walls, loads them, and answers.
    Seal(Bound),
    /// A call.
    Call(Box<RunCall>),
    /// Its caller has given up.
    Cancel(CallId),
    /// The answer to its questions.
    Asked(CallId, AskResult),
    /// The door that it asked for, by the number it chose. The descriptor is the door; without one,
    /// there is no door.
    Door(CallId, u32),
    /// The first message instead of [`Self::Begin`]: the process compiles one component.
    Compile(CompileSettings),
    /// The first message instead of [`Self::Begin`]: the process lists the tools of one component.
    /// The descriptor is its code.
    Link(Box<LinkSettings>),
    /// No further call uses this instance.
    Forget(InstanceId),
}

/// Settings of a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProcessSettings {
    /// Bytes of WebAssembly stack per call.
    pub stack_bytes: u64,
    /// Calls at once.
    pub calls_max: u64,
    /// Bytes of all prewarmed instances in this process.
    pub prewarm_bytes: u64,
    /// The engine of all its components.
    pub engine: GuestEngine,
}

/// The bound of a process, which depends on its components.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Bound {
    /// Bytes that may become writable after the walls stand: memories of guests, and everything
    /// else.
    pub writable_bytes_max: u64,
    /// Bytes that a file may grow to.
    pub file_bytes_max: Option<u64>,
}

/// A component to load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadComponent {
    /// The manifest of this component alone.
    pub manifest: String,
    /// The code that comes with it.
    pub facts: CodeFacts,
    /// Values of variables that the manifest takes from the host's environment, by their names
    /// there.
    pub variables: Vec<(String, String)>,
    /// The files of a project that `toolcell dev` serves.
    pub dev_source: Option<String>,
    /// The secrets that its guests hold, and no others.
    pub secrets: Vec<HandedSecret>,
    /// True if denied requests are observed.
    pub observing: bool,
    /// The relay's code, which comes after the component's, if its calls may be recorded.
    pub relay: Option<CodeFacts>,
}

/// The schemas of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSchemas {
    /// Its own name, as the component lists it.
    pub tool: String,
    /// Their texts.
    pub texts: SchemaTexts,
}

/// A secret whose value a component's guests hold. No formatter shows it.
#[derive(Clone, Serialize, Deserialize)]
pub struct HandedSecret {
    /// Its source, as in the manifest.
    pub source: String,
    #[serde(with = "text")]
    value: Zeroizing<String>,
}

impl HandedSecret {
    /// The secret of this source.
    #[must_use]
    pub fn new(source: &str, value: &str) -> Self {
        Self { source: source.to_owned(), value: Zeroizing::new(value.to_owned()) }
    }

    /// Its value.
    #[must_use]
    pub fn value(&self) -> Zeroizing<String> {
        self.value.clone()
    }
}

impl std::fmt::Debug for HandedSecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("HandedSecret").field(&self.source).finish()
    }
}

/// Texts that are wiped from memory when dropped.
mod text {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use zeroize::Zeroizing;

    pub(super) fn serialize<S: Serializer>(text: &Zeroizing<String>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Zeroizing<String>, D::Error> {
        String::deserialize(deserializer).map(Zeroizing::new)
    }
}

/// A call to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunCall {
    /// Its number.
    pub id: CallId,
    /// The component with the tool.
    pub component: ComponentId,
    /// The tool, or the path of another export.
    pub tool: String,
    /// A JSON object.
    pub arguments_json: String,
    /// True if it is in the form of the tool's input schema already: the guest gets it as it is.
    pub is_conformed: bool,
    /// Its sender.
    pub caller: CallerFacts,
    /// Its deadline, in milliseconds: that of its tool, or of a task.
    pub deadline_ms: u64,
    /// The instance that runs it, kept from an earlier call or made now; `None` for one that is
    /// made for this call.
    pub instance: Option<InstanceId>,
    /// Its tape, if it is recorded or replayed.
    pub tape: Option<RunTape>,
}

/// The tape of a call. A descriptor comes with the call, unless the process keeps the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTape {
    /// What the call does with it.
    pub does: TapeUse,
    /// The number under which the process keeps it for later calls.
    pub kept: Option<u32>,
}

/// Facts about a caller that do not change during its call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallerFacts {
    /// Its name.
    pub name: String,
    /// A bit for each level of the contract, the lowest first.
    pub log_levels: u8,
    /// True if the caller measures the parts of its call.
    pub times: bool,
    /// A bit for each kind of question.
    pub asks: u8,
    /// True if its model may be given tools.
    pub sampling_tools: bool,
    /// Its trace context.
    pub trace: Option<Trace>,
    /// The `_meta` of its request.
    pub meta_json: String,
    /// The extensions that its program declares.
    pub extensions_json: String,
}

/// From a sandbox process to the host.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromSandbox {
    /// The component in the order of loading cannot be used.
    NotLoaded(ComponentId, String),
    /// The walls stand, and calls may come.
    Sealed {
        /// The missing ones, by name, each with the reason.
        missing: Vec<(String, String)>,
    },
    /// A call has ended.
    Ended(CallId, Box<CallReport<GuestResult>>),
    /// The guest's instance runs.
    Instantiated(CallId),
    /// The guest reports its progress.
    Progress {
        /// Its call.
        call: CallId,
        /// Grows with each report.
        progress: f64,
        /// The end value, if known.
        total: Option<f64>,
        /// For the person who waits.
        message: Option<String>,
    },
    /// A line of the guest's log.
    Log {
        /// Its call.
        call: CallId,
        /// Its level.
        level: GuestLogLevel,
        /// Its text.
        message: String,
    },
    /// The content at this address has changed.
    Updated(CallId, String),
    /// The guest asked for something that it is not granted.
    Denied {
        /// Its call.
        call: CallId,
        /// [By its number](capability).
        capability: u8,
        /// As the guest named it.
        asked: String,
    },
    /// Questions to the caller.
    Ask(CallId, Vec<Inquiry>),
    /// Nobody waits for the answers any more.
    TakeBack(CallId),
    /// Instances of this component cannot be prewarmed, since its start code calls this function.
    NotAhead(ComponentId, String),
    /// The call asks for a door to the outside, under this number. These bytes are the first that
    /// it writes into it, at most [`FIRST_BYTES_MAX`](crate::caller::FIRST_BYTES_MAX).
    OpenDoor(CallId, u32, Blob),
    /// The call computes, and has used this much so far.
    Used {
        /// Its number.
        call: CallId,
        /// Units of fuel.
        fuel: u64,
        /// The most bytes of memories and tables.
        memory_bytes: u64,
    },
}

impl FromSandbox {
    /// The call that it is about.
    #[must_use]
    pub fn call(&self) -> Option<CallId> {
        match self {
            Self::NotLoaded(..) | Self::Sealed { .. } | Self::NotAhead(..) => None,
            Self::Ended(call, _)
            | Self::Instantiated(call)
            | Self::Progress { call, .. }
            | Self::Log { call, .. }
            | Self::Denied { call, .. }
            | Self::Used { call, .. }
            | Self::Updated(call, _)
            | Self::Ask(call, _)
            | Self::TakeBack(call)
            | Self::OpenDoor(call, ..) => Some(*call),
        }
    }
}

/// The number of a capability in a message.
#[must_use]
pub fn capability_number(capability: Capability) -> u8 {
    let place = Capability::ALL.iter().position(|other| *other == capability);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX)
}

/// The capability of this number.
#[must_use]
pub fn capability(number: u8) -> Option<Capability> {
    Capability::ALL.get(usize::from(number)).copied()
}

/// The levels of log lines, the lowest first.
pub const LEVELS: [GuestLogLevel; 8] = [
    GuestLogLevel::Debug,
    GuestLogLevel::Info,
    GuestLogLevel::Notice,
    GuestLogLevel::Warning,
    GuestLogLevel::Error,
    GuestLogLevel::Critical,
    GuestLogLevel::Alert,
    GuestLogLevel::Emergency,
];

/// The kinds of questions.
pub const KINDS: [AskKind; 4] = [AskKind::Form, AskKind::Page, AskKind::Sampling, AskKind::Roots];

/// A set as bits, in the order of a list of at most eight.
#[must_use]
pub fn bits<T: Copy>(all: &[T], has: impl Fn(T) -> bool) -> u8 {
    all.iter().rev().fold(0, |bits, item| bits << 1 | u8::from(has(*item)))
}

/// True if the set has this member of the list.
#[must_use]
pub fn has_bit<T: PartialEq>(bits: u8, all: &[T], item: &T) -> bool {
    let place = all.iter().position(|other| other == item);
    place.and_then(|place| u32::try_from(place).ok()).is_some_and(|place| bits.wrapping_shr(place) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asking::GuestQuestion;
    use crate::contract;
    use crate::encoding::{EncodingError, decode, encode, encode_fitting};
    use crate::failure::CallFailure;
    use crate::load::message::tests::each_changed;
    use crate::seeds::are_seeds;
    use crate::weight::weigh;

    #[test]
    fn a_message_is_whole_or_none() {
        let bytes =
            encode(&FromSandbox::Log { call: 7, level: GuestLogLevel::Warning, message: "text".to_owned() }).unwrap();
        assert!(matches!(decode(&bytes), Ok(FromSandbox::Log { call: 7, .. })));
        for cut in 0..bytes.len() {
            assert!(decode::<FromSandbox>(&bytes[..cut]).is_err(), "{cut}");
        }
        let longer = [bytes.as_slice(), b"x"].concat();
        assert!(matches!(decode::<FromSandbox>(&longer), Err(EncodingError::Rest(1))));
        let mut other = bytes;
        other[0] += 1;
        assert!(matches!(decode::<FromSandbox>(&other), Err(EncodingError::Version)));
    }

    fn answer(texts: usize) -> FromSandbox {
        let text = |text: &str| {
            let text = text.to_owned();
            contract::GuestContent::Text(contract::TextContent { text, annotations: None, meta_json: None })
        };
        let content = vec![text("an answer"); texts];
        let result = contract::GuestResult { content, structured_json: None, is_error: false, meta_json: None };
        let report = CallReport::without_running(result);
        FromSandbox::Ended(1, Box::new(report))
    }

    fn failed(failure: CallFailure) -> FromSandbox {
        FromSandbox::Ended(1, Box::new(CallReport::not_run(failure).to_send()))
    }

    /// Messages out of a process, of each kind.
    fn said() -> Vec<(&'static str, FromSandbox)> {
        let asked = Inquiry { key: "k".to_owned(), question: GuestQuestion::Roots };
        let trapped = CallFailure::Trapped { reason: "unreachable".to_owned(), detail: "backtrace".to_owned() };
        let half = Some("half".to_owned());
        vec![
            ("not_loaded", FromSandbox::NotLoaded(0, "no code".to_owned())),
            ("sealed", FromSandbox::Sealed { missing: vec![("landlock".to_owned(), "none".to_owned())] }),
            ("ended", answer(3)),
            ("trapped", failed(trapped)),
            ("over_limit", failed(CallFailure::over(Limit::Fuel, &Limits::default()))),
            ("instantiated", FromSandbox::Instantiated(3)),
            ("progress", FromSandbox::Progress { call: 300, progress: 0.5, total: Some(1.0), message: half }),
            ("log", FromSandbox::Log { call: 3, level: GuestLogLevel::Warning, message: "a line".to_owned() }),
            ("updated", FromSandbox::Updated(2, "note:///a".to_owned())),
            ("denied", FromSandbox::Denied { call: 3, capability: 1, asked: "GET https://x.example/".to_owned() }),
            ("ask", FromSandbox::Ask(2, vec![asked])),
            ("take_back", FromSandbox::TakeBack(2)),
            ("not_ahead", FromSandbox::NotAhead(0, "wasi:random/random".to_owned())),
            ("open_door", FromSandbox::OpenDoor(2, 5, Blob(b"tw".to_vec()))),
            ("used", FromSandbox::Used { call: 2, fuel: 1_000, memory_bytes: 1 << 20 }),
        ]
    }

    /// Messages to a process.
    fn told() -> Vec<(&'static str, ToSandbox)> {
        let settings = ProcessSettings {
            stack_bytes: 512 << 10,
            calls_max: 64,
            prewarm_bytes: 64 << 20,
            engine: GuestEngine::Async,
        };
        let caller = CallerFacts {
            name: "local".to_owned(),
            log_levels: 0xff,
            times: false,
            asks: 0b1111,
            sampling_tools: false,
            trace: None,
            meta_json: "{}".to_owned(),
            extensions_json: "{}".to_owned(),
        };
        let call = RunCall {
            tape: Some(RunTape { does: TapeUse::Record, kept: Some(3) }),
            id: 9,
            component: 0,
            tool: "echo".to_owned(),
            arguments_json: r#"{"text":"x"}"#.to_owned(),
            is_conformed: false,
            caller,
            deadline_ms: 5_000,
            instance: Some(7),
        };
        vec![
            ("begin", ToSandbox::Begin(settings)),
            ("seal", ToSandbox::Seal(Bound { writable_bytes_max: 1 << 30, file_bytes_max: Some(1 << 20) })),
            ("call", ToSandbox::Call(Box::new(call))),
            ("cancel", ToSandbox::Cancel(9)),
            ("asked", ToSandbox::Asked(2, AskResult::Ended(None))),
            ("door", ToSandbox::Door(2, 5)),
        ]
    }

    /// Bytes of a hostile process: honest messages, changed in every way.
    #[test]
    fn changed_messages_are_decoded_or_refused_and_nothing_else() {
        for (_, seed) in said() {
            each_changed(&encode(&seed).unwrap(), 20_000, |bytes| {
                drop(decode::<FromSandbox>(bytes).map(|message| message.call()));
            });
        }
    }

    #[test]
    fn the_seeds_of_the_fuzz_target_are_messages() {
        let said = said().into_iter().map(|(name, message)| (name, encode(&message).unwrap()));
        let told = told().into_iter().map(|(name, message)| (name, encode(&message).unwrap()));
        are_seeds("messages", &said.chain(told).collect::<Vec<_>>());
    }

    #[test]
    fn an_answer_of_the_largest_size_fits_and_a_length_that_lies_takes_no_memory() {
        let limits = Limits::default();
        let bytes = encode(&answer(limits.output_items())).unwrap().len() as u64;
        assert!(bytes < bytes_max(&limits));
        // A list that claims 2^60 items, but has none.
        let mut bytes = encode(&answer(0)).unwrap();
        let list = bytes.iter().rposition(|byte| *byte == 0).unwrap();
        bytes.splice(3..list, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        assert!(decode::<FromSandbox>(&bytes).is_err());
    }

    #[test]
    fn lists_of_items_without_bytes_take_no_more_memory_than_a_small_multiple_of_their_message() {
        let asked = |key: &str| Inquiry { key: key.to_owned(), question: GuestQuestion::Roots };
        let hostile = [answer(2_000_000), FromSandbox::Ask(1, (0..2_000_000).map(|_| asked("")).collect())];
        for message in hostile {
            let refused = decode::<FromSandbox>(&encode(&message).unwrap()).unwrap_err().to_string();
            assert!(refused.contains("not a message"), "{refused}");
        }
        // The most that the limits allow.
        let limits = Limits::default().with(Limit::OutputItems, 10_000).unwrap();
        assert!(decode::<FromSandbox>(&encode(&answer(limits.output_items())).unwrap()).is_ok());
    }

    /// An answer with one link, whose icon has that many empty sizes.
    fn with_sizes(sizes: usize) -> contract::GuestResult {
        let icon =
            contract::GuestIcon { src: String::new(), mime_type: None, sizes: vec![String::new(); sizes], theme: None };
        let link = contract::GuestLink {
            uri: "a:/".to_owned(),
            name: "a".to_owned(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            annotations: None,
            icons: vec![icon],
            meta_json: None,
        };
        let content = vec![contract::GuestContent::ResourceLink(link)];
        contract::GuestResult { content, structured_json: None, is_error: false, meta_json: None }
    }

    #[test]
    fn what_the_limits_let_a_process_say_the_host_decodes_and_what_it_would_not_is_not_said() {
        let most = Limits::default().with(Limit::Output, 64 << 20).unwrap();
        for (limits, sizes, is_within, is_sent) in [
            (Limits::default(), 0, true, true),
            (Limits::default(), 43_000, true, true),
            (Limits::default(), 250_000, false, false),
            (most, 43_000, true, true),
            (most, 250_000, true, false),
            (most, 2_000_000, true, false),
        ] {
            let result = with_sizes(sizes);
            assert_eq!(weigh(&result).0 <= limits.output_bytes(), is_within, "{sizes}");
            let report = CallReport::without_running(result);
            let message = FromSandbox::Ended(1, Box::new(report));
            let decoded = decode::<FromSandbox>(&encode(&message).unwrap());
            assert_eq!(decoded.is_ok(), is_sent, "{sizes}");
            let sent = encode_fitting(&message);
            assert_eq!(sent.is_ok_and(|bytes| bytes.len() as u64 <= bytes_max(&limits)), is_sent, "{sizes}");
        }
    }

    #[test]
    fn a_backtrace_of_any_length_fits_the_message_of_a_call_that_may_say_nothing() {
        let limits = [Limit::Output, Limit::Log, Limit::Asks].into_iter().zip([1, 0, 0]);
        let limits = limits.fold(Limits::default(), |limits, (limit, value)| limits.with(limit, value).unwrap());
        let long = || "ä".repeat(1 << 20);
        for failure in [
            CallFailure::Trapped { reason: long(), detail: long() },
            CallFailure::Host { detail: long() },
            CallFailure::SandboxEnded { reason: long() },
        ] {
            let bytes = encode(&failed(failure)).unwrap();
            assert!(bytes.len() as u64 <= bytes_max(&limits), "{} bytes", bytes.len());
        }
    }

    #[test]
    fn a_load_shows_no_secret_and_carries_its_value() {
        let secret = HandedSecret::new("env:KEY", "s3cr3t-8d1f7c2a94");
        assert_eq!(format!("{secret:?}"), "HandedSecret(\"env:KEY\")");
        let read: HandedSecret = decode(&encode(&secret).unwrap()).unwrap();
        assert_eq!((read.source.as_str(), read.value().as_str()), ("env:KEY", "s3cr3t-8d1f7c2a94"));
    }

    #[test]
    fn sets_are_bits_in_the_order_of_their_list() {
        for wanted in LEVELS {
            let bits = bits(&LEVELS, |level| level == wanted);
            assert!(LEVELS.iter().all(|level| has_bit(bits, &LEVELS, level) == (*level == wanted)));
        }
        assert_eq!(bits(&KINDS, |_| true), 0b1111);
        for capability in Capability::ALL {
            assert_eq!(super::capability(capability_number(capability)), Some(capability));
        }
    }
}
