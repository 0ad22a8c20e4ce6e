//! Transactions whose writes depend on the absence of rows. A team has at most [`TEAM_MAX`] players, and a
//! session counts them before it adds one. A place that was not found is still free when the session inserts
//! it. Both hold only if the read protects against phantoms: SERIALIZABLE with any read, REPEATABLE READ with
//! FOR UPDATE.

use junctor_kernel::Random;

use super::{DEADLOCK, Step, Workload, changed, inserts, succeeded};
use crate::statement::{Reply, Statement, integer};

/// Maximum number of players of a team.
const TEAM_MAX: usize = 2;

/// Stands for the team of players without a team.
const NO_TEAM: i64 = -1;

/// The workload `phantom`.
#[derive(Debug)]
pub struct Phantom {
    teams: u64,
    sessions: Vec<Session>,
}

#[derive(Debug)]
struct Session {
    rounds_left: u32,
    /// The id of the session's next player.
    next_player: i64,
    round: Option<Round>,
}

#[derive(Debug)]
struct Round {
    kind: Kind,
    /// Whether to use SERIALIZABLE instead of FOR UPDATE.
    serializable: bool,
    step: Stage,
    /// Whether to repeat the read before the write.
    reads_twice: bool,
    /// The result of the last read.
    seen: Option<Vec<i64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A team, through a secondary index.
    Team(i64),
    /// A place, through the primary key.
    Place(i64),
    /// A team, without an index.
    Everybody(i64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Level,
    Begin,
    Read,
    ReadAgain,
    Write(Write),
    Commit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Insert,
    /// A player without a team joins this one.
    Join,
    Delete(i64),
}

impl Phantom {
    /// Creates the workload with this number of sessions, rounds of each session, and teams and places.
    pub fn new(sessions: usize, rounds: u32, rows: i64) -> Self {
        let session =
            |number: usize| Session { rounds_left: rounds, next_player: (number as i64 + 1) * 100_000, round: None };
        Self { teams: rows.max(1) as u64, sessions: (0..sessions).map(session).collect() }
    }

    fn draw(&self, random: &mut Random) -> Round {
        let number = random.below(self.teams) as i64;
        let kind = match random.below(8) {
            0..4 => Kind::Team(number),
            4..7 => Kind::Place(number),
            _ => Kind::Everybody(number),
        };
        let serializable = random.one_in(2);
        let step = if serializable { Stage::Level } else { Stage::Begin };
        Round { kind, serializable, step, reads_twice: random.one_in(3), seen: None }
    }
}

impl Round {
    fn read(&self) -> Statement {
        let lock = if self.serializable { "" } else { " FOR UPDATE" };
        let (text, value) = match self.kind {
            Kind::Team(team) => ("SELECT id FROM players WHERE team = ?", team),
            Kind::Everybody(team) => ("SELECT id FROM players WHERE team + 0 = ?", team),
            Kind::Place(place) => ("SELECT id FROM places WHERE id = ?", place),
        };
        Statement::with(format!("{text}{lock}"), [value.into()])
    }

    fn write(&self, write: Write, player: i64) -> Statement {
        match (self.kind, write) {
            (Kind::Place(place), Write::Delete(_)) => {
                Statement::with("DELETE FROM places WHERE id = ?", [place.into()])
            }
            (Kind::Place(place), _) => Statement::with("INSERT INTO places (id) VALUES (?)", [place.into()]),
            (_, Write::Delete(player)) => Statement::with("DELETE FROM players WHERE id = ?", [player.into()]),
            (Kind::Team(team) | Kind::Everybody(team), Write::Insert) => {
                Statement::with("INSERT INTO players (id, team) VALUES (?, ?)", [player.into(), team.into()])
            }
            (Kind::Team(team) | Kind::Everybody(team), Write::Join) => {
                Statement::with("UPDATE players SET team = ? WHERE id = ?", [team.into(), player.into()])
            }
        }
    }

    /// The write that keeps the limit, given the rows read.
    fn decide(&self, seen: &[i64], random_bit: bool) -> Result<Write, String> {
        let max = if matches!(self.kind, Kind::Place(_)) { 1 } else { TEAM_MAX };
        if seen.len() > max {
            return Err(format!("{:?} has {seen:?}, more than {max}", self.kind));
        }
        Ok(match seen {
            [.., last] if seen.len() == max => Write::Delete(*last),
            _ if random_bit && !matches!(self.kind, Kind::Place(_)) => Write::Join,
            _ => Write::Insert,
        })
    }

