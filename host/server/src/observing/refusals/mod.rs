//! Requests that were refused before they were calls: 401s, 403s, and names of tools that a
//! caller may not see. They are counted, and recorded together. Must not hold: who is refused, or
//! why.
//!
//! A refusal costs a lock and a table lookup, but no record. At the end of each [`INTERVAL`], one
//! row is written for each caller or address range. The rows are bounded; one further row counts
//! the rest. The console shows the refusals of the last hour, with or without an audit.
mod recent;
mod table;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use toolcell_audit::{Clipped, Event, RequestRefused, Sink, timestamp};
use toolcell_mcp::Caller;
use toolcell_mcp::http::{RefusalObserver, RefusalReason};

use crate::observing::alerts::Alerts;
use crate::observing::counts::Counts;
use crate::owned_task::OwnedTask;
use recent::Recent;
pub use recent::{RecentRefusal, RecentRefusals};
use table::{RefusalRow, RefusalTable, Who};

/// Time between two records of the same kind. A minute of the audit is thus nearly complete.
const INTERVAL: Duration = Duration::from_secs(60);

/// Why a request did not become a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// No credential: 401.
    NoCredential,
    /// A credential that is not known: 401.
    UnknownCredential,
    /// A credential that lacks a right: 403.
    MissingRight,
    /// A host name that the server does not answer to: 403.
    Host,
    /// A web page whose origin is not allowed: 403.
    Origin,
    /// A tool or prompt that the caller may not see.
    HiddenTool,
    /// A tool or prompt that nobody sees.
    UnknownTool,
}

/// Why and how a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// The HTTP status; `None` if the protocol's answer reports it.
    pub status: Option<u16>,
    /// True if the console refused it.
    pub is_at_console: bool,
}

pub struct Refusals {
    sink: Arc<Sink>,
    alerts: Option<Arc<Alerts>>,
    pub counts: Counts<Reason, { Reason::ALL.len() }>,
    /// Refusals of the current interval, for records.
    table: Mutex<RefusalTable>,
    /// Refusals of the last hour.
    recent: Mutex<Recent>,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NoCredential,
        Self::UnknownCredential,
        Self::MissingRight,
        Self::Host,
        Self::Origin,
        Self::HiddenTool,
        Self::UnknownTool,
    ];

    /// The name in records and metrics: `no_credential`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoCredential => "no_credential",
            Self::UnknownCredential => "unknown_credential",
            Self::MissingRight => "missing_right",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::HiddenTool => "hidden_tool",
            Self::UnknownTool => "unknown_tool",
        }
    }
}

impl From<RefusalReason> for Reason {
    fn from(reason: RefusalReason) -> Self {
        match reason {
            RefusalReason::NoCredential => Self::NoCredential,
            RefusalReason::UnknownCredential => Self::UnknownCredential,
            RefusalReason::MissingRight => Self::MissingRight,
            RefusalReason::Host => Self::Host,
            RefusalReason::Origin => Self::Origin,
        }
    }
}

impl Refusals {
    /// Records go to this sink, and each refusal to the alerts.
    pub fn new(sink: &Arc<Sink>, alerts: Option<Arc<Alerts>>) -> Self {
        Self {
            sink: Arc::clone(sink),
            alerts,
            counts: Counts::new(&Reason::ALL),
            table: Mutex::default(),
            recent: Mutex::default(),
        }
    }

