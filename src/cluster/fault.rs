//! Faults that end a job, with rank, agent, activity and cause; includes panics and calls of `exit`.

use super::layout::{AgentId, Rank};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Instant;

/// Any error of a method; it ends the job with a message that names rank, agent and activity.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The result of a method's functions.
pub type Result<T, E = BoxError> = std::result::Result<T, E>;

/// The exit code of a job that a fault ended.
pub const EXIT_CODE: i32 = 70;

/// A failure that ends the whole job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("rank {rank}, {who}, {activity}: {cause}")]
pub struct Fault {
    /// The rank.
    pub rank: Rank,
    /// The agent, the server or the driver.
    pub who: String,
    /// What it was doing.
    pub activity: String,
    /// The error of the method or the system, or the message of the panic.
    pub cause: String,
}

/// What else is done with a fault that is printed.
static OBSERVER: Mutex<Option<Observer>> = Mutex::new(None);

type Observer = Box<dyn Fn(&Fault) + Send>;

/// Sets what is done with a fault when it has been printed and before it ends the job.
pub fn observe_faults(observer: impl Fn(&Fault) + Send + 'static) {
    *OBSERVER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(observer));
}

impl Fault {
    /// A failure of what carries messages and work between ranks and threads, rather than of the server or an agent.
    pub(super) fn of_driver(method: &'static str, rank: Rank, cause: String) -> Self {
        Activity { method, rank, agent: None, action: Action::Communicating }.fault(cause).by_driver()
    }

    /// The same as a failure of the driver.
    pub(super) fn by_driver(self) -> Self {
        Self { who: "driver".into(), ..self }
    }

    /// Prints the message with a single write, so that mpirun's own lines cannot come between its parts, and shows the fault to the observer.
    pub(super) fn print(&self) {
        crate::log::print_error(&self.to_string());
        // Of two threads that fail, one is enough; none waits for the other.
        if let Ok(observer) = OBSERVER.try_lock()
            && let Some(observe) = observer.as_ref()
        {
            observe(self);
        }
    }

    /// Prints the message and ends the process at once with [`EXIT_CODE`]. An ordinary exit would unload libraries while worker
    /// threads still use them.
    pub fn end_process(&self) -> ! {
        self.print();
        end_process(EXIT_CODE)
    }
}

/// Ends a process in which an earlier run has failed; see [`Fault::end_process`] for why not by an ordinary exit.
pub fn end_process(code: i32) -> ! {
    // SAFETY: ends the process without running any handler.
    unsafe { libc::_exit(code) }
}

/// What a thread is doing for a method; `Copy`, because the exit handler reads it after destructors have run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    pub method: &'static str,
    pub rank: Rank,
    pub agent: Option<AgentId>,
    pub action: Action,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Creating,
    Starting,
    Receiving,
    Posting,
    Performing(u64),
    Following,
    Saving,
    Recording,
    Communicating,
}

impl Activity {
    pub(super) fn fault(self, cause: impl Into<String>) -> Fault {
        Fault { rank: self.rank, who: self.who(), activity: format!("{} {}", self.method, self.action()), cause: cause.into() }
    }

    fn who(self) -> String {
        self.agent.map_or_else(|| "server".into(), |agent| format!("agent {agent}"))
    }

    fn action(self) -> String {
        match self.action {
            Action::Creating => "being created".into(),
            Action::Starting => "starting".into(),
            Action::Receiving => "receiving a response".into(),
            Action::Posting => "posting a request".into(),
            Action::Performing(request) => format!("performing a task (request {request})"),
            Action::Following => "working after its report".into(),
            Action::Saving => "saving its state".into(),
            Action::Recording => "recording the run".into(),
            Action::Communicating => "exchanging messages".into(),
        }
    }
}

