//! The queries of one page about one player: they are taken, searched a round at a time, and answered.
//!
//! The twin of `Analyst` in azpy/serving/queries.py, for one client and without threads. A search that has to end is
//! answered first. Else the search of the highest priority goes on until it is done, of one priority the oldest.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use azpy_core::batched::{Rounds, SearchError, Workers};
use azpy_core::cache::{ANSWER_BYTES, Cache};
use azpy_core::config::SearchConfig;
use azpy_core::engine::{Priority, Request};
use azpy_core::evaluator::Uniform;
use azpy_core::game::{Action, Game, Turn};
use azpy_core::look::{standard_errors, variations};
use azpy_core::rng::Stream;
use azpy_core::search::{Search, SearchResult, Stop, stream_for};
use azpy_core::selfplay::soften;
use azpy_net::Answers;
use azpy_query::{
    Asking, Found, LONGEST_NAME, Limits, Object, Place, Position, Query, Refused, action_of, id_of, read, show,
    terminated, write,
};
use serde_json::{Value, json};

use crate::player::{About, Player};
use crate::track::{Kept, Track};

/// Memory of all trees: a page has less of it than a server.
const TREES: usize = 256 << 20;
/// Simulations of a round that need no network: few, as the memory for all of them has to be there before.
const KNOWN: u64 = 64;
/// Memory of the network's answers that are kept, as if every action were legal in each position.
const ANSWERS: usize = 64 << 20;
const MOST_ANSWERS: usize = 100_000;
const MOST_WARNINGS: usize = 100;
/// Trees of another network are dropped, and here is only one.
const NETWORK: u64 = 1;

