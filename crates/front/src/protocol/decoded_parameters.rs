//! Hot path, budget 10 instructions an execution: the parameters of the execution at hand, as values that
//! travel to the rows.

use junctor_expression::ParametersBuilder;

/// Capacity in bytes that is kept between executions.
const BYTES_KEPT: usize = 64 * 1024;

/// The parameters of the execution at hand, decoded from a protocol's form. All sessions of a block share
/// one, because thousands of idle sessions must not keep a copy each.
#[derive(Debug, Default)]
pub(crate) struct DecodedParameters {
    pub builder: ParametersBuilder,
    /// In the form of `junctor_expression::Parameters`.
    pub bytes: Vec<u8>,
}

impl DecodedParameters {
    /// Forgets the parameters and keeps the memory.
    pub fn clear(&mut self) {
        self.builder.clear();
        self.bytes.clear();
    }

    /// Frees the memory of very long parameters. Call it when they were executed with, or refused.
    pub fn trim(&mut self) {
        if self.bytes.capacity().max(self.builder.capacity()) > BYTES_KEPT {
            *self = DecodedParameters::default();
        }
    }
}
