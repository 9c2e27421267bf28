//! The way down: from the root to a leaf, a finished game, or a leaf already in flight.

use super::{Scratch, Search};
use crate::game::{Action, Game, GameFault, Payoff, Player, Pov, PovValue, Turn, check_chance};
use crate::search::ahead::{forced_end, winning_action};
use crate::search::gumbel;
use crate::search::puct::select;
use crate::search::solver;
use crate::search::tree::{Kind, NodeId, ROOT};

/// Where a descent ended.
pub(super) enum Descent<P> {
    /// The position is the last of `states`, and its legal actions are in `scratch.actions`; whether it is that of the
    /// last node.
    Leaf(Player, bool),
    /// A position of known value; and in how many plies the game is over, if the tree does not know yet.
    Known(P, Option<usize>),
    Collision,
}

impl<G: Game> Search<G> {
    /// Walks from the root to where the tree ends, marking the way. Pushes the path to `paths` and the position of a
    /// leaf to `states`.
    ///
    /// `PLAIN`: see [`Search::is_plain`].
    pub(super) fn descend<const PLAIN: bool>(
        &mut self,
        scratch: &mut Scratch,
    ) -> Result<Descent<G::Payoff>, GameFault> {
        let start = self.round.paths.len();
        let mut id = ROOT;
        // The player whose view `value_sum` is in at this node.
        let mut chooser = Player::Zero;
        scratch.line.clear();
        // Walk down the tree first. Only the end needs a position of the game.
        loop {
            self.round.paths.push(id);
            let kind = self.tree.node(id).kind;
            if !PLAIN && let Some(proven) = solver::proven_value(self.tree.node(id)) {
                self.tree.mark(id);
                let value = PovValue(proven).absolute(chooser);
                return Ok(Descent::Known(G::Payoff::of_proven(value), None));
            }
            self.tree.unfold(id);
            // Select before marking, so that this descent does not count as in flight.
            let chosen = match kind {
                Kind::Decision(player) if PLAIN => select::<true>(&self.tree, id, player, chooser, &self.config),
                Kind::Decision(player) => self.choose(id, player, chooser, &mut scratch.scores),
                _ => ROOT,
            };
            self.tree.mark(id);
            id = match kind {
                Kind::Decision(player) => {
                    chooser = player;
                    chosen
                }
                Kind::Chance => {
                    chooser = Player::Zero;
                    let children = self.tree.children(id);
                    let drawn = self.run.stream.weighted(children.iter().map(|child| f64::from(child.prior)));
                    self.tree.node(id).first_child + drawn as NodeId
                }
                Kind::Pending => return Ok(Descent::Collision),
                Kind::Terminal | Kind::New => break,
            };
            scratch.line.push(self.tree.node(id).action);
        }
        let mut state = self.round.spare.pop().unwrap_or_else(|| self.position.clone());
        let mut turn = state.arrive(&self.position, &scratch.line, Some(&mut scratch.actions));
        loop {
            match turn {
                Turn::Terminal => {
                    self.tree.set_kind(id, Kind::Terminal);
                    let outcome = self.config.outcome(&state);
                    self.round.spare.push(state);
                    return Ok(Descent::Known(outcome, Some(0)));
                }
                Turn::Player(player) => {
                    if !PLAIN && id == ROOT {
                        // Expand the root even if its value is proven, because an action must be chosen.
                        self.root.winning = winning_action(&state, player, &self.config, &mut self.plies);
                    } else if !PLAIN
                        && let Some((value, plies)) = forced_end(&state, player, &self.config, &mut self.plies)
                    {
                        self.round.spare.push(state);
                        return Ok(Descent::Known(G::Payoff::of_proven(value), Some(plies)));
                    }
                    self.tree.set_kind(id, Kind::Pending);
                    self.round.states.push(state);
                    return Ok(Descent::Leaf(player, true));
                }
                Turn::Chance => {}
            }
            if self.round.paths.len() - start > self.size.max_plies + 1 {
                return Err(GameFault::TooLong(self.size.max_plies));
            }
            // A roll needs no network, so expand it during the descent.
            state.chance_outcomes(&mut scratch.outcomes);
            check_chance(&scratch.outcomes)?;
            if !self.tree.has_room(scratch.outcomes.len()) {
                return self.roll_unseen(id, state, scratch);
            }
            scratch.actions.clear();
            scratch.priors.clear();
            for &(outcome, probability) in &scratch.outcomes {
                scratch.actions.push(outcome);
                scratch.priors.push(probability);
            }
            self.tree.expand(id, Kind::Chance, &scratch.actions, &scratch.priors);
            let drawn = self.run.stream.weighted(scratch.priors.iter().map(|&p| f64::from(p)));
            state.play(scratch.actions[drawn]);
            turn = turn_of(&state, &mut scratch.actions);
            id = self.tree.node(id).first_child + drawn as NodeId;
            self.round.paths.push(id);
            self.tree.mark(id);
        }
    }

    /// Whether the search uses none of the rarer options, so that descents can skip their checks.
    pub(super) fn is_plain(&self) -> bool {
        self.config.gumbel().is_none() && !self.config.solver
    }

    /// The child to go on to from a decision, whatever the options.
    fn choose(&mut self, id: NodeId, player: Player, chooser: Player, scores: &mut Vec<f64>) -> NodeId {
        if id == ROOT
            && let Some(winning) = self.root.winning
            && let Some(index) = self.tree.children(ROOT).iter().position(|child| child.action == winning)
        {
            return self.tree.node(ROOT).first_child + index as NodeId;
        }
        let Some(rule) = self.config.gumbel() else {
            return select::<false>(&self.tree, id, player, chooser, &self.config);
        };
        let choice = gumbel::Choice::at(&self.tree, id, player, chooser, self.size.num_actions);
        let chosen = if id == ROOT { self.root.halving.select(&choice, rule) } else { choice.interior(rule, scores) };
        self.tree.node(id).first_child + chosen as NodeId
    }

    /// The tree is full: sample the roll without adding nodes, and continue to the next decision. The values still back
    /// up through the roll's node.
    fn roll_unseen(
        &mut self,
        id: NodeId,
        mut state: G,
        scratch: &mut Scratch,
    ) -> Result<Descent<G::Payoff>, GameFault> {
        for _ in 0..=self.size.max_plies {
            match turn_of(&state, &mut scratch.actions) {
                Turn::Terminal => return Ok(Descent::Known(self.config.outcome(&state), None)),
                Turn::Player(player) => {
                    self.tree.set_kind(id, Kind::Pending);
                    self.round.states.push(state);
                    return Ok(Descent::Leaf(player, false));
                }
                Turn::Chance => {
                    state.chance_outcomes(&mut scratch.outcomes);
                    check_chance(&scratch.outcomes)?;
                    let drawn = self.run.stream.weighted(scratch.outcomes.iter().map(|&(_, p)| f64::from(p)));
                    state.play(scratch.outcomes[drawn].0);
                }
            }
        }
        Err(GameFault::TooLong(self.size.max_plies))
    }
}

/// The turn; `actions` become the legal actions of a player.
fn turn_of<G: Game>(state: &G, actions: &mut Vec<Action>) -> Turn {
    let turn = state.turn();
    if matches!(turn, Turn::Player(_)) {
        state.legal_actions(actions);
    }
    turn
}
