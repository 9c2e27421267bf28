//! The messages of one client: queries and actions are taken, and answered when their searches have an end.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use azpy_core::engine::Priority;
use azpy_core::game::{Action, Turn};
use azpy_core::rng::Stream;
use azpy_core::text::Position;
use serde::Serialize;
use serde_json::json;

use crate::answer::{Found, line_of, show, told};
use crate::games::{read, write};
use crate::level::{chosen, chosen_at};
use crate::object::{Allowed, Object, Refused, quoted};
use crate::player::Player;
use crate::query::{Asking, LONGEST_NAME, Place, Query, action_of, id_of, terminated};
use crate::searcher::{Event, Looked, Root, Searcher, Unbegun, Wanted};

/// Of a client: a warning is said once.
const MOST_WARNINGS: usize = 100;

/// What a client is told, and what its transport must know of it.
#[derive(Clone, Debug)]
pub struct Reply {
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
struct Open<G> {
    query: Arc<Query<G>>,
    /// Which place of the query.
    index: usize,
    warnings: Arc<[String]>,
    /// As it was when the search began.
    player: Arc<Player<G>>,
    temperature: f64,
}

impl<G> Open<G> {
    fn place(&self) -> &Place<G> {
        &self.query.places[self.index]
    }
}

/// A game that follows the positions which queries name. Its tree is kept along the actions that two of them share.
struct Track<G, K> {
    player: usize,
    name: String,
    start: G,
    played: Vec<Action>,
    kept: K,
}

/// The messages of one client.
pub struct Session<G: Position, S: Searcher<G>> {
    /// Who searches.
    pub searcher: S,
    limits: Allowed,
    draws: Stream,
    /// The game that was asked for last stands last.
    tracks: Vec<Track<G, S::Kept>>,
    open: BTreeMap<u64, Open<G>>,
    /// The actions `renew` that go on, and the numbers of their players.
    renewing: BTreeMap<u64, (Object, usize)>,
    tokens: u64,
    warned: HashSet<String>,
    said: Vec<Reply>,
}

impl<G: Position, S: Searcher<G>> Session<G, S> {
    /// A client that has asked for nothing. `seed` is of the draws for players without a seed.
    pub fn new(searcher: S, limits: Allowed, seed: u64) -> Self {
        Self {
            searcher,
            limits,
            draws: Stream::keyed(&[seed]),
            tracks: Vec::new(),
            open: BTreeMap::new(),
            renewing: BTreeMap::new(),
            tokens: 0,
            warned: HashSet::new(),
            said: Vec::new(),
        }
    }

    /// Whether there is more to say of what was asked for.
    pub fn is_busy(&self) -> bool {
        !(self.open.is_empty() && self.renewing.is_empty())
    }

    /// Takes a query or an action as JSON, and returns what is said at once.
    pub fn ask(&mut self, text: &str) -> Vec<Reply> {
        match Object::read(text) {
            Ok(fields) => self.attend(&fields),
            Err(Refused(why)) => {
                self.fail(None, None, &why.into(), false);
                std::mem::take(&mut self.said)
            }
        }
    }

    /// As [`Session::ask`], of an object that was read before.
    pub fn attend(&mut self, fields: &Object) -> Vec<Reply> {
        if let Err(Refused(why)) = self.act(fields) {
            self.fail(id_of(fields).ok(), None, &why.into(), false);
        }
        std::mem::take(&mut self.said)
    }

    /// Returns what is said of the searches: their answers, and reports of those that go on.
    pub fn take(&mut self) -> Vec<Reply> {
        while let Some(event) = self.searcher.take() {
            match event {
                Event::Report(token, looked) => {
                    if let Some(open) = self.open.remove(&token) {
                        // A report that cannot be written is no answer, and the answer will say why.
                        let _ = self.tell(&open, &looked, true);
                        self.open.insert(token, open);
                    }
                }
                Event::Done(token, looked) => {
                    let Some(open) = self.open.remove(&token) else { continue };
                    if let Err(Refused(why)) = self.tell(&open, &looked, false) {
                        self.fail(Some(&open.query.id), Some(open.place().turn), &why.into(), false);
                    }
                }
                Event::Failed(token, why) => {
                    let Some(open) = self.open.remove(&token) else { continue };
                    self.fail(Some(&open.query.id), Some(open.place().turn), &why.into(), false);
                }
                Event::Renewed(token, renewed) => {
                    let Some((fields, number)) = self.renewing.remove(&token) else { continue };
                    let player = self.searcher.players().map(|players| players[number].clone());
                    match renewed.and_then(|changed| Ok((changed, player?))) {
                        Ok((changed, player)) => {
                            let (name, network) = (&player.about["internalName"], &player.network);
                            let said = json!({"changed": changed, "internalName": name, "network": network});
                            self.say(told(&fields, said), None, false);
                        }
                        Err(why) => self.fail(id_of(&fields).ok(), None, &why.into(), false),
                    }
                }
            }
        }
        std::mem::take(&mut self.said)
    }

