use junctor_model::id::{CommitNumber, PartitionId, RowId, SchemaVersion, TableId, TransactionId};
use proptest::prelude::*;

use super::*;

const SECTION: SectionHeader =
    SectionHeader { partition: PartitionId { table: TableId(9), index: 3 }, origin: 0, row_format: SchemaVersion(4) };

fn commit(number: u64, participants: u16) -> RecordHeader {
    let (number, transaction) = (CommitNumber(number), TransactionId(number + 1000));
    RecordHeader { kind: RecordKind::Commit, participants, number, transaction, chunk: 0 }
}

fn chunk(transaction: u64, chunk: u32) -> RecordHeader {
    let transaction = TransactionId(transaction);
    RecordHeader { kind: RecordKind::Chunk, participants: 0, number: CommitNumber(0), transaction, chunk }
}

fn chunk_commit(number: u64, transaction: u64, chunks: u32) -> RecordHeader {
    let (number, transaction) = (CommitNumber(number), TransactionId(transaction));
    RecordHeader { kind: RecordKind::ChunkCommit, participants: 1, number, transaction, chunk: chunks }
}

/// The bytes of records without changes.
fn records(headers: &[RecordHeader]) -> Vec<u8> {
    let mut buffer = RecordBuffer::new();
    for header in headers {
        buffer.begin(header);
        buffer.end();
    }
    buffer.take(Vec::new())
}

fn sample_record() -> Vec<u8> {
    let mut buffer = RecordBuffer::new();
    buffer.begin(&commit(5, 2));
    buffer.begin_section(&SECTION);
    buffer.put(RowId(1), b"an image");
    buffer.delete(RowId(7), b"key");
    buffer.begin_section(&SectionHeader { origin: 6, ..SECTION });
    buffer.edit(RowId(8), CommitNumber(4), b"an image", b"the edits");
    assert_eq!(buffer.end(), 32 + 16 + 8 + 8 + 8 + 3 + 16 + 8 + 16 + 9);
    buffer.take(Vec::new())
}

#[test]
fn a_record_gives_back_what_was_put_in() {
    let bytes = sample_record();
    let (record, length) = decode_record(&bytes).unwrap();
    assert_eq!((record.header, length), (commit(5, 2), bytes.len()));
    let sections: Vec<Section<'_>> = record.sections().collect();
    assert_eq!(sections.iter().map(|section| section.header.origin).collect::<Vec<_>>(), [0, 6]);
    assert_eq!(sections[0].header, SECTION);
    let put = Operation::Put { row: RowId(1), image: b"an image" };
    let delete = Operation::Delete { row: RowId(7), key: b"key" };
    assert_eq!(sections[0].operations().collect::<Vec<_>>(), [put, delete]);
    let checksum = crc32c::crc32c(b"an image");
    let edit = ImageEdit { base: CommitNumber(4), image_bytes: 8, checksum, edits: b"the edits" };
    assert_eq!(sections[1].operations().collect::<Vec<_>>(), [Operation::Edit { row: RowId(8), edit }]);
    let (again, rest) = Section::decode(sections[0].bytes()).unwrap();
    assert_eq!((again.operation_count, rest.len()), (2, 0));
}

