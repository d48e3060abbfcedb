//! Tables. On narrow windows each row becomes a block, and roles keep it a table for screen
//! readers.

use maud::{Markup, html};

use crate::bounds::ROWS;
use crate::figure::count;

/// A column: its heading, and the class of its cells.
pub struct Column {
    heading: &'static str,
    class: &'static str,
}

/// A column of texts.
pub const fn column(heading: &'static str) -> Column {
    Column { heading, class: "" }
}

/// A column of figures.
pub const fn figures(heading: &'static str) -> Column {
    Column { heading, class: "num" }
}

/// A column of buttons.
pub const fn actions(heading: &'static str) -> Column {
    Column { heading, class: "act" }
}

/// A row: its element's id, which may be empty, and its cells. The first cell is its heading.
pub struct Row {
    pub id: String,
    pub cells: Vec<Markup>,
}

impl Row {
    /// A row without an id.
    pub fn of(cells: Vec<Markup>) -> Self {
        Self { id: String::new(), cells }
    }
}

/// A table. If there are more than [`ROWS`] rows, shows the first ones and the number of all.
/// `empty` is shown if there are no rows.
pub fn table(caption: &str, columns: &[Column], rows: impl Iterator<Item = Row>, empty: &str) -> Markup {
    let rows: Vec<Row> = rows.collect();
    html! {
        @if rows.is_empty() {
            p.empty { (empty) }
        } @else {
            table role="table" {
                caption { (caption) }
                thead role="rowgroup" {
                    tr role="row" {
                        @for column in columns {
                            th scope="col" role="columnheader" class=[class(column)] { (column.heading) }
                        }
                    }
                }
                tbody role="rowgroup" {
                    @for row in rows.iter().take(ROWS) { (tr(columns, row)) }
                }
            }
            (beyond(rows.len()))
        }
    }
}

fn tr(columns: &[Column], row: &Row) -> Markup {
    let none = crate::figure::or_none(None);
    html! {
        tr role="row" id=[Some(&row.id).filter(|id| !id.is_empty())] {
            @for (index, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
                @if index == 0 {
                    th scope="row" role="rowheader" class=[class(column)] data-label=(column.heading) { div { (cell) } }
                } @else {
                    td role="cell" class=[class(column)] data-label=(column.heading) data-none[cell.0 == none.0] { div { (cell) } }
                }
            }
        }
    }
}

fn class(column: &Column) -> Option<&'static str> {
    Some(column.class).filter(|class| !class.is_empty())
}

/// A remark that rows are left out.
pub fn beyond(rows: usize) -> Markup {
    let left = u64::try_from(rows.saturating_sub(ROWS)).unwrap_or(u64::MAX);
    html! { @if left > 0 { p.more { (count(left)) " more are not shown." } } }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::{Row, column, table};
    use crate::figure::or_none;

    #[test]
    fn only_a_cell_with_nothing_but_the_dash_is_marked_as_empty() {
        let cells = vec![html! { "a" }, or_none(None), html! { "b " (or_none(None)) }];
        let shown = table("t", &[column("A"), column("B"), column("C")], [Row::of(cells)].into_iter(), "").0;
        assert!(shown.contains("data-label=\"B\" data-none") && shown.matches("data-none").count() == 1, "{shown}");
    }
}
