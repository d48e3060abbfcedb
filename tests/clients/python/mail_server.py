"""A mail server for one test: aiosmtpd, with TLS and a login, on 127.0.0.1 at a free port.

    mail_server.py --ca FILE [--tls starttls|implicit|none] [--key ec|rsa] [--name NAME] [--echo]

It makes an authority and a certificate for NAME, and writes the authority's to FILE. Then it prints one JSON object a
line: {"port": …}, {"connected": true} for each connection, and each message with its envelope. It ends, with
{"end": true}, when its input does. The login is tools@example.com with the password of the variable SMTP_PASSWORD;
`--echo` repeats the password in the words that take a message. The recipient refused@example.com is refused.
"""

import argparse
import asyncio
import base64
import datetime
import json
import os
import ssl
import sys
import tempfile

from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

USER = "tools@example.com"
# The largest message it takes, in bytes.
SIZE_MAX = 200_000


def say(**members):
    print(json.dumps(members), flush=True)


def new_key(kind):
    return rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())


def certificate(name, key, issuer, issuer_key):
    """A certificate, or with no issuer an authority's."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer is not None:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return made.sign(issuer_key, hashes.SHA256())


def tls(given):
    authority_key, key = new_key(given.key), new_key(given.key)
    # No two have the same name: a certificate of another one has an issuer that nobody knows.
    authority = certificate(f"authority {x509.random_serial_number():x}", authority_key, None, authority_key)
    own = certificate(given.name, key, authority.subject, authority_key)
    with open(given.ca, "wb") as file:
        file.write(authority.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    plain = serialization.NoEncryption()
    with tempfile.NamedTemporaryFile() as file:
        file.write(own.public_bytes(serialization.Encoding.PEM))
        file.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
        file.flush()
        context.load_cert_chain(file.name)
    return context


class Handler:
    def __init__(self, echo):
        self.echo = echo

    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if address.startswith("refused@"):
            return "550 5.1.1 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, session, envelope):
        say(
            sender=envelope.mail_from,
            recipients=envelope.rcpt_tos,
            hello=session.host_name,
            login=session.authenticated,
            data=base64.b64encode(envelope.original_content).decode(),
        )
        return f"250 2.0.0 taken{', ' + os.environ['SMTP_PASSWORD'] if self.echo else ''}"


def authenticate(_server, _session, _envelope, mechanism, given):
    right = mechanism in ("PLAIN", "LOGIN") and given.login == USER.encode()
    return AuthResult(success=right and given.password == os.environ["SMTP_PASSWORD"].encode(), handled=False)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ca", required=True)
    parser.add_argument("--tls", choices=["starttls", "implicit", "none"], default="starttls")
    parser.add_argument("--key", choices=["ec", "rsa"], default="ec")
    parser.add_argument("--name", default="mail.example")
    parser.add_argument("--echo", action="store_true")
    given = parser.parse_args()
    context = tls(given)
    is_starttls = given.tls == "starttls"

    def connection():
        say(connected=True)
        return SMTP(
            Handler(given.echo),
            hostname=given.name,
            data_size_limit=SIZE_MAX,
            tls_context=context if is_starttls else None,
            require_starttls=is_starttls,
            auth_required=True,
            auth_require_tls=is_starttls,
            authenticator=authenticate,
        )

    loop = asyncio.get_running_loop()
    secure = context if given.tls == "implicit" else None
    server = await loop.create_server(connection, "127.0.0.1", 0, ssl=secure)
    say(port=server.sockets[0].getsockname()[1])
    await loop.run_in_executor(None, sys.stdin.read)
    say(end=True)


asyncio.run(main())
