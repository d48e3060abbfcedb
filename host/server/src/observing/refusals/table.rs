//! Rows of refusals in an interval, within a bound.
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::SystemTime;

use super::Reason;

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

/// A range of addresses: its first address, and its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Range {
    V4([u8; 3]),
    V6([u16; 3]),
    Socket,
}

#[derive(Clone, Copy)]
struct IntervalCount {
    count: u64,
    first: SystemTime,
}

/// The counts of an interval.
#[derive(Default)]
pub(super) struct RefusalTable {
    addresses: HashMap<(Reason, Range), IntervalCount>,
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
                let key = (reason, Range::of(*address));
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
            Self::Address(address) => Range::of(*address).text().into(),
            Self::Caller(name, _) => (*name).into(),
        }
    }
}

/// The beginning of a caller's name.
pub(super) fn kept_name(name: &str) -> String {
    name.get(..name.floor_char_boundary(CALLER_BYTES_MAX)).unwrap_or_default().to_owned()
}

impl Range {
    /// The range of an address: the size that one organisation or one customer has.
    pub(crate) fn of(address: Option<IpAddr>) -> Self {
        match address.map(|address| address.to_canonical()) {
            None => Self::Socket,
            Some(IpAddr::V4(address)) => {
                let [a, b, c, _] = address.octets();
                Self::V4([a, b, c])
            }
            Some(IpAddr::V6(address)) => {
                let [a, b, c, ..] = address.segments();
                Self::V6([a, b, c])
            }
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::V4([a, b, c]) => format!("{a}.{b}.{c}.0/24"),
            Self::V6([a, b, c]) => format!("{}/48", std::net::Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)),
            Self::Socket => "local".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_ranges() {
        for (address, expected) in [
            ("203.0.113.7", "203.0.113.0/24"),
            ("::ffff:203.0.113.9", "203.0.113.0/24"),
            ("2001:db8:1:2::3", "2001:db8:1::/48"),
            ("::1", "::/48"),
        ] {
            assert_eq!(Range::of(Some(address.parse().unwrap())).text(), expected);
        }
        assert_eq!(Range::of(None).text(), "local");
    }

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
