//! The messages of one client: queries and actions are taken, and answered when their searches have an end.

use std::collections::{BTreeMap, HashSet};
use std::hash::RandomState;
use std::sync::Arc;

use azpy_core::rng::Stream;
use azpy_core::text::{Position, shown};
use serde::Serialize;
use serde_json::json;

use crate::answer::{action_response, line_of, show};
use crate::deals::{Deal, refuse_hidden};
use crate::error::Error;
use crate::games::{read, write};
use crate::history::History;
use crate::level::{chosen, chosen_at};
use crate::line::Line;
use crate::object::{Limits, Object, text};
use crate::player::Player;
use crate::query::{Query, action_of, id_of, terminated};
use crate::searcher::{Event, SearchReport, SearchRequest, Searcher};

/// Of a client: a warning is said once.
const MOST_WARNINGS: usize = 100;

/// A response to a client, with what its transport needs.
#[derive(Clone, Debug)]
pub struct Response {
    /// JSON, in ASCII.
    pub line: String,
    /// As of a POST that it answers: 200; 400 for what is wrong; 503 where it can be asked again later.
    pub status: u16,
    /// The query's id, and the turn that it is about; none where it is about no search.
    pub search: Option<(String, usize)>,
    /// Whether the search goes on.
    pub is_report: bool,
}

/// A search that goes on.
struct OpenSearch<G> {
    query: Arc<Query<G>>,
    /// Which position of the query.
    index: usize,
    warnings: Arc<[String]>,
    /// As it was when the search began.
    player: Arc<Player<G>>,
}

impl<G> OpenSearch<G> {
    /// The number of the query's moves before the position, and the line that leads to it.
    fn position(&self) -> (usize, &Line<G>) {
        let (turn, line) = &self.query.positions[self.index];
        (*turn, line)
    }
}

/// A game of a client, by its name and the number of its player.
struct NamedGame<G, K> {
    player: usize,
    name: String,
    history: History<G>,
    game: K,
}

/// The messages of one client.
pub struct Session<G: Position, S: Searcher<G>> {
    /// Who searches.
    pub searcher: S,
    limits: Limits,
    pub(crate) draws: Stream,
    /// The game that was asked for last stands last.
    games: Vec<NamedGame<G, S::Game>>,
    open: BTreeMap<u64, OpenSearch<G>>,
    /// A game that hides something; see `deals`.
    pub(crate) deal: Option<Deal<G>>,
    pub(crate) secret: RandomState,
    /// The actions `renew` that go on, and the numbers of their players.
    renewing: BTreeMap<u64, (Object, usize)>,
    /// Of the last request.
    token: u64,
    warned: HashSet<String>,
    responses: Vec<Response>,
}

impl<G: Position, S: Searcher<G>> Session<G, S> {
    /// A client that has asked for nothing. `seed` is of the draws for players without a seed.
    pub fn new(searcher: S, limits: Limits, seed: u64) -> Self {
        Self {
            searcher,
            limits,
            draws: Stream::keyed(&[seed]),
            games: Vec::new(),
            open: BTreeMap::new(),
            deal: None,
            secret: RandomState::new(),
            renewing: BTreeMap::new(),
            token: 0,
            warned: HashSet::new(),
            responses: Vec::new(),
        }
    }

    /// Whether there are more responses to come to what was asked for.
    pub fn is_busy(&self) -> bool {
        let deal_waits = self.deal.as_ref().is_some_and(|deal| deal.waits.is_some());
        deal_waits || !(self.open.is_empty() && self.renewing.is_empty())
    }

    /// Takes a query or an action as JSON, and returns the responses that there are at once.
    pub fn ask(&mut self, text: &str) -> Vec<Response> {
        match Object::read(text) {
            Ok(fields) => self.attend(&fields),
            Err(error) => {
                self.fail(None, None, &error);
                std::mem::take(&mut self.responses)
            }
        }
    }

    /// As [`Session::ask`], of an object that was read before.
    pub fn attend(&mut self, fields: &Object) -> Vec<Response> {
        if let Err(error) = self.act(fields) {
            self.fail(id_of(fields).ok(), None, &error);
        }
        std::mem::take(&mut self.responses)
    }

    /// Returns the responses to searches: their answers, and reports of those that go on.
    pub fn take(&mut self) -> Vec<Response> {
        while let Some(event) = self.searcher.take() {
            let (token, found) = match event {
                Event::Report(token, report) => {
                    if let Some(open) = self.open.remove(&token) {
                        // A report that cannot be written is no answer, and the answer will say why.
                        let _ = self.answer(&open, &report, true);
                        self.open.insert(token, open);
                    }
                    continue;
                }
                Event::Renewed(token, renewed) => {
                    self.answer_renewed(token, renewed);
                    continue;
                }
                Event::Done(token, report) => (token, Ok(report)),
                Event::Failed(token, error) => (token, Err(error)),
            };
            let Some(found) = self.answer_deal(token, found) else { continue };
            let Some(open) = self.open.remove(&token) else { continue };
            if let Err(error) = found.and_then(|report| self.answer(&open, &report, false)) {
                self.fail(Some(&open.query.id), Some(open.position().0), &error);
            }
        }
        std::mem::take(&mut self.responses)
    }

