//! Games that hide something, such as cards: one at a time for each client. The session keeps the true position, and the
//! client is told what the person sees: no position, no move of another player and no roll before the end.
//!
//! Invariant: until the end, a response follows from what the person knows ([`Game::view_key`](azpy_core::game::Game))
//! and from what the client sent.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use azpy_core::game::{Action, GameFault, Player as Side, Turn, check_chance, legal_of};
use azpy_core::rng::Stream;
use azpy_core::text::Position;
use serde::Serialize;

use crate::answer::{action_response, outcome};
use crate::error::Error;
use crate::object::{Object, expected, text, whole};
use crate::player::Player;
use crate::query::cut;
use crate::searcher::{SearchReport, SearchRequest, Searcher};
use crate::session::Session;
use crate::shape::Outcome;

/// A game of a client.
#[derive(Clone)]
pub(crate) struct Deal<G> {
    /// The number of the player that plays the other sides.
    player: usize,
    /// The person's side.
    side: Side,
    state: G,
    /// Names of all actions and rolls.
    played: Vec<String>,
    /// The message to answer.
    asked: Object,
    /// The token of the search for another side's policy.
    pub(crate) waits: Option<u64>,
}

impl<G: Position> Deal<G> {
    fn play(&mut self, action: Action) {
        self.played.push(self.state.action_name(action));
        self.state.play(action);
    }

    /// The answer: at the end all that there is.
    fn shown(&self) -> String {
        #[derive(Serialize)]
        struct Seen<'a> {
            side: usize,
            view: String,
            actions: Vec<String>,
            result: Option<String>,
            #[serde(flatten)]
            outcome: Outcome,
            #[serde(skip_serializing_if = "Option::is_none")]
            moves: Option<&'a [String]>,
        }
        let (state, is_over) = (&self.state, self.state.turn() == Turn::Terminal);
        let seen = Seen {
            side: self.side.index(),
            view: if is_over { state.render() } else { state.render_view(self.side) },
            actions: legal_of(state).into_iter().map(|action| state.action_name(action)).collect(),
            result: is_over.then(|| state.result_text()),
            outcome: outcome(state),
            moves: is_over.then_some(&self.played),
        };
        action_response(&self.asked, seen)
    }
}

/// Draws an index that does not follow from earlier draws. On a page, where `secret` is fixed, the seed of `draws` is random.
fn drawn(secret: &RandomState, draws: &mut Stream, chances: impl Iterator<Item = f32> + Clone) -> usize {
    Stream::keyed(&[secret.hash_one(draws.bits())]).weighted(chances.map(f64::from))
}

/// Refuses fields that have no effect.
fn refuse_others(fields: &Object, known: &[&str]) -> Result<(), Error> {
    let other = fields.fields().keys().find(|name| !known.contains(&name.as_str()));
    other.map_or(Ok(()), |name| Err(Error::field(cut(name), "has no effect here: leave it out")))
}

/// Refuses what would search or show a game that hides something.
pub(crate) fn refuse_hidden<G: Position>(start: &G) -> Result<(), Error> {
    let why = "hides something, so it is not searched, shown, read or written: use the actions deal and play";
    if start.hides() { Err(Error::Game(format!("{} {why}", start.game()))) } else { Ok(()) }
}

impl<G: Position, S: Searcher<G>> Session<G, S> {
    /// Answers the action `deal`, which begins a game in place of the one before.
    pub(crate) fn begin_deal(
        &mut self,
        fields: &Object,
        (number, player): (usize, Arc<Player<G>>),
    ) -> Result<(), Error> {
        if !player.start.hides() {
            let why = format_args!("deal is for games that hide something, and {} does not", player.start.game());
            return Err(Error::field("action", why));
        }
        refuse_others(fields, &["id", "action", "model", "side"])?;
        let last = player.start.num_players() as i64 - 1;
        let side = fields.optional("side", |value, name| whole(value, name, 0, last))?.unwrap_or(0);
        let (side, state) = (Side::ALL[side as usize], player.start.clone());
        if let Some(before) = self.drop_deal().filter(|before| before.waits.is_some()) {
            let why = Error::Search("another game was dealt before the answer".to_owned());
            self.fail(before.asked.text("id").ok(), None, &why);
        }
        let (played, asked) = (Vec::new(), fields.clone());
        self.deal = Some(Deal { player: number, side, state, played, asked, waits: None });
        self.go_on().inspect_err(|_| self.deal = None)
    }

