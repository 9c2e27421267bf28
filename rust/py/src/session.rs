//! `azpy._core.Session`: the messages of one client, answered by players whose engines other clients use too.
//!
//! The crate `azpy-serve` reads, keeps and answers; here it searches over the threads of engines. A thread waits for a
//! session without the GIL, which the thread that has the session may need for a game in Python. The threads that give
//! answers wait for no session at all: one long message would hold up the answers of all clients.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, TryLockError, Weak};
use std::time::Duration;

use azpy_core::game::Action;
use azpy_serve::{
    Error, Event, Level, Player, Response, SearchReport, SearchRequest, Searcher, Session as CoreSession, id_of,
};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde_json::json;

use crate::engine::{Engine, EngineGame, ONLY};
use crate::errors::{caught, request_error};
use crate::position::{AnyState, Fallible};
use crate::query::{Message, limits_of};
use crate::requests::{Listener, Responder, Signals};
use crate::result::SearchResult;
use crate::settings::{U64, Whole, whole, within};
use crate::state::State;
use crate::threads::{locked, wait};

/// A player as it was last seen, and what it was made of.
struct CachedPlayer {
    source: Py<PyAny>,
    engine: Py<Engine>,
    player: Arc<Player<AnyState>>,
}

/// Searches over the threads of players' engines.
struct EngineSearcher {
    /// By name, see `azpy.serving.models.PlayerEngine`.
    models: Vec<(String, Py<PyAny>)>,
    limits: Py<PyAny>,
    renews: bool,
    cached: Vec<Option<CachedPlayer>>,
    /// To the searches that go on.
    signals: HashMap<u64, Arc<Signals>>,
    /// The actions `renew` that nobody has begun yet: models and tokens.
    renewing: Vec<(Py<PyAny>, u64)>,
    /// What was raised and is no `Exception`, as Ctrl-C: no answer to a client.
    interrupt: Option<PyErr>,
    client: Weak<Client>,
}

impl EngineSearcher {
    /// What an exception is to a client.
    fn error(&mut self, py: Python<'_>, error: PyErr) -> Error {
        if !error.is_instance_of::<PyException>(py) {
            self.interrupt = Some(error.clone_ref(py));
        }
        request_error(py, error)
    }

    /// The player of this number as it is now.
    fn see(&mut self, py: Python<'_>, number: usize) -> PyResult<&CachedPlayer> {
        let (name, model) = &self.models[number];
        let model = model.bind(py);
        let (source, engine) = (model.getattr(intern!(py, "player"))?, model.getattr(intern!(py, "engine"))?);
        let is_same = |cached: &CachedPlayer| cached.source.is(&source) && cached.engine.is(&engine);
        if !self.cached[number].as_ref().is_some_and(is_same) {
            let engine = engine.cast_into::<Engine>()?.unbind();
            let levels = source.getattr("ladder")?.getattr("levels")?.cast_into::<PyDict>()?;
            let level = |(name, level): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                Ok(Level {
                    name: name.extract()?,
                    simulations: level.getattr("simulations")?.extract()?,
                    temperature: level.getattr("temperature")?.extract()?,
                })
            };
            let about = py.import("azpy.serving.queries")?.call_method1("about", (name, &source, &self.limits))?;
            let strict = [("allow_nan", false)].into_py_dict(py)?;
            let about = py.import("json")?.getattr("dumps")?.call((about,), Some(&strict))?;
            let player = Player {
                start: source.getattr("start")?.cast::<State>()?.borrow().inner.copied()?,
                config: engine.get().config(),
                name: name.clone(),
                about: serde_json::from_str(about.extract()?)
                    .map_err(|error| PyValueError::new_err(error.to_string()))?,
                network: source.getattr("network")?.extract()?,
                simulations: source.getattr("simulations")?.extract()?,
                levels: levels.iter().map(level).collect::<PyResult<_>>()?,
                temperature: source.getattr("temperature")?.extract()?,
                seed: source.getattr("seed")?.extract()?,
            };
            self.cached[number] = Some(CachedPlayer { source: source.unbind(), engine, player: Arc::new(player) });
        }
        Ok(self.cached[number].as_ref().expect("it was seen"))
    }

    /// Begins a search, and returns what ends it.
    fn start(
        &mut self,
        py: Python<'_>,
        player: usize,
        position: &AnyState,
        game: Option<&EngineGame>,
        request: SearchRequest,
    ) -> PyResult<Arc<Signals>> {
        let client = self.client.clone();
        let responder = || (Arc::default(), Responder::Session(client.clone()));
        if let Some(game) = game {
            game.check_fork()?;
            let state = py.detach(|| game.tree.state())?;
            return Ok(game.begin(py, &state, request, responder())?.signals.clone());
        }
        loop {
            let (responder, engine) = (responder(), self.see(py, player)?.engine.clone_ref(py));
            match engine.get().search(py, ONLY, &position.copied()?, request.clone(), 0, responder) {
                // An engine that was closed as its player got another one.
                Err(_) if !self.see(py, player)?.engine.is(&engine) => {}
                begun => return Ok(begun?.signals.clone()),
            }
        }
    }
}

