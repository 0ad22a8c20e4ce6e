//! Answers of other nodes to what main has asked them in an earlier life of its node.

use junctor_model::id::Incarnation;

use super::*;

impl Stage {
    /// A node in this life.
    fn of_life(life: u32) -> Stage {
        let mut stage = Stage::new(&[]);
        let directory = Directory::new(NodeId(1), &layout()).expect("a layout without gaps");
        let gateway = alteration::gateway(stage.own, &directory).of_life(Incarnation(life));
        stage.main = MainBlock::new(stage.own, &directory, MainConfiguration::default(), gateway);
        stage
    }
}

#[test]
fn late_answers_to_stages_of_an_earlier_life_are_dropped() {
    let mut stage = Stage::of_life(6);
    let (ldm, tc) = (Address::new(NodeId(2), Module::Ldm, 0), Address::new(NodeId(2), Module::Tc, 0));
    let partition = PartitionId { table: TableId(1), index: 0 };
    for earlier in [Incarnation(0), Incarnation(5)] {
        for number in 0..3 {
            let operation = OperationId(earlier.first_number() + number);
            let reply = ChangePartitionReply { operation, partition, error: None };
            assert!(stage.send_from(ldm, MainSignal::ChangePartitionReply(reply)).is_empty());
            let reply = PublishCatalogReply { operation };
            assert!(stage.send_from(tc, MainSignal::PublishCatalogReply(reply)).is_empty());
        }
    }
}

#[test]
fn numbers_of_a_life_are_above_those_of_earlier_lives() {
    let (mut earlier, mut later) = (Stage::of_life(6), Stage::of_life(7));
    let [of_earlier, of_later] = [&mut earlier, &mut later].map(|stage| {
        let (name, collation) = ("d".into(), CollationId::DEFAULT);
        let reply = stage.change(SchemaChange::CreateDatabase { name, collation, if_not_exists: false });
        assert!(reply.error.is_none());
        [stage.main.stage, stage.main.next_change]
    });
    let first = Incarnation(7).first_number();
    assert!(of_earlier.into_iter().all(|number| number < first));
    assert!(of_later.into_iter().all(|number| number > first));
}
