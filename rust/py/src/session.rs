//! `azpy._core.Session`: the messages of one client, answered by players whose engines other clients use too.
//!
//! The crate `azpy-serve` reads, keeps and answers; here it searches over the threads of engines. Nobody waits for a
//! session with the GIL: whoever has it may need the GIL, for a game in Python.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::time::Duration;

use azpy_core::game::Action;
use azpy_serve::{Event, Level, Looked, Player, Reply, Root, Searcher, Session as CoreSession, Unbegun, Wanted};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::calls::{Call, Listener};
use crate::engine::{Allowed, Engine, EngineGame, Given, Hears, ONLY};
use crate::errors::caught;
use crate::position::{AnyState, Hosted};
use crate::query::{Limited, Message};
use crate::result::{SearchResult, Told};
use crate::settings::{U64, Whole, whole, within};
use crate::state::State;
use crate::threads::{locked, wait};

type Inner = CoreSession<AnyState, Engines>;

/// What an error says, in a line.
fn said(py: Python<'_>, error: PyErr) -> String {
    let line = |error: PyErr| py.import("azpy.errors")?.call_method1("one_line", (error.into_value(py),))?.extract();
    line(error).unwrap_or_else(|error: PyErr| error.to_string())
}

fn unbegun(py: Python<'_>, error: PyErr) -> Unbegun {
    let full = || Ok::<_, PyErr>(error.is_instance(py, &py.import("queue")?.getattr("Full")?));
    let is_full = full().unwrap_or(false);
    Unbegun { is_full, why: said(py, error) }
}

/// What became of requests, until the session takes it.
#[derive(Default)]
struct Heard {
    events: Mutex<VecDeque<Event>>,
    /// Nobody asks any more.
    closed: AtomicBool,
}

/// What waits for one request.
struct Ear {
    token: u64,
    wanted: Wanted,
    heard: Arc<Heard>,
    client: Weak<Client>,
}

impl Ear {
    fn look(&self, py: Python<'_>, found: &SearchResult) -> PyResult<Looked> {
        Ok(Looked {
            result: found.core().clone(),
            lines: found.lines(usize::MAX, self.wanted.pv_length)?,
            errors: if self.wanted.errors { Some(found.errors(py)?) } else { None },
            simulations: found.counts().simulations,
        })
    }

    fn tell(&self, py: Python<'_>, event: Event) {
        if self.heard.closed.load(Ordering::Relaxed) {
            return;
        }
        locked(&self.heard.events).push_back(event);
        if let Some(client) = self.client.upgrade() {
            client.tell(py);
        }
    }
}

impl Listener for Ear {
    fn report(&self, py: Python<'_>, found: &SearchResult) {
        // A report that cannot be told is no answer, and the answer will say why.
        if let Ok(looked) = self.look(py, found) {
            self.tell(py, Event::Report(self.token, looked));
        }
    }

    fn end(&self, py: Python<'_>, ending: PyResult<SearchResult>, seconds: f64) {
        let event = match ending.and_then(|found| self.look(py, &found)) {
            Ok(looked) => {
                if let Some(client) = self.client.upgrade()
                    && let Err(error) = client.answered.call1(py, (seconds,))
                {
                    error.write_unraisable(py, Some(client.answered.bind(py)));
                }
                Event::Done(self.token, looked)
            }
            Err(error) => Event::Failed(self.token, said(py, error)),
        };
        self.tell(py, event);
    }
}

/// A player as it was last seen, and what it was made of.
struct Known {
    served: Py<PyAny>,
    engine: Py<Engine>,
    player: Arc<Player<AnyState>>,
}

/// Searches over the threads of players' engines.
struct Engines {
    /// By name, see `azpy.serving.models.Model`.
    models: Vec<(String, Py<PyAny>)>,
    limits: Py<PyAny>,
    renews: bool,
    known: Vec<Option<Known>>,
    calls: HashMap<u64, Arc<Call>>,
    /// The actions `renew` that nobody has begun yet: models and tokens.
    renewing: Vec<(Py<PyAny>, u64)>,
    heard: Arc<Heard>,
    client: Weak<Client>,
}

