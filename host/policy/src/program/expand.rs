//! From the arguments of a call to the input of a program's run.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Part, Program, Slot, SlotKind, Template};

/// The most arguments of a run: a list may have as many items, and programs copy all of them at
/// start.
pub const ARGUMENTS_MAX: usize = 10_000;

/// The most bytes of a run's arguments, environment, standard input and files together. A call's
/// arguments may have as many, so a template that names one of them twice multiplies nothing past
/// it.
pub const INVOCATION_BYTES_MAX: usize = 64 << 20;

/// The input of one run, after the program's own name and the component's fixed arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// Arguments; none holds a NUL.
    pub args: Vec<String>,
    /// Standard input; `None` if the tool does not set it.
    pub stdin: Option<String>,
    /// Variables that the call sets; no value holds a NUL.
    pub env: Vec<(String, String)>,
    /// Files that exist before it runs: their paths in the guest's tree, and their contents.
    pub files: Vec<(String, String)>,
}

/// Why a call's arguments cannot become a run. The message is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// An argument that a slot needs.
    #[error("the argument {0:?} is missing")]
    Missing(String),
    /// A NUL would end the argument early.
    #[error("the argument {0:?} must not contain NUL (U+0000)")]
    Nul(String),
    /// The program could take it for an option.
    #[error("the argument {0:?} must not begin with \"-\"")]
    Dash(String),
    /// A list slot got something else.
    #[error("the argument {0:?} must be a list")]
    NotAList(String),
    /// More arguments than [`ARGUMENTS_MAX`].
    #[error("the arguments make more than {ARGUMENTS_MAX} arguments of the program")]
    TooMany,
    /// More bytes than [`INVOCATION_BYTES_MAX`].
    #[error("the arguments make more than 64MiB of arguments, input and files of the program")]
    TooLarge,
    /// The arguments are not a JSON object.
    #[error("the arguments are not a JSON object")]
    NoObject,
}

/// The arguments of a call, each as JSON text.
struct GivenArguments<'a> {
    text: &'a str,
    named: HashMap<String, &'a RawValue>,
    program: &'a Program,
    bytes_left: usize,
}

/// Where a slot's value goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotValue {
    /// An argument or a variable, which must not contain a NUL.
    Ended,
    /// A stream of bytes, or a file.
    Stream,
}

impl Program {
    /// The input of a run for these arguments, which conform to [`Program::input_schema`].
    ///
    /// # Errors
    /// [`ExpandError`], where what the schema lets pass cannot be an argument of a program.
    pub fn expand(&self, arguments_json: &str) -> Result<Invocation, ExpandError> {
        let named = serde_json::from_str(arguments_json).map_err(|_| ExpandError::NoObject)?;
        let bytes_left = INVOCATION_BYTES_MAX;
        let mut arguments = GivenArguments { text: arguments_json, named, program: self, bytes_left };
        let args = arguments.args()?;
        let stdin = match &self.stdin {
            Some(template) => Some(arguments.single(template, SlotValue::Stream)?.unwrap_or_default()),
            None => None,
        };
        let env = arguments.named(&self.env, SlotValue::Ended)?;
        let files = arguments.named(&self.files, SlotValue::Stream)?;
        Ok(Invocation { args, stdin, env, files })
    }
}

impl<'a> GivenArguments<'a> {
    fn args(&mut self) -> Result<Vec<String>, ExpandError> {
        let program = self.program;
        let mut args = Vec::with_capacity(program.args.len());
        let mut options_ended = false;
        for arg in &program.args {
            if let Some((together, ended)) = self.together(&arg.0, options_ended)? {
                args.extend(together);
                options_ended = ended;
            }
            if args.len() > ARGUMENTS_MAX {
                return Err(ExpandError::TooMany);
            }
        }
        Ok(args)
    }

    /// The texts of named templates, without those that are left out.
    fn named(
        &mut self,
        templates: &[(String, Template)],
        place: SlotValue,
    ) -> Result<Vec<(String, String)>, ExpandError> {
        let mut given = Vec::with_capacity(templates.len());
        for (name, template) in templates {
            if let Some(text) = self.single(template, place)? {
                given.push((name.clone(), text));
            }
        }
        Ok(given)
    }

    /// The arguments of a group of templates, and whether options have ended after them; `None` if
    /// one of them is left out.
    fn together(&mut self, templates: &[Template], before: bool) -> Result<Option<(Vec<String>, bool)>, ExpandError> {
        let mut together = Vec::with_capacity(templates.len());
        let mut ended = before;
        for template in templates {
            let Some(given) = self.arguments_of(template, ended)? else { return Ok(None) };
            together.extend(given);
            ended |= template.ends_options();
        }
        Ok(Some((together, ended)))
    }

