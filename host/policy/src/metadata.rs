//! Metadata: titles, descriptions, hints and limits that a component's author suggests, as the
//! component carries them. They grant nothing, and have no effect until a manifest repeats them.
//!
//! The text is TOML, with keys that an entry of a manifest has:
//!
//! ```
//! use toolcell_policy::Metadata;
//! let text = r#"
//! limits = { deadline = "5s" }
//! load = { compile_time = "5m" }
//! [tools.forecast]
//! title = "Forecast"
//! read_only = true
//! "#;
//! let metadata = Metadata::parse(text).map_err(|problems| problems.len());
//! let lines = metadata.map(|metadata| metadata.suggestions().iter().map(ToString::to_string).collect());
//! let expected = [
//!     "limits.deadline = \"5s\"",
//!     "load.compile_time = \"5m\"",
//!     "tools.forecast.title = \"Forecast\"",
//!     "tools.forecast.read_only = true",
//! ];
//! assert_eq!(lines, Ok(expected.map(str::to_owned).to_vec()));
//! ```

use std::fmt;

use toml_edit::Value;

use crate::diagnostic::Diagnostic;
use crate::edit::ComponentEntry;
use crate::limits::{Limit, Limits, LoadLimit, LoadLimits, Spec, Unit};
use crate::quantity::{Per, Rate};

/// The longest text of metadata, in bytes: four of the longest descriptions.
pub const METADATA_BYTES_MAX: usize = 64 << 10;

/// All that an author suggests. [`Metadata::parse`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    pub(crate) suggestions: Vec<Suggestion>,
}

/// One line for the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The tool that it is about, by its own name; `None` for the whole component.
    pub(crate) tool: Option<String>,
    pub(crate) what: Suggested,
}

/// The key and the value of a suggestion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suggested {
    /// A limit of calls, in its unit.
    Limit(Limit, u64),
    /// A limit of loading, in its unit.
    Load(LoadLimit, u64),
    /// A tool's name for people.
    Title(String),
    /// A tool's description for models.
    Description(String),
    /// A tool's behaviour, by the key that a manifest has for it.
    Hint(&'static str, bool),
}

impl Metadata {
    /// Reads metadata: at most [`METADATA_BYTES_MAX`] bytes and 1,000 tools.
    ///
    /// # Errors
    /// Every problem at once, in the order of the text.
    pub fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
        crate::read::metadata::parse(text)
    }

    /// The suggestions: limits of the component first, then its tools in the order of the text.
    #[must_use]
    pub fn suggestions(&self) -> &[Suggestion] {
        &self.suggestions
    }

    /// The text in its normal form, which [`Metadata::parse`] reads again.
    #[must_use]
    pub fn text(&self) -> String {
        let mut entry = ComponentEntry::default();
        self.suggestions.iter().for_each(|suggestion| entry.suggest(suggestion));
        entry.tables()
    }

    /// The metadata with its texts changed by `clean`. A text that becomes blank is left out.
    #[must_use]
    pub fn cleaned(self, clean: impl Fn(&str) -> String) -> Self {
        let suggestions = self.suggestions.into_iter().filter_map(|suggestion| {
            let cleaned = |text: String| Some(clean(&text)).filter(|text| !text.trim().is_empty());
            let what = match suggestion.what {
                Suggested::Title(text) => Suggested::Title(cleaned(text)?),
                Suggested::Description(text) => Suggested::Description(cleaned(text)?),
                other => other,
            };
            Some(Suggestion { what, ..suggestion })
        });
        Self { suggestions: suggestions.collect() }
    }
}

