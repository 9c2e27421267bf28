//! One game in a slot: its openings, its dice, how an action is chosen once a search is done, and how it ends.
//!
//! All of it depends on (seed, game id) and on what the searches find. Knows nothing of pipelines, evaluators or threads.

use crate::config::SearchConfig;
use crate::error::Error;
use crate::game::{Action, Game, GameFault, Payoff, Player, Pov, PovValue, Turn, check_chance};
use crate::options::OptionValue::Whole;
use crate::options::{MOST, Rule, check_all, options};
use crate::rng::Stream;
use crate::search::{Search, SearchResult, stream_for};
use crate::selfplay::record::{FAST_SEARCH, GameRecord, MIXED_NETWORKS, Ply, SEARCHED};

/// A game's draws come from streams of (seed, game id, word). The word of a ply's own draws (a random action, dice, its
/// search) is its number, and these set its other draws apart.
const CHOICE: u64 = 1 << 63;
const SEARCH_KIND: u64 = 1 << 62;
/// The word of the draw that decides whether players resign in a game.
const RESIGNING: u64 = u64::MAX - 1;
/// The share of games that are played to the end. The network learns from them how won games end, and they show which
/// resignations were wrong.
const PLAYED_ON: f64 = 0.1;
/// The word of a game's openings.
const OPENINGS: u64 = u64::MAX;
/// In a game that hides something, the player who learns draws this share of its moves with equal probabilities. Without
/// it, it would never meet again the actions that its policy gave up.
const TRIED: f64 = 0.1;
const ZERO: &str = "AlphaGo Zero, Silver et al. 2017";

options! {
    help = selfplay_options;
    /// How games are played.
    #[derive(Clone, Debug)]
    pub struct SelfPlayConfig {
        /// simulations per move, in addition to those of a reused tree
        simulations: u32 = 100, unit = "simulations", low = Whole(1);
        /// probability that a move gets a full search and is learned from
        full_search_share: f64 = 1.0, unit = "share", source = "KataGo, Wu 2019", above = true, high = Whole(1);
        /// simulations of a fast search; none: a quarter of simulations
        fast_simulations: Option<u32> = None, unit = "simulations", low = Whole(1);
        /// temperature of moves in the first plies; 0 plays the best
        temperature: f64 = 1.0, source = ZERO, high = MOST, rule = Rule::Puct;
        /// plies at the start of a game that use temperature
        temperature_plies: usize = 30, unit = "plies", source = ZERO, rule = Rule::Puct;
        /// temperature of moves after temperature_plies
        temperature_final: f64 = 0.0, high = MOST, rule = Rule::Puct;
        /// most random plies before a game; training skips them
        opening_plies: usize = 0, unit = "plies";
        /// opponent's value in two searches at which a player resigns; 1: never
        resign_at: f64 = 1.0, unit = "value", source = ZERO, high = Whole(1);
        /// start each search with the subtree of the move played
        tree_reuse: bool = true;
        /// hidden information: divide payoffs by this
        payoff_scale: f64 = 1.0, unit = "payoff", source = "magnetic mirror descent, Sokota et al. 2022", above = true,
            high = MOST;
        /// plies after which a game ends as a draw, marked as capped
        max_plies: Option<usize> = None, unit = "plies", low = Whole(1);
        with
        /// How each move is searched.
        search: SearchConfig;
        /// Of the run.
        seed: u64;
        /// What records say the game is.
        game: String;
    }
}

impl SelfPlayConfig {
    /// Simulations of a search, on top of those of a reused tree.
    #[must_use]
    pub fn simulations_of(&self, fast: bool) -> u32 {
        if fast { self.fast_simulations.unwrap_or((self.simulations / 4).max(1)) } else { self.simulations }
    }

