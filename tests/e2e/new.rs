//! `toolcell new`: the files it writes and the requests it refuses. Every project builds, passes
//! its own tests and answers.
//!
//! The projects are built with their languages' own tools, from the same place as those of the
//! examples. If a tool cannot be had, stderr says so and the project is left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use toolcell_tests::toolchain::{self, AWKWARD, Toolchain};
use toolcell_tests::{Command, Finished, Folder, TestHost};

/// Every pair of language and shape that has the example `words`.
const TEMPLATES: [(&str, &str); 10] = [
    ("rust", "typed"),
    ("rust", "contract"),
    ("rust", "program"),
    ("typescript", "typed"),
    ("js", "typed"),
    ("js", "contract"),
    ("python", "typed"),
    ("python", "contract"),
    ("c", "program"),
    ("go", "program"),
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn empty() -> Folder {
    Folder::with_manifest("")
}

fn new(folder: &Folder, arguments: &[&str]) -> Finished {
    Command::in_folder(folder, &[&["new"], arguments].concat()).run()
}

/// A project of this language and shape, called `0-tool_box`, a name that some languages' tools
/// would refuse, in a folder whose name a shell splits where it is not quoted.
fn project(folder: &Folder, language: &str, shape: &str) -> PathBuf {
    let path = Path::new(AWKWARD).join("0-tool_box");
    let written = new(folder, &["0-tool_box", "--lang", language, "--shape", shape, "--path", path.to_str().unwrap()]);
    assert!(written.succeeded().contains("toolcell call count_words"), "{written:?}");
    folder.path().join(path)
}

/// Every example, with the languages that have it.
const EXAMPLES: [(&str, &[&str]); 7] = [
    ("words", &["rust", "python", "typescript", "js", "go", "c"]),
    ("fetch", &["rust", "python", "typescript", "js"]),
    ("files", &["rust", "python", "typescript", "js", "go", "c"]),
    ("image", &["rust", "python", "typescript", "js", "go", "c"]),
    ("secret", &["rust", "python", "typescript", "js"]),
    ("state", &["rust", "python", "typescript", "js"]),
    ("ask", &["rust", "python", "typescript", "js"]),
];

/// Builds and tests a project of each of these shapes, and checks its tool's answer.
fn project_answers(language: &str, shape: &str) {
    let toolchain = match Toolchain::of(language, &repository()) {
        Ok(toolchain) => toolchain,
        Err(reason) => return toolchain::say(&format!("LEFT OUT: projects in {language}: {reason}")),
    };
    let folder = empty();
    let project = project(&folder, language, shape);
    toolchain.build_and_test(&project, shape);
    let manifest = project.join("toolcell.toml");
    let toolcell =
        |arguments: &[&str]| toolchain::toolcell(&[arguments, &["--manifest", manifest.to_str().unwrap()]].concat());
    let listed: Value = serde_json::from_str(&toolcell(&["list", "--json"])).unwrap();
    let definition = &listed["tools"][0]["definition"];
    assert_eq!(definition["name"], "count_words", "{listed}");
    let description = definition["description"].as_str().unwrap();
    assert!(description.contains("Counts the lines and words of a text"), "{description}");
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1, "{listed}");
    for (arguments, answer) in [
        (json!({"text": "one two\nthree"}), json!({"lines": 2, "words": 3, "longest": "three"})),
        (
            json!({"text": "größe & \"xxxxx\"\n", "min_length": 5}),
            json!({"lines": 1, "words": 2, "longest": "\"xxxxx\""}),
        ),
        (json!({"text": "größe xxxxx --flag", "min_length": 5}), json!({"lines": 1, "words": 3, "longest": "--flag"})),
        (json!({"text": ""}), json!({"lines": 0, "words": 0})),
    ] {
        let result: Value =
            serde_json::from_str(&toolcell(&["call", "count_words", &arguments.to_string(), "--json"])).unwrap();
        assert_eq!(result["structuredContent"], answer, "{language} {shape} {arguments}: {result}");
    }
}

