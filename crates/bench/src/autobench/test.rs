//! The tests that `SYSBENCH_TEST` names.

/// One of the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SysbenchTest {
    /// Index into [`Self::NAMES`].
    index: usize,
}

impl SysbenchTest {
    /// All names.
    pub const NAMES: [&str; 7] = [
        "oltp_rw",
        "oltp_ro",
        "oltp_ro_ps",
        "oltp_rw_write_intensive",
        "oltp_rw_less_read",
        "oltp_complex_write",
        "oltp_nontrx",
    ];

    /// The test of that name.
    pub fn find(name: &str) -> Option<SysbenchTest> {
        SysbenchTest::NAMES.iter().position(|known| *known == name).map(|index| SysbenchTest { index })
    }

    /// The name of the test.
    pub fn name(self) -> &'static str {
        SysbenchTest::NAMES[self.index]
    }

    /// Whether the file sets the number of each kind of read. The other tests fix these numbers themselves.
    pub fn takes_counts(self) -> bool {
        matches!(self.name(), "oltp_rw" | "oltp_ro")
    }

    /// Whether a run can change the number of rows.
    pub fn changes_row_count(self) -> bool {
        self.name() == "oltp_nontrx"
    }

    /// The options that make `oltp.lua` run this test.
    pub fn options(self, wraps_reads: bool, single_statement: &str) -> Vec<String> {
        let no_writes = "--index_updates=0 --non_index_updates=0 --delete_inserts=0";
        let no_ranges = "--simple_ranges=0 --sum_ranges=0 --order_ranges=0 --distinct_ranges=0";
        let text = match self.name() {
            "oltp_ro" => format!("{no_writes} --skip_trx={}", if wraps_reads { "off" } else { "on" }),
            "oltp_ro_ps" => format!("--point_selects=1 {no_ranges} {no_writes} --skip_trx=on"),
            "oltp_rw_write_intensive" => "--index_updates=10".into(),
            "oltp_rw_less_read" => "--point_selects=1 --range_size=5".into(),
            "oltp_complex_write" => format!("--point_selects=0 {no_ranges}"),
            "oltp_nontrx" => format!("--single_statement={single_statement} --skip_trx=on"),
            _ => String::new(),
        };
        text.split_whitespace().map(String::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_differs_from_the_others() {
        let options: Vec<Vec<String>> = SysbenchTest::NAMES
            .iter()
            .filter_map(|name| SysbenchTest::find(name))
            .map(|test| test.options(false, "insert"))
            .collect();
        assert_eq!(options.len(), SysbenchTest::NAMES.len());
        for (index, one) in options.iter().enumerate() {
            assert!(!options[..index].contains(one), "{one:?}");
        }
        assert_eq!(SysbenchTest::find("oltp"), None);
    }
}
