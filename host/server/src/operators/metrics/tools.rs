//! The figures of each tool, and of those that are counted together: dozens of series for each of
//! thousands of tools would be too many.
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use toolcell_audit::Outcome;

use crate::catalog::meters::Histogram;
use crate::catalog::{Catalog, Meters, TEXTS, ToolOffer};

/// The name of both tool and component for tools that are counted together. No tool has it.
pub const OTHER: &str = "(other)";

/// Which tools have their own series. The first page after a tool's first call decides, for the
/// life of the process: moving a count would look like calls.
#[derive(Debug)]
pub struct NamedTools {
    most: usize,
    names: Mutex<SeriesNames>,
}

/// A tool and its component.
type ToolKey = (String, String);

#[derive(Debug, Default)]
struct SeriesNames {
    own: HashSet<ToolKey>,
    together: HashSet<ToolKey>,
}

/// The figures of one tool, or of several together.
pub struct ToolFigures {
    pub tool: String,
    pub component: String,
    /// Ended calls, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Figures of guests; `None` for a prompt of the manifest, which runs none.
    pub guests: Option<GuestFigures>,
}

/// The figures of a tool's guests.
#[derive(Clone)]
pub struct GuestFigures {
    pub fuel: u64,
    pub durations: Ranges,
    pub waits: Ranges,
    pub memory: Ranges,
    pub running: usize,
    pub waiting: usize,
}

/// Counts of values by range, and their sum.
#[derive(Clone)]
pub struct Ranges {
    /// Each range's upper bound, without one for the last, and its count.
    pub ranges: Vec<(Option<u64>, u64)>,
    pub sum: u64,
}

/// Current calls of a tool.
#[derive(Clone, Copy, Default)]
struct ToolLoad {
    running: usize,
    waiting: usize,
}

impl NamedTools {
    /// At most `most` tools have their own series.
    pub fn new(most: usize) -> Self {
        Self { most, names: Mutex::default() }
    }

    /// The figures of all tools that were called, those that are counted together last.
    pub fn read(&self, catalog: &Arc<Catalog>, earlier: &[Arc<Catalog>]) -> Vec<ToolFigures> {
        let loads = loads(catalog, earlier);
        let of_offers = catalog.offers().map(|offer| {
            let load = loads.get(&(offer.component().name(), offer.own_name())).copied().unwrap_or_default();
            ToolFigures::of(&offer, load)
        });
        let of_texts = catalog.texts().map(|text| ToolFigures {
            tool: text.entry.definition().name.clone(),
            component: TEXTS.to_owned(),
            outcomes: outcomes(&text.meters),
            guests: None,
        });
        self.named(of_offers.chain(of_texts))
    }

    fn named(&self, all: impl Iterator<Item = ToolFigures>) -> Vec<ToolFigures> {
        let mut names = self.names.lock();
        let mut own = Vec::new();
        let mut together = None::<ToolFigures>;
        for figures in all.filter(ToolFigures::is_used) {
            let key = (figures.tool.clone(), figures.component.clone());
            if names.has_own(key, self.most) {
                own.push(figures);
            } else if let Some(together) = &mut together {
                together.add(&figures);
            } else {
                together = Some(ToolFigures { tool: OTHER.to_owned(), component: OTHER.to_owned(), ..figures });
            }
        }
        own.extend(together);
        own
    }
}

impl SeriesNames {
    fn has_own(&mut self, key: ToolKey, most: usize) -> bool {
        if self.own.contains(&key) {
            return true;
        }
        if self.together.contains(&key) || self.own.len() >= most {
            self.together.insert(key);
            return false;
        }
        self.own.insert(key)
    }
}

impl ToolFigures {
    fn of(offer: &ToolOffer<'_>, load: ToolLoad) -> Self {
        let meters = offer.meters();
        let guests = GuestFigures {
            fuel: meters.fuel(),
            durations: Ranges::of(&meters.durations),
            waits: Ranges::of(&meters.waits),
            memory: Ranges::of(&meters.memory),
            running: load.running,
            waiting: load.waiting,
        };
        Self {
            tool: offer.tool().definition().name.clone(),
            component: offer.component().name().to_owned(),
            outcomes: outcomes(meters),
            guests: Some(guests),
        }
    }

