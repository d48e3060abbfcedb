//! Properties of generated components. Each exports functions over generated types that return
//! their argument, and is loaded, listed and called like any other.
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcell_policy::Limits;

use super::super::ty::{Int, Ty, TyId, Types};
use super::super::{Descriptions, encode};
use super::generate::{any_type, any_value, is_out_of_range, spoil};
use super::{Dice, Random};
use crate::{CallInput, GuestGrants, InstanceSource, Sandbox, ToolComponent};
use toolcell_wall::caller::NoCaller;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::pool_sizes::SandboxOptions;

/// Functions of one component.
const FUNCTIONS: usize = 8;

/// Numbers that follow the value: enough that all arguments are passed in memory, with the value
/// first.
const PADDING: usize = 17;

/// What every component has besides its types. Arguments passed in memory form a tuple. So does the
/// result, with the same beginning: the function returns the address of its arguments.
const CORE: &str = r#"
  (core module $m
    (memory (export "memory") 16)
    (global $next (mut i32) (i32.const 16))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and
        (i32.add (global.get $next) (i32.sub (local.get 2) (i32.const 1)))
        (i32.sub (i32.const 0) (local.get 2))))
      (global.set $next (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func (export "same") (param i32) (result i32) (local.get 0)))
  (core instance $i (instantiate $m))
"#;

/// Types of one component, and those that its functions use.
struct Plan {
    types: Types,
    roots: Vec<TyId>,
}

impl Plan {
    fn any(dice: &mut impl Dice) -> Self {
        let mut types = Types::default();
        let mut roots = Vec::new();
        while roots.len() < FUNCTIONS {
            let root = any_type(&mut types, dice, 3);
            // The engine does not support these in components yet.
            if !has_fixed_list(&types, root) {
                roots.push(root);
            }
        }
        Self { types, roots }
    }

