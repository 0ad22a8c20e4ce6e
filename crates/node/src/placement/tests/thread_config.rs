use proptest::prelude::*;

use crate::placement::{
    CpuList, EntryBinding, Module, Placement, PlacementError, SeparateThreads, ThreadConfig, ThreadEntry, ThreadKind,
};

pub(super) const SEED_LDM: &str = "ldm={count=1,cpubind=0},query={count=1,cpubind=1},tc={count=0,cpubind=2},recv={count=2,cpubind=32,33},send={count=0,cpubind=35},main={count=0,cpubind=36},io={count=1,cpubind=33}";
pub(super) const SEED_RECEIVE: &str = "ldm={count=0,cpubind=0},query={count=0,cpubind=3},tc={count=0,cpubind=2},recv={count=4,cpubind=0,1,32,33},send={count=0,cpubind=35},main={count=0,cpubind=36},io={count=1,cpubind=33}";

fn error(text: &str) -> PlacementError {
    ThreadConfig::parse(text).expect_err(text)
}

/// `marked` is a text with `^` before the character at which the error must point.
#[track_caller]
fn points_at(marked: &str, message_part: &str) {
    let offset = marked.find('^').unwrap();
    let text = marked.replacen('^', "", 1);
    let error = error(&text);
    assert_eq!(error.offset, offset, "{}", error.render(&text));
    assert!(error.message.contains(message_part), "{}", error.render(&text));
}

#[test]
fn both_configurations_of_the_benchmark_kit_are_accepted() {
    let config = ThreadConfig::parse(SEED_LDM).unwrap();
    assert_eq!(config.counts().to_string(), "ldm=1 query=1 recv=2 io=1");
    assert_eq!(
        config.notices(),
        [
            "tc: cpubind=2 is ignored because count is 0",
            "send: cpubind=35 is ignored because count is 0",
            "main: cpubind=36 is ignored because count is 0",
            "recv and io share CPU 33",
        ]
    );
    let config = ThreadConfig::parse(SEED_RECEIVE).unwrap();
    assert_eq!(config.counts().to_string(), "recv=4 io=1");
    assert_eq!(config.notices().len(), 6);
    assert_eq!(config.notices().last().unwrap(), "recv and io share CPU 33");
}

#[test]
fn an_error_points_at_the_offending_character() {
    points_at("^", "expected a thread type");
    points_at("^foo", "expected a thread type");
    points_at("ldm, ^foo", "expected a thread type");
    points_at("ldm=^3", "expected '{'");
    points_at("ldm={^}", "expected a parameter");
    points_at("ldm={count=2,^colour=3}", "expected a parameter");
    points_at("ldm={count^}", "expected '='");
    points_at("ldm={count=^}", "expected a number");
    points_at("ldm={count=^-1}", "expected a number");
    points_at("ldm={count=^333}", "from 0 to 332");
    points_at("ldm={count=^99999999999999999999}", "from 0 to 332");
    points_at("ldm={count=2^", "expected ',' or '}'");
    points_at("ldm={count=2}^ldm", "expected ','");
    points_at("tc={count=100},tc={count=^61}", "161 threads in all");
    points_at("rep,^rep", "2 threads in all");
    points_at("recv={count=^0}", "at least one thread");
    points_at("ldm={cpubind=0-3,^2}", "CPU 2 is named twice");
    points_at("ldm={cpubind=3-^1}", "runs backwards");
    points_at("ldm={cpubind=^8192}", "from 0 to 8191");
    points_at("ldm={count=3,cpubind=^0,1}", "each of the 3 threads");
    points_at("ldm={cpubind=^0,1,count=3}", "each of the 3 threads");
    points_at("ldm={count=1,^count=1}", "given twice");
    points_at("ldm={cpubind=1,^cpuset=2}", "exclude each other");
    points_at("ldm={realtime=1,^thread_prio=2}", "exclude each other");
    points_at("ldm={thread_prio=2,^realtime=0}", "exclude each other");
    points_at("ldm={thread_prio=^11}", "from 0 to 10");
    points_at("ldm={spintime=^9001}", "from 0 to 9000");
    points_at("io={^spintime=1}", "not allowed");
    points_at("recv={^nosend=1}", "not allowed");
    points_at("idxbld={^realtime=1}", "not allowed");
    points_at("ldm={^cpubind_exclusive=1}", "Solaris");
    points_at("ldm={^cpuset_exclusive=1}", "Solaris");
}

