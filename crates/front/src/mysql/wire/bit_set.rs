//! The methods that the protocol's sets of flags share.

/// Implements a set of bits for a struct with one integer field: `from_bits`, `bits`, `contains` and `|`.
macro_rules! bit_set {
    ($name:ident, $integer:ty) => {
        impl $name {
            /// The set with exactly these bits.
            pub const fn from_bits(bits: $integer) -> Self {
                Self(bits)
            }

            /// The bits as they are sent.
            pub const fn bits(self) -> $integer {
                self.0
            }

            /// Whether this set contains every flag of `other`.
            #[inline]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    };
}

pub(super) use bit_set;
