//! Starts of all nodes from disks that a backup was restored to, and from disks that were put back.

use super::*;

fn number(epoch: u32, counter: u64) -> CommitNumber {
    CommitNumber::new(Epoch(epoch), counter)
}

impl Cluster {
    /// Sets the stable number of a disk's log and the newest commit of its checkpoint.
    pub(super) fn set_disk(&mut self, node: u8, stable: CommitNumber, checkpoint: CommitNumber) {
        let disk = &mut self.places.get_mut(&NodeId(node)).unwrap().disk;
        (disk.stable, disk.checkpoint) = (stable, checkpoint);
    }

    fn cut(&self, at: u8) -> Option<CommitNumber> {
        self.membership(at)?.cuts.last().map(|cut| cut.cut)
    }
}

#[test]
fn a_disk_that_lacks_commits_which_another_has_in_a_checkpoint_is_not_counted_but_copies() {
    for behind in [1, 2] {
        let mut cluster = formed(&SMALL);
        cluster.kill_all();
        let other = 3 - behind;
        cluster.set_disk(other, number(1, 200), number(1, 150));
        cluster.set_disk(behind, number(1, 100), number(1, 90));
        (1..=4).for_each(|node| cluster.start(node));
        cluster.run_until("the other one starts alone", |it| it.serve(&[other]));
        assert_eq!(cluster.cut(4), Some(number(1, 200)), "nothing is lost");
        let record = *cluster.membership(4).unwrap().record(NodeId(behind)).unwrap();
        assert!(!record.is_durable);
        let said = |place: &Place| place.log.iter().any(|line| line.contains("its disk lacks commits"));
        assert!(cluster.places.values().any(said));
        cluster.run_until("it copies and serves", |it| it.serve(&[1, 2]) && it.is_settled());
    }
}

#[test]
fn a_disk_that_was_put_back_never_stands_for_its_group_alone() {
    let mut cluster = formed(&SMALL);
    // The other node is evicted before, so the disk of node 2 is the only one with a mark.
    cluster.kill(1);
    cluster.run_until("node 2 goes on", |it| it.serve(&[2]) && it.is_settled());
    let epoch = cluster.membership(2).unwrap().epoch;
    let durable = CommitNumber::new(epoch, 30);
    let progress = EpochProgress {
        started: epoch,
        leases_over: epoch,
        markable: NodeSet::EMPTY,
        admits: false,
        slow: None,
        durable,
        is_left_group_empty: false,
    };
    cluster.places.get_mut(&NodeId(2)).unwrap().member.as_mut().unwrap().set_progress(progress);
    cluster.run_until("the membership notes it", |it| it.membership(4).is_some_and(|it| it.durable == durable));
    cluster.kill_all();
    cluster.set_disk(1, number(1, 100), number(1, 90));
    cluster.set_disk(2, CommitNumber::new(epoch, 29), number(1, 90));
    (1..=4).for_each(|node| cluster.start(node));
    for _ in 0..200 {
        cluster.step();
        assert!(cluster.membership(4).is_none_or(|it| it.epoch <= epoch), "{:?}", cluster.membership(4));
    }
    let said = |place: &Place| place.log.iter().any(|line| line.contains("node 2: its disk lacks commits"));
    assert!(cluster.places.values().any(said));
    // The right disk is back.
    cluster.kill_all();
    cluster.set_disk(2, durable, number(1, 90));
    (1..=4).for_each(|node| cluster.start(node));
    cluster.run_until("it starts, and the other one copies", |it| it.serve(&[1, 2]) && it.is_settled());
    assert_eq!(cluster.cut(4), Some(durable));
}

#[test]
fn a_disk_without_another_of_its_group_is_not_given_up() {
    let mut cluster = formed(&["data", "data", "data", "data", "management"]);
    cluster.kill_all();
    for node in [1, 2] {
        cluster.set_disk(node, number(1, 200), number(1, 150));
    }
    for node in [3, 4] {
        cluster.set_disk(node, number(1, 100), number(1, 90));
    }
    (1..=5).for_each(|node| cluster.start(node));
    for _ in 0..200 {
        cluster.step();
        assert!(cluster.membership(5).is_none_or(|it| it.restarted <= Epoch(1)), "{:?}", cluster.membership(5));
    }
    // Without checkpoints nothing proves that they lack something: the cut is theirs.
    cluster.kill_all();
    for node in [1, 2] {
        cluster.set_disk(node, number(1, 200), number(1, 100));
    }
    (1..=5).for_each(|node| cluster.start(node));
    cluster.run_until("all start", |it| it.serve(&[1, 2, 3, 4]) && it.is_settled());
    assert_eq!(cluster.cut(5), Some(number(1, 100)));
}

