//! Sentences for screen readers: the news since the page last got any.
use super::gather::Sources;

/// Items of one kind that are named. Of more, only their number is spoken.
const NAMED_MAX: usize = 2;

/// Characters of a name or a request: nobody listens to more.
const WORDS_CHARS_MAX: usize = 80;

/// News for a person, at one time.
#[derive(Clone, Debug, Default)]
pub struct SpokenNews {
    /// Calls that wait for an operator: the question's number, and the tool.
    pub waiting: Vec<(u64, String)>,
    /// Components in quarantine, with the digests of their bytes.
    pub quarantined: Vec<(String, String)>,
    /// Groups of denials that are neither muted nor allowed: the number, the component and what it
    /// asked for.
    pub denied: Vec<(u64, String, String)>,
}

/// The news that a page has already got.
#[derive(Clone, Debug)]
pub struct SeenNews {
    /// The last question, and the last group of denials.
    question: u64,
    group: u64,
    quarantined: Vec<(String, String)>,
}

impl SpokenNews {
    /// The news of these sources.
    pub fn of(sources: &Sources) -> Self {
        let mut denied: Vec<_> = sources
            .open_denials()
            .iter()
            .map(|group| (group.number, group.component.clone(), clipped(&group.asked, WORDS_CHARS_MAX)))
            .collect();
        denied.sort_unstable();
        let held = sources.current.journal.quarantined().into_iter();
        let (waiting, _) = sources.activity.approvals.list();
        Self {
            waiting: waiting.into_iter().map(|(number, pending)| (number, pending.tool)).collect(),
            quarantined: held.map(|held| (held.component, held.digest)).collect(),
            denied,
        }
    }
}

impl SeenNews {
    /// All news that the page itself shows.
    pub fn all_of(news: &SpokenNews) -> Self {
        Self {
            question: news.waiting.iter().map(|(number, _)| *number).max().unwrap_or_default(),
            group: news.denied.iter().map(|(number, ..)| *number).max().unwrap_or_default(),
            quarantined: news.quarantined.clone(),
        }
    }

    /// The new items, as one text; `None` if there are none.
    pub fn hears(&mut self, news: &SpokenNews) -> Option<String> {
        let waiting: Vec<String> = news
            .waiting
            .iter()
            .filter(|(number, _)| *number > self.question)
            .map(|(_, tool)| format!("A call of {} waits for a person.", clipped(tool, WORDS_CHARS_MAX)))
            .collect();
        let quarantined = news.quarantined.iter().filter(|held| !self.quarantined.contains(held));
        let quarantined: Vec<String> =
            quarantined.map(|(component, _)| format!("{component} is quarantined.")).collect();
        let denied: Vec<String> = news
            .denied
            .iter()
            .filter(|(number, ..)| *number > self.group)
            .map(|(_, component, asked)| format!("{component} was denied {asked}."))
            .collect();
        let heard = Self::all_of(news);
        // Items that were answered or muted meanwhile do not come again.
        let question = self.question.max(heard.question);
        let group = self.group.max(heard.group);
        *self = Self { question, group, ..heard };
        let sentences = [
            sentences(&waiting, "calls wait for a person."),
            sentences(&quarantined, "components are quarantined."),
            sentences(&denied, "requests were denied."),
        ];
        let said: Vec<String> = sentences.into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join(" "))
    }
}

/// The sentences, or their number if there are many.
fn sentences(each: &[String], together: &str) -> Option<String> {
    match each.len() {
        0 => None,
        1..=NAMED_MAX => Some(each.join(" ")),
        count => Some(format!("{count} {together}")),
    }
}

/// The text, or its first `chars_max` characters and an ellipsis.
pub fn clipped(text: &str, chars_max: usize) -> String {
    let mut shown: String = text.chars().take(chars_max).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(waiting: &[(u64, &str)], quarantined: &[(&str, &str)], denied: &[(u64, &str, &str)]) -> SpokenNews {
        let text = |text: &str| text.to_owned();
        SpokenNews {
            waiting: waiting.iter().map(|(number, tool)| (*number, text(tool))).collect(),
            quarantined: quarantined.iter().map(|(component, digest)| (text(component), text(digest))).collect(),
            denied: denied.iter().map(|(number, component, asked)| (*number, text(component), text(asked))).collect(),
        }
    }

    #[test]
    fn each_thing_is_said_once() {
        let mut heard = SeenNews::all_of(&news(&[(1, "old")], &[("was", "1")], &[(1, "c", "GET x")]));
        let mut hears = |news: &SpokenNews| heard.hears(news);
        let first = news(&[(1, "old"), (2, "echo")], &[("was", "1")], &[(1, "c", "GET x")]);
        assert_eq!(hears(&first).as_deref(), Some("A call of echo waits for a person."));
        assert_eq!(hears(&first), None);
        assert_eq!(hears(&SpokenNews::default()), None);
        assert_eq!(hears(&first).as_deref(), Some("was is quarantined."), "held anew; the rest was heard of");
        let second = news(&[(3, "a"), (4, "b")], &[("was", "2")], &[(1, "c", "GET x"), (2, "c", "GET y")]);
        let said = "A call of a waits for a person. A call of b waits for a person. was is quarantined. \
                    c was denied GET y.";
        assert_eq!(hears(&second).as_deref(), Some(said), "other bytes are news");
    }

    #[test]
    fn of_many_their_number_is_said() {
        let mut heard = SeenNews::all_of(&SpokenNews::default());
        let waiting: Vec<(u64, &str)> = (1..=256).map(|number| (number, "t")).collect();
        let denied: Vec<(u64, &str, &str)> = (1..=1_000).map(|number| (number, "c", "x")).collect();
        let said = heard.hears(&news(&waiting, &[("a", "1"), ("b", "1"), ("c", "1")], &denied));
        let together = "256 calls wait for a person. 3 components are quarantined. 1000 requests were denied.";
        assert_eq!(said.as_deref(), Some(together));
    }

    #[test]
    fn long_names_are_clipped() {
        let mut heard = SeenNews::all_of(&SpokenNews::default());
        let said = heard.hears(&news(&[(1, &"é".repeat(10_000))], &[], &[])).unwrap();
        assert_eq!(said, format!("A call of {}… waits for a person.", "é".repeat(80)));
    }
}
