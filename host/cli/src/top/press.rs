//! Keys: a pure function from a key to a step.
use ratatui::termion::event::Key;
use toolcell_server::control::Decision;

use super::ask::{Seen, Target};
use super::state::{Question, TopRow, TopState, View};
use super::text;

/// Rows that a page key moves.
const PAGE: usize = 10;

/// Most characters of a name in a question.
const NAME_CHARS: usize = 40;

/// Most characters of a rule in a question. A longer one cannot be granted here: nobody should
/// allow what they cannot see.
const RULE_CHARS: usize = 400;

/// The step after a key, besides changes of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterKey {
    /// Nothing.
    Stay,
    /// The end.
    Quit,
    /// A decision.
    Decide(Target),
}

/// Handles a key.
pub fn press(state: &mut TopState, seen: &Seen, key: Key) -> AfterKey {
    if key == Key::Ctrl('c') {
        return AfterKey::Quit;
    }
    if let Some(question) = state.question.take() {
        if matches!(key, Key::Char('y' | 'Y')) {
            state.is_deciding = true;
            state.notice = Some(Ok("Under way …".to_owned()));
            return AfterKey::Decide(question.target);
        }
        state.notice = Some(Ok("Not done.".to_owned()));
        return AfterKey::Stay;
    }
    state.notice = None;
    match key {
        Key::Char('q') => return AfterKey::Quit,
        Key::Esc if !state.details => return AfterKey::Quit,
        Key::Esc => state.details = false,
        Key::Char('\t') => state.show(state.view.next()),
        Key::Char('1') => state.show(View::Now),
        Key::Char('2') => state.show(View::Denials),
        Key::Char('3') => state.show(View::Approvals),
        Key::Char('p') => state.paused = !state.paused,
        Key::Char('\n' | '\r') => open(state, seen),
        Key::Char(letter @ ('s' | 'a' | 'd' | 'm' | 'n' | 'r')) => ask(state, seen, letter),
        key => go(state, seen, key),
    }
    AfterKey::Stay
}

fn open(state: &mut TopState, seen: &Seen) {
    let rows = seen.rows(state.view);
    if let Some(at) = state.chosen(&rows) {
        state.choose(&rows, at);
        (state.details, state.scrolled) = (!state.details, 0);
    }
}

/// Moves the selection, or scrolls the details.
fn go(state: &mut TopState, seen: &Seen, key: Key) {
    let rows = seen.rows(state.view);
    let Some(at) = state.chosen(&rows) else { return };
    let from = if state.details { state.scrolled } else { at };
    let to = match key {
        Key::Up | Key::Char('k') => from.saturating_sub(1),
        Key::Down | Key::Char('j') => from.saturating_add(1),
        Key::PageUp => from.saturating_sub(PAGE),
        Key::PageDown => from.saturating_add(PAGE),
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => usize::MAX,
        _ => return,
    };
    if state.details {
        state.scrolled = to;
    } else {
        state.choose(&rows, to);
    }
}

/// Asks about the decision of a key, if it has one.
fn ask(state: &mut TopState, seen: &Seen, letter: char) {
    let rows = seen.rows(state.view);
    let Some((at, row)) = state.chosen(&rows).and_then(|at| Some((at, *rows.get(at)?))) else { return };
    let asked = match row {
        TopRow::Call(_, call) if letter == 's' => {
            Ok((Decision::Stop(call.call), format!("End call {} of {}?", call.call, name(&call.tool))))
        }
        TopRow::Denial(..) => match denial(&row, letter) {
            Some(asked) => asked,
            None => return,
        },
        TopRow::Approval(..) => match approval(&row, letter) {
            Some(asked) => asked,
            None => return,
        },
        TopRow::Call(..) => return,
    };
    state.choose(&rows, at);
    let process = row.process();
    let asked = match asked {
        _ if !process.activity.decide => {
            let hint = "write decide = true into [console], and start the server anew";
            Err(format!("Operators of this server may not decide: {hint}."))
        }
        _ if state.is_deciding => Err("Another decision is under way.".to_owned()),
        asked => asked,
    };
    match asked {
        Ok((decision, text)) => {
            let socket = process.socket.clone();
            let run = process.activity.run.clone();
            // A decision requires that everything is shown.
            if !matches!(row, TopRow::Call(..)) {
                (state.details, state.scrolled) = (true, if state.details { state.scrolled } else { 0 });
            }
            state.question = Some(Question { text: format!("{text} y/n"), target: Target { socket, run, decision } });
        }
        Err(problem) => state.notice = Some(Err(problem)),
    }
}

type AskedAbout = Result<(Decision, String), String>;

fn denial(row: &TopRow<'_>, letter: char) -> Option<AskedAbout> {
    let TopRow::Denial(_, group) = row else { return None };
    Some(match (letter, &group.rule) {
        ('m', _) if group.muted => Ok((Decision::Unmute(group.group), "Show this group again?".to_owned())),
        ('m', _) => Ok((Decision::Mute(group.group), "Mute this group until the server ends?".to_owned())),
        ('a', Some(rule)) if rule.can_apply => {
            let rule = text::line(&text::rule(&rule.section, &rule.line), RULE_CHARS + 1);
            match rule.chars().count() <= RULE_CHARS {
                true => Ok((Decision::Grant(group.group), format!("Write into the manifest: {rule}?"))),
                false => Err("The rule is too long to be asked about here: add it by hand.".to_owned()),
            }
        }
        ('a', _) => Err("No rule that the server may write would allow this.".to_owned()),
        _ => return None,
    })
}

fn approval(row: &TopRow<'_>, letter: char) -> Option<AskedAbout> {
    let TopRow::Approval(_, call) = row else { return None };
    let subject = format!("call {} of {} for {}", call.call, name(&call.tool), name(&call.caller));
    Some(match (letter, call.remember_s) {
        // Nobody can allow what is not shown.
        ('a' | 'n' | 'r', _) if call.arguments_cut => {
            Err("Its arguments are not shown whole: decline it, or decide in the console.".to_owned())
        }
        ('a', _) => Ok((Decision::Allow(call.question_id), format!("Allow {subject}?"))),
        ('n', _) => match call.run_calls {
            Some(calls) => {
                let further = format!("{calls} calls of it in this run at most, whatever their arguments");
                Ok((Decision::AllowRun(call.question_id), format!("Allow {subject}, and {further}?")))
            }
            None => Err("No tool makes this call: allow it alone.".to_owned()),
        },
        ('d', _) => Ok((Decision::Decline(call.question_id), format!("Decline {subject}?"))),
        ('r', Some(time)) => {
            let time = text::seconds(time);
            let further = format!("further ones for {time}, whatever their arguments");
            Ok((Decision::Remember(call.question_id), format!("Allow {subject}, and {further}?")))
        }
        ('r', None) => Err("The manifest lets no approval of this tool be remembered.".to_owned()),
        _ => return None,
    })
}

fn name(text: &str) -> String {
    text::line(text, NAME_CHARS)
}

#[cfg(test)]
#[path = "press_tests.rs"]
mod tests;
