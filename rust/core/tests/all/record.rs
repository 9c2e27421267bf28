//! Game records: their bytes, targets come back to the last bit, what no search can have left is refused.

use std::sync::Arc;

use crate::common::selfplay::{Batch, draw};
use azpy_core::batched::Workers;
use azpy_core::record::{FAST_SEARCH, GameRecord, MIXED_NETWORKS, PLAYED, Ply, SEARCHED};
use azpy_core::replay::{Draw, ReplayBuffer};
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
    assert_eq!(GameRecord::from_bytes(&stored(0, NO_PLY, &[])), Ok(game()));
    assert_eq!(GameRecord::from_bytes(&stored(8, NO_PLY, TARGETS)), Ok(with_targets()));
    assert_eq!(game().to_bytes(), stored(0, NO_PLY, &[]));
    assert_eq!(with_targets().to_bytes(), stored(8, NO_PLY, TARGETS));
    assert!(GameRecord::from_bytes(&stored(1, NO_PLY, &[])).unwrap().capped);
    let resigned = GameRecord { resigned: true, ..game() };
    assert_eq!(GameRecord::from_bytes(&stored(2, b"\x02\0\0\0", &[])), Ok(resigned.clone()));
    assert_eq!(resigned.to_bytes(), stored(2, b"\x02\0\0\0", &[]));
    // Older versions marked games that were played on although a player would have resigned.
    for noted in [NO_PLY, b"\x01\0\0\0"] {
        assert_eq!(GameRecord::from_bytes(&stored(4, noted, &[])), Ok(game()));
    }
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

/// A game of which player 1 gave up its only ply, as it would have been lost.
fn resigned() -> GameRecord {
    let GameRecord { plies, legal, visits, priors, root_values, .. } = game();
    GameRecord {
        resigned: true,
        outcomes: vec![1.0],
        plies: plies[..1].to_vec(),
        root_values: root_values[..1].to_vec(),
        offsets: vec![0, 2],
        legal: legal[..2].to_vec(),
        visits: visits[..2].to_vec(),
        priors: priors[..2].to_vec(),
        ..game()
    }
}

#[test]
fn imported_games_have_samples_their_outcome_and_no_score_to_beat() {
    assert_eq!(imported().samples(), 2);
    let ranked = GameRecord { score_to_beat: Some(0.5), ..with_targets() };
    assert_eq!(ranked.as_imported(None).score_to_beat, None);
    let given_up = resigned().as_imported(None);
    given_up.check(&toy()).unwrap();
    assert_eq!(given_up.outcomes, resigned().outcomes);
}

/// The game whose second ply has these flags, and no entries.
fn flagged(flags: u8) -> GameRecord {
    let mut record = GameRecord { imported: false, root_values: vec![0.5, 0.25], ..imported() };
    record.plies[1].flags = flags;
    record
}

#[test]
fn records_that_the_rules_bear_out_pass() {
    let targets = [vec![0.5, 0.5004, 1.0, 0.0], vec![0.25, 0.75, 0.5, 0.5]];
    let with = |targets: &Vec<f32>| GameRecord { visits: vec![0, 0, 2, 2], targets: targets.clone(), ..game() };
    let others = [game(), with_targets(), imported(), resigned(), flagged(FAST_SEARCH)];
    for record in others.into_iter().chain(targets.iter().map(with)) {
        record.check(&toy()).unwrap();
        assert_eq!(GameRecord::from_bytes(&record.to_bytes()), Ok(record));
    }
}

#[test]
fn what_no_game_can_have_is_refused() {
    let targets = |targets: &[f32]| GameRecord { targets: targets.to_vec(), ..game() };
    let not_whole = "must be shares that sum to 1, got [";
    let mut with_visits = game();
    with_visits.plies[1].flags = 0;
    let mut lost = resigned();
    lost.outcomes[0] = -1.0;
    let of_import = |flags| GameRecord { imported: true, ..flagged(flags) };
    for (record, expected) in [
        (GameRecord { imported: false, ..imported() }, "but the game is not imported"),
        (GameRecord { outcomes: vec![1.0], ..imported() }, "marked as 1, but by the rules it is -1"),
        (GameRecord { capped: true, ..imported() }, "both as imported and as ended in self-play"),
        (GameRecord { resigned: true, ..imported() }, "both as imported and as ended in self-play"),
        (of_import(PLAYED | SEARCHED), "which contradict each other"),
        (of_import(PLAYED | MIXED_NETWORKS), "which contradict each other"),
        (flagged(SEARCHED | FAST_SEARCH), "which contradict each other"),
        (flagged(MIXED_NETWORKS), "which contradict each other"),
        (with_visits, "ply 1 is not searched, but has visits"),
        (targets(&[0.5; 1]), "do not fit together"),
        (targets(&[0.5; 3]), "do not fit together"),
        (targets(&[0.5; 5]), "do not fit together"),
        (targets(&[0.5, 0.502, 1.0, 0.0]), not_whole),
        (targets(&[0.5, 0.498, 1.0, 0.0]), not_whole),
        (targets(&[1.5, -0.5, 1.0, 0.0]), not_whole),
        (targets(&[0.5, 0.5, f32::NAN, 1.0]), not_whole),
        (targets(&[0.5, 0.5, f32::INFINITY, f32::NEG_INFINITY]), not_whole),
        (targets(&[0.0; 4]), not_whole),
        (GameRecord { visits: vec![0, 0, 2, 2], ..game() }, "the policy target of ply 0 must be shares"),
        (GameRecord { root_values: vec![0.5, f32::NAN], ..game() }, "ply 1 has a value or prior out of range"),
        (GameRecord { root_values: vec![0.5, 2.0], ..game() }, "ply 1 has a value or prior out of range"),
        (lost, "its outcome is marked as -1, but by the rules it is 1"),
        (GameRecord { resigned: false, ..resigned() }, "stops before the end"),
        (GameRecord { resigned: true, ..game() }, "but it ended"),
    ] {
        let said = record.check(&toy()).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}, and not {expected}");
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
    assert!(rolled(FAST_SEARCH).check(&dice).unwrap_err().to_string().contains("which contradict each other"));
}

