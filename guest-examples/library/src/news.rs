//! What clients learn while an index is made: how far it is, and which cards changed. Knows nothing of the index.

/// Who is notified.
pub trait News {
    /// The document of this number, from 1, is looked at. It is the status message of a task.
    fn looks_at(&mut self, number: usize, of: usize, path: &str);
    /// Another thing is read at this address from now on.
    fn updated(&mut self, uri: &str);
}

/// The clients of the host. Outside a component there are none.
pub struct Clients;

impl News for Clients {
    fn looks_at(&mut self, number: usize, of: usize, path: &str) {
        #[cfg(target_arch = "wasm32")]
        {
            // A float can count the documents of any index.
            let number = number as f64;
            let of = of as f64;
            crate::bindings::toolcell::mcp::progress::report(
                number,
                Some(of),
                Some(&format!("{number} of {of}: {path}")),
            );
        }
        #[cfg(not(target_arch = "wasm32"))]
        let _ = (number, of, path);
    }

    fn updated(&mut self, uri: &str) {
        #[cfg(target_arch = "wasm32")]
        crate::bindings::toolcell::mcp::updates::updated(uri);
        #[cfg(not(target_arch = "wasm32"))]
        let _ = uri;
    }
}
