//! What self-play does for the sake of training: fast searches among the full ones, games against earlier networks.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::selfplay::{Network, all, config, resigning, start, toy};
use azpy_core::batched::{Rounds, Workers};
use azpy_core::game::Game;
use azpy_core::record::{FAST_SEARCH, GameRecord, OPPONENT, SEARCHED};
use azpy_core::resign::Resign;
use azpy_core::search::{Search, SearchResult, stream_for};
use azpy_core::selfplay::{Layout, SelfPlay, SelfPlayConfig, SelfPlayError};
use azpy_core::toy::Toy;

fn play(config: SelfPlayConfig, games: u64) -> Vec<GameRecord> {
    all(&start(config, 8, Some(games), vec![Network::new(3)]))
}

/// The search of one ply by itself, as its kind is told.
fn search_of(
    start: &Toy,
    game: &GameRecord,
    ply: usize,
    config: &SelfPlayConfig,
    networks: &[Network],
) -> SearchResult {
    let mut state = start.clone();
    game.plies[..ply].iter().for_each(|earlier| state.play(earlier.action));
    let is_sample = game.plies[ply].flags & SEARCHED != 0;
    let is_fast = game.plies[ply].flags & FAST_SEARCH != 0;
    let mut search_config = config.search;
    if !is_sample {
        search_config.root_noise = None;
    }
    let mut search = Search::new(state, search_config, 0);
    let simulations = config.simulations_of(None, is_fast);
    search.begin(simulations, stream_for(config.seed, game.game_id, ply as u64)).unwrap();
    let mut rounds = Rounds::new(Workers::Serial, None);
    let network = networks.iter().find(|network| network.id == game.plies[ply].network).unwrap();
    while rounds.run(std::slice::from_mut(&mut search), &mut [network.clone()]).unwrap() {}
    search.result()
}

