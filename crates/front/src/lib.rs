//! What clients speak: the MySQL protocol, sessions, admission.
