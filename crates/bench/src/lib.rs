//! Comparisons and load generators.
