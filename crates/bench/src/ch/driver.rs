//! The transactions: `dbt2.lua` by sysbench, and what it prints.

use std::path::Path;
use std::time::Duration;

use crate::autobench::program::{Interrupt, Job, run_all};
use crate::autobench::script::Script;
use crate::failure::Explain;
use crate::process::Server;
use crate::{Failure, Outcome};

const LOAD_TIMEOUT: Duration = Duration::from_secs(3600);
const RUN_GRACE: Duration = Duration::from_secs(300);
const LOADERS: u32 = 2;

/// sysbench with the script of TPC-C.
pub struct Driver<'a> {
    /// Folder of the scripts and of what they print.
    pub folder: &'a Path,
    pub database: &'static str,
    pub warehouses: u32,
    pub items: u32,
    pub customers: u32,
    pub threads: u32,
}

/// The figures of the New-Order transactions of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NewOrders {
    pub per_minute: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl Driver<'_> {
    /// Creates the tables and loads the initial rows.
    ///
    /// # Errors
    /// sysbench printed errors.
    pub fn load(&self, server: &Server) -> Outcome<()> {
        self.execute(server, &[format!("--threads={LOADERS}"), "prepare".into()], LOAD_TIMEOUT).map(drop)
    }

    /// Creates the tables without rows.
    ///
    /// # Errors
    /// sysbench printed errors.
    pub fn create_tables(&self, server: &Server) -> Outcome<()> {
        self.execute(server, &["create".into()], LOAD_TIMEOUT).map(drop)
    }

    /// Runs all five kinds of transactions.
    ///
    /// # Errors
    /// sysbench printed errors, or no figures.
    pub fn run(&self, server: &Server, seconds: u64) -> Outcome<NewOrders> {
        let words = [
            format!("--threads={}", self.threads),
            format!("--time={seconds}"),
            "--db-ps-mode=auto".into(),
            "run".into(),
        ];
        let printed = self.execute(server, &words, Duration::from_secs(seconds) + RUN_GRACE)?;
        figures_of(&printed).ok_or("no figures of New-Orders in its output").explain(format!("dbt2 on {}", server.name))
    }

    /// Checks the consistency conditions of TPC-C.
    ///
    /// # Errors
    /// The first conditions that are violated.
    pub fn check(&self, server: &Server) -> Outcome<()> {
        self.execute(server, &["check".into()], LOAD_TIMEOUT).map(drop)
    }

    fn execute(&self, server: &Server, arguments: &[String], time_max: Duration) -> Outcome<String> {
        let mut words = vec!["sysbench".to_string(), Script::Dbt2.path(self.folder).to_string_lossy().into_owned()];
        words.push(format!("--mysql-host={}", server.address.ip()));
        words.push(format!("--mysql-port={}", server.address.port()));
        words.push("--mysql-user=root".into());
        words.push(format!("--mysql-db={}", self.database));
        words.push(format!("--warehouses={}", self.warehouses));
        words.push(format!("--items={}", self.items));
        words.push(format!("--customers={}", self.customers));
        words.extend(arguments.iter().cloned());
        let job = Job { words, output: self.folder.join(format!("dbt2_{}.log", server.name)) };
        let printed = run_all(&[job], time_max, &Interrupt::default())?;
        printed.into_iter().next().ok_or_else(|| Failure::new("one program has one output"))
    }
}

fn figures_of(printed: &str) -> Option<NewOrders> {
    let figure = |name: &str| -> Option<f64> {
        let line = printed.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().parse().ok()
    };
    Some(NewOrders {
        per_minute: figure("new orders per minute")?,
        p50_ms: figure("new order p50 ms")?,
        p99_ms: figure("new order p99 ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_run_are_read() {
        let printed = "dbt2:\n    new orders per minute:       12.50\n    new order p50 ms:            1.25\n    \
                       new order p99 ms:            40.00\n";
        let figures = NewOrders { per_minute: 12.5, p50_ms: 1.25, p99_ms: 40.0 };
        assert_eq!(figures_of(printed), Some(figures));
        assert_eq!(figures_of("new orders per minute: 1"), None);
    }
}
