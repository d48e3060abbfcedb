//! Text of any kind as a manifest. It is read, or its problems are drawn, with one result each
//! time. None of its text reaches a terminal as a control.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolcell_policy::{DIAGNOSTICS_MAX, Diagnostic, Severity, Source, Style, parse, render_all};

fuzz_target!(|text: &str| {
    let source = Source { name: "toolcell.toml", text };
    let problems = match parse(&source) {
        Ok(parsed) => {
            assert!(parsed.warnings.iter().all(|problem| problem.severity() == Severity::Warning));
            for component in parsed.manifest.components() {
                assert!(parsed.manifest.component(component.name()).is_some(), "{} is lost", component.name());
            }
            assert_eq!(parse(&source).as_ref(), Ok(&parsed));
            parsed.warnings
        }
        Err(problems) => {
            assert!(problems.iter().any(|problem| problem.severity() == Severity::Error), "refused without an error");
            problems
        }
    };
    are_drawn(&source, &problems);
});

fn are_drawn(source: &Source<'_>, problems: &[Diagnostic]) {
    assert!(problems.len() <= DIAGNOSTICS_MAX + 1, "{} problems", problems.len());
    for problem in problems {
        if let Some(span) = problem.span() {
            assert!(span.start <= span.end && span.end <= source.text.len(), "{span:?} of {}", source.text.len());
        }
    }
    let plain = render_all(source, problems, Style::Plain);
    let control = plain.chars().find(|character| character.is_control() && *character != '\n');
    assert_eq!(control, None, "in {plain:?}");
    let coloured = render_all(source, problems, Style::Color);
    assert!(coloured.len() >= plain.len(), "colours take text away");
}
