//! The replies of a round: at its end, all of a connection's leave in one send.
//!
//! ```text
//!   outcomes of commands, answers ──▶ queued once ──end of the round──▶ one send each
//!   a send is done ──────────────────────▲
//! ```
//!
//! Nothing is bounded here. What is sent is what the disk has done in a round, and what a round of
//! the rotation has answered.

use super::Clients;
use super::connection::ConnectionId;
use super::site::Site;

/// The connections that may have something to be sent.
#[derive(Debug, Default)]
pub(super) struct Replies {
    queue: Vec<ConnectionId>,
}

impl Clients {
    /// Has the connection sent at the end of the round what there is for it.
    pub(super) fn queue_replies(&mut self, id: ConnectionId) {
        if !std::mem::replace(&mut self.connections[id].queued.for_replies, true) {
            self.replies.queue.push(id);
        }
    }

    /// Sends what there is. Whoever is over by that is let go in the next round: it may be queued
    /// in the rotation.
    pub(super) fn send_replies(&mut self, site: &mut impl Site) {
        let mut queue = std::mem::take(&mut self.replies.queue);
        for id in queue.drain(..) {
            let Some(client) = self.connections.get_mut(id) else { continue };
            client.queued.for_replies = false;
            let (units, tenant) = (client.send(site, id), client.export.tenant);
            self.rotation.owe(tenant, units);
            self.note_sending(id);
            self.update_charge(id);
            if self.connections[id].is_over() {
                self.queue(id);
            }
        }
        self.replies.queue = queue;
    }
}
