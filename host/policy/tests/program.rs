//! Arguments of a call → what a program is run with: a table of what each slot gives, and what
//! holds for all arguments.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcell_policy::{ARGUMENTS_MAX, ExpandError, Invocation, Program, Source, parse};

/// The program of a tool whose table has these lines.
fn program(lines: &str) -> Arc<Program> {
    let text =
        format!("version = 1\n[components.a]\nsource = 'a.wasm'\n[components.a.tools.t]\ndescription = 'd'\n{lines}\n");
    let parsed = parse(&Source { name: "m", text: &text }).unwrap_or_else(|problems| panic!("{problems:?}"));
    Arc::clone(parsed.manifest.component("a").unwrap().tool("t").unwrap().program().unwrap())
}

/// The input of a program with these `args`.
fn args(args: &str, arguments: &Value) -> Result<Vec<String>, ExpandError> {
    let input =
        "input = { s = 'text', 'o?' = 'text', 'f?' = 'boolean', 'l?' = 'array', n = { default = 3 }, 'j?' = {} }";
    let unused = "env = { U = '{s}{n}', V = '{o?}', W = '{f?}', X = '{l?}', Y = '{j?}' }";
    program(&format!("{input}\nargs = {args}\n{unused}")).expand(&arguments.to_string()).map(|run| run.args)
}

