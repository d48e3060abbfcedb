//! The shapes of the contract's values in memory, as the component model's canonical ABI lays them out: fields in
//! order, each at its natural alignment, a tag byte before whatever is optional. Holds no logic of the tool.
#![allow(unsafe_code)]

use core::cell::UnsafeCell;

/// `string`: where it starts and how many bytes it has.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    start: *const u8,
    bytes: usize,
}

impl Text {
    pub const fn new(text: &'static str) -> Self {
        Self { start: text.as_ptr(), bytes: text.len() }
    }

    pub const fn at(start: *const u8, bytes: usize) -> Self {
        Self { start, bytes }
    }
}

/// `list<T>`: where it starts and how many items it has.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct List<T> {
    start: *const T,
    items: usize,
}

impl<T> List<T> {
    pub const fn empty() -> Self {
        Self { start: core::ptr::null(), items: 0 }
    }

    pub const fn new(start: *const T, items: usize) -> Self {
        Self { start, items }
    }
}

/// `option<T>` that is `none`: a tag of 0, and room for a `T` that nobody reads.
#[repr(C)]
pub struct Absent<T> {
    tag: u8,
    room: core::mem::MaybeUninit<T>,
}

impl<T> Absent<T> {
    pub const fn new() -> Self {
        Self { tag: 0, room: core::mem::MaybeUninit::uninit() }
    }
}

/// `hints`: four `option<bool>`.
#[repr(C)]
pub struct Hints([u8; 8]);

/// `icon`; only ever in an empty list.
pub enum Icon {}

/// `annotations`.
#[repr(C)]
pub struct Annotations {
    audience: List<u8>,
    priority: Absent<f64>,
    last_modified: Absent<Text>,
}

/// `tool`.
#[repr(C)]
pub struct Tool {
    pub name: Text,
    pub title: Absent<Text>,
    pub description: Text,
    pub input_schema_json: Text,
    pub output_schema_json: Absent<Text>,
    pub hints: Absent<Hints>,
    pub icons: List<Icon>,
    pub meta_json: Absent<Text>,
}

/// `text-content`.
#[repr(C)]
pub struct TextContent {
    pub text: Text,
    pub annotations: Absent<Annotations>,
    pub meta_json: Absent<Text>,
}

/// Bytes of `resource-link`, the largest case of `content`.
const RESOURCE_LINK_BYTES: usize = 144;

/// `content`, in its case `text`: as large as its largest case.
#[repr(C, align(8))]
pub struct Content {
    tag: u8,
    text: TextContent,
    rest: [u8; RESOURCE_LINK_BYTES - size_of::<TextContent>()],
}

impl Content {
    pub const fn text(text: TextContent) -> Self {
        Self { tag: 0, text, rest: [0; RESOURCE_LINK_BYTES - size_of::<TextContent>()] }
    }

    pub fn put_text(&mut self, text: Text) {
        self.text.text = text;
    }
}

const _: () = assert!(size_of::<Content>() == 8 + RESOURCE_LINK_BYTES, "the ABI's size of `content`");

/// `call-result`.
#[repr(C)]
pub struct CallResult {
    pub content: List<Content>,
    pub structured_json: Absent<Text>,
    pub is_error: u8,
    pub meta_json: Absent<Text>,
}

/// `result<call-result, failure>` in its case `ok`.
#[repr(C)]
pub struct Success {
    tag: u8,
    result: CallResult,
}

impl Success {
    pub const fn new(result: CallResult) -> Self {
        Self { tag: 0, result }
    }

    pub fn put_content(&mut self, content: List<Content>) {
        self.result.content = content;
    }
}

/// A value at a fixed place, for the host to read.
pub struct Shared<T>(UnsafeCell<T>);

// SAFETY: a component instance has one thread.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub const fn address(&self) -> *const T {
        self.0.get()
    }

    /// Changes the value in place and says where it is.
    pub fn put(&self, change: impl FnOnce(&mut T)) -> *const T {
        // SAFETY: one thread, and no reference outlives the closure.
        change(unsafe { &mut *self.0.get() });
        self.address()
    }
}
