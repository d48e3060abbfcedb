//! toolcell-sandbox.
