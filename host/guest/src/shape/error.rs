//! Why a component has no supported shape.

/// The component is not a tool, or not the tool that its exports promise.
#[derive(Debug)]
pub(crate) enum ShapeError {
    /// It exports no tools.
    NotATool {
        /// Its exports.
        exports: Vec<String>,
    },
    /// An export has the right name but the wrong type.
    Mismatch {
        /// The difference.
        reason: String,
    },
    /// It was built against a contract that this host does not support.
    Contract {
        /// The export it has.
        found: String,
    },
    /// The names of its functions take more memory than they may.
    Names {
        /// The memory that they may take.
        bytes_max: u64,
    },
}
