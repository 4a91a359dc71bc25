//! The log lines about clients: when they connect, when they leave, and when they are cut off.

use std::sync::Arc;
use std::time::Instant;

use super::Connections;
use super::register::Registered;
use crate::clients::{ClientId, Export, Leave};
use crate::config::Identity;
use crate::peer::Peer;

impl Connections {
    pub(super) fn log_connected(&mut self, client: ClientId) {
        let Registered { export, peer, identity, .. } = self.register.client(client);
        let (export, who) = (Arc::clone(export), (*peer, identity.clone()));
        self.log_line("a client has connected", &export, who, None);
    }

    /// The connection is not counted any more.
    pub(super) fn log_left(&mut self, client: &Registered, why: Option<Leave>) {
        let kind = match &why {
            Some(
                Leave::CutOff(_)
                | Leave::Tls(_)
                | Leave::Stalled(_)
                | Leave::Refused
                | Leave::MemoryGone,
            ) => "a client was cut off",
            _ => "a client has left",
        };
        let who = (client.peer, client.identity.clone());
        self.log_line(kind, &client.export, who, why);
    }

    /// Logs a line about the client; `kind` is its sentence, of which there is one a second.
    fn log_line(
        &mut self,
        kind: &'static str,
        export: &Export,
        (peer, identity): (Peer, Option<Identity>),
        why: Option<Leave>,
    ) {
        let Some(line) = self.limits.admit(kind, Instant::now()) else { return };
        let tenant = &self.tenants[export.tenant];
        let on_disk: u32 = self.tenants.iter().map(|(_, tenant)| tenant.connections).sum();
        tracing::info!(
            disk = self.label.config.name,
            export = export.name,
            peer = peer.to_string(),
            identity = identity.map(|identity| identity.to_string()),
            why = why.map(|why| why.to_string()),
            tenant = tenant.path,
            of_tenant = tenant.connections,
            of_disk = on_disk,
            left_out = line.left_out,
            "{kind}"
        );
    }
}