    /// Refuses what games cannot be played with.
    ///
    /// # Errors
    /// See [`SearchConfig::check`].
    pub fn check(&self) -> Result<(), Error> {
        let (rows, default) = (Self::OPTIONS, Self::default());
        check_all(rows, |name| self.get(name))?;
        self.search.check()?;
        self.search.check_rule(rows, |name| (self.get(name), default.get(name)))
    }

    /// Refuses options that games of `start`'s kind cannot be played with.
    ///
    /// # Errors
    /// What names the option.
    pub fn check_for<G: Game>(&self, start: &G) -> Result<(), GameFault> {
        if self.resign_at < 1.0 && !G::Payoff::ZERO_SUM {
            return Err(GameFault::Resignation(format!("has {} players or no zero sum", start.num_players())));
        }
        if self.resign_at < 1.0 && start.hides() {
            return Err(GameFault::Resignation("hides something".into()));
        }
        self.search.check_for(start)
    }

    /// The temperature at which a ply's action is drawn.
    fn temperature_at(&self, ply: usize) -> f64 {
        if ply < self.temperature_plies { self.temperature } else { self.temperature_final }
    }

    /// Whether a ply gets a fast search, by a draw of its own.
    fn is_fast(&self, game_id: u64, ply: usize) -> bool {
        stream_for(self.seed, game_id, ply as u64 | SEARCH_KIND).unit() >= self.full_search_share
    }
}

/// A game in a slot.
pub(crate) struct GameInPlay {
    pub(crate) record: GameRecord,
    /// Plies of random opening.
    pub(crate) opening: usize,
    /// The network that began this move's search.
    network: u64,
    /// Whether this move's search is a fast one.
    fast: bool,
    /// Whether this move's search lacks the tree of the ply before, which another process had.
    without_tree: bool,
    pub(crate) over: bool,
    pub(crate) fault: Option<GameFault>,
}

impl GameInPlay {
    /// A game that has not begun; `score_to_beat` takes the place of the option.
    pub(crate) fn new<G: Game>(config: &SelfPlayConfig, start: &G, game_id: u64, score_to_beat: Option<f32>) -> Self {
        let mut stream = stream_for(config.seed, game_id, OPENINGS);
        let up_to = config.opening_plies;
        let opening = if up_to == 0 { 0 } else { stream.below(up_to.saturating_add(1)) };
        Self {
            record: GameRecord {
                game: config.game.clone(),
                game_id,
                seed: config.seed,
                score_to_beat: score_to_beat.or(config.search.score_to_beat.map(|score| score as f32)),
                ..GameRecord::begun(start)
            },
            opening,
            network: 0,
            fast: false,
            without_tree: false,
            over: false,
            fault: None,
        }
    }

    /// A game that began in another process, and its position; `None` if it is of another run.
    pub(crate) fn begun<G: Game>(config: &SelfPlayConfig, start: &G, record: GameRecord) -> Option<(Self, G)> {
        let mut game = Self::new(config, start, record.game_id, None);
        let mut position = start.clone();
        let fits = record.game == config.game
            && record.seed == config.seed
            && record.num_players == game.record.num_players
            && record.outcomes.len() == game.record.outcomes.len();
        if !fits || record.plies.iter().any(|ply| position.try_play(ply.action).is_err()) {
            return None;
        }
        game.record = record;
        game.without_tree = true;
        Some((game, position))
    }

    /// How its moves are searched.
    pub(crate) fn search_config(&self, config: &SelfPlayConfig) -> SearchConfig {
        SearchConfig { score_to_beat: self.record.score_to_beat.map(f64::from), ..config.search }
    }

    /// What is kept of a game that is over.
    pub(crate) fn into_record(mut self) -> GameRecord {
        self.record.drop_plain_targets();
        self.record
    }
}

