//! All views as plain text.
use super::ask::Seen;
use super::details::details;
use super::draw::{minute, row_line};
use super::state::{TopRow, View};
use super::table::{cells, columns, fitting};
use super::text;

/// Characters of a line: enough for all columns.
const WIDTH: usize = 132;

/// Rows of a view in a text; `--json` has all that a process sends.
const ROWS_MAX: usize = 200;

/// The views, one after the other.
pub fn page(seen: &Seen) -> String {
    let mut page = String::new();
    for process in &seen.processes {
        let activity = &process.activity;
        let manifest = text::line(&activity.manifest, WIDTH);
        let up = text::seconds(activity.uptime_s);
        page.push_str(&format!(
            "{manifest}\n  process {}, generation {}, up {up}\n",
            activity.pid, activity.generation
        ));
        page.push_str(&format!("  {}\n", minute(&activity.minute)));
    }
    for view in View::ALL {
        page.push_str(&format!("\n{}\n", view.name()));
        page.push_str(&table(seen, view));
    }
    page
}

fn table(seen: &Seen, view: View) -> String {
    let rows = seen.rows(view);
    if rows.is_empty() {
        return "  none\n".to_owned();
    }
    let has_several = seen.processes.len() > 1;
    let columns = columns(view, has_several);
    let fitted = fitting(&columns, WIDTH);
    let titles: Vec<String> = columns.iter().map(|column| column.title.to_owned()).collect();
    let mut table = format!("  {}\n", row_line(&columns, &fitted, &titles).trim_end());
    for row in rows.iter().take(ROWS_MAX) {
        table.push_str(&format!("  {}\n", row_line(&columns, &fitted, &cells(row, has_several)).trim_end()));
        if let Some(more) = more(row) {
            table.push_str(&format!("          {more}\n"));
        }
    }
    if let Some(left @ 1..) = rows.len().checked_sub(ROWS_MAX) {
        table.push_str(&format!("  … {left} more\n"));
    }
    table
}

/// The rule that would allow a denied request.
fn more(row: &TopRow<'_>) -> Option<String> {
    let TopRow::Denial(_, group) = row else { return None };
    group.rule.as_ref()?;
    details(row).into_iter().find(|(name, _)| *name == "rule").map(|(_, rule)| format!("allowed by: {rule}"))
}
