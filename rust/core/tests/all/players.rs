//! One to six players: plain max^n, visit for visit, and what a second player's number must not change.

use std::convert::Infallible;
use std::ops::Range;

use crate::common::selfplay::{all, draw};
use crate::common::{Hashed, Naive, after, go_on, hashed_values, moves, run};
use crate::oracle::{assert_equal, configs};
use azpy_core::batched::Workers;
use azpy_core::config::SearchConfig;
use azpy_core::evaluator::{Batch, Evaluator};
use azpy_core::game::{Game, GameFault, Payoff, Player, Pov, Turn, Values, ranked};
use azpy_core::look::standard_errors;
use azpy_core::record::GameRecord;
use azpy_core::replay::{Draw, ReplayBuffer};
use azpy_core::rng::Stream;
use azpy_core::search::Search;
use azpy_core::selfplay::{Layout, SelfPlay, SelfPlayConfig};
use azpy_core::toy::Toy;

#[test]
fn visits_equal_recursive_max_n_for_one_to_four_players() {
    let mut reused = 0;
    for players in 1..=4 {
        for seed in 0..250 {
            let toy = Toy::random_of(players, seed, 6, seed % 2 == 1);
            for config in configs() {
                let simulations = [1, 7, 60, 200][seed as usize % 4];
                let mut search = run(&toy, config, simulations, seed, &mut Hashed);
                let mut twin = Naive::new(toy.clone());
                twin.finish(&config, simulations + 1, seed);
                assert_equal(&search, &twin);
                // The tree goes on below the most visited action, where a player has the turn and it was evaluated.
                let action = search.result().action.unwrap();
                let child = twin.children.into_iter().find(|child| child.0 == action).and_then(|child| child.2);
                search.advance(action);
                let Some(mut twin) = child.filter(|child| !child.children.is_empty()) else { continue };
                if !matches!(search.root().turn(), Turn::Player(_)) {
                    continue;
                }
                go_on(&mut search, 40, seed, &mut Hashed);
                twin.finish(&config, 40, seed);
                assert_equal(&search, &twin);
                reused += 1;
            }
        }
    }
    assert!(reused > 1_000, "{reused}");
}

/// [`hashed`] where the other one of two players has the negative of what the player to move has.
struct Opposed;

impl<G: Game> Evaluator<G> for Opposed {
    type Error = Infallible;
    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Infallible> {
        for row in 0..batch.rows() {
            let range = batch.range(row);
            let mut values = hashed_values(&batch.states[row], &batch.actions[range.clone()], &mut batch.logits[range]);
            if let [own, other] = values.numbers_mut() {
                *other = -*own;
            }
            batch.values[row] = values;
        }
        Ok(())
    }
}

#[test]
fn a_zero_sum_is_searched_alike_by_one_number_and_by_two() {
    let gumbel = SearchConfig { gumbel_actions: 4, ..SearchConfig::default() };
    let others = [
        SearchConfig { eval_batch: 8, virtual_loss: 2.0, ..SearchConfig::default() },
        SearchConfig { lcb: Some(1.5), ..SearchConfig::default() },
        gumbel,
        SearchConfig { eval_batch: 1, ..gumbel },
    ];
    for seed in 0..60 {
        let toy = Toy::random(seed, 7, seed % 2 == 1);
        for config in configs().into_iter().chain(others) {
            let mut one = run(&toy, config, 200, seed, &mut Opposed);
            let mut two = run(&toy.in_values(), config, 200, seed, &mut Opposed);
            for ply in 0..3 {
                assert_eq!(two.result(), one.result(), "seed {seed}, ply {ply}, {config:?}");
                let errors = [standard_errors(one.tree()), standard_errors(two.tree())];
                for (a, b) in errors[0].iter().zip(&errors[1]) {
                    assert!((a - b).abs() < 1e-6 || (a.is_nan() && b.is_nan()));
                }
                let Some(action) = one.result().action else { break };
                one.advance(action);
                two.advance(action);
                if !matches!(one.root().turn(), Turn::Player(_)) {
                    break;
                }
                go_on(&mut one, 50, ply, &mut Opposed);
                go_on(&mut two, 50, ply, &mut Opposed);
            }
        }
    }
}