    /// Answers the action `play`, a move of the person.
    pub(crate) fn play_in_deal(&mut self, fields: &Object) -> Result<(), Error> {
        refuse_others(fields, &["id", "action", "move"])?;
        let lost = "no game is in play: send deal first; a game ends when its WebSocket closes, and a POST cannot continue one";
        let deal = self.deal.as_mut().ok_or_else(|| Error::field("action", lost))?;
        if deal.waits.is_some() {
            return Err(Error::Busy("another player is about to move: wait for the answer".to_owned()));
        }
        if deal.state.turn() == Turn::Terminal {
            return Err(Error::field("move", "the game is over: deal another one"));
        }
        let legal = legal_of(&deal.state);
        let names: Vec<String> = legal.iter().map(|&action| deal.state.action_name(action)).collect();
        let given = text(fields.field("move")?, "move")?;
        let place = names.iter().position(|name| name == given);
        let legal_names = format!("one of {}", names.join(", "));
        let place = place.ok_or_else(|| expected("move", legal_names, &given.into()))?;
        let before = deal.clone();
        deal.asked = fields.clone();
        deal.play(legal[place]);
        // After `Busy` the client can send the same move again. The error of a game may say what it hides.
        self.go_on().inspect_err(|error| self.deal = Some(before).filter(|_| matches!(error, Error::Busy(_))))
    }

    /// Takes the policy of another side, if the game waits for it; else gives back what was found.
    pub(crate) fn answer_deal(
        &mut self,
        token: u64,
        found: Result<SearchReport, Error>,
    ) -> Option<Result<SearchReport, Error>> {
        let Some(mut deal) = self.deal.take_if(|deal| deal.waits == Some(token)) else { return Some(found) };
        let asked = deal.asked.clone();
        let gone_on = found.and_then(|SearchReport { result, .. }| {
            let index = drawn(&self.secret, &mut self.draws, result.priors.iter().copied());
            let action = result.actions.get(index);
            deal.play(*action.ok_or_else(|| Error::Search("the search found no action".to_owned()))?);
            self.deal = Some(Deal { waits: None, ..deal });
            self.go_on()
        });
        if let Err(error) = gone_on {
            self.deal = None;
            self.fail(asked.text("id").ok(), None, &error);
        }
        None
    }

    /// Plays rolls and the other sides until the person is to move, and tells what there is to see.
    fn go_on(&mut self) -> Result<(), Error> {
        let token = self.next_token();
        let Some(deal) = &mut self.deal else { return Ok(()) };
        let most = deal.state.max_plies();
        loop {
            match deal.state.turn() {
                Turn::Terminal => break,
                Turn::Player(player) if player == deal.side => break,
                _ if deal.played.len() >= most => return Err(Error::game(GameFault::TooLong(most))),
                Turn::Player(_) => {
                    let request = SearchRequest { token, simulations: Some(1), ..SearchRequest::default() };
                    self.searcher.begin(deal.player, &deal.state, None, request)?;
                    deal.waits = Some(token);
                    return Ok(());
                }
                Turn::Chance => {
                    let mut outcomes = Vec::new();
                    deal.state.chance_outcomes(&mut outcomes);
                    check_chance(&outcomes).map_err(Error::game)?;
                    let chances = outcomes.iter().map(|&(_, chance)| chance);
                    deal.play(outcomes[drawn(&self.secret, &mut self.draws, chances)].0);
                }
            }
        }
        // A view that is missing would show all.
        if deal.state.turn() != Turn::Terminal && deal.state.view_key(deal.side).is_none() {
            return Err(Error::Game(format!("{} has no view_key here, so nothing is shown", deal.state.game())));
        }
        let line = deal.shown();
        match self.searcher.fault(&deal.state) {
            Some(error) => Err(error),
            None => {
                self.respond(line, None, false);
                Ok(())
            }
        }
    }

    /// Ends the game, and gives it.
    pub(crate) fn drop_deal(&mut self) -> Option<Deal<G>> {
        let deal = self.deal.take()?;
        if let Some(token) = deal.waits {
            self.searcher.cancel(token);
        }
        Some(deal)
    }
}
