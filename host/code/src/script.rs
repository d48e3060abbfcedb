//! One script, from its text to its end: the engine is made, the script begun, and its calls are
//! made whenever nothing else is left to do. So calls begun before the script waits run together.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rquickjs::{CatchResultExt as _, CaughtError, Context, Ctx, Exception, Function, Object, Runtime};

use crate::calls;
use crate::outcome::Outcome;

/// Bytes of the stack that a script may use, of the megabyte that the component has. Functions of
/// the engine are deeper than what they count: the rest is theirs.
const STACK_BYTES_MAX: usize = 160 << 10;

/// What a script sees, in JavaScript.
const PRELUDE: &str = include_str!("prelude.js");

/// Runs a script. `input_json` is what it sees as `input`.
pub(crate) fn run(code: &str, input_json: &str) -> Result<Outcome, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.set_max_stack_size(STACK_BYTES_MAX);
    let context = Context::full(&runtime).map_err(|error| error.to_string())?;
    context.with(|ctx| in_context(&ctx, code, input_json).catch(&ctx).map_err(|error| said(&error)))
}

fn in_context(ctx: &Ctx<'_>, code: &str, input_json: &str) -> rquickjs::Result<Outcome> {
    let prelude: Function<'_> = ctx.eval(PRELUDE)?;
    let run: Object<'_> = prelude.call((host(ctx, code, input_json)?,))?;
    let flush: Function<'_> = run.get("flush")?;
    let begin: Function<'_> = run.get("begin")?;
    begin.call::<_, ()>((code,))?;
    loop {
        while ctx.execute_pending_job() {}
        if !flush.call::<_, bool>(())? {
            break;
        }
    }
    let end: Function<'_> = run.get("end")?;
    let end: Object<'_> = end.call(())?;
    let console = end.get("console")?;
    let unprinted = end.get::<_, u32>("unprinted")? as usize;
    let problem: Option<String> = end.get("problem")?;
    let result: Option<String> = end.get("result")?;
    let end = match problem {
        Some(problem) => Err(problem),
        None => serde_json::from_str(&result.unwrap_or_default())
            .map_err(|error| format!("the result cannot be written as JSON: {error}")),
    };
    Ok(Outcome { end, console, unprinted })
}

/// What the host gives the script's side.
fn host<'js>(ctx: &Ctx<'js>, code: &str, input_json: &str) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    host.set("callAll", Function::new(ctx.clone(), call_all)?)?;
    host.set("find", Function::new(ctx.clone(), |words: String, limit: u32| calls::find(&words, limit)))?;
    host.set("describe", Function::new(ctx.clone(), |name: String| calls::describe(&name)))?;
    host.set("input", ctx.json_parse(input_json)?)?;
    host.set("began", Function::new(ctx.clone(), calls::run_began))?;
    // A script is a function of its text, its input and what tools answer.
    let mut hasher = DefaultHasher::new();
    (code, input_json).hash(&mut hasher);
    #[expect(clippy::cast_possible_truncation, reason = "a seed is any number")]
    host.set("seed", hasher.finish() as u32 as f64)?;
    Ok(host)
}

/// Makes calls; throws where they cannot be read.
fn call_all(ctx: Ctx<'_>, calls: String) -> rquickjs::Result<String> {
    calls::all(&calls).map_err(|problem| Exception::throw_message(&ctx, &problem))
}

fn said(error: &CaughtError<'_>) -> String {
    match error {
        CaughtError::Exception(exception) => exception.message().unwrap_or_default(),
        other => other.to_string(),
    }
}
