//! Which walls stand.

use std::fmt;

use super::wall::Wall;

/// Longest explanation that a report keeps of one wall, in bytes. The kernel's answers take under
/// 100; reports cross from processes that are not trusted.
const DETAIL_BYTES_MAX: usize = 400;

/// A wall's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WallState {
    /// It stands. The text explains how, or is empty.
    Stands(String),
    /// It is missing, for this reason.
    Missing(String),
}

/// Each wall and whether it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    walls: Vec<(Wall, WallState)>,
}

/// Why a text is not a report.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReportError {
    /// A line is not of the form `NAME<tab>STATE<tab>DETAIL`.
    #[error("line {line} of the report does not name a wall and its state")]
    Line {
        /// The line, from 1.
        line: usize,
    },
    /// A wall is not named.
    #[error("the report does not name {wall}")]
    Lacks {
        /// The wall.
        wall: Wall,
    },
}

impl WallState {
    fn new(word: &str, detail: &str) -> Option<Self> {
        let detail = detail.to_owned();
        match word {
            "stands" => Some(Self::Stands(detail)),
            "missing" => Some(Self::Missing(detail)),
            _ => None,
        }
    }

    /// `stands` or `missing`.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Stands(_) => "stands",
            Self::Missing(_) => "missing",
        }
    }

    /// The kernel's answer, or how the wall stands. May be empty.
    pub fn detail(&self) -> &str {
        match self {
            Self::Stands(detail) | Self::Missing(detail) => detail,
        }
    }

    /// The wall stands.
    pub const fn stands(&self) -> bool {
        matches!(self, Self::Stands(_))
    }
}

impl Report {
    /// A report in which every wall is missing for one reason.
    pub fn of_none(reason: &str) -> Self {
        let missing = WallState::Missing(clean(reason));
        Self { walls: Wall::ALL.map(|wall| (wall, missing.clone())).to_vec() }
    }

    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "no wall is built there"))]
    pub(super) fn put(&mut self, wall: Wall, state: WallState) {
        if let Some((_, old)) = self.walls.iter_mut().find(|(known, _)| *known == wall) {
            *old = state;
        }
    }

    /// Each wall with its state, in the order of [`Wall::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Wall, &WallState)> {
        self.walls.iter().map(|(wall, state)| (*wall, state))
    }

    /// Walls that do not stand and should, each with the kernel's answer.
    pub fn missing(&self) -> impl Iterator<Item = (Wall, &str)> {
        self.iter()
            .filter(|(_, state)| matches!(state, WallState::Missing(_)))
            .map(|(wall, state)| (wall, state.detail()))
    }

    /// The wall stands.
    pub fn stands(&self, wall: Wall) -> bool {
        self.iter().any(|(known, state)| known == wall && state.stands())
    }

    /// One line for a log: the missing walls, or that none is missing.
    pub fn summary(&self) -> String {
        let missing: Vec<String> = self.missing().map(|(wall, reason)| format!("{wall} ({reason})")).collect();
        if missing.is_empty() {
            return "every wall stands".to_owned();
        }
        format!("without {}", missing.join(", "))
    }

    /// The report for machines: a line per wall, `NAME<tab>STATE<tab>DETAIL`.
    pub fn to_lines(&self) -> String {
        self.iter().map(|(wall, state)| format!("{wall}\t{}\t{}\n", state.word(), clean(state.detail()))).collect()
    }

    /// Reads [`Self::to_lines`] back. The text may come from a process that is not trusted.
    pub fn from_lines(text: &str) -> Result<Self, ReportError> {
        let mut found = Vec::new();
        for (at, line) in text.lines().enumerate().take(Wall::ALL.len()) {
            found.push(from_line(line).ok_or(ReportError::Line { line: at + 1 })?);
        }
        let walls = Wall::ALL.into_iter().map(|wall| {
            let state = found.iter().find(|(known, _)| *known == wall);
            state.cloned().ok_or(ReportError::Lacks { wall })
        });
        Ok(Self { walls: walls.collect::<Result<_, _>>()? })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (wall, state) in self.iter() {
            write!(f, "{:<8} {wall:<18} {}", state.word(), wall.meaning())?;
            match state.detail() {
                "" => writeln!(f)?,
                detail => writeln!(f, " ({detail})")?,
            }
        }
        Ok(())
    }
}

fn from_line(line: &str) -> Option<(Wall, WallState)> {
    let (name, rest) = line.split_once('\t')?;
    let (word, detail) = rest.split_once('\t')?;
    Some((Wall::from_name(name)?, WallState::new(word, &clean(detail))?))
}

/// A text on one line, with a bound.
fn clean(text: &str) -> String {
    let end = text.floor_char_boundary(DETAIL_BYTES_MAX);
    let kept = text.get(..end).unwrap_or_default();
    kept.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Report {
        let mut report = Report::of_none("not sealed");
        report.put(Wall::Landlock, WallState::Stands("ABI 7".to_owned()));
        report
    }

    #[test]
    fn a_report_comes_back_from_its_lines() {
        assert_eq!(Report::from_lines(&some().to_lines()), Ok(some()));
    }

    #[test]
    fn lines_of_no_report_are_refused() {
        let refused = [
            ("", ReportError::Lacks { wall: Wall::NoNewPrivileges }),
            ("landlock stands", ReportError::Line { line: 1 }),
            ("landlock\tperhaps\t", ReportError::Line { line: 1 }),
            ("core\tstands\t\nmoat\tstands\t", ReportError::Line { line: 2 }),
        ];
        for (text, error) in refused {
            assert_eq!(Report::from_lines(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_hostile_detail_is_cut_to_one_short_line() {
        let text = some().to_lines().replace("ABI 7", &format!("\u{1b}[2J{}", "é".repeat(999)));
        let report = Report::from_lines(&text).expect("a report");
        let (_, state) = report.iter().find(|(wall, _)| *wall == Wall::Landlock).expect("landlock");
        assert!(state.detail().len() <= DETAIL_BYTES_MAX, "{}", state.detail().len());
        assert!(!state.detail().contains(char::is_control), "{state:?}");
    }

    #[test]
    fn a_summary_names_what_is_missing_and_not_what_stands() {
        let summary = some().summary();
        assert!(summary.starts_with("without no-new-privileges (not sealed), "), "{summary}");
        assert!(!summary.contains("landlock"), "{summary}");
    }
}
