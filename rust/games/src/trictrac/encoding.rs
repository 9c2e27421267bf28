//! The observation, `[252, 1, 1]`, seen by the player to move and in this player's numbers; docs/reference/games.md
//! lists the features.

use super::points::{full_jans, holds_corner};
use super::{CHECKERS, FIELDS, Stage, Trictrac};

pub(super) const FEATURES: usize = 252;
const SIDE: usize = 4 * FIELDS;
const DICE: usize = 2 * SIDE + 2;
const FIRST: usize = DICE + 13;
const SCORE: usize = FIRST + FIELDS;
const JANS: usize = SCORE + 6;
const ROLLS: usize = JANS + 12;
/// More than three checkers on a field, and points, are parts of 12.
const TWELVE: u16 = 12;
const THREE: u16 = 3;
/// The draw by length is seen coming for so many plies.
const CLOCK: u16 = 200;

pub(super) fn encode(game: &Trictrac, row: &mut [f32]) {
    row.fill(0.0);
    let (sides, players) = ([game.own(), game.other()], [game.mover.index(), game.mover.opponent().index()]);
    for (number, side) in sides.into_iter().enumerate() {
        let place_of = |place| if number == 0 { place } else { FIELDS as u32 - 1 - place };
        side.encode(TWELVE, place_of, &mut row[number * SIDE..][..SIDE]);
        row[2 * SIDE + number] = side.off() as f32 / CHECKERS as f32;
    }
    let played = game.first.map(|action| if game.is_double() { 1 } else { usize::from(action) / FIELDS });
    for which in [0, 1].into_iter().filter(|&which| played != Some(which)) {
        row[DICE + 6 * which + usize::from(game.dice[which]) - 1] = 1.0;
    }
    row[DICE + 12] = f32::from(game.stage == Stage::Choice);
    if let Some(action) = game.first {
        row[FIRST + usize::from(action) % FIELDS] = 1.0;
    }
    for (number, player) in players.into_iter().enumerate() {
        let [points, holes] = [game.score.points[player], game.score.holes[player]];
        row[SCORE + 3 * number] = f32::from(points) / f32::from(TWELVE);
        row[SCORE + 3 * number + 1] = f32::from(holes) / f32::from(TWELVE);
        row[SCORE + 3 * number + 2] = f32::from(game.score.runs[player]);
        row[ROLLS + number] = f32::from(game.rolls[player]) / f32::from(THREE);
    }
    let [own, his] = sides;
    let [own_full, his_full] = sides.map(full_jans);
    let ([his_small, his_big], [own_small, own_big]) = (his.can_fill(), own.can_fill());
    let facts = own_full.into_iter().chain(his_full).chain([holds_corner(own), holds_corner(his)]);
    let facts = facts.chain([his_small, his_big, own_small, own_big]);
    for (feature, fact) in row[JANS..ROLLS].iter_mut().zip(facts) {
        *feature = f32::from(fact);
    }
    row[FEATURES - 1] = f32::from(CLOCK.saturating_sub(game.plies_left)) / f32::from(CLOCK);
}

pub(super) fn divisors() -> Vec<u16> {
    let mut divisors = vec![1; FEATURES];
    divisors[..2 * SIDE].iter_mut().skip(3).step_by(4).for_each(|divisor| *divisor = TWELVE);
    divisors[2 * SIDE..DICE].fill(CHECKERS as u16);
    for score in divisors[SCORE..JANS].chunks_exact_mut(3) {
        score[..2].fill(TWELVE);
    }
    divisors[ROLLS..ROLLS + 2].fill(THREE);
    divisors[FEATURES - 1] = CLOCK;
    divisors
}
