//! Help texts that fit the terminal: lines of a paragraph are joined, so that clap alone breaks
//! them.
use clap::Command;

/// The command and all below it, with paragraphs that clap can wrap at any width.
pub fn wrapped(mut command: Command) -> Command {
    if let Some(text) = command.get_after_help() {
        let joined = joined(&text.to_string());
        command = command.after_help(joined);
    }
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, wrapped))
}

/// Joins the lines of each paragraph. Indented lines, and those after a full stop or a colon, stay.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    let mut before = "";
    for line in text.lines() {
        let goes_on = !before.is_empty() && !before.starts_with(' ') && !before.ends_with(['.', ':']);
        if !joined.is_empty() {
            joined.push(if goes_on && !line.is_empty() && !line.starts_with(' ') { ' ' } else { '\n' });
        }
        joined.push_str(line);
        before = line;
    }
    joined
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{joined, wrapped};
    use crate::args::Args;

    /// Columns of a usual terminal.
    const COLUMNS: usize = 80;

    fn all(command: &clap::Command, seen: &mut Vec<(String, String)>) {
        seen.push((
            command.get_name().to_owned(),
            command.get_after_help().map(ToString::to_string).unwrap_or_default(),
        ));
        command.get_subcommands().for_each(|below| all(below, seen));
    }

    #[test]
    fn a_paragraph_is_one_line_and_examples_stay_lines() {
        assert_eq!(joined("Examples:\n  a\n  b\n\nOne,\ntwo.\nThree"), "Examples:\n  a\n  b\n\nOne, two.\nThree");
    }

    #[test]
    fn no_line_below_the_options_is_broken_in_the_middle() {
        let mut seen = Vec::new();
        all(&wrapped(Args::command()), &mut seen);
        assert!(seen.len() > 20);
        for (name, text) in seen {
            for line in text.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= COLUMNS, "{name}: wider than {COLUMNS} columns: {line}");
            }
        }
    }

    #[test]
    fn every_command_s_purpose_fits_on_its_line() {
        let command = Args::command();
        let width = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or_default();
        for below in command.get_subcommands() {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            let columns = "  ".len() + width + "  ".len() + about.chars().count();
            assert!(columns <= COLUMNS, "{}: {columns} columns", below.get_name());
        }
    }
}