impl Searcher<AnyState> for EngineSearcher {
    type Game = EngineGame;

    fn players(&mut self) -> Result<Vec<Arc<Player<AnyState>>>, Error> {
        Python::attach(|py| {
            let all = (0..self.models.len()).map(|number| {
                let player = self.see(py, number)?.player.clone();
                // Positions of a game in Python share the place of an error with the start that they come from.
                if player.start.object().is_none() {
                    return Ok(player);
                }
                let start = player.start.copied()?;
                Ok(Arc::new(Player { start, ..Player::clone(&player) }))
            });
            let all = all.collect::<PyResult<_>>();
            all.map_err(|error| self.error(py, error))
        })
    }

    fn new_game(&mut self, player: usize, start: &AnyState) -> Result<EngineGame, Error> {
        Python::attach(|py| {
            let mut made = || Engine::new_game(self.see(py, player)?.engine.bind(py), ONLY, &start.copied()?, 0);
            let made = made();
            made.map_err(|error| self.error(py, error))
        })
    }

    fn play(&mut self, game: &EngineGame, action: Action) -> Result<(), Error> {
        let played = game.check_fork().and_then(|()| game.tree.play(Whole(action.into())));
        played.map(drop).map_err(|error| Python::attach(|py| self.error(py, error)))
    }

    fn undo(&mut self, game: &EngineGame) {
        if game.check_fork().is_ok() {
            game.tree.undo();
        }
    }

    fn is_current(&mut self, player: usize, game: &EngineGame) -> bool {
        Python::attach(|py| self.see(py, player).is_ok_and(|cached| cached.engine.is(&game.engine)))
    }

    fn begin(
        &mut self,
        player: usize,
        position: &AnyState,
        game: Option<&EngineGame>,
        request: SearchRequest,
    ) -> Result<(), Error> {
        if self.client.upgrade().is_none_or(|client| client.is_closed()) {
            return Err(Error::Search("this client has left".to_owned()));
        }
        // Nobody else has the signals to searches that have ended.
        self.signals.retain(|_, signals| Arc::strong_count(signals) > 1);
        let token = request.token;
        let signals = Python::attach(|py| {
            let begun = self.start(py, player, position, game, request);
            begun.map_err(|error| self.error(py, error))
        });
        self.signals.insert(token, signals?);
        Ok(())
    }

    fn stop(&mut self, token: u64) {
        self.signals.get(&token).inspect(|signals| signals.stop());
    }

    fn cancel(&mut self, token: u64) {
        self.signals.remove(&token).inspect(|signals| signals.cancel());
    }

    fn take(&mut self) -> Option<Event> {
        locked(&self.client.upgrade()?.queue).events.pop_front()
    }

    fn fault(&mut self, position: &AnyState) -> Option<Error> {
        let error = position.take_error().err()?;
        Some(Python::attach(|py| self.error(py, error)))
    }

    fn renews(&self) -> bool {
        self.renews
    }

    fn renew(&mut self, player: usize, token: u64) {
        self.renewing.push((Python::attach(|py| self.models[player].1.clone_ref(py)), token));
    }
}

/// What goes in and out of a session without waiting for it.
#[derive(Default)]
struct Queue {
    /// What became of requests, until the session takes it.
    events: VecDeque<Event>,
    /// In their order, until one thread at a time says them.
    responses: VecDeque<Response>,
    is_saying: bool,
}

