//! One file per conversation between blocks.
