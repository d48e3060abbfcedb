//! Recordings of calls: the key `record` of components and tools, and the section `[recordings]`.

use std::time::Duration;

use crate::manifest::skills::SkillsPolicy;
use crate::manifest::{ComponentPolicy, InstancePolicy};
use crate::quantity::{DAY, GIB, MIB, MINUTE};
use crate::read::enclosure::holds;
use crate::read::{Entry, Problems, Section, paths};
use crate::settings::settings;

/// The words for `record`, besides percentages.
const NEVER: &str = "never";
const ERRORS: &str = "errors";
const ALL: &str = "all";

/// All calls, in hundredths of a percent.
const WHOLE: u16 = 10_000;

settings! {
    /// The folder of recordings, and how many are kept. `record` of components and tools says which
    /// calls are recorded.
    RecordingsPolicy RECORDINGS "Recordings" {
        /// The folder, relative to this file. No mount may show it.
        folder: String => &str = "folder" (Text, paths::host_path, else "recordings".to_owned()),
            {"minLength": 1, "default": "recordings", "examples": ["/var/lib/toolcell/recordings"]};
        /// Bytes of all recordings. The oldest go first.
        max_bytes: u64 => u64 = "max_bytes" (
            Bytes { min: MIB, default: GIB, max: 1_024 * GIB },
            "About a hundred thousand common calls, or sixty of the longest. A disk that is full would stop more \
             than recordings."
        ), {"examples": ["10GiB"]};
        /// Recordings in the folder. The oldest go first.
        max_files: usize => usize = "max_files" (
            Count { min: 1, default: 10_000, max: 100_000 },
            "The process keeps a name of about 100 bytes for each in memory, and lists the folder within a second."
        ), {"examples": [500]};
        /// The age at which a recording is removed.
        keep: Duration => Duration = "keep" (
            Millis { min: MINUTE, default: 30 * DAY, max: 3_650 * DAY },
            "A month of calls shows what a new version does. A recording holds what callers gave and got, so none \
             is kept forever."
        ), {"examples": ["168h"]};
    }
    other names { "path" => "folder", "file" => "folder", "bytes" => "max_bytes", "size" => "max_bytes", "files" => "max_files", "age" => "keep" }
}

/// The calls of a tool that are recorded. `record` in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordRule {
    /// `"never"`, the default: none.
    #[default]
    Never,
    /// `"errors"`: each is recorded, and those that fail are kept.
    Errors,
    /// `"2.5%"`: this share, picked at random for each call.
    Share(RecordShare),
    /// `"all"`: each.
    All,
}

/// A share of calls: at least 0.01 %, less than all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordShare {
    /// Hundredths of a percent.
    hundredths: u16,
}

impl RecordShare {
    /// True if a call is among them to which this random number was given.
    #[must_use]
    pub fn takes(self, random: u64) -> bool {
        random % u64::from(WHOLE) < u64::from(self.hundredths)
    }
}