#[test]
fn a_new_cluster_starts_behind_the_numbers_of_restored_disks() {
    let restored = number(7, 55);
    let mut cluster = Cluster::new(&SMALL, Duration::from_millis(50));
    cluster.kill_all();
    for node in [1, 2] {
        cluster.set_disk(node, restored, number(7, 20));
    }
    (1..=4).for_each(|node| cluster.start(node));
    cluster.run_until("all start", |it| it.serve(&[1, 2]) && it.is_settled());
    assert_eq!((cluster.cut(4), cluster.membership(4).unwrap().epoch), (Some(restored), Epoch(8)));
    // Its later starts are like those of any cluster.
    cluster.kill_all();
    (1..=4).for_each(|node| cluster.start(node));
    cluster.run_until("all start", |it| it.serve(&[1, 2]) && it.is_settled());
    assert_eq!(cluster.membership(4).unwrap().epoch, Epoch(9));
}

#[test]
fn empty_disks_beside_restored_ones_copy_and_never_cut_them() {
    let restored = number(7, 55);
    let mut cluster = Cluster::new(&SMALL, Duration::from_millis(50));
    cluster.kill_all();
    cluster.set_disk(2, restored, number(7, 20));
    (1..=4).for_each(|node| cluster.start(node));
    cluster.run_until("node 2 starts alone", |it| it.serve(&[2]));
    assert_eq!(cluster.cut(4), Some(restored));
    cluster.run_until("node 1 copies", |it| it.serve(&[1, 2]) && it.is_settled());
    // A group of empty disks beside a restored one would be a cluster without a part of its rows.
    let mut cluster = Cluster::new(&["data", "data", "data", "data", "management"], Duration::from_millis(50));
    cluster.kill_all();
    cluster.set_disk(2, restored, number(7, 20));
    (1..=5).for_each(|node| cluster.start(node));
    for _ in 0..200 {
        cluster.step();
        assert!(cluster.membership(5).is_none_or(|it| it.epoch == Epoch(0)), "{:?}", cluster.membership(5));
    }
}

#[test]
fn a_node_that_ends_right_after_the_power_of_the_other_one_keeps_its_mark() {
    for (first, second) in [(1, 2), (2, 1)] {
        let mut cluster = formed(&["data", "data", "data", "data", "management", "management", "management"]);
        // Nobody notices that the power of this node has failed, and its disk is lost.
        cluster.end_process(first);
        cluster.step();
        cluster.kill(second);
        (0..3).for_each(|_| cluster.step());
        assert!(cluster.membership(5).unwrap().record(NodeId(second)).unwrap().is_durable);
        let disk = &mut cluster.places.get_mut(&NodeId(first)).unwrap().disk;
        *disk = Disk { incarnation: disk.incarnation, ..Disk::default() };
        (3..=7).for_each(|at| cluster.notice_end(first, at));
        (0..3).for_each(|_| cluster.step());
        cluster.kill_all();
        (1..=7).for_each(|node| cluster.start(node));
        cluster.run_until("all serve", |it| it.serve(&[1, 2, 3, 4]) && it.is_settled());
    }
}

#[test]
fn a_report_from_before_a_loss_that_comes_after_it_is_no_sign_of_life() {
    for (first, second) in [(1, 2), (2, 1)] {
        let mut cluster = formed(&["data", "data", "data", "data", "management", "management", "management"]);
        let report = cluster.places[&NodeId(first)].member.as_ref().unwrap().report();
        // Nobody notices that the power of this node has failed, and its disk is lost. Its last report is on
        // its way.
        cluster.end_process(first);
        cluster.step();
        cluster.kill(second);
        for _ in 0..3 {
            for to in 5..=7 {
                cluster.messages.push_back((NodeId(first), NodeId(to), MemberMessage::Report(Box::new(report))));
            }
            cluster.step();
        }
        assert!(cluster.membership(5).unwrap().record(NodeId(second)).unwrap().is_durable);
        let disk = &mut cluster.places.get_mut(&NodeId(first)).unwrap().disk;
        *disk = Disk { incarnation: disk.incarnation, ..Disk::default() };
        (3..=7).for_each(|at| cluster.notice_end(first, at));
        (0..3).for_each(|_| cluster.step());
        cluster.kill_all();
        (1..=7).for_each(|node| cluster.start(node));
        cluster.run_until("all serve", |it| it.serve(&[1, 2, 3, 4]) && it.is_settled());
    }
}
