//! Asking on the terminal about requests without a rule.
use std::io::Write as _;

use toolcell_server::catalog::{Choice, Person};

/// The person at the terminal where `toolcell call` was typed.
pub struct OnTerminal;

impl Person for OnTerminal {
    fn ask(&self, message: &str, choices: &[Choice]) -> Option<Choice> {
        let mut text = format!("\n{message}\n");
        for choice in choices {
            text.push_str(&format!("  {:<9} {}\n", choice.name(), choice.meaning()));
        }
        text.push_str("Your answer [no]: ");
        let mut stderr = std::io::stderr();
        stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).ok()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).ok()?;
        Some(choice(answer.trim(), choices))
    }
}

/// The choice of this name or prefix; anything else is a no.
fn choice(answer: &str, choices: &[Choice]) -> Choice {
    let named = |choice: &&Choice| !answer.is_empty() && choice.name().starts_with(&answer.to_ascii_lowercase());
    choices.iter().find(named).copied().unwrap_or(Choice::No)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_choice_is_a_no() {
        let choices = [Choice::Once, Choice::Manifest, Choice::No];
        for (answer, expected) in [
            ("once", Choice::Once),
            ("o", Choice::Once),
            ("Manifest", Choice::Manifest),
            ("session", Choice::No),
            ("", Choice::No),
            ("yes", Choice::No),
            ("no", Choice::No),
        ] {
            assert_eq!(choice(answer, &choices), expected, "{answer}");
        }
    }
}
