//! Targets for the measured figures, from the CPU budget of the data path.

use super::reads::{LIST_KEYS, Read};
use super::scripts::Script;
use crate::report::Verdict;

const ROW_BYTES_MAX: f64 = 340.0;
const ECHO_RATIO_MAX: f64 = 1.6;
const THIRD: f64 = 1.0 / 3.0;
const SIXTH: f64 = 1.0 / 6.0;

/// Maximum ratio of Junctor's CPU time to MariaDB's, for each script that has a target.
const SCRIPT_TARGETS: [(&str, f64); 5] = [
    ("oltp_point_select", THIRD),
    ("oltp_read_write", THIRD),
    ("oltp_update_index", THIRD),
    ("oltp_update_non_index", THIRD),
    ("in_list", SIXTH),
];

/// Each target with its measured figure. A script with a target must also reach MariaDB's throughput, and
/// must not exceed its p95. No script may exceed MariaDB's error rate.
pub fn verdicts(reads: &[Read], scripts: &[Script], row_bytes: f64) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let mut add = |what: String, allowed_max: f64, measured: f64| {
        verdicts.push(Verdict { what, allowed_max, measured });
    };
    for read in reads {
        let [junctor, mariadb, echo] = read.sides.map(|side| side.cpu_us);
        let mode = read.mode.name();
        if read.keys == LIST_KEYS {
            add(format!("IN list, {mode}, own client: CPU to MariaDB"), SIXTH, junctor / mariadb);
        } else {
            add(format!("point select, {mode}, own client: CPU to echo"), ECHO_RATIO_MAX, junctor / echo);
            add(format!("point select, {mode}, own client: CPU to MariaDB"), THIRD, junctor / mariadb);
        }
    }
    for script in scripts {
        let what = format!("{}, {}", script.name, script.mode.name());
        let [junctor, mariadb] = script.sides;
        if let Some((_, ratio)) = SCRIPT_TARGETS.iter().find(|(name, _)| *name == script.name) {
            add(format!("{what}: CPU to MariaDB"), *ratio, junctor.cpu_us / mariadb.cpu_us);
            add(format!("{what}: MariaDB's throughput by ours"), 1.0, mariadb.per_s / junctor.per_s);
            add(format!("{what}: p95 to MariaDB's"), 1.0, junctor.p95_us / mariadb.p95_us);
        }
        let [ours, theirs] = script.errors_per_thousand;
        if ours > 0.0 || theirs > 0.0 {
            add(format!("{what}: errors 1213 and 1205 a thousand events"), theirs, ours);
        }
    }
    add("bytes of a sysbench row in all".into(), ROW_BYTES_MAX, row_bytes);
    verdicts
}

#[cfg(test)]
mod tests {
    use super::super::reads::Figures;
    use super::*;
    use crate::sysbench::StatementMode;

    #[test]
    fn a_script_with_half_the_cpu_time_of_mariadb_misses_the_target() {
        let figures = |cpu_us| Figures { per_s: 100.0, p95_us: 10.0, cpu_us };
        let script = Script {
            name: "oltp_read_write".into(),
            mode: StatementMode::Text,
            sides: [figures(50.0), figures(100.0)],
            errors_per_thousand: [2.0, 1.0],
        };
        let missed: Vec<String> =
            verdicts(&[], &[script], 300.0).into_iter().filter(|v| !v.is_met()).map(|v| v.what).collect();
        assert_eq!(missed.len(), 2, "{missed:?}");
        assert!(missed[0].ends_with("CPU to MariaDB") && missed[1].contains("1213"));
    }
}
