use std::sync::Arc;

use junctor_expression::{Expression, Node, ResultType};
use junctor_kernel::simulated::{NodeEnd, Simulation, SimulationOptions};
use junctor_kernel::{
    Address, BufferPool, Context, DecodeError, Duration, EncodeError, Endpoints, Host, NodeId, NodeLayout, Outbox,
    ThreadAssignment, WireSignal, WorldEvent,
};
use junctor_model::id::ColumnNumber;
use junctor_model::schema::TableLayout;
use proptest::prelude::*;

use super::definition::{LinkDecoder, LinkEncoder};
use super::sample::{COLUMNS, Draw, layout};
use super::{DEFINITIONS_MAX, Reader, VERSION, Wire, Writer};
use crate::Module;
use crate::inbox::*;
use crate::program::{Access, Output, ReadProgram};
use crate::read_rows::{ReadRows, ReadRowsReply, Resume};

/// The two ends of a link in one place, with the receiver's pool.
struct Link {
    encoder: LinkEncoder,
    decoder: LinkDecoder,
    buffers: BufferPool,
}

impl Link {
    fn new() -> Link {
        let buffers = BufferPool::new(1 << 20);
        Link { encoder: LinkEncoder::new(VERSION), decoder: LinkDecoder::new(VERSION), buffers }
    }

    fn encode(&mut self, signal: &Signal) -> Vec<u8> {
        let mut bytes = Vec::new();
        signal.encode(&mut self.encoder, &mut bytes).expect("the link has the newest version");
        bytes
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<Signal, DecodeError> {
        Signal::decode(&mut self.decoder, bytes, &mut self.buffers)
    }
}

/// For each signal that crosses nodes, a function that makes random ones.
fn samplers() -> Vec<fn(&mut Draw) -> Signal> {
    let inboxes = [SqlSignal::samplers, TcSignal::samplers, LdmSignal::samplers, QuerySignal::samplers];
    let others = [MainSignal::samplers, RecvSignal::samplers, LogSignal::samplers];
    inboxes.iter().chain(&others).flat_map(|samplers| samplers()).collect()
}

/// A random value of a random signal.
fn sample(seed: u64) -> Signal {
    let samplers = samplers();
    let draw = &mut Draw::new(seed);
    samplers[draw.below(samplers.len() as u64) as usize](draw)
}

#[test]
fn each_signal_decodes_to_itself() {
    let mut link = Link::new();
    for sampler in samplers() {
        for seed in 0..4 {
            let signal = sampler(&mut Draw::new(seed));
            let bytes = link.encode(&signal);
            let decoded = link.decode(&bytes).unwrap_or_else(|error| panic!("{error} in {signal:?}"));
            assert_eq!(format!("{decoded:?}"), format!("{signal:?}"));
        }
    }
}

proptest! {
    #[test]
    fn any_signal_decodes_to_itself(seed: u64) {
        let mut link = Link::new();
        let signal = sample(seed);
        let bytes = link.encode(&signal);
        let decoded = link.decode(&bytes);
        prop_assert!(decoded.is_ok(), "{decoded:?} of {signal:?}");
        prop_assert_eq!(format!("{:?}", decoded.unwrap()), format!("{signal:?}"));
    }

    #[test]
    fn a_truncated_signal_is_refused(seed: u64, length: prop::sample::Index) {
        let bytes = Link::new().encode(&sample(seed));
        let length = length.index(bytes.len());
        prop_assert!(Link::new().decode(&bytes[..length]).is_err());
    }

    #[test]
    fn a_damaged_signal_is_refused_or_decoded(seed: u64, damage in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4)) {
        let mut link = Link::new();
        let mut bytes = link.encode(&sample(seed));
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = link.decode(&bytes);
    }

    #[test]
    fn random_bytes_are_refused_or_decoded(mut bytes: Vec<u8>, inbox in 0u8..7, number in 0u8..32) {
        let _ = Link::new().decode(&bytes);
        bytes.splice(0..0, [number, inbox]);
        let _ = Link::new().decode(&bytes);
    }
}

