//! The goals, and how far the measured figures are from them. A goal has a row only if this run
//! measured it.

use serde_json::{Value, json};

/// Beginning of a verdict on a goal that is met.
pub const MET: &str = "met";

/// Beginning of a verdict on a goal that is missed.
pub const MISSED: &str = "missed by";

/// A figure that a goal is set for. The variants are in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Serial calls of `echo` on instances made when a call comes: p50 above the bare pipe's, in
    /// µs. The scheduler places the threads.
    EchoAboveBare,
    /// `EchoAboveBare`, with client and server on one CPU.
    EchoOnOneCpu,
    /// `EchoAboveBare`, with client and server on a CPU each.
    EchoOnTwoCpus,
    /// Pipelined calls of `echo` on instances made when a call comes, in calls/s.
    EchoPipelined,
    /// Pipelined calls of `tiny`, in calls/s.
    TinyPipelined,
    /// From the start to the first answer with 50 tools that are compiled already, p50 in ms.
    StartOfFifty,
    /// From a call to its answer where a sandbox process is started for it, less a later call: p50
    /// in ms.
    SandboxStart,
    /// Pipelined calls of the Python example: on two CPUs as a multiple of those on one.
    PythonCores,
    /// `PythonCores`, of the JavaScript example.
    JavaScriptCores,
    /// Calls while another group's process is killed again and again, p99 in ms.
    CallBesideKills,
    /// Calls while loops run in another group, p99 in ms.
    CallBesideLoopsApart,
    /// `ping` while loops run, p99 in ms.
    PingUnderLoops,
    /// `tools/list` while loops run, p99 in ms.
    ListUnderLoops,
    /// Calls of another tool while loops run, p99 in ms.
    CallUnderLoops,
    /// Resident memory of all processes with 100 tools, in MB.
    HundredTools,
    /// From saving a component of 50 KB to the notification at the client, p50 in ms.
    SaveToNotification,
    /// Calls 1 ms apart while 10 MB are reloaded: p99, as a multiple of the p99 of such calls
    /// before.
    PacedBesideReload,
    /// Calls one after another while 10 MB are reloaded: p99, as a multiple of the p99 of such
    /// calls before.
    SerialBesideReload,
    /// A signed component of 103 KB is added from a registry, with an empty store and nothing
    /// compiled: p50 in ms.
    AddFromRegistry,
    /// `StartOfFifty` with signed components that were pulled, as a multiple of those in files.
    StartOfPulled,
    /// A call of a tool with many grants, p50 above the same call with none, in µs.
    GrantsAboveNone,
    /// One decision on a request with 100 rules, in µs.
    Decision,
    /// Calls one after another while five people look at the console: p99, as a multiple of the p99
    /// of calls of a server without a console.
    CallBesideViewers,
    /// 100 calls in a second while five people look at the console: p99, as a multiple of the p99
    /// of the same process while nobody does.
    PacedBesideViewers,
    /// Peak of resident memory with a console that five people look at, above that of a server
    /// without a console: in MB.
    ViewersMemory,
    /// A request through the host on a new connection: time as a multiple of a plain client's.
    FetchOnNew,
    /// A request through the host on a connection that carried others: time as a multiple of a
    /// plain client's.
    FetchOnKept,
    /// Calls of a Rust guest over HTTP with 64 connections, in requests/s.
    HttpCalls,
    /// Calls of a Rust guest over HTTP with 64 connections, p99 in ms.
    HttpCallsP99,
    /// Calls of a Rust guest over HTTP with 64 connections, as a multiple of the rate of a server
    /// of the official SDK, whose tool is in its own process.
    HttpCallsBesideSdk,
    /// Lists over HTTP, as a multiple of the rate of a server of the official SDK.
    HttpListBesideSdk,
    /// Resident memory that 1,000 open streams take, in MB.
    HttpStreams,
    /// A call whose rate replicas share, p50 above one whose rate is in memory, as a multiple of a
    /// `PING` of the server.
    SharedRate,
    /// A fresh call of the Rust example, p50 in ms, without a wire.
    RustCall,
    /// A fresh call of the C example, p50 in ms, without a wire.
    CCall,
    /// A fresh call of the project that `toolcell new --lang c` writes, p50 in ms, without a wire.
    CTemplateCall,
    /// A fresh call of the JavaScript example, p50 in ms, without a wire.
    JavaScriptCall,
    /// A fresh call of the Python example, p50 in ms, without a wire.
    PythonCall,
    /// A fresh call of the Go example, p50 in ms, without a wire.
    GoCall,
    /// Compiling an edited Rust tool, in s.
    RustEdit,
    /// Compiling an edited Python tool, in s.
    PythonEdit,
    /// Compiling an edited JavaScript tool, in s.
    JavaScriptEdit,
    /// Compiling a Python tool next to another, in s.
    PythonSecond,
    /// Compiling a JavaScript tool next to another, in s.
    JavaScriptSecond,
}

