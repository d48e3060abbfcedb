//! `toolcell audit tail`: the last records of all chains, and new ones.
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcell_audit::{Archive, Chain, Follower};

use super::filter;
use super::printer::Printer;
use super::{each_chain, named, report_unreadable, time_of, unreadable};
use crate::args::AuditTailArgs;
use crate::exit::{Exit, Failure};

/// Interval of polls for new records: fast enough for a person, and rare enough to cost nothing.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// Polls for new records per poll for new chains, which begin with a process.
const POLLS_PER_CHAINS: u32 = 5;

/// A chain whose records are printed.
struct Followed {
    number: u32,
    path: PathBuf,
    follower: Follower,
    /// The next line, if it was read.
    next: Option<Vec<u8>>,
}

/// A line and the number of its chain.
struct ChainLine {
    chain: u32,
    line: Vec<u8>,
}

/// All chains, merged by time.
struct Merged(Vec<Followed>);

impl Followed {
    fn new(chain: &Chain, archive: Archive, last: u64) -> io::Result<Self> {
        let follower = archive.follow(&chain.path, last)?;
        Ok(Self { number: chain.number, path: chain.path.clone(), follower, next: None })
    }
}

impl Merged {
    /// The oldest line that was not returned yet.
    fn next(&mut self) -> Result<Option<ChainLine>, Failure> {
        for chain in self.0.iter_mut().filter(|chain| chain.next.is_none()) {
            let line = chain.follower.next_line().map(|line| line.map(<[u8]>::to_vec));
            chain.next = line.map_err(|error| unreadable(&chain.path, &error))?;
        }
        let left = self.0.iter_mut().filter(|chain| chain.next.is_some());
        let oldest = left.min_by(|one, other| time_of(one.next.as_deref()).cmp(time_of(other.next.as_deref())));
        Ok(oldest.and_then(|chain| Some(ChainLine { chain: chain.number, line: chain.next.take()? })))
    }

    /// Finds new chains, and follows them from their beginning.
    fn find_chains(&mut self, audit: &Path) {
        // If this fails, the next poll tries again.
        let Ok(chains) = toolcell_audit::chains(audit) else { return };
        for chain in chains {
            if self.0.iter().any(|followed| followed.number == chain.number) {
                continue;
            }
            let followed = Archive::open(&chain.path).and_then(|archive| Followed::new(&chain, archive, u64::MAX));
            self.0.extend(followed);
        }
    }
}

/// Prints the records.
pub fn run(args: &AuditTailArgs) -> anyhow::Result<Exit> {
    let filter = filter::of(&args.filter)?;
    let file = named(&args.file)?;
    let mut merged = Merged(Vec::new());
    let mut exit = each_chain(&file, |chain, archive| {
        merged.0.push(Followed::new(chain, archive, args.records)?);
        Ok(Exit::Done)
    })?;
    if merged.0.is_empty() {
        return Ok(exit);
    }
    let mut printer = Printer::new(filter, args.filter.json);
    last(&mut merged, args.records, &mut printer)?;
    if args.follow {
        return follow(&mut merged, &file, &mut printer);
    }
    let left_out = printer.end()?;
    for chain in &merged.0 {
        exit = exit.or(report_unreadable(&chain.path, left_out.get(&chain.number).copied().unwrap_or_default()));
    }
    Ok(exit)
}

/// Prints lines as they are written, including those of new chains. Ends if a chain cannot be read
/// any more.
fn follow(merged: &mut Merged, file: &Path, printer: &mut Printer) -> anyhow::Result<Exit> {
    let mut looks = 0_u32;
    loop {
        std::thread::sleep(POLL_EVERY);
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(POLLS_PER_CHAINS) {
            merged.find_chains(file);
        }
        while let Some(ChainLine { chain, line }) = merged.next()? {
            printer.line(chain, &line)?;
        }
        printer.flush()?;
    }
}

/// Prints the last existing lines.
fn last(merged: &mut Merged, records: u64, printer: &mut Printer) -> anyhow::Result<()> {
    let mut lines = VecDeque::new();
    while let Some(line) = merged.next()? {
        lines.push_back(line);
        if lines.len() as u64 > records {
            lines.pop_front();
        }
    }
    for ChainLine { chain, line } in lines {
        printer.line(chain, &line)?;
    }
    printer.flush()?;
    Ok(())
}