    fn component(&self) -> Vec<u8> {
        let mut text = format!("(component{CORE}");
        let mut defined = Vec::new();
        for (number, root) in self.roots.iter().enumerate() {
            define(&self.types, *root, &mut defined, &mut text);
            let padding: String = (0..PADDING).map(|at| format!("(param \"p{at}\" u8)")).collect();
            let ty = name(*root);
            writeln!(text, "(func $same{number} (param \"it\" {ty}) {padding} (result (tuple {ty} u8 u8))").unwrap();
            text.push_str(
                "(canon lift (core func $i \"same\") (memory (core memory $i \"memory\")) (realloc (core func $i \"realloc\"))))\n",
            );
            writeln!(text, "(export \"same-{number}\" (func $same{number}))").unwrap();
        }
        text.push(')');
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

fn has_fixed_list(types: &Types, ty: TyId) -> bool {
    matches!(types.get(ty), Ty::FixedList(..)) || types.parts(ty).into_iter().any(|part| has_fixed_list(types, part))
}

fn name(ty: TyId) -> String {
    format!("$t{}", ty.number())
}

/// Writes the definition of a type after those of its parts, each once.
fn define(types: &Types, ty: TyId, defined: &mut Vec<TyId>, text: &mut String) {
    if defined.contains(&ty) {
        return;
    }
    types.parts(ty).into_iter().for_each(|part| define(types, part, defined, text));
    defined.push(ty);
    let of = |what: &str, ty: &Option<TyId>| ty.map_or_else(String::new, |ty| what.replace("{}", &name(ty)));
    let labels = |labels: &[String]| labels.iter().map(|label| format!(" {label:?}")).collect::<String>();
    let definition = match types.get(ty) {
        Ty::Bool => "bool".to_owned(),
        Ty::Int(int) => match int {
            Int::S8 => "s8",
            Int::U8 => "u8",
            Int::S16 => "s16",
            Int::U16 => "u16",
            Int::S32 => "s32",
            Int::U32 => "u32",
            Int::S64 => "s64",
            Int::U64 => "u64",
        }
        .to_owned(),
        Ty::F32 => "f32".to_owned(),
        Ty::F64 => "f64".to_owned(),
        Ty::Char => "char".to_owned(),
        Ty::Text => "string".to_owned(),
        Ty::Bytes => "(list u8)".to_owned(),
        Ty::List(item) => format!("(list {})", name(*item)),
        Ty::FixedList(..) => unreachable!("left out before"),
        Ty::Tuple(items) => format!("(tuple {})", items.iter().map(|item| name(*item) + " ").collect::<String>()),
        Ty::Record(fields) => {
            let fields: String =
                fields.iter().map(|field| format!("(field {:?} {})", field.wit_name, name(field.ty))).collect();
            format!("(record {fields})")
        }
        Ty::Variant(cases) => {
            let cases: String =
                cases.iter().map(|case| format!("(case {:?} {})", case.name, of("{}", &case.payload))).collect();
            format!("(variant {cases})")
        }
        Ty::Enum(all) => format!("(enum{})", labels(all)),
        Ty::Flags(all) => format!("(flags{})", labels(all)),
        Ty::Option(inner) => format!("(option {})", name(*inner)),
        Ty::Result(ok, err) => format!("(result {} {})", of("{}", ok), of("(error {})", err)),
        Ty::Stream(_) | Ty::Future(_) => unreachable!("no parameter has one"),
    };
    let number = ty.number();
    if types.get(ty).has_parts() {
        // Types with names must be exported with them.
        writeln!(text, "(type $own{number} {definition}) (export $t{number} \"type-{number}\" (type $own{number}))")
            .unwrap();
    } else {
        writeln!(text, "(type $t{number} {definition})").unwrap();
    }
}

fn arguments(it: &Value) -> Value {
    let mut arguments = serde_json::Map::from_iter([("it".to_owned(), it.clone())]);
    arguments.extend((0..PADDING).map(|at| (format!("p{at}"), json!(0))));
    Value::Object(arguments)
}

struct Loaded {
    component: ToolComponent,
    validators: Vec<jsonschema::Validator>,
}

impl Loaded {
    async fn of(sandbox: &Sandbox, plan: &Plan) -> Self {
        let component = ToolComponent::load(sandbox, &plan.component()).unwrap();
        let tools = component.list_tools(&Limits::default(), &Descriptions::default()).await.outcome.unwrap();
        assert_eq!(component.left_out(), []);
        let schema = |tool: &toolcell_wall::contract::GuestTool| serde_json::from_str(&tool.input_schema_json).unwrap();
        let validators = tools.iter().map(|tool| jsonschema::draft202012::new(&schema(tool)).unwrap()).collect();
        Self { component, validators }
    }

    async fn call(&self, number: usize, arguments: &Value) -> Result<String, CallFailure> {
        let limits = Limits::default();
        let capabilities = GuestGrants::sealed("");
        let tool = &*format!("same_{number}");
        let arguments_json = &*arguments.to_string();
        let caller = Arc::new(NoCaller);
        let source = InstanceSource::Fresh;
        let program = None;
        let input =
            CallInput { tool, arguments_json, program, limits: &limits, capabilities: &capabilities, caller, source };
        self.component.call_tool(input).await.report.outcome.map(|result| result.structured_json.unwrap())
    }
}

#[tokio::test]
async fn values_survive_generated_components_and_what_the_schema_refuses_is_refused_by_its_path() {
    let sandbox = Sandbox::new(SandboxOptions { calls_max: 4, ..SandboxOptions::default() }).unwrap();
    let mut dice = Random(0xd1b5_4a32_d192_ed03);
    let mut same = 0;
    let mut refused = 0;
    for _ in 0..250 {
        let plan = Plan::any(&mut dice);
        let loaded = Loaded::of(&sandbox, &plan).await;
        for (number, root) in plan.roots.iter().enumerate() {
            for _ in 0..3 {
                let value = any_value(&plan.types, &mut dice, *root);
                let json = encode::value(&plan.types, *root, &value, usize::MAX).unwrap();
                let mut it: Value = serde_json::from_str(&json).unwrap();
                let answer = loaded.call(number, &arguments(&it)).await;
                assert_eq!(answer, Ok(format!("{{\"result\":[{json},0,0]}}")));
                same += 1;
                let place = spoil(&mut dice, &mut it, "$.it".to_owned());
                let spoiled = arguments(&it);
                match loaded.call(number, &spoiled).await {
                    Err(CallFailure::InvalidInput(text)) => {
                        let is_refused = !loaded.validators[number].is_valid(&spoiled);
                        assert!(is_refused || is_out_of_range(&text), "{text}: {it}");
                        assert!(text.starts_with(&place), "{place} was spoiled: {text}: {it}");
                        refused += 1;
                    }
                    answer => {
                        assert!(loaded.validators[number].is_valid(&spoiled), "{answer:?}: {it}");
                        answer.unwrap();
                    }
                }
            }
        }
    }
    assert!(same == 250 * FUNCTIONS * 3 && refused > 2_500, "{same}, {refused}");
}