thread_local! {
    static CURRENT: Cell<Option<Activity>> = const { Cell::new(None) };
    /// The source location of this thread's last panic.
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The activities of all threads that work for a method. Rayon's threads, which help them, have no activity of their own.
static GUARDED: Mutex<Guarded> = Mutex::new(Guarded { next: 0, activities: BTreeMap::new(), helper_location: None });

struct Guarded {
    next: u64,
    /// Each with its start.
    activities: BTreeMap<u64, (Activity, Instant)>,
    /// The source location of the last panic in a helping thread. Rayon passes the panic on to the helped thread, but not the location.
    helper_location: Option<String>,
}

fn guarded() -> MutexGuard<'static, Guarded> {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this is one of rayon's threads, which only run code of the threads they help.
pub(super) fn is_helper() -> bool {
    rayon::current_thread_index().is_some()
}

/// What this thread is doing for a method, itself or as a helper. If several threads are at work, it is unknown which one a helper
/// helps: an agent's task is the likeliest.
fn current() -> Option<Activity> {
    CURRENT.get().or_else(|| {
        let likeliest = |activity: &&Activity| {
            (activity.agent.is_none(), matches!(activity.action, Action::Communicating | Action::Recording))
        };
        is_helper().then(|| guarded().activities.values().map(|(activity, _)| activity).min_by_key(likeliest).copied()).flatten()
    })
}

/// What this process is doing, and for how long: of several tasks, the one that began first.
pub(super) fn describe_activity() -> String {
    let is_background = |activity: &Activity| matches!(activity.action, Action::Communicating);
    let longest = guarded().activities.values().min_by_key(|(activity, since)| (is_background(activity), *since)).copied();
    match longest {
        None => "preparing a run, or writing its results".into(),
        Some((activity, _)) if is_background(&activity) => format!("exchanging messages of {}", activity.method),
        Some((activity, since)) => {
            let seconds = since.elapsed().as_secs_f64().round();
            let who = match (activity.agent, activity.action) {
                (None, Action::Saving | Action::Recording) => "the rank".into(),
                _ => activity.who(),
            };
            format!("in a run of {}: {who} was {} for {seconds} s", activity.method, activity.action())
        }
    }
}

/// Runs a method's code. An error or panic becomes a fault, and the exit handler can name the activity if the code calls `exit`.
pub(super) fn guard<T>(activity: Activity, work: impl FnOnce() -> Result<T, BoxError>) -> Result<T, Fault> {
    let outer = CURRENT.replace(Some(activity));
    let number = {
        let mut guarded = guarded();
        guarded.next += 1;
        let number = guarded.next;
        guarded.activities.insert(number, (activity, Instant::now()));
        number
    };
    let result = std::panic::catch_unwind(AssertUnwindSafe(work));
    guarded().activities.remove(&number);
    CURRENT.set(outer);
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(activity.fault(chain(error.as_ref()))),
        Err(payload) => {
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("a panic without a message");
            let location = LOCATION.take().or_else(|| guarded().helper_location.take());
            Err(activity.fault(format!("panicked at {}: {text}", location.as_deref().unwrap_or("an unknown location"))))
        }
    }
}

/// An error with its chain of causes, in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Called when a method's code calls `exit`; may not return.
type Reporter = Box<dyn Fn(Fault) + Send>;

static ON_EXIT: Mutex<Option<Reporter>> = Mutex::new(None);

/// Silences panics of guarded code (their faults are printed) but not others, and turns a call of `exit` in guarded code into a fault.
pub(super) fn install(on_exit: Reporter) {
    static ONCE: Once = Once::new();
    *ON_EXIT.lock().unwrap_or_else(PoisonError::into_inner) = Some(on_exit);
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let location = info.location().map(ToString::to_string);
            if CURRENT.get().is_some() {
                LOCATION.set(location);
            } else if current().is_some() {
                guarded().helper_location = location;
            } else {
                print(info);
            }
        }));
        // SAFETY: registers a handler that takes no arguments and touches only statics and thread-locals without destructors
        // (among them rayon's thread index).
        unsafe { libc::atexit(at_exit) };
    });
}

extern "C" fn at_exit() {
    let Some(activity) = current() else { return };
    let fault = activity.fault("the process was ended by a call of exit");
    if let Some(report) = ON_EXIT.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        report(fault);
    }
    // SAFETY: ends the process at once; the handlers after this one must not run in a failed job.
    unsafe { libc::_exit(EXIT_CODE) };
}