/// Plays the action that a finished search leads to, and notes it; or the player resigns. `network` is what records call
/// the pipeline's network.
pub(crate) fn finish_move<G: Game>(
    search: &mut Search<G>,
    game: &mut GameInPlay,
    config: &SelfPlayConfig,
    network: u64,
) {
    let Turn::Player(player) = search.root().turn() else {
        return;
    };
    let record = &mut game.record;
    let ply = record.plies.len();
    let result = search.result();
    if resigns(record, config, player, result.value) {
        record.resigned = true;
        record.set_outcome(PovValue(-1.0).absolute(player));
        game.over = true;
        return;
    }
    // Not the search's own stream: that one's position depends on what the search met.
    let mut stream = stream_for(config.seed, record.game_id, ply as u64 | CHOICE);
    // Gumbel's draws are chance enough, and a game whose outcome is proven shall have that outcome.
    let is_chosen = config.search.gumbel().is_some() || result.proof != 0;
    let temperature = if is_chosen { 0.0 } else { config.temperature_at(ply) };
    let chosen = if search.hides() {
        // The policy itself: the target goes beyond it.
        let tried = if game.fast { 0.0 } else { TRIED };
        let alike = tried / result.priors.len() as f64;
        let shares = result.priors.iter().map(|&prior| (1.0 - tried) * f64::from(prior) + alike);
        result.action.map(|_| stream.weighted(shares))
    } else {
        choose(&result, temperature, &mut stream)
    };
    let Some(chosen) = chosen else {
        return;
    };
    let action = result.actions[chosen];
    let mixed = if network == game.network && !game.without_tree { 0 } else { MIXED_NETWORKS };
    let kind = if game.fast { FAST_SEARCH } else { SEARCHED };
    if !game.fast {
        record.legal.extend_from_slice(&result.actions);
        record.visits.extend_from_slice(&result.visits);
        record.priors.extend_from_slice(&result.priors);
        record.targets.extend_from_slice(&result.target);
    }
    let player = player.index() as i8;
    record.push(Ply { action, player, flags: mixed | kind, network }, &result.values);
    game.without_tree = false;
    advance(search, action, config.tree_reuse);
}

/// Whether the player to move gives up: this search and its last one find the opponent's value above `resign_at`.
fn resigns(record: &GameRecord, config: &SelfPlayConfig, player: Player, value: f32) -> bool {
    let is_lost = |value: f32| f64::from(-value) > config.resign_at;
    let before = || record.plies.iter().rposition(|ply| ply.mover() == Some(player));
    is_lost(value)
        && before().is_some_and(|ply| is_lost(record.root_value_of(ply, player)))
        && stream_for(config.seed, record.game_id, RESIGNING).unit() >= PLAYED_ON
}

/// Rolls dice and plays openings up to the next search, and begins it; or ends the game.
pub(crate) fn begin_move<G: Game>(
    search: &mut Search<G>,
    game: &mut GameInPlay,
    config: &SelfPlayConfig,
    network: u64,
) {
    let (mut legal, mut outcomes) = (Vec::new(), Vec::new());
    while !game.over {
        let record = &mut game.record;
        let ply = record.plies.len();
        let turn = search.root().turn();
        if turn != Turn::Terminal && ply > search.root().max_plies() {
            game.fault = Some(GameFault::TooLong(search.root().max_plies()));
            return;
        }
        if turn == Turn::Terminal || config.max_plies.is_some_and(|cap| ply >= cap) {
            record.capped = turn != Turn::Terminal;
            let draw = || G::Payoff::draw(search.root().num_players());
            record.set_outcome(if record.capped { draw() } else { search.root().outcome() });
            game.over = true;
            return;
        }
        let mut stream = stream_for(config.seed, record.game_id, ply as u64);
        let (action, player) = match turn {
            Turn::Player(player) if ply < game.opening => {
                search.root().legal_actions(&mut legal);
                if legal.is_empty() {
                    // The search names this mistake of the game.
                    game.opening = 0;
                    continue;
                }
                (legal[stream.below(legal.len())], player.index() as i8)
            }
            Turn::Player(player) => {
                game.network = network;
                game.fast = if search.hides() {
                    // One player of a game learns and tries actions. The others play their policy: what it learns is an
                    // answer to that alone.
                    player.index() as u64 != record.game_id % search.root().num_players() as u64
                } else {
                    config.is_fast(record.game_id, ply)
                };
                let simulations = config.simulations_of(game.fast);
                // Noise is for what is learned from.
                search.set_exploring(!game.fast);
                game.fault = search.begin(simulations, stream).err();
                return;
            }
            Turn::Chance => {
                search.root().chance_outcomes(&mut outcomes);
                if let Err(fault) = check_chance(&outcomes) {
                    game.fault = Some(fault);
                    return;
                }
                let drawn = stream.weighted(outcomes.iter().map(|&(_, probability)| f64::from(probability)));
                let outcome = outcomes[drawn].0;
                (outcome, -1)
            }
            Turn::Terminal => unreachable!("handled above"),
        };
        record.push(Ply { action, player, flags: 0, network: 0 }, &[]);
        advance(search, action, config.tree_reuse);
    }
}

