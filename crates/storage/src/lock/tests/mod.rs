//! Tests of the lock table: locks of rows, and locks of ranges.

mod range;
mod row;