/// A program that reads column `column` of a table.
fn read_program(table: &Arc<TableLayout>, column: u16) -> Arc<ReadProgram> {
    let mut program = ReadProgram::new(table, Access::PrimaryKeys, Output::Images);
    program.filter = Some(Expression {
        node: Node::Column { index: ColumnNumber(column), name: format!("c{column}").into() },
        result: ResultType::integer(false, 11),
    });
    Arc::new(program)
}

fn read_of(program: &Arc<ReadProgram>) -> Signal {
    let mut request = ReadRows::sample(&mut Draw::new(1));
    request.program = Arc::clone(program);
    Signal::Ldm(LdmSignal::ReadRows(request))
}

fn program_of(signal: Signal) -> Arc<ReadProgram> {
    match signal {
        Signal::Ldm(LdmSignal::ReadRows(request)) => request.program,
        other => panic!("no read: {other:?}"),
    }
}

#[test]
fn a_program_is_sent_once_and_shared_by_its_signals() {
    let mut link = Link::new();
    let program = read_program(&layout(), 1);
    let first = link.encode(&read_of(&program));
    let second = link.encode(&read_of(&program));
    assert!(first.len() > second.len() + 300, "{} and {} bytes", first.len(), second.len());
    let shared = program_of(link.decode(&first).unwrap());
    assert!(Arc::ptr_eq(&shared, &program_of(link.decode(&second).unwrap())));
    assert_eq!(format!("{shared:?}"), format!("{program:?}"));
}

#[test]
fn two_programs_of_a_table_share_its_layout() {
    let mut link = Link::new();
    let table = layout();
    let programs = [0, 1].map(|column| read_program(&table, column));
    let [first, second] = programs.map(|program| {
        let bytes = link.encode(&read_of(&program));
        program_of(link.decode(&bytes).unwrap())
    });
    assert!(Arc::ptr_eq(&first.table, &second.table));
}

#[test]
fn a_forgotten_program_is_defined_again() {
    let mut link = Link::new();
    let table = layout();
    let first = read_program(&table, 0);
    let length = |link: &mut Link| {
        let bytes = link.encode(&read_of(&first));
        assert_eq!(format!("{:?}", program_of(link.decode(&bytes).unwrap())), format!("{first:?}"));
        bytes.len()
    };
    let (defined, known) = (length(&mut link), length(&mut link));
    for number in 0..DEFINITIONS_MAX {
        let bytes = link.encode(&read_of(&read_program(&table, number as u16 % COLUMNS)));
        link.decode(&bytes).unwrap();
    }
    let again = length(&mut link);
    assert!(again > known && again <= defined);
}

#[test]
fn ends_of_a_new_link_know_nothing_of_an_earlier_one() {
    let mut link = Link::new();
    let program = read_program(&layout(), 1);
    let first = link.encode(&read_of(&program));
    link.decode(&first).unwrap();
    let second = link.encode(&read_of(&program));
    let mut reset = Link::new();
    assert!(matches!(reset.decode(&second), Err(DecodeError::UnknownDefinition(_))));
    assert_eq!(Link::new().encode(&read_of(&program)), first);
}

#[test]
fn a_column_that_the_table_does_not_have_is_refused() {
    let mut link = Link::new();
    let bytes = link.encode(&read_of(&read_program(&layout(), COLUMNS)));
    assert!(matches!(link.decode(&bytes), Err(DecodeError::Invalid("column"))));
}

#[test]
fn an_expression_that_is_nested_too_deeply_is_refused() {
    // Without optimisation, a level takes several kilobytes of stack.
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(check_nesting).expect("a thread starts");
    thread.join().expect("the check succeeds");
}