#[test]
fn a_game_that_the_rules_do_not_end_has_the_outcome_of_its_file() {
    for outcome in [1.0, 0.5, -1.0] {
        GameRecord::of_actions(&toy(), &[1], &[outcome]).unwrap();
    }
    let refused =
        |actions: &[u32], outcome| GameRecord::of_actions(&toy(), actions, &[outcome]).unwrap_err().to_string();
    for outcome in [1.5, f32::NAN] {
        assert!(refused(&[1], outcome).contains("an outcome is from -1 to 1, got"));
    }
    assert!(refused(&[1, 1, 0], -1.0).contains("after the end of the game"));
}

#[test]
fn bytes_that_no_record_has_are_refused() {
    let refused = |bytes: &[u8]| GameRecord::from_bytes(bytes).unwrap_err().to_string();
    for format in [1, 6, 8] {
        let said = refused(&changed(stored(0, NO_PLY, &[]), 0, 7, format));
        assert_eq!(said, format!("a game record of format {format}, expected 7"));
    }
    assert!(refused(&stored(128, NO_PLY, &[])).contains("unknown flags 0x80"));
    assert!(refused(&stored(8, NO_PLY, &[])).contains("bytes of plies, expected"));
    assert!(refused(&stored(0, NO_PLY, TARGETS)).contains("bytes of plies, expected"));
    for player in [2, 127, 128, 254] {
        let said = refused(&changed(stored(0, NO_PLY, &[]), FLAGS + 3 + 4 + 4 + 8 + 4, 0, player));
        assert!(said.contains("do not fit together"), "player {player}: {said}");
    }
    let last_offset = FLAGS + 3 + 4 + 4 + 8 + 2 * 14 + 8;
    assert!(refused(&changed(stored(0, NO_PLY, &[]), last_offset, 4, 3)).contains("do not fit together"));
    let flags_of_ply_1 = FLAGS + 3 + 4 + 4 + 8 + 14 + 5;
    let said = refused(&changed(stored(0, NO_PLY, &[]), flags_of_ply_1, SEARCHED | MIXED_NETWORKS, 8));
    assert!(said.contains("ply flags 0x08, which a game of self-play does not have"), "{said}");
    let said = refused(&changed(imported().to_bytes(), FLAGS, 16, 0));
    assert!(said.contains("ply flags 0x10, which a game of self-play does not have"), "{said}");
    let said = refused(&stored(8 | 32, &[NO_PLY, &[44, 1, 0, 0]].concat(), TARGETS));
    assert_eq!(said, "a game of a run with growing simulations, which this version of azpy does not read");
    for players in [0, 3, 7] {
        let said = refused(&changed(stored(0, NO_PLY, &[]), FLAGS + 1, 2, players));
        assert!(said.contains("do not fit together"), "{players}: {said}");
    }
}

#[test]
fn training_draws_the_targets_and_not_the_visits() {
    for (record, expected) in [(game(), [[0.25, 0.75], [0.5, 0.5]]), (with_targets(), [[0.125, 0.875], [1.0, 0.0]])] {
        let mut buffer = ReplayBuffer::new(toy(), 100);
        buffer.extend([Arc::new(record)], &Workers::Serial).unwrap();
        let Batch { policies, values, .. } = draw(&buffer, Draw { seed: 1, symmetries: true, ..Draw::default() }, 50);
        // Player 0, who lost, was to move at ply 0.
        for (policy, value) in policies.chunks(2).zip(&values) {
            assert_eq!(policy, expected[usize::from(*value > 0.0)]);
        }
        assert!(values.contains(&-1.0) && values.contains(&1.0));
    }
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
