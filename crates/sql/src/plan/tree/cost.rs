//! The order of joins by cost, in nanoseconds of one thread.
//!
//! Up to [`EXHAUSTIVE_MAX`] parts, dynamic programming finds the cheapest order in which each part is joined
//! to all parts before it. With more parts, each step takes the part that costs least. The part that is
//! joined is the build side of a hash join, or is read by keys.

/// Number of parts up to which all orders are compared.
const EXHAUSTIVE_MAX: usize = 10;

/// Reading a row where it is stored, and testing it there.
const READ_NS: f64 = 100.0;
/// Sending a row to the session, and taking it into a batch.
const SEND_NS: f64 = 300.0;
/// Adding a row to a hash table.
pub(super) const BUILD_NS: f64 = 250.0;
/// Looking a row's key up in a hash table.
const PROBE_NS: f64 = 150.0;
/// Making a pair of rows, and testing it.
const PAIR_NS: f64 = 200.0;
/// Finding the rows of a key in an index, with its share of a message.
const LOOKUP_NS: f64 = 1_000.0;
/// A read of a partition: two messages, and the wait for the answer.
const MESSAGE_NS: f64 = 20_000.0;

/// A part of a join: a table with its own conditions, or the rows of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartCost {
    /// Rows that its own conditions leave.
    pub rows: f64,
    /// Rows of the table.
    pub stored: f64,
    /// Rows that a read of the part by itself examines.
    pub examined: f64,
    /// Estimated duration of a part that was joined, up to its last row, in nanoseconds of one thread.
    pub joined_ns: f64,
}

/// A condition on several parts.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// The parts, as bits.
    pub parts: u64,
    /// The share of all combinations of rows for which it is true.
    pub selectivity: f64,
    /// Whether it is an equality that hashing can use.
    pub is_equality: bool,
    /// The class of equalities that follow from each other. Only one equality of a class counts
    /// when a part is joined.
    pub class: Option<usize>,
}

/// A read of a part by the keys of other parts.
#[derive(Clone, Debug)]
pub(super) struct Way {
    /// The conditions that bind the columns of the key: one of each list.
    pub links: Vec<Vec<usize>>,
    /// The cost of the rows of one key.
    pub lookup_ns: f64,
}

/// The parts of a join, and the conditions between them.
#[derive(Clone, Copy)]
pub(super) struct Joining<'j> {
    pub parts: &'j [PartCost],
    pub links: &'j [Link],
    /// The reads of each part by keys.
    pub ways: &'j [Vec<Way>],
    /// For each part, the parts before it, as bits.
    pub before: &'j [u64],
}

impl PartCost {
    /// The cost of reading the part by itself.
    pub fn read_ns(&self) -> f64 {
        MESSAGE_NS + self.examined * READ_NS + self.rows * SEND_NS
    }

    /// The cost of joining the part with rows that have cost `left_ns`, by hash or by the keys of `left`
    /// rows.
    pub fn join_ns(&self, (left, left_ns): (f64, f64), pairs: f64, lookup_ns: Option<f64>) -> f64 {
        let by_hash = self.build_ns() + left * PROBE_NS;
        let by_keys = MESSAGE_NS + left * lookup_ns.unwrap_or(f64::INFINITY);
        left_ns + by_hash.min(by_keys) + pairs * PAIR_NS
    }

    /// The cost of making a hash table of the part.
    pub fn build_ns(&self) -> f64 {
        self.read_ns() + self.rows * BUILD_NS
    }

    /// The cost of reading the rows of one key, if a table has so many of them, of which this share is sent.
    pub fn lookup_ns(&self, rows: f64, sent: f64) -> f64 {
        LOOKUP_NS + rows * (READ_NS + sent.min(1.0) * SEND_NS)
    }
}

/// The rows and the cost of a joined set of parts.
#[derive(Clone, Copy)]
struct Joined {
    rows: f64,
    cost_ns: f64,
}

