//! Every page, with ordinary values and with those that a hostile component, client or server would
//! choose: the only markup is ours, and pages stay small.

mod markup;
mod samples;

use samples::{Dress, Samples, hostile, plain};
use toolcell_console::model::{
    Approvals, AuditQuery, DenialGroup, Frame, SignInReason, ToolPage, ToolRow, WaitingApproval,
};
use toolcell_console::{View, page, routes, update};

/// Bytes of the largest page of samples, whose texts are endless.
const LARGEST_PAGE_BYTES: usize = 1_500_000;

/// A text that never ends. Shorter than what is tried on one text alone: there are hundreds here.
fn endless(text: &str) -> String {
    format!("{text}{}", "<\u{202e}&\u{1b}W".repeat(20_000))
}

/// A text that never ends, whose line may end behind as many letters as possible.
fn full_of_breaks(text: &str) -> String {
    format!("{text}{}", "_abc".repeat(40_000))
}

/// All pages of a set of samples, with their names.
fn pages(dress: Dress, decide: bool) -> Vec<(&'static str, String)> {
    let samples = Samples { dress, tools: 1_000 };
    let frame = samples.frame(decide);
    let query = AuditQuery { tool: dress("weather"), text: dress("x"), ..AuditQuery::default() };
    let mut pages = vec![
        ("now", page::now(&frame, &samples.now(0))),
        ("tools", page::tools(&frame, &samples.tools("", 1))),
        ("tool", page::tool(&frame, &samples.tool(true))),
        ("denials", page::denials(&frame, &samples.denials(), "")),
        ("changes", page::changes(&frame, &samples.changes())),
        ("approvals", page::approvals(&frame, &samples.approvals())),
        ("audit", page::audit(&frame, &samples.audit(query))),
        ("call", page::call(&frame, &samples.call())),
        ("callers", page::callers(&frame, &samples.callers(&dress("ann"), true))),
        ("error", page::error(&samples.error(404))),
        ("going-on", page::going_on(&routes::with_query(&routes::tool(&dress("x")), &[("q", &dress("y"))]))),
    ];
    for reason in [
        SignInReason::NotSignedIn,
        SignInReason::LinkSpent,
        SignInReason::WrongToken,
        SignInReason::TooMany,
        SignInReason::NotNow,
        SignInReason::SessionEnded,
    ] {
        pages.push(("sign-in", page::sign_in(&samples.sign_in(reason))));
    }
    pages
}

#[test]
fn the_only_markup_is_ours() {
    for dress in [plain as Dress, hostile, endless, full_of_breaks] {
        for (name, page) in pages(dress, true).into_iter().chain(pages(dress, false)) {
            markup::check(&page).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        }
    }
}

#[test]
fn the_checker_finds_what_must_not_be_there() {
    for (bad, part) in [
        ("<script>x</script>", "script"),
        ("<p onclick=\"x\">", "onclick"),
        ("<p style=\"x\">", "style"),
        ("<a href=\"javascript:x\">", "javascript"),
        ("<a href=\"//evil.example\">", "evil"),
        ("<img src=\"data:image/svg+xml;base64,AA\">", "svg"),
        ("<iframe>", "iframe"),
        ("<p>\u{1b}</p>", "hidden"),
        ("<p>\u{202e}</p>", "hidden"),
    ] {
        let problem = markup::check(bad).unwrap_err();
        assert!(problem.contains(part), "{bad}: {problem}");
    }
}

#[test]
fn pages_stay_small_whatever_they_show() {
    for dress in [endless as Dress, full_of_breaks] {
        for (name, page) in pages(dress, true) {
            assert!(page.len() < LARGEST_PAGE_BYTES, "{name} has {} bytes", page.len());
        }
    }
}