/// The measured value of one goal.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The goal.
    pub goal: Goal,
    /// The value in the goal's unit.
    pub value: f64,
    /// The value as a multiple of the machine's own cost: a bare pipe, or the start of a native
    /// process. `None` if the machine has no such cost.
    pub ratio: Option<f64>,
}

impl Measured {
    /// A value with nothing to compare it with.
    pub const fn alone(goal: Goal, value: f64) -> Self {
        Self { goal, value, ratio: None }
    }
}

/// The bound of a goal.
struct Wanted {
    /// The name of the measured figure.
    measure: &'static str,
    bound: Bound,
    unit: &'static str,
}

#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    const fn wanted(self) -> Wanted {
        let (measure, bound, unit) = match self {
            Self::EchoAboveBare => {
                ("echo (Rust with std), fresh, serial p50 above a bare pipe", Bound::AtMost(45.0), "µs")
            }
            Self::EchoOnOneCpu => {
                ("  on one CPU: echo, fresh, serial p50 above a bare pipe", Bound::AtMost(45.0), "µs")
            }
            Self::EchoOnTwoCpus => {
                ("  on two CPUs: echo, fresh, serial p50 above a bare pipe", Bound::AtMost(45.0), "µs")
            }
            Self::SandboxStart => ("a sandbox process started for a call", Bound::AtMost(15.0), "ms"),
            Self::PythonCores => ("Python, two CPUs beside one", Bound::AtLeast(1.8), "×"),
            Self::JavaScriptCores => ("JavaScript, two CPUs beside one", Bound::AtLeast(1.8), "×"),
            Self::CallBesideKills => {
                ("call p99 while another group's process is killed each 100 ms", Bound::AtMost(10.0), "ms")
            }
            Self::CallBesideLoopsApart => {
                ("call p99 under 8 endless loops in another group", Bound::AtMost(10.0), "ms")
            }
            Self::EchoPipelined => ("echo (Rust with std), fresh, pipelined", Bound::AtLeast(65_000.0), "calls/s"),
            Self::TinyPipelined => ("tiny, pipelined", Bound::AtLeast(70_000.0), "calls/s"),
            Self::StartOfFifty => ("start to first answer, 50 Rust tools, warm cache", Bound::AtMost(50.0), "ms"),
            Self::PingUnderLoops => ("ping p99 under 8 endless loops", Bound::AtMost(10.0), "ms"),
            Self::ListUnderLoops => ("tools/list p99 under 8 endless loops", Bound::AtMost(10.0), "ms"),
            Self::CallUnderLoops => ("call of another tool, p99 under 8 endless loops", Bound::AtMost(100.0), "ms"),
            Self::HundredTools => ("resident memory of all processes, 100 Rust tools, idle", Bound::AtMost(85.0), "MB"),
            Self::SaveToNotification => ("50 KB saved, to the notification", Bound::AtMost(150.0), "ms"),
            Self::PacedBesideReload => {
                ("calls 1 ms apart while 10 MB are reloaded, p99 beside idle", Bound::AtMost(2.0), "×")
            }
            Self::SerialBesideReload => {
                ("calls one after another while 10 MB are reloaded, p99 beside idle", Bound::AtMost(2.0), "×")
            }
            Self::AddFromRegistry => {
                ("add, signed, from a registry on the loopback, in all", Bound::AtMost(500.0), "ms")
            }
            Self::StartOfPulled => ("start with 50 signed, pulled components, beside files", Bound::AtMost(1.05), "×"),
            Self::GrantsAboveNone => {
                ("call with 4 mounts and 20 HTTP rules, fresh, p50 above one without", Bound::AtMost(30.0), "µs")
            }
            Self::Decision => ("decision on a request, 100 HTTP rules", Bound::AtMost(2.0), "µs"),
            Self::CallBesideViewers => {
                ("call p99 with five viewers of the console, beside no console", Bound::AtMost(1.05), "×")
            }
            Self::PacedBesideViewers => ("  the same, 100 calls in a second", Bound::AtMost(1.05), "×"),
            Self::ViewersMemory => {
                ("resident memory of the console with five viewers, at most", Bound::AtMost(5.0), "MB")
            }
            Self::FetchOnNew => ("HTTP request of a guest, new connection, beside hyper's", Bound::AtMost(2.0), "×"),
            Self::HttpCalls => {
                ("tools/call over HTTP, Rust guest, 64 connections", Bound::AtLeast(15_000.0), "requests/s")
            }
            Self::HttpCallsP99 => ("  the same, p99", Bound::AtMost(10.0), "ms"),
            Self::HttpCallsBesideSdk => ("  the same, beside rmcp's in its process", Bound::AtLeast(1.0), "×"),
            Self::HttpListBesideSdk => {
                ("tools/list over HTTP, 64 connections, beside rmcp's", Bound::AtLeast(2.0), "×")
            }
            Self::SharedRate => ("a shared rate on a call, above one in memory", Bound::AtMost(1.0), "× PING"),
            Self::HttpStreams => ("resident memory of 1,000 open listen streams", Bound::AtMost(40.0), "MB"),
            Self::RustCall => ("fresh call: Rust", Bound::AtMost(0.045), "ms"),
            Self::CCall => ("fresh call: C", Bound::AtMost(0.06), "ms"),
            Self::CTemplateCall => ("fresh call: C, the project of `new`", Bound::AtMost(0.06), "ms"),
            Self::JavaScriptCall => ("fresh call: JavaScript", Bound::AtMost(1.0), "ms"),
            Self::PythonCall => ("fresh call: Python", Bound::AtMost(2.0), "ms"),
            Self::GoCall => ("fresh call: Go", Bound::AtMost(3.0), "ms"),
            Self::RustEdit => ("an edited tool compiled: Rust", Bound::AtMost(0.3), "s"),
            Self::PythonEdit => ("an edited tool compiled: Python", Bound::AtMost(2.0), "s"),
            Self::JavaScriptEdit => ("an edited tool compiled: JavaScript", Bound::AtMost(2.0), "s"),
            Self::PythonSecond => ("a second tool compiled: Python", Bound::AtMost(3.0), "s"),
            Self::JavaScriptSecond => ("a second tool compiled: JavaScript", Bound::AtMost(3.0), "s"),
            Self::FetchOnKept => ("HTTP request of a guest, kept connection, beside hyper's", Bound::AtMost(3.0), "×"),
        };
        Wanted { measure, bound, unit }
    }
}