#[test]
fn each_search_is_that_of_its_kind_and_only_full_ones_are_samples() {
    let config = SelfPlayConfig { full_search_share: 0.4, tree_reuse: false, ..config() };
    let (toy, mut searches, mut fast) = (toy(), 0, 0);
    for game in play(config.clone(), 60) {
        game.check(&toy).unwrap();
        assert_eq!(GameRecord::from_bytes(&game.to_bytes()), Ok(game.clone()));
        assert!(game.targets.is_empty(), "all targets are shares of the visits");
        for (ply, entry) in game.plies.iter().enumerate().filter(|(_, entry)| entry.is_searched()) {
            let found = search_of(&toy, &game, ply, &config, &[Network::new(3)]);
            assert_eq!(entry.root_value.to_bits(), found.value.to_bits());
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

/// The newest network, number 3, and two opponents, 4 and 5; all of them differ.
fn networks() -> Vec<Network> {
    [0, 1, 2].map(|n| Network { salt: n as f32, ..Network::new(3 + n) }).to_vec()
}

fn against(networks: &[Network], start: &Toy, config: SelfPlayConfig, games: Range<u64>) -> SelfPlay<Network, Toy> {
    let layout = Layout {
        slots: 8,
        first_game: games.start,
        games: Some(games.end - games.start),
        stagger: 0,
        inside: || Box::new(|body| body()),
    };
    let networks = vec![networks.to_vec(); 2];
    SelfPlay::start(start, config, &layout, networks, &Workers::new(2).unwrap(), None).unwrap()
}

/// The opponent's network and seat, where it searched.
fn opponent_of(game: &GameRecord) -> Option<(u64, i8)> {
    game.plies.iter().find(|ply| ply.flags & OPPONENT != 0).map(|ply| (ply.network, ply.player))
}

#[test]
fn an_opponent_plays_one_side_with_its_own_network_and_tree() {
    let toy = toy();
    for tree_reuse in [false, true] {
        let config = SelfPlayConfig { opponent_share: 0.6, full_search_share: 0.7, tree_reuse, ..config() };
        let (mut by_opponents, mut fresh) = (0, 0);
        for game in all(&against(&networks(), &toy, config.clone(), 0..80)) {
            game.check(&toy).unwrap();
            assert_eq!(GameRecord::from_bytes(&game.to_bytes()), Ok(game.clone()));
            let opponent = opponent_of(&game);
            assert!(opponent.is_none_or(|(network, _)| [4, 5].contains(&network)));
            let mut last = None;
            for (ply, entry) in game.plies.iter().enumerate().filter(|(_, entry)| entry.is_searched()) {
                let is_opponents = opponent.is_some_and(|(_, seat)| entry.player == seat);
                assert_eq!(entry.flags & OPPONENT != 0, is_opponents);
                assert_eq!(entry.network, if is_opponents { opponent.unwrap().0 } else { 3 });
                by_opponents += u32::from(is_opponents);
                // The first search of another network begins with nothing, whatever the tree knew before.
                if !tree_reuse || last.is_some_and(|last| last != entry.network) {
                    let found = search_of(&toy, &game, ply, &config, &networks());
                    assert_eq!(entry.root_value.to_bits(), found.value.to_bits(), "ply {ply}");
                    if entry.flags & SEARCHED != 0 {
                        assert_eq!(game.visits[game.range(ply)], found.visits);
                    }
                    fresh += 1;
                }
                last = Some(entry.network);
            }
        }
        assert!(by_opponents > 30 && fresh > 30);
    }
}

#[test]
fn opponents_and_seats_are_drawn_alike_in_the_share_asked_for() {
    // Each player has one turn.
    let short = Toy::parse("0(1(+ -) 1(- +))").unwrap();
    let config = SelfPlayConfig { opponent_share: 0.4, simulations: 2, opening_plies: 0, ..config() };
    let play = against(&networks(), &short, config, 0..2000);
    let games = all(&play);
    let drawn: Vec<_> = games.iter().filter_map(opponent_of).collect();
    assert_eq!(play.stats().opponent_games, drawn.len() as u64);
    // Four standard deviations.
    assert!((drawn.len() as f64 - 800.0).abs() < 4.0 * (2000.0 * 0.4 * 0.6_f64).sqrt(), "{}", drawn.len());
    for pair in [(4, 0), (4, 1), (5, 0), (5, 1)] {
        let count = drawn.iter().filter(|&&drawn| drawn == pair).count();
        assert!((count as f64 - 200.0).abs() < 4.0 * (2000.0 * 0.1 * 0.9_f64).sqrt(), "{count} of {pair:?}");
    }
}

#[test]
fn a_game_is_the_same_with_its_own_opponent_alone_and_without_one_where_it_has_none() {
    let config = SelfPlayConfig { opponent_share: 0.5, full_search_share: 0.7, ..config() };
    for game in all(&against(&networks(), &toy(), config.clone(), 0..30)) {
        let mut players = vec![networks()[0].clone()];
        players.extend(opponent_of(&game).map(|(network, _)| networks()[network as usize - 3].clone()));
        let config = SelfPlayConfig { opponent_share: 1.0, ..config.clone() };
        let again = all(&against(&players, &toy(), config, game.game_id..game.game_id + 1));
        assert_eq!(again, [game]);
    }
}

#[test]
fn games_in_play_keep_their_opponent_and_new_ones_meet_the_new_ones() {
    let config = SelfPlayConfig { opponent_share: 0.5, ..config() };
    let slow = |index: usize| Network { sleep: Duration::from_micros(200), ..networks()[index].clone() };
    let play = against(&[slow(0), slow(1)], &toy(), config.clone(), 0..400);
    let mut games = Vec::new();
    for (newer, at_least) in [(Some(2), 30), (Some(1), 60), (Some(2), 90), (None, 120)] {
        while games.len() < at_least {
            games.extend(play.next(Duration::from_secs(5)).unwrap());
        }
        let opponents: Vec<_> = newer.into_iter().map(slow).collect();
        play.set_opponents(vec![opponents.clone(), opponents]).unwrap();
    }
    games.extend(all(&play));
    assert_eq!(games.len(), 400);
    let straight = |index: usize| all(&against(&[slow(0), slow(index)], &toy(), config.clone(), 0..400));
    let (of_4, of_5, alone) = (straight(1), straight(2), all(&against(&[slow(0)], &toy(), config.clone(), 0..400)));
    let mut met = [0; 3];
    for game in games {
        let id = game.game_id as usize;
        let (index, expected) = match opponent_of(&game) {
            Some((4, _)) => (1, &of_4[id]),
            Some(_) => (2, &of_5[id]),
            None => (0, &alone[id]),
        };
        assert_eq!(&game, expected);
        met[index] += 1;
    }
    assert!(met.iter().all(|&games| games > 10), "{met:?}");
    let error = play.set_opponents(vec![Vec::new()]).unwrap_err();
    assert!(matches!(error, SelfPlayError::Swap(text) if text == "1 lists of opponents for 2 pipelines"));
}

#[test]
fn a_swap_changes_the_newest_network_alone() {
    let config = SelfPlayConfig { opponent_share: 0.7, ..config() };
    let (old, opponent) = (networks()[0].clone(), networks()[1].clone());
    let new = Network::new(9);
    let play = against(&[old.clone(), opponent], &toy(), config, 0..300);
    while play.next(Duration::from_secs(5)).unwrap().is_none() {}
    play.swap(vec![new.clone(), new]).unwrap();
    assert!(play.is_swapped(Duration::from_secs(5)));
    let calls = old.calls.load(Ordering::SeqCst);
    let games = all(&play);
    assert_eq!(old.calls.load(Ordering::SeqCst), calls);
    let mut seen = [false; 2];
    for ply in games.iter().flat_map(|game| &game.plies).filter(|ply| ply.is_searched()) {
        let is_opponents = ply.flags & OPPONENT != 0;
        assert!(if is_opponents { ply.network == 4 } else { [3, 9].contains(&ply.network) });
        seen[0] |= is_opponents;
        seen[1] |= ply.network == 9;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn opponents_do_not_resign() {
    let resign = Resign { below: -0.05, plies: 1, control: 0.5 };
    let config = resigning(resign, SelfPlayConfig { opponent_share: 1.0, ..config() });
    let (toy, mut resigned) = (toy(), 0);
    for game in all(&against(&networks(), &toy, config, 0..200)) {
        game.check(&toy).unwrap();
        let Some(ply) = game.resign_ply else { continue };
        if let Some(ply) = game.plies.get(ply as usize) {
            assert_eq!(ply.flags & OPPONENT, 0);
        } else {
            // The resigner lost: that is not the opponent's seat.
            assert!(opponent_of(&game).is_none_or(|(_, seat)| (game.outcome < 0.0) == (seat == 1)));
        }
        resigned += 1;
    }
    assert!(resigned > 20);
}

#[test]
fn whether_a_search_is_fast_says_nothing_of_the_action() {
    let draw = Toy::parse("0(= =)").unwrap();
    let config = SelfPlayConfig { full_search_share: 0.5, fast_simulations: Some(30), opening_plies: 0, ..config() };
    let games = all(&against(&networks()[..1], &draw, config, 0..4000));
    let share_of_1 = |kind: u8| {
        let plies: Vec<_> = games.iter().map(|game| game.plies[0]).filter(|ply| ply.flags == kind).collect();
        plies.iter().filter(|ply| ply.action == 1).count() as f64 / plies.len() as f64
    };
    let (fast, full) = (share_of_1(FAST_SEARCH), share_of_1(SEARCHED));
    assert!((0.1..0.9).contains(&full) && (fast - full).abs() < 0.08, "{fast} and {full}");
}
