//! The document around each view: head, navigation, and the notice of the last action.

use maud::{DOCTYPE, Markup, html};

use crate::asset::{CHARTS, CHARTS_STYLE, ICON, SCRIPT, STYLE};
use crate::bounds::{HIDDEN_BYTES, QUERY_BYTES, ROWS, TITLE_BYTES};
use crate::model::{Frame, Notice};
use crate::routes;
use crate::text::{line, words};

/// A view, with its name and path. Ids of its elements begin with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Calls that run.
    Now,
    /// Tools.
    Tools,
    /// Denials.
    Denials,
    /// Changes.
    Changes,
    /// Approvals.
    Approvals,
    /// Audit records.
    Audit,
    /// Callers.
    Callers,
}

struct ViewFacts {
    name: &'static str,
    key: &'static str,
    path: &'static str,
}

impl View {
    /// All views, in the order of the page.
    pub const ALL: [Self; 7] =
        [Self::Now, Self::Tools, Self::Denials, Self::Changes, Self::Approvals, Self::Audit, Self::Callers];

    /// The name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The value of the field [`VIEW`](routes::VIEW) of [`EVENTS`](routes::EVENTS).
    #[must_use]
    pub const fn key(self) -> &'static str {
        self.facts().key
    }

    /// The view of a key.
    #[must_use]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|view| view.key() == key)
    }

    /// True for the path of a view, or below it.
    #[must_use]
    pub fn has(path: &str) -> bool {
        let is_within = |view: &Self| path.strip_prefix(view.path()).is_some_and(|rest| rest.starts_with('/'));
        let views = Self::ALL.iter().filter(|view| **view != Self::Now);
        path == routes::NOW || views.into_iter().any(|view| path == view.path() || is_within(view))
    }

    const fn path(self) -> &'static str {
        self.facts().path
    }

    const fn facts(self) -> ViewFacts {
        match self {
            Self::Now => ViewFacts { name: "Now", key: "now", path: routes::NOW },
            Self::Tools => ViewFacts { name: "Tools", key: "tools", path: routes::TOOLS },
            Self::Denials => ViewFacts { name: "Denials", key: "denials", path: routes::DENIALS },
            Self::Changes => ViewFacts { name: "Changes", key: "changes", path: routes::CHANGES },
            Self::Approvals => ViewFacts { name: "Approvals", key: "approvals", path: routes::APPROVALS },
            Self::Audit => ViewFacts { name: "Audit", key: "audit", path: routes::AUDIT },
            Self::Callers => ViewFacts { name: "Callers", key: "callers", path: routes::CALLERS },
        }
    }
}

/// The page of a view. `title` names what is shown, such as a tool.
pub fn page(frame: &Frame, view: View, title: Option<&str>, content: &Markup) -> String {
    page_of(frame, view, &[], title, content)
}

/// The page of a view whose events have these fields.
pub fn page_of(frame: &Frame, view: View, fields: &[(&str, &str)], title: Option<&str>, content: &Markup) -> String {
    let events = routes::with_query(routes::EVENTS, &[&[(routes::VIEW, view.key())], fields].concat());
    let name = title.map_or_else(String::new, |title| format!("{} · ", words(title, 80)));
    let body = html! {
        body data-events=(events) {
            a.skip href="#main" { "Skip to the view" }
            header.top {
                div.brand {
                    span.logo { "toolcell" }
                    span.server title=(words(&frame.server, TITLE_BYTES)) { (line(&frame.server)) }
                }
                (navigation(frame, view))
                (status(frame))
            }
            main #main tabindex="-1" {
                (problems(frame))
                @if let Some(notice) = &frame.notice { (notice_box(notice)) }
                (content)
            }
            p.hidden #said role="status" {}
        }
    };
    let title = format!("{name}{} · {}", view.name(), words(&frame.server, 60));
    let further = html! {
        @if view == View::Now {
            link rel="stylesheet" href=(CHARTS_STYLE.path);
            script src=(CHARTS.path) defer {}
        }
    };
    document(&title, &further, &body)
}

/// Problems of the server: a part of every page, empty if there are none.
pub fn problems(frame: &Frame) -> Markup {
    html! {
        div #problems {
            @for text in frame.problems.iter().take(ROWS) {
                (notice_box(&Notice { failed: true, text: text.clone() }))
            }
        }
    }
}

