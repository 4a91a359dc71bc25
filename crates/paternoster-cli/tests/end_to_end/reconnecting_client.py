"""A client by libnbd that connects again when it is closed, and then sends again all that was not
answered, as a guest's disk does. It writes so many blocks, every seventh by FUA, then flushes, reads
all, and says on standard output what it has seen. An answer that is an error ends it with status 1."""

import errno
import sys
import time

import nbd

URI, BLOCKS = sys.argv[1], int(sys.argv[2])
BLOCK, OUTSTANDING, PATIENCE_S = 4096, 32, 30


def content(number):
    return number.to_bytes(8, "big") * (BLOCK // 8)


def connect():
    """Connects, for as long as the server may take to start again."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        handle = nbd.NBD()
        try:
            handle.connect_uri(URI)
            return handle
        except nbd.Error:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.02)


def serve_until_closed(handle, waiting):
    """Writes what waits; returns when nothing does, or when the connection is gone."""
    in_flight = {}
    while waiting or in_flight:
        try:
            while waiting and len(in_flight) < OUTSTANDING:
                number = min(waiting)
                flags = nbd.CMD_FLAG_FUA if number % 7 == 0 else 0
                buffer = nbd.Buffer.from_bytearray(bytearray(content(number)))
                cookie = handle.aio_pwrite(buffer, number * BLOCK, flags=flags)
                in_flight[cookie] = number
                waiting.remove(number)
            handle.poll(-1)
        except nbd.Error:
            # It is gone; what was answered before has been taken in.
            pass
        for cookie, number in list(in_flight.items()):
            try:
                if handle.aio_command_completed(cookie):
                    del in_flight[cookie]
            except nbd.Error as error:
                if error.errnum not in (errno.ENOTCONN, 0):
                    sys.exit(f"block {number}: {error}")
                waiting.add(number)
                del in_flight[cookie]
        if handle.aio_is_dead() or handle.aio_is_closed():
            waiting.update(in_flight.values())
            return


waiting, connections = set(range(BLOCKS)), 0
while waiting:
    handle = connect()
    connections += 1
    serve_until_closed(handle, waiting)
handle.flush()
for number in range(BLOCKS):
    if handle.pread(BLOCK, number * BLOCK) != content(number):
        sys.exit(f"block {number} has other bytes")
print(f"{BLOCKS} blocks written and read, {connections} connections")
