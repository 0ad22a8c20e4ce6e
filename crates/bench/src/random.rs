//! Random numbers that depend only on a seed (xorshift64*, Vigna 2016).

/// State of the generator; never 0.
pub struct Random(u64);

impl Random {
    /// Makes a generator. Equal seeds give equal numbers.
    pub fn new(seed: u64) -> Random {
        // The state zero would stay zero forever.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number from 0 to `count - 1`; `count` is at least 1.
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(count)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn every_number_of_a_small_range_occurs() {
        let mut random = Random::new(0);
        let mut seen = [0_u32; 7];
        for _ in 0..7000 {
            seen[random.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
    }

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.next_u64(), random.next_u64()]
        };
        assert_eq!(numbers(5), numbers(5));
        assert_ne!(numbers(5), numbers(6));
    }
}
