"""A client by libnbd that connects again when it is closed, and then sends again all that was not
answered, as a guest's disk does. It writes so many blocks, every seventh by FUA, then flushes, reads
all, and says on standard output what it has seen. An answer that is an error ends it with status 1.
"""

import errno
import sys
import time

import nbd

URI, BLOCKS = sys.argv[1], int(sys.argv[2])
BLOCK, OUTSTANDING, PATIENCE_S = 4096, 32, 30


def content(number):
    return number.to_bytes(8, "big") * (BLOCK // 8)


def place(number):
    """Not behind one another: requests that merge are one for a cap."""
    return 2 * number * BLOCK


class Writes:
    def ask(self, handle, number):
        flags = nbd.CMD_FLAG_FUA if number % 7 == 0 else 0
        buffer = nbd.Buffer.from_bytearray(bytearray(content(number)))
        return handle.aio_pwrite(buffer, place(number), flags=flags)

    def check(self, number):
        pass


class Flush:
    def ask(self, handle, number):
        return handle.aio_flush()

    def check(self, number):
        pass


class Reads:
    def __init__(self):
        self.buffers = {}

    def ask(self, handle, number):
        self.buffers[number] = nbd.Buffer(BLOCK)
        return handle.aio_pread(self.buffers[number], place(number))

    def check(self, number):
        if self.buffers.pop(number).to_bytearray() != content(number):
            sys.exit(f"block {number} has other bytes")


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


def ask_until_closed(handle, kind, waiting):
    """Asks for what waits; returns when nothing does, or when the connection is gone."""
    in_flight = {}
    while waiting or in_flight:
        try:
            while waiting and len(in_flight) < OUTSTANDING:
                number = min(waiting)
                in_flight[kind.ask(handle, number)] = number
                waiting.remove(number)
            handle.poll(-1)
        except nbd.Error:
            # It is gone; what was answered before has been taken in.
            pass
        for cookie, number in list(in_flight.items()):
            try:
                if handle.aio_command_completed(cookie):
                    del in_flight[cookie]
                    kind.check(number)
            except nbd.Error as error:
                if error.errnum != errno.ENOTCONN:
                    sys.exit(f"number {number}: {error}")
                waiting.add(number)
                del in_flight[cookie]
        if handle.aio_is_dead() or handle.aio_is_closed():
            waiting.update(in_flight.values())
            return


handle, connections = connect(), 1
for kind, numbers in [(Writes(), range(BLOCKS)), (Flush(), range(1)), (Reads(), range(BLOCKS))]:
    waiting = set(numbers)
    ask_until_closed(handle, kind, waiting)
    while waiting:
        handle = connect()
        connections += 1
        ask_until_closed(handle, kind, waiting)
print(f"{BLOCKS} blocks written and read, {connections} connections")
