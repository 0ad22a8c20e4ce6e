//! Hot path, budget 10 instructions an execution: the decoded parameters of the current execution, in the
//! form in which they are sent to the partitions.

use junctor_expression::ParametersBuilder;

/// Capacity in bytes that is kept between executions.
const BYTES_KEPT: usize = 64 * 1024;

/// The parameters of the current execution, decoded from a protocol's form. All sessions of a block share one
/// instance, because thousands of idle sessions must not keep a copy each.
#[derive(Debug, Default)]
pub(crate) struct DecodedParameters {
    pub builder: ParametersBuilder,
    /// Encoded as `junctor_expression::Parameters`.
    pub bytes: Vec<u8>,
}

impl DecodedParameters {
    /// Removes the parameters and keeps the memory.
    pub fn clear(&mut self) {
        self.builder.clear();
        self.bytes.clear();
    }

    /// Frees the memory of very long parameters. Must be called after the execution, whether or not it
    /// succeeded.
    pub fn trim(&mut self) {
        if self.bytes.capacity().max(self.builder.capacity()) > BYTES_KEPT {
            *self = DecodedParameters::default();
        }
    }
}
