//! The protocol's work for each tool and each call: a schema is compiled once, arguments are
//! checked against it.
use criterion::Criterion;
use serde_json::value::RawValue;
use toolcell_mcp::{McpTool, Patience, ToolDefinition};

/// A schema of one string.
pub const ECHO: &str =
    r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}"#;

/// [`ECHO`], and the schema of `chart`, which bounds lists within lists.
const SCHEMAS: [(&str, &str, &str); 2] = [
    ("echo", ECHO, r#"{"text":"the quick brown fox jumps over the lazy dog"}"#),
    (
        "chart",
        include_str!("../../../../guest-examples/chart/schemas/input.json"),
        r#"{"kind":"bar","series":[{"name":"rain","values":[1,2,3.5,null,5,6,7,8,9,10,11,12]}],"title":"Rain by month"}"#,
    ),
];

pub fn definition(name: &str, schema: &str) -> ToolDefinition {
    ToolDefinition::new(name, "A tool of the benchmark.", serde_json::from_str(schema).unwrap())
}

pub fn measure(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schema");
    for (name, schema, arguments) in SCHEMAS {
        let compile = || McpTool::compile(definition(name, schema)).unwrap();
        group.bench_function(format!("{name}, compiled"), |bencher| bencher.iter(compile));
        let tool = compile();
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        group.bench_function(format!("{name}, arguments checked"), |bencher| {
            bencher.iter(|| tool.check_arguments(&arguments, &Patience::default()).unwrap());
        });
    }
    group.finish();
}
