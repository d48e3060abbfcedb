//! A project of `toolcell new`, with its name filled in.

use clap::ValueEnum as _;

use crate::args::{Engine, Example, Language, NewArgs, Shape};

use super::starts::{
    BASES, Base, CASES_NPM, CONTRACT_WIT, FILES_WIT, File, HTTP_WIT, STARTS, STATE_WIT, Start, runs_in, text,
};

/// A project.
#[derive(Clone, Copy)]
pub struct Template {
    pub base: &'static Base,
    start: &'static Start,
}

/// What a template is chosen by.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub example: Example,
    pub language: Language,
    /// The usual one where it is not named.
    pub shape: Option<Shape>,
    /// The usual one where it is not named.
    pub engine: Option<Engine>,
}

impl From<&NewArgs> for Wanted {
    fn from(args: &NewArgs) -> Self {
        Self { example: args.example, language: args.lang, shape: args.shape, engine: args.engine }
    }
}

/// The template that is wanted.
pub fn find(wanted: Wanted) -> Option<Template> {
    let Wanted { example, language, shape, engine } = wanted;
    let is_wanted = |start: &&Start| start.example == example && start.language == language;
    let start = STARTS.iter().filter(is_wanted).find(|start| shape.is_none_or(|shape| start.shape == shape))?;
    let has_engine = |base: &&Base| match (engine, base.engine) {
        (None, None) => true,
        (None, Some(engine)) => runs_in(example, engine),
        (Some(wanted), own) => own == Some(wanted) && runs_in(example, wanted),
    };
    let of_start = |base: &&Base| base.language == language && base.shape == start.shape;
    let base = BASES.iter().filter(of_start).find(has_engine)?;
    Some(Template { base, start })
}

/// The languages that have this example.
pub fn languages(example: Example) -> Vec<Language> {
    let has = |language: &Language| find(Wanted { example, language: *language, shape: None, engine: None }).is_some();
    Language::value_variants().iter().copied().filter(has).collect()
}

/// The shapes that this example has in this language.
pub fn shapes(example: Example, language: Language) -> Vec<Shape> {
    let own = STARTS.iter().filter(|start| start.example == example && start.language == language);
    own.map(|start| start.shape).collect()
}

/// The examples that an engine of JavaScript has.
pub fn examples_in(engine: Engine) -> Vec<Example> {
    Example::value_variants().iter().copied().filter(|example| runs_in(*example, engine)).collect()
}

/// Call of a tool of the example, as a command line; or the command that lets a client call it.
pub fn call(example: Example) -> &'static str {
    match example {
        Example::Words => r#"toolcell call count_words '{"text":"one two\nthree"}'"#,
        Example::Fetch => r#"toolcell call get_todo '{"id":1}'"#,
        Example::Files => r#"toolcell call write_note '{"name":"tea","text":"green"}'"#,
        Example::Image => r#"toolcell call draw_bars '{"values":[10,60,30]}' --save ."#,
        Example::Secret => "TOKEN=… toolcell call who_am_i",
        Example::State => r#"toolcell call count '{"name":"coffee"}'"#,
        // It asks a person, and nobody is there on a command line.
        Example::Ask => "toolcell serve",
    }
}

/// What that command does, as a comment.
fn what_call_does(example: Example) -> &'static str {
    match example {
        Example::Ask => "serves it to a client: the tool asks a person, so the client has to be one that can",
        _ => "runs the tool once",
    }
}

fn tools(example: Example) -> &'static str {
    match example {
        Example::Words => "`count_words`",
        Example::Fetch => "`get_todo`",
        Example::Files => "`read_note` and `write_note`",
        Example::Image => "`draw_bars`",
        Example::Secret => "`who_am_i`",
        Example::State => "`count`",
        Example::Ask => "`book_table`",
    }
}

