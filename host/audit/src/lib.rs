//! toolcell-audit.
