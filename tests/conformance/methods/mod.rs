//! Small methods, one for each kind of request, whose bits reveal a wrong order, skipped work after a report, or a stale transfer.

mod average;
mod burn;
mod chains;
mod counts;
mod crooked;
mod eager;
mod elastic;
mod groups;
mod relay;
mod scripted;
mod spread;
pub mod stein;
mod subset;
pub mod topics;
mod visits;

pub use average::Average;
pub use burn::Burn;
pub use chains::Chains;
pub use counts::Counts;
pub use crooked::Crooked;
pub use eager::Eager;
pub use elastic::Elastic;
pub use groups::Groups;
pub use relay::Relay;
pub use scripted::{Post, Scripted};
pub use spread::Spread;
pub use subset::Subset;
pub use visits::Visits;

use mpibayes::cluster::{AgentId, Context};
use mpibayes::number::Real;
use mpibayes::random::{Purpose, Who};

/// Normal numbers whose sizes span twelve powers of ten, differently for each owner: their floating-point sum shows the order of addition.
fn rough<F: Real>(cx: &Context, who: Who, step: u64, len: usize) -> Vec<F> {
    let id = match who {
        Who::Run | Who::Server => 0,
        Who::Agent(id) | Who::Chain(id) => id as usize + 1,
    };
    let mut values = vec![F::zero(); len];
    cx.stream(who, step, Purpose::Noise).normals(&mut values);
    for (place, value) in values.iter_mut().enumerate() {
        let power = (place * 3 + id * 5 + step as usize) % 7;
        *value *= F::of(10_f64.powi(power as i32 * 2 - 6));
    }
    values
}

/// Mixes news into a state so that every earlier value leaves a trace in every later one, at a size of about one.
fn stir<F: Real>(state: &mut [F], news: &[F]) {
    for (value, &new) in state.iter_mut().zip(news) {
        *value = (*value * F::of(1.7) + new).sin();
    }
}

/// The numbers 0 to n - 1 in the order of this step.
fn permutation(cx: &Context, step: u64, n: u32) -> Vec<AgentId> {
    let order = cx.stream(Who::Run, step, Purpose::Schedule).permutation(n as usize);
    order.into_iter().map(|agent| agent as AgentId).collect()
}
