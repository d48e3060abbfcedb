//! toolcell-policy.