/// What answers the actions that are about a position.
type Tell<G> = fn(&Object, &Asking<'_, G>, &Limits) -> Result<String, Refused>;

/// A search that was asked for.
struct Open<G: Position> {
    /// Tells searches apart, and says which came first.
    serial: u64,
    query: Rc<Query<G>>,
    /// Which place of the query.
    index: usize,
    warnings: Rc<[String]>,
    temperature: f64,
    rank: Priority,
    /// The game that keeps its tree, if there is one.
    seat: Option<Kept<G>>,
    /// None before its turn in its game.
    search: Option<Search<G>>,
    /// When it began, and when it was last told of; milliseconds.
    began: Option<f64>,
    told: f64,
    /// Why it ends before its time.
    cut: Option<&'static str>,
}

impl<G: Position> Open<G> {
    fn place(&self) -> &Place<G> {
        &self.query.places[self.index]
    }

    fn memory_bytes(&self) -> usize {
        self.search.as_ref().map_or(0, |search| search.tree().memory_bytes())
    }

    /// Whether its time is over, or somebody stopped it.
    fn has_to_end(&self, now: f64) -> bool {
        let is_late = |(began, seconds): (f64, f64)| now - began >= 1e3 * seconds;
        self.cut.is_some() || self.began.zip(self.query.seconds).is_some_and(is_late)
    }
}

/// The queries about one player.
pub(crate) struct Session<G: Position> {
    start: G,
    player: Player,
    about: About,
    levels: Vec<(String, u32)>,
    config: SearchConfig,
    answers: Answers<Uniform>,
    rounds: Rounds<G>,
    /// Memory of all trees, in bytes.
    pub(crate) trees: usize,
    /// The game that was asked for last stands last.
    tracks: Vec<Track<G>>,
    open: Vec<Open<G>>,
    searches: u64,
    draws: Stream,
    warned: HashSet<String>,
    said: Vec<String>,
}

/// A session of whatever game.
pub trait Asked {
    /// Takes a query or an action as JSON.
    fn ask(&mut self, text: &str);
    /// One round of one search; `now` is in milliseconds, since whenever. Whether searches go on.
    fn step(&mut self, now: f64) -> bool;
    /// What was said since the last call, lines of JSON.
    fn said(&mut self) -> Vec<String>;
}

impl<G: Position> Session<G> {
    pub(crate) fn new(start: G, player: Player, about: About, weights: &[u8]) -> Result<Self, String> {
        let (config, answers) = (player.config()?, player.evaluator(weights)?);
        let answer = ANSWER_BYTES + size_of::<f32>() * (start.num_actions() + start.num_players());
        let cached = (ANSWERS / answer).min(MOST_ANSWERS);
        let cache = matches!(answers, Answers::Net(_)).then(|| Arc::new(Cache::new(cached)));
        let mut rounds = Rounds::new(Workers::Serial, cache);
        rounds.known = KNOWN;
        Ok(Self {
            start,
            levels: about.levels.iter().map(|level| (level.name.clone(), level.simulations)).collect(),
            config,
            answers,
            rounds,
            trees: TREES,
            tracks: Vec::new(),
            open: Vec::new(),
            searches: 0,
            draws: Stream::keyed(&[player.seed.into()]),
            warned: HashSet::new(),
            said: Vec::new(),
            player,
            about,
        })
    }

    fn asking(&self) -> Asking<'_, G> {
        let has_model = matches!(self.answers, Answers::Net(_));
        Asking { start: &self.start, simulations: self.about.simulations, levels: &self.levels, has_model }
    }

    fn take(&mut self, fields: &Object) -> Result<(), Refused> {
        let (id, mut more) = (id_of(fields)?, Vec::<(&str, Value)>::new());
        let Some(action) = action_of(fields, false)? else { return self.search(fields) };
        match action {
            "query_version" => {
                more.push(("version", env!("CARGO_PKG_VERSION").into()));
                more.push(("git_hash", "".into()));
            }
            "query_models" => more.push(("models", json!([self.player.about]))),
            "terminate" | "terminate_all" => {
                self.terminate(fields)?;
                let echoed = |name| fields.get(name).map(|value| (name, value.clone()));
                more.extend(["terminateId", "turnNumbers"].into_iter().filter_map(echoed));
            }
            _ => {
                self.check_model(fields)?;
                let tell: Tell<G> = match action {
                    "show" => show,
                    "read" => read,
                    _ => write,
                };
                let line = tell(fields, &self.asking(), &self.player.limits.of_query)?;
                self.said.push(line);
                return Ok(());
            }
        }
        let more = more.into_iter().map(|(name, value)| (name.to_owned(), value));
        let head = [("id".to_owned(), id.into()), ("action".to_owned(), action.into())];
        self.said.push(Value::Object(head.into_iter().chain(more).collect()).to_string());
        Ok(())
    }

    fn check_model(&self, fields: &Object) -> Result<(), Refused> {
        if fields.get("model").is_none() {
            return Ok(());
        }
        let (model, own) = (fields.text("model")?, &self.about.name);
        if model == own {
            return Ok(());
        }
        let cut: String = model.chars().take(LONGEST_NAME).collect();
        Err(Refused(format!("model: there is no '{cut}', but {own}")))
    }

    /// Has searches answer with what they know: those of one query, or all.
    fn terminate(&mut self, fields: &Object) -> Result<(), Refused> {
        let (id, turns) = terminated(fields, &self.player.limits.of_query)?;
        for open in &mut self.open {
            let turn = open.place().turn;
            if id.as_ref().is_none_or(|id| *id == open.query.id) && turns.as_ref().is_none_or(|all| all.contains(&turn))
            {
                open.cut = open.cut.or(Some("stopped"));
            }
        }
        Ok(())
    }

    fn search(&mut self, fields: &Object) -> Result<(), Refused> {
        self.check_model(fields)?;
        let query = Rc::new(Query::read(fields, &self.asking(), &self.player.limits.of_query)?);
        let fresh = query.ignored.iter().filter(|said| !self.warned.contains(*said)).cloned();
        let fresh: Rc<[String]> = fresh.take(MOST_WARNINGS.saturating_sub(self.warned.len())).collect();
        self.warned.extend(fresh.iter().cloned());
        for index in 0..query.places.len() {
            if let Err(Refused(error)) = self.begin(&query, index, &fresh) {
                let Place { turn, line } = &query.places[index];
                let mut said = json!({"id": query.id, "turnNumber": turn, "error": error});
                if line.state.turn() == Turn::Chance {
                    said["isRollDue"] = true.into();
                }
                if self.open.len() >= self.player.limits.searches {
                    said["retryAfter"] = 1.into();
                }
                self.said.push(said.to_string());
            }
        }
        Ok(())
    }

    fn begin(&mut self, query: &Rc<Query<G>>, index: usize, warnings: &Rc<[String]>) -> Result<(), Refused> {
        let Place { turn, line } = &query.places[index];
        if let Some(line) = query.end(*turn, &line.state, warnings)? {
            self.said.push(line);
            return Ok(());
        }
        let most = self.player.limits.searches;
        if self.open.len() >= most {
            return Err(Refused(format!("{most} searches of this client are open: wait for an answer")));
        }
        let allowed = query.actions(&line.state)?.unwrap_or_default();
        self.searches += 1;
        let rank = match query.priority {
            "play" => Priority::Play,
            "analysis" => Priority::Analysis,
            _ => Priority::Ponder,
        };
        let request = Request {
            token: self.searches,
            simulations: query.simulations.unwrap_or(u32::MAX),
            seed: 0,
            run: 0,
            deadline: None,
            priority: rank,
            report_every: None,
        };
        let mut open = Open {
            serial: self.searches,
            query: query.clone(),
            index,
            warnings: warnings.clone(),
            temperature: query.level.map_or(self.player.temperature, |level| self.about.levels[level].temperature),
            rank,
            seat: None,
            search: None,
            began: None,
            told: 0.0,
            cut: None,
        };
        match query.game.as_deref().filter(|_| query.level.is_none()) {
            None => {
                let mut search = Search::new(line.state.clone(), self.config);
                if !allowed.is_empty() {
                    search.allow(allowed);
                }
                open.search = Some(begun(search, &request)?);
                self.open.push(open);
            }
            Some(name) => {
                let seat = self.track(name, &line.start).follow(&line.start, &line.played).clone();
                seat.borrow_mut().search(request, allowed);
                open.seat = Some(seat.clone());
                self.open.push(open);
                self.go_on(&seat);
            }
        }
        Ok(())
    }

    /// The game of a name, as the one that was asked for last.
    fn track(&mut self, name: &str, start: &G) -> &mut Track<G> {
        let known = self.tracks.iter().position(|track| track.name == name);
        let track =
            known.map_or_else(|| Track::new(name, start.clone(), self.config), |place| self.tracks.remove(place));
        if self.tracks.len() >= self.player.limits.games {
            self.tracks.remove(0);
        }
        self.tracks.push(track);
        self.tracks.last_mut().expect("it was pushed")
    }

    /// Begins the next search of a game, where the one before is answered.
    fn go_on(&mut self, seat: &Kept<G>) {
        let next = seat.borrow_mut().next(NETWORK);
        let Some((search, request)) = next else { return };
        let Some(place) = self.open.iter().position(|open| open.serial == request.token) else { return };
        match begun(search, &request) {
            Ok(search) => self.open[place].search = Some(search),
            Err(Refused(error)) => self.fail(place, &error),
        }
    }

    /// Ends a search that cannot be answered, and drops its tree.
    fn fail(&mut self, place: usize, error: &str) {
        let open = self.open.remove(place);
        self.said.push(json!({"id": open.query.id, "turnNumber": open.place().turn, "error": error}).to_string());
        if let Some(seat) = open.seat {
            let search = open.search.unwrap_or_else(|| Search::new(self.start.clone(), self.config));
            seat.borrow_mut().give_back(search, false);
            self.go_on(&seat);
        }
    }

    /// Says what a search has found by now.
    fn tell(&mut self, place: usize, during: bool) {
        let open = &self.open[place];
        let Some(search) = &open.search else { return };
        let (result, Place { turn, line }) = (search.result(), open.place());
        let lines = variations(search.tree(), usize::MAX, open.query.pv_length);
        let errors = open.query.bounds.then(|| standard_errors(search.tree()));
        let stop = open.cut.filter(|_| result.stop == Stop::Interrupted).unwrap_or(result.stop.name());
        let Some(best) = chosen(&result, open.temperature, &mut self.draws) else { return };
        let found = Found {
            result: &result,
            lines: &lines,
            errors: errors.as_deref(),
            simulations: search.stats().simulations,
            best,
            network: self.about.network.as_deref(),
            stop,
        };
        self.said.push(open.query.answer(*turn, &line.state, during, &open.warnings, found));
    }

    /// Answers a search that is done.
    fn end(&mut self, place: usize) {
        self.tell(place, false);
        let open = self.open.remove(place);
        if let (Some(seat), Some(mut search)) = (open.seat, open.search) {
            search.shrink();
            seat.borrow_mut().give_back(search, true);
            self.go_on(&seat);
        }
    }

    /// Bytes of all trees, those that games keep among them.
    pub(crate) fn memory_bytes(&self) -> usize {
        let open = self.open.iter().map(Open::memory_bytes).sum::<usize>();
        open + self.tracks.iter().map(|track| track.seat.borrow().memory_bytes()).sum::<usize>()
    }

    /// Keeps the trees within their memory before the tree of this search grows: room that no node has taken goes first,
    /// then kept trees, the least recently used before the others. Then the search with the largest tree ends. Returns
    /// whether the round may begin.
    fn bound_memory(&mut self, place: usize) -> bool {
        let own = self.open[place].memory_bytes();
        let ahead = self.open[place].search.as_ref().map_or(own, |search| search.memory_ahead(KNOWN));
        // In WebAssembly a vector that grows is copied.
        let more = if ahead > own { ahead } else { 0 };
        if self.memory_bytes() + more > self.trees {
            let others = self.open.iter_mut().enumerate().filter(|(other, _)| *other != place);
            others.filter_map(|(_, open)| open.search.as_mut()).for_each(Search::shrink);
        }
        for track in 0..self.tracks.len() {
            if self.memory_bytes() + more <= self.trees {
                break;
            }
            self.tracks[track].seat.borrow_mut().drop_trees();
        }
        let Some(left) = self.trees.checked_sub(self.memory_bytes()).filter(|&left| left >= more) else {
            if let Some(largest) = self.open.iter_mut().max_by_key(|open| open.memory_bytes()) {
                largest.cut = Some("memory");
            }
            return false;
        };
        // A tree that grows is copied, and a page never gives the memory of an old copy back. So a large tree grows once:
        // into what is left beside its present copy and the copy before that, which counts as large.
        if more > 0
            && own >= self.trees / 16
            && let Some(search) = &mut self.open[place].search
        {
            search.reserve(left.saturating_sub(own).max(ahead));
        }
        true
    }
}

