//! The same for message ids and identities: clients send again until they hear, to whichever node; the
//! network delays, loses and repeats. A message is handled once, a burst fires once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use tidegate::burst::{BurstPolicy, Trigger};
use tidegate::dedup::{MessageOp, MessageReply, Tag};
use tidegate::op::{self, Op, Reply, Write};
use tidegate::tier::{Seen, SeenAsk};
use tidegate::{Clock, Millis, Slot, Timestamp};

use crate::random::Random;

const RETRY_MS: u64 = 150;
const LASTS_MS: u64 = 5_000;
const TTL: Millis = Millis::from_ms(60_000);
const BURST_WINDOW_MS: u64 = 1_000;
const THRESHOLD: u64 = 5;

enum Event {
    /// A client sends, for the so-manieth time.
    Send {
        client: usize,
    },
    Arrive {
        client: usize,
        node: usize,
        op: MessageOp,
        ask: Option<SeenAsk>,
    },
    Answer {
        client: usize,
        node: usize,
        op: MessageOp,
        ask: Option<SeenAsk>,
        reply: MessageReply,
    },
    Observe {
        nonce: usize,
    },
    Observed {
        nonce: usize,
        fired: bool,
        window: u64,
    },
}

/// Somebody who wants one message handled.
struct Client {
    id: String,
    done: bool,
}

struct Node {
    seen: Seen,
    slots: HashMap<String, Slot>,
}

pub(crate) struct Ids {
    random: Random,
    now_ms: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    scheduled: HashMap<u64, Event>,
    count: u64,
    store: HashMap<String, String>,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    /// Whose work counts, by id.
    handled: HashMap<String, HashSet<usize>>,
    told: HashSet<usize>,
    fired: HashMap<u64, HashSet<usize>>,
    observed: HashMap<u64, u64>,
    trusting: bool,
}

impl Ids {
    /// `trusting`: with the safeguard taken away, a node takes what is being worked on for done.
    pub(crate) fn new(seed: u64, trusting: bool) -> Self {
        let mut random = Random::new(seed);
        let nodes = (0..random.between(1, 6))
            .map(|_| Node { seen: Seen::new(1_000), slots: HashMap::new() })
            .collect();
        let mut ids = Self {
            random,
            now_ms: 0,
            events: BinaryHeap::new(),
            scheduled: HashMap::new(),
            count: 0,
            store: HashMap::new(),
            nodes,
            clients: Vec::new(),
            handled: HashMap::new(),
            told: HashSet::new(),
            fired: HashMap::new(),
            observed: HashMap::new(),
            trusting,
        };
        for client in 0..ids.random.between(20, 120) as usize {
            let id = format!("id {}", ids.random.between(0, 19));
            ids.clients.push(Client { id, done: false });
            let at = ids.random.between(0, LASTS_MS);
            ids.at(at, Event::Send { client });
        }
        for nonce in 0..60 {
            let at = ids.random.between(0, LASTS_MS);
            ids.at(at, Event::Observe { nonce });
        }
        ids
    }

    fn at(&mut self, at_ms: u64, event: Event) {
        self.count += 1;
        self.scheduled.insert(self.count, event);
        self.events.push(Reverse((at_ms, self.count)));
    }

