//! Screens of each view, drawn into a buffer: what is on them, at which sizes.

use std::path::PathBuf;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::termion::event::Key;
use toolcell_server::control::{ActivitySnapshot, ApprovalShown, CallShown, CallState, DenialShown, RuleShown};

use super::super::ask::Process;
use super::super::plain;
use super::super::press::press;
use super::*;

fn of(activity: ActivitySnapshot) -> Seen {
    Seen { processes: vec![Process { socket: PathBuf::from("/s"), activity }], problems: Vec::new() }
}

fn call(call: u64, tool: &str) -> CallShown {
    CallShown {
        call,
        depth: 0,
        tool: tool.to_owned(),
        component: "wiki".to_owned(),
        caller: "ann".to_owned(),
        state: CallState::Running,
        age_ms: 1_500,
        deadline_ms: 30_000,
        fuel_max: 10_000_000_000,
        fuel_used: Some(1_200_000_000),
        memory_bytes_max: 64 << 20,
        memory_bytes_used: None,
    }
}

fn full() -> Seen {
    let rule = RuleShown {
        section: "components.wiki.network".to_owned(),
        line: "http = [\"GET https://x.example/\"]".to_owned(),
        can_apply: true,
    };
    let denial = DenialShown {
        group: 1,
        component: "wiki".to_owned(),
        tools: vec!["search".to_owned()],
        capability: "http".to_owned(),
        asked: "GET https://x.example/".to_owned(),
        reason: "no rule".to_owned(),
        count: 12,
        rule: Some(rule),
        ..DenialShown::default()
    };
    let approval = ApprovalShown {
        question_id: 3,
        call: 8,
        tool: "delete".to_owned(),
        caller: "bob".to_owned(),
        arguments: "{\"page\":\"Main\"}".to_owned(),
        left_ms: 90_000,
        ..ApprovalShown::default()
    };
    of(ActivitySnapshot {
        decide: true,
        calls: vec![call(5, "search"), call(6, "edit")],
        denials: vec![denial],
        approvals: vec![approval],
        ..ActivitySnapshot::default()
    })
}

/// The lines of a screen of this size, after these keys.
fn drawn(seen: &Seen, keys: &str, width: u16, height: u16) -> Vec<String> {
    let mut state = TopState::default();
    keys.chars().for_each(|key| drop(press(&mut state, seen, Key::Char(key))));
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let screen = Screen { seen, state: &state, has_colours: true };
    terminal.draw(|frame| frame.render_widget(screen, frame.area())).unwrap();
    let buffer = terminal.backend().buffer();
    let cells: Vec<&str> = buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect();
    cells.chunks(usize::from(width).max(1)).map(|line| line.concat().trim_end().to_owned()).collect()
}

#[test]
fn each_view_shows_its_rows_and_its_keys() {
    let lines = drawn(&full(), "", 80, 24);
    assert_eq!(lines[0], "toolcell  1 Now  2 Denials (1)  3 Approvals (1)");
    assert!(
        lines[1].starts_with("0 running, 0 waiting; in 60 s: 0.0/s, p50 -, p99 -, 0 errors, 0 denied"),
        "{lines:?}"
    );
    assert!(lines[2].contains("CALL TOOL") && lines[2].contains("CALLER") && lines[2].contains("STATE"), "{lines:?}");
    assert!(lines[3].contains("5 search") && lines[3].contains("ann") && lines[3].contains("1.5 s"), "{lines:?}");
    assert!(lines[4].contains("6 edit") && lines[5].is_empty(), "{lines:?}");
    assert!(lines[23].starts_with("q quit  s stop"), "{lines:?}");
    let wide = drawn(&full(), "", 160, 24);
    assert!(wide[3].contains("1.2 G of 10.0 G") && wide[3].contains("64.0 MiB at most"), "{wide:?}");
    let lines = drawn(&full(), "2", 80, 24);
    assert!(lines[3].contains("12 http") && lines[3].contains("GET https://x.example/"), "{lines:?}");
    assert!(lines[23].contains("a allow  m mute"), "{lines:?}");
    let lines = drawn(&full(), "3", 80, 24);
    assert!(lines[3].contains("8 delete") && lines[3].contains("{\"page\":\"Main\"}"), "{lines:?}");
    let lines = drawn(&full(), "3a", 80, 24);
    assert_eq!(
        (lines[22].as_str(), lines[23].as_str()),
        ("Allow call 8 of delete for bob? y/n", "y yes  any other key no")
    );
    assert!(
        lines.iter().any(|line| line == "arguments  {\"page\":\"Main\"}"),
        "what is decided about is shown: {lines:?}"
    );
    let lines = drawn(&full(), "2\n", 80, 24);
    assert!(lines.iter().any(|line| line.starts_with("rule       [components.wiki.network] http = ")), "{lines:?}");
    assert!(plain::page(&full()).contains("allowed by: [components.wiki.network] http = "));
}