/// A page without a view, such as for signing in; `further` is added to its head.
pub fn bare(title: &str, further: &Markup, content: &Markup) -> String {
    let body = html! {
        body.bare {
            main #main { p.logo { "toolcell" } (content) }
        }
    };
    document(title, further, &body)
}

/// The names of views, with counts: a fragment that each event may replace.
pub fn navigation(frame: &Frame, current: View) -> Markup {
    html! {
        nav #views aria-label="Views" {
            ul {
                @for view in View::ALL {
                    @let badge = badge(frame, view);
                    li {
                        a href=(view.path()) aria-current=[(view == current).then_some("page")] {
                            (view.name())
                            @if badge > 0 {
                                " " span.badge { (if badge > 999 { "999+".to_owned() } else { badge.to_string() }) }
                                span.hidden { " waiting" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A form that changes something; empty if the page may not decide. `hidden` are fields that the
/// form repeats: the form is omitted if one is too long.
pub fn form(frame: &Frame, action: &str, hidden: &[(&str, &str)], content: &Markup) -> Markup {
    let fits = hidden.iter().all(|(_, value)| value.len() <= HIDDEN_BYTES);
    html! { @if frame.decide && fits { (form_for_all(frame, action, hidden, content)) } }
}

/// A form that changes nothing, even if the page may not decide.
pub fn form_for_all(frame: &Frame, action: &str, hidden: &[(&str, &str)], content: &Markup) -> Markup {
    html! {
        form method="post" action=(action) {
            input type="hidden" name=(routes::CSRF) value=(frame.csrf);
            @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
            (content)
        }
    }
}

/// A search for a text, which needs no script. With `live`, the script replaces the element of that
/// id as a person types.
pub fn search(action: &str, label: &str, query: &str, live: Option<&str>) -> Markup {
    html! {
        form.search role="search" method="get" action=(action) data-live=[live] {
            label for="q" { (label) }
            div.line {
                input #q type="search" name=(routes::QUERY) value=(words(query, QUERY_BYTES)) autocomplete="off" spellcheck="false";
                button { "Search" }
            }
        }
    }
}

/// An element id from a key: only its ASCII letters, digits, `-` and `_`.
pub fn id(kind: &str, key: &str) -> String {
    let plain = key.chars().filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')).take(64);
    format!("{kind}-{}", plain.collect::<String>())
}

/// A button that copies the text of an element; only visible if the script runs.
pub fn copy(id: &str, what: &str) -> Markup {
    html! { button.quiet type="button" data-copy=(id) hidden { "Copy" span.hidden { " " (what) } } }
}

fn badge(frame: &Frame, view: View) -> u64 {
    match view {
        View::Denials => frame.badges.denials,
        View::Changes => frame.badges.changes,
        View::Approvals => frame.badges.approvals,
        View::Now | View::Tools | View::Audit | View::Callers => 0,
    }
}

fn status(frame: &Frame) -> Markup {
    html! {
        div.status {
            span.chip #live hidden { "live" }
            button.quiet #pause type="button" hidden { "Pause" }
            @if !frame.decide { span.chip.off { "read-only" } }
            @if !frame.viewer.is_empty() {
                span.who title=(words(&frame.viewer, TITLE_BYTES)) { (line(&frame.viewer)) }
            }
            form method="post" action=(routes::SIGN_OUT) {
                input type="hidden" name=(routes::CSRF) value=(frame.csrf);
                button.quiet { "Sign out" }
            }
            p.about title=(words(&frame.manifest, TITLE_BYTES)) { (line(&frame.manifest)) }
            p.about { "toolcell " (line(&frame.version)) }
        }
    }
}

fn notice_box(notice: &Notice) -> Markup {
    let class = if notice.failed { "notice failed" } else { "notice" };
    html! { p class=(class) role=(if notice.failed { "alert" } else { "status" }) { (line(&notice.text)) } }
}

/// A whole document; `further` is added to its head, before our own style.
fn document(title: &str, further: &Markup, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                link rel="icon" href=(ICON.path);
                (further)
                link rel="stylesheet" href=(STYLE.path);
                script src=(SCRIPT.path) defer {}
            }
            (body)
        }
    };
    page.0
}