    pub fn start(self: &Arc<Self>, runtime: &Handle) -> OwnedTask {
        let refusals = Arc::downgrade(self);
        OwnedTask(runtime.spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let Some(refusals) = refusals.upgrade() else { return };
                // This thread drives connections, and must not wait for a disk.
                drop(tokio::task::spawn_blocking(move || refusals.write()).await);
            }
        }))
    }

    /// A caller named a tool or prompt that it may not see.
    pub fn unseen(&self, caller: &Caller, hidden: Option<&str>) {
        let reason = if hidden.is_some() { Reason::HiddenTool } else { Reason::UnknownTool };
        self.count(Refusal::of(reason), &Who::Caller(caller.name(), hidden));
    }

    /// The console refused a request from this address with this status.
    pub fn at_console(&self, from: IpAddr, reason: RefusalReason, status: u16) {
        let refusal = Refusal { reason: reason.into(), status: Some(status), is_at_console: true };
        self.count(refusal, &Who::Address(Some(from)));
    }

    pub fn recent(&self) -> RecentRefusals {
        self.recent.lock().list(Instant::now())
    }

    /// Writes a record of each row, and starts again.
    pub fn write(&self) {
        let rows = std::mem::take(&mut *self.table.lock());
        for row in rows.into_rows() {
            self.record(&row);
        }
    }

    fn count(&self, refusal: Refusal, who: &Who<'_>) {
        let reason = refusal.reason;
        let now = SystemTime::now();
        self.counts.count(reason);
        if self.sink.is_enabled() {
            self.table.lock().count(reason, who, now);
        }
        self.recent.lock().count(refusal, who, Instant::now(), now);
        if let Some(alerts) = &self.alerts {
            alerts.refused(&who.text());
        }
    }

    fn record(&self, row: &RefusalRow) {
        let first = timestamp(row.first);
        let event = || {
            Event::RequestRefused(RequestRefused {
                reason: row.reason.name(),
                caller: row.caller.as_deref().map(Clipped),
                address: row.address.as_deref(),
                tool: row.tool.as_deref(),
                others: row.is_others,
                count: row.count,
                first: &first,
            })
        };
        if let Err(error) = self.sink.record(event) {
            tracing::error!("refused requests are missing from the audit: {error}");
        }
    }
}

impl RefusalObserver for Refusals {
    fn refused(&self, from: Option<IpAddr>, reason: RefusalReason) {
        self.count(Refusal::of(reason.into()), &Who::Address(from));
    }
}

#[cfg(test)]
mod tests {
    use super::table::{ADDRESS_ROWS_MAX, CALLER_ROWS_MAX};
    use super::*;

    #[test]
    fn a_flood_of_strangers_is_a_few_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let (sink, _) = Sink::open(&path).unwrap();
        let refusals = Refusals::new(&Arc::new(sink), None);
        for number in 0..100_000_u32 {
            let address = IpAddr::from(number.wrapping_mul(0x0001_0001).to_be_bytes());
            refusals.refused(Some(address), RefusalReason::NoCredential);
            refusals.unseen(&Caller::new(&format!("caller-{number}"), []), Some("hidden"));
        }
        refusals.write();
        let text = std::fs::read_to_string(&path).unwrap();
        let records: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(records.len(), ADDRESS_ROWS_MAX + CALLER_ROWS_MAX + 2);
        let of = |reason: &'static str| records.iter().filter(move |record| record["reason"] == reason);
        for reason in ["no_credential", "hidden_tool"] {
            let sum: u64 = of(reason).map(|record| record["count"].as_u64().unwrap()).sum();
            assert_eq!(sum, 100_000, "{reason}: nothing is lost");
            assert_eq!(of(reason).filter(|record| record["others"] == true).count(), 1, "{reason}");
        }
        assert_eq!(refusals.counts.read().map(|(_, count)| count).sum::<u64>(), 200_000);
        refusals.write();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "nothing new, no record");
        assert!(text.len() < 32 << 10, "{} bytes", text.len());
    }

    #[test]
    fn without_an_audit_there_are_a_counter_and_the_last_hour() {
        let refusals = Refusals::new(&Arc::new(Sink::disabled()), None);
        refusals.refused(None, RefusalReason::Origin);
        refusals.at_console(IpAddr::from([127, 0, 0, 1]), RefusalReason::UnknownCredential, 429);
        refusals.write();
        let counted: Vec<_> = refusals.counts.read().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [(Reason::UnknownCredential, 1), (Reason::Origin, 1)]);
        let recent = refusals.recent();
        let rows: Vec<_> = recent.rows.iter().map(|row| (row.refusal.status, row.who.as_str(), row.count)).collect();
        assert_eq!((rows, recent.beyond), (vec![(Some(429), "127.0.0.0/24", 1), (Some(403), "local", 1)], 0));
        assert!(recent.rows[0].refusal.is_at_console && !recent.rows[1].refusal.is_at_console);
    }
}