    /// Ends the searches that go on, and drops the trees. They have no more responses.
    pub fn close(&mut self) {
        self.games.clear();
        self.renewing.clear();
        self.drop_deal();
        for token in std::mem::take(&mut self.open).into_keys() {
            self.searcher.cancel(token);
        }
    }

    pub(crate) fn respond(&mut self, line: String, search: Option<(String, usize)>, is_report: bool) {
        self.responses.push(Response { line, status: 200, search, is_report });
    }

    pub(crate) fn fail(&mut self, id: Option<&str>, turn: Option<usize>, error: &Error) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Failure<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            turn_number: Option<usize>,
            #[serde(skip_serializing_if = "Option::is_none")]
            retry_after: Option<u32>,
            error: String,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            is_roll_due: bool,
        }
        let is_busy = matches!(error, Error::Busy(_));
        let line = line_of(&Failure {
            id,
            turn_number: turn,
            retry_after: is_busy.then_some(1),
            error: error.to_string(),
            is_roll_due: matches!(error, Error::RollDue(_)),
        });
        let (status, search) = (if is_busy { 503 } else { 400 }, id.map(str::to_owned).zip(turn));
        self.responses.push(Response { line, status, search, is_report: false });
    }

    /// What was found by asking a game, unless the game has failed.
    fn sound<T>(&mut self, position: &G, found: Result<T, Error>) -> Result<T, Error> {
        self.searcher.fault(position).map_or(found, Err)
    }

    pub(crate) fn next_token(&mut self) -> u64 {
        self.token += 1;
        self.token
    }

    fn act(&mut self, fields: &Object) -> Result<(), Error> {
        id_of(fields)?;
        let Some(action) = action_of(fields, self.searcher.renews())? else { return self.search(fields) };
        let players = self.searcher.players()?;
        let line = match action {
            "query_version" => action_response(fields, json!({"version": env!("CARGO_PKG_VERSION"), "git_hash": ""})),
            "query_models" => {
                let models: Vec<_> = players.iter().map(|player| &player.about).collect();
                action_response(fields, json!({ "models": models }))
            }
            "terminate" | "terminate_all" => {
                self.terminate(fields)?;
                let echoed = ["terminateId", "turnNumbers"].into_iter();
                let echoed = echoed.filter_map(|name| Some((name, fields.get(name)?)));
                action_response(fields, echoed.collect::<BTreeMap<_, _>>())
            }
            "renew" => {
                let (number, _) = named(&players, fields)?;
                let token = self.next_token();
                self.renewing.insert(token, (fields.clone(), number));
                self.searcher.renew(number, token);
                return Ok(());
            }
            "deal" => return self.begin_deal(fields, named(&players, fields)?),
            "play" => return self.play_in_deal(fields),
            _ => {
                let (_, player) = named(&players, fields)?;
                refuse_hidden(&player.start)?;
                let response = match action {
                    "show" => show,
                    "read" => read,
                    _ => write,
                };
                let line = response(fields, &player, &self.limits);
                self.sound(&player.start, line)?
            }
        };
        self.respond(line, None, false);
        Ok(())
    }

    fn answer_renewed(&mut self, token: u64, renewed: Result<bool, Error>) {
        let Some((fields, number)) = self.renewing.remove(&token) else { return };
        let player = self.searcher.players().map(|players| players[number].clone());
        match renewed.and_then(|changed| Ok((changed, player?))) {
            Ok((changed, player)) => {
                let (name, network) = (&player.about["internalName"], &player.network);
                let more = json!({"changed": changed, "internalName": name, "network": network});
                self.respond(action_response(&fields, more), None, false);
            }
            Err(error) => self.fail(id_of(&fields).ok(), None, &error),
        }
    }

    /// Has searches answer with what they know: those of one query, or all.
    fn terminate(&mut self, fields: &Object) -> Result<(), Error> {
        let (id, turns) = terminated(fields, &self.limits)?;
        for (&token, open) in &self.open {
            let is_of_query = id.as_ref().is_none_or(|id| *id == open.query.id);
            if is_of_query && turns.as_ref().is_none_or(|turns| turns.contains(&open.position().0)) {
                self.searcher.stop(token);
            }
        }
        Ok(())
    }

    fn search(&mut self, fields: &Object) -> Result<(), Error> {
        let (number, player) = named(&self.searcher.players()?, fields)?;
        refuse_hidden(&player.start)?;
        let query = Query::read(fields, &player, &self.limits);
        let query = Arc::new(self.sound(&player.start, query)?);
        let fresh = query.ignored.iter().filter(|said| !self.warned.contains(*said)).cloned();
        let warnings: Arc<[String]> = fresh.take(MOST_WARNINGS.saturating_sub(self.warned.len())).collect();
        self.warned.extend(warnings.iter().cloned());
        for (index, (turn, _)) in query.positions.iter().enumerate() {
            let (warnings, player) = (warnings.clone(), player.clone());
            if let Err(error) = self.begin(number, OpenSearch { query: query.clone(), index, warnings, player }) {
                self.fail(Some(&query.id), Some(*turn), &error);
            }
        }
        Ok(())
    }

    fn begin(&mut self, player: usize, open: OpenSearch<G>) -> Result<(), Error> {
        let (query, (turn, line)) = (&*open.query, open.position());
        let end = query.end(turn, &line.state, &open.warnings);
        if let Some(answer) = self.sound(&line.state, end)? {
            self.respond(answer, Some((query.id.clone(), turn)), false);
            return Ok(());
        }
        let allowed = query.actions(&line.state);
        let allowed = self.sound(&line.state, allowed)?.unwrap_or_default();
        let most = self.limits.searches;
        if self.open.len() >= most {
            return Err(Error::Busy(format!("{most} searches of this client are open: wait for an answer")));
        }
        let token = self.next_token();
        let request = SearchRequest {
            token,
            allowed,
            simulations: query.simulations,
            seconds: query.seconds,
            priority: query.priority,
            report_every: query.report_every,
            standard_errors: query.lower_bounds,
            lines: usize::MAX,
            line_length: query.pv_length,
        };
        match query.game.as_deref().filter(|_| query.level.is_none()) {
            None => self.searcher.begin(player, &line.state, None, request)?,
            Some(name) => loop {
                let index = self.follow(player, name, line)?;
                let game = &self.games[index].game;
                match self.searcher.begin(player, &line.state, Some(game), request.clone()) {
                    // The player was renewed meanwhile.
                    Err(_) if !self.searcher.is_current(player, game) => {}
                    begun => break begun?,
                }
            },
        }
        self.open.insert(token, open);
        Ok(())
    }

    /// The index of the game of a name, at the position of a line.
    fn follow(&mut self, player: usize, name: &str, line: &Line<G>) -> Result<usize, Error> {
        let known = self.games.iter().position(|named| (named.player, &*named.name) == (player, name));
        let known = known.map(|index| self.games.remove(index)).filter(|named| {
            named.history.leads_to(&line.start, &line.played) && self.searcher.is_current(player, &named.game)
        });
        let named = match known {
            Some(named) => named,
            None => {
                let game = self.searcher.new_game(player, &line.start)?;
                NamedGame { player, name: name.to_owned(), history: History::new(line.start.clone()), game }
            }
        };
        if self.games.len() >= self.limits.games.max(1) {
            self.games.remove(0);
        }
        self.games.push(named);
        let (index, searcher) = (self.games.len() - 1, &mut self.searcher);
        let NamedGame { history, game, .. } = &mut self.games[index];
        history.follow(&line.played, |step| match step {
            Some(action) => searcher.play(game, action),
            None => {
                searcher.undo(game);
                Ok(())
            }
        })?;
        Ok(index)
    }

    /// Responds with what a search has found by now.
    fn answer(&mut self, open: &OpenSearch<G>, found: &SearchReport, during: bool) -> Result<(), Error> {
        let (player, query, (turn, line)) = (&open.player, &open.query, open.position());
        let temperature = query.level.map_or(player.temperature, |level| player.levels[level].temperature);
        let best = match player.seed {
            None => chosen(&found.result, temperature, &mut self.draws),
            Some(seed) => chosen_at(&found.result, temperature, seed, line.state.key()),
        };
        let best = best.ok_or_else(|| Error::Search("the search found no action".to_owned()))?;
        let network = player.network.as_deref();
        let answer = query.answer(turn, &line.state, during, &open.warnings, found, best, network);
        let answer = self.sound(&line.state, Ok(answer))?;
        self.respond(answer, Some((query.id.clone(), turn)), during);
        Ok(())
    }
}

/// The player that an object names, and its number; the first one if it names none.
fn named<G>(players: &[Arc<Player<G>>], fields: &Object) -> Result<(usize, Arc<Player<G>>), Error> {
    let number = match fields.optional("model", text)? {
        None => 0,
        Some(name) => players.iter().position(|player| player.name == name).ok_or_else(|| {
            let known: Vec<&str> = players.iter().map(|player| &*player.name).collect();
            let name = shown(name);
            Error::field("model", format_args!("unknown name {name}; available models: {}", known.join(", ")))
        })?,
    };
    Ok((number, players[number].clone()))
}
