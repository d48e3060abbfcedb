//! Tables in a Markdown page, between two lines of it.

use std::path::Path;

use anyhow::Context as _;

const BEGIN: &str = "<!-- bench: begin -->\n";
const END: &str = "<!-- bench: end -->";

/// Puts the text between the page's two lines, instead of the last run's.
///
/// # Errors
/// The page cannot be read or written, or has not the two lines.
pub fn write(page: &Path, text: &str) -> anyhow::Result<()> {
    let old = std::fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let new = replaced(&old, text).with_context(|| format!("{} has no lines {BEGIN}and {END}", page.display()))?;
    std::fs::write(page, new).with_context(|| page.display().to_string())
}

/// The page with the text in it; `None` without the two lines.
fn replaced(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{text}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_run_replaces_the_one_before_and_nothing_else() {
        let page = "# M\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nby hand\n";
        let new = "# M\n<!-- bench: begin -->\nnew\n<!-- bench: end -->\nby hand\n";
        assert_eq!(replaced(page, "new\n").as_deref(), Some(new));
        assert_eq!(replaced(new, "new\n").as_deref(), Some(new));
        assert_eq!(replaced("no lines", "new\n"), None);
    }
}
