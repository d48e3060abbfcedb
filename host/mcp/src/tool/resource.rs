//! Definitions of resources by components: cleaned, and bounded.

use toolcell_schema::{DefinitionProblem, sanitize};

use super::definition::{DESCRIPTION_BYTES_MAX, TITLE_BYTES_MAX, check_icons, check_meta};
use super::prompt::{PROMPT_VALUES_MAX, VALUE_BYTES_MAX};
use crate::declared::DeclaredResource;

/// Longest media type, in bytes.
const MIME_TYPE_BYTES_MAX: usize = 127;

const NAME_BYTES_MAX: usize = 255;

impl DeclaredResource {
    /// Cleans the texts, and refuses anything beyond its bounds.
    ///
    /// # Errors
    ///
    /// Every problem.
    pub fn checked(mut self) -> Result<Self, Vec<DefinitionProblem>> {
        let mut problems = Vec::new();
        self.name = sanitize::line(&self.name).into_owned();
        self.title = self.title.map(|title| sanitize::line(&title).into_owned());
        self.description = self.description.map(|text| sanitize::text(&text).into_owned());
        if self.name.is_empty() {
            problems.push(DefinitionProblem::new("name", "is empty"));
        }
        for (field, text, bytes_max) in [
            ("name", Some(self.name.as_str()), NAME_BYTES_MAX),
            ("title", self.title.as_deref(), TITLE_BYTES_MAX),
            ("description", self.description.as_deref(), DESCRIPTION_BYTES_MAX),
            ("mime-type", self.mime_type.as_deref(), MIME_TYPE_BYTES_MAX),
        ] {
            if text.is_some_and(|text| text.len() > bytes_max) {
                problems.push(DefinitionProblem::new(field, format!("longer than {bytes_max} bytes")));
            }
        }
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if !self.mime_type.as_deref().is_none_or(|text| text.contains('/') && is_plain(text)) {
            problems.push(DefinitionProblem::new("mime-type", "is not a MIME type"));
        }
        let last_modified = self.more.annotations.as_ref().and_then(|annotations| annotations.last_modified.as_deref());
        if !last_modified.is_none_or(|text| text.len() <= MIME_TYPE_BYTES_MAX && is_plain(text)) {
            problems.push(DefinitionProblem::new("annotations/last-modified", "is not an ISO 8601 time"));
        }
        check_icons(&self.more.icons, &mut problems);
        check_meta(&self.more.meta, &mut problems);
        for (name, values) in &mut self.variables {
            let field = format!("variables/{name}");
            if values.len() > PROMPT_VALUES_MAX {
                problems.push(DefinitionProblem::new(&field, format!("more than {PROMPT_VALUES_MAX} values")));
            }
            if values.iter().any(|value| value.len() > VALUE_BYTES_MAX) {
                problems.push(DefinitionProblem::new(&field, format!("a value longer than {VALUE_BYTES_MAX} bytes")));
            }
            values.iter_mut().for_each(|value| *value = sanitize::line(value).into_owned());
        }
        if problems.is_empty() { Ok(self) } else { Err(problems) }
    }
}
