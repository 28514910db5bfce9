#!/usr/bin/env python3
"""Usage: behind_tls.py PEM PORT PROGRAM ARGUMENT...

Listens on a free port of 127.0.0.1 with the certificate and key in PEM, and passes every connection
on to PORT without TLS. Meanwhile runs PROGRAM, and exits with its exit code. "TLS_PORT" in an
argument or in HF_ENDPOINT stands for the free port.
"""
import os
import select
import socket
import ssl
import subprocess
import sys
import threading


def pass_on(tls, plain):
    while True:
        ready = [tls] if tls.pending() else select.select([tls, plain], [], [])[0]
        for source in ready:
            data = source.recv(1 << 16)
            if not data:
                return
            (plain if source is tls else tls).sendall(data)


def serve(connection, context, port):
    try:
        with context.wrap_socket(connection, server_side=True) as tls, \
                socket.create_connection(("127.0.0.1", port)) as plain:
            pass_on(tls, plain)
    except OSError:
        pass  # a client that does not trust the certificate, or that ends early


def accept_all(listening, context, port):
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=serve, args=(connection, context, port), daemon=True).start()


def main():
    pem, port, *command = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept_all, args=(listening, context, int(port)), daemon=True).start()
    own = str(listening.getsockname()[1])
    environment = {name: value.replace("TLS_PORT", own) if name == "HF_ENDPOINT" else value
                   for name, value in os.environ.items()}
    command = [word.replace("TLS_PORT", own) for word in command]
    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


main()
