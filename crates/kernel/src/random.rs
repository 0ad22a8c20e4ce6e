//! A small random number generator. Equal seeds give equal sequences, so a run can be repeated.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::require;

/// xoshiro256++ of Blackman and Vigna, seeded by splitmix64. Secrets are the operating system's on a real
/// node, and part of the sequence in a simulation.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
    has_system_secrets: bool,
}

/// One step of splitmix64. Maps each value of a counter to a well-mixed word.
pub const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

impl Random {
    /// A generator whose sequence depends on `seed` only.
    pub const fn new(seed: u64) -> Self {
        let first = mix(seed);
        let second = mix(first);
        let third = mix(second);
        Self { state: [first, second, third, mix(third)], has_system_secrets: false }
    }

    /// A generator for a thread of a real node: its secrets are the operating system's.
    pub(crate) const fn with_system_secrets(seed: u64) -> Self {
        Self { has_system_secrets: true, ..Self::new(seed) }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ b << 17, d.rotate_left(45)];
        result
    }

    /// A number below `bound`; 0 if `bound` is 0. The distribution is not exactly uniform, which does not
    /// matter for scheduling.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((self.word() as u128 * bound as u128) >> 64) as u64
    }

    /// True with probability 1 / `chances`; never if `chances` is 0.
    pub fn one_in(&mut self, chances: u64) -> bool {
        chances > 0 && self.below(chances) == 0
    }

    /// Fills `target` with random bytes.
    pub fn bytes(&mut self, target: &mut [u8]) {
        for chunk in target.chunks_mut(8) {
            let word = self.word().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// Fills `target` with bytes that nobody can guess, for passwords, salts and challenges. A system call on
    /// a real node.
    pub fn secret(&mut self, target: &mut [u8]) {
        if !self.has_system_secrets {
            return self.bytes(target);
        }
        let mut filled = 0;
        while filled < target.len() {
            match getrandom(&mut target[filled..], GetRandomFlags::empty()) {
                Ok(length) => filled += length,
                Err(error) => require!(error == Errno::INTR, "Linux has random bytes from version 3.17 on"),
            }
        }
    }

    /// 64 random bits that nobody can guess.
    pub fn secret_word(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.secret(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_sequences_and_others_differ() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..16).map(|_| random.word()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 5];
        for _ in 0..1_000 {
            seen[random.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn secrets_of_a_real_node_do_not_follow_from_its_seed() {
        let draw = |mut random: Random| [random.secret_word(), random.secret_word(), random.word()];
        let simulated = draw(Random::new(7));
        assert_eq!(draw(Random::new(7)), simulated);
        let [one, other] = [(); 2].map(|()| draw(Random::with_system_secrets(7)));
        assert!(one[..2].iter().all(|word| !simulated.contains(word) && !other.contains(word)));
        assert_eq!(one[2], other[2], "other words do");
        assert_eq!(one[2], simulated[0]);
    }

    #[test]
    fn bytes_can_fill_a_partial_word() {
        let mut bytes = [0u8; 21];
        Random::new(3).bytes(&mut bytes);
        assert!(bytes[16..].iter().any(|&byte| byte != 0));
    }
}
