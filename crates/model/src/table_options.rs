//! Table options that neither storage nor plans need. They are kept for SHOW CREATE TABLE, and so for dumps.

/// An option with a number, in the order of SHOW CREATE TABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeptOption {
    /// MIN_ROWS.
    MinRows,
    /// MAX_ROWS.
    MaxRows,
    /// AVG_ROW_LENGTH.
    AverageRowLength,
    /// PACK_KEYS.
    PackKeys,
    /// STATS_PERSISTENT.
    StatsPersistent,
    /// STATS_AUTO_RECALC.
    StatsAutoRecalc,
    /// STATS_SAMPLE_PAGES.
    StatsSamplePages,
    /// CHECKSUM.
    Checksum,
    /// DELAY_KEY_WRITE.
    DelayKeyWrite,
    /// ROW_FORMAT: the position in [`ROW_FORMATS`].
    RowFormat,
    /// KEY_BLOCK_SIZE.
    KeyBlockSize,
    /// COMPRESSION: the position in [`COMPRESSIONS`].
    Compression,
}

/// The values of COMPRESSION.
pub const COMPRESSIONS: [&str; 3] = ["ZLIB", "LZ4", "NONE"];

/// The values of ROW_FORMAT other than DEFAULT.
pub const ROW_FORMATS: [&str; 5] = ["FIXED", "DYNAMIC", "COMPRESSED", "REDUNDANT", "COMPACT"];

impl KeptOption {
    /// All options.
    pub const ALL: [KeptOption; 12] = [
        KeptOption::MinRows,
        KeptOption::MaxRows,
        KeptOption::AverageRowLength,
        KeptOption::PackKeys,
        KeptOption::StatsPersistent,
        KeptOption::StatsAutoRecalc,
        KeptOption::StatsSamplePages,
        KeptOption::Checksum,
        KeptOption::DelayKeyWrite,
        KeptOption::RowFormat,
        KeptOption::KeyBlockSize,
        KeptOption::Compression,
    ];

    /// The name in statements.
    pub fn name(self) -> &'static str {
        match self {
            KeptOption::MinRows => "MIN_ROWS",
            KeptOption::MaxRows => "MAX_ROWS",
            KeptOption::AverageRowLength => "AVG_ROW_LENGTH",
            KeptOption::PackKeys => "PACK_KEYS",
            KeptOption::StatsPersistent => "STATS_PERSISTENT",
            KeptOption::StatsAutoRecalc => "STATS_AUTO_RECALC",
            KeptOption::StatsSamplePages => "STATS_SAMPLE_PAGES",
            KeptOption::Checksum => "CHECKSUM",
            KeptOption::DelayKeyWrite => "DELAY_KEY_WRITE",
            KeptOption::RowFormat => "ROW_FORMAT",
            KeptOption::KeyBlockSize => "KEY_BLOCK_SIZE",
            KeptOption::Compression => "COMPRESSION",
        }
    }

    /// The option of this name, which is in upper case.
    pub fn named(name: &str) -> Option<KeptOption> {
        match name {
            "TABLE_CHECKSUM" => Some(KeptOption::Checksum),
            _ => KeptOption::ALL.into_iter().find(|option| option.name() == name),
        }
    }

    /// The part of a number, or of DEFAULT (`None`), that is kept. `None` if the option has no such value.
    pub fn kept(self, value: Option<u64>) -> Option<Option<u64>> {
        let is_ternary = [KeptOption::PackKeys, KeptOption::StatsPersistent, KeptOption::StatsAutoRecalc];
        match (self, value) {
            (KeptOption::StatsSamplePages, Some(pages)) => (1..=65_535).contains(&pages).then_some(value),
            (KeptOption::StatsSamplePages, None) => Some(None),
            (KeptOption::Checksum | KeptOption::DelayKeyWrite, Some(number)) => Some(Some(number.min(1))),
            (option, Some(number)) if is_ternary.contains(&option) => (number <= 1).then_some(value),
            (option, None) if is_ternary.contains(&option) => Some(None),
            (_, Some(_)) => Some(value),
            (_, None) => None,
        }
    }

    /// Whether 0 is a value of its own. For the other options it stands for the absence of the option.
    fn has_zero(self) -> bool {
        matches!(
            self,
            KeptOption::PackKeys
                | KeptOption::StatsPersistent
                | KeptOption::StatsAutoRecalc
                | KeptOption::RowFormat
                | KeptOption::Compression
        )
    }
}

/// The options of a table, in the order of SHOW CREATE TABLE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptOptions(Vec<(KeptOption, u64)>);

impl KeptOptions {
    /// Sets an option; `None` removes it.
    pub fn set(&mut self, option: KeptOption, value: Option<u64>) {
        self.0.retain(|(other, _)| *other != option);
        let Some(value) = value.filter(|value| *value > 0 || option.has_zero()) else { return };
        let position = self.0.partition_point(|(other, _)| *other < option);
        self.0.insert(position, (option, value));
    }

    /// The options with their values.
    pub fn iter(&self) -> impl Iterator<Item = (KeptOption, u64)> {
        self.0.iter().copied()
    }

    /// The options with the texts of their values.
    pub fn texts(&self) -> impl Iterator<Item = (KeptOption, String)> {
        self.iter().map(|(option, value)| match (option, usize::try_from(value)) {
            (KeptOption::RowFormat, Ok(format)) => {
                (option, ROW_FORMATS.get(format).copied().unwrap_or("DEFAULT").into())
            }
            (KeptOption::Compression, Ok(name)) => {
                (option, format!("'{}'", COMPRESSIONS.get(name).copied().unwrap_or("NONE")))
            }
            _ => (option, value.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_in_the_order_of_show_and_zero_removes_most_of_them() {
        let mut options = KeptOptions::default();
        options.set(KeptOption::RowFormat, Some(1));
        options.set(KeptOption::MaxRows, Some(7));
        options.set(KeptOption::PackKeys, Some(0));
        let texts = |options: &KeptOptions| {
            options.texts().map(|(option, text)| format!("{}={text}", option.name())).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(texts(&options), "MAX_ROWS=7 PACK_KEYS=0 ROW_FORMAT=DYNAMIC");
        options.set(KeptOption::MaxRows, Some(0));
        options.set(KeptOption::PackKeys, None);
        assert_eq!(texts(&options), "ROW_FORMAT=DYNAMIC");
        assert_eq!(KeptOption::PackKeys.kept(Some(7)), None);
        assert_eq!(KeptOption::PackKeys.kept(None), Some(None));
        assert_eq!(KeptOption::StatsSamplePages.kept(Some(0)), None);
        assert_eq!(KeptOption::Checksum.kept(Some(5)), Some(Some(1)));
        assert_eq!(KeptOption::MaxRows.kept(None), None);
        assert_eq!(KeptOption::MaxRows.kept(Some(u64::MAX)), Some(Some(u64::MAX)));
        for option in KeptOption::ALL {
            assert_eq!(KeptOption::named(option.name()), Some(option));
        }
    }
}