impl Engines {
    /// The player of this number as it is now.
    fn see(&mut self, py: Python<'_>, number: usize) -> PyResult<&Known> {
        let (name, model) = &self.models[number];
        let model = model.bind(py);
        let (served, engine) = (model.getattr(intern!(py, "served"))?, model.getattr(intern!(py, "engine"))?);
        let is_same = |known: &Known| known.served.is(&served) && known.engine.is(&engine);
        if !self.known[number].as_ref().is_some_and(is_same) {
            let engine = engine.cast_into::<Engine>()?.unbind();
            let levels = served.getattr("ladder")?.getattr("levels")?.cast_into::<PyDict>()?;
            let level = |(name, level): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
                Ok(Level {
                    name: name.extract()?,
                    simulations: level.getattr("simulations")?.extract()?,
                    temperature: level.getattr("temperature")?.extract()?,
                })
            };
            let about = py.import("azpy.serving.queries")?.call_method1("about", (name, &served, &self.limits))?;
            let about = py.import("json")?.call_method1("dumps", (about,))?;
            let player = Player {
                start: served.getattr("start")?.cast::<State>()?.borrow().inner.copied()?,
                config: engine.get().config(),
                name: name.clone(),
                about: serde_json::from_str(about.extract()?).unwrap_or_default(),
                network: served.getattr("network")?.extract()?,
                simulations: served.getattr("simulations")?.extract()?,
                levels: levels.iter().map(level).collect::<PyResult<_>>()?,
                temperature: served.getattr("temperature")?.extract()?,
                seed: served.getattr("seed")?.extract()?,
            };
            self.known[number] = Some(Known { served: served.unbind(), engine, player: Arc::new(player) });
        }
        Ok(self.known[number].as_ref().expect("it was seen"))
    }

    fn start(
        &self,
        py: Python<'_>,
        engine: &Engine,
        root: &Root<'_, AnyState, EngineGame>,
        wanted: Wanted,
    ) -> PyResult<Arc<Call>> {
        let given = Given {
            simulations: wanted.simulations.map(|simulations| Whole(simulations.into())),
            seconds: wanted.seconds,
            seed: 0,
            priority: wanted.priority,
            allowed: Allowed::Known(wanted.allowed.clone()),
            report_every: wanted.report_every.map(Duration::from_secs_f64),
            told: Told::new(wanted.errors, None)?,
            hears: Hears::Session(Box::new(Ear {
                token: wanted.token,
                wanted,
                heard: self.heard.clone(),
                client: self.client.clone(),
            })),
        };
        match root {
            Root::Kept(game) => game.begin(py, &py.detach(|| game.seat.state())?, given),
            Root::Fresh(state) => engine.begin(py, ONLY, &state.copied()?, given),
        }
    }
}

impl Searcher<AnyState> for Engines {
    type Kept = EngineGame;

    fn players(&mut self) -> Result<Vec<Arc<Player<AnyState>>>, String> {
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
            all.collect::<PyResult<_>>().map_err(|error| said(py, error))
        })
    }

    fn keep(&mut self, player: usize, start: &AnyState) -> Result<EngineGame, String> {
        Python::attach(|py| {
            let mut kept = || Engine::kept(self.see(py, player)?.engine.bind(py), ONLY, &start.copied()?, 0);
            kept().map_err(|error| said(py, error))
        })
    }

    fn play(&mut self, kept: &EngineGame, action: Action) -> Result<(), String> {
        kept.seat.play(Whole(action.into())).map_err(|error| Python::attach(|py| said(py, error)))
    }

    fn undo(&mut self, kept: &EngineGame) {
        kept.seat.undo();
    }

    fn is_current(&mut self, player: usize, kept: &EngineGame) -> bool {
        Python::attach(|py| self.see(py, player).is_ok_and(|known| known.engine.is(&kept.engine)))
    }

    fn begin(&mut self, player: usize, root: Root<'_, AnyState, EngineGame>, wanted: Wanted) -> Result<(), Unbegun> {
        if self.heard.closed.load(Ordering::Relaxed) {
            return Err(Unbegun::from("nobody asks any more".to_owned()));
        }
        let token = wanted.token;
        // Those of answered requests.
        self.calls.retain(|_, call| Arc::strong_count(call) > 1);
        let mut begin = |py: Python<'_>| loop {
            let engine = self.see(py, player)?.engine.clone_ref(py);
            match self.start(py, engine.get(), &root, wanted.clone()) {
                // An engine that was closed as its player got another one.
                Err(_) if matches!(root, Root::Fresh(_)) && !self.see(py, player)?.engine.is(&engine) => {}
                begun => return begun,
            }
        };
        let begun = Python::attach(|py| begin(py).map_err(|error| unbegun(py, error)));
        self.calls.insert(token, begun?);
        Ok(())
    }

    fn stop(&mut self, token: u64) {
        self.calls.get(&token).inspect(|call| call.wishes.stop());
    }

    fn leave(&mut self, token: u64) {
        self.calls.remove(&token).inspect(|call| call.wishes.leave());
    }

    fn take(&mut self) -> Option<Event> {
        locked(&self.heard.events).pop_front()
    }

    fn fault(&mut self, state: &AnyState) -> Option<String> {
        state.take_error().err().map(|error| Python::attach(|py| said(py, error)))
    }

    fn renews(&self) -> bool {
        self.renews
    }

    fn renew(&mut self, player: usize, token: u64) {
        self.renewing.push((Python::attach(|py| self.models[player].1.clone_ref(py)), token));
    }
}