#[test]
fn many_leaves_at_a_time_converge_to_the_exact_max_n_values() {
    for players in 1..=6 {
        for seed in 0..20 {
            let toy = Toy::random_of(players, seed, 3, true);
            let config = SearchConfig { eval_batch: 8, c_puct: 4.0, ..SearchConfig::default() };
            let search = run(&toy, config, 20_000, seed, &mut Hashed);
            let Some(exact) = max_n(&toy) else { continue };
            for (found, exact) in search.result().values.iter().zip(&exact) {
                assert!((f64::from(*found) - exact).abs() < 0.15, "{players}, {seed}: {found} against {exact}");
            }
        }
    }
}

/// The values of every player if each takes what is best for it; `None` where two actions are as good for the player and
/// not for the others.
fn max_n(toy: &Toy<Values>) -> Option<Vec<f64>> {
    let numbers = |values: Values| values.numbers().iter().map(|&number| f64::from(number)).collect();
    let after = |action| max_n(&after(toy, action));
    match toy.turn() {
        Turn::Terminal => Some(numbers(toy.outcome())),
        Turn::Chance => {
            let mut outcomes = Vec::new();
            toy.chance_outcomes(&mut outcomes);
            let mut mean = vec![0.0; toy.num_players()];
            for (outcome, probability) in outcomes {
                let add = |(sum, value): (&mut f64, f64)| *sum += f64::from(probability) * value;
                mean.iter_mut().zip(after(outcome)?).for_each(add);
            }
            Some(mean)
        }
        Turn::Player(player) => {
            let values = moves(toy).into_iter().map(after).collect::<Option<Vec<_>>>()?;
            let own = |values: &Vec<f64>| values[player.index()];
            let best = values.iter().max_by(|a, b| own(a).total_cmp(&own(b)))?;
            // Near ties are visited alike for long.
            let unlike = |other: &Vec<f64>| own(best) - own(other) < 0.2 && other != best;
            (!values.iter().any(unlike)).then(|| best.clone())
        }
    }
}

#[test]
fn one_players_values_are_proven_and_those_of_three_refused() {
    let config = SearchConfig { solver: true, lookahead: 2, ..SearchConfig::default() };
    let mut proven = 0;
    for seed in 0..100 {
        let toy = Toy::random_of(1, seed, 5, seed % 2 == 0);
        let search = run(&toy, config, 3_000, seed, &mut Hashed);
        let (result, exact) = (search.result(), max_n(&toy));
        if result.proof != 0 {
            proven += 1;
            let best = exact.map_or(result.value, |exact| exact[0] as f32);
            assert!((result.value - best).abs() < 1e-5, "seed {seed}: {} against {best}", result.value);
        }
    }
    assert!(proven > 60, "{proven}");
    let mut search = Search::new(Toy::random_of(3, 1, 5, false), config);
    let fault = search.begin(10, Stream::keyed(&[1])).unwrap_err();
    assert_eq!(fault, GameFault::Unprovable(3));
    assert!(fault.to_string().contains("this game has 3 players: leave out solver and lookahead"));
}

/// Every score that a game of one player can end with, ascending.
fn scores(toy: &Toy<Values>) -> Vec<f32> {
    if toy.turn() == Turn::Terminal {
        return vec![toy.outcome().of(Player::Zero)];
    }
    let mut found: Vec<_> = moves(toy).into_iter().flat_map(|action| scores(&after(toy, action))).collect();
    found.sort_by(f32::total_cmp);
    found
}

