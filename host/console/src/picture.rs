//! The picture of what a tool can reach: the tool on the left, on the right what it reaches, by
//! kinds.

use maud::{Markup, html};

use crate::bounds::{LINE_BYTES, REACH_ROWS};
use crate::model::{Place, Reach, ReachKind};
use crate::table::{Row, column, table};
use crate::text::{line, name, words};

/// Height of a row, in the picture's units.
const ROW: usize = 34;
/// Height of the name of a kind.
const HEAD: usize = 26;
/// Letters of a text in the picture; the table below shows more.
const LETTERS: usize = 54;
/// Letters at the end of a server's name that are always shown, because they tell who owns it.
const OWNER_LETTERS: usize = 30;
/// The picture's width.
const WIDTH: usize = 860;
/// Where arrows begin and end, and where their targets begin.
const FROM: usize = 190;
const TO: usize = 300;

/// The kinds in the order of the picture.
const KINDS: [(ReachKind, &str); 7] = [
    (ReachKind::Host, "hosts"),
    (ReachKind::Folder, "folders"),
    (ReachKind::Secret, "secrets"),
    (ReachKind::State, "state"),
    (ReachKind::Setting, "settings"),
    (ReachKind::Asking, "questions"),
    (ReachKind::Other, "other"),
];

/// The picture and the table of the same.
pub fn reach(tool: &str, reach: &[Reach]) -> Markup {
    let shown = reach.get(..REACH_ROWS.min(reach.len())).unwrap_or(reach);
    html! {
        @if shown.is_empty() {
            p.empty { "It reaches nothing outside its sandbox: no host, folder, secret or state." }
        } @else {
            figure.reach aria-hidden="true" { (svg(tool, shown)) }
            (as_table(shown))
            @if reach.len() > shown.len() { p.more { (reach.len() - shown.len()) " more are not shown. Use " code { "toolcell inspect" } "." } }
        }
    }
}

/// The table of what a tool reaches.
pub fn as_table(reach: &[Reach]) -> Markup {
    let rows = reach.iter().take(REACH_ROWS).map(|item| {
        Row::of(vec![
            html! { span.mono { (name(&item.target)) } },
            html! { (kind(item.kind)) },
            html! { (line(&item.detail)) },
            // Grants have no default: without a place, the manifest as it is now does not have
            // the grant, or cannot be read.
            place(item.place.as_ref(), "not in the manifest as it is now"),
        ])
    });
    let columns = [column("Reaches"), column("Kind"), column("How"), column("Granted in")];
    table("Grants", &columns, rows, "Nothing outside its sandbox.")
}

/// The place of a setting or a grant in words, or what its absence means.
pub fn place(place: Option<&Place>, missing: &str) -> Markup {
    html! { @match place { Some(place) => (at(place)), None => span.dim { (missing) } } }
}

fn at(place: &Place) -> Markup {
    html! {
        span.mono { (name(&place.file)) ":" (place.line) }
        @if !place.key.is_empty() { " " span.dim { (name(&place.key)) } }
    }
}

fn kind(kind: ReachKind) -> &'static str {
    match kind {
        ReachKind::Host => "host",
        ReachKind::Folder => "folder",
        ReachKind::Secret => "secret",
        ReachKind::State => "state",
        ReachKind::Setting => "setting",
        ReachKind::Asking => "question",
        ReachKind::Other => "other",
    }
}

/// An item on the right, with its distance from the top.
enum PictureItem<'a> {
    Head(&'static str),
    Thing(&'a Reach),
}

fn svg(tool: &str, reach: &[Reach]) -> Markup {
    let mut items = Vec::new();
    let mut top = 4;
    for (kind, name) in KINDS {
        let mut things = reach.iter().filter(|item| item.kind == kind).peekable();
        if things.peek().is_some() {
            items.push((top, PictureItem::Head(name)));
            top += HEAD;
        }
        for thing in things {
            items.push((top, PictureItem::Thing(thing)));
            top += ROW;
        }
    }
    let height = top.max(60);
    let middle = height / 2;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) width=(WIDTH) height=(height) {
            @for (top, item) in &items {
                @if let PictureItem::Thing(_) = item { (arrow(middle, top + ROW / 2 - 3)) }
            }
            rect.tool x="1" y=(middle - 20) width=(FROM - 1) height="40" rx="6" {}
            text.name x=(FROM / 2) y=(middle + 5) text-anchor="middle" { (words(tool, 24)) }
            @for (top, item) in &items { (node(*top, item)) }
        }
    }
}

fn arrow(from: usize, to: usize) -> Markup {
    let bend = usize::midpoint(FROM, TO);
    html! {
        path.arrow d=(format!("M{FROM} {from}C{bend} {from} {bend} {to} {} {to}", TO - 5)) {}
        path.tip d=(format!("M{} {}l7 4l-7 4z", TO - 8, to - 4)) {}
    }
}

