//! Games that hide something, such as cards. The session keeps their true positions, and a client is told what the person
//! sees: never a position, a move of another player or a roll before the end.
//!
//! Invariant: until the end, a response follows from what the person knows ([`Game::view_key`](azpy_core::game::Game))
//! and from what the client sent.

use std::hash::{BuildHasher, RandomState};

use azpy_core::game::{Action, Player as Side, Turn, check_chance};
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

/// The fields of the actions `deal` and `play`.
const KNOWN: [&str; 6] = ["id", "action", "model", "game", "side", "move"];

/// A game of a client.
pub(crate) struct Deal<G> {
    name: String,
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
    waits: Option<u64>,
}

impl<G: Position> Deal<G> {
    pub(crate) fn is_waiting(&self) -> bool {
        self.waits.is_some()
    }

    fn play(&mut self, action: Action) {
        self.played.push(self.state.action_name(action));
        self.state.play(action);
    }
}

/// Draws that nobody can work out from the draws that he has seen.
pub(crate) struct Secret(RandomState, Stream);

impl Secret {
    /// `seed` counts where the system has no random numbers, as in a page.
    pub(crate) fn new(seed: u64) -> Self {
        Self(RandomState::new(), Stream::keyed(&[seed]))
    }

    fn drawn<T: Copy>(&mut self, from: impl Iterator<Item = (T, f32)> + Clone) -> Option<T> {
        let seed = self.0.hash_one(self.1.bits());
        let index = Stream::keyed(&[seed]).weighted(from.clone().map(|(_, chance)| f64::from(chance)));
        from.map(|(one, _)| one).nth(index)
    }
}

/// What the person sees.
#[derive(Serialize)]
struct Seen<'a> {
    game: &'a str,
    side: usize,
    /// At the end the whole position.
    view: String,
    /// Names of the legal actions.
    actions: Vec<String>,
    result: Option<String>,
    #[serde(flatten)]
    outcome: Outcome,
    /// At the end all that was played, rolls among it.
    #[serde(skip_serializing_if = "Option::is_none")]
    moves: Option<&'a [String]>,
}

/// Refuses what would search or show a game that hides something.
pub(crate) fn refuse_hidden<G: Position>(start: &G) -> Result<(), Error> {
    let why = "hides something from its players, so it is not searched, shown, read or written: use the actions deal and play";
    if start.hides() { Err(Error::Game(format!("{} {why}", start.game()))) } else { Ok(()) }
}

impl<G: Position, S: Searcher<G>> Session<G, S> {
    /// Answers a message that begins a game or plays a move in it.
    pub(crate) fn act_in_deal(
        &mut self,
        fields: &Object,
        action: &str,
        (number, player): (usize, std::sync::Arc<Player<G>>),
    ) -> Result<(), Error> {
        if !player.start.hides() {
            let why = "deal and play are for games that hide something";
            return Err(Error::field("action", format_args!("{why}, and {} does not", player.start.game())));
        }
        if let Some(name) = fields.fields().keys().find(|name| !KNOWN.contains(&name.as_str())) {
            let why = "has no effect on a game that hides something: leave it out";
            return Err(Error::field(cut(name), why));
        }
        let name = cut(fields.optional("game", text)?.unwrap_or_default());
        let known = self.deals.iter().position(|deal| deal.name == name);
        if action == "deal" {
            let last = player.start.num_players() as i64 - 1;
            let side = fields.optional("side", |value, name| whole(value, name, 0, last))?.unwrap_or(0);
            let (side, state) = (Side::ALL[side as usize], player.start.clone());
            known.into_iter().for_each(|index| self.drop_deal(index));
            if self.deals.len() >= self.limits.games.max(1) {
                self.drop_deal(0);
            }
            let (played, asked) = (Vec::new(), fields.clone());
            self.deals.push(Deal { name, player: number, side, state, played, asked, waits: None });
            return self.go_on(self.deals.len() - 1).inspect_err(|_| drop(self.deals.pop()));
        }
        let lost = "deal it first; a game ends with its WebSocket, and each POST is a client of its own";
        let index = known.ok_or_else(|| Error::field("game", format_args!("there is no game {name:?}: {lost}")))?;
        let deal = &mut self.deals[index];
        if deal.is_waiting() {
            return Err(Error::Busy("the other player is about to move: wait for the answer".to_owned()));
        }
        let mut legal = Vec::new();
        if deal.state.turn() == Turn::Terminal {
            return Err(Error::field("move", "the game is over: deal another one"));
        }
        deal.state.legal_actions(&mut legal);
        let names: Vec<String> = legal.iter().map(|&action| deal.state.action_name(action)).collect();
        let given = text(fields.field("move")?, "move")?;
        let place = names.iter().position(|name| name == given);
        let place =
            place.ok_or_else(|| expected("move", format_args!("one of {}", names.join(", ")), &given.into()))?;
        let before = (deal.state.clone(), deal.played.len());
        deal.asked = fields.clone();
        deal.play(legal[place]);
        self.go_on(index).inspect_err(|error| {
            if !matches!(error, Error::Busy(_)) {
                // The error of a game may say what it hides, so the game cannot go on.
                drop(self.deals.remove(index));
                return;
            }
            // The client can send the same move again.
            let deal = &mut self.deals[index];
            deal.state = before.0;
            deal.played.truncate(before.1);
        })
    }

