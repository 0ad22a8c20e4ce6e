//! Hot path: at most 10 instructions per execution.
//!
//! The decoded parameters of the current execution, in the form in which they are sent to partitions.

use junctor_expression::ParametersBuilder;

/// Maximum capacity in bytes that is kept between executions.
const BYTES_KEPT: usize = 64 * 1024;

/// The parameters of the current execution. All sessions of a block share one instance, because thousands of
/// idle sessions must not keep a buffer each.
#[derive(Debug, Default)]
pub(crate) struct DecodedParameters {
    pub builder: ParametersBuilder,
    /// Encoded as `junctor_expression::Parameters`.
    pub bytes: Vec<u8>,
}

impl DecodedParameters {
    /// Removes the parameters but keeps the memory.
    pub fn clear(&mut self) {
        self.builder.clear();
        self.bytes.clear();
    }

    /// Frees the memory if the parameters were very long. Must be called after each execution, whether or not
    /// it succeeded.
    pub fn trim(&mut self) {
        if self.bytes.capacity().max(self.builder.capacity()) > BYTES_KEPT {
            *self = DecodedParameters::default();
        }
    }
}
