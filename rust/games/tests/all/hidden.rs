//! Games that hide something: what a search of them may look at, what its roll-outs find, and exploitability.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use azpy_core::batched::{Rounds, Workers};
use azpy_core::cache::Cache;
use azpy_core::config::SearchConfig;
use azpy_core::conformance::{Hooks, Walk};
use azpy_core::evaluator::{Batch, Evaluator, Uniform};
use azpy_core::exploit::{Exploitability, MOST_POSITIONS, NoExploitability};
use azpy_core::game::{Action, Game, GameFault, Payoff, Player, Pov, PovOf, Sizes, Turn, Value};
use azpy_core::record::{FAST_SEARCH, SEARCHED};
use azpy_core::rng::{Stream, mix};
use azpy_core::search::{Search, SearchResult, stream_for};
use azpy_core::selfplay::{Layout, SelfPlay, SelfPlayConfig};
use azpy_core::text::Notation;
use azpy_games::any::AnyGame;
use azpy_games::registry::BUILT_IN;
use azpy_games::{DiceNim, KuhnPoker, LeducPoker, LiarsDice};

use crate::common::{after, encode, legal, moves, outcomes};

/// A network whose answers are a function of the observation: it can see nothing else.
#[derive(Clone, Copy)]
struct Seen;

/// What a search finds, the legal actions, and the observation.
type Told = (SearchResult, Vec<Action>, Vec<f32>);

