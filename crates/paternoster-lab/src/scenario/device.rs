//! The oracle's device: k servers, each with a head of its own, and a queue in front of them.

use std::collections::VecDeque;

use paternoster::RequestId;

use super::DeviceModel;

/// A request in the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) rq: RequestId,
    pub(super) sector: u64,
    pub(super) sectors: u32,
}

/// A request that a server has begun to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Started {
    pub(super) rq: RequestId,
    pub(super) server: usize,
    pub(super) service_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Server {
    busy: bool,
    /// Where its previous request ended.
    head: u64,
}

#[derive(Debug)]
pub(super) struct Device {
    model: DeviceModel,
    /// Those that have served anything, by index; the others are as new.
    servers: Vec<Server>,
    waiting: VecDeque<Job>,
}

impl Device {
    pub(super) fn new(model: DeviceModel) -> Self {
        Self { model, servers: Vec::new(), waiting: VecDeque::new() }
    }

    /// Takes a request: it starts at once on the free server of the lowest index, or waits.
    pub(super) fn take(&mut self, job: Job) -> Option<Started> {
        let free = self.free_server();
        if free.is_none() {
            self.waiting.push_back(job);
        }
        free.map(|server| self.start(server, job))
    }

    fn free_server(&mut self) -> Option<usize> {
        let used = self.servers.len();
        let free = self.servers.iter().position(|server| !server.busy);
        if free.is_none() && used < self.model.channels as usize {
            self.servers.push(Server::default());
            return Some(used);
        }
        free
    }

    /// A server is done; it starts the request that waited longest.
    pub(super) fn finish(&mut self, server: usize) -> Option<Started> {
        self.servers[server].busy = false;
        let job = self.waiting.pop_front()?;
        Some(self.start(server, job))
    }

    fn start(&mut self, index: usize, job: Job) -> Started {
        let seek_ns = self.seek_ns(self.servers[index].head, job.sector);
        let transfer_ns = self.model.per_sector_ns.saturating_mul(u64::from(job.sectors));
        let service_ns = self.model.base_ns.saturating_add(transfer_ns).saturating_add(seek_ns);
        self.servers[index] = Server { busy: true, head: job.sector + u64::from(job.sectors) };
        Started { rq: job.rq, server: index, service_ns }
    }

    fn seek_ns(&self, head: u64, sector: u64) -> u64 {
        if head == sector {
            return 0;
        }
        let way = head.abs_diff(sector).saturating_mul(self.model.seek_ns_per_mi_sector) >> 20;
        self.model.seek_base_ns.saturating_add(way)
    }
}