#[test]
fn a_rust_project_of_typed_functions_builds_passes_its_tests_and_answers() {
    project_answers("rust", "typed");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn a_rust_project_of_the_contract_builds_passes_its_tests_and_answers() {
    project_answers("rust", "contract");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn a_rust_program_builds_passes_its_tests_and_answers() {
    project_answers("rust", "program");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn a_javascript_project_of_typed_functions_builds_passes_its_tests_and_answers() {
    project_answers("js", "typed");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn a_javascript_project_of_the_contract_builds_passes_its_tests_and_answers() {
    project_answers("js", "contract");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn a_python_project_of_typed_functions_builds_passes_its_tests_and_answers() {
    project_answers("python", "typed");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn a_python_project_of_the_contract_builds_passes_its_tests_and_answers() {
    project_answers("python", "contract");
}

/// Serves a Python project by `toolcell dev`, and saves edits of it.
fn edits_are_served_without_a_build(shape: &str, edited: &str) {
    let toolchain = match Toolchain::of("python", &repository()) {
        Ok(toolchain) => toolchain,
        Err(reason) => return toolchain::say(&format!("LEFT OUT: projects in Python: {reason}")),
    };
    let folder = empty();
    let arguments = ["tool", "--lang", "python", "--shape", shape, "--path", "guest"];
    assert_eq!(new(&folder, &arguments).code(), 0);
    let began = Instant::now();
    let mut host = TestHost::building_beside_its_manifest(folder, &toolchain.make_line());
    let count = |host: &mut TestHost| host.call("count_words", json!({"text": "one two"})).structured().clone();
    // Building takes half a minute, and compiling what was built as long.
    host.will_say("built in ");
    assert_eq!(count(&mut host), json!({"lines": 1, "words": 2, "longest": "one"}));
    let first = began.elapsed();
    let live = host.folder().path().join("guest/.toolcell/dev/tool.wasm");
    let written = || std::fs::metadata(&live).unwrap().modified().unwrap();
    let built = written();
    let counting = host.folder().read("guest/counting.py");
    let component = host.folder().read("guest/component.py");
    for words in [10, 11, 12, 13, 14] {
        let began = Instant::now();
        let text = counting.replace("len(words)", &format!("{words}"));
        // What no earlier version imported is there as well.
        host.folder().write("guest/counting.py", format!("import colorsys\n{text}"));
        host.serves_generation(words - 8);
        assert_eq!(count(&mut host)["words"], words);
        let took = began.elapsed();
        toolchain::say(&format!("{shape}: saved, served and called in {:.2} s", took.as_secs_f64()));
        assert!(took < first / 4, "{took:?}, and {first:?} for all of it");
    }
    host.folder().write("guest/component.py", component.replace("import counting", "import counting\ndef broken(:"));
    host.will_say("could not list its tools: component.py:");
    host.will_say("SyntaxError: invalid syntax");
    assert_eq!(count(&mut host)["words"], 14, "the old one serves on");
    host.folder().write("guest/component.py", component.replace("import counting", "import counting\nmissing()"));
    host.will_say("NameError: name 'missing' is not defined");
    let described = component.replace("Counts the lines and words of a text", edited);
    host.folder().write("guest/component.py", format!("{described}# mended\n"));
    host.serves_generation(7);
    let description = host.list()[0]["description"].as_str().unwrap().to_owned();
    assert!(description.contains(if shape == "contract" { edited } else { "Counts the lines" }), "{description}");
    assert_eq!(written(), built, "nothing was built");
    assert!(!host.folder().path().join("guest/tool.wasm").exists(), "what `make` builds is another component");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn an_edit_of_a_python_project_of_typed_functions_is_served_without_a_build() {
    edits_are_served_without_a_build("typed", "its words are those of wit/tool.wit");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn an_edit_of_a_python_project_of_the_contract_is_served_without_a_build() {
    edits_are_served_without_a_build("contract", "Says how many words there are");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn a_c_program_builds_passes_its_tests_and_answers() {
    project_answers("c", "program");
}

#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn a_go_program_builds_passes_its_tests_and_answers() {
    project_answers("go", "program");
}

#[test]
fn a_language_s_usual_shape_is_written_where_none_is_named() {
    for (language, shape) in
        [("rust", "typed"), ("js", "typed"), ("python", "typed"), ("c", "program"), ("go", "program")]
    {
        let folder = empty();
        let named = empty();
        assert_eq!(new(&folder, &["tool", "--lang", language]).code(), 0);
        assert_eq!(new(&named, &["tool", "--lang", language, "--shape", shape]).code(), 0);
        let texts = |folder: &Folder| folder.tree("tool").into_iter().map(|(_, held)| held).collect::<Vec<_>>();
        assert_eq!(texts(&folder), texts(&named), "{language}");
    }
}

#[test]
fn every_project_has_a_manifest_with_its_name_a_readme_and_a_list_of_what_is_not_kept() {
    for (language, shape) in TEMPLATES {
        let folder = empty();
        let project = project(&folder, language, shape);
        let read = |file: &str| std::fs::read_to_string(project.join(file)).unwrap();
        assert!(
            read("toolcell.toml").contains("\n[components.0-tool_box]\nsource = \"0-tool_box.wasm\"\n"),
            "{language}"
        );
        assert!(read("README.md").starts_with("# 0-tool_box\n"), "{language}");
        assert!(read(".gitignore").contains("*.wasm"), "{language}");
        // Before the build there is only one problem: the component does not exist.
        let manifest = project.join("toolcell.toml");
        let checked = Command::in_folder(&folder, &["check", manifest.to_str().unwrap(), "--json"]).run().json();
        let problems: BTreeSet<&str> =
            checked["problems"].as_array().unwrap().iter().map(|problem| problem["code"].as_str().unwrap()).collect();
        assert_eq!(problems, BTreeSet::from(["components::source"]), "{language} {shape}: {checked}");
    }
}

#[test]
fn what_it_prints_and_the_readme_end_with_a_build_at_each_save() {
    for (example, languages) in EXAMPLES {
        for language in languages {
            let folder = empty();
            let written = new(&folder, &["tool", "--lang", language, "--example", example]);
            let build = if ["js", "typescript"].contains(language) { "npm run build" } else { "make" };
            let steps = written.succeeded();
            let end = format!(
                "\n  toolcell dev -- {build}\n\nThe last one serves the tool to an MCP client, and builds it at each save. \
                 README.md says more.\n"
            );
            assert!(steps.ends_with(&end), "{language} {example}: {steps}");
            let readme = folder.read("tool/README.md");
            let line =
                format!("\ntoolcell dev -- {build}    # serves it to an MCP client, and builds it at each save\n```\n");
            assert!(readme.contains(&line), "{language} {example}: {readme}");
        }
    }
}

#[test]
fn the_steps_that_it_prints_lead_a_shell_into_the_project() {
    for path in [AWKWARD, "$HOME", "plain"] {
        let folder = empty();
        let written = new(&folder, &["tool", "--lang", "c", "--path", path]);
        let step = written.succeeded().lines().map(str::trim).find(|line| line.starts_with("cd ")).unwrap();
        let script = format!("{step} && ls Makefile");
        let went = std::process::Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
        assert!(went.status.success(), "{step}: {went:?}");
    }
}

#[test]
fn the_contract_s_text_is_part_of_the_projects_that_use_it() {
    for (language, shape) in TEMPLATES.into_iter().filter(|(_, shape)| *shape == "contract") {
        let folder = empty();
        let project = project(&folder, language, shape);
        for file in ["tools.wit", "types.wit", "host.wit", "asking.wit"] {
            let written = std::fs::read_to_string(project.join("wit").join(file)).unwrap();
            assert_eq!(written, std::fs::read_to_string(repository().join("wit").join(file)).unwrap(), "{language}");
        }
    }
}

#[test]
fn a_name_that_no_component_can_have_is_refused_and_nothing_is_written() {
    for (name, problem) in [
        ("", "must not be empty"),
        ("Words", "must not contain 'W'"),
        ("a b", "must not contain ' '"),
        ("../words", "must not contain '.'"),
        ("a/b", "must not contain '/'"),
        ("_words", "must start with a letter or a digit"),
        (&"a".repeat(65), "has 65 characters, at most 64 are allowed"),
    ] {
        let folder = empty();
        let refused = new(&folder, &[name, "--lang", "c"]);
        assert!(refused.failed_with(2).contains(problem), "{name:?}: {refused:?}");
        assert_eq!(folder.tree("").len(), 2, "the folder and its manifest: {:?}", folder.tree(""));
    }
}

#[test]
fn an_example_that_a_language_lacks_is_refused_with_the_languages_that_have_it() {
    for (example, languages) in EXAMPLES {
        for language in ["rust", "python", "typescript", "js", "go", "c"] {
            let folder = empty();
            let written = new(&folder, &["tool", "--lang", language, "--example", example]);
            if languages.contains(&language) {
                assert_eq!(written.code(), 0, "{language} {example}: {written:?}");
                continue;
            }
            let said = written.failed_with(2);
            assert!(said.contains(&format!("there is no example {example} in {language}\n")), "{said}");
            assert!(said.contains(&format!("it is there in {}", languages.join(", "))), "{said}");
            assert!(!folder.path().join("tool").exists());
        }
    }
}

#[test]
fn a_shape_that_an_example_lacks_is_refused_with_those_that_it_has() {
    for (language, example, shape, has) in [
        ("c", "words", "typed", "program"),
        ("js", "words", "program", "typed, contract"),
        ("rust", "ask", "typed", "contract"),
        ("rust", "fetch", "program", "typed"),
    ] {
        let folder = empty();
        let refused = new(&folder, &["tool", "--lang", language, "--example", example, "--shape", shape]);
        let said = refused.failed_with(2);
        assert!(said.contains(&format!("there is no example {example} in {language} of the shape {shape}")), "{said}");
        assert!(said.contains(&format!("it is there as {has}")), "{said}");
        assert!(!folder.path().join("tool").exists());
    }
}

/// The script that builds projects of every language and tries them; here those whose compiler is
/// that of the examples. It has the others with `make languages`.
#[test]
#[ignore = "takes minutes: make test-e2e ARGS='--ignored new::'"]
fn every_example_in_rust_builds_passes_its_tests_and_answers() {
    let script = repository().join("guest-examples/starts.py");
    let mut command = std::process::Command::new("python3");
    let ended = command.arg(script).arg("--toolcell").arg(toolcell_tests::toolcell()).arg("rust");
    let ended = ended.output().unwrap();
    let said = [&ended.stdout[..], &ended.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(ended.status.success(), "{said}");
    for (example, _) in EXAMPLES {
        assert!(said.contains(&format!("ok     rust {example}, ")), "{said}");
    }
}

#[test]
fn a_folder_with_anything_in_it_stays_as_it_is() {
    let folder = empty();
    folder.write("tool/kept.txt", "mine");
    let before = folder.tree("tool");
    let refused = new(&folder, &["tool", "--lang", "c"]);
    assert!(refused.failed_with(2).contains("is not empty"), "{refused:?}");
    assert_eq!(folder.tree("tool"), before);
    folder.make("elsewhere/empty");
    assert_eq!(new(&folder, &["tool", "--lang", "c", "--path", "elsewhere/empty"]).code(), 0);
    assert!(folder.read("elsewhere/empty/toolcell.toml").contains("[components.tool]"));
}
