//! A game that goes on: its position, the tree that its next search begins with, and the requests that wait in it.

use std::collections::VecDeque;

use super::Request;
use crate::config::SearchConfig;
use crate::game::{Action, Game};
use crate::search::Search;

/// Positions of the past that keep their trees. Without a bound a long game of a program that never takes back would hold
/// as many trees as it has plies.
pub const KEPT_TREES: usize = 8;

/// A command to a game.
enum Command<T> {
    Play(Action),
    Undo,
    /// A search, and the root's actions to choose among where they are not all the legal ones.
    Search(Request<T>, Vec<Action>),
}

/// A position of the past, and the tree that it had.
struct Past<G: Game> {
    position: G,
    search: Option<Search<G>>,
}

/// A game that goes on. Requests of one game are answered in the order in which they came.
pub struct GameTree<G: Game, T> {
    config: SearchConfig,
    seed: u64,
    /// Searches of the kept tree so far: each has draws of its own.
    runs: u64,
    /// The positions that `undo` can return to, after all commands; the last one is the current position.
    asked: Vec<G>,
    /// Where the commands that are done have led.
    position: G,
    past: Vec<Past<G>>,
    /// The kept tree, unless a scheduler has it or it was dropped.
    search: Option<Search<G>>,
    out: bool,
    /// Which network the trees are of.
    network: u64,
    commands: VecDeque<Command<T>>,
}

impl<G: Game, T> GameTree<G, T> {
    /// A game at this position, without a tree.
    pub fn new(position: G, config: SearchConfig, seed: u64) -> Self {
        Self {
            config,
            seed,
            runs: 0,
            asked: vec![position.clone()],
            position,
            past: Vec::new(),
            search: None,
            out: false,
            network: 0,
            commands: VecDeque::new(),
        }
    }

    /// The position after everything that was asked for.
    ///
    /// # Panics
    /// Never: there is always one.
    #[must_use]
    pub fn position(&self) -> &G {
        self.asked.last().expect("a game has a position")
    }

    /// How many actions can be undone.
    #[must_use]
    pub fn num_played(&self) -> usize {
        self.asked.len() - 1
    }

    /// Plays an action that is legal in [`GameTree::position`].
    pub fn play(&mut self, action: Action) {
        let mut next = self.position().clone();
        next.play(action);
        self.asked.push(next);
        self.commands.push_back(Command::Play(action));
    }

    /// Takes the last action back. Whether there was one.
    pub fn undo(&mut self) -> bool {
        if self.asked.len() == 1 {
            return false;
        }
        self.asked.pop();
        // Cancel a play that has not been applied, so that a caller who only tries moves leaves no commands.
        match self.commands.back() {
            Some(Command::Play(_)) => drop(self.commands.pop_back()),
            _ => self.commands.push_back(Command::Undo),
        }
        true
    }

    /// Asks for a search. With `allowed` it has a tree of its own, and chooses among these actions at the root.
    pub fn search(&mut self, mut request: Request<T>, allowed: Vec<Action>) {
        if allowed.is_empty() {
            request.run = self.runs;
            self.runs += 1;
        }
        request.seed = self.seed;
        self.commands.push_back(Command::Search(request, allowed));
    }

    /// The next request and its search, where the one before is answered. Trees of another network are dropped.
    pub fn next(&mut self, network: u64) -> Option<(Search<G>, Request<T>)> {
        if self.out {
            return None;
        }
        if self.network != network {
            self.drop_trees();
            self.network = network;
        }
        while let Some(command) = self.commands.pop_front() {
            match command {
                Command::Play(action) => {
                    let mut position = self.position.clone();
                    position.play(action);
                    let search = self.search.as_ref().map(|search| search.child(action));
                    let before = std::mem::replace(&mut self.position, position);
                    self.past.push(Past { position: before, search: std::mem::replace(&mut self.search, search) });
                    if let Some(old) = self.past.iter_mut().nth_back(KEPT_TREES) {
                        old.search = None;
                    }
                }
                Command::Undo => {
                    if let Some(past) = self.past.pop() {
                        (self.position, self.search) = (past.position, past.search);
                    }
                }
                Command::Search(request, allowed) => {
                    self.out = true;
                    if allowed.is_empty() {
                        let fresh = || Search::new(self.position.clone(), self.config);
                        return Some((self.search.take().unwrap_or_else(fresh), request));
                    }
                    let mut search = Search::new(self.position.clone(), self.config);
                    search.allow(allowed);
                    return Some((search, request));
                }
            }
        }
        None
    }

    /// Takes back the search of the last request. `sound`: its tree can be reused.
    pub fn give_back(&mut self, search: Search<G>, sound: bool) {
        self.out = false;
        if sound && !search.is_restricted() {
            self.search = Some(search);
        }
    }

    /// Bytes of the trees that are kept for later.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let past = self.past.iter().filter_map(|past| past.search.as_ref());
        past.chain(&self.search).map(|search| search.tree().memory_bytes()).sum()
    }

    /// Drops the kept trees. Positions stay.
    pub fn drop_trees(&mut self) {
        self.search = None;
        self.past.iter_mut().for_each(|past| past.search = None);
    }
}
