//! HTTP on a port of its own, for those who watch the node: `/metrics`, `/health/live` and
//! `/health/ready`. One thread outside of the data plane serves all connections, within bounds; another one
//! reads the metrics.

pub mod request;
mod metrics;
mod server;

pub use metrics::Scrape;
pub use server::{HttpServer, Probe};
