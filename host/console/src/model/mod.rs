//! Values that the pages show: plain owned structs, one module for each view.
//!
//! Every `String` may hold anything that a component, a client or another server wrote. The pages
//! clip and escape it. Anyone who fills these values bounds only how many there are.
//!
//! Must not hold: HTML, or types of other crates.

mod approvals;
mod audit;
mod call;
mod callers;
mod changes;
mod denials;
mod frame;
mod moment;
mod now;
mod reach;
mod tools;

pub use approvals::{Approvals, DecidedApproval, WaitingApproval};
pub use audit::{Audit, AuditQuery, AuditRow, CallLink, ChainState};
pub use call::{CallPage, CallRecordLine, CallSpan, CallUsage};
pub use callers::{CallerDay, CallerRule, Callers, FreshToken, LoginRow, RefusedCaller, TokenRow};
pub use changes::{
    Beyond, Changes, DefinitionChange, Generation, GenerationOutcome, GrantChange, Quarantined, RecordedCalls,
    SourceState,
};
pub use denials::{AllowingRule, DenialGroup, Denials};
pub use frame::{Badges, ErrorPage, Frame, Notice, SignIn, SignInReason};
pub use moment::Moment;
pub use now::{Gauge, History, HistoryPoint, Now, Phase, RunningCall, SeriesPoint, Totals};
pub use reach::{Place, Reach, ReachKind};
pub use tools::{
    Content, LimitRow, LimitUse, MeasuredCalls, RecordingState, SetIn, ToolPage, ToolRow, Tools, TryResult, TryState,
    Unit,
};
