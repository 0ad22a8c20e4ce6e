//! The data plane: the blocks tc, ldm and query.
