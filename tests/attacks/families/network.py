"""Attacks that talk to somebody: all of them to listeners on this machine's loopback only."""

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
)
