//! The metrics of a host, read as strictly as OpenMetrics 1.0 defines them. The test fails on a
//! line that cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use crate::web::{Ask, Wire};
use crate::{TestHost, patience};

/// The content type of the page.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A page of metrics.
#[derive(Clone, Debug)]
pub struct Figures {
    families: BTreeMap<String, String>,
    samples: BTreeMap<Series, f64>,
}

/// A sample's name and labels, the labels in the order of their names.
type Series = (String, Labels);

/// Labels with their values, in the order of their names.
type Labels = Vec<(String, String)>;

impl TestHost {
    /// The address of the host's metrics.
    ///
    /// # Panics
    /// If it serves none.
    #[must_use]
    pub fn metrics_address(&self) -> SocketAddr {
        self.will_say("/metrics");
        let said = self.said();
        let at = said.split("metrics at http://").nth(1).and_then(|rest| rest.split('/').next());
        at.expect("an address").parse().unwrap()
    }

    /// The host's present metrics.
    ///
    /// # Panics
    /// If they break a rule of OpenMetrics.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let ask = Ask::bare("GET", "/metrics").with("accept", "application/openmetrics-text;version=1.0.0,*/*;q=0.1");
        let reply = Wire::to(self.metrics_address()).ask(&ask);
        assert_eq!((reply.status(), reply.field("content-type")), (200, Some(OPEN_METRICS)));
        Figures::read(std::str::from_utf8(reply.body()).unwrap())
    }

    /// The host's metrics, as soon as `is_so` holds for them.
    ///
    /// # Panics
    /// If it does not hold in time.
    #[must_use]
    pub fn figures_when(&self, what: &str, is_so: impl Fn(&Figures) -> bool) -> Figures {
        let end = Instant::now() + patience();
        loop {
            let figures = self.figures();
            if is_so(&figures) {
                return figures;
            }
            assert!(Instant::now() < end, "never {what}: {figures:#?}\n{}", self.said());
        }
    }
}

