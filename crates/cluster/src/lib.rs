//! The control plane: the blocks main and rep.
