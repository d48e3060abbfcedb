//! A command-line program: text on standard input, JSON on standard output. `toolcell.toml` makes a
//! tool of it.

mod counts;

use std::io::Read as _;
use std::process::ExitCode;

const USAGE: &str = "usage: tool [--min-length N] < TEXT";

fn main() -> ExitCode {
    match run() {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<serde_json::Value, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let min_length = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => 1,
        ["--min-length", number] => number.parse().map_err(|_| format!("{number:?} is not a length\n{USAGE}"))?,
        _ => return Err(USAGE.to_owned()),
    };
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
    let counts = counts::count(&text, min_length)?;
    let mut answer = serde_json::json!({ "lines": counts.lines, "words": counts.words });
    if let Some(longest) = counts.longest {
        answer["longest"] = longest.into();
    }
    Ok(answer)
}
