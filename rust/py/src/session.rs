//! `azpy._core.Session`: the messages of one client, answered by players whose engines other clients use too.
//!
//! The crate `azpy-serve` reads, keeps and answers; here it searches over the threads of engines. A thread waits for a
//! session without the GIL, which the thread that has the session may need for a game in Python. The threads that tell
//! answers wait for no session at all: one long message would hold up the answers of all clients.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, TryLockError, Weak};
use std::time::Duration;

use azpy_core::game::Action;
use azpy_serve::{Event, Level, Looked, Player, Reply, Root, Searcher, Session as CoreSession, Unbegun, Wanted, id_of};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde_json::json;

use crate::calls::{Allowed, Call, Given, Hears, Listener};
use crate::engine::{Engine, EngineGame, ONLY};
use crate::errors::caught;
use crate::position::{AnyState, Hosted};
use crate::query::{Limited, Message};
use crate::result::{SearchResult, Told};
use crate::settings::{U64, Whole, whole, within};
use crate::state::State;
use crate::threads::{locked, wait};

type Inner = CoreSession<AnyState, Engines>;

/// What an error says, in one line.
fn said(py: Python<'_>, error: PyErr) -> String {
    let line = |error: PyErr| py.import("azpy.errors")?.call_method1("one_line", (error.into_value(py),))?.extract();
    line(error).unwrap_or_else(|error: PyErr| error.to_string())
}

/// What became of requests, until the session takes it.
#[derive(Default)]
struct Heard {
    events: Mutex<VecDeque<Event>>,
    /// The client has left.
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
        if let Some(client) = self.client.upgrade()
            && let Err(error) = client.tell(py)
        {
            error.write_unraisable(py, Some(client.say.bind(py)));
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
    /// What was raised and is no `Exception`, as Ctrl-C: no answer to a client.
    interrupt: Option<PyErr>,
    heard: Arc<Heard>,
    client: Weak<Client>,
}

impl Engines {
    /// What an error says to a client.
    fn said(&mut self, py: Python<'_>, error: PyErr) -> String {
        if !error.is_instance_of::<PyException>(py) {
            self.interrupt = Some(error.clone_ref(py));
        }
        said(py, error)
    }

    fn unbegun(&mut self, py: Python<'_>, error: PyErr) -> Unbegun {
        let full = || Ok::<_, PyErr>(error.is_instance(py, &py.import("queue")?.getattr("Full")?));
        let is_full = full().unwrap_or(false);
        Unbegun { is_full, why: self.said(py, error) }
    }

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
            let strict = [("allow_nan", false)].into_py_dict(py)?;
            let about = py.import("json")?.getattr("dumps")?.call((about,), Some(&strict))?;
            let player = Player {
                start: served.getattr("start")?.cast::<State>()?.borrow().inner.copied()?,
                config: engine.get().config(),
                name: name.clone(),
                about: serde_json::from_str(about.extract()?)
                    .map_err(|error| PyValueError::new_err(error.to_string()))?,
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
            Root::Kept(game) => {
                game.check_fork()?;
                game.begin(py, &py.detach(|| game.game_tree.state())?, given)
            }
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
            let all = all.collect::<PyResult<_>>();
            all.map_err(|error| self.said(py, error))
        })
    }

    fn keep(&mut self, player: usize, start: &AnyState) -> Result<EngineGame, String> {
        Python::attach(|py| {
            let mut kept = || Engine::kept(self.see(py, player)?.engine.bind(py), ONLY, &start.copied()?, 0);
            let kept = kept();
            kept.map_err(|error| self.said(py, error))
        })
    }

    fn play(&mut self, kept: &EngineGame, action: Action) -> Result<(), String> {
        let played = kept.check_fork().and_then(|()| kept.game_tree.play(Whole(action.into())));
        played.map_err(|error| Python::attach(|py| self.said(py, error)))
    }

    fn undo(&mut self, kept: &EngineGame) {
        if kept.check_fork().is_ok() {
            kept.game_tree.undo();
        }
    }

    fn is_current(&mut self, player: usize, kept: &EngineGame) -> bool {
        Python::attach(|py| self.see(py, player).is_ok_and(|known| known.engine.is(&kept.engine)))
    }

    fn begin(&mut self, player: usize, root: Root<'_, AnyState, EngineGame>, wanted: Wanted) -> Result<(), Unbegun> {
        if self.heard.closed.load(Ordering::Relaxed) {
            return Err(Unbegun::from("this client has left".to_owned()));
        }
        let token = wanted.token;
        // Nobody else has the calls of answered requests.
        self.calls.retain(|_, call| Arc::strong_count(call) > 1);
        let begun = Python::attach(|py| {
            let mut begin = || loop {
                let engine = self.see(py, player)?.engine.clone_ref(py);
                match self.start(py, engine.get(), &root, wanted.clone()) {
                    // An engine that was closed as its player got another one.
                    Err(_) if matches!(root, Root::Fresh(_)) && !self.see(py, player)?.engine.is(&engine) => {}
                    begun => return begun,
                }
            };
            let begun = begin();
            begun.map_err(|error| self.unbegun(py, error))
        });
        self.calls.insert(token, begun?);
        Ok(())
    }

    fn stop(&mut self, token: u64) {
        self.calls.get(&token).inspect(|call| call.signals.stop());
    }

    fn leave(&mut self, token: u64) {
        self.calls.remove(&token).inspect(|call| call.signals.cancel());
    }

    fn take(&mut self) -> Option<Event> {
        locked(&self.heard.events).pop_front()
    }

    fn fault(&mut self, state: &AnyState) -> Option<String> {
        let error = state.take_error().err()?;
        Some(Python::attach(|py| self.said(py, error)))
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
    outbox: Mutex<Outbox>,
    /// Something was said, or the client is closed.
    said: Condvar,
    say: Py<PyAny>,
    /// Is called once what there is was said.
    told: Py<PyAny>,
    /// Is called with the seconds that a search took.
    answered: Py<PyAny>,
}