#[test]
fn ten_megabytes_in_a_text_are_a_few_hundred_bytes_of_a_page() {
    let text = "<script>".repeat(1_300_000);
    let samples = Samples { dress: plain, tools: 1 };
    let tool = ToolPage {
        name: text.clone(),
        description: text.clone(),
        definition: text.clone(),
        input_schema: text.clone(),
        ..samples.tool(false)
    };
    let page = page::tool(&samples.frame(true), &tool);
    assert!(page.len() < 100_000, "{}", page.len());
    assert!(page.contains("more bytes"));
    markup::check(&page).unwrap();
}

#[test]
fn a_deep_result_is_a_flat_page() {
    let samples = Samples { dress: plain, tools: 1 };
    let mut tool = samples.tool(true);
    let deep = format!("{}{}", "[".repeat(5_000_000), "]".repeat(5_000_000));
    tool.definition = deep.clone();
    tool.input_schema = deep.clone();
    if let Some(result) = tool.tried.result.as_mut() {
        result.structured = Some(deep);
    }
    let page = page::tool(&samples.frame(true), &tool);
    assert!(page.len() < 120_000, "{}", page.len());
    markup::check(&page).unwrap();
}

#[test]
fn a_page_of_a_thousand_tools_shows_two_hundred_and_says_so() {
    let samples = Samples { dress: plain, tools: 1_000 };
    let mut tools = samples.tools("", 1);
    tools.tools = (0..1_000).map(|number| ToolRow { name: format!("tool_{number}"), ..ToolRow::default() }).collect();
    let page = page::tools(&samples.frame(false), &tools);
    assert_eq!(page.matches("href=\"/tools/tool_").count(), 200);
    assert!(page.contains("1,000 tools") && page.contains("800 more are not shown."));
    assert!(page.contains("Page 1 of 10") && page.contains("href=\"/tools?page=2\""));
}

#[test]
fn a_name_breaks_behind_its_separators_and_what_the_window_cuts_is_in_a_title() {
    let samples = Samples { dress: plain, tools: 3 };
    let frame = samples.frame(true);
    let page = page::tools(&frame, &samples.tools("", 1));
    assert!(page.contains("<a href=\"/tools/weather_normals\"><bdi>weather_<wbr>normals</bdi></a>"), "{page}");
    for title in [
        "<span class=\"server\" title=\"acme tools\"><bdi>acme tools</bdi></span>",
        "<span class=\"who\" title=\"ann\"><bdi>ann</bdi></span>",
        "<p class=\"about\" title=\"/srv/tools/toolcell.toml\"><bdi>/srv/<wbr>tools/<wbr>toolcell.<wbr>toml</bdi></p>",
    ] {
        assert!(page.contains(title), "{title}: {page}");
    }
    let page = page::tool(&frame, &samples.tool(false));
    assert!(page.contains("<h1><bdi>weather_<wbr>normals</bdi> "), "{page}");
}

#[test]
fn a_denial_names_the_callers_whose_calls_asked() {
    let samples = Samples { dress: plain, tools: 1 };
    let callers = ", called by <bdi>ann</bdi>, <bdi>nightly-<wbr>build</bdi>, 1,204 times, ";
    for page in
        [page::denials(&samples.frame(true), &samples.denials(), ""), page::call(&samples.frame(true), &samples.call())]
    {
        assert!(page.contains(callers), "{page}");
    }
}

#[test]
fn a_component_that_asks_for_much_leaves_room_for_others_and_has_a_page() {
    let samples = Samples { dress: plain, tools: 1 };
    let mut denials = samples.denials();
    let of = |component: &str, number: usize| {
        let asked = format!("GET https://{component}.example/{number}");
        DenialGroup {
            key: format!("{component}-{number}"),
            component: component.to_owned(),
            asked,
            ..DenialGroup::default()
        }
    };
    denials.groups = (0..100).map(|number| of("loud", number)).chain([of("quiet", 1)]).collect();
    let page = page::denials(&samples.frame(true), &denials, "");
    assert_eq!(page.matches("id=\"denial-loud-").count(), 20, "{page}");
    assert!(page.contains("id=\"denial-quiet-1\"") && page.contains("href=\"/denials?component=loud\""), "{page}");
    let page = page::denials(&samples.frame(true), &denials, "loud");
    assert_eq!(page.matches("id=\"denial-loud-").count(), 100, "{page}");
    assert!(!page.contains("denial-quiet") && page.contains("data-events=\"/events?view=denials&amp;component=loud\""));
}

