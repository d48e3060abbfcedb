//! `toolcell audit tail`: the last records, and new ones.
use std::time::Duration;

use toolcell_audit::Archive;

use super::filter;
use super::printer::Printer;
use super::{say_unreadable, unreadable, wrong_filter};
use crate::args::AuditTailArgs;
use crate::exit::Exit;

/// Interval of checks for new records: soon for a person, and rare enough to cost nothing.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Prints the records.
pub fn run(args: &AuditTailArgs) -> anyhow::Result<Exit> {
    let filter = match filter::of(&args.filter) {
        Ok(filter) => filter,
        Err(problem) => return Ok(wrong_filter(&problem)),
    };
    let followed = Archive::open(&args.file).and_then(|archive| archive.follow(&args.file, args.records));
    let mut follower = match followed {
        Ok(follower) => follower,
        Err(error) => return Ok(unreadable(&args.file, &error)),
    };
    let mut printer = Printer::new(filter, args.filter.json);
    loop {
        match follower.next_line() {
            Ok(Some(line)) => printer.line(line)?,
            Ok(None) if args.follow => {
                printer.flush()?;
                std::thread::sleep(LOOK_AGAIN_AFTER);
            }
            Ok(None) => return Ok(say_unreadable(&args.file, printer.end()?)),
            Err(error) => {
                printer.flush()?;
                return Ok(unreadable(&args.file, &error));
            }
        }
    }
}
