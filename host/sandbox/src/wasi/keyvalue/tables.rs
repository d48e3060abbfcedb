//! The layout of a component's state in its file: the tables, their format's number, and their
//! sizes. No quotas, no WASI.
use redb::{Database, ReadableTable as _, TableDefinition, WriteTransaction};

use super::error::{StateFault, StateOpenError};

/// (namespace, bucket, key) → (serial, value). The serial is the entry's place in [`ORDER`].
pub(super) const ENTRIES: TableDefinition<'_, (&str, &str, &str), (u64, &[u8])> = TableDefinition::new("entries");

/// (namespace, bucket, serial) → key: the index of a listing. A serial is never reused, so a cursor
/// neither skips nor repeats an entry when others are added or removed between two pages.
pub(super) const ORDER: TableDefinition<'_, (&str, &str, u64), &str> = TableDefinition::new("order");

/// namespace → (bytes, entries). An empty namespace has no row.
pub(super) const USAGE: TableDefinition<'_, &str, (u64, u64)> = TableDefinition::new("usage");

/// About the file itself.
pub(super) const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");

/// The row of [`ABOUT`] with the format's number.
const FORMAT_ROW: &str = "format";

/// The row of [`ABOUT`] with the last serial given.
const SERIAL_ROW: &str = "serial";

/// The format that this version reads and writes.
const FORMAT: u64 = 1;

/// Makes the tables in a new file; checks the format of an existing one.
pub(super) fn ready(database: &Database) -> Result<(), StateOpenError> {
    let transaction = database.begin_write()?;
    {
        let mut about = transaction.open_table(ABOUT)?;
        let found = about.get(FORMAT_ROW)?.map(|row| row.value());
        match found {
            Some(FORMAT) => return Ok(()),
            Some(format) => return Err(StateOpenError::Format { format }),
            None => {
                about.insert(FORMAT_ROW, FORMAT)?;
            }
        }
        transaction.open_table(ENTRIES)?;
        transaction.open_table(ORDER)?;
        transaction.open_table(USAGE)?;
    }
    transaction.commit()?;
    Ok(())
}

/// A serial that no entry of this file ever had.
pub(super) fn next_serial(transaction: &WriteTransaction) -> Result<u64, StateFault> {
    let mut about = transaction.open_table(ABOUT)?;
    let serial = about.get(SERIAL_ROW)?.map_or(0, |row| row.value()).saturating_add(1);
    about.insert(SERIAL_ROW, serial)?;
    Ok(serial)
}