#[test]
fn only_a_console_that_decides_has_forms_that_change_something() {
    for (name, page) in pages(plain, false) {
        let forms = page.matches("method=\"post\"").count();
        let own = if matches!(name, "sign-in" | "error" | "going-on") {
            page.matches(routes::SIGN_IN).count().min(1)
        } else {
            1
        };
        let checks = page.matches(&format!("action=\"{}\"", routes::CHECK_CHAIN)).count();
        assert_eq!((forms, checks), (own + checks, usize::from(name == "audit")), "{name}: signing in and out alone");
    }
    for path in [
        routes::STOP,
        routes::APPLY,
        routes::MUTE,
        routes::UNMUTE,
        routes::READ,
        routes::APPROVE,
        routes::ANSWER_APPROVAL,
        routes::NEW_TOKEN,
        routes::REVOKE_TOKEN,
        routes::CHECK_CHAIN,
    ] {
        let shown = pages(plain, true).iter().any(|(_, page)| page.contains(&format!("action=\"{path}\"")));
        assert!(shown, "{path}");
    }
}

#[test]
fn a_call_whose_arguments_are_not_shown_whole_can_only_be_declined() {
    let samples = Samples { dress: plain, tools: 1 };
    let page = page::approvals(&samples.frame(true), &samples.approvals());
    for (key, answers) in
        [("a1", &["allow", "remember", "decline"][..]), ("a2", &["allow", "run", "decline"]), ("a3", &["decline"])]
    {
        let card = page.split(&format!("id=\"approval-{key}\"")).nth(1).unwrap().split("</article>").next().unwrap();
        let shown = ["allow", "run", "remember", "decline"].into_iter();
        let shown: Vec<&str> = shown.filter(|answer| card.contains(&format!("value=\"{answer}\""))).collect();
        assert_eq!(shown, answers, "{key}");
        assert_eq!(card.contains("not shown whole: 1,204 more bytes"), key == "a3", "{card}");
        assert_eq!(card.contains("whatever their arguments"), answers.len() > 2, "{card}");
        assert_eq!(card.contains("type=\"number\" min=\"1\" max=\"100\" value=\"10\""), key == "a2", "{card}");
    }
}

#[test]
fn calls_with_long_arguments_neither_fill_the_page_nor_take_the_place_of_short_ones() {
    let samples = Samples { dress: plain, tools: 1 };
    let call = |key: &str, arguments: String| WaitingApproval {
        key: key.to_owned(),
        arguments,
        ..samples.approvals().waiting[0].clone()
    };
    for text in ["<".repeat(60_000), "x".repeat(60_000)] {
        let mut waiting: Vec<_> = (0..255).map(|at| call(&format!("long{at}"), format!("\"{text}\""))).collect();
        waiting.push(call("short", "{}".to_owned()));
        let page = page::approvals(&samples.frame(true), &Approvals { waiting, ..Approvals::default() });
        assert!(page.len() < LARGEST_PAGE_BYTES, "{} bytes", page.len());
        let shown = page.matches("<article").count();
        assert!(
            shown > 1 && page.contains("id=\"approval-short\"") && page.contains("id=\"approval-long0\""),
            "{shown}"
        );
        assert!(page.contains(&format!("{} more calls wait", 256 - shown)), "{shown}");
    }
}

#[test]
fn every_form_that_is_sent_carries_the_token() {
    for (name, page) in pages(hostile, true) {
        for form in page.split("<form ").skip(1).filter(|form| form.starts_with("method=\"post\"")) {
            // Who signs in has no session, and so no token of one.
            assert!(
                form.starts_with("method=\"post\" action=\"/sign-in\"")
                    || form.split('>').nth(1).is_some_and(|field| field.contains("name=\"csrf\" value=\"csrf-token\"")),
                "{name}"
            );
        }
    }
}