    /// Takes the policy of another side, if a game waits for it; else gives back what was found.
    pub(crate) fn answer_deal(
        &mut self,
        token: u64,
        found: Result<SearchReport, Error>,
    ) -> Option<Result<SearchReport, Error>> {
        let Some(index) = self.deals.iter().position(|deal| deal.waits == Some(token)) else { return Some(found) };
        self.deals[index].waits = None;
        let none = || Error::Search("the search found no action".to_owned());
        let gone_on = found.and_then(|found| {
            let policy = found.result.actions.iter().copied().zip(found.result.priors.iter().copied());
            let action = self.secret.drawn(policy).ok_or_else(none)?;
            self.deals[index].play(action);
            self.go_on(index)
        });
        if let Err(error) = gone_on {
            let deal = self.deals.remove(index);
            self.fail(deal.asked.text("id").ok(), None, &error);
        }
        None
    }

    /// Plays rolls and the other sides until the person is to move, and tells what there is to see.
    fn go_on(&mut self, index: usize) -> Result<(), Error> {
        let most = self.deals[index].state.max_plies();
        loop {
            let deal = &self.deals[index];
            let turn = deal.state.turn();
            match turn {
                Turn::Terminal => break,
                Turn::Player(player) if player == deal.side => break,
                _ if deal.played.len() >= most => {
                    return Err(Error::Game(format!("the game goes on after {most} plies, its max_plies")));
                }
                Turn::Chance => {
                    let mut outcomes = Vec::new();
                    deal.state.chance_outcomes(&mut outcomes);
                    check_chance(&outcomes).map_err(Error::game)?;
                    let drawn = self.secret.drawn(outcomes.into_iter());
                    drawn.into_iter().for_each(|outcome| self.deals[index].play(outcome));
                }
                Turn::Player(_) => {
                    let token = self.next_token();
                    let request = SearchRequest { token, simulations: Some(1), ..SearchRequest::default() };
                    let deal = &mut self.deals[index];
                    self.searcher.begin(deal.player, &deal.state, None, request)?;
                    deal.waits = Some(token);
                    return Ok(());
                }
            }
            self.check_deal(index)?;
        }
        let deal = &self.deals[index];
        let (state, is_over) = (&deal.state, deal.state.turn() == Turn::Terminal);
        let mut legal = Vec::new();
        if !is_over {
            state.legal_actions(&mut legal);
        }
        let seen = Seen {
            game: &deal.name,
            side: deal.side.index(),
            view: if is_over { state.render() } else { state.render_view(deal.side) },
            actions: legal.into_iter().map(|action| state.action_name(action)).collect(),
            result: is_over.then(|| state.result_text()),
            outcome: outcome(state),
            moves: is_over.then_some(&*deal.played),
        };
        let line = action_response(&deal.asked, seen);
        self.check_deal(index)?;
        self.respond(line, None, false);
        Ok(())
    }

    /// The error of a game of the user's own.
    fn check_deal(&mut self, index: usize) -> Result<(), Error> {
        self.searcher.fault(&self.deals[index].state).map_or(Ok(()), Err)
    }

    fn drop_deal(&mut self, index: usize) {
        let deal = self.deals.remove(index);
        deal.waits.into_iter().for_each(|token| self.searcher.cancel(token));
    }

    pub(crate) fn drop_deals(&mut self) {
        (0..self.deals.len()).rev().for_each(|index| self.drop_deal(index));
    }
}