#[test]
fn a_score_to_beat_makes_wins_and_losses_of_scores() {
    let base = SearchConfig { eval_batch: 1, ..SearchConfig::default() };
    let solver = SearchConfig { solver: true, lookahead: 2, ..SearchConfig::default() };
    let mut proven = 0;
    for seed in 0..200 {
        let toy = Toy::random_of(1, seed, 5, seed % 2 == 1);
        let scores = scores(&toy);
        // A score in the middle, which is a tie, and one between two.
        for to_beat in [scores[scores.len() / 2], scores[0].midpoint(scores[scores.len() - 1])] {
            let score_to_beat = Some(f64::from(to_beat));
            let config = SearchConfig { score_to_beat, ..base };
            let search = run(&toy, config, 120, seed, &mut Hashed);
            let mut twin = Naive::new(toy.clone());
            twin.finish(&config, 121, seed);
            assert_equal(&search, &twin);
            // Without dice the best that can be had is the best score, as it counts.
            let result = run(&toy, SearchConfig { score_to_beat, ..solver }, 2_000, seed, &mut Hashed).result();
            if result.proof != 0 && seed % 2 == 0 {
                proven += 1;
                assert_eq!(result.value, ranked(scores[scores.len() - 1], to_beat), "seed {seed}");
            }
        }
    }
    assert!(proven > 100, "{proven}");
    let config = SearchConfig { score_to_beat: Some(0.5), ..base };
    for players in [2, 3] {
        let fault =
            Search::new(Toy::random_of(players, 1, 5, false), config).begin(10, Stream::keyed(&[1])).unwrap_err();
        assert!(fault.to_string().contains(&format!("but this game has {players} players: leave score_to_beat out")));
    }
}

#[test]
fn a_game_keeps_the_score_to_beat_that_it_began_with() {
    let start = Toy::random_of(1, 5, 12, true);
    let play = begin(&start, 0..0, SearchConfig::default());
    let mut found = Vec::new();
    for (turn, score) in [None, Some(0.5), Some(0.75)].into_iter().enumerate() {
        score.into_iter().for_each(|score| play.set_score_to_beat(score));
        play.admit(turn as u64 * 40..turn as u64 * 40 + 40);
        let games = all(&play);
        assert!(games.iter().all(|game| game.score_to_beat == score));
        found.extend(games);
    }
    for game in &found {
        game.check(&start).unwrap();
        assert_eq!(&GameRecord::from_bytes(&game.to_bytes()).unwrap(), game);
        let (score, reward) = (game.outcome_of(Player::Zero), game.reward_of(Player::Zero));
        match game.score_to_beat {
            None => assert_eq!(reward, score),
            Some(to_beat) if score == to_beat => assert_eq!(reward.abs(), 1.0),
            Some(to_beat) => assert_eq!(reward, if score > to_beat { 1.0 } else { -1.0 }),
        }
        let said = GameRecord { score_to_beat: Some(1.5), ..game.clone() }.check(&start).unwrap_err().to_string();
        assert!(said.contains("its score to beat is 1.5"));
    }
    // A coin that each game tosses once.
    let tied = |game_id| GameRecord { game_id, outcomes: vec![0.5], ..found[40].clone() };
    let coins: Vec<_> = (0..100).map(|game_id| tied(game_id).reward_of(Player::Zero)).collect();
    assert!((30..70).contains(&coins.iter().filter(|&&coin| coin == 1.0).count()), "{coins:?}");
    assert!(coins.iter().all(|coin| coin.abs() == 1.0) && tied(7).reward_of(Player::Zero) == coins[7]);
    // The same game by the same score, whoever set it.
    let search = SearchConfig { score_to_beat: Some(0.5), ..SearchConfig::default() };
    assert_eq!(all(&begin(&start, 40..80, search)), found[40..80]);
    let mut buffer = ReplayBuffer::new(start.clone(), 10_000);
    buffer.extend(found.into_iter().map(std::sync::Arc::new), &Workers::Serial).unwrap();
    let seeded = Draw { seed: 4, ..Draw::default() };
    for (row, value) in draw(&buffer, seeded, 64).values.into_iter().enumerate() {
        assert_eq!(value, buffer.origin(seeded, row).record.reward_of(Player::Zero));
    }
}