impl Figures {
    /// Reads a page.
    ///
    /// # Panics
    /// If a line breaks a rule of OpenMetrics.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").unwrap_or_else(|| panic!("no end: {text}"));
        let mut figures = Self { families: BTreeMap::new(), samples: BTreeMap::new() };
        let mut family = String::new();
        for line in body.lines() {
            if let Some(described) = line.strip_prefix("# ") {
                family = figures.describe(described, &family);
            } else {
                figures.sample(line, &family);
            }
        }
        figures.spreads_add_up();
        figures
    }

    /// The value of one series. The labels may be in any order.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let found = self.find(name, labels);
        found.unwrap_or_else(|| panic!("no {name} {labels:?} among {:#?}", self.samples.keys()))
    }

    /// The value of one series, or `None` without such a series.
    #[must_use]
    pub fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut labels: Vec<_> = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        labels.sort();
        self.samples.get(&(name.to_owned(), labels)).copied()
    }

    /// The series of this name that are not zero, by the values of these labels.
    #[must_use]
    pub fn counted(&self, name: &str, labels: &[&str]) -> BTreeMap<String, u64> {
        let series = self.samples.iter().filter(|((known, _), value)| known == name && **value > 0.0);
        let shown = |of: &Vec<(String, String)>| {
            let value = |label: &&str| of.iter().find(|(key, _)| key == label).map(|(_, value)| value.as_str());
            labels.iter().filter_map(value).collect::<Vec<_>>().join(" ")
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
        series.map(|((_, of), value)| (shown(of), *value as u64)).collect()
    }

    /// The names that a query may use: of each family its samples', also of those that have none
    /// yet.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        let named = |(name, kind): (&String, &String)| {
            let endings: &[&str] = match kind.as_str() {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_count", "_sum"],
                "info" => &["_info"],
                _ => &[""],
            };
            endings.iter().map(|ending| format!("{name}{ending}")).collect::<Vec<_>>()
        };
        self.families.iter().flat_map(named).collect()
    }

    /// The number of series.
    #[must_use]
    pub fn series(&self) -> usize {
        self.samples.len()
    }

    /// The values of a label, over all series.
    #[must_use]
    pub fn values_of(&self, label: &str) -> BTreeSet<&str> {
        let labels = self.samples.keys().flat_map(|(_, labels)| labels);
        labels.filter(|(key, _)| key == label).map(|(_, value)| value.as_str()).collect()
    }

    /// All labels.
    #[must_use]
    pub fn labels(&self) -> BTreeSet<&str> {
        self.samples.keys().flat_map(|(_, labels)| labels).map(|(key, _)| key.as_str()).collect()
    }

    /// Reads HELP, TYPE and UNIT of a family, which stand together and before its samples. Returns
    /// the family's name.
    fn describe(&mut self, described: &str, family: &str) -> String {
        let (keyword, rest) = described.split_once(' ').unwrap();
        let (name, said) = rest.split_once(' ').unwrap();
        assert!(is_name(name), "{described}");
        match keyword {
            "HELP" => {
                assert!(!said.is_empty() && !said.contains('\\'), "{described}");
                assert!(!self.families.contains_key(name), "{name} comes twice");
                self.families.insert(name.to_owned(), "unknown".to_owned());
            }
            "TYPE" => {
                assert_eq!(name, family);
                assert!(matches!(said, "counter" | "gauge" | "histogram" | "info"), "{described}");
                self.families.insert(name.to_owned(), said.to_owned());
            }
            "UNIT" => {
                assert_eq!(name, family);
                assert!(name.ends_with(&format!("_{said}")), "{described}");
            }
            _ => panic!("{described}"),
        }
        name.to_owned()
    }

    fn sample(&mut self, line: &str, family: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        let (name, labels) = match series.split_once('{') {
            Some((name, rest)) => (name, labels(rest.strip_suffix('}').unwrap())),
            None => (series, Vec::new()),
        };
        let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} is not of {family}"));
        let fits: &[&str] = match self.families[family].as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            "info" => &["_info"],
            other => panic!("{line} of type {other}"),
        };
        assert!(fits.contains(&suffix), "{line} of {family}");
        assert!(value.is_finite() && (value >= 0.0), "{line}");
        let before = self.samples.insert((name.to_owned(), labels), value);
        assert!(before.is_none(), "{line} comes twice");
    }

    /// Asserts that buckets grow and end at infinity, and that the last equals the count.
    fn spreads_add_up(&self) {
        for family in self.families.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name) {
            let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((name, labels), value) in &self.samples {
                if *name == format!("{family}_bucket") {
                    let (bound, rest): (Vec<_>, Vec<_>) = labels.iter().cloned().partition(|(key, _)| key == "le");
                    let [(_, bound)] = bound.as_slice() else { panic!("no bound: {labels:?}") };
                    let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
                    buckets.entry(rest).or_default().push((bound, *value));
                }
            }
            for (labels, mut buckets) in buckets {
                buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
                assert!(buckets.is_sorted_by(|one, other| one.0 < other.0 && one.1 <= other.1), "{family} {labels:?}");
                let (bound, last) = *buckets.last().unwrap();
                let named: Vec<(&str, &str)> =
                    labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
                let count = self.get(&format!("{family}_count"), &named);
                assert!(bound.is_infinite() && (last - count).abs() < 0.5, "{family} {labels:?}");
            }
        }
    }
}

/// `key="value",…`; the labels of this program need no escapes.
fn labels(text: &str) -> Labels {
    let mut labels: Labels = text
        .split("\",")
        .map(|label| {
            let (key, value) = label.split_once("=\"").unwrap_or_else(|| panic!("no label: {text}"));
            let value = value.strip_suffix('"').unwrap_or(value);
            assert!(is_name(key) && !value.contains(['"', '\\', '\n']), "{text}");
            (key.to_owned(), value.to_owned())
        })
        .collect();
    labels.sort();
    labels
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}