    /// The arguments of one template: one, or one for each item of its list; `None` if it is left
    /// out.
    fn arguments_of(&mut self, template: &Template, options_ended: bool) -> Result<Option<Vec<String>>, ExpandError> {
        let guarded = template.first_slot().filter(|slot| !options_ended && !slot.dash);
        let Some(list) = template.slots().find(|slot| slot.kind == SlotKind::Each) else {
            let Some(given) = self.single(template, SlotValue::Ended)? else { return Ok(None) };
            self.guard(guarded, None, &given)?;
            return Ok(Some(vec![given]));
        };
        let items = self.items(list)?;
        if items.len() > ARGUMENTS_MAX {
            return Err(ExpandError::TooMany);
        }
        let mut given = Vec::with_capacity(items.len());
        for item in items {
            let Some(text) = self.fill(template, Some(&item), SlotValue::Ended)? else { return Ok(None) };
            self.guard(guarded, Some(&item), &text)?;
            given.push(text);
        }
        Ok(Some(given))
    }

    /// Refuses a text that the program could take for an option. Numbers are allowed.
    fn guard(&self, slot: Option<&Slot>, item: Option<&RawValue>, given: &str) -> Result<(), ExpandError> {
        let Some(slot) = slot.filter(|slot| !matches!(slot.kind, SlotKind::Switch(_))) else { return Ok(()) };
        let is_text = match (&slot.kind, item) {
            (SlotKind::Each, Some(item)) => is_string(item.get()),
            _ => self.value(&slot.name).is_none_or(|text| is_string(&text)),
        };
        if is_text && given.starts_with('-') { Err(ExpandError::Dash(slot.name.clone())) } else { Ok(()) }
    }

    fn single(&mut self, template: &Template, place: SlotValue) -> Result<Option<String>, ExpandError> {
        self.fill(template, None, place)
    }

    /// The template's text with its slots filled; `None` if an optional slot has no value.
    fn fill(
        &mut self,
        template: &Template,
        item: Option<&RawValue>,
        place: SlotValue,
    ) -> Result<Option<String>, ExpandError> {
        let mut filled = String::new();
        for part in template.parts() {
            let text = match part {
                Part::Text(text) => text.clone(),
                Part::Slot(slot) => match self.slot(slot, item)? {
                    Some(text) if place == SlotValue::Ended && text.contains('\0') => {
                        return Err(ExpandError::Nul(slot.name.clone()));
                    }
                    Some(text) => text,
                    None => return Ok(None),
                },
            };
            self.bytes_left = self.bytes_left.checked_sub(text.len()).ok_or(ExpandError::TooLarge)?;
            filled.push_str(&text);
        }
        Ok(Some(filled))
    }

    fn slot(&self, slot: &Slot, item: Option<&RawValue>) -> Result<Option<String>, ExpandError> {
        let value = || self.value(&slot.name);
        Ok(match &slot.kind {
            SlotKind::All => Some(self.text.to_owned()),
            SlotKind::Value => match value() {
                Some(json) => Some(plain(json)),
                None => return Err(ExpandError::Missing(slot.name.clone())),
            },
            SlotKind::Optional => value().map(plain),
            SlotKind::Switch(text) => value().filter(|json| json != "false").map(|_| text.clone()),
            SlotKind::Each => item.map(|item| plain(item.get().to_owned())),
        })
    }

    /// The JSON of an argument, or of its default; `None` for `null`.
    fn value(&self, name: &str) -> Option<String> {
        let given = self.named.get(name).map(|json| json.get()).filter(|json| *json != "null");
        given.map(str::to_owned).or_else(|| Some(self.program.default_of(name)?.to_string()))
    }

    fn items(&self, slot: &Slot) -> Result<Vec<Box<RawValue>>, ExpandError> {
        match self.value(&slot.name) {
            Some(json) => serde_json::from_str(&json).map_err(|_| ExpandError::NotAList(slot.name.clone())),
            None => Ok(Vec::new()),
        }
    }
}

impl Program {
    /// The schema's default of an argument.
    pub(crate) fn default_of(&self, name: &str) -> Option<&Value> {
        self.property(name)?.get("default").filter(|value| !value.is_null())
    }

    /// The schema of an argument.
    pub(crate) fn property(&self, name: &str) -> Option<&Value> {
        self.input.get("properties")?.get(name)
    }

    /// True if the schema asks for an argument.
    pub(crate) fn requires(&self, name: &str) -> bool {
        let required = self.input.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|other| other == name))
    }
}

fn is_string(json: &str) -> bool {
    json.starts_with('"')
}

/// A text without its quotes; any other value as JSON.
fn plain(json: String) -> String {
    if is_string(&json) { serde_json::from_str(&json).unwrap_or(json) } else { json }
}