fn check_nesting() {
    let mut program = ReadProgram::clone(&read_program(&layout(), 1));
    let leaf = program.filter.clone().expect("the program has a filter");
    let nested = |levels: usize| {
        let not = |inner: Expression| Expression { result: inner.result, node: Node::Not(Box::new(inner)) };
        (0..levels).fold(leaf.clone(), |inner, _| not(inner))
    };
    let levels_max = super::expression::LEVELS_MAX as usize;
    program.filter = Some(nested(levels_max - 1));
    let mut bytes = encode_at(VERSION, &program).unwrap();
    assert!(decode_at::<ReadProgram>(VERSION, &bytes).is_ok());
    program.filter = Some(nested(levels_max));
    assert_eq!(encode_at(VERSION, &program), Err(EncodeError::TooLong));
    // A peer that sends more levels all the same: the outermost one twice.
    let outermost = encode_at(VERSION, &nested(1)).unwrap();
    let level = &outermost[..outermost.len() - encode_at(VERSION, &leaf).unwrap().len()];
    let place = bytes.windows(level.len()).position(|window| window == level).expect("the filter has levels");
    bytes.splice(place..place, level.iter().copied());
    assert_eq!(decode_at::<ReadProgram>(VERSION, &bytes).err(), Some(DecodeError::TooDeep));
}

#[test]
#[should_panic(expected = "ContinueWork is local")]
fn a_local_signal_cannot_be_encoded() {
    junctor_kernel::invariant::panic_on_failure();
    let signal = Signal::Ldm(LdmSignal::ContinueWork(ContinueWork { work: 1 }));
    Link::new().encode(&signal);
}

#[test]
fn the_input_of_a_read_returns_only_if_the_read_goes_on() {
    let mut link = Link::new();
    let mut reply = ReadRowsReply::sample(&mut Draw::new(1));
    reply.input = vec![7; 100];
    for resume in [None, Some(Box::new(Resume::sample(&mut Draw::new(1))))] {
        reply.resume = resume;
        let goes_on = reply.resume.is_some();
        let signal = Signal::Sql(SqlSignal::ReadRowsReply(reply));
        let bytes = link.encode(&signal);
        let Ok(Signal::Sql(SqlSignal::ReadRowsReply(decoded))) = link.decode(&bytes) else { panic!("no reply") };
        assert_eq!(decoded.input.len(), if goes_on { 100 } else { 0 });
        let Signal::Sql(SqlSignal::ReadRowsReply(sent)) = signal else { panic!("no reply") };
        reply = sent;
    }
}

#[test]
fn the_buffers_of_a_sent_signal_return_to_the_pool() {
    let mut request = ReadRows::sample(&mut Draw::new(1));
    (request.input, request.output) = (Vec::with_capacity(512), Vec::with_capacity(4096));
    let mut buffers = BufferPool::new(1 << 20);
    Signal::Ldm(LdmSignal::ReadRows(request)).recycle(&mut buffers);
    assert_eq!(buffers.idle_bytes(), 512 + 4096);
}

/// A signal as a later release declares it, beside the same signal of an earlier release.
mod release_2 {
    #[derive(Debug, Default, PartialEq)]
    pub(super) struct Greet {
        pub number: u32,
        pub tone: Option<Tone>,
        pub urgent: bool,
    }

    #[derive(Debug, PartialEq)]
    pub(super) enum Tone {
        Plain,
        Loud(u8),
    }

    layout! { Greet { number, tone, urgent [since 2] } }
    choices! { Tone { 0 Plain; 1 Loud(volume) since 2; } }
}

mod release_1 {
    #[derive(Debug, Default, PartialEq)]
    pub(super) struct Greet {
        pub number: u32,
        pub tone: Option<Tone>,
    }

    #[derive(Debug, PartialEq)]
    pub(super) enum Tone {
        Plain,
    }

    layout! { Greet { number, tone } }
    choices! { Tone { 0 Plain; } }
}

/// A later release that forgets the first versions, and adds a type.
mod release_3 {
    #[derive(Debug, Default, PartialEq)]
    pub(super) struct Greet {
        pub number: u32,
        pub tone: Option<Tone>,
        pub urgent: bool,
        pub place: Option<Place>,
    }

    #[derive(Debug, PartialEq)]
    pub(super) enum Tone {
        Plain,
        Loud(u8),
    }

    #[derive(Debug, PartialEq)]
    pub(super) struct Place {
        pub number: u32,
    }