#[test]
fn a_record_has_the_bytes_of_the_format_page() {
    let bytes = sample_record();
    assert_eq!(bytes[..4], (bytes.len() as u32).to_le_bytes());
    assert_eq!(bytes[8..12], [1, 0, 2, 0]);
    assert_eq!(bytes[12..20], 5u64.to_le_bytes());
    assert_eq!(bytes[20..28], 1005u64.to_le_bytes());
    assert_eq!(bytes[32..48], [9, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(bytes[48..56], [1, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(bytes[64..72], [7, 0, 0, 0x80, 3, 0, 0, 0]);
    assert_eq!(bytes[91..99], [8, 0, 0, 0, 25, 0, 0, 0x80]);
    assert_eq!(bytes[99..111], [4, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(bytes[111..115], crc32c::crc32c(b"an image").to_le_bytes());
    assert_eq!(bytes[115..], *b"the edits");
}

fn header(position: u64, previous_checksum: u32) -> GroupHeader {
    GroupHeader {
        kind: GroupKind::Data,
        position,
        log_id: 77,
        life: 88,
        incarnation: 1,
        previous_checksum,
        stable: CommitNumber(1),
        taken: CommitNumber(2),
        ceiling: CommitNumber(100),
        synced: position,
        previous_cut: CommitNumber(0),
        wall_clock_us: 5,
    }
}

fn encode(header: &GroupHeader, pieces: &[Piece<'_>]) -> (Vec<u8>, u32) {
    let bytes = pieces.iter().map(|piece| piece.bytes.len()).sum();
    let mut target = vec![0xEE; group_blocks(pieces.len(), bytes) as usize * BLOCK_BYTES];
    let checksum = encode_group(header, pieces.iter().copied(), &mut target);
    (target, checksum)
}

fn piece(stream: u16, bytes: &[u8]) -> Piece<'_> {
    Piece { stream: StreamId(stream), first_record: Some(0), bytes }
}

#[test]
fn a_group_gives_back_its_header_and_pieces() {
    let (one, two) = (sample_record(), vec![3; 5000]);
    let inner = Piece { stream: MAIN_STREAM, first_record: None, bytes: &two };
    let (bytes, checksum) = encode(&header(4, 9), &[piece(1, &one), inner]);
    assert_eq!(bytes.len(), 2 * BLOCK_BYTES);
    let group = decode_group(&bytes).unwrap();
    assert_eq!((group.header, group.checksum, group.blocks), (header(4, 9), checksum, 2));
    assert_eq!(group.pieces().collect::<Vec<_>>(), [piece(1, &one), inner]);
    assert_eq!(decode_group(&bytes[..BLOCK_BYTES]).unwrap_err(), GroupError::Incomplete(2));
}

#[test]
fn a_group_of_another_version_is_refused() {
    let (mut bytes, _) = encode(&header(0, 0), &[]);
    for version in [0, 3] {
        set_version(&mut bytes, version);
        assert_eq!(decode_group(&bytes).unwrap_err(), GroupError::UnknownVersion(version.into()));
        let mut scan = LogScan::new(ChainPosition::beginning(77), SegmentSize::default());
        assert!(matches!(scan.step(&bytes), ScanStep::UnknownVersion(unknown) if unknown == u16::from(version)));
    }
}

fn set_version(group: &mut [u8], version: u8) {
    group[100] = version;
    let checksum = crate::bytes::checksum_without(&group[..GROUP_HEADER_BYTES], 4);
    group[4..8].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn groups_of_the_first_version_are_read_and_continued() {
    let mut buffer = RecordBuffer::new();
    buffer.begin(&commit(1, 1));
    buffer.begin_section(&SECTION);
    buffer.put(RowId(1), b"an image");
    buffer.end();
    let record = buffer.take(Vec::new());
    let first = GroupHeader { kind: GroupKind::Start, previous_checksum: 0, ..header(0, 0) };
    let (mut old, _) = encode(&first, &[piece(1, &record)]);
    assert_eq!(old[100], 2);
    set_version(&mut old, 1);
    let mut scan = LogScan::new(ChainPosition::beginning(77), SegmentSize::default());
    let ScanStep::Group(group) = scan.step(&old) else { panic!("a group") };
    assert_eq!(group.header, first);
    assert_eq!(group.pieces().collect::<Vec<_>>(), [piece(1, &record)]);
    let (new, _) = encode(&header(1, group.checksum), &[piece(1, &sample_record())]);
    assert!(matches!(scan.step(&new), ScanStep::Group(_)));
}

#[test]
fn an_edit_gives_its_image_of_its_base_only() {
    let (base, image) = (&b"the row before"[..], &b"the new row"[..]);
    // Keep 4 bytes, replace 10 by 7.
    let edits = [&[4, 10, 7][..], b"new row"].concat();
    let edit = ImageEdit { base: CommitNumber(1), image_bytes: 11, checksum: crc32c::crc32c(image), edits: &edits };
    let mut out = Vec::new();
    assert_eq!(edit.apply(base, &mut out), Some(image));
    for other in [&b"any row before"[..], b"the row", b"", b"the row before it"] {
        assert_eq!(edit.apply(other, &mut out), None);
    }
    for (image_bytes, checksum) in [(12, edit.checksum), (10, edit.checksum), (u32::MAX, edit.checksum), (11, 0)] {
        assert_eq!(ImageEdit { image_bytes, checksum, ..edit }.apply(base, &mut out), None);
    }
    for end in 0..edits.len() {
        assert_eq!(ImageEdit { edits: &edits[..end], ..edit }.apply(base, &mut out), None);
    }
    for at in 0..edits.len() {
        for bit in 0..8 {
            let mut damaged = edits.clone();
            damaged[at] ^= 1 << bit;
            assert_eq!(ImageEdit { edits: &damaged, ..edit }.apply(base, &mut out), None);
        }
    }
}

#[test]
fn an_operation_that_is_no_edit_is_refused() {
    let sections = |row: u32, length: u32, bytes: &[u8]| {
        let mut section = [0; 16];
        section[12] = 1;
        [&section[..], &row.to_le_bytes(), &length.to_le_bytes(), bytes].concat()
    };
    const EDITS: u32 = 1 << 31;
    assert!(Section::decode(&sections(7, 16 | EDITS, &[0; 16])).is_some());
    // Too short for the fields, longer than the record, and of a deletion.
    assert!(Section::decode(&sections(7, 15 | EDITS, &[0; 15])).is_none());
    assert!(Section::decode(&sections(7, 17 | EDITS, &[0; 16])).is_none());
    assert!(Section::decode(&sections(7 | 1 << 31, 16 | EDITS, &[0; 16])).is_none());
}

/// A log in memory, written group after group.
struct Log {
    segments: Vec<Vec<u8>>,
    chain: ChainPosition,
}

impl Log {
    fn new() -> Log {
        Log { segments: Vec::new(), chain: ChainPosition::beginning(77) }
    }

    fn write(&mut self, change: impl Fn(&mut GroupHeader), pieces: &[Piece<'_>]) {
        let blocks = group_blocks(pieces.len(), pieces.iter().map(|piece| piece.bytes.len()).sum());
        let segments = SegmentSize::default();
        let position = segments.place(self.chain.position, blocks);
        let mut header = header(position, self.chain.previous_checksum.unwrap());
        header.incarnation = self.chain.incarnation.max(1);
        header.life = self.chain.life;
        header.kind = if self.chain.incarnation == 0 { GroupKind::Start } else { GroupKind::Data };
        change(&mut header);
        let (bytes, _) = encode(&header, pieces);
        let segment = segments.segment_of(position) as usize;
        self.segments.resize_with(self.segments.len().max(segment + 1), || vec![0; segments.bytes() as usize]);
        let at = segments.offset_of(position) as usize;
        self.segments[segment][at..at + bytes.len()].copy_from_slice(&bytes);
        self.chain = ChainPosition::after(&decode_group(&bytes).unwrap());
    }

    /// All groups of the chain, and where it ends.
    fn scan(&self, from: ChainPosition) -> (Vec<(GroupHeader, usize)>, ChainPosition) {
        let (mut scan, mut groups) = (LogScan::new(from, SegmentSize::default()), Vec::new());
        let mut end = from;
        loop {
            let position = scan.chain().position;
            let segments = SegmentSize::default();
            let segment = self.segments.get(segments.segment_of(position) as usize).map_or(&[][..], Vec::as_slice);
            let at = segments.offset_of(position) as usize;
            match scan.step(segment.get(at..).unwrap_or(&[])) {
                ScanStep::Group(group) => {
                    groups.push((group.header, group.pieces().count()));
                    end = scan.chain();
                }
                ScanStep::NoGroup => {
                    if scan.skip_to_next_segment().is_none() {
                        return (groups, end);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn the_chain_is_followed_over_segments_and_lives() {
    let mut log = Log::new();
    log.write(|_| {}, &[]);
    let large = vec![1; GROUP_BYTES_MAX - 200];
    for _ in 0..70 {
        log.write(|header| header.stable = CommitNumber(2), &[piece(0, &large)]);
    }
    let middle = log.chain;
    log.write(|header| (header.kind, header.incarnation, header.life) = (GroupKind::Start, 2, 99), &[]);
    log.write(|_| {}, &[piece(1, &large), piece(2, b"abc")]);
    // 63 groups of 256 blocks and the start group fill the first segment.
    assert_eq!(log.segments.len(), 2);
    let (groups, end) = log.scan(ChainPosition::beginning(77));
    assert_eq!(groups.len(), 73);
    assert_eq!(end, log.chain);
    assert_eq!((end.incarnation, end.life), (2, 99));
    assert_eq!(groups[72].1, 2);
    // A checkpoint that names a group in the middle of the log knows only its position.
    let (groups, end) = log.scan(ChainPosition { previous_checksum: None, life: 0, incarnation: 0, ..middle });
    assert_eq!((groups.len(), end), (2, log.chain));
}

#[test]
fn groups_of_an_earlier_use_of_a_segment_are_not_accepted() {
    let mut old = Log::new();
    (0..5).for_each(|_| old.write(|_| {}, &[]));
    let mut new = Log::new();
    new.segments = old.segments;
    // The new life wrote two groups over the old ones.
    new.write(|header| header.life = 1, &[]);
    new.write(|_| {}, &[piece(0, b"other")]);
    let (groups, end) = new.scan(ChainPosition::beginning(77));
    assert_eq!((groups.len(), end), (2, new.chain));
    let (groups, _) = new.scan(ChainPosition::beginning(78));
    assert!(groups.is_empty());
}

#[test]
fn a_synced_group_that_is_gone_is_told_from_a_torn_tail() {
    let mut log = Log::new();
    log.write(|_| {}, &[]);
    for _ in 0..3 {
        log.write(|header| header.synced = header.position - 1, &[]);
    }
    // The group at 2 is torn. The header of the group at 3 does not say that the group at 2 is synced, so
    // both were being written at the crash.
    log.segments[0][2 * BLOCK_BYTES + 20] ^= 1;
    let (groups, end) = log.scan(ChainPosition::beginning(77));
    assert_eq!((groups.len(), end.position), (2, 2));
    let block = |position: usize| &log.segments[0][position * BLOCK_BYTES..];
    assert!(!is_beyond_end(block(3), 3, &end));
    // A group whose header says that the torn group was synced proves damage.
    log.write(|header| header.synced = 4, &[]);
    let block = |position: usize| &log.segments[0][position * BLOCK_BYTES..];
    assert!(is_beyond_end(block(4), 4, &end));
    // At another position, the same block is left over from an earlier use of the segment.
    assert!(!is_beyond_end(block(4), 5, &end));
}

#[test]
fn every_flipped_bit_of_a_pair_file_is_repaired_or_noticed() {
    let content = vec![7; 5000];
    let bytes = encode_slot(3, 12, &content);
    assert_eq!(bytes.len(), 4 * BLOCK_BYTES);
    let whole = PairSlot { generation: 12, content: content.clone(), damaged: None };
    assert_eq!(decode_slot(3, &bytes), Ok(Some(whole.clone())));
    assert_eq!(decode_slot(4, &bytes), Ok(None));
    for at in (0..bytes.len()).step_by(13) {
        let mut rotten = bytes.clone();
        rotten[at] ^= 4;
        let slot = decode_slot(3, &rotten).unwrap().unwrap();
        let copy = if at < bytes.len() / 2 { PairCopy::First } else { PairCopy::Second };
        assert_eq!(slot, PairSlot { damaged: Some(copy), ..whole.clone() });
    }
    let one = PairSlot { generation: 13, ..whole.clone() };
    assert_eq!(newest_slot(Some(whole.clone()), Some(one.clone())), Some(one));
    assert_eq!(newest_slot(Some(whole.clone()), None), Some(whole));
}

#[test]
fn a_pair_file_that_was_being_written_gives_a_whole_copy_or_nothing() {
    let (old, new) = (encode_slot(1, 2, b"old"), encode_slot(1, 4, b"new"));
    for written in (0..=new.len()).step_by(512) {
        let mut torn = old.clone();
        torn[..written].copy_from_slice(&new[..written]);
        let slot = decode_slot(1, &torn).unwrap().unwrap();
        assert!(slot.content == b"old" && slot.generation == 2 || slot.content == b"new" && slot.generation == 4);
    }
    assert_eq!(decode_slot(1, &[]), Ok(None));
    let mut later = new;
    later[8] = 9;
    let checksum = crate::bytes::checksum_without(&later[..BLOCK_BYTES], 4);
    later[4..8].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(decode_slot(1, &later), Err(UnknownPairVersion(9)));
}

/// Feeds records of streams, in groups, to an analysis.
struct Feed {
    analysis: LogAnalysis,
    header: GroupHeader,
}

impl Feed {
    fn new(begin: u64) -> Feed {
        let mut start = header(0, 0);
        (start.kind, start.stable, start.taken) = (GroupKind::Start, CommitNumber(0), CommitNumber(0));
        let mut analysis = LogAnalysis::new(CommitNumber(begin));
        analysis.observe_group(&start);
        Feed { analysis, header: GroupHeader { kind: GroupKind::Data, ..start } }
    }

    fn group(mut self, stable: u64, taken: u64, records: &[(u16, RecordHeader)]) -> Feed {
        self.header.stable = CommitNumber(stable);
        self.header.taken = CommitNumber(taken);
        self.analysis.observe_group(&self.header);
        for (stream, header) in records {
            let bytes = self::records(&[*header]);
            self.analysis.observe_record(StreamId(*stream), &decode_record(&bytes).unwrap().0);
        }
        self
    }

    fn restart(mut self, cut: u64, base: u64) -> Feed {
        self.header.incarnation += 1;
        let (previous_cut, base) = (CommitNumber(cut), CommitNumber(base));
        let start = GroupHeader { kind: GroupKind::Start, previous_cut, taken: base, ceiling: base, ..self.header };
        self.analysis.observe_group(&start);
        self
    }

    fn finish(self) -> Result<RecoveryPlan, LogDamage> {
        self.analysis.finish(CommitNumber(0))
    }
}

fn decision(plan: &RecoveryPlan, incarnation: u32, stream: u16, header: RecordHeader) -> Decision {
    let bytes = records(&[header]);
    plan.decide(incarnation, StreamId(stream), &decode_record(&bytes).unwrap().0)
}

#[test]
fn commits_up_to_the_cut_are_kept_and_later_ones_are_not() {
    let feed = Feed::new(0).group(2, 3, &[(0, commit(2, 2)), (1, commit(1, 1)), (1, commit(2, 2)), (0, commit(3, 1))]);
    let plan = feed.finish().unwrap();
    assert_eq!((plan.cut, plan.ceiling), (CommitNumber(2), CommitNumber(100)));
    assert_eq!(decision(&plan, 1, 0, commit(2, 2)), Decision::Apply(CommitNumber(2)));
    assert_eq!(decision(&plan, 1, 0, commit(3, 1)), Decision::Skip);
    assert_eq!(decision(&plan, 2, 0, commit(2, 2)), Decision::Skip);
}

#[test]
fn a_missing_commit_or_participant_is_damage() {
    let feed = Feed::new(0).group(3, 3, &[(0, commit(1, 1)), (0, commit(3, 1))]);
    assert_eq!(feed.finish().unwrap_err(), LogDamage::MissingCommit(CommitNumber(2)));
    let feed = Feed::new(0).group(1, 1, &[(0, commit(1, 3)), (1, commit(1, 3))]);
    let missing = LogDamage::MissingParticipants { number: CommitNumber(1), missing: 1 };
    assert_eq!(feed.finish().unwrap_err(), missing);
    let feed = Feed::new(0).group(1, 1, &[(0, commit(1, 1)), (1, commit(1, 1))]);
    assert_eq!(feed.finish().unwrap_err(), LogDamage::Contradiction(CommitNumber(1)));
    let feed = Feed::new(0).group(1, 1, &[(0, commit(2, 1))]);
    assert_eq!(feed.finish().unwrap_err(), LogDamage::Contradiction(CommitNumber(2)));
}

#[test]
fn chunks_count_only_with_their_commit() {
    let chunks = [(4, chunk(50, 0)), (4, chunk(50, 1)), (4, chunk(51, 0))];
    let feed = Feed::new(0).group(0, 0, &chunks).group(1, 1, &[(4, chunk_commit(1, 50, 2))]);
    let plan = feed.finish().unwrap();
    assert_eq!(decision(&plan, 1, 4, chunk(50, 1)), Decision::Apply(CommitNumber(1)));
    assert_eq!(decision(&plan, 1, 4, chunk(51, 0)), Decision::Skip);
    assert_eq!(decision(&plan, 1, 5, chunk(50, 0)), Decision::Skip);
    let feed = Feed::new(0).group(0, 0, &chunks[1..]).group(1, 1, &[(4, chunk_commit(1, 50, 2))]);
    let missing = LogDamage::MissingChunks { number: CommitNumber(1), wanted: 2, found: 1 };
    assert_eq!(feed.finish().unwrap_err(), missing);
}

#[test]
fn a_later_life_keeps_the_cut_of_the_earlier_one() {
    let feed = Feed::new(0).group(1, 2, &[(0, commit(1, 1)), (0, commit(2, 1))]).restart(1, 100).group(
        101,
        101,
        &[(0, commit(101, 1))],
    );
    let plan = feed.finish().unwrap();
    assert_eq!(plan.cut, CommitNumber(101));
    assert_eq!(decision(&plan, 1, 0, commit(2, 1)), Decision::Skip);
    assert_eq!(decision(&plan, 1, 0, commit(1, 1)), Decision::Apply(CommitNumber(1)));
    assert_eq!(decision(&plan, 2, 0, commit(101, 1)), Decision::Apply(CommitNumber(101)));
    let feed = Feed::new(0).restart(0, 100).group(102, 102, &[(0, commit(102, 1))]);
    assert_eq!(feed.finish().unwrap_err(), LogDamage::MissingCommit(CommitNumber(101)));
}

#[test]
fn a_checkpoint_spares_older_records_and_must_not_be_newer_than_the_log() {
    let mut analysis = LogAnalysis::new(CommitNumber(10));
    let group = GroupHeader { stable: CommitNumber(12), taken: CommitNumber(12), ..header(40, 9) };
    analysis.observe_group(&group);
    for number in [9, 11, 12] {
        let bytes = records(&[commit(number, 1)]);
        analysis.observe_record(StreamId(0), &decode_record(&bytes).unwrap().0);
    }
    let damage = LogDamage::CutBelowCheckpoint { cut: CommitNumber(12), newest: CommitNumber(13) };
    let plan = analysis.finish(CommitNumber(13));
    assert_eq!(plan.unwrap_err(), damage);
}

proptest! {
    #[test]
    fn a_flipped_bit_of_a_record_is_noticed(at in 0usize..91, bit in 0u8..8) {
        let mut bytes = sample_record();
        prop_assume!(at < bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(decode_record(&bytes).is_err());
    }

    #[test]
    fn a_flipped_bit_of_a_group_is_noticed(at in 0usize..BLOCK_BYTES, bit in 0u8..8) {
        let (mut bytes, _) = encode(&header(4, 9), &[piece(1, &sample_record())]);
        bytes[at] ^= 1 << bit;
        prop_assert!(decode_group(&bytes).is_err());
    }

    #[test]
    fn bytes_of_no_meaning_give_an_error_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(decode_record(&bytes).is_err());
        prop_assert!(decode_group(&bytes).is_err());
        prop_assert_eq!(decode_slot(1, &bytes), Ok(None));
    }

    #[test]
    fn a_stream_cut_into_pieces_is_read_whole(
        lengths in proptest::collection::vec(0usize..700, 1..12),
        buffers in 1usize..4,
        piece_max in 40usize..500,
        skipped in 0usize..6,
    ) {
        let (mut cutter, mut pieces) = (StreamCutter::new(), Vec::new());
        for buffer in 0..buffers {
            let mut formed = RecordBuffer::new();
            for (index, length) in lengths.iter().enumerate() {
                formed.begin(&commit((buffer * lengths.len() + index + 1) as u64, 1));
                formed.begin_section(&SECTION);
                formed.put(RowId(1), &vec![5; *length]);
                formed.end();
            }
            let bytes = formed.take(Vec::new());
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (length, first_record) = cutter.cut(rest, piece_max);
                prop_assert!(length > 0 && length <= piece_max);
                pieces.push((rest[..length].to_vec(), first_record));
                rest = &rest[length..];
            }
        }
        let skipped = skipped.min(pieces.len() - 1);
        let (mut reader, mut numbers) = (StreamReader::new(), Vec::new());
        for (bytes, first_record) in &pieces[skipped..] {
            let piece = Piece { stream: StreamId(1), first_record: *first_record, bytes };
            reader.read(&piece, &mut |record| numbers.push(record.header.number.0)).unwrap();
        }
        // Reading from the middle loses only the record that was begun before.
        let last = (buffers * lengths.len()) as u64;
        let first = last + 1 - numbers.len() as u64;
        prop_assert_eq!(&numbers, &(first..=last).collect::<Vec<_>>());
        if skipped == 0 {
            prop_assert_eq!(first, 1);
        }
    }
}
