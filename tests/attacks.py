#!/usr/bin/env python3
"""Attacks a running server while clients work: tests/attacks.py HOST PORT [SECONDS]

The server runs on this machine; user root has no password. Each phase prints the throughput of the clients, as a
ratio of that without an attack measured just before, and what the attack came to:

  flood      connections that close at once, as many a second as possible, up to 10,000
  half-open  5,000 connections that never answer the greeting
  passwords  1,000 logins with wrong passwords at once

The clients must keep at least half of their throughput, and a new client must be able to log in.
"""
import multiprocessing
import os
import resource
import selectors
import socket
import struct
import sys
import threading
import time

HOST, PORT = sys.argv[1], int(sys.argv[2])
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 5.0
CLIENTS = 2


def packet(sequence, payload):
    return struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload


def read_packet(stream):
    header = stream.recv(4, socket.MSG_WAITALL)
    if len(header) < 4:
        raise OSError("the server closed the connection")
    length = header[0] | header[1] << 8 | header[2] << 16
    return stream.recv(length, socket.MSG_WAITALL)


def log_in(user=b"root", proof=b""):
    """A session, or the number of the error."""
    stream = socket.create_connection((HOST, PORT), timeout=30)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    read_packet(stream)
    # CLIENT_PROTOCOL_41, CLIENT_SECURE_CONNECTION, CLIENT_PLUGIN_AUTH
    body = struct.pack("<IIB23x", 0x88200, 0, 45) + user + b"\0" + bytes([len(proof)]) + proof + b"mysql_native_password\0"
    stream.sendall(packet(1, body))
    answer, sequence = read_packet(stream), 3
    if answer[0] == 0xFE:
        stream.sendall(packet(sequence, b"wrong-password-proof"[: 20 if proof else 0]))
        answer = read_packet(stream)
    if answer[0] == 0xFF:
        stream.close()
        return struct.unpack("<H", answer[1:3])[0]
    if answer[0] == 1:
        stream.close()
        return 1045
    return stream


def work(results, until):
    stream, count = log_in(), 0
    query = packet(0, b"\x03SELECT 1")
    while time.monotonic() < until:
        stream.sendall(query)
        while True:
            answer = stream.recv(4096)
            if not answer:
                raise OSError("a served client was cut off")
            if len(answer) < 4096:
                break
        count += 1
    results.put(count)


def throughput(attack=None):
    """Statements a second of the clients while the attack runs, and what the attack returned."""
    results, outcome = multiprocessing.Queue(), multiprocessing.Queue()
    until = time.monotonic() + SECONDS
    workers = [multiprocessing.Process(target=work, args=(results, until)) for _ in range(CLIENTS)]
    attackers = [multiprocessing.Process(target=attack, args=(outcome, until))] if attack else []
    for process in workers + attackers:
        process.start()
    total = sum(results.get(timeout=SECONDS + 60) for _ in workers)
    answer = outcome.get(timeout=SECONDS + 60) if attack else None
    for process in workers + attackers:
        process.join()
    return total / SECONDS, answer


def flood(outcome, until):
    """Connections that close at once, at most 10,000 a second."""
    begun, count, start = time.monotonic(), 0, time.monotonic()
    while time.monotonic() < until:
        if count >= 10_000 * (time.monotonic() - begun):
            time.sleep(0.0005)
            continue
        stream = socket.socket()
        try:
            stream.connect((HOST, PORT))
            count += 1
        except OSError:
            pass
        stream.close()
    outcome.put(f"{count / (time.monotonic() - start):.0f} connections a second")


def half_open(outcome, until):
    """5,000 connections that never answer."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, max(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    streams = []
    for _ in range(5000):
        try:
            streams.append(socket.create_connection((HOST, PORT), timeout=5))
        except OSError:
            pass
    stream = log_in()
    if isinstance(stream, int):
        outcome.put(f"{len(streams)} half-open; a new client got error {stream}")
        return
    selector = selectors.DefaultSelector()
    closed = 0
    for half in streams:
        half.setblocking(False)
        selector.register(half, selectors.EVENT_READ)
    for key, _ in selector.select(0):
        try:
            data = key.fileobj.recv(4096)
            closed += not data or not key.fileobj.recv(1)
        except BlockingIOError:
            pass
        except OSError:
            closed += 1
    outcome.put(f"{len(streams)} half-open, {closed} of them displaced; a new client logged in")
    while time.monotonic() < until:
        time.sleep(0.1)


def passwords(outcome, until):
    """1,000 wrong passwords at once. The server delays its answers, and that of the new client."""
    errors = []

    def attempt():
        try:
            errors.append(log_in(b"root", b"wrong-password-proof"))
        except OSError as error:
            errors.append(str(error))

    # The clients log in first.
    time.sleep(0.5)
    for _ in range(1000):
        threading.Thread(target=attempt, daemon=True).start()
    while time.monotonic() < until:
        time.sleep(0.1)
    wrong, begun = sum(error == 1045 for error in list(errors)), time.monotonic()
    stream = log_in()
    result = f"got error {stream}" if isinstance(stream, int) else "logged in"
    outcome.put(f"{wrong} of 1000 refused with 1045; a new client {result} after {time.monotonic() - begun:.1f} s")


def main():
    failed = False
    for name, attack in [("flood", flood), ("half-open", half_open), ("passwords", passwords)]:
        before, _ = throughput()
        during, outcome = throughput(attack)
        ratio = during / before
        failed |= ratio < 0.5
        print(f"{name}: {outcome}; clients {before:.0f} -> {during:.0f} statements a second, ratio {ratio:.2f}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