    pub(crate) fn run(mut self) {
        while let Some(Reverse((at_ms, number))) = self.events.pop() {
            self.now_ms = self.now_ms.max(at_ms);
            match self.scheduled.remove(&number).unwrap() {
                Event::Send { client } => self.send(client),
                Event::Arrive { client, node, op, ask } => self.arrive(client, node, op, ask),
                Event::Answer { client, node, op, ask, reply } => {
                    self.answer(client, node, &op, ask, &reply);
                }
                Event::Observe { nonce } => self.observe(nonce),
                Event::Observed { nonce, fired, window } => {
                    self.told.insert(nonce);
                    if fired {
                        self.fired.entry(window).or_default().insert(nonce);
                    }
                }
            }
        }
        for client in &self.clients {
            let by = self.handled.get(&client.id).map_or(0, HashSet::len);
            assert_eq!(by, 1, "{} is handled {by} times", client.id);
        }
        for (window, counted) in &self.observed {
            let fired = self.fired.get(window).map_or(0, HashSet::len);
            assert_eq!(
                fired,
                usize::from(*counted >= THRESHOLD),
                "window {window}: {counted} counted"
            );
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_ms(1_700_000_000_000 + self.now_ms)
    }

    /// One way, which loses and repeats.
    fn delays(&mut self) -> Vec<u64> {
        let copies = self.random.pick(&[0, 1, 1, 1, 1, 1, 1, 2]);
        (0..copies).map(|_| self.random.between(1, 120)).collect()
    }

    fn send(&mut self, client: usize) {
        if self.clients[client].done {
            return;
        }
        self.at(self.now_ms + RETRY_MS, Event::Send { client });
        let node = self.random.between(0, self.nodes.len() as u64 - 1) as usize;
        let token = Tag::new(&format!("client-{client}")).unwrap();
        let op = MessageOp::Claim { token, lease: TTL, payload: None };
        self.ask(client, node, op);
    }

    fn ask(&mut self, client: usize, node: usize, op: MessageOp) {
        let (now, id) = (self.now(), self.clients[client].id.clone());
        let Node { seen, slots } = &mut self.nodes[node];
        let slot = slots.get(&id).copied();
        if let Some(reply) = slot.and_then(|slot| seen.answer(slot, &op, now)) {
            return self.answer(client, node, &op, None, &reply);
        }
        let (ask, slot) = seen.ask(slot, &op, now);
        if let Some(slot) = slot {
            slots.insert(id, slot);
        }
        for delay in self.delays() {
            let op = op.clone();
            self.at(self.now_ms + delay, Event::Arrive { client, node, op, ask: Some(ask) });
        }
    }

    fn step(&mut self, key: &str, op: &Op<'_>) -> Reply {
        let record = self.store.get(key).map(|text| op::decode(text).unwrap());
        let (reply, write) = op::step(record, op, self.now(), Clock::Store).unwrap();
        match write {
            Write::Keep => {}
            Write::Delete => drop(self.store.remove(key)),
            Write::Put(record, _) => {
                drop(self.store.insert(key.into(), op::encode(&record).unwrap()))
            }
        }
        reply
    }

    fn arrive(&mut self, client: usize, node: usize, op: MessageOp, ask: Option<SeenAsk>) {
        let id = self.clients[client].id.clone();
        let Reply::Message(reply) = self.step(&id, &Op::Message(&op)) else { unreachable!() };
        if matches!(op, MessageOp::Commit { .. }) && reply == MessageReply::Flag(true) {
            self.handled.entry(id).or_default().insert(client);
        }
        for delay in self.delays() {
            let (op, reply) = (op.clone(), reply.clone());
            self.at(self.now_ms + delay, Event::Answer { client, node, op, ask, reply });
        }
    }

    fn answer(
        &mut self,
        client: usize,
        node: usize,
        op: &MessageOp,
        ask: Option<SeenAsk>,
        reply: &MessageReply,
    ) {
        let token = Tag::new(&format!("client-{client}")).unwrap();
        if let Some(ask) = ask {
            // Without the safeguard, that an id was new passes for its being done.
            let done =
                MessageOp::Commit { token: token.clone(), ttl: TTL, result: None, payload: None };
            let trusts = self.trusting && *reply == MessageReply::Fresh;
            let (op, reply) = if trusts { (&done, &MessageReply::Flag(true)) } else { (op, reply) };
            self.nodes[node].seen.told(&ask, op, reply);
        }
        match (op, reply) {
            (MessageOp::Claim { .. }, MessageReply::Fresh) => {
                let commit = MessageOp::Commit { token, ttl: TTL, result: None, payload: None };
                self.ask(client, node, commit);
            }
            (MessageOp::Commit { .. }, MessageReply::Flag(true))
            | (MessageOp::Claim { .. }, MessageReply::Duplicate { .. }) => {
                self.clients[client].done = true;
            }
            _ => {}
        }
    }

    fn observe(&mut self, nonce: usize) {
        if self.told.contains(&nonce) {
            return;
        }
        self.at(self.now_ms + RETRY_MS, Event::Observe { nonce });
        // A request that was lost: the same nonce comes again.
        if self.random.chance(20) {
            return;
        }
        let window = Millis::from_ms(BURST_WINDOW_MS);
        let policy = BurstPolicy::new(THRESHOLD, window, Millis::ZERO, Trigger::Tumbling).unwrap();
        let tag = Tag::new(&format!("nonce-{nonce}")).unwrap();
        let op = Op::Observe { policy: &policy, weight: 1, nonce: Some(&tag) };
        let Reply::Observation(observation) = self.step("who", &op) else { unreachable!() };
        let window = self.now().as_ms() / BURST_WINDOW_MS;
        if !observation.replay {
            let counted = self.observed.entry(window).or_default();
            *counted = (*counted).max(observation.count);
        }
        // The window of a firing that is told again is the one that it was in.
        let fired_in = if observation.replay {
            window_of(&self.fired, nonce).unwrap_or(window)
        } else {
            window
        };
        if observation.fired {
            self.fired.entry(fired_in).or_default().insert(nonce);
        }
        for delay in self.delays() {
            let fired = observation.fired;
            self.at(self.now_ms + delay, Event::Observed { nonce, fired, window: fired_in });
        }
    }
}

fn window_of(fired: &HashMap<u64, HashSet<usize>>, nonce: usize) -> Option<u64> {
    fired.iter().find(|(_, nonces)| nonces.contains(&nonce)).map(|(window, _)| *window)
}
