//! What the manifest says of a tool's behaviour. Must not hold: how it is written, or how clients are told.

/// What a tool does, as MCP's annotations have it. What is `None` is left to the tool itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// It only reads; changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something; matters only where `read_only` is not true.
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// It deals with an open world, such as the web, rather than a closed one, such as its own store.
    pub open_world: Option<bool>,
}

impl Hints {
    /// Each that is said, by its key in the manifest.
    #[must_use]
    pub fn said(&self) -> Vec<(&'static str, bool)> {
        let all = [
            ("read_only", self.read_only),
            ("destructive", self.destructive),
            ("idempotent", self.idempotent),
            ("open_world", self.open_world),
        ];
        all.into_iter().filter_map(|(key, said)| Some((key, said?))).collect()
    }
}
