//! Game records: their bytes, targets come back to the last bit, what no search can have left is refused.

use std::sync::Arc;

use azpy_core::batched::Workers;
use azpy_core::game::Player;
use azpy_core::record::{FAST_SEARCH, GameRecord, MIXED_NETWORKS, PLAYED, Ply, SEARCHED};
use azpy_core::replay::{Draw, ReplayBuffer, Samples};
use azpy_core::toy::Toy;
use proptest::prelude::*;

/// Two plies, both searched.
fn toy() -> Toy {
    Toy::parse("0(+ 1(= -))").unwrap()
}

fn game() -> GameRecord {
    GameRecord {
        game: "toy".into(),
        game_id: 7,
        seed: 9,
        num_players: 2,
        outcomes: vec![-1.0],
        plies: vec![
            Ply { action: 1, player: 0, flags: SEARCHED, network: 5 },
            Ply { action: 1, player: 1, flags: SEARCHED | MIXED_NETWORKS, network: 6 },
        ],
        root_values: vec![0.5, 0.25],
        offsets: vec![0, 2, 4],
        legal: vec![0, 1, 0, 1],
        visits: vec![1, 3, 2, 2],
        priors: vec![0.25, 0.75, 0.5, 0.5],
        ..GameRecord::default()
    }
}

/// The same game with targets that its visits do not say.
fn with_targets() -> GameRecord {
    GameRecord { targets: vec![0.125, 0.875, 1.0, 0.0], ..game() }
}

/// Length of the name, name, id, seed.
const HEAD: &[u8] = b"\x03\0\0\0toy\x07\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0";
/// The outcome; numbers of plies and entries; the plies (action, player, flags, network); offsets, legal, visits, priors.
const BODY: &[u8] = b"\0\0\x80\xbf\x02\0\0\0\x04\0\0\0\
    \x01\0\0\0\0\x01\x05\0\0\0\0\0\0\0\
    \x01\0\0\0\x01\x03\x06\0\0\0\0\0\0\0\
    \0\0\0\0\x02\0\0\0\x04\0\0\0\
    \0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\
    \x01\0\0\0\x03\0\0\0\x02\0\0\0\x02\0\0\0\
    \0\0\x80\x3e\0\0\x40\x3f\0\0\0\x3f\0\0\0\x3f";
const TARGETS: &[u8] = b"\0\0\0\x3e\0\0\x60\x3f\0\0\x80\x3f\0\0\0\0";
/// What the searches found for player 0.
const VALUES: &[u8] = b"\0\0\0\x3f\0\0\x80\x3e";
const NO_PLY: &[u8] = b"\xff\xff\xff\xff";

fn stored(flags: u8, resign_ply: &[u8], targets: &[u8]) -> Vec<u8> {
    [&[7, 0, 0, 0][..], HEAD, &[flags, 2, 1], resign_ply, BODY, targets, VALUES].concat()
}

/// The bytes with one of them changed.
fn changed(mut bytes: Vec<u8>, place: usize, from: u8, to: u8) -> Vec<u8> {
    assert_eq!(std::mem::replace(&mut bytes[place], to), from);
    bytes
}

const FLAGS: usize = 4 + HEAD.len();

#[test]
fn a_record_is_written_and_read_as_these_bytes() {
    game().check(&toy()).unwrap();
    with_targets().check(&toy()).unwrap();
    assert_eq!(GameRecord::from_bytes(&stored(0, NO_PLY, &[])), Ok(game()));
    assert_eq!(GameRecord::from_bytes(&stored(8, NO_PLY, TARGETS)), Ok(with_targets()));
    assert_eq!(game().to_bytes(), stored(0, NO_PLY, &[]));
    assert_eq!(with_targets().to_bytes(), stored(8, NO_PLY, TARGETS));
    assert!(GameRecord::from_bytes(&stored(1, NO_PLY, &[])).unwrap().capped);
    let resigned = GameRecord::from_bytes(&stored(2 | 4, b"\x02\0\0\0", &[])).unwrap();
    assert_eq!((resigned.resigned, resigned.control, resigned.resign_ply), (true, true, Some(2)));
}

#[test]
fn values_are_of_the_player_who_is_asked_about() {
    for (ply, value) in [0.5, 0.25].into_iter().enumerate() {
        assert_eq!([Player::Zero, Player::One].map(|player| game().root_value_of(ply, player)), [value, -value]);
    }
    assert_eq!([Player::Zero, Player::One].map(|player| game().outcome_of(player)), [-1.0, 1.0]);
}

/// The same game as an imported one, of which the second ply's search is not known.
fn imported() -> GameRecord {
    let played = Ply { flags: PLAYED, network: 0, ..game().plies[1] };
    GameRecord {
        imported: true,
        plies: vec![game().plies[0], played],
        root_values: vec![0.5, 0.0],
        offsets: vec![0, 2, 2],
        legal: vec![0, 1],
        visits: vec![1, 3],
        priors: vec![0.25, 0.75],
        ..game()
    }
}