#[test]
fn every_input_has_a_label_and_every_table_a_caption() {
    for (name, page) in pages(plain, true) {
        for tag in
            page.split('<').filter(|tag| ["input ", "select ", "textarea "].iter().any(|kind| tag.starts_with(kind)))
        {
            let id = tag.split(" id=\"").nth(1).and_then(|rest| rest.split('"').next());
            let labelled = id.is_some_and(|id| page.contains(&format!("<label for=\"{id}\"")));
            assert!(labelled || tag.contains("type=\"hidden\""), "{name}: {tag}");
        }
        assert_eq!(page.matches("<table").count(), page.matches("<caption").count(), "{name}");
        assert_eq!(page.matches("<h1").count(), 1, "{name}");
    }
}

#[test]
fn an_event_is_one_line_of_json_whatever_texts_hold() {
    let samples = Samples { dress: hostile, tools: 1 };
    let frame: Frame = samples.frame(true);
    let updates = [
        update::now(&frame, &samples.now(1)),
        update::denials(&frame, &samples.denials(), ""),
        update::changes(&frame, &samples.changes()),
        update::approvals(&frame, &samples.approvals()),
        update::counts(&frame, View::Callers),
    ];
    for update in updates {
        let event = update.saying(&hostile("A call waits")).event(&update::Update::default());
        let lines: Vec<&str> = event.split('\n').collect();
        assert_eq!((lines.len(), lines[0], lines[2], lines[3]), (4, "event: update", "", ""));
        let data: serde_json::Value = serde_json::from_str(lines[1].strip_prefix("data: ").unwrap()).unwrap();
        for part in data["parts"].as_array().unwrap() {
            let part = part.as_str().unwrap();
            markup::check(part).unwrap();
            assert!(part.split('>').next().unwrap().contains(" id=\""), "{part:.80}");
        }
        assert!(!data["say"].as_str().unwrap().contains('\u{202e}'));
    }
}

#[test]
fn parts_of_events_are_those_of_the_page() {
    let samples = Samples { dress: plain, tools: 1 };
    let frame = samples.frame(true);
    let event = update::now(&frame, &samples.now(0)).event(&update::Update::default());
    let data: serde_json::Value =
        serde_json::from_str(event.lines().nth(1).unwrap().strip_prefix("data: ").unwrap()).unwrap();
    let page = page::now(&frame, &samples.now(0));
    for part in data["parts"].as_array().unwrap() {
        assert!(page.contains(part.as_str().unwrap()));
    }
}

#[test]
fn an_event_has_only_the_parts_that_a_page_does_not_show_yet() {
    let samples = Samples { dress: plain, tools: 1 };
    let frame = samples.frame(true);
    let [first, same, later] = [0, 0, 1].map(|tick| update::now(&frame, &samples.now(tick)));
    let ids = |event: &str| -> Vec<String> {
        let data: serde_json::Value =
            serde_json::from_str(event.lines().nth(1).unwrap().strip_prefix("data: ").unwrap()).unwrap();
        let id = |part: &serde_json::Value| part.as_str().unwrap().split('"').nth(1).unwrap().to_owned();
        data["parts"].as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(ids(&same.event(&first)), Vec::<String>::new());
    assert_eq!(ids(&later.event(&first)), ["now-totals", "now-chart", "now-running"], "the hour moves slower");
}

#[test]
fn addresses_hold_names_as_one_segment() {
    assert_eq!(routes::tool("a/../b?x#y\"<>"), "/tools/a%2F..%2Fb%3Fx%23y%22%3C%3E");
    assert_eq!(routes::call("javascript:x"), "/audit/calls/javascript%3Ax");
    assert_eq!(
        routes::with_query("/audit", &[("tool", "a&b=c"), ("caller", ""), ("text", "é")]),
        "/audit?tool=a%26b%3Dc&text=%C3%A9"
    );
    assert!(routes::tool(&"x".repeat(10_000_000)).len() < 600);
}
