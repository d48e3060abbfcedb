//! The component's exports are in `component`, for WebAssembly alone; what they do is in
//! `counts.rs`, which is tested natively.

#[cfg(any(test, target_family = "wasm"))]
mod counts;

#[cfg(target_family = "wasm")]
mod component {
    wit_bindgen::generate!({ world: "tool" });

    use exports::local::tool::text::{Counts, Guest};

    struct Component;
    export!(Component);

    impl Guest for Component {
        fn count_words(text: String, min_length: Option<u32>) -> Result<Counts, String> {
            let counts = crate::counts::count(&text, min_length.unwrap_or(1) as usize)?;
            Ok(Counts { lines: counts.lines, words: counts.words, longest: counts.longest.map(str::to_owned) })
        }
    }
}