    /// Checks a successful answer and returns the next stage.
    fn on_success(&mut self, player: i64, reply: &Reply) -> Result<Option<Stage>, String> {
        Ok(Some(match self.step {
            Stage::Level => Stage::Begin,
            Stage::Begin => Stage::Read,
            Stage::Read | Stage::ReadAgain => {
                let mut ids: Vec<i64> = reply.rows()?.iter().map(|row| integer(&row[0])).collect::<Result<_, _>>()?;
                ids.sort_unstable();
                // Answers have no random source, so the player's id decides. Even ids belong to spare
                // players.
                let write = self.decide(&ids, player % 2 == 0)?;
                let before = self.seen.replace(ids);
                if before.is_some() && before != self.seen {
                    return Err(format!("phantom: {:?} returned {before:?}, then {:?}", self.kind, self.seen));
                }
                if self.step == Stage::Read && self.reads_twice { Stage::ReadAgain } else { Stage::Write(write) }
            }
            Stage::Write(_) => {
                changed(reply, 1)?;
                Stage::Commit
            }
            Stage::Commit => return Ok(None),
        }))
    }
}

impl Workload for Phantom {
    fn name(&self) -> &'static str {
        "phantom"
    }

    fn setup(&self) -> Vec<Statement> {
        let mut statements = vec![
            Statement::plain(
                "CREATE TABLE players (id INT NOT NULL PRIMARY KEY, team INT NOT NULL, KEY team_index (team)) \
                 PARTITION BY KEY (id) PARTITIONS 3",
            ),
            Statement::plain("CREATE TABLE places (id INT NOT NULL PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 2"),
        ];
        // Spare players without a team, who can join one: the even ids of each session.
        for session in &self.sessions {
            let rounds = i64::from(session.rounds_left) + 2;
            let ids = session.next_player..session.next_player + rounds;
            let spare: Vec<i64> = ids.filter(|id| id % 2 == 0).collect();
            statements
                .extend(spare.iter().flat_map(|id| inserts("players", *id..*id + 1, |id| format!("{id}, {NO_TEAM}"))));
        }
        statements
    }

    fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn next(&mut self, session: usize, random: &mut Random) -> Step {
        if self.sessions[session].round.is_none() {
            if self.sessions[session].rounds_left == 0 {
                return Step::Done;
            }
            let round = self.draw(random);
            let state = &mut self.sessions[session];
            state.rounds_left -= 1;
            state.next_player += 1;
            state.round = Some(round);
        }
        let state = &self.sessions[session];
        let Some(round) = &state.round else { return Step::Done };
        Step::Run(match round.step {
            Stage::Level => Statement::plain("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
            Stage::Begin => Statement::plain("BEGIN"),
            Stage::Read | Stage::ReadAgain => round.read(),
            Stage::Write(write) => round.write(write, state.next_player),
            Stage::Commit => Statement::plain("COMMIT"),
        })
    }

    fn on_reply(&mut self, session: usize, reply: &Reply) -> Result<(), String> {
        let state = &mut self.sessions[session];
        let Some(mut round) = state.round.take() else { return Err("an answer without a statement".to_owned()) };
        if reply.errno() == DEADLOCK && matches!(round.step, Stage::Read | Stage::ReadAgain | Stage::Write(_)) {
            return Ok(());
        }
        succeeded(reply)?;
        if let Some(step) = round.on_success(state.next_player, reply)? {
            round.step = step;
            state.round = Some(round);
        }
        Ok(())
    }

    fn on_closed(&mut self, session: usize) {
        self.sessions[session].round = None;
    }

    fn audit(&self) -> Vec<Statement> {
        let text = "SELECT id FROM players WHERE team = ?";
        (0..self.teams as i64).map(|team| Statement::with(text, [team.into()])).collect()
    }

    fn on_audit(&mut self, position: usize, reply: &Reply) -> Result<(), String> {
        match reply.rows()?.len() {
            count if count > TEAM_MAX => Err(format!("team {position} has {count} players, more than {TEAM_MAX}")),
            _ => Ok(()),
        }
    }
}
