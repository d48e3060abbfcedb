//! A place in a JSON value.
use std::fmt;

/// A place, linked to the one that contains it. Nothing is allocated unless there is an error.
#[derive(Clone, Copy)]
pub(crate) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: PathStep<'p>,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Root,
    Key(&'p str),
    Item(usize),
}

impl Path<'static> {
    /// The whole value.
    pub(crate) const ROOT: Self = Self { parent: None, step: PathStep::Root };
}

impl<'p> Path<'p> {
    /// A key of the object here.
    pub(crate) const fn key(&'p self, key: &'p str) -> Path<'p> {
        Path { parent: Some(self), step: PathStep::Key(key) }
    }

    /// An item of the array here.
    pub(crate) const fn item(&'p self, index: usize) -> Path<'p> {
        Path { parent: Some(self), step: PathStep::Item(index) }
    }
}

/// Characters of a key that are shown.
const KEY_CHARS_SHOWN: usize = 80;

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(formatter)?;
        }
        match self.step {
            PathStep::Root => formatter.write_str("$"),
            PathStep::Item(index) => write!(formatter, "[{index}]"),
            PathStep::Key(key) if is_plain(key) => write!(formatter, ".{key}"),
            PathStep::Key(key) => {
                let shown: String = key.chars().take(KEY_CHARS_SHOWN).collect();
                write!(formatter, "[{shown:?}]")
            }
        }
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= KEY_CHARS_SHOWN
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
