"""Certificates and node keys for one federation, made when it starts and thrown away after it."""

import datetime
import hashlib
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID

_VALID = datetime.timedelta(days=2)


def write_authority(folder: Path, address: str) -> None:
    """Write ``ca.pem``, and ``server.pem`` and ``server.key`` that it signed for this address."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, server = (ec.generate_private_key(ec.SECP384R1()) for _ in range(2))
    issuer = _name("Agewise test authority")
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    root = (
        _certificate(issuer, issuer, authority.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), False)
        .sign(authority, hashes.SHA384())
    )
    names = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address(ip)) for ip in sorted({address, "127.0.0.1"})]
    )
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    leaf = (
        _certificate(_name("superlink"), issuer, server.public_key())
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(issued_by, critical=False)
        .sign(authority, hashes.SHA384())
    )
    (folder / "ca.pem").write_bytes(root.public_bytes(Encoding.PEM))
    (folder / "server.pem").write_bytes(leaf.public_bytes(Encoding.PEM))
    secret = server.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    _write_secret(folder / "server.key", secret)


def write_node_key(file: Path) -> str:
    """Write a node's private key, and its public one beside it; the id that the client will have.

    The id is the SHA-256 of the public key in the form in which the SuperLink keeps it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP384R1())
    _write_secret(file, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    public = key.public_key()
    file.with_suffix(".pub").write_bytes(
        public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    )
    kept = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(kept).hexdigest()


def _write_secret(file: Path, text: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(text)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _VALID)
    )
