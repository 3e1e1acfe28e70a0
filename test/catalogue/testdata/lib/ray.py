"""Ray, as far as the template's program needs it: it counts the nodes of the stand-in's cluster, and calls functions here."""
import meet


def init(address):
    assert address == "auto"


def nodes():
    with open("/tmp/ray-address") as file:
        peer = meet.connect(meet.pair(file.read()))
    peer.sendall(b"nodes\n")
    return [{"Alive": True} for _ in peer.makefile().readline().split()]


def remote(**_):
    def wrap(function):
        function.remote = function
        return function

    return wrap


def get(values):
    return values