/// An example's part of the manifest: of functions over WIT values, and of a program.
fn manifest(example: Example, shape: Shape) -> &'static str {
    match (shape, example) {
        (Shape::Typed, Example::Words) => text!("examples/words.toml"),
        (Shape::Typed, Example::Fetch) => text!("examples/fetch.toml"),
        (Shape::Typed, Example::Files) => text!("examples/files.toml"),
        (Shape::Typed, Example::Secret) => text!("examples/secret.toml"),
        (Shape::Typed, Example::State) => text!("examples/state.toml"),
        (Shape::Program, Example::Words) => text!("examples/program_words.toml"),
        (Shape::Program, Example::Files) => text!("examples/program_files.toml"),
        (Shape::Program, Example::Image) => text!("examples/program_image.toml"),
        // Contract tools describe themselves, and these need no grants.
        _ => "",
    }
}

impl Template {
    /// Path and text of every file of a project with this name.
    pub fn written(&self, name: &str) -> Vec<(&'static str, String)> {
        let files = self.base.files.iter().chain(self.start.files).chain(self.schemas()).chain(self.wit());
        let files = files.chain(self.of_engine());
        let own = files.map(|&(path, text)| (path, text.to_owned()));
        let slow = if self.carries_an_engine() { text!("examples/slow.toml") } else { "" };
        let manifest = [text!("examples/base.toml"), slow, manifest(self.start.example, self.start.shape)].concat();
        let shared = [
            (".gitignore", [text!("examples/gitignore"), self.generated()].concat()),
            ("README.md", text!("examples/readme.md").to_owned()),
            ("toolcell.toml", manifest),
        ];
        own.chain(shared).map(|(path, text)| (path, self.filled_in(&text, name))).collect()
    }

    fn carries_an_engine(&self) -> bool {
        matches!(self.base.language, Language::Python | Language::Js | Language::Typescript)
    }

    /// Folders that its build writes, in addition to the common ones.
    fn generated(&self) -> &'static str {
        if self.base.language == Language::Typescript { "/types/\n" } else { "" }
    }

    fn schemas(&self) -> &'static [File] {
        match (self.start.shape, self.start.example) {
            (Shape::Contract, Example::Words) => &[
                ("schemas/input.json", text!("examples/words.json")),
                ("schemas/output.json", text!("examples/words_output.json")),
            ],
            (Shape::Contract, Example::Image) => &[("schemas/input.json", text!("examples/image.json"))],
            (Shape::Contract, Example::Ask) => &[("schemas/input.json", text!("examples/ask.json"))],
            _ => &[],
        }
    }

    fn wit(&self) -> impl Iterator<Item = &'static File> {
        let tool: &[File] = match (self.start.shape, self.start.example) {
            (Shape::Typed, Example::Words) => &[("wit/tool.wit", text!("examples/words.wit"))],
            (Shape::Typed, Example::Fetch) => &[("wit/tool.wit", text!("examples/fetch.wit"))],
            (Shape::Typed, Example::Files) => &[("wit/tool.wit", text!("examples/files.wit"))],
            (Shape::Typed, Example::Secret) => &[("wit/tool.wit", text!("examples/secret.wit"))],
            (Shape::Typed, Example::State) => &[("wit/tool.wit", text!("examples/state.wit"))],
            (Shape::Contract, _) => CONTRACT_WIT,
            _ => &[],
        };
        let imported: &[File] = match (self.start.shape, self.start.example, self.is_javascript()) {
            // `fetch` is part of JavaScript's engine, files are part of the others' libraries.
            (Shape::Typed, Example::Fetch | Example::Secret, false) => HTTP_WIT,
            (Shape::Typed, Example::Files, true) => FILES_WIT,
            (Shape::Typed, Example::State, _) => STATE_WIT,
            _ => &[],
        };
        tool.iter().chain(imported)
    }

    /// What QuickJS lacks of the web, and the WIT by which that writes to the log.
    fn of_engine(&self) -> &'static [File] {
        match (self.base.engine, self.start.shape) {
            (Some(Engine::Quickjs), Shape::Contract) => &[("src/web.js", text!("qjs/web_contract.js"))],
            (Some(Engine::Quickjs), _) => {
                &[("src/web.js", text!("qjs/web.js")), ("wit/deps/logging.wit", text!("qjs/logging.wit"))]
            }
            _ => &[],
        }
    }

    fn is_javascript(&self) -> bool {
        matches!(self.base.language, Language::Js | Language::Typescript)
    }

    fn filled_in(&self, text: &str, name: &str) -> String {
        let package = package_name(name);
        let Base { language, shape, needs, build, test, finish, main, .. } = *self.base;
        let dev = self.base.build_at_each_save();
        let example = self.start.example;
        let (about_files, about_shape) = about(shape);
        let about_dev = if language == Language::Python { ABOUT_LIVE } else { "" };
        let files_told = format!("{about_files}| `{main}` | the exports, and what they do |{about_dev}");
        let (http, files) = if self.is_javascript() { ("", IMPORT_FILES) } else { (IMPORT_HTTP, "") };
        let (crates, wasm_crates) = crates(example, shape);
        let world = if shape == Shape::Contract { "tool-component" } else { "tool" };
        let project_world =
            if shape == Shape::Contract { "toolcell:mcp/tool-component@1.3.0" } else { "local:tool/tool" };
        // The name is filled in last, since other values contain its slot.
        [
            ("{{language}}", language.name()),
            ("{{needs}}", needs),
            ("{{build}}", build),
            ("{{test}}", test),
            ("{{finish}}", finish),
            ("{{cases}}", CASES_NPM),
            ("{{call}}", call(example)),
            ("{{what_call_does}}", what_call_does(example)),
            ("{{dev}}", &dev),
            ("{{tools}}", tools(example)),
            ("{{files}}", if text.contains("export notes") { files } else { &files_told }),
            ("{{http}}", http),
            ("{{logging}}", if self.base.engine == Some(Engine::Quickjs) { IMPORT_LOGGING } else { "" }),
            ("{{shape}}", about_shape),
            ("{{world}}", world),
            ("{{project_world}}", project_world),
            ("{{crates}}", crates),
            ("{{wasm_crates}}", wasm_crates),
            ("{{js}}", if language == Language::Js { "js" } else { "ts" }),
            ("{{left_out}}", left_out(example)),
            ("{{unit}}", unit(example)),
            ("{{crate}}", package.as_str()),
            ("{{name}}", name),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (slot, value)| text.replace(slot, value))
    }
}

