//! The named placements: the fixed setups that experiments compare with the automatic one.

/// A named placement and the `ThreadConfig` text that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Name in reports.
    pub name: &'static str,
    /// The text, without CPU binding.
    pub thread_config: String,
}

/// Numbers of threads that have one module each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SeparateThreads {
    pub recv: u32,
    pub sql: u32,
    pub tc: u32,
    pub ldm: u32,
    pub query: u32,
    pub send: u32,
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

    /// Receive threads with tc and sql (the first also with main and rep), ldm threads, query threads and an
    /// io thread.
    pub fn ldm_setup(recv: u32, ldm: u32, query: u32) -> Self {
        let folded = "main={count=0},rep={count=0}";
        let threads = format!("ldm={{count={ldm}}},query={{count={query}}},recv={{count={recv}}}");
        Self { name: "ldm_setup", thread_config: format!("{folded},{threads}") }
    }

    /// One thread each for main, rep and io, and these numbers of threads for the other modules.
    pub fn all_separate(threads: SeparateThreads) -> Self {
        let SeparateThreads { recv, sql, tc, ldm, query, send } = threads;
        let coordination = "main={count=1},rep={count=1},io={count=1}";
        let data = format!("tc={{count={tc}}},ldm={{count={ldm}}},query={{count={query}}}");
        let sessions = format!("recv={{count={recv}}},send={{count={send}}},sql={{count={sql}}}");
        Self { name: "all_separate", thread_config: format!("{coordination},{data},{sessions}") }
    }
}