#[test]
fn imported_games_are_read_as_such() {
    imported().check(&toy()).unwrap();
    let bytes = imported().to_bytes();
    assert_eq!(GameRecord::from_bytes(&bytes), Ok(imported()));
    assert_eq!(imported().samples(), 2);
    let ranked = GameRecord { score_to_beat: Some(0.5), ..with_targets() };
    assert_eq!(ranked.as_imported(None).score_to_beat, None);
    // Written as the game of self-play that it is said to be, it could not be read.
    let said = GameRecord::from_bytes(&changed(bytes, FLAGS, 16, 0)).unwrap_err().to_string();
    assert!(said.contains("ply flags 0x10, which a game of self-play does not have"), "{said}");
}

#[test]
fn a_game_with_a_number_of_simulations_of_its_own_is_refused() {
    let said =
        GameRecord::from_bytes(&stored(8 | 32, &[NO_PLY, &[44, 1, 0, 0]].concat(), TARGETS)).unwrap_err().to_string();
    assert_eq!(said, "a game of a run whose simulations grew, which this version of azpy does not read");
}

#[test]
fn what_no_imported_game_can_be_is_refused() {
    let said = |record: GameRecord| record.check(&toy()).unwrap_err().to_string();
    assert!(said(GameRecord { imported: false, ..imported() }).contains("but the game is not imported"));
    assert!(said(GameRecord { outcomes: vec![1.0], ..imported() }).contains("said to be 1, the rules say -1"));
    assert!(said(GameRecord { capped: true, ..imported() }).contains("to have ended in self-play"));
    for flags in [PLAYED | SEARCHED, PLAYED | MIXED_NETWORKS] {
        let mut record = imported();
        record.plies[1].flags = flags;
        assert!(said(record).contains("which do not go together"));
    }
    // Where the rules do not end it, the file says who won.
    for outcome in [1.0, 0.5, -1.0] {
        GameRecord::of_actions(&toy(), &[1], &[outcome]).unwrap();
    }
    for outcome in [1.5, f32::NAN] {
        assert!(
            GameRecord::of_actions(&toy(), &[1], &[outcome])
                .unwrap_err()
                .to_string()
                .contains("an outcome is from -1 to 1, got")
        );
    }
    assert!(
        GameRecord::of_actions(&toy(), &[1, 1, 0], &[-1.0])
            .unwrap_err()
            .to_string()
            .contains("after the end of the game")
    );
}

#[test]
fn bytes_that_no_record_has_are_refused() {
    let refused = |bytes: &[u8]| GameRecord::from_bytes(bytes).unwrap_err().to_string();
    for format in [1, 6, 8] {
        let said = refused(&changed(stored(0, NO_PLY, &[]), 0, 7, format));
        assert_eq!(said, format!("a game record of format {format}, expected 7"));
    }
    assert!(refused(&stored(128, NO_PLY, &[])).contains("flags 0x80, which no game has"));
    assert!(refused(&stored(8, NO_PLY, &[])).contains("bytes of plies, expected"));
    assert!(refused(&stored(0, NO_PLY, TARGETS)).contains("bytes of plies, expected"));
    for player in [2, 127, 128, 254] {
        let said = refused(&changed(stored(0, NO_PLY, &[]), FLAGS + 3 + 4 + 4 + 8 + 4, 0, player));
        assert!(said.contains("do not fit together"), "player {player}: {said}");
    }
    for players in [0, 3, 7] {
        let said = refused(&changed(stored(0, NO_PLY, &[]), FLAGS + 1, 2, players));
        assert!(said.contains("do not fit together"), "{players}: {said}");
    }
}

#[test]
fn arrays_that_do_not_fit_together_are_refused_before_anyone_looks_at_them() {
    let last_offset = FLAGS + 3 + 4 + 4 + 8 + 2 * 14 + 8;
    let said = GameRecord::from_bytes(&changed(stored(0, NO_PLY, &[]), last_offset, 4, 3)).unwrap_err().to_string();
    assert!(said.contains("do not fit together"));
    for length in [1, 3, 5] {
        let record = GameRecord { targets: vec![0.5; length], ..game() };
        assert!(record.check(&toy()).unwrap_err().to_string().contains("do not fit together"));
    }
}

