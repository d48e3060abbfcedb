//! The component's exports: the functions of `wit/tool.wit`. What they do is in `counts.rs`.

mod counts;

wit_bindgen::generate!({ world: "tool" });

use exports::local::tool::text::{Counts, Guest};

struct Component;
export!(Component);

impl Guest for Component {
    fn count_words(text: String, min_length: Option<u32>) -> Result<Counts, String> {
        let counts = counts::count(&text, min_length.unwrap_or(1) as usize)?;
        Ok(Counts { lines: counts.lines, words: counts.words, longest: counts.longest.map(str::to_owned) })
    }
}