    pub fn labels(&self) -> [(&'static str, &str); 2] {
        [("tool", &self.tool), ("component", &self.component)]
    }

    fn is_used(&self) -> bool {
        self.outcomes.iter().any(|count| *count > 0)
            || self.guests.as_ref().is_some_and(|guests| guests.running + guests.waiting > 0)
    }

    fn add(&mut self, more: &Self) {
        for (count, more) in self.outcomes.iter_mut().zip(&more.outcomes) {
            *count += more;
        }
        match (&mut self.guests, &more.guests) {
            (Some(guests), Some(more)) => guests.add(more),
            (None, Some(more)) => self.guests = Some(more.clone()),
            (_, None) => {}
        }
    }
}

impl GuestFigures {
    fn add(&mut self, more: &Self) {
        self.fuel += more.fuel;
        self.durations.add(&more.durations);
        self.waits.add(&more.waits);
        self.memory.add(&more.memory);
        self.running += more.running;
        self.waiting += more.waiting;
    }
}

impl Ranges {
    fn of<const BOUNDS: usize>(histogram: &Histogram<BOUNDS>) -> Self {
        let (ranges, sum) = histogram.read();
        Self { ranges, sum }
    }

    /// All histograms have the same bounds.
    fn add(&mut self, more: &Self) {
        for ((_, count), (_, more)) in self.ranges.iter_mut().zip(&more.ranges) {
            *count += more;
        }
        self.sum += more.sum;
    }
}

fn outcomes(meters: &Meters) -> [u64; Outcome::ALL.len()] {
    let mut counts = [0; Outcome::ALL.len()];
    for (count, (_, ended)) in counts.iter_mut().zip(meters.outcomes.read()) {
        *count = ended;
    }
    counts
}

/// Running and waiting calls by component and tool, also on earlier generations.
fn loads<'c>(catalog: &'c Arc<Catalog>, earlier: &'c [Arc<Catalog>]) -> HashMap<(&'c str, &'c str), ToolLoad> {
    let mut seen = HashSet::new();
    let mut loads: HashMap<(&str, &str), ToolLoad> = HashMap::new();
    for offer in earlier.iter().chain([catalog]).flat_map(|catalog| catalog.offers()) {
        if seen.insert(offer.places()) {
            let (running, waiting) = offer.load();
            let load = loads.entry((offer.component().name(), offer.own_name())).or_default();
            load.running += running;
            load.waiting += waiting;
        }
    }
    loads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(tool: &str, calls: u64) -> ToolFigures {
        let mut outcomes = [0; Outcome::ALL.len()];
        outcomes[0] = calls;
        let ranges = || Ranges { ranges: vec![(Some(1), calls), (None, 1)], sum: calls };
        let guests = GuestFigures {
            fuel: calls,
            durations: ranges(),
            waits: ranges(),
            memory: ranges(),
            running: 0,
            waiting: 0,
        };
        ToolFigures { tool: tool.to_owned(), component: "c".to_owned(), outcomes, guests: Some(guests) }
    }

    fn read(named: &NamedTools, counts: &[(&str, u64)]) -> Vec<(String, u64)> {
        let all = named.named(counts.iter().map(|(tool, calls)| figures(tool, *calls)));
        all.iter().map(|figures| (figures.tool.clone(), figures.outcomes[0])).collect()
    }

    #[test]
    fn the_first_tools_that_are_called_have_series_and_the_rest_count_together() {
        let named = NamedTools::new(2);
        let expected = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
            rows.iter().map(|(tool, calls)| ((*tool).to_owned(), *calls)).collect()
        };
        assert_eq!(read(&named, &[("a", 0), ("b", 0), ("c", 0), ("d", 0)]), expected(&[]));
        assert_eq!(read(&named, &[("a", 0), ("b", 0), ("c", 5), ("d", 0)]), expected(&[("c", 5)]));
        let later = [("a", 1), ("b", 2), ("c", 6), ("d", 3)];
        assert_eq!(read(&named, &later), expected(&[("a", 1), ("c", 6), (OTHER, 5)]));
        // A tool with series has left. No count moves, so that none looks like a call.
        assert_eq!(read(&named, &[("a", 1), ("b", 2), ("d", 3)]), expected(&[("a", 1), (OTHER, 5)]));
        let together = named.named([figures("b", 2), figures("d", 3)].into_iter()).pop().unwrap();
        let guests = together.guests.unwrap();
        assert_eq!((guests.fuel, guests.durations.sum, guests.durations.ranges), (5, 5, vec![(Some(1), 5), (None, 2)]));
    }
}
