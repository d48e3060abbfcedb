//! The projects of `toolcell new`: their files, paths and READMEs. The texts are in `templates/`
//! and in `wit/`. Must not hold: writing.

use crate::args::{Language, Shape};

/// A project.
pub struct Template {
    /// Language of its source.
    pub language: Language,
    /// Shape of its component.
    pub shape: Shape,
    /// Programs to install first.
    pub needs: &'static str,
    /// Commands that build it, one a line.
    pub build: &'static str,
    /// The command that tests it.
    pub test: &'static str,
    /// World of `wit/` that its component has.
    world: &'static str,
    /// Lines of a table in the README: the files to read first.
    files_told: &'static str,
    /// Parts of its manifest, after the common one.
    manifest: &'static [&'static str],
    /// Path and text of every other file.
    files: &'static [(&'static str, &'static str)],
}

/// The text of a file in `templates/`.
macro_rules! text {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/", $path))
    };
}

/// A file of the contract's WIT.
macro_rules! wit {
    ($path:literal) => {
        (concat!("wit/", $path), include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/", $path)))
    };
}

const SLOW: &str = text!("any/slow.toml");
const PROGRAM: &str = text!("any/program.toml");
const TYPED_WIT: (&str, &str) = ("wit/tool.wit", text!("typed/tool.wit"));
const INPUT: (&str, &str) = ("schemas/input.json", text!("any/input.json"));
const RUST_STACK: (&str, &str) = (".cargo/config.toml", text!("any/cargo-config.toml"));
const OUTPUT: (&str, &str) = ("schemas/output.json", text!("any/output.json"));
const RUST_COUNTS: (&str, &str) = ("src/counts.rs", text!("rust_typed/counts.rs"));
const PYTHON_COUNTING: (&str, &str) = ("counting.py", text!("python_typed/counting.py"));
const PYTHON_NEEDS: (&str, &str) = ("requirements.txt", text!("any/requirements.txt"));
const JS_BUILD: (&str, &str) = ("build.mjs", text!("js_typed/build.mjs"));
const JS_COUNTS: (&str, &str) = ("src/counts.js", text!("js_typed/counts.js"));
const JS_TEST: (&str, &str) = ("test/counts.test.js", text!("js_typed/counts.test.js"));

const NEEDS_RUST: &str =
    "It needs Rust 1.85 or newer with the target wasm32-wasip2 (`rustup target add wasm32-wasip2`), and make.";
const NEEDS_JS: &str = "It needs Node 20 or newer with npm.";
const NEEDS_PYTHON: &str = "It needs Python 3.11 or newer with venv and pip, and make.";

/// Every template; the first of a language is the one without a named shape.
pub const ALL: [Template; 9] = [
    Template {
        language: Language::Rust,
        shape: Shape::Typed,
        needs: NEEDS_RUST,
        build: "make",
        test: "make test",
        world: "tool",
        files_told: "| `wit/tool.wit` | the tool's name, arguments, result and description |\n\
            | `src/lib.rs`, `src/counts.rs` | the exports, and what they do |",
        manifest: &[],
        files: &[
            TYPED_WIT,
            RUST_COUNTS,
            ("Cargo.toml", text!("rust_typed/cargo.toml")),
            ("src/lib.rs", text!("rust_typed/lib.rs")),
            ("Makefile", text!("rust_typed/makefile")),
            RUST_STACK,
        ],
    },
    Template {
        language: Language::Rust,
        shape: Shape::Contract,
        needs: NEEDS_RUST,
        build: "make",
        test: "make test",
        world: "tool-component",
        files_told: "| `wit/` | the contract between a tool and its host |\n\
            | `src/lib.rs`, `src/counts.rs` | the exports, and what they do |\n\
            | `schemas/` | the tool's arguments and result |",
        manifest: &[],
        files: &[
            wit!("tools.wit"),
            wit!("types.wit"),
            wit!("host.wit"),
            wit!("asking.wit"),
            INPUT,
            OUTPUT,
            RUST_COUNTS,
            ("Cargo.toml", text!("rust_contract/cargo.toml")),
            ("src/lib.rs", text!("rust_contract/lib.rs")),
            ("Makefile", text!("rust_contract/makefile")),
            RUST_STACK,
        ],
    },
    Template {
        language: Language::Rust,
        shape: Shape::Program,
        needs: NEEDS_RUST,
        build: "make",
        test: "make test",
        world: "",
        files_told: "| `src/main.rs`, `src/counts.rs` | the program, and what it does |",
        manifest: &[PROGRAM],
        files: &[
            RUST_COUNTS,
            ("Cargo.toml", text!("rust_program/cargo.toml")),
            ("src/main.rs", text!("rust_program/main.rs")),
            ("Makefile", text!("rust_program/makefile")),
            RUST_STACK,
        ],
    },
    Template {
        language: Language::Js,
        shape: Shape::Typed,
        needs: NEEDS_JS,
        build: "npm install --ignore-scripts\nnpm run build",
        test: "npm test",
        world: "tool",
        files_told: "| `wit/tool.wit` | the tool's name, arguments, result and description |\n\
            | `src/tool.js`, `src/counts.js` | the exports, and what they do |",
        manifest: &[SLOW],
        files: &[
            TYPED_WIT,
            JS_BUILD,
            JS_COUNTS,
            JS_TEST,
            ("package.json", text!("js_typed/package.json")),
            ("src/tool.js", text!("js_typed/tool.js")),
        ],
    },
    Template {
        language: Language::Js,
        shape: Shape::Contract,
        needs: NEEDS_JS,
        build: "npm install --ignore-scripts\nnpm run build",
        test: "npm test",
        world: "tool-component",
        files_told: "| `wit/` | the contract between a tool and its host |\n\
            | `src/tool.js`, `src/counts.js` | the exports, and what they do |\n\
            | `schemas/` | the tool's arguments and result |",
        manifest: &[SLOW],
        files: &[
            wit!("tools.wit"),
            wit!("types.wit"),
            wit!("host.wit"),
            wit!("asking.wit"),
            INPUT,
            OUTPUT,
            JS_BUILD,
            JS_COUNTS,
            JS_TEST,
            ("package.json", text!("js_contract/package.json")),
            ("src/tool.js", text!("js_contract/tool.js")),
        ],
    },
    Template {
        language: Language::Python,
        shape: Shape::Typed,
        needs: NEEDS_PYTHON,
        build: "make",
        test: "make test",
        world: "tool",
        files_told: "| `wit/tool.wit` | the tool's name, arguments, result and description |\n\
            | `component.py`, `counting.py` | the exports, and what they do |",
        manifest: &[SLOW],
        files: &[
            TYPED_WIT,
            PYTHON_NEEDS,
            PYTHON_COUNTING,
            ("component.py", text!("python_typed/component.py")),
            ("test/test_component.py", text!("python_typed/test_component.py")),
            ("Makefile", text!("python_typed/makefile")),
        ],
    },
    Template {
        language: Language::Python,
        shape: Shape::Contract,
        needs: NEEDS_PYTHON,
        build: "make",
        test: "make test",
        world: "tool-component",
        files_told: "| `wit/` | the contract between a tool and its host |\n\
            | `component.py`, `counting.py` | the exports, and what they do |\n\
            | `schemas/` | the tool's arguments and result |",
        manifest: &[SLOW],
        files: &[
            wit!("tools.wit"),
            wit!("types.wit"),
            wit!("host.wit"),
            wit!("asking.wit"),
            INPUT,
            OUTPUT,
            PYTHON_NEEDS,
            PYTHON_COUNTING,
            ("component.py", text!("python_contract/component.py")),
            ("test/test_component.py", text!("python_contract/test_component.py")),
            ("Makefile", text!("python_contract/makefile")),
        ],
    },
    Template {
        language: Language::C,
        shape: Shape::Program,
        needs: "It needs a C compiler with a WASI C library, and make; `pip install ziglang` brings one.",
        build: "make",
        test: "make test",
        world: "",
        files_told: "| `src/main.c`, `src/counts.c` | the program, and what it does |",
        manifest: &[PROGRAM],
        files: &[
            ("src/main.c", text!("c_program/main.c")),
            ("src/counts.c", text!("c_program/counts.c")),
            ("src/counts.h", text!("c_program/counts.h")),
            ("test/counts_test.c", text!("c_program/counts_test.c")),
            ("Makefile", text!("c_program/makefile")),
        ],
    },
    Template {
        language: Language::Go,
        shape: Shape::Program,
        needs: "It needs Go 1.21 or newer, and make.",
        build: "make",
        test: "make test",
        world: "",
        files_told: "| `main.go`, `counts.go` | the program, and what it does |",
        manifest: &[PROGRAM],
        files: &[
            ("go.mod", text!("go_program/go.mod")),
            ("main.go", text!("go_program/main.go")),
            ("counts.go", text!("go_program/counts.go")),
            ("counts_test.go", text!("go_program/counts_test.go")),
            ("Makefile", text!("go_program/makefile")),
        ],
    },
];

/// The template of this language and shape, if there is one.
pub fn find(language: Language, shape: Shape) -> Option<&'static Template> {
    ALL.iter().find(|template| template.language == language && template.shape == shape)
}