impl Joining<'_> {
    /// Adds a part to a set of joined parts.
    fn extend(&self, (set, left): (u64, Joined), next: usize) -> Joined {
        let bit = 1 << next;
        let part = &self.parts[next];
        let (mut selectivity, mut hashes) = (1.0, false);
        let joins = |link: &&Link| link.parts & bit != 0 && link.parts & !(set | bit) == 0;
        for (place, link) in self.links.iter().enumerate().filter(|(_, link)| joins(link)) {
            let is_same = |other: &Link| other.class.is_some() && other.class == link.class;
            if !self.links[..place].iter().filter(joins).any(is_same) {
                selectivity *= link.selectivity;
            }
            hashes |= link.is_equality;
        }
        let is_bound = |links: &Vec<usize>| links.iter().any(|link| joins(&&self.links[*link]));
        let ways = self.ways.get(next).into_iter().flatten().filter(|way| way.links.iter().all(is_bound));
        let lookup_ns = ways.map(|way| way.lookup_ns).min_by(f64::total_cmp);
        let rows = (left.rows * part.rows * selectivity).max(0.01);
        let pairs = if hashes { rows } else { left.rows * part.rows };
        Joined { rows, cost_ns: part.join_ns((left.rows, left.cost_ns), pairs, lookup_ns) }
    }

    /// Whether a part can be joined to a set of parts.
    fn may_follow(&self, set: u64, next: usize) -> bool {
        self.before.get(next).is_none_or(|before| before & !set == 0)
    }

    /// The order in which the parts are joined. Each part comes after those that must be before it. At most
    /// 64 parts, else the order as written.
    pub fn order(&self) -> Vec<usize> {
        let count = self.parts.len();
        if count > 64 {
            return (0..count).collect();
        }
        if count > EXHAUSTIVE_MAX {
            return self.greedy();
        }
        // By set: the cheapest way to join it, and its last part.
        let mut best: Vec<Option<(Joined, usize)>> = vec![None; 1 << count];
        for (number, part) in self.parts.iter().enumerate().filter(|(number, _)| self.may_follow(0, *number)) {
            best[1 << number] = Some((start(part), number));
        }
        for set in 1..best.len() {
            let Some((left, _)) = best[set] else { continue };
            for next in (0..count).filter(|next| set & (1 << next) == 0 && self.may_follow(set as u64, *next)) {
                let joined = self.extend((set as u64, left), next);
                let place = &mut best[set | 1 << next];
                if place.is_none_or(|(known, _)| joined.cost_ns < known.cost_ns) {
                    *place = Some((joined, next));
                }
            }
        }
        let mut set = best.len() - 1;
        let mut order = Vec::with_capacity(count);
        while let Some((_, last)) = best[set] {
            order.push(last);
            set &= !(1 << last);
        }
        order.reverse();
        order
    }

    fn greedy(&self) -> Vec<usize> {
        let (parts, count) = (self.parts, self.parts.len());
        let leading = (0..count).filter(|next| self.may_follow(0, *next));
        let first = leading.min_by(|left, right| parts[*left].rows.total_cmp(&parts[*right].rows)).unwrap_or(0);
        let mut order = vec![first];
        let mut joined = start(&parts[first]);
        let mut set = 1_u64 << first;
        while order.len() < count {
            let candidates = (0..count).filter(|next| set & (1 << next) == 0 && self.may_follow(set, *next));
            let extended = candidates.map(|next| (next, self.extend((set, joined), next)));
            let Some((next, best)) = extended.min_by(|left, right| left.1.cost_ns.total_cmp(&right.1.cost_ns)) else {
                break;
            };
            order.push(next);
            set |= 1 << next;
            joined = best;
        }
        order
    }
}

fn start(part: &PartCost) -> Joined {
    Joined { rows: part.rows.max(0.01), cost_ns: part.read_ns() }
}

/// The bits of the first `count` parts, at most 64.
pub(super) fn all_bits(count: usize) -> u64 {
    u64::MAX.checked_shr(64 - count as u32).unwrap_or(0)
}