/// A search that begins as a request asks.
fn begun<G: Game>(mut search: Search<G>, request: &Request<u64>) -> Result<Search<G>, Refused> {
    let stream = stream_for(request.seed, 0, request.run);
    search.begin(request.simulations, stream).map_err(|fault| Refused(fault.to_string()))?;
    Ok(search)
}

/// The action that a player plays: at temperature 0 the search's own, else one drawn. The twin of `chosen` in
/// azpy/serving/models.py.
fn chosen(result: &SearchResult, temperature: f64, draws: &mut Stream) -> Option<Action> {
    if temperature == 0.0 && result.action.is_some() {
        return result.action;
    }
    let weights = soften(result, temperature);
    let drawn = (!weights.is_empty()).then(|| draws.weighted(weights.iter().copied()))?;
    result.actions.get(drawn).copied()
}

impl<G: Position> Asked for Session<G> {
    fn ask(&mut self, text: &str) {
        let (id, error) = match Object::read(text) {
            Err(Refused(error)) => (None, error),
            Ok(fields) => match self.take(&fields) {
                Ok(()) => return,
                Err(Refused(error)) => (id_of(&fields).ok().map(str::to_owned), error),
            },
        };
        let said = id.map_or_else(|| json!({"error": error}), |id| json!({"id": id, "error": error}));
        self.said.push(said.to_string());
    }

    fn step(&mut self, now: f64) -> bool {
        let ready = (0..self.open.len()).filter(|&place| self.open[place].search.is_some());
        let turn = |&place: &usize| {
            let open = &self.open[place];
            (!open.has_to_end(now), open.rank, open.serial)
        };
        let Some(place) = ready.min_by_key(turn) else { return false };
        if !self.open[place].has_to_end(now) && !self.bound_memory(place) {
            return true;
        }
        let open = &mut self.open[place];
        if open.began.is_none() {
            (open.began, open.told) = (Some(now), now);
        }
        let has_to_end = open.has_to_end(now);
        let Some(search) = &mut open.search else { return true };
        if has_to_end {
            search.interrupt();
        }
        if let Err(error) = self.rounds.run(std::slice::from_mut(search), &mut self.answers) {
            let said = match error {
                SearchError::Evaluator(said) => said,
                other => other.to_string(),
            };
            self.fail(place, &said);
        } else if search.is_done() {
            self.end(place);
        } else if open.query.report_every.is_some_and(|every| now - open.told >= 1e3 * every) {
            open.told = now;
            self.tell(place, true);
        }
        !self.open.is_empty()
    }

    fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }
}
