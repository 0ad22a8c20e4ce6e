//! Writes `final_result.txt`: the result of each run, with means and standard deviations.

use std::fs;
use std::path::Path;

use crate::Outcome;
use crate::failure::Explain;

const TITLE: &str = "Final results for this test run\n";

/// The results of one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceResults {
    /// Name of each case, and its result in each round.
    pub cases: Vec<(String, Vec<u64>)>,
}

impl InstanceResults {
    /// Adds the result of a round.
    pub fn add(&mut self, label: &str, result: u64) {
        match self.cases.iter_mut().find(|(known, _)| known == label) {
            Some((_, results)) => results.push(result),
            None => self.cases.push((label.into(), vec![result])),
        }
    }

    fn page(&self, test: &str) -> String {
        let mut page = format!("{TITLE}Results for {test}\n");
        for (label, results) in &self.cases {
            let results: Vec<String> = results.iter().map(u64::to_string).collect();
            page += &format!("{label} Results: {}\n", results.join(" "));
        }
        page += "Mean value and standard deviation of results\n";
        for (label, results) in &self.cases {
            page += &format!("{label} Mean: {} StdDev: {}\n", mean(results), standard_deviation(results));
        }
        page
    }
}

/// Writes the results into the directory of the configuration. The results of a single instance go to
/// `final_result.txt`. With several instances, each writes `final_result_N.txt`, and `final_result.txt` has
/// the sums. Returns the text of `final_result.txt`.
///
/// # Errors
/// A file cannot be written.
pub fn write_results(folder: &Path, test: &str, instances: &[InstanceResults]) -> Outcome<String> {
    let total = match instances {
        [one] => one.page(test),
        _ => {
            for (number, instance) in instances.iter().enumerate() {
                write(folder, &format!("final_result_{number}.txt"), &instance.page(test))?;
            }
            total_page(instances)
        }
    };
    write(folder, "final_result.txt", &total)?;
    Ok(total)
}

/// Removes the files of an earlier run, so that a failed run leaves no results behind.
pub fn remove_results(folder: &Path) {
    // A missing file need not be removed.
    let _ = fs::remove_file(folder.join("final_result.txt"));
    for number in 0.. {
        if fs::remove_file(folder.join(format!("final_result_{number}.txt"))).is_err() {
            break;
        }
    }
}

fn write(folder: &Path, name: &str, page: &str) -> Outcome<()> {
    let path = folder.join(name);
    fs::write(&path, page).explain(path.display())
}

/// Sums, for each case, the means of the instances that ran it.
fn total_page(instances: &[InstanceResults]) -> String {
    let mut totals: Vec<(&str, u64)> = Vec::new();
    for (label, results) in instances.iter().flat_map(|instance| &instance.cases) {
        match totals.iter_mut().find(|(known, _)| known == label) {
            Some((_, total)) => *total += mean(results),
            None => totals.push((label, mean(results))),
        }
    }
    let lines: String = totals.iter().map(|(label, total)| format!("{label} Mean: {total}\n")).collect();
    format!("{TITLE}{lines}")
}

fn mean(results: &[u64]) -> u64 {
    results.iter().sum::<u64>() / (results.len() as u64).max(1)
}

/// The population standard deviation (divided by the number of runs), rounded down like the mean.
fn standard_deviation(results: &[u64]) -> u64 {
    let mean = mean(results);
    let squares: u64 = results.iter().map(|result| result.abs_diff(mean).pow(2)).sum();
    (squares / (results.len() as u64).max(1)).isqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::TemporaryFolder;

    fn results(cases: &[(&str, &[u64])]) -> InstanceResults {
        let mut all = InstanceResults::default();
        for (label, results) in cases {
            results.iter().for_each(|result| all.add(label, *result));
        }
        all
    }

    #[test]
    fn one_instance_has_results_means_and_deviations() {
        let one = results(&[("Threads: 8", &[90, 110]), ("Threads: 16", &[200, 200])]);
        let lines = [
            "Final results for this test run",
            "Results for oltp_rw",
            "Threads: 8 Results: 90 110",
            "Threads: 16 Results: 200 200",
            "Mean value and standard deviation of results",
            "Threads: 8 Mean: 100 StdDev: 10",
            "Threads: 16 Mean: 200 StdDev: 0",
            "",
        ];
        let folder = TemporaryFolder::new("results").expect("a folder");
        let page = write_results(folder.path(), "oltp_rw", &[one]).expect("written");
        assert_eq!(page, lines.join("\n"));
        assert_eq!(fs::read_to_string(folder.path().join("final_result.txt")).expect("there"), page);
    }

    #[test]
    fn several_instances_have_one_file_each_and_a_total() {
        let instances = [results(&[("Threads: 8", &[90, 110])]), results(&[("Threads: 8", &[50, 61])])];
        let folder = TemporaryFolder::new("results").expect("a folder");
        let page = write_results(folder.path(), "oltp_rw", &instances).expect("written");
        assert_eq!(page, "Final results for this test run\nThreads: 8 Mean: 155\n");
        let second = fs::read_to_string(folder.path().join("final_result_1.txt")).expect("there");
        assert!(second.ends_with("Threads: 8 Mean: 55 StdDev: 5\n"), "{second}");
        remove_results(folder.path());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