#[test]
fn a_question_about_a_rule_shows_all_of_it_and_tells_of_what_is_below() {
    let mut seen = full();
    let rule = seen.processes[0].activity.denials[0].rule.as_mut().unwrap();
    rule.line = format!("private = [\"127.0.0.1:443\"]\nhttp = [\"GET https://x.example/{}\"]", "a".repeat(280));
    let lines = drawn(&seen, "2a", 80, 24);
    // A line ends at a space where there is one.
    let question = lines[18..23].concat().replace(' ', "");
    let whole = "Write into the manifest: [components.wiki.network] private = [\"127.0.0.1:443\"]; http = ";
    assert!(question.starts_with(&whole.replace(' ', "")) && question.ends_with("aaa\"]?y/n"), "{lines:?}");
    let lines = drawn(&seen, "2a", 80, 16);
    assert!(lines[9].ends_with("more lines below") && lines[10].starts_with("Write into"), "{lines:?}");
    seen.processes[0].activity.approvals[0].arguments = "b".repeat(4_000);
    let lines = drawn(&seen, "3a", 80, 24);
    assert!(lines[21].ends_with("more lines below") && lines[22].starts_with("Allow call 8"), "{lines:?}");
}

#[test]
fn a_view_without_rows_says_so() {
    let seen = of(ActivitySnapshot::default());
    for (keys, said) in [("", "No call runs."), ("2", "Nothing was denied."), ("3", "No call waits for a person.")] {
        assert_eq!(drawn(&seen, keys, 80, 24)[3], said);
    }
    assert_eq!(drawn(&Seen::default(), "", 80, 24)[3], "No process answers.");
    assert_eq!(plain::page(&seen).matches("  none\n").count(), 3);
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    for width in [0, 1, 5, 20, 40, 79, 200] {
        for height in [0, 1, 3, 5, 24] {
            for keys in ["", "2", "3", "\n", "2\n", "3\n", "s", "2a", "3d", "3d\u{1}"] {
                drawn(&full(), keys, width, height);
            }
        }
    }
    let lines = drawn(&full(), "", 40, 24);
    assert!(lines[3].contains("5 search") && lines[3].contains("running"), "{lines:?}");
    assert!(!lines[2].contains("DEADLINE"), "{lines:?}");
}

#[test]
fn texts_of_others_reach_no_cell_as_more_than_text() {
    let hostile = format!("\u{1b}[2J\u{202e}evil\u{9b}31m\n\t{}", "x".repeat(10_000_000));
    let mut activity = full().processes.remove(0).activity;
    activity.manifest.clone_from(&hostile);
    (activity.calls[0].tool, activity.calls[0].caller) = (hostile.clone(), hostile.clone());
    let denial = &mut activity.denials[0];
    (denial.asked, denial.reason, denial.component) = (hostile.clone(), hostile.clone(), hostile.clone());
    denial.rule.as_mut().unwrap().line.clone_from(&hostile);
    let approval = &mut activity.approvals[0];
    (approval.tool, approval.arguments, approval.question) = (hostile.clone(), hostile.clone(), hostile);
    let seen = of(activity);
    let texts = ["", "\n", "s", "2", "2\n", "2a", "3", "3\n", "3a"].map(|keys| drawn(&seen, keys, 80, 24).concat());
    for text in texts.into_iter().chain([plain::page(&seen).replace('\n', "")]) {
        assert!(!text.chars().any(|letter| letter.is_control() || letter == '\u{202e}'), "{text:?}");
        assert!(text.contains("\\u001b[2J"), "{text}");
    }
    let asked = drawn(&seen, "3a", 80, 24).concat();
    assert!(asked.contains("y/n"), "the question is whole: {asked}");
    assert!(plain::page(&seen).len() < 100_000);
}

#[test]
fn a_thousand_calls_scroll() {
    let calls = (1..=1_000).map(|number| call(number, &format!("tool_{number}"))).collect();
    let seen = of(ActivitySnapshot { calls, ..ActivitySnapshot::default() });
    let lines = drawn(&seen, "G", 80, 24);
    assert!(lines[21].contains("1000 tool_1000") && lines[3].contains("982 tool_982"), "{lines:?}");
    assert!(drawn(&seen, "Gg", 80, 24)[3].contains("1 tool_1 "));
    assert!(plain::page(&seen).contains("… 800 more"));
}

#[test]
fn without_colours_no_cell_has_one() {
    let seen = Seen { problems: vec!["away".to_owned()], ..full() };
    for has_colours in [true, false] {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let screen = Screen { seen: &seen, state: &TopState::default(), has_colours };
        terminal.draw(|frame| frame.render_widget(screen, frame.area())).unwrap();
        let is_plain = |cell: &ratatui::buffer::Cell| cell.fg == Color::Reset && cell.bg == Color::Reset;
        assert_eq!(terminal.backend().buffer().content().iter().all(is_plain), !has_colours);
    }
}
