//! Words of a text, as the search compares them.

/// The longest word, in characters. Longer ones are compared by their beginnings: names and
/// technical terms are shorter.
const WORD_CHARS_MAX: usize = 40;

/// Endings are removed from words of at least this length, in bytes: shorter ones would lose their
/// meaning.
const STEM_BYTES_MIN: usize = 4;

/// Words that do not describe a tool. They are removed from queries.
const EMPTY: [&str; 50] = [
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "get",
    "has", "have", "how", "i", "in", "is", "it", "its", "me", "my", "need", "of", "on", "or", "our", "please", "some",
    "that", "the", "them", "there", "this", "to", "tool", "us", "want", "was", "we", "what", "which", "with", "would",
    "you",
];

/// Calls `each` with the stem of each word, in order. A word ends at everything but letters and
/// digits, and at the humps of `camelCase`. A character of a script without spaces is a word.
pub(super) fn each_word(text: &str, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut chars = 0;
    let mut was_lower = false;
    for character in text.chars() {
        let stands_alone = is_ideograph(character);
        let hump = was_lower && character.is_uppercase();
        if stands_alone || hump || !character.is_alphanumeric() {
            finish(&mut word, &mut each);
            chars = 0;
        }
        was_lower = character.is_lowercase();
        if stands_alone {
            word.push(character);
            finish(&mut word, &mut each);
        } else if character.is_alphanumeric() && chars < WORD_CHARS_MAX {
            word.extend(character.to_lowercase());
            chars += 1;
        }
    }
    finish(&mut word, &mut each);
}

pub(super) fn is_empty_word(word: &str) -> bool {
    EMPTY.contains(&word)
}

fn finish(word: &mut String, each: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        each(stem(word).as_ref());
        word.clear();
    }
}

/// The word without the endings of English plurals and verbs: `files` is found by `file`, and
/// `converting` by `converts`. Other languages are compared unchanged.
fn stem(word: &str) -> std::borrow::Cow<'_, str> {
    if word.len() < STEM_BYTES_MIN || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.into();
    }
    if let Some(rest) = word.strip_suffix("ies").filter(|rest| rest.len() > 1) {
        return format!("{rest}y").into();
    }
    let singular = match word.strip_suffix('s') {
        Some(rest) if !rest.ends_with(['s', 'u', 'i']) => rest,
        _ => word,
    };
    let bare = ["ing", "ed"].iter().find_map(|end| singular.strip_suffix(end)).filter(|rest| rest.len() >= 3);
    let bare = bare.unwrap_or(singular);
    let rest = bare.strip_suffix('e').filter(|rest| rest.len() >= 3).unwrap_or(bare);
    // `stopping` becomes `stop`.
    let doubled = rest.len() > 3
        && bare.len() < singular.len()
        && rest.as_bytes().iter().rev().take(2).all(|byte| rest.as_bytes().last() == Some(byte));
    let rest =
        if doubled && !rest.ends_with(['l', 's', 'z']) { rest.get(..rest.len() - 1).unwrap_or(rest) } else { rest };
    rest.to_owned().into()
}

/// True for characters of scripts without spaces: Han and Kana. Hangul has spaces, and Thai is not
/// split.
const fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn names_and_sentences_come_apart() {
        for (text, expected) in [
            ("weather_normals", "weather normal"),
            ("listPullRequests", "list pull request"),
            ("HTTP2-server.json", "http2 server json"),
            ("Converts files; converting a file, converted.", "convert fil convert a fil convert"),
            ("stopping stopped stops stop", "stop stop stop stop"),
            ("calls calling called, misses missing", "call call call miss miss"),
            ("cities city status bus gas", "city city status bus gas"),
            ("charge charges charging", "charg charg charg"),
            ("天気 予報 Züge", "天 気 予 報 züge"),
            ("", ""),
            ("--- ??", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn an_endless_word_is_compared_by_its_beginning() {
        assert_eq!(words(&"x1".repeat(1 << 16)), ["x1".repeat(WORD_CHARS_MAX / 2)]);
    }
}
