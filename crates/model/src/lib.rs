//! The words of the database: identifiers, limits, errors, values, schema, collations, row encodings.