    /// Ends the searches that go on, and drops the trees. Nothing more is said of them.
    pub fn close(&mut self) {
        self.tracks.clear();
        self.renewing.clear();
        for token in std::mem::take(&mut self.open).into_keys() {
            self.searcher.leave(token);
        }
    }

    fn say(&mut self, line: String, search: Option<(String, usize)>, is_report: bool) {
        self.said.push(Reply { line, status: 200, search, is_report });
    }

    fn fail(&mut self, id: Option<&str>, turn: Option<usize>, why: &Unbegun, is_roll: bool) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Failure<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            turn_number: Option<usize>,
            #[serde(skip_serializing_if = "Option::is_none")]
            retry_after: Option<u32>,
            error: &'a str,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            is_roll_due: bool,
        }
        let retry_after = why.is_full.then_some(1);
        let line = line_of(&Failure { id, turn_number: turn, retry_after, error: &why.why, is_roll_due: is_roll });
        let search = id.map(str::to_owned).zip(turn);
        self.said.push(Reply { line, status: if why.is_full { 503 } else { 400 }, search, is_report: false });
    }

    /// What was found by asking a game, unless the game has failed.
    fn sound<T>(&mut self, state: &G, found: Result<T, Refused>) -> Result<T, Refused> {
        self.searcher.fault(state).map_or(found, |why| Err(Refused(why)))
    }

    fn act(&mut self, fields: &Object) -> Result<(), Refused> {
        id_of(fields)?;
        let Some(action) = action_of(fields, self.searcher.renews())? else { return self.search(fields) };
        let players = self.searcher.players()?;
        let line = match action {
            "query_version" => told(fields, json!({"version": env!("CARGO_PKG_VERSION"), "git_hash": ""})),
            "query_models" => {
                told(fields, json!({"models": players.iter().map(|player| &player.about).collect::<Vec<_>>()}))
            }
            "terminate" | "terminate_all" => {
                self.terminate(fields)?;
                let echoed = ["terminateId", "turnNumbers"].into_iter();
                told(fields, echoed.filter_map(|name| Some((name, fields.get(name)?))).collect::<BTreeMap<_, _>>())
            }
            "renew" => {
                let (number, _) = named(&players, fields)?;
                self.tokens += 1;
                self.renewing.insert(self.tokens, (fields.clone(), number));
                self.searcher.renew(number, self.tokens);
                return Ok(());
            }
            _ => {
                let (_, player) = named(&players, fields)?;
                let answer = match action {
                    "show" => show,
                    "read" => read,
                    _ => write,
                };
                let said = asking(&player, |asking| answer(fields, asking, &self.limits.of_query));
                self.sound(&player.start, said)?
            }
        };
        self.say(line, None, false);
        Ok(())
    }

    /// Has searches answer with what they know: those of one query, or all.
    fn terminate(&mut self, fields: &Object) -> Result<(), Refused> {
        let (id, turns) = terminated(fields, &self.limits.of_query)?;
        for (&token, open) in &self.open {
            let turn = open.place().turn;
            if id.as_ref().is_none_or(|id| *id == open.query.id) && turns.as_ref().is_none_or(|all| all.contains(&turn))
            {
                self.searcher.stop(token);
            }
        }
        Ok(())
    }

    fn search(&mut self, fields: &Object) -> Result<(), Refused> {
        let (number, player) = named(&self.searcher.players()?, fields)?;
        let query = asking(&player, |asking| Query::read(fields, asking, &self.limits.of_query));
        let query = Arc::new(self.sound(&player.start, query)?);
        let temperature = query.level.map_or(player.temperature, |level| player.levels[level].temperature);
        let fresh = query.ignored.iter().filter(|said| !self.warned.contains(*said)).cloned();
        let warnings: Arc<[String]> = fresh.take(MOST_WARNINGS.saturating_sub(self.warned.len())).collect();
        self.warned.extend(warnings.iter().cloned());
        for index in 0..query.places.len() {
            let (warnings, player) = (warnings.clone(), player.clone());
            let open = Open { query: query.clone(), index, warnings, player, temperature };
            if let Err(why) = self.begin(number, open) {
                let Place { turn, line } = &query.places[index];
                self.fail(Some(&query.id), Some(*turn), &why, line.state.turn() == Turn::Chance);
            }
        }
        Ok(())
    }

    fn begin(&mut self, player: usize, open: Open<G>) -> Result<(), Unbegun> {
        let (query, Place { turn, line }) = (open.query.clone(), open.place());
        let end = query.end(*turn, &line.state, &open.warnings);
        if let Some(said) = self.sound(&line.state, end).map_err(|Refused(why)| why)? {
            self.say(said, Some((query.id.clone(), *turn)), false);
            return Ok(());
        }
        let allowed = query.actions(&line.state);
        let allowed = self.sound(&line.state, allowed).map_err(|Refused(why)| why)?.unwrap_or_default();
        let most = self.limits.searches;
        if self.open.len() >= most {
            let why = format!("{most} searches of this client are open: wait for an answer");
            return Err(Unbegun { why, is_full: true });
        }
        self.tokens += 1;
        let wanted = Wanted {
            token: self.tokens,
            allowed,
            simulations: query.simulations,
            seconds: query.seconds,
            priority: match query.priority {
                "play" => Priority::Play,
                "analysis" => Priority::Analysis,
                _ => Priority::Ponder,
            },
            report_every: query.report_every,
            errors: query.bounds,
            pv_length: query.pv_length,
        };
        match query.game.as_deref().filter(|_| query.level.is_none()) {
            None => self.searcher.begin(player, Root::Fresh(&line.state), wanted)?,
            Some(name) => loop {
                let place = self.follow(player, name, &line.start, &line.played)?;
                let kept = &self.tracks[place].kept;
                match self.searcher.begin(player, Root::Kept(kept), wanted.clone()) {
                    // The player was renewed meanwhile.
                    Err(_) if !self.searcher.is_current(player, kept) => {}
                    begun => break begun?,
                }
            },
        }
        self.open.insert(self.tokens, open);
        Ok(())
    }

    /// The place of the game of a name, at the position to which `played` leads from `start`.
    fn follow(&mut self, player: usize, name: &str, start: &G, played: &[Action]) -> Result<usize, String> {
        let known = self.tracks.iter().position(|track| (track.player, &*track.name) == (player, name));
        let known = known.map(|place| self.tracks.remove(place));
        // Back at the start another game begins: its tree would otherwise grow with each game.
        let mut goes_on = |track: &Track<G, S::Kept>| {
            (track.start.game(), track.start.key()) == (start.game(), start.key())
                && (track.played.is_empty() || track.played.first() == played.first())
                && self.searcher.is_current(player, &track.kept)
        };
        let track = match known.filter(&mut goes_on) {
            Some(track) => track,
            None => {
                let kept = self.searcher.keep(player, start)?;
                Track { player, name: name.to_owned(), start: start.clone(), played: Vec::new(), kept }
            }
        };
        if self.tracks.len() >= self.limits.games.max(1) {
            self.tracks.remove(0);
        }
        self.tracks.push(track);
        let place = self.tracks.len() - 1;
        let track = &mut self.tracks[place];
        let common = track.played.iter().zip(played).take_while(|(one, other)| one == other).count();
        // One by one: where a game of the user's fails, the tree and `played` still agree.
        while track.played.len() > common {
            self.searcher.undo(&track.kept);
            track.played.pop();
        }
        for &action in &played[common..] {
            self.searcher.play(&track.kept, action)?;
            track.played.push(action);
        }
        Ok(place)
    }

    /// Says what a search has found by now.
    fn tell(&mut self, open: &Open<G>, looked: &Looked, during: bool) -> Result<(), Refused> {
        let (player, Place { turn, line }) = (&open.player, open.place());
        let Looked { result, lines, errors, simulations } = looked;
        let best = match player.seed {
            None => chosen(result, open.temperature, &mut self.draws),
            Some(seed) => chosen_at(result, open.temperature, seed, line.state.key()),
        };
        let best = best.ok_or_else(|| Refused("the search found no action".to_owned()))?;
        let found = Found {
            result,
            lines,
            errors: errors.as_deref(),
            simulations: *simulations,
            best,
            network: player.network.as_deref(),
            stop: result.stop.name(),
        };
        let said = open.query.answer(*turn, &line.state, during, &open.warnings, found);
        let said = self.sound(&line.state, Ok(said))?;
        self.say(said, Some((open.query.id.clone(), *turn)), during);
        Ok(())
    }
}

/// The player that an object names, and its number; the first one if it names none.
fn named<G>(players: &[Arc<Player<G>>], fields: &Object) -> Result<(usize, Arc<Player<G>>), Refused> {
    let place = match fields.get("model").map(|_| fields.text("model")).transpose()? {
        None => 0,
        Some(name) => players.iter().position(|player| player.name == name).ok_or_else(|| {
            let known: Vec<&str> = players.iter().map(|player| &*player.name).collect();
            let cut: String = name.chars().take(LONGEST_NAME).collect();
            Refused(format!("model: there is no {}, but {}", quoted(&cut, LONGEST_NAME), known.join(", ")))
        })?,
    };
    Ok((place, players[place].clone()))
}

/// What is found by asking a player.
fn asking<G, T>(player: &Player<G>, ask: impl FnOnce(&Asking<'_, G>) -> T) -> T {
    let levels: Vec<_> = player.levels.iter().map(|level| (level.name.clone(), level.simulations)).collect();
    let (start, simulations, has_model) = (&player.start, player.simulations, player.network.is_some());
    ask(&Asking { start, simulations, levels: &levels, has_model })
}
