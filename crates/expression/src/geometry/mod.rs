//! Geometry in a plane: relations, distances, validity and hashes of shapes. The callers decode the values
//! (`junctor_model::geometry`) and check their reference systems.
//!
//! Whether a point is left of a line is decided exactly (`robust`), so that relations between given points
//! and segments are never a matter of rounding. Only points at which two segments cross are rounded.

pub(crate) mod derive;
pub(crate) mod hash;
pub(crate) mod measure;
pub(crate) mod relate;
mod segment;
pub(crate) mod sphere;
pub(crate) mod text;
pub(crate) mod validity;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::geometry::Shape;

/// Maximum number of pairs of segments that one call compares: about half a second.
const SEGMENT_PAIRS_MAX: usize = 1 << 26;

/// Error 1436 if two geometries have too many segments, or points, to be compared.
pub(crate) fn check_pairs(left: usize, right: usize) -> Result<()> {
    match left.saturating_mul(right) <= SEGMENT_PAIRS_MAX {
        true => Ok(()),
        false => Err(too_large(left, right)),
    }
}

#[cold]
fn too_large(left: usize, right: usize) -> Box<Error> {
    let text = format!("Geometries with {left} and {right} points are too large to be compared");
    Error::new(ErrorCode::StatementTooComplex, text)
}

/// Number of points, also of all elements of a collection. Each collection counts as one more, as work
/// is done for empty ones too.
fn point_count(shape: &Shape) -> usize {
    match shape {
        Shape::Collection(elements) => 1 + elements.iter().map(point_count).sum::<usize>(),
        shape => {
            let mut count = 0;
            shape.for_each_point(&mut |_| count += 1);
            count
        }
    }
}

#[cfg(test)]
mod tests;
