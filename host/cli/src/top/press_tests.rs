//! Keys, and what each does in each view.

use std::path::PathBuf;

use toolcell_server::control::{ActivitySnapshot, ApprovalShown, CallShown, DenialShown, RuleShown};

use super::super::ask::Process;
use super::*;

fn seen(decide: bool) -> Seen {
    let call = |call| CallShown { call, tool: format!("t{call}"), ..CallShown::default() };
    let rule =
        RuleShown { section: "components.c.network".to_owned(), line: "tcp = [\"a:1\"]".to_owned(), can_apply: true };
    let denial = DenialShown { group: 7, rule: Some(rule), ..DenialShown::default() };
    let approval = ApprovalShown {
        question_id: 9,
        remember_s: Some(3_600),
        run_calls: Some(10),
        tool: "w".to_owned(),
        ..ApprovalShown::default()
    };
    let activity = ActivitySnapshot {
        run: "1.2".to_owned(),
        decide,
        calls: (1..=3).map(call).collect(),
        denials: vec![denial],
        approvals: vec![approval],
        ..ActivitySnapshot::default()
    };
    Seen { processes: vec![Process { socket: PathBuf::from("/s"), activity }], problems: Vec::new() }
}

fn typed(state: &mut TopState, seen: &Seen, keys: &str) -> AfterKey {
    keys.chars().map(|key| press(state, seen, Key::Char(key))).last().unwrap_or(AfterKey::Stay)
}

#[test]
fn every_decision_is_asked_about_first() {
    let seen = seen(true);
    for (keys, decision, asked) in [
        ("js", Decision::Stop(2), "End call 2 of t2? y/n"),
        ("2a", Decision::Grant(7), "Write into the manifest: [components.c.network] tcp = [\"a:1\"]? y/n"),
        ("2m", Decision::Mute(7), "Mute this group until the server ends? y/n"),
        ("3a", Decision::Allow(9), "Allow call 0 of w for ? y/n"),
        (
            "3n",
            Decision::AllowRun(9),
            "Allow call 0 of w for , and 10 calls of it in this run at most, whatever their arguments? y/n",
        ),
        ("3d", Decision::Decline(9), "Decline call 0 of w for ? y/n"),
        (
            "3r",
            Decision::Remember(9),
            "Allow call 0 of w for , and further ones for 1 h 0 min, whatever their arguments? y/n",
        ),
    ] {
        let mut state = TopState::default();
        assert_eq!(typed(&mut state, &seen, keys), AfterKey::Stay);
        assert_eq!(state.question.as_ref().map(|question| question.text.as_str()), Some(asked));
        let mut other = state.clone();
        assert_eq!(typed(&mut other, &seen, "n"), AfterKey::Stay);
        assert!(other.question.is_none() && !other.is_deciding);
        let target = Target { socket: PathBuf::from("/s"), run: "1.2".to_owned(), decision };
        assert_eq!(typed(&mut state, &seen, "y"), AfterKey::Decide(target));
        assert!(state.is_deciding);
        assert_eq!(typed(&mut state, &seen, keys), AfterKey::Stay);
        assert!(state.question.is_none(), "one decision at a time");
    }
}

#[test]
fn a_call_whose_arguments_are_cut_can_only_be_declined() {
    let mut seen = seen(true);
    seen.processes[0].activity.approvals[0].arguments_cut = true;
    for (keys, is_asked) in [("3a", false), ("3n", false), ("3r", false), ("3d", true)] {
        let mut state = TopState::default();
        let _ = typed(&mut state, &seen, keys);
        assert_eq!((state.question.is_some(), state.notice.is_some()), (is_asked, !is_asked), "{keys}");
    }
}

#[test]
fn a_rule_that_a_question_cannot_show_whole_is_not_asked_about() {
    for (line, is_asked) in [("a".repeat(300), true), ("a".repeat(440), false), ("\u{1b}".repeat(100), false)] {
        let mut seen = seen(true);
        let mut state = TopState::default();
        seen.processes[0].activity.denials[0].rule.as_mut().unwrap().line = format!("{line}\nprivate = [\"::1\"]");
        typed(&mut state, &seen, "2a");
        let shown = state.question.is_some_and(|question| question.text.ends_with("private = [\"::1\"]? y/n"));
        assert_eq!((shown, state.notice.is_some()), (is_asked, !is_asked), "{line:?}");
    }
}

#[test]
fn where_operators_may_not_decide_nothing_is_asked() {
    let seen = seen(false);
    for keys in ["s", "2a", "2m", "3a", "3d", "3n", "3r"] {
        let mut state = TopState::default();
        typed(&mut state, &seen, keys);
        assert!(state.question.is_none());
        assert!(matches!(&state.notice, Some(Err(text)) if text.contains("decide = true")), "{keys}: {state:?}");
    }
}

#[test]
fn keys_of_other_views_do_nothing_and_an_empty_view_takes_all_keys() {
    for keys in ["a", "d", "m", "n", "r", "2s", "2d", "2n", "2r", "3s", "3m"] {
        let mut state = TopState::default();
        typed(&mut state, &seen(true), keys);
        assert!(state.question.is_none() && state.notice.is_none(), "{keys}");
    }
    let mut state = TopState::default();
    let nothing = Seen::default();
    for key in "123\tsadmnr\njkgGp".chars() {
        assert_eq!(press(&mut state, &nothing, Key::Char(key)), AfterKey::Stay);
    }
    assert!(state.paused && !state.details);
}

#[test]
fn views_rows_and_details_are_changed_by_their_keys() {
    let seen = seen(true);
    let mut state = TopState::default();
    let chosen = |state: &TopState| state.chosen(&seen.rows(state.view));
    for (key, expected) in
        [(Key::Down, 1), (Key::PageDown, 2), (Key::Up, 1), (Key::Home, 0), (Key::End, 2), (Key::PageUp, 0)]
    {
        press(&mut state, &seen, key);
        assert_eq!(chosen(&state), Some(expected), "{key:?}");
    }
    typed(&mut state, &seen, "\n");
    assert!(state.details);
    press(&mut state, &seen, Key::Down);
    assert_eq!((state.scrolled, chosen(&state)), (1, Some(0)));
    assert_eq!(press(&mut state, &seen, Key::Esc), AfterKey::Stay);
    assert!(!state.details);
    for view in [View::Denials, View::Approvals, View::Now] {
        typed(&mut state, &seen, "\t");
        assert_eq!(state.view, view);
    }
    for key in [Key::Char('q'), Key::Esc, Key::Ctrl('c')] {
        assert_eq!(press(&mut state, &seen, key), AfterKey::Quit);
    }
}

#[test]
fn the_chosen_row_stays_chosen_when_others_go() {
    let mut seen = seen(true);
    let mut state = TopState::default();
    typed(&mut state, &seen, "j\n");
    seen.processes[0].activity.calls.remove(0);
    state.settle(&seen);
    assert_eq!((state.chosen(&seen.rows(View::Now)), state.details), (Some(0), true));
    seen.processes[0].activity.calls.remove(0);
    state.settle(&seen);
    assert_eq!((state.chosen(&seen.rows(View::Now)), state.details), (Some(0), false), "what was shown is gone");
    seen.processes.clear();
    state.settle(&seen);
    assert_eq!(state.chosen(&seen.rows(View::Now)), None);
}