/// Replies in their order, until one thread at a time says them.
#[derive(Default)]
struct Outbox {
    replies: VecDeque<Reply>,
    is_saying: bool,
}

impl Client {
    /// Has the session take a message, and says what it says.
    fn attend(&self, py: Python<'_>, message: &Message) -> PyResult<()> {
        let attended = py.detach(|| {
            caught(|| {
                let mut session = locked(&self.session);
                let replies = session.attend(&message.fields);
                if session.searcher.interrupt.is_none() {
                    locked(&self.outbox).replies.extend(replies);
                }
                Ok(())
            })
        });
        if let Err(panic) = attended {
            let error = json!({"id": id_of(&message.fields).ok(), "error": said(py, panic)});
            let reply = Reply { line: error.to_string(), status: 400, search: None, is_report: false };
            locked(&self.outbox).replies.push_back(reply);
        }
        self.tell(py)
    }

    /// Says what there is to say. Does not wait for a thread that has the session: that thread looks at the events again
    /// once it has let go.
    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            while !locked(&self.heard.events).is_empty() {
                let Ok(mut session) = self.session.try_lock() else { break };
                let replies = session.take();
                locked(&self.outbox).replies.extend(replies);
            }
            self.tidy();
        });
        loop {
            let next = {
                let mut outbox = locked(&self.outbox);
                if self.heard.closed.load(Ordering::SeqCst) {
                    outbox.replies.clear();
                }
                if outbox.is_saying {
                    return Ok(());
                }
                let next = outbox.replies.pop_front();
                outbox.is_saying = next.is_some();
                next
            };
            let Some(Reply { line, status, search, is_report }) = next else { break };
            let said = self.say.call1(py, (line, status, search, is_report));
            locked(&self.outbox).is_saying = false;
            said?;
        }
        self.said.notify_all();
        self.told.call0(py).map(drop)
    }

    /// Ends what a client that has left has asked for. Every thread that has had the session does so: `close` may have
    /// found it in use.
    fn tidy(&self) {
        if self.heard.closed.load(Ordering::SeqCst)
            && let Ok(mut session) = self.session.try_lock()
        {
            session.close();
        }
    }

    /// Whether searches go on, or answers are about to be said.
    fn is_busy(&self) -> bool {
        if self.heard.closed.load(Ordering::SeqCst) {
            return false;
        }
        let goes_on = match self.session.try_lock() {
            Ok(session) => session.is_busy(),
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Poisoned(session)) => session.into_inner().is_busy(),
        };
        self.tidy();
        let outbox = locked(&self.outbox);
        goes_on || outbox.is_saying || !outbox.replies.is_empty()
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
///     told: is called without arguments once all that there is was said.
///     answered: is called with the seconds that each answered search took.
///     seed: of the draws of players without a seed.
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
        told: Py<PyAny>,
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
                interrupt: None,
                heard: heard.clone(),
                client: client.clone(),
            };
            let session = Mutex::new(CoreSession::new(engines, allowed, seed));
            let (outbox, said) = (Mutex::default(), Condvar::new());
            Client { session, heard, outbox, said, say, told, answered }
        })))
    }

    /// Takes a query or an action. Each answer, and each error, is said. The action `renew` loads a player meanwhile. What
    /// is no `Exception`, as Ctrl-C, is raised.
    fn take(&self, py: Python<'_>, message: &Message) -> PyResult<()> {
        let client = &self.0;
        let is_closed = || client.heard.closed.load(Ordering::SeqCst);
        if is_closed() {
            return Ok(());
        }
        client.attend(py, message)?;
        let (renewing, interrupt) = py.detach(|| {
            let Engines { renewing, interrupt, .. } = &mut locked(&client.session).searcher;
            (std::mem::take(renewing), interrupt.take())
        });
        for (model, token) in renewing {
            if is_closed() {
                break;
            }
            let renewed = model.call_method0(py, "renew").and_then(|renewed| renewed.extract(py));
            let event = Event::Renewed(token, renewed.map_err(|error| said(py, error)));
            locked(&client.heard.events).push_back(event);
            client.tell(py)?;
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
            drop(self.0.said.wait_timeout(locked(&self.0.outbox), Duration::from_millis(20)));
            Ok(None)
        })
    }

    /// Cancels the searches that go on, and drops the trees. Nothing is said any more. Does not wait for a message that
    /// another thread takes.
    fn close(&self, py: Python<'_>) {
        self.0.heard.closed.store(true, Ordering::SeqCst);
        // `told` may be gone already.
        let _ = self.0.tell(py);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        Python::try_attach(|py| self.close(py));
    }
}
