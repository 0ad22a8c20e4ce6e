//! Geometries: shapes of points in a plane, and their bytes. A value is a spatial reference system as 4
//! little-endian bytes and well-known binary (WKB) in little-endian order, as in MySQL. The coordinates of a
//! geographic system are longitude and latitude there, whatever their order in texts.

mod reference_system;
mod shape;
mod wkb;

pub use reference_system::{ReferenceSystem, SYSTEMS, SystemKind};
pub use shape::{Geometry, GeometryKind, Point, Ring, Shape};
pub use wkb::{DEPTH_MAX, append_wkb, read_wkb};

#[cfg(test)]
mod tests;