fn noise(row: &[f32], number: u64) -> f32 {
    let bits = row.iter().fold(number, |bits, value| mix(bits ^ u64::from(value.to_bits())));
    (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
}

impl<G: Game> Evaluator<G> for Seen {
    type Error = Infallible;

    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Infallible> {
        for row in 0..batch.rows() {
            let seen = encode(&batch.states[row]);
            for entry in batch.range(row) {
                batch.logits[entry] = 2.0 * noise(&seen, u64::from(batch.actions[entry]));
            }
            batch.values[row].numbers_mut().fill(noise(&seen, 99));
        }
        Ok(())
    }

    fn network(&self) -> Option<u64> {
        Some(7)
    }
}

fn policy<G: Game>(state: &G) -> Vec<f64> {
    let seen = encode(state);
    let weights: Vec<f64> =
        legal(state).into_iter().map(|action| f64::from(2.0 * noise(&seen, u64::from(action))).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// What player 0 gets on the average where all play by the policy of `Seen`.
fn value<G: Game>(state: &G) -> f64 {
    let mean =
        |shares: Vec<(Action, f64)>| shares.into_iter().map(|(action, p)| p * value(&after(state, action))).sum();
    match state.turn() {
        Turn::Terminal => f64::from(state.outcome().of(Player::Zero)),
        Turn::Chance => mean(outcomes(state).into_iter().map(|(outcome, p)| (outcome, f64::from(p))).collect()),
        Turn::Player(_) => mean(legal(state).into_iter().zip(policy(state)).collect()),
    }
}

/// All positions at players' turns.
fn turns<G: Game>(start: &G, found: &mut Vec<G>) {
    if let Turn::Player(_) = start.turn() {
        found.push(start.clone());
    }
    moves(start).into_iter().for_each(|action| turns(&after(start, action), found));
}

fn mover<G: Game>(state: &G) -> Player {
    let Turn::Player(player) = state.turn() else { panic!("a player's turn") };
    player
}

fn searched<G: Game>(state: &G, config: SearchConfig, scale: Option<f64>, stream: Stream, cache: bool) -> Search<G> {
    let mut search = Search::new(state.clone(), config);
    if let Some(scale) = scale {
        search.roll_out(scale);
    }
    search.begin(100, stream).unwrap();
    let mut rounds = Rounds::new(Workers::Serial, cache.then(|| Arc::new(Cache::new(1000))));
    let mut searches = [search];
    while rounds.run(&mut searches, &mut Seen).unwrap() {}
    let [search] = searches;
    search
}

#[test]
fn what_a_player_is_told_does_not_depend_on_what_it_does_not_know() {
    fn check<G: Game>(start: &G) {
        let mut known: HashMap<(usize, u128), Told> = HashMap::new();
        let mut found = Vec::new();
        turns(start, &mut found);
        let configs = [
            SearchConfig::default(),
            SearchConfig { gumbel_actions: 4, ..SearchConfig::default() },
            SearchConfig { evaluations: Some(50), lcb: Some(1.0), ..SearchConfig::default() },
        ];
        for (number, state) in found.iter().enumerate() {
            let search = searched(state, configs[number % 3], None, Stream::keyed(&[1]), false);
            assert_eq!(search.tree().nodes().len(), 1, "a tree sees what is hidden");
            let told = (search.result(), legal(state), encode(state));
            assert_eq!(told.0.priors, told.0.target);
            let player = mover(state);
            let first = known.entry((player.index(), state.view_key(player).unwrap())).or_insert(told.clone());
            assert_eq!(*first, told, "{}", state.render());
            assert_eq!(state.render_view(player).matches(['?']).count(), 1, "{}", state.render_view(player));
        }
    }
    check(&KuhnPoker::new());
    check(&LeducPoker::new());
    check(&LiarsDice::new(2).unwrap());
    check(&AnyGame::open(BUILT_IN, "leduc_poker", Vec::new()).unwrap());
}

#[test]
fn options_that_read_the_true_position_are_refused() {
    let state = after(&after(&KuhnPoker::new(), 0), 1);
    let config = SearchConfig { solver: true, lookahead: 2, ..SearchConfig::default() };
    assert_eq!(Search::new(state, config).begin(10, Stream::keyed(&[1])), Err(GameFault::Hidden));
}

#[test]
fn roll_outs_find_on_the_average_what_the_policies_get() {
    // From the true position: its average over the worlds of a view is what the player to move can expect.
    for line in [&[0, 4][..], &[0, 4, 2, 2], &[3, 1, 1, 1, 5, 2]] {
        let state = line.iter().fold(LeducPoker::new(), |state, &action| after(&state, action));
        let player = mover(&state);
        let actions = legal(&state);
        let games = 4000;
        let mut sums = vec![0.0; actions.len()];
        for game in 0..games {
            let result = searched(&state, SearchConfig::default(), Some(0.25), stream_for(3, game, 2), true).result();
            assert_eq!((&result.actions, &result.visits), (&actions, &vec![1; actions.len()]));
            let weights: Vec<f64> = result
                .priors
                .iter()
                .zip(&result.q)
                .map(|(&prior, &q)| f64::from(prior) * (f64::from(q) / 0.25).exp())
                .collect();
            let total: f64 = weights.iter().sum();
            let mean: f32 = result.priors.iter().zip(&result.q).map(|(prior, q)| prior * q).sum();
            assert!((result.value - mean).abs() < 1e-6 && (result.values[player.index()] - mean).abs() < 1e-6);
            for (index, weight) in weights.into_iter().enumerate() {
                assert!((f64::from(result.target[index]) - weight / total).abs() < 1e-6);
                assert!((f64::from(result.priors[index]) - policy(&state)[index]).abs() < 1e-6);
                sums[index] += f64::from(result.q[index]);
            }
        }
        for (&action, sum) in actions.iter().zip(sums) {
            let sign = if player == Player::Zero { 1.0 } else { -1.0 };
            let (found, exact) = (sum / games as f64, sign * value(&after(&state, action)));
            // Five standard errors of an outcome, which lies within 13 chips.
            assert!((found - exact).abs() < 5.0 * 0.5 / (games as f64).sqrt(), "{action}: {found} and {exact}");
        }
    }
}

#[test]
fn roll_outs_are_the_same_whatever_shares_their_batches() {
    let mut found = Vec::new();
    turns(&LeducPoker::new(), &mut found);
    for (number, state) in found.iter().enumerate().step_by(97) {
        let of = |eval_batch, cache| {
            let config = SearchConfig { eval_batch, ..SearchConfig::default() };
            searched(state, config, Some(0.3), stream_for(5, number as u64, 4), cache).result()
        };
        let first = of(8, false);
        for (eval_batch, cache) in [(1, false), (1, true), (2, false), (64, true)] {
            assert_eq!(of(eval_batch, cache), first);
        }
    }
}

#[test]
fn games_of_self_play_are_the_same_whatever_plays_them() {
    fn play<G: Game>(start: &G, slots: usize, pipelines: usize, threads: usize, cache: usize) -> Vec<String> {
        let config =
            SelfPlayConfig { payoff_scale: 0.4, seed: 11, full_search_share: 0.5, ..SelfPlayConfig::default() };
        let layout = Layout { slots, games: Some(40), ..Layout::default() };
        let cache = (cache > 0).then(|| Arc::new(Cache::new(cache)));
        let workers = Workers::new(threads).unwrap();
        let play = SelfPlay::start(start, config, &layout, vec![Seen; pipelines], &workers, cache).unwrap();
        let mut games = Vec::new();
        while !play.is_over() {
            if let Some(game) = play.next(std::time::Duration::from_secs(60)).unwrap() {
                game.check(start).unwrap();
                for ply in game.plies.iter().filter(|ply| ply.player >= 0) {
                    let learns = ply.player as u64 == game.game_id % 2;
                    assert_eq!(ply.flags, if learns { SEARCHED } else { FAST_SEARCH }, "one player a game learns");
                }
                games.push((game.game_id, format!("{game:?}")));
            }
        }
        games.sort();
        assert_eq!(games.len(), 40);
        games.into_iter().map(|(_, game)| game).collect()
    }
    fn check<G: Game>(start: &G) {
        let first = play(start, 1, 1, 1, 0);
        for (slots, pipelines, threads, cache) in [(8, 1, 1, 0), (9, 2, 2, 500), (40, 1, 4, 100_000)] {
            assert_eq!(play(start, slots, pipelines, threads, cache), first);
        }
    }
    check(&LeducPoker::new());
    check(&LiarsDice::default());
}

/// A policy of a game's views as an evaluator.
struct Table<'a, F>(&'a F);

impl<G: Game, F: Fn(&G, Action) -> f64 + Sync> Evaluator<G> for Table<'_, F> {
    type Error = Infallible;

    fn evaluate_batch(&mut self, batch: Batch<'_, G>) -> Result<(), Infallible> {
        for row in 0..batch.rows() {
            for entry in batch.range(row) {
                batch.logits[entry] = (self.0)(&batch.states[row], batch.actions[entry]).ln().max(-80.0) as f32;
            }
            batch.values[row] = PovOf::<G>::filled(2, 0.0);
        }
        Ok(())
    }
}

#[test]
fn one_player_of_a_game_learns_and_tries_actions() {
    // The policy always passes, so a bet was tried: half of a tenth of the learner's moves.
    static PASSES: fn(&KuhnPoker, Action) -> f64 = |_, action| f64::from(u8::from(action == 0));
    let config = SelfPlayConfig { payoff_scale: 0.4, seed: 3, ..SelfPlayConfig::default() };
    let layout = Layout { slots: 64, games: Some(4000), ..Layout::default() };
    let workers = Workers::new(1).unwrap();
    let play = SelfPlay::start(&KuhnPoker::new(), config, &layout, vec![Table(&PASSES)], &workers, None).unwrap();
    let (mut learned, mut tried) = (0, 0);
    while !play.is_over() {
        let Some(game) = play.next(std::time::Duration::from_secs(60)).unwrap() else { continue };
        for ply in game.plies.iter().filter(|ply| ply.player >= 0) {
            let learns = ply.flags == SEARCHED;
            assert!(learns || ply.action == 0, "the others play their policy");
            learned += usize::from(learns);
            tried += usize::from(ply.action == 1);
        }
    }
    // Five standard deviations of so many draws.
    let (mean, games) = (0.05 * learned as f64, learned as f64);
    assert!((tried as f64 - mean).abs() < 5.0 * (games * 0.05 * 0.95).sqrt(), "{tried} of {learned}");
    assert!(learned >= 4000);
}

#[test]
fn exploitability_of_equal_shares_is_the_one_of_openspiel() {
    // The numbers of views, of positions, and the exploitability: those of OpenSpiel 2.0.
    fn check<G: Game>(start: &G, unit: f64, views: usize, positions: Option<usize>, expected: f64) {
        let game = Exploitability::of(start, MOST_POSITIONS).unwrap();
        assert_eq!(game.views().len(), views);
        assert!(positions.is_none_or(|positions| game.positions() == positions), "{} positions", game.positions());
        let asked = game.policy_of(&mut Uniform, Workers::Serial).unwrap();
        let found = unit * game.measure(&asked);
        assert!((found - expected).abs() < 1e-6, "{found}");
        assert!((unit * game.measure(&game.uniform()) - expected).abs() < 1e-6);
    }
    check(&KuhnPoker::new(), 2.0, 12, Some(58), 11.0 / 24.0);
    check(&LeducPoker::new(), 13.0, 936, Some(9457), 2.373_611_111);
    check(&LiarsDice::default(), 1.0, 24_576, None, 0.780_744_347);
}

#[test]
fn an_equilibrium_of_kuhn_poker_cannot_be_exploited() {
    // Kuhn (1950): player 0 bluffs with a jack in a share b of the games; here a third of the greatest.
    let bluff = 1.0 / 9.0;
    let shares = |state: &KuhnPoker, action: Action| {
        let seen = encode(state);
        let (card, history) = (seen[2..5].iter().position(|&one| one == 1.0).unwrap(), state.render());
        let decisions = seen[5..].iter().sum::<f32>() as usize;
        let bet = match (decisions, history.contains("bet"), card) {
            (0, _, 0) => bluff,
            (0, _, 1) => 0.0,
            (0, _, _) => 3.0 * bluff,
            (1, false, 0) => 1.0 / 3.0,
            (1, true, 1) => 1.0 / 3.0,
            (2, _, 1) => bluff + 1.0 / 3.0,
            (_, _, 2) => 1.0,
            _ => 0.0,
        };
        if action == 1 { bet } else { 1.0 - bet }
    };
    let game = Exploitability::of(&KuhnPoker::new(), MOST_POSITIONS).unwrap();
    let policy = game.policy_of(&mut Table(&shares), Workers::Serial).unwrap();
    assert!(game.measure(&policy).abs() < 1e-6, "{}", game.measure(&policy));
    // A player who always passes loses the ante each time.
    let passes = |_: &KuhnPoker, action: Action| f64::from(u8::from(action == 0));
    let policy = game.policy_of(&mut Table(&passes), Workers::Serial).unwrap();
    assert!((2.0 * game.measure(&policy) - 1.0).abs() < 1e-6, "{}", game.measure(&policy));
}

/// Kuhn poker with other views.
#[derive(Clone)]
struct Bent(KuhnPoker, fn(&KuhnPoker, Player) -> u128, fn(&mut [f32]));

impl Game for Bent {
    type Payoff = Value;

    fn sizes(&self) -> Sizes {
        self.0.sizes()
    }
    fn turn(&self) -> Turn {
        self.0.turn()
    }
    fn legal_actions(&self, out: &mut Vec<Action>) {
        self.0.legal_actions(out);
    }
    fn play(&mut self, action: Action) {
        self.0.play(action);
    }
    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        self.0.chance_outcomes(out);
    }
    fn outcome(&self) -> Value {
        self.0.outcome()
    }
    fn encode(&self, row: &mut [f32]) {
        self.0.encode(row);
        (self.2)(row);
    }
    fn key(&self) -> u128 {
        self.0.key()
    }
    fn view_key(&self, player: Player) -> Option<u128> {
        Some((self.1)(&self.0, player))
    }
    fn render(&self) -> String {
        self.0.render()
    }
}

