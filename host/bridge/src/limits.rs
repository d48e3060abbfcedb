//! Every bound on a document or a list, with its unit and its reason.

/// Largest document, in bytes. 32 MiB: GitHub's has 12 MB, Stripe's 7.
pub const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Operations that become tools without a word. 100: a model chooses badly among more.
pub const OPERATIONS_DEFAULT: usize = 100;

/// Operations that become tools at most. 1,000: the host lists so many of one component.
pub const OPERATIONS_MAX: usize = 1_000;

/// Paths of a document. 20,000: the largest public one, Microsoft Graph's, has some 8,000.
pub const PATHS_MAX: usize = 20_000;

/// Longest path of a document, in bytes. 1 KiB: Kubernetes' longest have 150.
pub const PATH_BYTES_MAX: usize = 1_024;

/// References followed one behind the other to something that is not one. 16: generators make two.
pub const REFERENCES_MAX: usize = 16;

/// Depth of a reference's pointer, in segments. 32: `#/components/schemas/NAME` has three.
pub const POINTER_SEGMENTS_MAX: usize = 32;

/// Parameters of an operation. 300: NetBox's lists have up to 179.
pub const PARAMETERS_MAX: usize = 300;

/// Bytes of the schemas of one operation's parameters. 48 KiB, two large schemas: NetBox's 179
/// parameters need half of it. What is looked at in vain counts as well.
pub const PARAMETERS_BYTES_MAX: usize = 2 * SCHEMA_BYTES_MAX;

/// Bytes that one look at a schema or a property counts as: the least that it can add.
pub const VISIT_BYTES: usize = 8;

/// Subschemas of one schema. 800: the host takes 1,000, and the arguments stand around it.
pub const SUBSCHEMAS_MAX: usize = 800;

/// Levels of subschemas, tried one after the other while the schema keeps its bounds. The host
/// takes 32, and one level of the document becomes at most two.
pub const LEVELS: [usize; 8] = [1, 2, 3, 4, 5, 7, 9, 14];

/// Bytes of one schema as compact JSON. 24 KiB: each token of it is paid for with each request.
pub const SCHEMA_BYTES_MAX: usize = 24 * 1024;

/// Least bytes of one schema to which a large document's schemas are cut. 512: names and types of
/// some ten arguments.
pub const SCHEMA_BYTES_MIN: usize = 512;

/// Bytes of all definitions. 900 KiB: the host takes 1 MiB of a list by default.
pub const DEFINITIONS_BYTES_MAX: usize = 900 * 1024;

/// Values of an `enum`. 200: longer lists, such as time zones, are cut to a note.
pub const ENUM_VALUES_MAX: usize = 200;

/// Bytes of one value of an `enum`, or of a default, as JSON. 512: longer ones are examples.
pub const VALUE_BYTES_MAX: usize = 512;

/// Longest pattern, in bytes. 1,024: the host's own bound.
pub const PATTERN_BYTES_MAX: usize = 1_024;

/// Longest description within a schema, in bytes. 600: some hundred words.
pub const SCHEMA_TEXT_BYTES_MAX: usize = 600;

/// Longest description of a tool, in bytes. 2 KiB: Anthropic's and OpenAI's guides advise a few
/// sentences.
pub const TOOL_TEXT_BYTES_MAX: usize = 2 * 1024;

/// Longest title, in bytes. 120: a line of a menu.
pub const TITLE_BYTES_MAX: usize = 120;

/// Longest name of a tool with its prefix, in characters: what the APIs of models take.
pub const NAME_CHARS_MAX: usize = 64;

/// Members of an `allOf`, `anyOf` or `oneOf`. 200: GitHub's events are the largest with about 60.
pub const MEMBERS_MAX: usize = 200;

/// Longest name of a tool of another MCP server, in bytes: what the protocol allows.
pub const REMOTE_NAME_BYTES_MAX: usize = 128;

/// Longest description of a tool of another MCP server, in bytes. 16 KiB: the host's own bound.
pub const REMOTE_TEXT_BYTES_MAX: usize = 16 * 1024;

/// Icons of a tool of another MCP server, and the longest address of one in bytes. 8 KiB: a small
/// picture in a `data:` address.
pub const REMOTE_ICONS_MAX: usize = 8;
pub const REMOTE_ICON_BYTES_MAX: usize = 8 * 1024;

/// Arguments of one tool that headers repeat, and the objects that they may lie in. 32 and 8:
/// proxies route by one or two at the top.
pub const MIRRORED_MAX: usize = 32;
pub const MIRRORED_LEVELS_MAX: usize = 8;
