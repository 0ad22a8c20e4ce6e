//! The spatial reference systems that geometries can have. SRID 0 is a plane without units and has no entry.

/// The kind of a spatial reference system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemKind {
    /// Latitude and longitude on an ellipsoid, in degrees. Texts have the latitude first.
    Geographic,
    /// A map: a plane with a unit of length.
    Projected,
}

/// A spatial reference system.
#[derive(Debug)]
pub struct ReferenceSystem {
    /// The id.
    pub id: u32,
    /// The name.
    pub name: &'static str,
    /// The kind.
    pub kind: SystemKind,
    /// The authority that gave the id, and the number there.
    pub organization: (&'static str, u32),
    /// The definition as well-known text.
    pub definition: &'static str,
}

/// All, by ascending id.
pub static SYSTEMS: &[ReferenceSystem] = &[
    ReferenceSystem {
        id: 3857,
        name: "WGS 84 / Pseudo-Mercator",
        kind: SystemKind::Projected,
        organization: ("EPSG", 3857),
        definition: "PROJCS[\"WGS 84 / Pseudo-Mercator\",GEOGCS[\"WGS 84\",DATUM[\"World Geodetic System 1984\",\
                     SPHEROID[\"WGS 84\",6378137,298.257223563,AUTHORITY[\"EPSG\",\"7030\"]],\
                     AUTHORITY[\"EPSG\",\"6326\"]],PRIMEM[\"Greenwich\",0,AUTHORITY[\"EPSG\",\"8901\"]],\
                     UNIT[\"degree\",0.017453292519943278,AUTHORITY[\"EPSG\",\"9122\"]],AXIS[\"Lat\",NORTH],\
                     AXIS[\"Lon\",EAST],AUTHORITY[\"EPSG\",\"4326\"]],PROJECTION[\"Popular Visualisation Pseudo \
                     Mercator\",AUTHORITY[\"EPSG\",\"1024\"]],PARAMETER[\"Latitude of natural origin\",0,\
                     AUTHORITY[\"EPSG\",\"8801\"]],PARAMETER[\"Longitude of natural origin\",0,\
                     AUTHORITY[\"EPSG\",\"8802\"]],PARAMETER[\"False easting\",0,AUTHORITY[\"EPSG\",\"8806\"]],\
                     PARAMETER[\"False northing\",0,AUTHORITY[\"EPSG\",\"8807\"]],UNIT[\"metre\",1,\
                     AUTHORITY[\"EPSG\",\"9001\"]],AXIS[\"X\",EAST],AXIS[\"Y\",NORTH],AUTHORITY[\"EPSG\",\"3857\"]]",
    },
    ReferenceSystem {
        id: 4326,
        name: "WGS 84",
        kind: SystemKind::Geographic,
        organization: ("EPSG", 4326),
        definition: "GEOGCS[\"WGS 84\",DATUM[\"World Geodetic System 1984\",SPHEROID[\"WGS 84\",6378137,\
                     298.257223563,AUTHORITY[\"EPSG\",\"7030\"]],AUTHORITY[\"EPSG\",\"6326\"]],\
                     PRIMEM[\"Greenwich\",0,AUTHORITY[\"EPSG\",\"8901\"]],UNIT[\"degree\",0.017453292519943278,\
                     AUTHORITY[\"EPSG\",\"9122\"]],AXIS[\"Lat\",NORTH],AXIS[\"Lon\",EAST],\
                     AUTHORITY[\"EPSG\",\"4326\"]]",
    },
];

impl ReferenceSystem {
    /// The system with this id; `None` for 0 and for an unknown one.
    pub fn find(id: u32) -> Option<&'static ReferenceSystem> {
        SYSTEMS.iter().find(|system| system.id == id)
    }

    /// Whether geometries can have this id.
    pub fn is_known(id: u32) -> bool {
        id == 0 || ReferenceSystem::find(id).is_some()
    }

    /// The semi-major axis and the inverse flattening of the ellipsoid of both systems.
    pub const WGS84: (f64, f64) = (6_378_137.0, 298.257_223_563);
}
