//! Names of HTML's character references for the characters that a secret's value can hold: ASCII
//! and Latin-1. Pure.

/// Bytes of the longest name.
pub(super) const NAME_BYTES_MAX: usize = 16;

/// Names that HTML reads only with a semicolon after them.
const CLOSED: [(&str, &str); 44] = [
    ("Tab", "\t"),
    ("NewLine", "\n"),
    ("excl", "!"),
    ("num", "#"),
    ("dollar", "$"),
    ("percnt", "%"),
    ("apos", "'"),
    ("lpar", "("),
    ("rpar", ")"),
    ("ast", "*"),
    ("midast", "*"),
    ("plus", "+"),
    ("comma", ","),
    ("period", "."),
    ("sol", "/"),
    ("colon", ":"),
    ("semi", ";"),
    ("equals", "="),
    ("quest", "?"),
    ("commat", "@"),
    ("lsqb", "["),
    ("lbrack", "["),
    ("bsol", "\\"),
    ("rsqb", "]"),
    ("rbrack", "]"),
    ("Hat", "^"),
    ("lowbar", "_"),
    ("UnderBar", "_"),
    ("grave", "`"),
    ("DiacriticalGrave", "`"),
    ("fjlig", "fj"),
    ("lcub", "{"),
    ("lbrace", "{"),
    ("verbar", "|"),
    ("vert", "|"),
    ("VerticalLine", "|"),
    ("rcub", "}"),
    ("rbrace", "}"),
    ("NonBreakingSpace", "\u{a0}"),
    ("die", "\u{a8}"),
    ("circledR", "\u{ae}"),
    ("pm", "\u{b1}"),
    ("div", "\u{f7}"),
    ("angst", "\u{c5}"),
];

/// Names that HTML also reads without a semicolon.
const OPEN: [(&str, &str); 8] =
    [("quot", "\""), ("QUOT", "\""), ("amp", "&"), ("AMP", "&"), ("lt", "<"), ("LT", "<"), ("gt", ">"), ("GT", ">")];

/// The first character of [`LATIN`].
const LATIN_FIRST: u32 = 0xa0;

/// Latin-1's names in order. They are also read without a semicolon.
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy",
    "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot", "cedil", "sup1", "ordm",
    "raquo", "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig",
    "Ccedil", "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
    "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN",
    "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc",
    "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml",
    "divide", "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];

/// Writes the text of a name in UTF-8, and returns its length; zero if the name has no meaning.
/// `closed` if a semicolon follows.
pub(super) fn named(name: &[u8], closed: bool, text: &mut [u8; 4]) -> usize {
    let known = |(known, _): &&(&str, &'static str)| known.as_bytes() == name;
    let closed_only: &[(&str, &'static str)] = if closed { &CLOSED } else { &[] };
    if let Some((_, meant)) = OPEN.iter().chain(closed_only).find(known) {
        return copy(meant, text);
    }
    let place = LATIN.iter().position(|known| known.as_bytes() == name).and_then(|place| u32::try_from(place).ok());
    let letter = place.and_then(|place| char::from_u32(LATIN_FIRST + place));
    letter.map_or(0, |letter| letter.encode_utf8(text).len())
}

fn copy(meant: &str, text: &mut [u8; 4]) -> usize {
    let place = text.get_mut(..meant.len());
    place.map_or(0, |place| {
        place.copy_from_slice(meant.as_bytes());
        meant.len()
    })
}
