//! Hot path: 14 instructions.
//!
//! Finds the words of a hash bucket that equal a hash. Unsafe: two loads into vector registers, inside the
//! borrowed array.

/// A bit for each of the eight words, set if the word equals the hash. Compares all words at once.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn equal_words(words: &[u8; 32], hash: u32) -> u32 {
    use std::arch::x86_64::{_mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_ps, _mm_set1_epi32};
    // SAFETY: every processor of this architecture has SSE2. Both loads are inside `words` and need no
    // alignment.
    unsafe {
        let hash = _mm_set1_epi32(hash as i32);
        let halves = [0, 16].map(|at| _mm_cmpeq_epi32(_mm_loadu_si128(words.as_ptr().add(at).cast()), hash));
        let [low, high] = halves.map(|equal| _mm_movemask_ps(_mm_castsi128_ps(equal)) as u32);
        low | high << 4
    }
}

/// A bit for each of the eight words, set if the word equals the hash.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn equal_words(words: &[u8; 32], hash: u32) -> u32 {
    one_by_one(words, hash)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn one_by_one(words: &[u8; 32], hash: u32) -> u32 {
    let equal = words.as_chunks::<4>().0.iter().map(|word| u32::from(u32::from_le_bytes(*word) == hash));
    equal.rev().fold(0, |bits, is_equal| bits << 1 | is_equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comparison_finds_every_set_of_equal_words() {
        for bits in 0..256u32 {
            let mut words = [0; 32];
            for (at, word) in words.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                let differs = bits >> at & 1 == 0;
                // Unequal words differ in a single bit, at another position in each word.
                *word = (0x8000_0001u32 ^ (u32::from(differs) << (at * 4))).to_le_bytes();
            }
            assert_eq!(equal_words(&words, 0x8000_0001), bits);
            assert_eq!(one_by_one(&words, 0x8000_0001), bits);
        }
    }
}