const ABOUT_LIVE: &str = "\n| `dev/` | what `toolcell dev` serves: it imports your modules anew at each save |";
const IMPORT_HTTP: &str = "    import wasi:http/outgoing-handler@0.2.12;\n";
const IMPORT_LOGGING: &str = "    import wasi:logging/logging@0.1.0-draft;\n";
const IMPORT_FILES: &str = "    import wasi:filesystem/preopens@0.2.12;\n    import wasi:filesystem/types@0.2.12;\n";

/// Lines of the README's table, and a sentence, about a shape.
const fn about(shape: Shape) -> (&'static str, &'static str) {
    match shape {
        Shape::Typed => (
            "| `wit/tool.wit` | the tools: names, arguments, results and descriptions |\n",
            "The functions of `wit/tool.wit` are the tools: their types become schemas, their comments descriptions.",
        ),
        Shape::Contract => (
            "| `wit/` | the contract between a tool and its host |\n| `schemas/` | the tool's arguments and result |\n",
            "The tools are what `list-tools` returns; progress, logs, questions and all kinds of content are in `wit/`.",
        ),
        Shape::Program => (
            "",
            "`toolcell.toml` says which tools the program is: what a model is told, and what a call's arguments become. No shell runs.",
        ),
    }
}

/// Crates of a Rust project: those also for tests, and those only for the component.
const fn crates(example: Example, shape: Shape) -> (&'static str, &'static str) {
    const SERDE: &str = "serde = { version = \"1\", features = [\"derive\"] }\n";
    const JSON: &str = "[dependencies]\nserde_json = \"1\"\n\n";
    match (example, shape) {
        (Example::Fetch | Example::Secret, _) => (JSON, ""),
        (Example::Ask, _) => (JSON, SERDE),
        (_, Shape::Contract) => ("", "serde = { version = \"1\", features = [\"derive\"] }\nserde_json = \"1\"\n"),
        _ => ("", ""),
    }
}

/// Parts of JavaScript's engine that an example does not need.
const fn left_out(example: Example) -> &'static str {
    match example {
        Example::Fetch | Example::Secret => r#""random", "fetch-event""#,
        _ => r#""random", "clocks", "http", "fetch-event""#,
    }
}

