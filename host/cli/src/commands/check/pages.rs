//! Warns of lists of tools that some clients only read in part.

use toolcell_mcp::ServedCatalog as _;
use toolcell_policy::Style;
use toolcell_server::Ready;

use crate::terminal::yellow;

/// The number of pages of `tools/list`.
pub fn of(ready: &Ready) -> usize {
    ready.catalog.tools().pages(ready.manifest.server().page_size())
}

/// A warning if the list has more than one page.
pub fn shown(pages: usize, style: Style) -> String {
    if pages <= 1 {
        return String::new();
    }
    format!(
        "\n{}: the list of tools has {pages} pages, and many clients read the first one only\n  hint: a page ends at \
         page_size tools or 1 MiB; leave tools out, shorten descriptions, or set discovery = \"search\" in [server]\n",
        yellow("warning", style)
    )
}