fn begin(start: &Toy<Values>, ids: Range<u64>, search: SearchConfig) -> SelfPlay<Hashed, Infallible> {
    let config = SelfPlayConfig { simulations: 12, game: "toy".into(), search, ..SelfPlayConfig::default() };
    let layout = Layout { slots: 3, first_game: ids.start, games: Some(ids.end - ids.start), ..Layout::default() };
    SelfPlay::start(start, config, &layout, vec![Hashed], &Workers::Serial, None).unwrap()
}

fn games_of(start: &Toy<Values>) -> Vec<GameRecord> {
    all(&begin(start, 0..6, SearchConfig::default()))
}

#[test]
fn a_record_holds_a_number_for_each_player() {
    for players in [1, 2, 3, 6] {
        let start = Toy::random_of(players, 5, 12, true);
        for record in games_of(&start) {
            record.check(&start).unwrap();
            assert_eq!(GameRecord::from_bytes(&record.to_bytes()).unwrap(), record);
            let mut end = start.clone();
            record.plies.iter().for_each(|ply| end.play(ply.action));
            assert_eq!((end.turn(), record.outcomes.as_slice()), (Turn::Terminal, end.outcome().numbers()));
            let said = |change: fn(&mut GameRecord)| {
                let mut other = record.clone();
                change(&mut other);
                other.check(&start).unwrap_err().to_string()
            };
            assert!(said(|record| *record.outcomes.last_mut().unwrap() = 0.125).contains("its outcome is marked as "));
            assert!(said(|record| record.root_values[0] = f32::NAN).contains("ply 0 has a value or prior"));
            assert!(said(|record| record.root_values.truncate(1)).contains("do not fit together"));
            let two = |record: &mut GameRecord| {
                (record.num_players, record.outcomes) = (2, vec![0.0]);
                record.root_values = vec![0.0; record.plies.len()];
                record.plies.iter_mut().for_each(|ply| ply.player %= 2);
            };
            assert!(said(two).contains("it is a record of 2 players and zero sum, but the game has"));
        }
    }
}

#[test]
fn value_targets_begin_with_the_player_to_move() {
    let start = Toy::random_of(3, 5, 12, true);
    let mut buffer = ReplayBuffer::new(start.clone(), 1_000);
    buffer.extend(games_of(&start).into_iter().map(std::sync::Arc::new), &Workers::Serial).unwrap();
    assert_eq!(buffer.value_width(), 3);
    let seeded = Draw { seed: 4, root_value_weight: 0.25, ..Draw::default() };
    let mut movers = [0; 3];
    for (row, found) in draw(&buffer, seeded, 64).values.chunks(3).enumerate() {
        let origin = buffer.origin(seeded, row);
        let Turn::Player(mover) = origin.state.turn() else { unreachable!() };
        movers[mover.index()] += 1;
        for (seat, &found) in found.iter().enumerate() {
            let player = Player::ALL[(mover.index() + seat) % 3];
            let end = f64::from(origin.record.outcomes[player.index()]);
            let own = f64::from(origin.record.root_values[3 * origin.ply + player.index()]);
            assert!((f64::from(found) - (0.75 * end + 0.25 * own)).abs() < 1e-6);
        }
    }
    assert!(movers.iter().all(|&rows| rows > 0));
}

#[test]
fn self_play_of_three_players_refuses_the_solver() {
    let start = Toy::random_of(3, 5, 12, true);
    let layout = Layout { games: Some(0), ..Layout::default() };
    let search = SearchConfig { solver: true, ..SearchConfig::default() };
    let refused = |config| {
        let play = SelfPlay::start(&start, config, &layout, vec![Hashed], &Workers::Serial, None);
        play.err().unwrap().to_string()
    };
    assert!(refused(SelfPlayConfig { search, ..SelfPlayConfig::default() }).contains("this game has 3 players"));
    let resigns = SelfPlayConfig { resign_at: 0.9, ..SelfPlayConfig::default() };
    assert!(refused(resigns).contains("resign_at is for games of two players with a zero sum"));
}