#[test]
fn each_slot_gives_what_its_form_says() {
    let given = |texts: &[&str]| Ok(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let dash = |name: &str| Err(ExpandError::Dash(name.to_owned()));
    for (templates, arguments, expected) in [
        ("['{s}']", json!({"s": "a b'\"$(c);\n"}), given(&["a b'\"$(c);\n"])),
        ("['{s}']", json!({"s": ""}), given(&[""])),
        ("['-x', 'a{s}b{s}']", json!({"s": "-1"}), given(&["-x", "a-1b-1"])),
        ("['{o?}', '{s}']", json!({"s": "x"}), given(&["x"])),
        ("['{o?}', '{s}']", json!({"s": "x", "o": null}), given(&["x"])),
        ("['{o?}', '{s}']", json!({"s": "x", "o": "y"}), given(&["y", "x"])),
        ("[['-o', '{o?}'], '{s}']", json!({"s": "x"}), given(&["x"])),
        ("[['-o', '{o?}'], '{s}']", json!({"s": "x", "o": "y"}), given(&["-o", "y", "x"])),
        ("['{f?--f}', '{o?--o}']", json!({"s": "x"}), given(&[])),
        ("['{f?--f}', '{o?--o}']", json!({"s": "x", "f": false, "o": ""}), given(&["--o"])),
        ("['{f?--f}', '{o?--o}']", json!({"s": "x", "f": true, "o": "false"}), given(&["--f", "--o"])),
        ("['{l...}']", json!({"s": "x"}), given(&[])),
        ("['{l...}']", json!({"s": "x", "l": []}), given(&[])),
        (
            "['{l...}']",
            json!({"s": "x", "l": ["a b", 1, true, null, {"k": [1.50]}]}),
            given(&["a b", "1", "true", "null", "{\"k\":[1.5]}"]),
        ),
        ("['-i={l...},{s}']", json!({"s": "x", "l": ["-a", "b"]}), given(&["-i=-a,x", "-i=b,x"])),
        ("['{n}']", json!({"s": "x"}), given(&["3"])),
        ("['{n}']", json!({"s": "x", "n": -4}), given(&["-4"])),
        ("['{n}']", json!({"s": "x", "n": "-4"}), dash("n")),
        ("['{j?}']", json!({"s": "x", "j": {"a": "-"}}), given(&["{\"a\":\"-\"}"])),
        ("['{*}']", json!({"s": "x"}), given(&["{\"s\":\"x\"}"])),
        ("['{s}']", json!({"s": "-rf"}), dash("s")),
        ("['{s!}']", json!({"s": "-rf"}), given(&["-rf"])),
        ("['--', '{s}']", json!({"s": "-rf"}), given(&["--", "-rf"])),
        ("[['--', '{o?}'], '{s}']", json!({"s": "-rf"}), dash("s")),
        ("[['--', '{o?}'], '{s}']", json!({"s": "-rf", "o": "-o"}), given(&["--", "-o", "-rf"])),
        ("['{s}-x']", json!({"s": ""}), dash("s")),
        ("['{l...}']", json!({"s": "x", "l": [-1, "-1"]}), dash("l")),
        ("['{l!...}']", json!({"s": "x", "l": [-1, "-1"]}), given(&["-1", "-1"])),
        ("['{l...}']", json!({"s": "x", "l": "text"}), Err(ExpandError::NotAList("l".to_owned()))),
        ("['{s}']", json!({}), Err(ExpandError::Missing("s".to_owned()))),
        ("['{s}']", json!({"s": "a\0b"}), Err(ExpandError::Nul("s".to_owned()))),
        ("['{l...}']", json!({"s": "x", "l": ["a\0"]}), Err(ExpandError::Nul("l".to_owned()))),
        ("['{{s}}', '}}{{']", json!({"s": "x"}), given(&["{s}", "}{"])),
    ] {
        assert_eq!(args(templates, &arguments), expected, "{templates} with {arguments}");
    }
}

#[test]
fn standard_input_and_variables_are_filled_as_arguments_are() {
    let program = program(
        "input = { s = 'text', 'o?' = 'text' }\nstdin = 'say {s}'\nenv = { LANG = '{o?}', TEXT = '{s}', MODE = 'fast' }",
    );
    let env =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>();
    let run = program.expand(r#"{"s": "-x"}"#).unwrap();
    let expected = Invocation {
        stdin: Some("say -x".to_owned()),
        env: env(&[("TEXT", "-x"), ("MODE", "fast")]),
        ..Invocation::default()
    };
    assert_eq!(run, expected);
    let run = program.expand(r#"{"s": "x", "o": "de"}"#).unwrap();
    assert_eq!(run.env, env(&[("LANG", "de"), ("TEXT", "x"), ("MODE", "fast")]));
    assert_eq!(
        program.expand(r#"{"s": "a\u0000"}"#),
        Err(ExpandError::Nul("s".to_owned())),
        "the variable would end there"
    );
    assert_eq!(program.expand("[]"), Err(ExpandError::NoObject));

    let stream = self::program("input = { s = 'text', 'o?' = 'text' }\nstdin = '{s}{o?}'");
    assert_eq!(stream.expand(r#"{"s": "a\u0000b", "o": "c"}"#).unwrap().stdin.as_deref(), Some("a\0bc"));
    assert_eq!(stream.expand(r#"{"s": "a"}"#).unwrap().stdin.as_deref(), Some(""), "a template is left out whole");
    assert_eq!(self::program("args = []").expand("{}").unwrap().stdin, None);
}

#[test]
fn files_are_filled_as_standard_input_is_and_left_out_with_what_they_need() {
    let lines = "input = { s = 'text', 'o?' = 'text' }\nfiles = { '/in/s.txt' = \"{s}\\n\", '/in/o' = 'o = {o?}' }\n\
                 args = ['{o?--with=/in/o}', '/in/s.txt']\nfilesystem = { '/in' = {} }";
    let text = format!(
        "version = 1\n[components.a]\nsource = 'a.wasm'\nfilesystem = {{ '/in' = {{ scratch = '1MiB' }} }}\n\
         [components.a.tools.t]\ndescription = 'd'\n{lines}\n"
    );
    let parsed = parse(&Source { name: "m", text: &text }).unwrap_or_else(|problems| panic!("{problems:?}"));
    let program = Arc::clone(parsed.manifest.component("a").unwrap().tool("t").unwrap().program().unwrap());
    let run = program.expand(r#"{"s": "a\u0000-"}"#).unwrap();
    assert_eq!(run.files, [("/in/s.txt".to_owned(), "a\0-\n".to_owned())]);
    assert_eq!(run.args, ["/in/s.txt"]);
    let run = program.expand(r#"{"s": "", "o": 1}"#).unwrap();
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    assert_eq!(run.files, [file("/in/s.txt", "\n"), file("/in/o", "o = 1")]);
    assert_eq!(run.args, ["--with=/in/o", "/in/s.txt"]);
    let long = json!({"s": "a".repeat(40 << 20), "o": "a".repeat(40 << 20)}).to_string();
    assert_eq!(program.expand(&long), Err(ExpandError::TooLarge));
}

#[test]
fn all_arguments_are_the_very_text_that_came() {
    let program = program("input = { s = 'text' }\nstdin = '{*}'");
    let text = r#"{ "s" : 1.00e5 }"#;
    assert_eq!(program.expand(text).unwrap().stdin.as_deref(), Some(text));
}

#[test]
fn a_number_keeps_its_text() {
    for number in ["1e400", "0.10", "123456789012345678901234567890", "-0"] {
        let arguments = format!("{{\"s\":\"\",\"n\":{number}}}");
        let run = program("input = { s = 'text', n = 'number' }\nargs = ['{n}']\nstdin = '{s}'").expand(&arguments);
        assert_eq!(run.unwrap().args, [number]);
    }
}

#[test]
fn arguments_are_bounded_in_number_and_bytes() {
    let list = |items: usize| json!({"l": vec!["a"; items]}).to_string();
    let one = program("input = { l = 'array' }\nargs = ['{l...}']");
    assert_eq!(one.expand(&list(ARGUMENTS_MAX)).unwrap().args.len(), ARGUMENTS_MAX);
    assert_eq!(one.expand(&list(ARGUMENTS_MAX + 1)), Err(ExpandError::TooMany));
    let two = program("input = { l = 'array' }\nargs = ['{l...}', '{l...}']");
    assert_eq!(two.expand(&list(ARGUMENTS_MAX / 2 + 1)), Err(ExpandError::TooMany));
    let often = format!("input = {{ s = 'text' }}\nargs = [{}]", "'{s}',".repeat(65));
    let long = json!({"s": "a".repeat(1 << 20)}).to_string();
    assert_eq!(program(&often).expand(&long), Err(ExpandError::TooLarge));
}

#[test]
fn the_program_that_the_page_shows_is_a_manifest() {
    let page = include_str!("../../../guest-examples/docs/programs.md");
    let (_, block) = page.split_once("```toml\n").unwrap();
    let (text, _) = block.split_once("```").unwrap();
    let parsed = parse(&Source { name: "m", text }).unwrap_or_else(|problems| panic!("{problems:?}"));
    let program = Arc::clone(parsed.manifest.component("jq").unwrap().tool("query_json").unwrap().program().unwrap());
    let run = program.expand(r#"{"filter": "-1", "data": "[]", "compact": true}"#).unwrap();
    assert_eq!(run.args, ["-c", "--", "-1"]);
    assert!(program.is_fine(5) && !program.is_fine(1));
}

/// Texts that a shell or a program could take for something else.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~]{0,20}",
        "[-\"'$`;&|<>{}?!* \n\t\\\\]{0,8}",
        Just("--".to_owned()),
        Just("{s}".to_owned()),
        Just("a b".to_owned()),
    ]
}

proptest! {
    /// Whatever the values: each is in its own argument, complete, and the other arguments are the
    /// author's.
    #[test]
    fn a_value_never_splits_and_never_becomes_another_argument(a in hostile(), b in hostile(), l in prop::collection::vec(hostile(), 0..5)) {
        let program = program("input = { a = 'text', b = 'text', l = 'array' }\nargs = ['--one={a}', '-v', '{a}', '--', '{b}', '{l...}', 'end']\nenv = { B = '{b}' }");
        let arguments = json!({"a": a, "b": b, "l": l}).to_string();
        let nul = [&a, &b].into_iter().chain(&l).any(|text| text.contains('\0'));
        match program.expand(&arguments) {
            Ok(run) => {
                prop_assert!(!nul);
                prop_assert!(!a.starts_with('-'));
                let mut expected = vec![format!("--one={a}"), "-v".to_owned(), a, "--".to_owned(), b.clone()];
                expected.extend(l);
                expected.push("end".to_owned());
                prop_assert_eq!(run.args, expected);
                prop_assert_eq!(run.env, vec![("B".to_owned(), b)]);
            }
            Err(ExpandError::Nul(_)) => prop_assert!(nul),
            Err(ExpandError::Dash(name)) => prop_assert!(name == "a" && a.starts_with('-')),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    /// Whatever a template says, reading and filling it ends in a text, a refusal or a problem.
    #[test]
    fn no_template_and_no_argument_ends_the_host(template in "[a{}?!.*-]{0,12}", s in hostile()) {
        let text = format!("version = 1\n[components.a]\nsource = 'a'\n[components.a.tools.t]\ndescription = 'd'\ninput = {{ a = 'x', 'b?' = 'array' }}\nargs = [{template:?}, '{{a}}{{b?}}']\n");
        if let Ok(parsed) = parse(&Source { name: "m", text: &text }) {
            let component = parsed.manifest.component("a").unwrap();
            let program = component.tool("t").unwrap().program().unwrap();
            let _ = program.expand(&json!({"a": s}).to_string());
            let _ = program.expand(&json!({"a": s, "b": [s]}).to_string());
            prop_assert!(component.canonical().contains("program"));
        }
    }
}