fn advance<G: Game>(search: &mut Search<G>, action: u32, reuse: bool) {
    if reuse {
        search.advance(action);
    } else {
        let mut root = search.root().clone();
        root.play(action);
        search.reset(root);
    }
}

/// Draws an index of `result.actions` with probability proportional to target^(1/temperature): to powers of the visits,
/// where the target is their shares. Temperature 0 takes the search's own choice.
#[must_use]
pub fn choose(result: &SearchResult, temperature: f64, stream: &mut Stream) -> Option<usize> {
    let best = result.actions.iter().position(|&action| Some(action) == result.action)?;
    if temperature <= 0.0 {
        return Some(best);
    }
    let weights = sharpen(result, temperature);
    Some(stream.weighted(weights.iter().copied()))
}

/// The probabilities of the actions at a temperature: `[L]`, summing to 1; none for what is proven to lose, unless there
/// is nothing else.
#[must_use]
pub fn sharpen(result: &SearchResult, temperature: f64) -> Vec<f64> {
    sharpen_shares(result, &result.target, temperature)
}

/// As [`sharpen`], for an opponent that plays weaker actions too. A search of one simulation says nothing but what the
/// network says: the priors take the place of the visits. An action that the search saw to win at once has all: people
/// who play badly take it too.
#[must_use]
pub fn soften(result: &SearchResult, temperature: f64) -> Vec<f64> {
    let wins = |index: usize| result.proofs.get(index) == Some(&1) && result.q[index] >= 1.0;
    if let Some(winning) = (0..result.actions.len()).find(|&index| wins(index)) {
        return (0..result.actions.len()).map(|index| f64::from(u8::from(index == winning))).collect();
    }
    let visits: u64 = result.visits.iter().map(|&visits| u64::from(visits)).sum();
    sharpen_shares(result, if visits > 1 { &result.target } else { &result.priors }, temperature)
}

fn sharpen_shares(result: &SearchResult, shares: &[f32], temperature: f64) -> Vec<f64> {
    let lost = |index: usize| result.proofs.get(index).is_some_and(|&proof| proof != 0) && result.q[index] <= -1.0;
    // What is proven to lose is not drawn as long as something else has a share.
    let spared = (0..shares.len()).any(|index| !lost(index) && shares[index] > 0.0);
    let share = |index: usize| if spared && lost(index) { 0.0 } else { shares[index] };
    let most = (0..shares.len()).map(share).fold(0.0, f32::max);
    let chance = |(index, &action): (usize, &Action)| {
        if temperature > 0.0 {
            // Relative to the largest: no power can overflow.
            ((f64::from(share(index)) / f64::from(most)).ln() / temperature).exp()
        } else {
            f64::from(u8::from(Some(action) == result.action))
        }
    };
    let weights: Vec<f64> = result.actions.iter().enumerate().map(chance).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}
