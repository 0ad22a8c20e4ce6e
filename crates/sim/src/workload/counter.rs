//! How often something was done, as far as anybody can know.

/// Between what was acknowledged and what was attempted lies what is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    acknowledged: i64,
    attempted: i64,
}

impl Counter {
    /// What everybody must see.
    pub fn acknowledged(&self) -> i64 {
        self.acknowledged
    }

    /// An attempt begins: from now on it may be seen.
    pub fn attempt(&mut self) {
        self.attempted += 1;
    }

    /// An attempt succeeded: from now on it must be seen.
    pub fn acknowledge(&mut self) {
        self.acknowledged += 1;
    }

    /// An attempt failed for sure.
    pub fn give_up(&mut self) {
        self.attempted -= 1;
    }

    /// Whether nothing is unknown.
    pub fn is_certain(&self) -> bool {
        self.acknowledged == self.attempted
    }

    /// Judges a value that was asked for when `floor` was acknowledged.
    ///
    /// # Errors
    /// What was seen that cannot be, or not seen that must be.
    pub fn judge(&self, what: &str, value: i64, floor: i64) -> Result<(), String> {
        if value < floor {
            return Err(format!("lost update: {what} is {value}, although {floor} was acknowledged before"));
        }
        if value > self.attempted {
            return Err(format!("dirty read: {what} is {value}, although only {} was attempted", self.attempted));
        }
        Ok(())
    }
}