/// Whether an order has for each part those before it, as bits.
pub(super) fn is_possible(before: &[u64]) -> bool {
    let mut placed = 0_u64;
    loop {
        let next = before.iter().enumerate().find(|(place, needs)| placed & 1 << place == 0 && *needs & !placed == 0);
        match next {
            Some((place, _)) => placed |= 1 << place,
            None => return placed == all_bits(before.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(stored: f64, share: f64) -> PartCost {
        PartCost { rows: stored * share, stored, examined: stored, joined_ns: 0.0 }
    }

    fn link(left: usize, right: usize, selectivity: f64) -> Link {
        Link { parts: 1 << left | 1 << right, selectivity, is_equality: true, class: None }
    }

    fn order(parts: &[PartCost], links: &[Link], before: &[u64]) -> Vec<usize> {
        Joining { parts, links, ways: &[], before }.order()
    }

    #[test]
    fn a_large_table_is_not_the_build_side() {
        let parts = [part(100.0, 1.0), part(1_000_000.0, 1.0)];
        assert_eq!(order(&parts, &[link(0, 1, 0.01)], &[]), [1, 0]);
    }

    #[test]
    fn a_small_part_leads_to_the_rows_of_a_large_table_by_keys() {
        let parts = [part(1_000_000.0, 1.0), part(100.0, 0.1)];
        let links = [link(0, 1, 0.000_001)];
        let ways = [vec![Way { links: vec![vec![0]], lookup_ns: parts[0].lookup_ns(1.0, 1.0) }], Vec::new()];
        assert_eq!(Joining { parts: &parts, links: &links, ways: &ways, before: &[] }.order(), [1, 0]);
    }

    #[test]
    fn a_table_is_read_by_a_key_when_all_its_columns_are_bound() {
        // Parts 1 and 2 bind one column of the key of part 0 each. 2 has few rows, and 1 only follows from 0.
        let parts = [part(1_000_000.0, 1.0), part(10_000.0, 1.0), part(10.0, 1.0)];
        let links = [link(0, 1, 0.000_1), link(0, 2, 0.1)];
        let by_both = Way { links: vec![vec![0], vec![1]], lookup_ns: parts[0].lookup_ns(1.0, 1.0) };
        let ways = [vec![by_both.clone()], Vec::new(), Vec::new()];
        let joining = Joining { parts: &parts, links: &links, ways: &ways, before: &[] };
        assert_eq!(joining.order()[2], 0, "{:?}", joining.order());
        let one = Joined { rows: 10.0, cost_ns: 0.0 };
        let by_hash = joining.extend((0b100, one), 0).cost_ns;
        assert_eq!(by_hash, Joining { ways: &[], ..joining }.extend((0b100, one), 0).cost_ns);
        let many = Joined { rows: 10.0, cost_ns: 0.0 };
        assert!(joining.extend((0b110, many), 0).cost_ns < by_hash);
    }

    #[test]
    fn parts_without_a_common_condition_are_not_multiplied() {
        // 0 and 1 have no condition in common; 2 joins both.
        let parts = [part(1000.0, 1.0), part(1000.0, 1.0), part(10_000.0, 1.0)];
        let links = [link(0, 2, 0.001), link(1, 2, 0.001)];
        let order = order(&parts, &links, &[]);
        assert!(order[..2].contains(&2), "{order:?}");
    }

    #[test]
    fn parts_come_after_those_that_must_be_before_them() {
        let parts = [part(100.0, 1.0), part(1_000_000.0, 1.0), part(10.0, 1.0)];
        let links = [link(0, 1, 0.01), link(1, 2, 0.1)];
        assert_eq!(order(&parts, &links, &[0, 0b101, 0b001]), [0, 2, 1]);
        let parts: Vec<PartCost> = (0..12).map(|number| part(f64::from(number + 1) * 10.0, 1.0)).collect();
        let links: Vec<Link> = (1..12).map(|number| link(number - 1, number, 0.1)).collect();
        let mut before = vec![1 << 11; 12];
        before[11] = 0;
        before[3] |= 1 << 10;
        let order = order(&parts, &links, &before);
        let place = |part: usize| order.iter().position(|known| *known == part);
        assert!(order[0] == 11 && place(10) < place(3), "{order:?}");
    }

    #[test]
    fn many_parts_are_ordered_too() {
        let parts: Vec<PartCost> = (0..20).map(|number| part(f64::from(number + 1) * 10.0, 1.0)).collect();
        let links: Vec<Link> = (1..20).map(|number| link(number - 1, number, 0.1)).collect();
        let mut order = order(&parts, &links, &[]);
        assert_eq!(order[..2], [0, 1]);
        order.sort_unstable();
        assert_eq!(order, (0..20).collect::<Vec<_>>());
    }
}
