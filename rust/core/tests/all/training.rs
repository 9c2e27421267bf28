//! What self-play does for the sake of training: fast searches among the full ones.

use crate::common::finish;
use crate::common::selfplay::{Network, all, config, start, toy};
use azpy_core::batched::Workers;
use azpy_core::game::Game;
use azpy_core::record::{FAST_SEARCH, GameRecord, SEARCHED};
use azpy_core::rng::mix;
use azpy_core::search::{Search, SearchResult};
use azpy_core::selfplay::{Layout, SelfPlay, SelfPlayConfig};
use azpy_core::toy::Toy;

fn play(config: SelfPlayConfig, games: u64) -> Vec<GameRecord> {
    all(&start(config, 8, Some(games), vec![Network::new(3)]))
}

/// The search of one ply by itself, as its kind is told.
fn search_of(start: &Toy, game: &GameRecord, ply: usize, config: &SelfPlayConfig) -> SearchResult {
    let mut state = start.clone();
    game.plies[..ply].iter().for_each(|earlier| state.play(earlier.action));
    let is_sample = game.plies[ply].flags & SEARCHED != 0;
    let is_fast = game.plies[ply].flags & FAST_SEARCH != 0;
    let mut search_config = config.search;
    if !is_sample {
        search_config.root_noise = None;
    }
    let mut search = Search::new(state, search_config);
    let simulations = config.simulations_of(is_fast);
    finish(&mut search, simulations, &[mix(config.seed), game.game_id, ply as u64], &mut Network::new(3));
    search.result()
}

#[test]
fn each_search_is_of_its_kind_and_full_ones_are_samples() {
    let config = SelfPlayConfig { full_search_share: 0.4, tree_reuse: false, ..config() };
    let (toy, mut searches, mut fast, mut valued) = (toy(), 0, 0, [0; 2]);
    for game in play(config.clone(), 60) {
        game.check(&toy).unwrap();
        assert_eq!(GameRecord::from_bytes(&game.to_bytes()), Ok(game.clone()));
        assert!(game.targets.is_empty(), "all targets are shares of the visits");
        for (ply, entry) in game.plies.iter().enumerate().filter(|(_, entry)| entry.is_searched()) {
            let found = search_of(&toy, &game, ply, &config);
            assert_eq!(game.root_value_of(ply, entry.mover().unwrap()).to_bits(), found.value.to_bits());
            valued[entry.mover().unwrap().index()] += usize::from(found.value.abs() > 0.01);
            assert_eq!(entry.network, 3);
            let range = game.range(ply);
            if entry.flags & FAST_SEARCH != 0 {
                assert!(range.is_empty());
                fast += 1;
            } else {
                assert_eq!(game.visits[range.clone()], found.visits);
                assert_eq!(game.priors[range], found.priors);
                assert_eq!(game.target(ply), found.target);
            }
            searches += 1;
        }
    }
    assert!(valued.iter().all(|&plies| plies > 50), "both players have moved: {valued:?}");
    // Four standard deviations.
    let expected = 0.6 * f64::from(searches);
    assert!((f64::from(fast) - expected).abs() < 4.0 * (0.4 * expected).sqrt(), "{fast} of {searches}");
}

#[test]
fn which_searches_are_fast_depends_on_nothing_that_is_searched() {
    let config = SelfPlayConfig { full_search_share: 0.5, opening_plies: 0, ..config() };
    let (one, other) = (play(config.clone(), 40), play(SelfPlayConfig { simulations: 11, ..config.clone() }, 40));
    let mut compared = 0;
    for (one, other) in one.iter().zip(&other) {
        for (ply, (one, other)) in one.plies.iter().zip(&other.plies).enumerate() {
            if one.is_searched() && other.is_searched() {
                assert_eq!(one.flags, other.flags, "ply {ply}");
                compared += 1;
            }
        }
    }
    assert!(compared > 100 && one.iter().zip(&other).any(|(one, other)| one.plies != other.plies));
    let seeded = play(SelfPlayConfig { seed: 8, ..config }, 40);
    assert!(one.iter().zip(&seeded).any(|(one, other)| one.plies[0].flags != other.plies[0].flags));
}

#[test]
fn trees_go_on_from_fast_searches_to_full_ones() {
    let config = SelfPlayConfig { full_search_share: 0.5, opening_plies: 0, ..config() };
    let mut inherited = 0;
    for game in play(config.clone(), 40) {
        for ply in (1..game.plies.len()).filter(|&ply| game.plies[ply].flags & SEARCHED != 0) {
            let visits: u32 = game.visits[game.range(ply)].iter().sum();
            assert!(visits >= config.simulations);
            inherited += u32::from(visits > config.simulations && game.plies[ply - 1].flags & FAST_SEARCH != 0);
        }
    }
    assert!(inherited > 20);
}

#[test]
fn whether_a_search_is_fast_says_nothing_of_the_action() {
    let draw = Toy::parse("0(= =)").unwrap();
    let config = SelfPlayConfig { full_search_share: 0.5, fast_simulations: Some(30), opening_plies: 0, ..config() };
    let layout = Layout { slots: 8, games: Some(4000), ..Layout::default() };
    let (networks, workers) = (vec![Network::new(3); 2], Workers::new(2).unwrap());
    let games = all(&SelfPlay::start(&draw, config, &layout, networks, &workers, None).unwrap());
    let share_of_1 = |kind: u8| {
        let plies: Vec<_> = games.iter().map(|game| game.plies[0]).filter(|ply| ply.flags == kind).collect();
        plies.iter().filter(|ply| ply.action == 1).count() as f64 / plies.len() as f64
    };
    let (fast, full) = (share_of_1(FAST_SEARCH), share_of_1(SEARCHED));
    assert!((0.1..0.9).contains(&full) && (fast - full).abs() < 0.08, "{fast} and {full}");
}