#[test]
fn a_trailing_comma_is_refused_where_it_stands() {
    points_at("ldm^,", "trailing comma");
    points_at("ldm={count=1}^, ", "trailing comma");
    points_at("ldm={count=1^,}", "trailing comma");
    points_at("ldm={cpubind=1,2^,}", "trailing comma");
    points_at("ldm={cpubind=1,2^, ", "trailing comma");
}

#[test]
fn a_rendered_error_has_its_caret_under_the_character() {
    let text = "ldm={count=1},foo";
    assert_eq!(
        error(text).render(text),
        format!("ThreadConfig: {}\n  ldm={{count=1}},foo\n                ^", error(text).message)
    );
    let text = "ldm,\n\tl\u{e4}m={count=1}";
    let rendered = error(text).render(text);
    assert!(rendered.ends_with("\n   l\u{e4}m={count=1}\n   ^"), "{rendered}");
}

#[test]
fn white_space_and_capital_letters_do_not_matter() {
    let spaced = ThreadConfig::parse(" LDM = { Count = 2 , cpubind = 0 - 1 , 4 } ,\n recv ").unwrap();
    assert_eq!(spaced.to_string(), "ldm={count=2,cpubind=0-1,4},recv");
}

#[test]
fn several_entries_of_a_type_add_up() {
    let config = ThreadConfig::parse("ldm={count=2,cpubind=0,1},ldm={count=3,cpuset=4-5},tc").unwrap();
    assert_eq!(config.counts().get(Module::Ldm), 5);
    assert_eq!(config.counts().get(Module::Tc), 1);
}

#[test]
fn modules_that_are_not_named_get_their_defaults() {
    let counts = |text: &str| ThreadConfig::parse(text).unwrap().counts().to_string();
    assert_eq!(counts("tc={count=0}"), "main=1 rep=1 ldm=1 recv=1 io=1");
    assert_eq!(counts("main={count=0}"), "ldm=1 recv=1 io=1");
    assert_eq!(counts("rep={count=0}"), "main=1 ldm=1 recv=1 io=1");
    assert_eq!(counts("main={count=0},rep"), "rep=1 ldm=1 recv=1 io=1");
    assert_eq!(counts("main={count=2}"), "main=1 rep=1 ldm=1 recv=1 io=1");
}

#[test]
fn settings_without_effect_are_noticed() {
    let notices = |text: &str| ThreadConfig::parse(text).unwrap().notices();
    assert_eq!(notices("main={count=2}"), ["main: there is one instance of main; its second thread is not started"]);
    assert_eq!(notices("ldm={cpubind=0-3}"), ["ldm: cpubind has more CPUs than threads; CPU 1-3 is not used"]);
    assert_eq!(notices("ldm={count=0,cpuset=0}"), ["ldm: cpuset=0 is ignored because count is 0"]);
    assert_eq!(notices("tc={spintime=9000}"), ["tc: spintime is cut to 500 microseconds"]);
    assert_eq!(
        notices("watchdog={cpubind=0},idxbld,recover={count=4},ldm={cpubind=0}"),
        [
            "watchdog: accepted and ignored; this node has no watchdog threads",
            "idxbld: accepted and ignored; this node has no idxbld threads",
            "recover: accepted and ignored; this node has no recover threads",
        ]
    );
}

#[test]
fn an_overlap_names_both_entries_and_every_shared_cpu() {
    let config = ThreadConfig::parse("ldm={cpuset=0-4},tc={cpuset=2-6},ldm={cpuset=4,8}").unwrap();
    assert_eq!(config.notices(), ["ldm and tc share CPU 2-4", "ldm and ldm share CPU 4"]);
}

