"""The expiry of certificates: of chains, of authorities, and of files that have none."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from gateway.config.named_files import WrittenPath
from gateway.config.nodes import KeyPath
from gateway.web.certificates import expiries, expiry


def certificate(folder: Path, name: str, end: str) -> str:
    """Return a new certificate in PEM that ends at `end`, such as 20300102030405Z."""
    file = folder / name
    for command in (
        ["req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
         "-keyout", f"{file}.key", "-out", f"{file}.csr"],
        ["ca", "-batch", "-selfsign", "-notext", "-config", str(authority(folder)),
         "-startdate", "20200101000000Z", "-enddate", end, "-create_serial",
         "-keyfile", f"{file}.key", "-in", f"{file}.csr", "-out", str(file)],
    ):  # fmt: skip
        subprocess.run(  # noqa: S603
            ["openssl", *command],  # noqa: S607
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
    return file.read_text()


def authority(folder: Path) -> Path:
    """Write the configuration of `openssl ca`, which alone takes the end of a certificate."""
    config = folder / "ca.cnf"
    (folder / "index.txt").write_text("")
    config.write_text(
        f"[ca]\ndefault_ca = own\n[own]\ndatabase = {folder}/index.txt\nnew_certs_dir = {folder}\n"
        f"default_md = sha256\nserial = {folder}/serial\npolicy = any\n"
        "unique_subject = no\n[any]\ncommonName = supplied\n"
    )
    return config


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("certificates")
    return certificate(folder, "near", "20300102030405Z"), certificate(
        folder,
        "far",
        "20550102030405Z",  # after 2049: GeneralizedTime
    )


NEAR, FAR = 1_893_553_445.0, 2_682_471_845.0


def test_a_chain_ends_with_its_first_and_authorities_with_their_last(
    chain: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "both.pem"
    file.write_text("text before\n" + "".join(chain))
    path = WrittenPath(file.name, str(file), "file")

    found = expiries(
        {
            ("web", "cert_file"): path,
            ("endpoints", "far", "tls", "ca_file"): path,
            ("archive", "path"): WrittenPath(file.name, str(file), "state"),
        }
    )

    assert found == {"web.cert_file": NEAR, "endpoints.far.tls.ca_file": FAR}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no certificate",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        b"\xfe\xed\xfe\xed\x00\x02",  # a keystore of Java
    ],
)
def test_a_file_without_a_certificate_is_left_out(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    paths: dict[KeyPath, WrittenPath] = {
        ("web", name): WrittenPath(name, str(tmp_path / name), "file")
        for name in ("file", "absent")
    }

    assert expiries(paths) == {}


def test_no_cut_of_a_certificate_raises_another_error(chain: tuple[str, str]) -> None:
    der = ssl.PEM_cert_to_DER_cert(chain[0])
    assert expiry(der) == NEAR
    for end in range(60):
        with pytest.raises(ValueError, match="no validity"):
            expiry(der[:end])
