//! toolcell-mcp.
