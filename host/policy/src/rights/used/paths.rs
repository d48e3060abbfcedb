//! The patterns of used paths: segments that vary become `{}`.

use std::collections::{BTreeMap, BTreeSet};

/// Different values of one segment that are named one by one. More of them are data, such as the
/// names of cities.
const VALUES_MAX: usize = 3;

/// Segments of a path that are compared. Longer paths are named as they are.
const SEGMENTS_MAX: usize = 64;

/// One segment, whichever it is.
const ANY: &str = "{}";

/// Paths with the same beginning.
struct PathGroup<'p> {
    /// The pattern of the segments so far.
    pattern: Vec<&'p str>,
    paths: Vec<&'p UsedPath<'p>>,
}

struct UsedPath<'p> {
    segments: Vec<&'p str>,
    methods: &'p BTreeSet<String>,
}

/// The methods of each pattern that takes these paths, which are in their normal form. The cost is
/// the length of all paths together.
pub(super) fn patterns(paths: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let used = paths.iter().map(|(path, methods)| UsedPath { segments: segments(path), methods });
    let all: Vec<UsedPath<'_>> = used.collect();
    let mut by_length: BTreeMap<usize, Vec<&UsedPath<'_>>> = BTreeMap::new();
    for path in &all {
        by_length.entry(path.segments.len()).or_default().push(path);
    }
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (length, paths) in by_length {
        let mut groups = vec![PathGroup { pattern: Vec::new(), paths }];
        for place in 0..length {
            groups = groups.into_iter().flat_map(|group| group.split(place, length)).collect();
        }
        for group in groups {
            let pattern = format!("/{}", group.pattern.join("/"));
            let methods = group.paths.iter().flat_map(|path| path.methods.iter().cloned());
            found.entry(pattern).or_default().extend(methods);
        }
    }
    found
}

fn segments(path: &str) -> Vec<&str> {
    path.strip_prefix('/').unwrap_or(path).split('/').collect()
}

impl<'p> PathGroup<'p> {
    /// The groups by the segment at this place: one for each value, or one for all of them.
    fn split(self, place: usize, length: usize) -> Vec<Self> {
        let mut values: BTreeMap<&'p str, Vec<&'p UsedPath<'p>>> = BTreeMap::new();
        for path in self.paths {
            let segment = path.segments.get(place).copied().unwrap_or_default();
            // In a rule, a star would be a pattern.
            values.entry(if segment.contains('*') { ANY } else { segment }).or_default().push(path);
        }
        // `{}` takes no empty segment.
        let empty = values.remove("");
        let varies = length <= SEGMENTS_MAX && (values.len() > VALUES_MAX || values.contains_key(ANY));
        let named: Vec<(&'p str, Vec<&'p UsedPath<'p>>)> = match varies {
            true => vec![(ANY, values.into_values().flatten().collect())],
            false => values.into_iter().collect(),
        };
        let with = |segment: &'p str| self.pattern.iter().copied().chain([segment]).collect();
        let group = |(segment, paths): (&'p str, _)| Self { pattern: with(segment), paths };
        empty.map(|paths| ("", paths)).into_iter().chain(named).map(group).collect()
    }
}
