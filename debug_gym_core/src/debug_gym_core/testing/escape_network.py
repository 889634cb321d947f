"""Probes of the way out: the host's network, its services, its sockets."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from debug_gym_core.sandbox.session import Session
from debug_gym_core.testing.inside import python
from debug_gym_core.testing.sandboxes import SandboxTests

# Tries to connect and to send; prints where it could. Families and kinds are numbers.
_CONNECT = """
    import json, socket
    reached = []
    for family, kind, address in addresses:
        try:
            with socket.socket(family, kind) as client:
                client.settimeout(3)
                client.connect(tuple(address) if isinstance(address, list) else address)
                client.send(b"x")
                reached.append(address)
        except OSError:
            pass
    print(json.dumps(reached))
"""

_TUNNELS = frozenset(("tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6tnl0", "ip6gre0"))
"""Interfaces that some kernels make in every network of its own; they are down."""

_SOCKETS = (
    *("/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock"),
    *("/run/podman/podman.sock", "/run/user/0/podman/podman.sock", "/run/user/1000/podman/podman.sock"),
    *("/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", "/run/user/1000/bus", "/run/user/0/bus"),
    *("/run/systemd/private", "/run/systemd/notify", "/run/systemd/journal/socket", "/run/systemd/journal/stdout"),
    *("/dev/log", "/run/snapd.socket", "/run/lvm/lvmpolld.socket", "/run/udev/control", "/tmp/.X11-unix/X0"),
    *("/run/libvirt/libvirt-sock", "/var/lib/lxd/unix.socket", "/run/nscd/socket", "/run/acpid.socket"),
)


class NetworkProbes(SandboxTests):
    """What code in the sandbox can connect to."""

    def test_services_on_the_hosts_loopback_are_out_of_reach(self, session: Session) -> None:
        """TCP and UDP, IPv4 and IPv6: nothing arrives."""
        with contextlib.ExitStack() as stack:
            servers: list[tuple[socket.socket, list[Any]]] = []
            for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                for kind in (int(socket.SOCK_STREAM), int(socket.SOCK_DGRAM)):
                    with contextlib.suppress(OSError):  # a machine without IPv6
                        server = stack.enter_context(socket.socket(family, kind))
                        server.bind((host, 0))
                        if kind == socket.SOCK_STREAM:
                            server.listen()
                        server.setblocking(False)
                        servers.append((server, [int(family), int(kind), list(server.getsockname())]))
            assert len(servers) >= 2
            with socket.create_connection(servers[0][0].getsockname(), timeout=5):
                servers[0][0].accept()[0].close()  # the service is there
            python(session, _CONNECT, addresses=[address for _, address in servers])
            for server, (_, kind, _) in servers:
                with pytest.raises(BlockingIOError):
                    server.accept() if kind == socket.SOCK_STREAM else server.recv(10)

    def test_there_is_no_way_into_a_network(self, session: Session) -> None:
        """No address of another machine, and none of this one, can be reached."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))  # sends nothing
            own = probe.getsockname()[0]
        hosts = ["192.0.2.1", "198.51.100.1", "10.0.0.1", "172.17.0.1", "192.168.0.1", "8.8.8.8", locals().get("own")]
        inet, stream, datagram = int(socket.AF_INET), int(socket.SOCK_STREAM), int(socket.SOCK_DGRAM)
        addresses = [[inet, kind, [host, 53]] for host in hosts if host for kind in (stream, datagram)]
        addresses.append([int(socket.AF_INET6), datagram, ["2001:db8::1", 53]])
        assert python(session, _CONNECT, addresses=addresses) == []

    def test_there_is_no_interface_but_loopback(self, session: Session) -> None:
        """And no route."""
        names, routes = python(
            session,
            """
            import json, socket
            try:
                routes = open("/proc/net/route").read().splitlines()[1:]
            except OSError:
                routes = []
            print(json.dumps([[name for _, name in socket.if_nameindex()], routes]))
            """,
        )
        assert set(names) - {"lo"} <= _TUNNELS
        assert routes == []

    def test_metadata_of_the_cloud_is_out_of_reach(self, session: Session) -> None:
        """The addresses that hand out a machine's credentials."""
        hosts = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192")
        addresses = [[int(socket.AF_INET), int(socket.SOCK_STREAM), [host, 80]] for host in hosts]
        addresses.append([int(socket.AF_INET6), int(socket.SOCK_STREAM), ["fd00:ec2::254", 80]])
        assert python(session, _CONNECT, addresses=addresses) == []

    def test_abstract_sockets_of_the_host_are_out_of_reach(self, session: Session) -> None:
        """They are in no file system, but in the network's namespace."""
        name = f"\0debug-gym-escape-{os.getpid()}"
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(name)
            server.listen()
            client.connect(name)  # the service is there
            unix = [int(socket.AF_UNIX), int(socket.SOCK_STREAM), name]
            assert python(session, _CONNECT, addresses=[unix]) == []

    def test_sockets_of_engines_and_buses_are_out_of_reach(self, session: Session, tmp_path: Path) -> None:
        """Docker's, containerd's, podman's, D-Bus's, the journal's; one that the test made; any that can be found."""
        own = str(tmp_path / "service")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(own)
            server.listen()
            Path(own).chmod(0o777)
            reached = python(
                session,
                """
                import json, os, socket, stat, sys
                for top in ("/run", "/var", "/tmp", "/home", "/root", "/srv", "/opt", "/mnt", "/dev", "/etc"):
                    for directory, _, names in os.walk(top):
                        for name in names:
                            path = os.path.join(directory, name)
                            try:
                                if stat.S_ISSOCK(os.lstat(path).st_mode):
                                    paths.append(path)
                            except OSError:
                                pass
                reached = []
                for path in paths:
                    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
                        with socket.socket(socket.AF_UNIX, kind) as client:
                            try:
                                client.connect(path)
                                reached.append(path)
                            except OSError:
                                pass
                print(json.dumps(reached))
                """,
                paths=[own, *_SOCKETS],
            )
        assert reached == []

    def test_raw_and_unusual_sockets_do_not_exist(self, session: Session) -> None:
        """Packet, raw, vsock and the many families of which the kernel has code; of netlink only routes."""
        opened = python(
            session,
            """
            import json, socket
            opened = []
            kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW)
            for family in range(64):
                for kind in kinds:
                    for protocol in range(24 if family == socket.AF_NETLINK else 1):
                        try:
                            socket.socket(family, kind, protocol).close()
                            opened.append([family, kind, protocol])
                        except OSError:
                            pass
            for protocol in (1, 6, 17, 58, 255):
                for family in (socket.AF_INET, socket.AF_INET6):
                    try:
                        socket.socket(family, socket.SOCK_RAW, protocol).close()
                        opened.append(["raw", family, protocol])
                    except OSError:
                        pass
            print(json.dumps(opened))
            """,
        )
        usual = {int(socket.AF_UNIX), int(socket.AF_INET), int(socket.AF_INET6)}
        raw, netlink = int(socket.SOCK_RAW), int(socket.AF_NETLINK)
        for family, kind, protocol in opened:
            if family == netlink:
                assert protocol == 0
            else:
                assert family in usual
                assert kind != raw or family == int(socket.AF_UNIX)
