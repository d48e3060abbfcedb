//! Processes of this binary that can be killed. Must not hold: what is said to them.