#[test]
fn the_named_placements_parse() {
    let counts = |placement: Placement| ThreadConfig::parse(&placement.thread_config).unwrap().counts().to_string();
    assert_eq!(counts(Placement::all_in_one()), "recv=1");
    assert_eq!(counts(Placement::receive(4)), "recv=4 io=1");
    assert_eq!(counts(Placement::ldm_setup(2, 1, 1)), "ldm=1 query=1 recv=2 io=1");
    assert_eq!(
        counts(Placement::all_separate(SeparateThreads { recv: 1, sql: 2, tc: 3, ldm: 4, query: 5, send: 6 })),
        "main=1 rep=1 tc=3 ldm=4 query=5 recv=1 send=6 io=1 sql=2"
    );
}

fn any_list(least: usize) -> impl Strategy<Value = CpuList> {
    proptest::collection::btree_set(0_u32..64, least..16)
        .prop_flat_map(|numbers| Just(numbers.into_iter().collect::<Vec<_>>()).prop_shuffle())
        .prop_map(CpuList::new)
}

fn any_entry() -> impl Strategy<Value = ThreadEntry> {
    let kind = proptest::sample::select(ThreadKind::ALL.to_vec());
    let numbers = (proptest::option::of(0_u32..5), proptest::option::of(0_u32..=9_000));
    let flags = (any::<bool>(), proptest::option::of(any::<bool>()), 0_u8..3, 0_u8..=10);
    (kind, numbers, flags, any_list(5)).prop_map(|(kind, (count, spin_us), (set, nosend, urgency, level), cpus)| {
        let no_spin = matches!(kind, ThreadKind::Module(Module::Io) | ThreadKind::Watchdog | ThreadKind::IndexBuild);
        let sends = matches!(kind.name(), "main" | "rep" | "tc" | "ldm" | "sql");
        let count_most = if kind == ThreadKind::Module(Module::Main) { 1 } else { kind.count_max() };
        let count_least = u32::from(kind == ThreadKind::Module(Module::Recv));
        let urgency = if kind == ThreadKind::IndexBuild { 0 } else { urgency };
        ThreadEntry {
            kind,
            count: count.map(|count| count.clamp(count_least, count_most)),
            binding: Some(if set { EntryBinding::Set(cpus) } else { EntryBinding::Bind(cpus) }),
            spin_us: spin_us.filter(|_| !no_spin),
            realtime: (urgency == 1).then_some(level > 5),
            nosend: nosend.filter(|_| sends),
            thread_priority: (urgency == 2).then_some(level),
        }
    })
}

/// Configurations within all limits: each kind at most once, except ldm.
fn any_config() -> impl Strategy<Value = Vec<ThreadEntry>> {
    proptest::collection::vec(any_entry(), 1..12).prop_map(|mut entries| {
        let mut seen = Vec::new();
        entries.retain(|entry| {
            let first = !seen.contains(&entry.kind.name());
            seen.push(entry.kind.name());
            first || entry.kind == ThreadKind::Module(Module::Ldm)
        });
        entries
    })
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,60}") {
        if let Err(error) = ThreadConfig::parse(&text) {
            prop_assert!(error.offset <= text.len());
            prop_assert!(error.render(&text).ends_with('^'));
        }
    }

    #[test]
    fn no_sequence_of_grammar_tokens_makes_the_parser_panic(
        pieces in proptest::collection::vec(proptest::sample::select(vec![
            "ldm", "recv", "sql", "idxbld", "=", "{", "}", ",", "count", "cpubind", "cpuset", "spintime", "nosend",
            "realtime", "thread_prio", "0", "1", "17", "4294967296", "-", " ", "\n", "\u{e4}",
        ]), 0..40)
    ) {
        let text = pieces.concat();
        match ThreadConfig::parse(&text) {
            Ok(config) => {
                config.notices();
                prop_assert_eq!(ThreadConfig::parse(&config.to_string()), Ok(config));
            }
            Err(error) => {
                prop_assert!(error.offset <= text.len());
                prop_assert!(error.render(&text).ends_with('^'));
            }
        }
    }

    #[test]
    fn a_printed_configuration_parses_to_itself(entries in any_config()) {
        let text = entries.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let config = ThreadConfig::parse(&text).map_err(|error| TestCaseError::fail(error.render(&text)))?;
        prop_assert_eq!(config.entries(), &entries[..]);
        prop_assert_eq!(config.to_string(), text);
    }
}