/// The source of a C project besides main.c.
const fn unit(example: Example) -> &'static str {
    match example {
        Example::Files => "files",
        Example::Image => "image",
        _ => "counts",
    }
}

/// The project's name for its language's tools, which do not allow a digit at the beginning.
fn package_name(name: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("tool-{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::new::label;

    fn all() -> Vec<Template> {
        let in_engine = |engine: Option<Engine>| {
            STARTS.iter().filter_map(move |start| {
                find(Wanted { example: start.example, language: start.language, shape: Some(start.shape), engine })
            })
        };
        let usual: Vec<Template> = in_engine(None).collect();
        assert_eq!(usual.len(), STARTS.len(), "each start has its base");
        let on_quickjs = usual.iter().filter(|template| template.base.engine == Some(Engine::Quickjs));
        assert_eq!(on_quickjs.count(), 7, "words in three ways, pictures and questions in two");
        let on_the_other: Vec<Template> = in_engine(Some(Engine::Starlingmonkey)).collect();
        assert_eq!(on_the_other.len(), 15, "every one of JavaScript and TypeScript");
        [usual, on_the_other].concat()
    }

    #[test]
    fn no_slot_is_left_and_no_file_is_there_twice() {
        for template in all() {
            let about = (template.start.language, template.start.shape, template.start.example);
            let written = template.written("0-my_tool");
            let mut paths: Vec<_> = written.iter().map(|(path, _)| *path).collect();
            for (path, text) in &written {
                assert!(!text.contains("{{"), "{about:?} {path}: {text}");
                assert!(text.ends_with('\n') || path.starts_with("wit/deps/"), "{about:?} {path}");
            }
            paths.sort_unstable();
            paths.dedup();
            assert_eq!(paths.len(), written.len(), "{about:?}");
        }
    }

    #[test]
    fn every_example_has_a_test_of_its_own() {
        for template in all() {
            let written = template.written("tool");
            let tests = |(path, text): &(&str, String)| path.contains("test") || text.contains("#[cfg(test)]");
            assert!(written.iter().any(tests), "{:?} {:?}", template.start.language, template.start.example);
        }
    }

    #[test]
    fn a_module_of_go_has_a_path_that_go_does_not_keep_for_itself() {
        let mut modules = 0;
        for template in all() {
            for (_, text) in template.written("tool").iter().filter(|(path, _)| *path == "go.mod") {
                // "all", "cmd", "std", "tool" and "work" alone are no modules.
                assert_eq!(text.lines().next(), Some("module example.com/tool"));
                modules += 1;
            }
        }
        assert!(modules > 0);
    }

    #[test]
    fn the_page_says_which_examples_there_are() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-examples/docs/new.md"));
        for &example in Example::value_variants() {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", label(example))));
            let cells: Vec<&str> = row.unwrap_or_default().split('|').map(str::trim).collect();
            let said = cells.get(3).copied().unwrap_or_default();
            let there: Vec<&str> = languages(example).into_iter().map(Language::name).collect();
            let expected =
                if there.len() == Language::value_variants().len() { "all".to_owned() } else { there.join(", ") };
            assert_eq!(said, expected, "{}", label(example));
        }
    }
    #[test]
    fn each_languages_page_has_the_build_at_each_save() {
        let pages = [
            (Language::Rust, include_str!("../../../../../guest-examples/docs/rust.md")),
            (Language::Python, include_str!("../../../../../guest-examples/docs/python.md")),
            (Language::Typescript, include_str!("../../../../../guest-examples/docs/javascript.md")),
            (Language::Js, include_str!("../../../../../guest-examples/docs/javascript.md")),
            (Language::Go, include_str!("../../../../../guest-examples/docs/go.md")),
            (Language::C, include_str!("../../../../../guest-examples/docs/c.md")),
        ];
        assert!(pages.iter().map(|(language, _)| language).eq(Language::value_variants()));
        for base in &BASES {
            let dev = base.build_at_each_save();
            let has = |(language, page): &&(Language, &str)| *language == base.language && page.contains(&dev);
            assert!(pages.iter().any(|page| has(&page)), "{}: {dev}", label(base.language));
        }
    }
}