impl Suggestion {
    /// The tool that it is about, by its own name; `None` for the whole component.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.tool.as_deref()
    }

    /// Its key and its value.
    #[must_use]
    pub const fn what(&self) -> &Suggested {
        &self.what
    }

    /// The default that it exceeds, as in a manifest. `None` if it does not, or is not a limit.
    #[must_use]
    pub fn default_exceeded(&self, limits: &Limits, load: &LoadLimits) -> Option<String> {
        let (spec, value, default) = match self.what {
            Suggested::Limit(limit, value) => (limit.spec(), value, limits.get(limit)),
            Suggested::Load(limit, value) => (limit.spec(), value, load.get(limit)),
            Suggested::Title(_) | Suggested::Description(_) | Suggested::Hint(..) => return None,
        };
        exceeds(spec, value, default).then(|| spec.show(default))
    }

    /// The keys that lead to its value in the component's entry.
    pub(crate) fn path(&self) -> Vec<&str> {
        let of_tool = self.tool.as_deref().map(|tool| ["tools", tool]).into_iter().flatten();
        let own: &[&str] = match &self.what {
            Suggested::Limit(limit, _) => &["limits", limit.spec().key],
            Suggested::Load(limit, _) => &["load", limit.spec().key],
            Suggested::Title(_) => &["title"],
            Suggested::Description(_) => &["description"],
            Suggested::Hint(key, _) => &[*key],
        };
        of_tool.chain(own.iter().copied()).collect()
    }

    /// Its value in a manifest.
    pub(crate) fn value(&self) -> Value {
        match &self.what {
            Suggested::Limit(limit, value) => limit_value(limit.spec(), *value),
            Suggested::Load(limit, value) => limit_value(limit.spec(), *value),
            Suggested::Title(text) | Suggested::Description(text) => Value::from(text.as_str()),
            Suggested::Hint(_, value) => Value::from(*value),
        }
    }
}

impl fmt::Display for Suggestion {
    /// As a line of the component's entry; the value may have several lines.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} = {}", self.path().join("."), self.value())
    }
}

fn limit_value(spec: &Spec, value: u64) -> Value {
    match (spec.unit, i64::try_from(value)) {
        (Unit::Count, Ok(count)) => Value::from(count),
        _ => Value::from(spec.show(value)),
    }
}

/// True if a value allows more than the default. For a rate, a burst counts too.
fn exceeds(spec: &Spec, value: u64, default: u64) -> bool {
    if spec.unit != Unit::Rate {
        return value > default;
    }
    let value = Rate::of_number(value);
    let default = Rate::of_number(default);
    value.count > default.count || per_day(value) > per_day(default)
}