impl RecordRule {
    /// As a manifest would write it: `never`, `errors`, `2.5%`, `all`.
    #[must_use]
    pub fn show(self) -> String {
        match self {
            Self::Never => NEVER.to_owned(),
            Self::Errors => ERRORS.to_owned(),
            Self::All => ALL.to_owned(),
            Self::Share(RecordShare { hundredths }) => {
                let digits = format!("{}.{:02}", hundredths / 100, hundredths % 100);
                format!("{}%", digits.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }

    fn of_percent(text: &str) -> Option<Self> {
        let number = text.strip_suffix('%')?;
        let (percents, parts) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(percents, 3) || !is_number(parts, 2) {
            return None;
        }
        let hundredths = percents.parse::<u16>().ok()?.checked_mul(100)?;
        let hundredths = hundredths.checked_add(format!("{parts:0<2}").parse().ok()?)?;
        match hundredths {
            0 => None,
            WHOLE => Some(Self::All),
            hundredths => (hundredths < WHOLE).then_some(Self::Share(RecordShare { hundredths })),
        }
    }
}

/// The rule that holds here; `inherited` where the table says nothing.
pub(crate) fn read(
    section: &Section<'_>,
    inherited: RecordRule,
    instance: InstancePolicy,
    problems: &mut Problems,
) -> RecordRule {
    let Some(entry) = section.get("record") else { return inherited };
    let Some(rule) = rule(&entry, problems) else { return inherited };
    if rule != RecordRule::Never && instance != InstancePolicy::PerCall {
        let message = "record with instance = \"per-caller\" can never apply";
        let problem = entry.key_error("components::record", message).label("a recorded call has its own instance");
        return problems.refuse(problem.hint("remove it, or set instance = \"per-call\"")).unwrap_or_default();
    }
    rule
}

fn rule(entry: &Entry<'_>, problems: &mut Problems) -> Option<RecordRule> {
    let text = entry.string(problems)?;
    match text {
        NEVER => Some(RecordRule::Never),
        ERRORS => Some(RecordRule::Errors),
        ALL => Some(RecordRule::All),
        _ => match RecordRule::of_percent(text) {
            Some(rule) => Some(rule),
            None => {
                let problem =
                    entry.error("components::record", format!("{text:?} does not say which calls are recorded"));
                let hint = "write \"errors\", \"all\", \"never\", or a percentage from \"0.01%\" to \"100%\" with two \
                            digits after the point at most";
                problems.refuse(problem.hint(hint))
            }
        },
    }
}

impl RecordingsPolicy {
    /// The settings of `[recordings]`; `None` without the table, if no call is recorded.
    pub(crate) fn read_from(
        root: &Section<'_>,
        components: &[ComponentPolicy],
        problems: &mut Problems,
    ) -> Option<Self> {
        let table = root.get("recordings");
        let section = table.as_ref().and_then(|entry| entry.section(problems));
        if table.is_none() && !components.iter().any(ComponentPolicy::may_be_recorded) {
            return None;
        }
        Some(Self::read(section.as_ref(), problems))
    }

    /// Reports a folder of skills that shows recordings: clients read what is in it.
    pub(crate) fn check_skills(&self, root: &Section<'_>, skills: &SkillsPolicy, problems: &mut Problems) {
        let folder = skills.folder();
        let Some(entry) = root.get("skills").filter(|_| holds(folder, &self.folder) || holds(&self.folder, folder))
        else {
            return;
        };
        let problem = entry.key_error("recordings::shown", "the folder of skills shows the recordings of calls");
        problems.add(problem.hint("name another folder in [skills], or in [recordings]"));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_percentage_has_two_digits_after_the_point_at_most_and_is_neither_nothing_nor_more_than_all() {
        let share = |hundredths| Some(RecordRule::Share(RecordShare { hundredths }));
        for (text, expected) in [
            ("1%", share(100)),
            ("0.01%", share(1)),
            ("2.5%", share(250)),
            ("2.50%", share(250)),
            ("007%", share(700)),
            ("99.99%", share(9_999)),
            ("100%", Some(RecordRule::All)),
            ("100.00%", Some(RecordRule::All)),
            ("100.01%", None),
            ("101%", None),
            ("999%", None),
            ("0%", None),
            ("0.00%", None),
            ("0.001%", None),
            (".5%", None),
            ("5.%", None),
            ("-1%", None),
            ("+1%", None),
            ("1e1%", None),
            ("1 %", None),
            ("%", None),
            ("1", None),
            ("1000000000000000000000%", None),
            ("１%", None),
        ] {
            assert_eq!(RecordRule::of_percent(text), expected, "{text}");
        }
        for text in ["1%", "0.01%", "2.5%", "99.99%", "10%"] {
            assert_eq!(RecordRule::of_percent(text).unwrap().show(), text);
        }
    }

    #[test]
    fn a_share_takes_as_many_of_all_numbers_as_it_says() {
        for hundredths in [1, 250, 9_999] {
            let share = RecordShare { hundredths };
            let taken = (0..u64::from(WHOLE)).filter(|random| share.takes(*random)).count();
            assert_eq!(taken, usize::from(hundredths));
        }
    }
}
