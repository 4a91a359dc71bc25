//! A disk in memory, served over a unix socket: the machines with the least around them.
//!
//! ```text
//! cargo run -p paternoster-nbd --example memory_server -- /tmp/disk.sock 1048576 [--record DIR]
//! ```
//!
//! One blocking thread a connection. With `--record`, what each client sends is kept in `DIR`,
//! a file a connection; the corpus of the tests was made so.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use paternoster_nbd::server::{Handshake, Progress, Transmission};
use paternoster_nbd::{
    BlockSize, Command, ExportInfo, Extent, ExtentFlags, Request, Session, TransmissionFlags,
};

/// Granularity of the allocation map, bytes.
const BLOCK: usize = 4096;

type Disk = Arc<Mutex<Vec<u8>>>;

/// One client and what is on its way from and to it.
struct Connection {
    socket: UnixStream,
    record: Option<File>,
    input: BytesMut,
    output: BytesMut,
}

impl Connection {
    /// Sends what is waiting, then reads something; false at the end.
    fn exchange(&mut self, wanted: usize) -> io::Result<bool> {
        self.send()?;
        let start = self.input.len();
        self.input.resize(start + wanted.max(BLOCK), 0);
        let got = self.socket.read(&mut self.input[start..])?;
        self.input.truncate(start + got);
        if let Some(record) = &mut self.record {
            record.write_all(&self.input[start..])?;
        }
        Ok(got > 0)
    }

    fn send(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("memory_server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, size, record) = match arguments.as_slice() {
        [path, size] => (path, size, None),
        [path, size, flag, dir] if flag == "--record" => (path, size, Some(dir)),
        _ => return Err(io::Error::other("usage: memory_server SOCKET SIZE [--record DIR]")),
    };
    let size: usize = size.parse().map_err(io::Error::other)?;
    let disk: Disk = Arc::new(Mutex::new(vec![0; size]));
    for (number, socket) in UnixListener::bind(path)?.incoming().enumerate() {
        let record = record.map(|dir| File::create(format!("{dir}/{number:03}.client")));
        let (disk, record) = (Arc::clone(&disk), record.transpose()?);
        let (input, output) = (BytesMut::new(), BytesMut::new());
        let connection = Connection { socket: socket?, record, input, output };
        std::thread::spawn(move || {
            if let Err(error) = serve(connection, &disk) {
                eprintln!("connection {number}: {error}");
            }
        });
    }
    Ok(())
}

fn serve(mut connection: Connection, disk: &Disk) -> io::Result<()> {
    connection.output.extend_from_slice(&Handshake::greeting());
    let Some(session) = negotiate(&mut connection, disk)? else { return connection.send() };
    let mut transmission = Transmission::new(session);
    loop {
        let Connection { input, output, .. } = &mut connection;
        match transmission.decode(input, output).map_err(io::Error::other)? {
            Some(Request { command: Command::Disconnect, .. }) => return connection.send(),
            Some(request) => execute(&transmission, request, disk, output),
            None if transmission.has_more() => {}
            None if connection.exchange(transmission.wanted())? => {}
            None => return Ok(()),
        }
    }
}

fn negotiate(connection: &mut Connection, disk: &Disk) -> io::Result<Option<Session>> {
    let export = ExportInfo {
        name: "memory".to_owned(),
        description: Some("a disk in memory".to_owned()),
        size: disk.lock().unwrap().len() as u64,
        flags: TransmissionFlags::all() - TransmissionFlags::READ_ONLY,
        block_size: BlockSize::default(),
    };
    let mut handshake = Handshake::new();
    loop {
        let Connection { input, output, .. } = &mut *connection;
        match handshake.receive(input, &export, output).map_err(io::Error::other)? {
            Progress::NeedMore if connection.exchange(handshake.wanted())? => {}
            Progress::SendOutput => connection.send()?,
            Progress::Entered(session) => return Ok(Some(session)),
            Progress::NeedMore | Progress::StartTls | Progress::Aborted => return Ok(None),
        }
    }
}

fn execute(transmission: &Transmission, request: Request, disk: &Disk, output: &mut BytesMut) {
    let mut disk = disk.lock().unwrap();
    let cookie = request.cookie;
    let range = |offset: u64, len: u32| at(offset)..at(offset) + at(len.into());
    match request.command {
        Command::Read { offset, len, .. } => {
            transmission.read_header(cookie, offset, len, output);
            output.extend_from_slice(&disk[range(offset, len)]);
            return;
        }
        Command::BlockStatus(query) => {
            let extents: Vec<Extent> =
                disk[range(query.offset, query.len)].chunks(BLOCK).map(extent).collect();
            return transmission.reply_block_status(cookie, query, &extents, output);
        }
        Command::Write { offset, data, .. } => {
            disk[at(offset)..at(offset) + data.len()].copy_from_slice(&data);
        }
        Command::Trim { offset, len, .. } | Command::WriteZeroes { offset, len, .. } => {
            disk[range(offset, len)].fill(0);
        }
        Command::Flush | Command::Cache { .. } | Command::Disconnect => {}
    }
    transmission.reply_ok(cookie, output);
}

fn extent(block: &[u8]) -> Extent {
    let zero = block.iter().all(|&byte| byte == 0);
    let flags = if zero { ExtentFlags::all() } else { ExtentFlags::empty() };
    Extent { len: u32::try_from(block.len()).expect("a block is small"), flags }
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).expect("the machine yields no offset past the end of the disk")
}
