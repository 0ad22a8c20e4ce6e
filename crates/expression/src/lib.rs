//! Typed programs over rows and the MySQL functions, evaluated in ldm, query and sql alike.