impl Notation for Bent {}

fn own_view(game: &KuhnPoker, player: Player) -> u128 {
    game.view_key(player).unwrap()
}

/// The player's card alone.
fn card(game: &KuhnPoker, player: Player) -> u128 {
    let text = game.render_view(player);
    let shown = text.split(';').next().unwrap();
    shown.bytes().fold(player.index() as u128, |key, byte| key * 31 + u128::from(byte))
}

/// The bets alone.
fn bets(game: &KuhnPoker, player: Player) -> u128 {
    let text = game.render();
    let bets = text.split_once(';').map_or("", |(_, bets)| bets);
    bets.bytes().fold(player.index() as u128, |key, byte| key * 31 + u128::from(byte))
}

#[test]
fn games_without_an_exploitability_say_why() {
    let refused = |most| Exploitability::of(&LeducPoker::new(), most).err();
    assert_eq!(refused(9456), Some(NoExploitability::TooLarge(9456)));
    assert_eq!(refused(9457), None);
    assert_eq!(Exploitability::of(&DiceNim::default(), 1000).err(), Some(NoExploitability::Open));
    let forgets = Bent(KuhnPoker::new(), card, |_| {});
    assert_eq!(Exploitability::of(&forgets, 1000).err(), Some(NoExploitability::Forgets(0)));
}

