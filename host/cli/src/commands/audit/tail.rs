//! `toolcell audit tail`: the last records, and new ones.
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use toolcell_audit::Follower;

use super::filter;
use super::printer::Printer;
use super::{each_chain, say_unreadable, unreadable, wrong_filter};
use crate::args::AuditTailArgs;
use crate::exit::Exit;

/// Interval of checks for new records: soon for a person, and rare enough to cost nothing.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// A chain whose records are printed.
struct Followed {
    path: PathBuf,
    follower: Follower,
    printer: Printer,
}

impl Followed {
    /// Prints the records that have come.
    fn print(&mut self) -> io::Result<()> {
        while let Some(line) = self.follower.next_line()? {
            self.printer.line(line)?;
        }
        self.printer.flush()
    }
}

/// Prints the records.
pub fn run(args: &AuditTailArgs) -> anyhow::Result<Exit> {
    let filter = match filter::of(&args.filter) {
        Ok(filter) => filter,
        Err(problem) => return Ok(wrong_filter(&problem)),
    };
    let mut followed = Vec::new();
    let exit = each_chain(&args.file, |path, archive| {
        let follower = archive.follow(path, args.records)?;
        followed.push(Followed {
            path: path.to_owned(),
            follower,
            printer: Printer::new(filter.clone(), args.filter.json),
        });
        Ok(Exit::Done)
    })?;
    if followed.is_empty() {
        return Ok(exit);
    }
    loop {
        for chain in &mut followed {
            if let Err(error) = chain.print() {
                return Ok(unreadable(&chain.path, &error));
            }
        }
        if !args.follow {
            break;
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
    let mut worst = exit;
    for chain in followed {
        let exit = say_unreadable(&chain.path, chain.printer.end()?);
        if exit != Exit::Done {
            worst = exit;
        }
    }
    Ok(worst)
}