/// The shape of a language if none is named.
pub fn usual_shape(language: Language) -> Shape {
    match language {
        Language::Rust | Language::Js | Language::Python => Shape::Typed,
        Language::C | Language::Go => Shape::Program,
    }
}

impl Template {
    /// Path and text of every file of a project with this name.
    pub fn written(&self, name: &str) -> Vec<(&'static str, String)> {
        let manifest =
            std::iter::once(text!("any/toolcell.toml")).chain(self.manifest.iter().copied()).collect::<String>();
        let own = self.files.iter().map(|&(path, text)| (path, text.to_owned()));
        let shared = [
            (".gitignore", text!("any/gitignore").to_owned()),
            ("README.md", text!("any/readme.md").to_owned()),
            ("toolcell.toml", manifest),
        ];
        own.chain(shared).map(|(path, text)| (path, self.filled_in(&text, name))).collect()
    }

    fn filled_in(&self, text: &str, name: &str) -> String {
        let package = package_name(name);
        let about_shape = match self.shape {
            Shape::Typed => {
                "The functions of `wit/tool.wit` are the tools: their types become schemas, their comments descriptions."
            }
            Shape::Contract => {
                "The tools are what `list-tools` returns; progress, logs, questions and all kinds of content are in `wit/`."
            }
            Shape::Program => {
                "`toolcell.toml` says which tools the program is: what a model is told, and what a call's arguments become. No shell runs."
            }
        };
        // The name is filled in last, since `needs` and the like have no slots.
        [
            ("{{language}}", self.language.name()),
            ("{{needs}}", self.needs),
            ("{{build}}", self.build),
            ("{{test}}", self.test),
            ("{{files}}", self.files_told),
            ("{{shape}}", about_shape),
            ("{{world}}", self.world),
            ("{{crate}}", package.as_str()),
            ("{{name}}", name),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (slot, value)| text.replace(slot, value))
    }
}

/// The project's name for its language's tools, which allow no digit at the beginning.
fn package_name(name: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("tool-{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{ALL, find, usual_shape};

    #[test]
    fn every_language_has_its_usual_shape() {
        for template in &ALL {
            let usual = find(template.language, usual_shape(template.language));
            assert!(usual.is_some(), "{:?}", template.language);
        }
    }

    #[test]
    fn no_slot_is_left_and_no_file_is_there_twice() {
        for template in &ALL {
            let written = template.written("0-my_tool");
            let mut paths: Vec<_> = written.iter().map(|(path, _)| *path).collect();
            for (path, text) in &written {
                assert!(!text.contains("{{"), "{:?} {:?} {path}: {text}", template.language, template.shape);
                assert!(text.ends_with('\n'), "{path}");
            }
            paths.sort_unstable();
            paths.dedup();
            assert_eq!(paths.len(), written.len());
        }
    }
}
