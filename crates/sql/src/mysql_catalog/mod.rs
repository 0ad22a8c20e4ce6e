//! What MySQL clients ask the server about itself: SHOW and the virtual tables, system and user variables.

pub mod show;
pub mod variable;
