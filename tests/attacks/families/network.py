"""Attacks that talk to somebody: all of them to listeners on this machine's loopback only."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

from __future__ import annotations

from ..attack import Attack, code

OUT = "a way to send out what it read, and to fetch help"

ATTACKS = (
    Attack(
        name="a TCP connection",
        story="Connects over TCP and sends a word.",
        wants=OUT,
        cells=(
            code("""
                import socket
                with socket.create_connection(("127.0.0.1", TCP), 2) as connection:
                    connection.sendall(MARK.encode())
            """),
        ),
    ),
    Attack(
        name="a datagram",
        story="Sends a datagram over UDP.",
        wants=OUT,
        cells=('import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendto(MARK.encode(), ("127.0.0.1", UDP))\n',),
    ),
    Attack(
        name="a question to a name server",
        story="Puts a word into the name that it asks a name server for.",
        wants="a way out that many networks leave open",
        cells=(
            code("""
                import socket, struct
                labels = b"".join(bytes([len(part)]) + part for part in (MARK.encode(), b"example", b"invalid")) + b"\\0"
                packet = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + struct.pack(">HH", 16, 1)
                socket.socket(type=socket.SOCK_DGRAM).sendto(packet, ("127.0.0.1", UDP))
            """),
        ),
    ),
    Attack(
        name="a request for a page",
        story="Asks for a page over HTTP, with a word in its address.",
        wants=OUT,
        cells=(
            code("""
                import urllib.request
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                opener.open(f"http://127.0.0.1:{TCP}/{MARK}", timeout=2).read()
            """),
        ),
    ),
    Attack(
        name="an abstract socket",
        story="Connects to a socket that has a name but no file, which no change of folders hides.",
        wants="a word with a service of the machine, such as its display or its bus",
        cells=(
            code("""
                import os, socket
                name = "tfcourse-" + COURSE.split("/")[-2]
                connection = socket.socket(socket.AF_UNIX)
                connection.connect("\\0" + ABSTRACT)
                connection.sendall(MARK.encode())
                connection.close()
            """),
        ),
    ),
    Attack(
        name="a named socket",
        story="Connects to a socket that lies as a file in a folder outside of its own.",
        wants="a word with a service of the machine, such as its container engine",
        cells=(
            code("""
                import socket
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(NAMED)
                connection.sendall(MARK.encode())
                connection.close()
            """),
        ),
    ),
    Attack(
        name="netlink",
        story="Opens a netlink socket and asks for the machine's routes and interfaces.",
        wants="a map of the network, and a large part of the kernel to attack",
        cells=(
            code("""
                import socket, struct
                link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
                link.bind((0, 0))
                link.send(struct.pack("=IHHII", 17, 18, 0x301, 1, 0) + b"\\0")
                if link.recv(65536):
                    won("talks to the kernel over netlink")
            """),
        ),
    ),
    Attack(
        name="raw packets",
        story="Opens sockets for raw packets and for whole frames.",
        wants="forged packets, and everybody else's",
        cells=(
            code("""
                import socket
                for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), (socket.AF_PACKET, socket.SOCK_RAW, 0)):
                    try:
                        socket.socket(family, kind, protocol).close()
                        won("opens a raw socket")
                    except OSError as error:
                        print(type(error).__name__)
            """),
        ),
    ),
    Attack(
        name="the grader's own ports",
        story="Looks in /proc/net for everything that listens on loopback, and knocks at the ports of kernels.",
        wants="a word with the kernels of other submissions",
        cells=(
            code("""
                import glob
                listening = set()
                for path in ("/proc/net/tcp", "/proc/net/tcp6"):
                    try:
                        lines = open(path).read().splitlines()[1:]
                    except OSError:
                        continue
                    listening |= {int(line.split()[1].split(":")[1], 16) for line in lines if line.split()[3] == "0A"}
                if TCP in listening:
                    won("sees who listens on the machine")
            """),
        ),
    ),
    Attack(
        name="another program's connection",
        story="Starts another program that connects, in case only Python is held back.",
        wants=OUT,
        cells=(
            code("""
                import subprocess
                subprocess.run(["bash", "-c", f"echo {MARK} > /dev/tcp/127.0.0.1/{TCP}"], timeout=3)
            """),
        ),
    ),
    Attack(
        name="PyTorch's own network",
        story="Opens a store of torch.distributed, whose sockets are made in C++.",
        wants=OUT,
        cells=(
            code("""
                from datetime import timedelta
                import torch.distributed as d
                try:
                    store = d.TCPStore("127.0.0.1", TCP, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=1))
                    store.set(MARK, MARK)
                    won("opens a store over the network")
                except Exception as error:
                    print(type(error).__name__)
            """),
        ),
    ),
    Attack(
        name="a server of its own",
        story="Listens on a port that is reachable from the grader's side, and tells it by a file.",
        wants="a door for somebody outside",
        cells=(
            code("""
                import socket
                server = socket.create_server(("127.0.0.1", 0))
                open(OUTSIDE + "/" + MARK, "w").write(str(server.getsockname()[1]))
            """),
        ),
    ),
)