/// The rule that a walk over all lines finds broken, and the first position that only looks like another one.
fn walked(start: &Bent) -> (Option<&'static str>, Option<Vec<Action>>) {
    let mut walk = Walk::<Bent, Infallible>::new(start, Vec::new(), Hooks::infallible(), true).unwrap();
    let (mut lines, mut same_look) = (vec![Vec::new()], None);
    while let Some(line) = lines.pop() {
        walk.restart().unwrap();
        assert!(line.iter().all(|&action| walk.play(action).unwrap()));
        let look = match walk.look(true) {
            Ok(look) => look,
            Err(broken) => {
                assert!(broken.other.is_some_and(|other| other != line));
                return (Some(broken.rule), same_look);
            }
        };
        same_look = same_look.or(look.same_look);
        lines.extend(look.facts.actions.iter().map(|&action| [&line[..], &[action]].concat()));
    }
    (None, same_look)
}

#[test]
fn views_that_say_too_little_are_found() {
    assert_eq!(walked(&Bent(KuhnPoker::new(), own_view, |_| {})), (None, None));
    assert_eq!(walked(&Bent(KuhnPoker::new(), bets, |_| {})).0, Some("view"));
    // Players who see the bets, and forget them.
    let forgets = Bent(KuhnPoker::new(), card, |row| row[5..].fill(0.0));
    assert_eq!(walked(&forgets).0, Some("recall"));
    let blind = Bent(KuhnPoker::new(), own_view, |row| row[2..5].fill(0.0));
    let (broken, same_look) = walked(&blind);
    assert!(broken.is_none() && same_look.is_some());
}