/// One client.
struct Client {
    session: Mutex<Inner>,
    heard: Arc<Heard>,
    say: Py<PyAny>,
    /// Is told how many seconds each answered search took.
    answered: Py<PyAny>,
    /// Threads that are about to say something.
    telling: AtomicUsize,
}

impl Client {
    /// Has the session do something, and says what it says.
    fn with(&self, py: Python<'_>, act: impl FnOnce(&mut Inner) -> Vec<Reply> + Send) -> PyResult<()> {
        self.telling.fetch_add(1, Ordering::SeqCst);
        let replies = py.detach(|| {
            let replies = caught(|| Ok(act(&mut locked(&self.session))));
            // It may have been closed meanwhile, by somebody who did not wait.
            if self.heard.closed.load(Ordering::SeqCst) {
                locked(&self.session).close();
                return Ok(Vec::new());
            }
            replies
        });
        let told = replies.and_then(|replies| {
            replies.into_iter().try_for_each(|Reply { line, status, search, is_report }| {
                self.say.call1(py, (line, status, search, is_report)).map(drop)
            })
        });
        self.telling.fetch_sub(1, Ordering::SeqCst);
        told
    }

    /// Says what is known of searches.
    fn tell(&self, py: Python<'_>) {
        if let Err(error) = self.with(py, Inner::take) {
            error.write_unraisable(py, Some(self.say.bind(py)));
        }
    }

    /// Whether searches go on, or answers are about to be said.
    fn is_busy(&self) -> bool {
        let goes_on = match self.session.try_lock() {
            Ok(session) => session.is_busy(),
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Poisoned(session)) => session.into_inner().is_busy(),
        };
        goes_on || self.telling.load(Ordering::SeqCst) > 0
    }
}

/// The messages of one client, and their answers.
///
/// Args:
///     models: players by name, each with the attributes `served` and `engine` and a method `renew`; see
///         `azpy.serving.models.Model`. Other clients may use them too. The first one answers where none is named.
///     say: is called with a line of JSON, the status that it would have as the answer to a POST (200, 400 or 503), the
///         query's id and turn if it is about a search, and whether that goes on. It may be called in any thread, and
///         searches of all clients wait for it.
///     limits: of the client, see `azpy.serving.limits.Limits`.
///     renews: whether there is an action `renew`.
///     answered: is called with the seconds that each answered search took.
#[pyclass(module = "azpy._core", frozen)]
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
        #[pyo3(from_py_with = whole)] seed: i128,
    ) -> PyResult<Self> {
        let seed = within("seed", seed, 0, U64)?;
        let models = models.iter().map(|(name, model)| Ok((name.extract()?, model.unbind())));
        let models = models.collect::<PyResult<Vec<_>>>()?;
        let allowed = limits.extract::<Limited>()?.into();
        let (limits, heard) = (limits.clone().unbind(), Arc::new(Heard::default()));
        Ok(Self(Arc::new_cyclic(|client: &Weak<Client>| {
            let engines = Engines {
                known: models.iter().map(|_| None).collect(),
                models,
                limits,
                renews,
                calls: HashMap::new(),
                renewing: Vec::new(),
                heard: heard.clone(),
                client: client.clone(),
            };
            let session = CoreSession::new(engines, allowed, seed);
            Client { session: Mutex::new(session), heard, say, answered, telling: AtomicUsize::new(0) }
        })))
    }

    /// Takes a query or an action. Each answer, and each error, is said. The action `renew` loads a player meanwhile.
    fn take(&self, py: Python<'_>, message: &Message) -> PyResult<()> {
        let client = &self.0;
        let mut renewing = Vec::new();
        client.with(py, |session| {
            let replies = session.attend(&message.fields);
            renewing = std::mem::take(&mut session.searcher.renewing);
            replies
        })?;
        for (model, token) in renewing {
            let renewed = model.call_method0(py, "renew").and_then(|renewed| renewed.extract(py));
            let event = Event::Renewed(token, renewed.map_err(|error| said(py, error)));
            locked(&client.heard.events).push_back(event);
            client.with(py, Inner::take)?;
        }
        Ok(())
    }

    /// Whether searches go on. A search ends after its answer was said.
    #[getter]
    fn is_busy(&self) -> bool {
        self.0.is_busy()
    }

    /// Returns when every query was answered.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, || {
            let is_busy = self.0.is_busy();
            if is_busy {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok((!is_busy).then_some(()))
        })
    }

    /// Cancels the searches that go on, and drops the trees. Nothing is said any more. Does not wait for a message that
    /// another thread takes.
    fn close(&self, py: Python<'_>) {
        self.0.heard.closed.store(true, Ordering::SeqCst);
        py.detach(|| {
            if let Ok(mut session) = self.0.session.try_lock() {
                session.close();
            }
        });
    }
}
