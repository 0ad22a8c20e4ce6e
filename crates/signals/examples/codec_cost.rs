//! Encodes or decodes a signal many times, for counting instructions.
//!
//! Run `valgrind --tool=callgrind codec_cost encode read 2000`, and again with 1000. The difference is the
//! cost of 1000 signals. Directions are `encode` and `decode`; signals are `read`, `reply`, `write` and
//! `prepare`.

use std::hint::black_box;
use std::sync::Arc;

use junctor_kernel::{Address, Buffer, BufferPool, NodeId, WireSignal};
use junctor_model::id::{
    ColumnNumber, CommitNumber, Epoch, IndexId, PartitionId, StatementNumber, TableId, TransactionId,
};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, TableDefinition, TableLayout};
use junctor_model::types::DataType;
use junctor_signals::commit_transaction::PrepareTransaction;
use junctor_signals::execute_statement::Reading;
use junctor_signals::program::{Access, Output, ReadProgram, RowProtocol, WriteAction, WriteProgram};
use junctor_signals::read_rows::{BookedCost, OperationId, ReadRows, ReadRowsReply};
use junctor_signals::write_rows::WriteRows;
use junctor_signals::{LdmSignal, Module, Signal, SqlSignal};

fn signal(name: &str) -> Option<Signal> {
    let column = ColumnDefinition::new("id", DataType::integer(4, false));
    let primary =
        IndexDefinition::new(IndexId(0), "PRIMARY", IndexKind::Primary { ordered: true }, vec![ColumnNumber(0)]);
    let definition = TableDefinition::new(TableId(7), ("test", "t"), vec![column], vec![primary]);
    let table = Arc::new(TableLayout::new(definition));
    let partition = PartitionId { table: TableId(7), index: 3 };
    let reply_to = Address::new(NodeId(1), Module::Sql, 2);
    let transaction = TransactionId::new(1, 1, 77);
    Some(match name {
        "read" => Signal::Ldm(LdmSignal::ReadRows(ReadRows {
            operation: OperationId(1 << 32),
            reply_to,
            partition,
            protocol: RowProtocol::Text,
            rows_max: u32::MAX,
            warnings_max: 64,
            is_sampled: false,
            booked_cost: BookedCost::new(1, 2_000),
            program: Arc::new(ReadProgram::new(&table, Access::PrimaryKeys, Output::Images)),
            snapshot: CommitNumber(123_456),
            transaction: TransactionId::default(),
            input: vec![1; 18],
            output: Buffer::new(),
            resume: None,
        })),
        "reply" => Signal::Sql(SqlSignal::ReadRowsReply(ReadRowsReply {
            operation: OperationId(1 << 32),
            partition,
            rows: 1,
            service_ns: 0,
            booked_cost: BookedCost::new(1, 2_000),
            input: Buffer::new(),
            output: vec![1; 200],
            resume: None,
            diagnostics: None,
            error: None,
        })),
        "write" => Signal::Ldm(LdmSignal::WriteRows(WriteRows {
            operation: OperationId(1 << 32),
            reply_to,
            epoch: Epoch(1),
            transaction,
            statement: StatementNumber(1),
            first: StatementNumber(1),
            savepoint: StatementNumber(0),
            partition,
            protocol: RowProtocol::Text,
            reading: Reading::default(),
            one_phase: true,
            program: Arc::new(WriteProgram::new(&table, WriteAction::Insert, Access::PrimaryKeys)),
            input: vec![1; 200],
            output: Buffer::new(),
        })),
        "prepare" => {
            Signal::Ldm(LdmSignal::PrepareTransaction(PrepareTransaction { transaction, epoch: Epoch(0), reply_to }))
        }
        _ => return None,
    })
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let signal = words.get(1).and_then(|name| signal(name));
    let (Some(direction), Some(signal), Some(Ok(count))) =
        (words.first(), signal, words.get(2).map(|word| word.parse()))
    else {
        return eprintln!("usage: codec_cost encode|decode read|reply|write|prepare COUNT");
    };
    let version = *Signal::VERSIONS.end();
    let (mut encoder, mut decoder) = (Signal::encoder(version), Signal::decoder(version));
    let (mut bytes, mut buffers) = (Vec::with_capacity(4096), BufferPool::new(1 << 20));
    let decode = |bytes: &[u8], decoder: &mut _, buffers: &mut BufferPool| {
        Signal::decode(decoder, bytes, buffers).expect("an encoded signal").recycle(buffers);
    };
    for _ in 0..2 {
        bytes.clear();
        signal.encode(&mut encoder, &mut bytes).expect("the newest version");
        decode(&bytes, &mut decoder, &mut buffers);
    }
    println!("{} bytes", bytes.len());
    for _ in 0..count {
        if direction == "encode" {
            bytes.clear();
            signal.encode(&mut encoder, &mut bytes).expect("the newest version");
            black_box(&bytes);
        } else {
            decode(black_box(&bytes), &mut decoder, &mut buffers);
        }
    }
}
