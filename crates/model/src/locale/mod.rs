//! Locales: the names of months and days that `lc_time_names` chooses.
//!
//! `names.txt` has a line for each locale, in the order of MySQL's numbers: its name, then the months, their
//! short names, the days from Monday on, and their short names.

use std::sync::OnceLock;

/// A locale by MySQL's number. en_US is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Locale(u8);

struct Names {
    name: &'static str,
    months: Vec<&'static str>,
    months_short: Vec<&'static str>,
    days: Vec<&'static str>,
    days_short: Vec<&'static str>,
    characters_max: u32,
}

fn all() -> &'static [Names] {
    static ALL: OnceLock<Vec<Names>> = OnceLock::new();
    ALL.get_or_init(|| include_str!("names.txt").lines().map(Names::read).collect())
}

impl Names {
    fn read(line: &'static str) -> Names {
        let mut parts = line.split('|');
        let name = parts.next().unwrap_or_default();
        let mut list = || parts.next().unwrap_or_default().split(',').collect::<Vec<_>>();
        let (months, months_short, days, days_short) = (list(), list(), list(), list());
        let characters_max = months.iter().chain(&days).map(|name| name.chars().count()).max().unwrap_or(0) as u32;
        Names { name, months, months_short, days, days_short, characters_max }
    }
}

impl Locale {
    /// en_US, the default.
    pub const ENGLISH: Locale = Locale(0);

    /// The locale of this name, in any letter case.
    pub fn find(name: &str) -> Option<Locale> {
        let place = all().iter().position(|names| names.name.eq_ignore_ascii_case(name))?;
        Some(Locale(place as u8))
    }

    /// The locale with this number of MySQL.
    pub fn numbered(number: u64) -> Option<Locale> {
        u8::try_from(number).ok().filter(|number| usize::from(*number) < all().len()).map(Locale)
    }

    /// The locale of a number that [`Self::number`] returned; en_US for another one.
    pub(crate) fn of_number(number: u8) -> Locale {
        Locale::numbered(number.into()).unwrap_or(Locale::ENGLISH)
    }

    /// MySQL's number.
    pub const fn number(self) -> u8 {
        self.0
    }

    fn names(self) -> &'static Names {
        &all()[usize::from(self.0)]
    }

    /// The name, such as `de_DE`.
    pub fn name(self) -> &'static str {
        self.names().name
    }

    /// The name of a month from 1 to 12; `None` for other numbers.
    pub fn month(self, month: u8) -> Option<&'static str> {
        self.names().months.get(usize::from(month).checked_sub(1)?).copied()
    }

    /// The short name of a month from 1 to 12; `None` for other numbers.
    pub fn month_short(self, month: u8) -> Option<&'static str> {
        self.names().months_short.get(usize::from(month).checked_sub(1)?).copied()
    }

    /// The name of a day of the week; 0 is Monday. Empty from 7 on.
    pub fn day(self, day: usize) -> &'static str {
        self.names().days.get(day).copied().unwrap_or_default()
    }

    /// The short name of a day of the week; 0 is Monday. Empty from 7 on.
    pub fn day_short(self, day: usize) -> &'static str {
        self.names().days_short.get(day).copied().unwrap_or_default()
    }

    /// The number of characters of the longest name of a month or day.
    pub fn characters_max(self) -> u32 {
        self.names().characters_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_locale_has_all_names() {
        assert_eq!(all().len(), 111);
        for (number, names) in all().iter().enumerate() {
            let counts = [&names.months, &names.months_short, &names.days, &names.days_short].map(Vec::len);
            assert_eq!(counts, [12, 12, 7, 7], "{}", names.name);
            let locale = Locale::find(names.name).expect("a name of the list");
            assert_eq!(usize::from(locale.number()), number);
            assert_eq!(Locale::of_number(locale.number()), locale);
            assert!((1..12).all(|month| locale.month(month).is_some_and(|name| !name.is_empty())), "{}", names.name);
        }
    }

    #[test]
    fn numbers_are_those_of_mysql() {
        for (number, name) in [(0, "en_US"), (4, "de_DE"), (5, "fr_FR"), (17, "es_ES"), (109, "el_GR"), (110, "rm_CH")]
        {
            assert_eq!(Locale::numbered(number).map(Locale::name), Some(name));
        }
        assert_eq!(Locale::numbered(111), None);
        assert_eq!(Locale::find("DE_de").and_then(|locale| locale.month(3)), Some("März"));
        assert_eq!(Locale::find("xx_XX"), None);
        assert_eq!(Locale::ENGLISH.month(0), None);
        assert_eq!(Locale::ENGLISH.day(7), "");
    }
}