/// One client.
struct Client {
    session: Mutex<CoreSession<AnyState, EngineSearcher>>,
    queue: Mutex<Queue>,
    /// The client has left.
    closed: AtomicBool,
    /// Something was said, or the client is closed.
    said: Condvar,
    say: Py<PyAny>,
    /// Is called once what there is was said.
    told: Py<PyAny>,
    /// Is called with the seconds that a search took.
    answered: Py<PyAny>,
}

impl Client {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Has the session take a message, and says what it says.
    fn attend(&self, py: Python<'_>, message: &Message) -> PyResult<()> {
        let attended = py.detach(|| {
            caught(|| {
                let mut session = locked(&self.session);
                let responses = session.attend(&message.fields);
                if session.searcher.interrupt.is_none() {
                    locked(&self.queue).responses.extend(responses);
                }
                Ok(())
            })
        });
        if let Err(panic) = attended {
            let error = json!({"id": id_of(&message.fields).ok(), "error": request_error(py, panic).to_string()});
            let response = Response { line: error.to_string(), status: 400, search: None, is_report: false };
            locked(&self.queue).responses.push_back(response);
        }
        self.say_all(py)
    }

    /// Has the session take an event, and says what it says.
    fn hear(&self, event: Event) {
        if self.is_closed() {
            return;
        }
        locked(&self.queue).events.push_back(event);
        self.say_left();
    }

    /// Says what there is to say. Does not wait for a thread that has the session: that thread looks at the events again
    /// once it has let go.
    fn say_all(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            while !locked(&self.queue).events.is_empty() {
                let Ok(mut session) = self.session.try_lock() else { break };
                let responses = session.take();
                locked(&self.queue).responses.extend(responses);
            }
            self.tidy();
        });
        loop {
            let next = {
                let mut queue = locked(&self.queue);
                if self.is_closed() {
                    queue.responses.clear();
                }
                if queue.is_saying {
                    return Ok(());
                }
                let next = queue.responses.pop_front();
                queue.is_saying = next.is_some();
                next
            };
            let Some(Response { line, status, search, is_report }) = next else { break };
            let said = self.say.call1(py, (line, status, search, is_report));
            locked(&self.queue).is_saying = false;
            said?;
        }
        self.said.notify_all();
        self.told.call0(py).map(drop)
    }

    /// Says what another thread could not, because this one had the session. Each thread calls it after it lets go of the
    /// session. Otherwise the answer would wait for the client's next message.
    fn say_left(&self) {
        if !locked(&self.queue).events.is_empty() {
            Python::attach(|py| {
                if let Err(error) = self.say_all(py) {
                    error.write_unraisable(py, Some(self.say.bind(py)));
                }
            });
        }
    }

    /// Ends what a client that has left has asked for. Every thread that has had the session does so: `close` may have
    /// found it in use.
    fn tidy(&self) {
        if self.is_closed()
            && let Ok(mut session) = self.session.try_lock()
        {
            session.close();
        }
    }

    /// Whether searches go on, or answers are about to be said.
    fn is_busy(&self) -> bool {
        if self.is_closed() {
            return false;
        }
        let goes_on = match self.session.try_lock() {
            Ok(session) => session.is_busy(),
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Poisoned(session)) => session.into_inner().is_busy(),
        };
        self.tidy();
        self.say_left();
        let queue = locked(&self.queue);
        goes_on || queue.is_saying || !queue.responses.is_empty()
    }
}

/// What a session is told of a search.
fn report_of(py: Python<'_>, request: &SearchRequest, found: &SearchResult) -> PyResult<SearchReport> {
    Ok(SearchReport {
        result: found.core().clone(),
        lines: found.lines(request.lines, request.line_length)?,
        standard_errors: request.standard_errors.then(|| found.errors(py)).transpose()?,
        simulations: found.counts().simulations,
    })
}

impl Listener for Client {
    fn report(&self, py: Python<'_>, request: &SearchRequest, found: &SearchResult) {
        // A report that cannot be told is no answer, and the answer will say why.
        if let Ok(report) = report_of(py, request, found) {
            self.hear(Event::Report(request.token, report));
        }
    }

