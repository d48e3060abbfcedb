//! Bounds of pages: a page stays this small, whatever the model contains.

/// Bytes of a text in a cell or a line.  A sentence or two, so that rows stay rows.
pub const LINE_BYTES: usize = 400;

/// Bytes of a name in a row: names of tools have at most 128.
pub const NAME_BYTES: usize = 160;

/// Bytes of a tooltip, for a text that the window cuts.
///
/// A path may have 4,096; of one that long, the page shows no more either.
pub const TITLE_BYTES: usize = 1_024;

/// Bytes of a text in a block of its own.
///
/// More than a person reads in a browser; the audit's export has the whole.
pub const BLOCK_BYTES: usize = 16 * 1_024;

/// Bytes of a JSON text that is indented; a longer one is shown unchanged, clipped.
///
/// The most that a definition may have by default.
pub const JSON_BYTES: usize = 256 * 1_024;

/// Depth to which JSON is indented; deeper parts are on one line.
pub const JSON_DEPTH: usize = 16;

/// Rows of a table.
///
/// A person can read as many; beyond that, they search.
pub const ROWS: usize = 200;

/// Groups of denials of one component that are shown next to those of others.
///
/// Some pages of a window; a link leads to all of them.
pub const COMPONENT_CARDS: usize = 20;

/// Bytes of the cards of all calls that wait, on one page.
///
/// Sixteen with the longest arguments that are shown: an open page gets them again each second.
pub const CARDS_BYTES: usize = 1_024 * 1_024;

/// Bytes of a search that the page repeats: two of the longest names of tools.
pub const QUERY_BYTES: usize = 256;

/// Rows of what a tool can reach, in the picture and in its table.
pub const REACH_ROWS: usize = 40;

/// Lines of a rule that would allow a denied request: a rule has one or two.
pub const RULE_LINES: usize = 8;

/// Points of a series: a minute of seconds.
pub const SERIES_POINTS: usize = 60;

/// Points of the last hour: one for each 15 seconds.
pub const HISTORY_POINTS: usize = 240;

/// Parts of one cell, such as the tools of a group.
pub const CELL_ITEMS: usize = 12;

/// Pieces of content that are shown of one result.
pub const CONTENT_ITEMS: usize = 16;

/// Bytes in base64 of a picture that is shown; a larger one is only named.
///
/// As much as the default limit `output` allows, and base64's third.
pub const PICTURE_BYTES: usize = 1_400_000;

/// Bytes in base64 of all pictures of one result.
pub const PICTURES_BYTES: usize = 2 * PICTURE_BYTES;

/// Fields of the form that tries a tool; a schema with more is filled in as JSON.
pub const FORM_FIELDS: usize = 64;

/// Choices of one field.
pub const FORM_CHOICES: usize = 200;

/// Choices of all fields of a form: references may repeat one long list.
pub const FORM_CHOICES_ALL: usize = 2_000;

/// Groups within groups of fields; deeper ones are filled in as JSON.
pub const FORM_DEPTH: usize = 3;

/// Bytes of one field that are shown again after the form was sent.
pub const FIELD_BYTES: usize = 64 * 1_024;

/// Words of each side that a word diff compares; longer texts are shown whole, old and new.
///
/// The comparison needs a table of their product: a million cells of two bytes.
pub const DIFF_WORDS: usize = 1_000;

/// Cells of all tables that word diffs of one page take: those of eight pairs of long texts.
///
/// Beyond that, texts are shown whole, old and new. A cell takes some nanoseconds.
pub const DIFF_CELLS: usize = 8 * DIFF_WORDS * DIFF_WORDS;

/// Bytes of markup of all differences on the page of changes.
///
/// Beyond that, cards name the command that shows the rest. The largest difference of one text
/// fits.
pub const DIFFERENCES_BYTES: usize = 512 * 1_024;

/// Bytes of indented JSON that are shown.  Definitions of most tools fit; one of the default's 256
/// KiB would make the page slow.
pub const JSON_SHOWN_BYTES: usize = 64 * 1_024;

/// Combining marks on one letter that are drawn; further ones are written as escapes.
///
/// Languages stack three; more of them paint over the lines above.
pub const COMBINING_MARKS: usize = 3;

/// Bytes that a form repeats in a hidden field: names and digests. If one is longer, the form is
/// omitted.
pub const HIDDEN_BYTES: usize = 512;