#[test]
fn a_target_that_is_no_distribution_is_refused() {
    for bad in [
        [0.5, 0.502, 1.0, 0.0],
        [0.5, 0.498, 1.0, 0.0],
        [1.5, -0.5, 1.0, 0.0],
        [0.5, 0.5, f32::NAN, 1.0],
        [0.5, 0.5, f32::INFINITY, f32::NEG_INFINITY],
        [0.0; 4],
    ] {
        let record = GameRecord { targets: bad.to_vec(), ..game() };
        let said = record.check(&toy()).unwrap_err().to_string();
        assert!(said.contains("must be shares that sum to 1, got ["), "{said}");
    }
    let rounded = GameRecord { targets: vec![0.5, 0.5004, 1.0, 0.0], ..game() };
    rounded.check(&toy()).unwrap();
}

#[test]
fn only_a_sample_has_visits() {
    let mut record = game();
    record.plies[1].flags = 0;
    assert!(record.check(&toy()).unwrap_err().to_string().contains("ply 1 is not searched, but has visits"));
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let fast = || {
        let mut record = game();
        record.plies[1].flags = FAST_SEARCH;
        (record.offsets[2], record.legal, record.visits, record.priors) = (2, vec![0, 1], vec![1, 3], vec![0.25, 0.75]);
        record
    };
    fast().check(&toy()).unwrap();
    assert_eq!(GameRecord::from_bytes(&fast().to_bytes()), Ok(fast()));
    for flags in [SEARCHED | FAST_SEARCH, MIXED_NETWORKS] {
        let mut record = fast();
        record.plies[1].flags = flags;
        assert!(record.check(&toy()).unwrap_err().to_string().contains("which do not go together"));
    }
    let dice = Toy::parse("?(1:+ 1:-)").unwrap();
    let rolled = |flags| GameRecord {
        num_players: 2,
        outcomes: vec![-1.0],
        root_values: vec![0.0],
        plies: vec![Ply { action: 1, player: -1, flags, network: 0 }],
        offsets: vec![0, 0],
        ..GameRecord::default()
    };
    rolled(0).check(&dice).unwrap();
    assert!(rolled(FAST_SEARCH).check(&dice).unwrap_err().to_string().contains("which do not go together"));
    let flags_of_ply_1 = FLAGS + 3 + 4 + 4 + 8 + 14 + 5;
    let bytes = changed(stored(0, NO_PLY, &[]), flags_of_ply_1, SEARCHED | MIXED_NETWORKS, 8);
    assert!(
        GameRecord::from_bytes(&bytes)
            .unwrap_err()
            .to_string()
            .contains("ply flags 0x08, which a game of self-play does")
    );
}

/// Policy targets [rows, 2] and value targets of a batch.
fn drawn(buffer: &ReplayBuffer<Toy>, draw: Draw, rows: usize) -> (Vec<f32>, Vec<f32>) {
    let (mut policies, mut values) = (vec![0.0; rows * 2], vec![0.0; rows]);
    let samples = Samples {
        observations: &mut vec![0.0; rows * 3],
        legal: &mut vec![false; rows * 2],
        policies: &mut policies,
        values: &mut values,
        weights: &mut vec![0.0; rows],
    };
    buffer.sample(draw, samples, &Workers::new(2).unwrap());
    (policies, values)
}

#[test]
fn training_draws_the_targets_and_not_the_visits() {
    for (record, expected) in [(game(), [[0.25, 0.75], [0.5, 0.5]]), (with_targets(), [[0.125, 0.875], [1.0, 0.0]])] {
        let mut buffer = ReplayBuffer::new(toy(), 100);
        buffer.extend([Arc::new(record)], &Workers::Serial).unwrap();
        let (policies, values) = drawn(&buffer, Draw { seed: 1, symmetries: true, ..Draw::default() }, 50);
        // Player 0, who lost, was to move at ply 0.
        for (policy, value) in policies.chunks(2).zip(&values) {
            assert_eq!(policy, expected[usize::from(*value > 0.0)]);
        }
        assert!(values.contains(&-1.0) && values.contains(&1.0));
    }
}

#[test]
fn a_sample_without_visits_needs_a_target() {
    let without = |targets: &[f32]| GameRecord { visits: vec![0, 0, 2, 2], targets: targets.to_vec(), ..game() };
    assert!(without(&[]).check(&toy()).unwrap_err().to_string().contains("the policy target of ply 0 must be shares"));
    without(&[0.25, 0.75, 0.5, 0.5]).check(&toy()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        kept in any::<prop::sample::Index>(),
    ) {
        let mut changed = stored(8, NO_PLY, TARGETS);
        for (at, byte) in changes {
            *at.get_mut(&mut changed) = byte;
        }
        for bytes in [&bytes[..], &changed, &changed[..kept.index(changed.len())]] {
            if let Ok(record) = GameRecord::from_bytes(bytes) {
                let _ = record.check(&toy());
                prop_assert_eq!(record.to_bytes(), GameRecord::from_bytes(&record.to_bytes()).unwrap().to_bytes());
            }
        }
    }
}
