//! The strength of passwords, as MySQL's component `validate_password` measures it. There is no dictionary,
//! because the server reads no files of users.

/// Characters below which a password has no strength at all.
const CHARACTERS_MIN: usize = 4;

/// The rules, which are the variables `validate_password.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrengthRules {
    /// Characters.
    pub length: u64,
    /// Lower case letters, and as many upper case ones.
    pub mixed_case: u64,
    /// Digits.
    pub numbers: u64,
    /// Characters that are neither letters nor digits.
    pub specials: u64,
    /// Whether a name of the user, or its reverse, is no password.
    pub checks_user_name: bool,
    /// Whether only the length counts: the policy LOW.
    pub checks_length_only: bool,
}

impl StrengthRules {
    /// The result of VALIDATE_PASSWORD_STRENGTH: 0, 25, 50 or 100. It does not depend on the policy.
    pub fn strength(&self, password: &str, user: &str) -> i64 {
        let characters = password.chars().count();
        match () {
            () if characters < CHARACTERS_MIN || self.is_user_name(password, user) => 0,
            () if !self.is_long(password) => 25,
            () if !self.is_mixed(password) => 50,
            () => 100,
        }
    }

    /// Whether the policy allows the password for these users.
    pub fn accepts(&self, password: &str, users: &[&str]) -> bool {
        self.is_long(password)
            && (self.checks_length_only || self.is_mixed(password))
            && !users.iter().any(|user| self.is_user_name(password, user))
    }

    /// The other rules demand some characters, too.
    fn is_long(&self, password: &str) -> bool {
        let demanded = self.numbers.saturating_add(self.specials).saturating_add(self.mixed_case.saturating_mul(2));
        password.chars().count() as u64 >= self.length.max(demanded)
    }

    fn is_mixed(&self, password: &str) -> bool {
        let count = |is_counted: fn(char) -> bool| password.chars().filter(|letter| is_counted(*letter)).count() as u64;
        count(char::is_numeric) >= self.numbers
            && count(char::is_lowercase) >= self.mixed_case
            && count(char::is_uppercase) >= self.mixed_case
            && count(|letter| !letter.is_alphanumeric()) >= self.specials
    }

    fn is_user_name(&self, password: &str, user: &str) -> bool {
        let is_reverse = || password.chars().eq(user.chars().rev());
        self.checks_user_name && !user.is_empty() && (password == user || is_reverse())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: StrengthRules = StrengthRules {
        length: 8,
        mixed_case: 1,
        numbers: 1,
        specials: 1,
        checks_user_name: true,
        checks_length_only: false,
    };

    #[test]
    fn the_strength_grows_with_the_rules_that_hold() {
        for (password, strength) in [
            ("", 0),
            ("aB1", 0),
            ("aB1!", 25),
            ("aB1!aB1", 25),
            ("abcdefgh", 50),
            ("aBcdefg1", 50),
            ("abcdef1!", 50),
            ("aBcdef1!", 100),
            ("\u{e4}\u{d6}cdef1!", 100),
            ("anna-Lena1", 0),
            ("1aneL-anna", 0),
        ] {
            assert_eq!(RULES.strength(password, "anna-Lena1"), strength, "{password}");
        }
    }

    #[test]
    fn a_policy_accepts_what_fulfils_its_rules() {
        let low = StrengthRules { checks_length_only: true, ..RULES };
        for (password, of_medium, of_low) in [
            ("short1!", false, false),
            ("long enough", false, true),
            ("aBcdef1!", true, true),
            ("Some.User1", false, false),
        ] {
            let users = ["u", "Some.User1"];
            assert_eq!(
                (RULES.accepts(password, &users), low.accepts(password, &users)),
                (of_medium, of_low),
                "{password}"
            );
        }
        let many = StrengthRules { length: 0, mixed_case: 3, numbers: 3, specials: 3, ..low };
        assert!(!many.accepts("11 characte", &[]) && many.accepts("twelve chars", &[]));
        assert!(StrengthRules { checks_user_name: false, ..RULES }.accepts("Some.User1", &["Some.User1"]));
    }
}
