//! Rows of refusals in an interval, within a bound.
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::SystemTime;

use super::Reason;
use crate::listening::AddressRange;

/// Rows of address ranges in an interval. A record has about 300 bytes, so strangers can cause at
/// most 28 MB a day, with those of [`CALLER_ROWS_MAX`].
pub const ADDRESS_ROWS_MAX: usize = 32;

/// Rows of callers in an interval. Strangers cannot displace them.
pub const CALLER_ROWS_MAX: usize = 32;

/// Longest name of a caller that is kept, in bytes. Subjects of issuers may be longer.
const CALLER_BYTES_MAX: usize = 256;

/// The sender of a refused request.
pub(super) enum Who<'a> {
    /// An address; `None` is a Unix socket.
    Address(Option<IpAddr>),
    /// A caller, and the tool that it may not see.
    Caller(&'a str, Option<&'a str>),
}

#[derive(Clone, Copy)]
struct IntervalCount {
    count: u64,
    first: SystemTime,
}

/// The counts of an interval.
#[derive(Default)]
pub(super) struct RefusalTable {
    addresses: HashMap<(Reason, AddressRange), IntervalCount>,
    callers: HashMap<(Reason, String, Option<String>), IntervalCount>,
    others: HashMap<Reason, IntervalCount>,
}

/// A count with its subject.
pub(super) struct RefusalRow {
    pub(super) reason: Reason,
    pub(super) caller: Option<String>,
    pub(super) address: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) is_others: bool,
    pub(super) count: u64,
    pub(super) first: SystemTime,
}

impl RefusalTable {
    pub(super) fn count(&mut self, reason: Reason, who: &Who<'_>, now: SystemTime) {
        let row = match who {
            Who::Address(address) => {
                let key = (reason, AddressRange::of(*address));
                let has_room = self.addresses.len() < ADDRESS_ROWS_MAX || self.addresses.contains_key(&key);
                has_room.then(|| self.addresses.entry(key).or_insert(IntervalCount { count: 0, first: now }))
            }
            Who::Caller(name, tool) => {
                let key = (reason, kept_name(name), tool.map(str::to_owned));
                let has_room = self.callers.len() < CALLER_ROWS_MAX || self.callers.contains_key(&key);
                has_room.then(|| self.callers.entry(key).or_insert(IntervalCount { count: 0, first: now }))
            }
        };
        let row = match row {
            Some(row) => row,
            None => self.others.entry(reason).or_insert(IntervalCount { count: 0, first: now }),
        };
        row.count = row.count.saturating_add(1);
    }

    /// The rows, the earliest first.
    pub(super) fn into_rows(self) -> Vec<RefusalRow> {
        let row = |reason, IntervalCount { count, first }| RefusalRow {
            reason,
            caller: None,
            address: None,
            tool: None,
            is_others: false,
            count,
            first,
        };
        let addresses = self
            .addresses
            .into_iter()
            .map(|((reason, range), count)| RefusalRow { address: Some(range.text()), ..row(reason, count) });
        let callers = self.callers.into_iter().map(|((reason, caller, tool), count)| RefusalRow {
            caller: Some(caller),
            tool,
            ..row(reason, count)
        });
        let mut rows: Vec<RefusalRow> = addresses.chain(callers).collect();
        rows.sort_by_key(|row| row.first);
        let others =
            self.others.into_iter().map(|(reason, count)| RefusalRow { is_others: true, ..row(reason, count) });
        rows.extend(others);
        rows
    }
}

impl Who<'_> {
    /// The caller's name, or the range of addresses.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Address(address) => AddressRange::of(*address).text().into(),
            Self::Caller(name, _) => (*name).into(),
        }
    }
}

/// The beginning of a caller's name.
pub(super) fn kept_name(name: &str) -> String {
    name.get(..name.floor_char_boundary(CALLER_BYTES_MAX)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_take_no_row_of_callers() {
        let mut table = RefusalTable::default();
        let now = SystemTime::UNIX_EPOCH;
        for number in 0..200_u8 {
            let address = IpAddr::from([number, 0, 0, 1]);
            table.count(Reason::NoCredential, &Who::Address(Some(address)), now);
        }
        let long = "é".repeat(1_000);
        table.count(Reason::HiddenTool, &Who::Caller(&long, Some("pay")), now);
        table.count(Reason::HiddenTool, &Who::Caller(&long, Some("pay")), now);
        let rows = table.into_rows();
        assert_eq!(rows.len(), ADDRESS_ROWS_MAX + 2);
        let caller = rows.iter().find(|row| row.caller.is_some()).unwrap();
        assert_eq!((caller.count, caller.tool.as_deref()), (2, Some("pay")));
        assert_eq!(caller.caller.as_ref().unwrap().len(), CALLER_BYTES_MAX);
        let others = rows.last().unwrap();
        assert!(others.is_others && others.count == 200 - ADDRESS_ROWS_MAX as u64);
    }
}