    layout! { Greet { number, tone, urgent, place [since 3] } }
    choices! { Tone { 0 Plain; 1 Loud(volume); } }
    layout! { Place { number } }
}

#[test]
fn two_releases_know_the_same_layouts_of_the_versions_that_both_speak() {
    use super::page::layouts_of;
    assert_eq!(layouts_of::<release_1::Greet>(1), layouts_of::<release_2::Greet>(1));
    assert_ne!(layouts_of::<release_2::Greet>(1), layouts_of::<release_2::Greet>(2));
    assert_eq!(layouts_of::<release_2::Greet>(2), layouts_of::<release_3::Greet>(2));
    assert_ne!(layouts_of::<release_3::Greet>(2), layouts_of::<release_3::Greet>(3));
}

#[test]
fn layouts_have_the_types_within_signals_and_no_signals_of_one_node() {
    use super::page::layouts_text;
    let text = layouts_text(super::VERSION);
    assert!(text.contains("NodeReport") && text.contains("is_stopping: bool") && text.contains("had_files: bool"));
    assert!(!text.contains("BeginEpoch"), "a signal within a node");
}

fn encode_at<T: Wire>(version: u16, value: &T) -> Result<Vec<u8>, EncodeError> {
    let (mut link, mut bytes) = (LinkEncoder::new(version), Vec::new());
    let mut writer = Writer::new(&mut link, &mut bytes);
    value.encode(&mut writer);
    writer.end().map(|()| bytes)
}

fn decode_at<T: Wire>(version: u16, bytes: &[u8]) -> Result<T, DecodeError> {
    let (mut link, mut buffers) = (LinkDecoder::new(version), BufferPool::new(0));
    let mut reader = Reader::new(&mut link, bytes, &mut buffers);
    let value = T::decode(&mut reader)?;
    reader.end().map(|()| value)
}

#[test]
fn a_new_field_is_left_out_for_an_earlier_release_and_has_its_default_from_it() {
    let new = release_2::Greet { number: 7, tone: Some(release_2::Tone::Plain), urgent: true };
    let old = release_1::Greet { number: 7, tone: Some(release_1::Tone::Plain) };
    assert_eq!(decode_at(1, &encode_at(1, &new).unwrap()), Ok(old));
    let old = release_1::Greet { number: 8, tone: None };
    let expected = release_2::Greet { number: 8, ..release_2::Greet::default() };
    assert_eq!(decode_at(1, &encode_at(1, &old).unwrap()), Ok(expected));
    assert_eq!(decode_at(2, &encode_at(2, &new).unwrap()), Ok(new));
}

#[test]
fn what_an_earlier_release_does_not_know_is_refused_before_it_is_sent() {
    let loud = release_2::Greet { tone: Some(release_2::Tone::Loud(9)), ..release_2::Greet::default() };
    let refusal = EncodeError::UnknownToPeer { name: "Tone::Loud", since: 2, version: 1 };
    assert_eq!(encode_at(1, &loud), Err(refusal));
    assert_eq!(decode_at(2, &encode_at(2, &loud).unwrap()), Ok(loud));
    let tag = DecodeError::UnknownTag { name: "Tone", tag: 1 };
    assert_eq!(decode_at::<release_2::Tone>(1, &[1, 9]), Err(tag));
}

#[test]
fn a_refused_signal_leaves_no_definition_behind() {
    let mut link = Link::new();
    let programs = [0, 1, 2].map(|column| read_program(&layout(), column));
    let mut bytes = link.encode(&read_of(&programs[0]));
    link.decode(&bytes).unwrap();
    bytes.clear();
    let mut writer = Writer::new(&mut link.encoder, &mut bytes);
    programs[1].encode(&mut writer);
    writer.needs("this test", VERSION + 1);
    assert!(writer.end().is_err() && bytes.is_empty());
    for program in [&programs[1], &programs[2], &programs[0]] {
        let bytes = link.encode(&read_of(program));
        assert_eq!(format!("{:?}", program_of(link.decode(&bytes).unwrap())), format!("{program:?}"));
    }
}

