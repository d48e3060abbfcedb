//! Tables of views: their columns, and the cells of a row.
use super::state::{TopRow, View};
use super::text;

/// Characters of a cell that are processed: more than a terminal is wide.
const CELL_CHARS: usize = 300;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    /// Terminal columns; the minimum for the column that takes the rest.
    pub width: usize,
    /// Columns with high ranks are omitted first on a narrow terminal.
    pub rank: u8,
    pub kind: ColumnKind,
}

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    Text,
    /// Figures, right-aligned.
    Figure,
    /// Takes the remaining width.
    Rest,
}

const fn column(title: &'static str, width: usize, rank: u8, kind: ColumnKind) -> Column {
    Column { title, width, rank, kind }
}

const NOW: [Column; 9] = [
    column("CALL", 7, 0, ColumnKind::Figure),
    column("TOOL", 12, 0, ColumnKind::Rest),
    column("CALLER", 14, 3, ColumnKind::Text),
    column("STATE", 8, 1, ColumnKind::Text),
    column("AGE", 10, 2, ColumnKind::Figure),
    column("DEADLINE", 10, 4, ColumnKind::Figure),
    column("COMPONENT", 16, 6, ColumnKind::Text),
    column("FUEL", 18, 7, ColumnKind::Figure),
    column("MEMORY", 22, 8, ColumnKind::Figure),
];

const DENIALS: [Column; 7] = [
    column("TIMES", 7, 0, ColumnKind::Figure),
    column("KIND", 10, 2, ColumnKind::Text),
    column("ASKED FOR", 28, 0, ColumnKind::Rest),
    column("COMPONENT", 16, 1, ColumnKind::Text),
    column("CALLER", 14, 5, ColumnKind::Text),
    column("LAST", 11, 4, ColumnKind::Figure),
    column("RULE", 7, 3, ColumnKind::Text),
];

const APPROVALS: [Column; 6] = [
    column("CALL", 7, 1, ColumnKind::Figure),
    column("TOOL", 16, 0, ColumnKind::Text),
    column("CALLER", 12, 2, ColumnKind::Text),
    column("WAITS", 10, 5, ColumnKind::Figure),
    column("LEFT", 10, 3, ColumnKind::Figure),
    column("ARGUMENTS", 12, 0, ColumnKind::Rest),
];

const PROCESS: Column = column("PROCESS", 8, 2, ColumnKind::Figure);

/// All columns of a view; with the process if there are several.
pub fn columns(view: View, has_several: bool) -> Vec<Column> {
    let mut columns = match view {
        View::Now => NOW.to_vec(),
        View::Denials => DENIALS.to_vec(),
        View::Approvals => APPROVALS.to_vec(),
    };
    columns.extend(has_several.then_some(PROCESS));
    columns
}

/// Positions and widths of the columns that fit this width.
pub fn fitting(columns: &[Column], width: usize) -> Vec<(usize, usize)> {
    let mut places: Vec<usize> = (0..columns.len()).collect();
    let needed = |places: &[usize]| {
        let widths = places.iter().filter_map(|place| columns.get(*place)).map(|column| column.width + 1);
        widths.sum::<usize>().saturating_sub(1)
    };
    while needed(&places) > width && places.len() > 1 {
        let rank = |place: &usize| columns.get(*place).map(|column| column.rank);
        let Some(worst) = places.iter().max_by_key(|place| rank(place)).copied() else { break };
        places.retain(|place| *place != worst);
    }
    let spare = width.saturating_sub(needed(&places));
    let sized = places.into_iter().filter_map(|place| {
        let column = columns.get(place)?;
        let more = if column.kind == ColumnKind::Rest { spare } else { 0 };
        Some((place, column.width + more))
    });
    sized.collect()
}

/// Levels that a call is moved in by: more than there are.
const LEVELS_MAX: usize = 8;

/// The name of a tool, moved in where another tool calls it.
fn beneath(depth: u32, tool: &str) -> String {
    match usize::try_from(depth).unwrap_or(LEVELS_MAX).min(LEVELS_MAX) {
        0 => tool.to_owned(),
        levels => format!("{}└ {tool}", "  ".repeat(levels.saturating_sub(1))),
    }
}

/// The cells of a row, one for each of [`columns`].
pub fn cells(row: &TopRow<'_>, has_several: bool) -> Vec<String> {
    let shown = |text: &str| text::line(text, CELL_CHARS);
    let mut cells = match row {
        TopRow::Call(_, call) => vec![
            call.call.to_string(),
            beneath(call.depth, &shown(&call.tool)),
            shown(&call.caller),
            call.state.name().to_owned(),
            text::millis(call.age_ms),
            text::millis(call.deadline_ms),
            shown(&call.component),
            text::of(call.fuel_used, call.fuel_max, text::amount),
            text::of(call.memory_bytes_used, call.memory_bytes_max, text::bytes),
        ],
        TopRow::Denial(_, group) => vec![
            group.count.to_string(),
            shown(&group.capability),
            shown(&group.asked),
            shown(&group.component),
            shown(&callers(&group.callers)),
            text::seconds(group.age_s),
            match &group.rule {
                _ if group.muted => "muted",
                Some(rule) if rule.can_apply => "a adds",
                Some(_) => "by hand",
                None => "none",
            }
            .to_owned(),
        ],
        TopRow::Approval(_, call) => vec![
            call.call.to_string(),
            shown(&call.tool),
            shown(&call.caller),
            text::millis(call.age_ms),
            text::millis(call.left_ms),
            shown(&call.arguments),
        ],
    };
    cells.extend(has_several.then(|| row.process().activity.pid.to_string()));
    cells
}

/// The first caller, and the number of others.
fn callers(callers: &[String]) -> String {
    match callers {
        [] => String::new(),
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} +{}", more.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_leaves_columns_out() {
        for view in View::ALL {
            let columns = columns(view, true);
            let all = fitting(&columns, 200);
            assert_eq!(all.len(), columns.len());
            for width in [0, 1, 10, 20, 40, 80, 120] {
                let fitted = fitting(&columns, width);
                assert!(!fitted.is_empty() && fitted.len() <= all.len());
                let taken: usize = fitted.iter().map(|(_, width)| width + 1).sum::<usize>() - 1;
                assert!(taken <= width || fitted.len() == 1, "{view:?} {width}: {fitted:?}");
            }
            assert!(fitting(&columns, 40).iter().any(|(place, _)| columns[*place].kind == ColumnKind::Rest));
        }
    }
}
