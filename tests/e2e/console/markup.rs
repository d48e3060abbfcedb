//! A component that says markup wherever it can: what pages show of it, and how large they are.

use serde_json::json;

use super::{Operator, VIEWS, unhurried};

/// Bytes of a page without pictures, as the console's own tests bound them.
const PAGE_BYTES_MAX: usize = 1_500_000;

/// Bytes of each text that the component is asked to say: more than a page shows of one.
const SAID_BYTES: u64 = 50_000;

/// Beginnings of elements and addresses that its texts have and no page does, and characters that
/// are shown by name.
const NOWHERE: [&str; 10] = [
    "<script>",
    "<img src=http",
    "<svg onload",
    "<link rel=stylesheet href=//",
    "<iframe",
    "<meta http-equiv",
    "<base",
    "href=\"javascript:",
    "\u{1b}",
    "\u{202e}",
];

#[test]
fn what_a_component_says_everywhere_is_shown_as_text_on_small_pages() {
    let mut operator = Operator::of(&unhurried(&["markup"]));
    operator.host.initialize("2025-11-25");
    for tool in ["markup_says", "markup_fails", "markup_asks", "markup_waits"] {
        let _ = operator.host.call(tool, json!({"bytes": SAID_BYTES}));
    }
    let tried = operator.ask(&operator.form("/tools/markup_says/try", &format!("argument-0={SAID_BYTES}")));
    let mut pages = vec![("its result".to_owned(), String::from_utf8(tried.body().to_vec()).unwrap())];
    let calls = (1..=4).map(|call| format!("/audit/calls/now.{call}"));
    for path in VIEWS.into_iter().chain(["/tools/markup_says", "/tools/markup_asks"]).map(str::to_owned).chain(calls) {
        pages.push((path.clone(), operator.page(&path)));
    }
    for (path, page) in &pages {
        assert!(page.len() < PAGE_BYTES_MAX, "{path} has {} bytes", page.len());
        for text in NOWHERE {
            assert!(!page.contains(text), "{path} has {text:?}: {page}");
        }
    }
    // The texts are there: as text.
    for path in ["its result", "/tools", "/denials", "/audit/calls/now.1"] {
        let (_, page) = pages.iter().find(|(named, _)| named == path).unwrap();
        assert!(page.contains("elsewhere.invalid"), "{path}: {page}");
    }
    operator.host.still_answers();
}
