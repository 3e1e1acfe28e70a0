"""How the stand-ins of launchers meet: over TCP, at the addresses that they were given."""
import json
import socket
import time


def pair(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def connect(address):
    deadline = time.monotonic() + 120
    while True:
        try:
            return socket.create_connection(address, timeout=120)
        except OSError:  # the other task doesn't listen yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def at(address, rank, size):
    """Process 0 listens at the address, and the others connect. Returns the ranks that process 0 has met."""
    if rank:
        peer = connect(address)
        peer.sendall(f"{rank}\n".encode())
        return json.loads(peer.makefile().readline())
    with socket.create_server(address, backlog=size) as server:
        peers = [server.accept()[0] for _ in range(size - 1)]
    ranks = sorted([0] + [int(peer.makefile().readline()) for peer in peers])
    for peer in peers:
        peer.sendall((json.dumps(ranks) + "\n").encode())
    return ranks


def all(addresses, rank):
    """Each process listens at its own address, and connects to all others. Returns the ranks that this one has met."""
    with socket.create_server(addresses[rank], backlog=len(addresses)) as server:
        mine = [connect(address) for i, address in enumerate(addresses) if i != rank]
        for peer in mine:
            peer.sendall(f"{rank}\n".encode())
        return sorted([rank] + [int(server.accept()[0].makefile().readline()) for _ in mine])
