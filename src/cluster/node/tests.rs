//! Checkpoints of single ranks: states, missing agents, packets that overtake each other.

use super::*;
use crate::cluster::echo::Echo;
use crate::cluster::erased::{ErasedServer, erase_shared};
use crate::cluster::layout::Placement;
use crate::cluster::method::Progress;
use crate::cluster::ranges::Ranges;
use crate::number::ByNumber;

fn method() -> Erased<f64> {
    let ByNumber::F64(method) = erase_shared(Arc::new(Echo), "echo") else { panic!("another number type") };
    method
}

/// The node of a rank before its start packet.
fn echo_node(rank: Rank, ranks: u32) -> Node<f64> {
    Node::new(method(), rank, layout(ranks, 3), 1)
}

fn agent(id: AgentId) -> Box<dyn ErasedAgent<f64>> {
    method().agent(id, None).unwrap()
}

fn server() -> Box<dyn ErasedServer<f64>> {
    method().server(None).unwrap()
}

fn layout(ranks: u32, agents: u32) -> Layout {
    Layout { ranks, agents, dedicated: false, placement: Placement::Blocks }
}

/// The agents whose states a rank has sent for a checkpoint, if it has sent any.
fn sent_states(node: &mut Node<f64>) -> Option<Vec<AgentId>> {
    node.out.drain(..).find_map(|(_, packet)| match packet.head {
        Head::Quiesced { agents, .. } => Some(agents.into_iter().map(|(id, _)| id).collect()),
        _ => None,
    })
}

#[test]
fn a_request_for_states_that_overtakes_the_start_packet_waits_for_the_agents() {
    // Three agents on four ranks: the last hosts none.
    for (rank, hosted) in [(1, vec![1]), (3, vec![])] {
        let mut node = echo_node(rank, 4);
        let packet = |head| Packet { head, body: Body::empty() };
        node.handle(packet(Head::Quiesce { expected: Vec::new(), saved_here: BTreeSet::new(), wants_states: true })).unwrap();
        assert_eq!(sent_states(&mut node), None, "rank {rank}");
        node.handle(packet(Head::Start { saved: Vec::new() })).unwrap();
        for work in std::mem::take(&mut node.work) {
            assert_eq!(sent_states(&mut node), None, "rank {rank}");
            let Work::MakeAgent { id, saved: None } = work else { panic!("unexpected work") };
            node.complete(Completed::AgentMade { id, agent: agent(id) }).unwrap();
        }
        assert_eq!(sent_states(&mut node), Some(hosted), "rank {rank}");
    }
}

#[test]
fn a_transfer_is_saved_by_the_rank_that_is_asked_to() {
    for saved_here in [BTreeSet::from([7]), BTreeSet::new()] {
        let mut node = echo_node(1, 4);
        let packet = |head, values: &[f64]| Packet { head, body: values.to_vec().into() };
        node.handle(packet(Head::Start { saved: Vec::new() }, &[])).unwrap();
        node.work.clear();
        node.complete(Completed::AgentMade { id: 1, agent: agent(1) }).unwrap();
        node.handle(packet(Head::Quiesce { expected: vec![(1, 7)], saved_here: saved_here.clone(), wants_states: true }, &[]))
            .unwrap();
        assert_eq!(sent_states(&mut node), None, "the transfer has not arrived");
        node.handle(packet(Head::Total { request: 7, part: 0, parts: 1, to: Ranges::new([1]) }, &[2.5, 3.5])).unwrap();
        let saved = node.out.drain(..).find_map(|(_, packet)| match packet.head {
            Head::Quiesced { transfers, .. } => Some(transfers),
            _ => None,
        });
        let [SavedTransfer { request: 7, to, body }] = &saved.unwrap()[..] else { panic!("one transfer") };
        let body = body.clone().map(|body| body.load::<f64>(None).unwrap().to_vec());
        assert_eq!((&to[..], body), (&[1][..], (!saved_here.is_empty()).then(|| vec![2.5, 3.5])));
    }
}

/// The only rank of a run that takes a checkpoint at once.
fn single_rank(saved: Option<Checkpoint>) -> Result<Node<f64>, Fault> {
    let mut node = echo_node(0, 1);
    node.host_server(saved)?;
    while let Some((_, packet)) = node.out.pop_front() {
        node.handle(packet)?;
    }
    for id in 0..3 {
        node.complete(Completed::AgentMade { id, agent: agent(id) })?;
    }
    node.coordinator().unwrap().drain();
    node.complete(Completed::ServerMade { server: server(), progress: Progress::default() })?;
    // A new server is started first, and posts nothing.
    node.complete(Completed::ServerReturned {
        server: server(),
        progress: Progress::default(),
        seconds: 0.0,
        monitoring: false,
        records: Vec::new(),
    })?;
    Ok(node)
}

#[test]
fn a_checkpoint_without_the_state_of_an_agent_is_neither_taken_nor_resumed() {
    let mut sound = None;
    for lacking in [None, Some(0), Some(2)] {
        let mut node = single_rank(None).unwrap();
        while let Some((_, mut packet)) = node.out.pop_front() {
            if let Head::Quiesced { agents, .. } = &mut packet.head {
                agents.retain(|(id, _)| Some(*id) != lacking);
            }
            node.handle(packet).unwrap();
        }
        let made = node.coordinator().unwrap().take_checkpoint(0.0);
        match lacking {
            None => sound = Some(made.unwrap().unwrap()),
            Some(_) => assert!(made.err().unwrap().cause.contains("2 agents, but the run has 3")),
        }
    }
    let sound = sound.unwrap();
    let refused = |damage: &dyn Fn(&mut Checkpoint), says: &str| {
        let mut damaged = sound.clone();
        damage(&mut damaged);
        let refused = single_rank(Some(damaged)).err().unwrap();
        assert!(refused.cause.contains(says), "{refused}");
    };
    refused(&|damaged| drop(damaged.agents.remove(1)), "2 agents, but the run has 3");
    refused(&|damaged| damaged.method = "other".into(), "a run of other in f64, not of echo in f64");
    refused(&|damaged| damaged.number = "f32".into(), "a run of echo in f32, not of echo in f64");
    assert!(single_rank(Some(sound)).is_ok(), "the control");
}
