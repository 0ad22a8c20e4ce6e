//! The named placements: the fixed setups that experiments compare with the automatic one.

/// A named placement and the `ThreadConfig` text that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Name in reports.
    pub name: &'static str,
    /// The text, without CPU binding.
    pub thread_config: String,
}

impl Placement {
    /// Everything in one thread, files too.
    pub fn all_in_one() -> Self {
        let thread_config = "main={count=0},rep={count=0},ldm={count=0},recv={count=1},io={count=0}".to_owned();
        Self { name: "all_in_one", thread_config }
    }

    /// `recv` receive threads that do everything, and an io thread.
    pub fn receive(recv: u32) -> Self {
        let thread_config = format!("main={{count=0}},rep={{count=0}},ldm={{count=0}},recv={{count={recv}}}");
        Self { name: "receive", thread_config }
    }

    /// Receive threads with tc and sql (the first also with main and rep), ldm threads, query threads and an io
    /// thread.
    pub fn ldm_setup(recv: u32, ldm: u32, query: u32) -> Self {
        let folded = "main={count=0},rep={count=0}";
        let threads = format!("ldm={{count={ldm}}},query={{count={query}}},recv={{count={recv}}}");
        Self { name: "ldm_setup", thread_config: format!("{folded},{threads}") }
    }

    /// One thread each for main, rep and io, and these numbers of threads for the other modules.
    pub fn all_separate(recv: u32, sql: u32, tc: u32, ldm: u32, query: u32, send: u32) -> Self {
        let coordination = "main={count=1},rep={count=1},io={count=1}";
        let data = format!("tc={{count={tc}}},ldm={{count={ldm}}},query={{count={query}}}");
        let sessions = format!("recv={{count={recv}}},send={{count={send}}},sql={{count={sql}}}");
        Self { name: "all_separate", thread_config: format!("{coordination},{data},{sessions}") }
    }
}
