//! The engine's generated types of the contract → the plain types that cross the wall, and back.
//! Values are moved, never copied.
use toolcell_wall::{asking as plain, caller, contract};

use crate::bindings::optional::{prompts, resources};
use crate::bindings::toolcell::mcp::{asking, log, types};

/// A type with a generated and a plain form.
pub(super) trait Convert {
    /// Its other form.
    type Twin;

    /// Moves the value into the other form.
    fn convert(self) -> Self::Twin;
}

/// Types that are the same in both forms.
macro_rules! same {
    ($($type:ty,)*) => {$(
        impl Convert for $type {
            type Twin = Self;

            fn convert(self) -> Self {
                self
            }
        }
    )*};
}

/// Records with the same fields.
macro_rules! records {
    ($($from:path => $to:path { $($field:ident),* $(,)? })*) => {$(
        impl Convert for $from {
            type Twin = $to;

            fn convert(self) -> $to {
                let Self { $($field),* } = self;
                $to { $($field: $field.convert()),* }
            }
        }
    )*};
}

/// Variants with the same names and values.
macro_rules! variants {
    ($($from:path => $to:path { $($variant:ident $(($value:ident))?),* $(,)? })*) => {$(
        impl Convert for $from {
            type Twin = $to;

            fn convert(self) -> $to {
                match self {
                    $(Self::$variant $(($value))? => <$to>::$variant $(($value.convert()))?,)*
                }
            }
        }
    )*};
}

// Bytes have an impl of their own, so that they move as a whole.
same! { String, bool, u64, f64, Vec<u8>, }

impl<T: Convert> Convert for Option<T> {
    type Twin = Option<T::Twin>;

    fn convert(self) -> Self::Twin {
        self.map(T::convert)
    }
}

impl<T: Convert> Convert for Vec<T> {
    type Twin = Vec<T::Twin>;

    fn convert(self) -> Self::Twin {
        self.into_iter().map(T::convert).collect()
    }
}

impl<T: Convert, E: Convert> Convert for Result<T, E> {
    type Twin = Result<T::Twin, E::Twin>;

    fn convert(self) -> Self::Twin {
        self.map(T::convert).map_err(E::convert)
    }
}

records! {
    types::Annotations => contract::ContentHints { audience, priority, last_modified }
    types::Icon => contract::GuestIcon { src, mime_type, sizes, theme }
    types::Hints => contract::GuestToolHints { read_only, destructive, idempotent, open_world }
    types::Tool => contract::GuestTool {
        name, title, description, input_schema_json, output_schema_json, hints, icons, meta_json,
    }
    types::TextContent => contract::TextContent { text, annotations, meta_json }
    types::MediaContent => contract::MediaContent { data, mime_type, annotations, meta_json }
    types::ResourceLink => contract::GuestLink {
        uri, name, title, description, mime_type, size, annotations, icons, meta_json,
    }
    types::EmbeddedResource => contract::EmbeddedResource { uri, mime_type, body, annotations, meta_json }
    types::CallResult => contract::GuestResult { content, structured_json, is_error, meta_json }
    prompts::Argument => contract::GuestPromptArgument { name, title, description, required, values }
    prompts::Prompt => contract::GuestPrompt { name, title, description, arguments, icons, meta_json }
    resources::Variable => contract::TemplateVariable { name, values }
    resources::Definition => contract::ListedResource {
        uri, name, title, description, mime_type, size, annotations, icons, meta_json, variables,
    }
    asking::Form => plain::QuestionForm { message, schema_json }
    asking::Page => plain::QuestionPage { message, url }
    asking::Inquiry => plain::Inquiry { key, question }
    plain::WorkRoot => asking::Root { uri, name }
    caller::Trace => crate::bindings::toolcell::mcp::request::TraceContext { traceparent, tracestate, baggage }
}

variants! {
    types::Role => contract::GuestRole { User, Assistant }
    types::Theme => contract::Theme { Light, Dark }
    types::ResourceBody => contract::GuestResourceBody { Text(body), Blob(body) }
    types::Content => contract::GuestContent {
        Text(item), Image(item), Audio(item), ResourceLink(item), EmbeddedResource(item),
    }
    types::Failure => toolcell_wall::failure::CallFailure { InvalidInput(text), Failed(text) }
    log::Level => caller::GuestLogLevel { Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency }
    asking::Kind => plain::AskKind { Form, Page, Sampling, Roots }
    plain::AskKind => asking::Kind { Form, Page, Sampling, Roots }
    asking::Question => plain::GuestQuestion { Form(form), Page(page), Sampling(params), Roots }
    plain::GuestAnswer => asking::Answer { Accepted(text), Declined, Dismissed, Message(text), Roots(roots) }
    plain::AskRefusal => asking::Refusal { Unsupported(kind), Invalid(text), OverLimit(text), TimedOut, Failed(text) }
}
