//! Counts of components that are harmless, and of those that are not.
