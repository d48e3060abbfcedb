//! Enums whose variants are called by one word each: in the manifest, in records and for people.

/// An enum whose variants are called by words.
pub(crate) trait Word: Copy + 'static {
    /// The code of the problem that the manifest has another word.
    const CODE: &'static str;
    /// The words, in the order of the variants.
    const WORDS: &'static [&'static str];
    /// The variants.
    const VARIANTS: &'static [Self];

    /// The variant with this word.
    fn of(word: &str) -> Option<Self> {
        let mut pairs = Self::WORDS.iter().zip(Self::VARIANTS);
        pairs.find(|(known, _)| **known == word).map(|(_, variant)| *variant)
    }
}

/// Words in quotes, with `last` before the last one: `"a", "b" or "c"`.
pub(crate) fn quoted(words: &[&str], last: &str) -> String {
    let all = format!("\"{}\"", words.join("\", \""));
    match all.rsplit_once(", ") {
        Some((others, end)) => format!("{others} {last} {end}"),
        None => all,
    }
}

/// Declares such an enum: each variant with its word, and the code of a wrong word in the manifest
/// where it is not `manifest::choice`.
macro_rules! words {
    (
        $(#[$about:meta])*
        $vis:vis enum $name:ident $(or $code:literal)? { $($(#[$doc:meta])* $variant:ident $word:literal,)+ }
    ) => {
        $(#[$about])*
        $vis enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them.
            $vis const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word that it is called by.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl $crate::words::Word for $name {
            const CODE: &'static str = [$($code,)? "manifest::choice"][0];
            const WORDS: &'static [&'static str] = &[$(Self::$variant.name()),+];
            const VARIANTS: &'static [Self] = &Self::ALL;
        }
    };
}

pub(crate) use words;