fn node(top: usize, item: &PictureItem<'_>) -> Markup {
    match item {
        PictureItem::Head(name) => html! { text.kind x=(TO) y=(top + 17) { (name) } },
        PictureItem::Thing(thing) => {
            let class = if thing.kind == ReachKind::Secret { "thing secret" } else { "thing" };
            html! {
                rect class=(class) x=(TO) y=(top) width=(WIDTH - TO - 1) height=(ROW - 6) rx="4" {}
                text.target x=(TO + 9) y=(top + 18) { (target(thing)) }
                @if let Some(place) = &thing.place {
                    text.place x=(WIDTH - 10) y=(top + 18) text-anchor="end" { (label(place)) }
                }
            }
        }
    }
}

/// The text of a target, cut where least is lost: after the server's name, else within it.
fn target(thing: &Reach) -> String {
    let whole: Vec<char> = words(&thing.target, LINE_BYTES).chars().collect();
    if whole.len() <= LETTERS {
        return whole.into_iter().collect();
    }
    let text = |from: usize, to: usize| whole.iter().skip(from).take(to.saturating_sub(from)).collect::<String>();
    let starts = |wanted: &[char]| whole.windows(wanted.len()).position(|window| window == wanted);
    let server = starts(&[':', '/', '/']).map_or(0, |at| at + 3);
    let end = whole.iter().skip(server).position(|letter| *letter == '/').map_or(whole.len(), |at| server + at);
    if thing.kind != ReachKind::Host || end < LETTERS {
        return format!("{}…", text(0, LETTERS - 1));
    }
    let start = server.min(LETTERS - OWNER_LETTERS - 3);
    let path = if end < whole.len() { "/…" } else { "" };
    format!("{}…{}{path}", text(0, start), text(end.saturating_sub(OWNER_LETTERS), end))
}

/// The file's own name and the line.
fn label(place: &Place) -> String {
    let file = place.file.rsplit(['/', '\\']).next().unwrap_or(&place.file);
    format!("{}:{}", words(file, 16), place.line)
}

#[cfg(test)]
mod tests {
    use super::reach;
    use crate::model::{Place, Reach, ReachKind};

    #[test]
    fn each_thing_is_in_the_picture_and_names_the_line_of_its_grant() {
        let place = Some(Place { file: "a/toolcell.toml".into(), line: 12, key: "components.a.network.http".into() });
        let item = Reach { kind: ReachKind::Host, target: "api.example:443".into(), detail: "GET".into(), place };
        let shown = reach("weather", &[item]).0;
        assert_eq!(shown.matches(">api.example:443</text>").count(), 1);
        assert_eq!(shown.matches("<bdi>api.<wbr>example:443</bdi>").count(), 1);
        assert!(shown.contains("toolcell.toml:12</text>") && shown.contains(">hosts</text>"));
        assert!(reach("weather", &[]).0.contains("reaches nothing"));
        let unknown = reach("weather", &[Reach { target: "api.example:443".into(), ..Reach::default() }]).0;
        assert!(unknown.contains("not in the manifest as it is now") && !unknown.contains("default"));
    }

    #[test]
    fn the_end_of_a_servers_name_is_shown_however_long_it_is() {
        let shown = |target: &str| {
            super::target(&Reach { kind: ReachKind::Host, target: target.to_owned(), ..Reach::default() })
        };
        assert_eq!(shown("GET https://api.example.com/v1"), "GET https://api.example.com/v1");
        let long = shown(&format!("GET https://api.example.com/{}", "v".repeat(100)));
        assert!(long.starts_with("GET https://api.example.com/vvv") && long.ends_with("v…"), "{long}");
        let lying = shown(&format!("GET https://api.example.com.{}evil.example/x", "a.".repeat(40)));
        assert!(lying.ends_with("a.evil.example/…") && lying.starts_with("GET https://…"), "{lying}");
        assert!([long, lying].iter().all(|text| text.chars().count() <= super::LETTERS));
        // No space is left for the path: the name ends where it is cut.
        assert!(shown(&format!("{}.example", "a".repeat(300))).contains('…'));
    }

    #[test]
    fn a_picture_is_bounded() {
        let long = Reach { target: "<x>\u{202e}".repeat(100_000), detail: "d".repeat(10_000_000), ..Reach::default() };
        let mut items = vec![long];
        items.resize(5_000, Reach { target: "<x>\u{202e}".repeat(200), ..Reach::default() });
        let shown = reach(&"t".repeat(10_000_000), &items).0;
        assert!(shown.len() < 200_000, "{}", shown.len());
        assert!(shown.contains("4960 more are not shown"));
    }
}