    fn end(&self, py: Python<'_>, request: &SearchRequest, ending: PyResult<SearchResult>, seconds: f64) {
        let event = match ending.and_then(|found| report_of(py, request, &found)) {
            Ok(report) => {
                if let Err(error) = self.answered.call1(py, (seconds,)) {
                    error.write_unraisable(py, Some(self.answered.bind(py)));
                }
                Event::Done(request.token, report)
            }
            Err(error) => Event::Failed(request.token, request_error(py, error)),
        };
        self.hear(event);
    }
}

/// The messages of one client, and their answers.
///
/// Args:
///     models: players by name, each with the attributes `player` and `engine` and a method `renew`; see
///         `azpy.serving.models.PlayerEngine`. Other clients may use them too. The first one answers where none is named.
///     say: is called with a line of JSON, the status that it would have as the answer to a POST (200, 400 or 503), the
///         query's id and turn if it is about a search, and whether that goes on. It may be called in any thread, and
///         searches of all clients wait for it.
///     limits: of the client, see `azpy.serving.limits.Limits`.
///     renews: whether there is an action `renew`.
///     answered: is called with the seconds that each answered search took.
///     told: is called without arguments once all that there is was said.
///     seed: of the draws of players without a seed.
#[pyclass(module = "azpy._core", frozen, subclass)]
pub(crate) struct Session(Arc<Client>);

#[pymethods]
impl Session {
    #[new]
    fn new(
        models: &Bound<'_, PyDict>,
        say: Py<PyAny>,
        limits: &Bound<'_, PyAny>,
        renews: bool,
        answered: Py<PyAny>,
        told: Py<PyAny>,
        #[pyo3(from_py_with = whole)] seed: i128,
    ) -> PyResult<Self> {
        let seed = within("seed", seed, 0, U64)?;
        let models = models.iter().map(|(name, model)| Ok((name.extract()?, model.unbind())));
        let models = models.collect::<PyResult<Vec<_>>>()?;
        let (own_limits, limits) = (limits_of(limits)?, limits.clone().unbind());
        Ok(Self(Arc::new_cyclic(|client: &Weak<Client>| {
            let searcher = EngineSearcher {
                cached: models.iter().map(|_| None).collect(),
                models,
                limits,
                renews,
                signals: HashMap::new(),
                renewing: Vec::new(),
                interrupt: None,
                client: client.clone(),
            };
            let session = Mutex::new(CoreSession::new(searcher, own_limits, seed));
            let (queue, closed, said) = (Mutex::default(), AtomicBool::new(false), Condvar::new());
            Client { session, queue, closed, said, say, told, answered }
        })))
    }

    /// Takes a query or an action. Each answer, and each error, is said. The action `renew` loads a player meanwhile. What
    /// is no `Exception`, as Ctrl-C, is raised.
    fn take(&self, py: Python<'_>, message: &Message) -> PyResult<()> {
        let client = &self.0;
        if client.is_closed() {
            return Ok(());
        }
        client.attend(py, message)?;
        let (renewing, interrupt) = py.detach(|| {
            let EngineSearcher { renewing, interrupt, .. } = &mut locked(&client.session).searcher;
            (std::mem::take(renewing), interrupt.take())
        });
        client.say_left();
        for (model, token) in renewing {
            if client.is_closed() {
                break;
            }
            let renewed = model.call_method0(py, "renew").and_then(|renewed| renewed.extract(py));
            let event = Event::Renewed(token, renewed.map_err(|error| request_error(py, error)));
            locked(&client.queue).events.push_back(event);
            client.say_all(py)?;
        }
        interrupt.map_or(Ok(()), Err)
    }

    /// Whether searches go on. A search ends after its answer was said.
    #[getter]
    fn is_busy(&self) -> bool {
        self.0.is_busy()
    }

    /// Returns when every query was answered.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, || {
            if !self.0.is_busy() {
                return Ok(Some(()));
            }
            // Whatever is said meanwhile is noticed; a thread may also let go of the session without a word.
            drop(self.0.said.wait_timeout(locked(&self.0.queue), Duration::from_millis(20)));
            Ok(None)
        })
    }

    /// Cancels the searches that go on, and drops the trees. Nothing is said any more. Does not wait for a message that
    /// another thread takes.
    fn close(&self, py: Python<'_>) {
        self.0.closed.store(true, Ordering::SeqCst);
        // `told` may be gone already.
        let _ = self.0.say_all(py);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        Python::try_attach(|py| self.close(py));
    }
}
