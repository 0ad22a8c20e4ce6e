//! Counts events whose outcome may be unknown.

/// The bounds of a count. The true count lies between the acknowledged and the attempted number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    acknowledged: i64,
    attempted: i64,
}

impl Counter {
    /// The lower bound: every reader must see at least this many.
    pub fn acknowledged(&self) -> i64 {
        self.acknowledged
    }

    /// Begins an attempt. From now on readers may see it.
    pub fn attempt(&mut self) {
        self.attempted += 1;
    }

    /// Records the success of an attempt. From now on readers must see it.
    pub fn acknowledge(&mut self) {
        self.acknowledged += 1;
    }

    /// Withdraws an attempt that failed for certain.
    pub fn withdraw(&mut self) {
        self.attempted -= 1;
    }

    /// Records that the outcome of every attempt has become known: the count is `value`.
    pub fn settle(&mut self, value: i64) {
        (self.acknowledged, self.attempted) = (value, value);
    }

    /// Whether the outcome of every attempt is known.
    pub fn is_certain(&self) -> bool {
        self.acknowledged == self.attempted
    }

    /// Checks a value that was read. `floor` is the acknowledged number when the read was sent.
    ///
    /// # Errors
    /// A lost update if the value is too small, a dirty read if it is too large.
    pub fn check(&self, what: &str, value: i64, floor: i64) -> Result<(), String> {
        if value < floor {
            return Err(format!("lost update: {what} is {value}, but {floor} was acknowledged before"));
        }
        if value > self.attempted {
            return Err(format!("dirty read: {what} is {value}, but only {} was attempted", self.attempted));
        }
        Ok(())
    }
}