impl Bound {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::AtMost(_) => "≤",
            Self::AtLeast(_) => "≥",
        }
    }

    const fn value(self) -> f64 {
        match self {
            Self::AtMost(value) | Self::AtLeast(value) => value,
        }
    }
}

/// The goals as lines of cells. The first line holds the headings.
pub fn table(measured: &[Measured], is_quick: bool) -> Vec<Vec<String>> {
    let headings = ["", "measured", "× bare", "goal", "verdict"].map(str::to_owned).to_vec();
    let line = |Measured { goal, value, ratio }: &Measured| {
        let Wanted { measure, bound, unit } = goal.wanted();
        let shown = [
            measure.to_owned(),
            format!("{} {unit}", figure(*value)),
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
            format!("{} {} {unit}", bound.sign(), figure(bound.value())),
            verdict(bound, *value, unit, is_quick),
        ];
        shown.to_vec()
    };
    std::iter::once(headings).chain(measured.iter().map(line)).collect()
}

/// The goals as JSON.
pub fn to_json(measured: &[Measured], is_quick: bool) -> Value {
    let row = |Measured { goal, value, ratio }: &Measured| {
        let Wanted { measure, bound, unit } = goal.wanted();
        let met = if is_quick { Value::Null } else { json!(bound.is_met_by(*value)) };
        json!({"measure": measure.trim_start(), "unit": unit, "measured": value, "ratio": ratio, "bound": bound.sign(), "goal": bound.value(), "met": met})
    };
    Value::Array(measured.iter().map(row).collect())
}

fn verdict(bound: Bound, value: f64, unit: &str, is_quick: bool) -> String {
    if is_quick {
        return "too few rounds to say".to_owned();
    }
    if bound.is_met_by(value) {
        return MET.to_owned();
    }
    let by = (value - bound.value()).abs();
    format!("{MISSED} {} {unit} ({:.2}×)", figure(by), value / bound.value())
}

/// Formats a figure. Large figures are whole numbers; small ones have one digit after the point.
/// Figures about one have two digits, and those far below one have three.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => format!("{value:.0}"),
        size if size >= 2.0 => format!("{value:.1}"),
        size if size < 0.1 => format!("{value:.3}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, verdict};

    #[test]
    fn a_verdict_says_by_how_much_a_goal_is_missed() {
        let cases = [
            (Bound::AtMost(25.0), 25.0, "met"),
            (Bound::AtMost(25.0), 30.5, "missed by 5.5 µs (1.22×)"),
            (Bound::AtLeast(50_000.0), 50_000.0, "met"),
            (Bound::AtLeast(50_000.0), 25_000.0, "missed by 25000 µs (0.50×)"),
        ];
        for (bound, value, said) in cases {
            assert_eq!(verdict(bound, value, "µs", false), said);
        }
        assert_eq!(verdict(Bound::AtMost(1.0), 2.0, "µs", true), "too few rounds to say");
    }
}