#[test]
fn numbers_of_signals_are_used_once() {
    let mut link = Link::new();
    let number = |sampler: fn(&mut Draw) -> Signal| link.encode(&sampler(&mut Draw::new(1)))[..2].to_vec();
    let numbers: Vec<_> = samplers().into_iter().map(number).collect();
    let unique: std::collections::BTreeSet<_> = numbers.iter().collect();
    assert_eq!(numbers.len(), unique.len());
}

#[test]
fn replies_of_the_data_plane_are_for_sql_and_for_main() {
    let receivers = |name: &str| -> Vec<Module> {
        let mut signals = samplers().into_iter().map(|sampler| sampler(&mut Draw::new(1)));
        let signal = signals.find(|signal| junctor_kernel::Signal::name(signal) == name).unwrap();
        Module::ALL.into_iter().filter(|module| signal.is_for((*module).into())).collect()
    };
    for reply in ["ReadRowsReply", "ExecuteStatementReply", "EndTransactionReply", "UseUserLockReply"] {
        assert_eq!(receivers(reply), [Module::Main, Module::Sql], "{reply}");
    }
    // The gateway of main has no sessions, and needs no globals or catalogs from itself.
    assert_eq!(receivers("ChangeSchemaReply"), [Module::Sql]);
    assert_eq!(receivers("ApplyGlobals"), [Module::Sql]);
}

/// The blocks of one node of two. Main of node 1 sends every signal to the blocks of node 2.
struct Exchange {
    node: NodeId,
    seen: Vec<String>,
}

/// A few random values of each signal that crosses nodes, with each module that handles the signal.
fn signals_to_exchange() -> impl Iterator<Item = (Module, Signal)> {
    let each = (0..4).flat_map(|seed| samplers().into_iter().map(move |sampler| (seed, sampler)));
    each.flat_map(|(seed, sampler)| {
        let signal = sampler(&mut Draw::new(seed));
        let receivers: Vec<Module> = Module::ALL.into_iter().filter(|module| signal.is_for((*module).into())).collect();
        assert!(!receivers.is_empty(), "a block handles {signal:?}");
        receivers.into_iter().map(move |module| (module, sampler(&mut Draw::new(seed))))
    })
}

impl Host<Signal> for Exchange {
    fn handle(&mut self, endpoints: Endpoints, signal: Signal, _: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        let is_start = matches!(signal, Signal::World(WorldEvent::Started));
        if is_start && (self.node, Module::of(endpoints.to.module)) == (NodeId(1), Module::Main) {
            for (module, signal) in signals_to_exchange() {
                outbox.send(Address::new(NodeId(2), module, 0), signal);
            }
        } else if !is_start {
            self.seen.push(format!("{} {signal:?}", Module::of(endpoints.to.module)));
        }
    }
}

#[test]
fn two_simulated_nodes_exchange_every_signal_also_after_a_restart() {
    let modules = [Module::Main, Module::Tc, Module::Ldm, Module::Query, Module::Sql].map(|module| (module, 0u16));
    let layout = NodeLayout::new(&[modules.as_slice()]);
    let make_host = |assignment: ThreadAssignment| Exchange { node: assignment.node, seen: Vec::new() };
    let mut simulation = Simulation::new(SimulationOptions::new(1), make_host);
    let nodes = [simulation.add_node(&layout).unwrap(), simulation.add_node(&layout).unwrap()];
    let mut expected: Vec<String> =
        signals_to_exchange().map(|(module, signal)| format!("{module} {signal:?}")).collect();
    expected.sort();
    for _ in 0..2 {
        let sent = expected.len();
        let is_there = |simulation: &mut Simulation<Signal, Exchange>| {
            simulation.host_mut(nodes[1], 0).is_some_and(|host| host.seen.len() == sent)
        };
        assert!(simulation.run_until(Duration::from_seconds(60), is_there));
        let mut seen = std::mem::take(&mut simulation.host_mut(nodes[1], 0).unwrap().seen);
        seen.sort();
        assert_eq!(seen, expected);
        // The sender begins again, and with it the link.
        simulation.crash(nodes[0], NodeEnd::Process);
        simulation.restart(nodes[0]);
    }
}