const fn per_day(rate: Rate) -> u64 {
    let times = match rate.per {
        Per::Day => 1,
        Per::Hour => 24,
        Per::Minute => 1_440,
        Per::Second => 86_400,
    };
    rate.count.saturating_mul(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::ManifestEdit;
    use crate::{Source, parse};

    const AUTHORS: &str = r#"version = 1
[components.weather]
source = "weather.wasm"
prefix = "wx_"
approval = "never"
network = { http = ["GET https://api.example.com/*"] }
limits = { deadline = "5s", fuel = 1_000_000, rate = "20/s" }
load = { compile_time = "5m", compile_memory = "1GiB", tools = 5 }
[components.weather.tools.find]
title = "Find \"it\""
description = "Finds a place.\nIn two lines."
read_only = true
destructive = false
idempotent = true
open_world = true
network = {}
limits = { memory = "8MiB" }
[components.weather.tools.plain]
network = {}
"#;

    const CARRIED: &str = "\
[limits]
fuel = 1000000
deadline = \"5s\"
rate = \"20/s\"

[load]
compile_time = \"5m\"
compile_memory = \"1GiB\"

[tools.find]
title = 'Find \"it\"'
description = \"\"\"
Finds a place.
In two lines.\"\"\"
read_only = true
destructive = false
idempotent = true
open_world = true

[tools.find.limits]
memory = \"8MiB\"
";

    fn metadata(text: &str) -> Metadata {
        Metadata::parse(text).unwrap_or_else(|problems| panic!("{problems:#?}"))
    }

    fn codes(text: &str) -> Vec<&'static str> {
        Metadata::parse(text).unwrap_err().iter().map(Diagnostic::code).collect()
    }

    #[test]
    fn an_authors_entry_gives_metadata_without_grants_and_its_text_is_read_again() {
        let entry = ManifestEdit::of(AUTHORS).unwrap().component("weather").unwrap();
        let read = metadata(&entry.metadata());
        assert_eq!(read.text(), CARRIED);
        assert_eq!(metadata(CARRIED), read);
        let inline = "version = 1\ncomponents = { a = { source = \"a\", tools.b.title = \"B\", keyvalue = {} } }\n";
        let entry = ManifestEdit::of(inline).unwrap().component("a").unwrap();
        assert_eq!(metadata(&entry.metadata()).text(), "[tools.b]\ntitle = \"B\"\n");
        assert_eq!(metadata("").text(), "");
    }

    #[test]
    fn suggestions_become_lines_of_a_manifest_that_says_the_same() {
        let mut entry = ComponentEntry::new("w.wasm");
        metadata(CARRIED).suggestions().iter().for_each(|suggestion| entry.suggest(suggestion));
        let mut edit = ManifestEdit::of("version = 1\n").unwrap();
        edit.insert_component("w", &entry).unwrap();
        let text = edit.text();
        let manifest = parse(&Source { name: "", text: &text }).unwrap_or_else(|all| panic!("{text}{all:#?}")).manifest;
        let component = manifest.component("w").unwrap();
        let tool = component.tool("find").unwrap();
        assert_eq!((tool.title(), tool.hints().read_only), (Some("Find \"it\""), Some(true)));
        assert_eq!(tool.description(), Some("Finds a place.\nIn two lines."));
        assert_eq!((tool.limits().memory_bytes(), component.load().compile_time().as_secs()), (8 << 20, 300));
        assert!(component.grants().is_sealed());
    }

    #[test]
    fn limits_beyond_the_defaults_are_told_from_others() {
        let read = metadata(
            "limits = { fuel = 1, deadline = \"31s\", rate = \"20/s\", progress = \"20/s\", memory = \"64MiB\" }\n\
             load = { compile_time = \"3m\", compile_memory = \"4GiB\" }\ntools = { a = { title = \"A\", limits = \
             { rate = \"600/min\", progress = \"21/min\", handles = 1_001 } } }\n",
        );
        let beyond = read.suggestions().iter().filter_map(|suggestion| {
            let default = suggestion.default_exceeded(&Limits::default(), &LoadLimits::default())?;
            Some(format!("{suggestion} ({default})"))
        });
        let expected = [
            "limits.deadline = \"31s\" (30s)",
            // 20 in a second are 1,200 in a minute.
            "limits.rate = \"20/s\" (600/min)",
            "load.compile_time = \"3m\" (2m)",
            "tools.a.limits.handles = 1001 (1_000)",
            // 21 may come at once.
            "tools.a.limits.progress = \"21/min\" (20/s)",
        ];
        assert_eq!(beyond.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn texts_are_cleaned_and_blank_ones_are_left_out() {
        let read = metadata("[tools.a]\ntitle = \"\\u202e\"\ndescription = \"a\\u202eb\"\nread_only = true\n");
        let cleaned = read.cleaned(|text| text.replace('\u{202e}', ""));
        assert_eq!(cleaned.text(), "[tools.a]\ndescription = \"ab\"\nread_only = true\n");
        assert_eq!(metadata("[tools.a]\ndescription = \" \"\n").text(), "", "an empty description says nothing");
    }

    #[test]
    fn hostile_metadata_is_refused_at_bounded_cost() {
        for (text, code) in [
            ("source = \"x\"", "manifest::unknown_key"),
            ("network = { http = [\"https://x.example\"] }", "manifest::unknown_key"),
            ("approval = \"never\"", "manifest::unknown_key"),
            ("load = { component_size = \"1MiB\" }", "manifest::unknown_key"),
            ("[tools.a]\nkeyvalue = true", "manifest::unknown_key"),
            ("[tools.\"a b\"]\ntitle = \"x\"", "tools::name"),
            ("[tools.a]\ntitle = \"a\\u001b[2J\"", "tools::text"),
            ("[tools.a]\nread_only = true\ndestructive = true", "tools::hints"),
            ("limits = { deadline = \"2h\" }", "limits::range"),
            ("limits = 5", "manifest::type"),
            ("tools = [", "manifest::syntax"),
        ] {
            assert_eq!(codes(text), [code], "{text}");
        }
        assert_eq!(codes(&" ".repeat(METADATA_BYTES_MAX + 1)), ["metadata::too_large"]);
        let deep = format!("tools = {}", "{ a = ".repeat(8_000));
        assert!(codes(&deep).iter().all(|code| *code == "manifest::syntax"));
        let many: String = (0..1_001).map(|number| format!("[tools.t{number}]\n")).collect();
        assert_eq!(codes(&many), ["tools::too_many"]);
        let twice = "[tools.a]\ntitle = \"A\"\n[tools.a]\ntitle = \"B\"\n";
        assert_eq!(codes(twice)[0], "manifest::syntax");
    }
}
