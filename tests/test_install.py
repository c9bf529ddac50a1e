"""The installation: pip's settings reach uv, pip installs where uv does not, and the log says why neither did."""

from __future__ import annotations

import importlib.util
import os
import re
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
TEMPORARY = Path("temporary")


@pytest.fixture(scope="module")
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", ROOT / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_later_sections_of_pips_configuration_win(install: ModuleType) -> None:
    listing = "\n".join(
        [
            ":env:.index-url='https://mirror.example/simple'",
            "download.index-url='https://other.example/simple'",
            "global.index-url='https://site.example/simple'",
            "global.cert='/etc/ca.pem'",
            "install.find-links='/wheels'",
        ]
    )
    settings = install.pip_settings(listing)
    assert settings == {"cert": "/etc/ca.pem", "find-links": "/wheels", "index-url": "https://mirror.example/simple"}


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ({"index-url": "https://m.example/simple"}, {"UV_DEFAULT_INDEX": "https://m.example/simple"}),
        (
            {"extra-index-url": "https://a.example\nhttps://b.example"},
            {"UV_INDEX": "https://a.example https://b.example"},
        ),
        ({"find-links": "/a /b"}, {"UV_FIND_LINKS": "/a,/b"}),
        ({"constraint": "/etc/c.txt"}, {"UV_CONSTRAINT": "/etc/c.txt"}),
        ({"trusted-host": "m.example n.example"}, {"UV_INSECURE_HOST": "m.example n.example"}),
        ({"cert": "/etc/ca.pem"}, {"SSL_CERT_FILE": "/etc/ca.pem"}),
        ({"cert": str(ROOT)}, {"SSL_CERT_DIR": str(ROOT)}),
        ({"client-cert": "/me.pem"}, {"SSL_CLIENT_CERT": "/me.pem"}),
        ({"proxy": "p.example:3128"}, {"HTTPS_PROXY": "http://p.example:3128", "HTTP_PROXY": "http://p.example:3128"}),
        ({"timeout": "90"}, {"UV_HTTP_TIMEOUT": "90"}),
        ({"cache-dir": "/scratch/pip"}, {"UV_CACHE_DIR": str(Path("/scratch/pip/uv"))}),
        ({"no-cache-dir": "true"}, {"UV_CACHE_DIR": "temporary"}),
        ({"no-cache-dir": "false"}, {}),
        ({"no-index": "1"}, {}),
        ({"progress-bar": "off"}, {}),
    ],
)
def test_settings_of_pip_have_counterparts(
    install: ModuleType, settings: dict[str, str], variables: dict[str, str]
) -> None:
    expected = {"UV_INDEX_STRATEGY": "unsafe-best-match", **variables}
    assert install.uv_environment(settings, {}, TEMPORARY) == expected


@pytest.mark.parametrize(("value", "options"), [("1", ["--no-index"]), ("true", ["--no-index"]), ("false", [])])
def test_uv_asks_no_index_where_pip_does_not(install: ModuleType, value: str, options: list[str]) -> None:
    assert install.uv_options({"no-index": value}) == options


def test_users_own_variables_of_uv_are_kept(install: ModuleType) -> None:
    own = {"UV_CACHE_DIR": "/mine", "REQUESTS_CA_BUNDLE": "/etc/site.pem", "HTTPS_PROXY": "http://old.example"}
    variables = install.uv_environment({"cache-dir": "/theirs", "proxy": "http://new.example"}, own, TEMPORARY)
    assert variables["UV_CACHE_DIR"] == "/mine"
    assert variables["SSL_CERT_FILE"] == "/etc/site.pem"
    assert variables["HTTPS_PROXY"] == "http://new.example"


def test_setting_that_uv_lacks_leaves_it_to_pip(install: ModuleType) -> None:
    with pytest.raises(LookupError, match="require-hashes"):
        install.uv_environment({"require-hashes": "true"}, {}, TEMPORARY)


def wheel(folder: Path, version: str) -> None:
    """Write the smallest wheel that both installers accept."""
    info = f"tiny-{version}.dist-info"
    files = {
        "tiny.py": f"version = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"tiny-{version}-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return a new environment that sees this one's pip and uv, beside a folder of wheels and a copy of install.py with a lock."""
    venv.create(tmp_path / "env", symlinks=True)
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (packages / "outer.pth").write_text(site.getsitepackages()[0], encoding="utf-8")
    (tmp_path / "wheels").mkdir()
    for version in ("1.0", "2.0"):
        wheel(tmp_path / "wheels", version)
    (tmp_path / "install.py").write_bytes((ROOT / "install.py").read_bytes())
    (tmp_path / "requirements.lock").write_text("tiny==1.0\n", encoding="utf-8")
    return tmp_path


def installed(folder: Path, **variables: str) -> tuple[int, str, str]:
    """Run the installation from the folder's wheels alone; return its status, what it printed and the version that is there then."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    offline = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "wheels")}
    python = str(folder / "env" / "bin" / "python")
    options = {
        "env": clean | offline | {"UV_CACHE_DIR": str(folder / "cache")} | variables,
        "text": True,
        "check": False,
    }
    done = subprocess.run([python, "install.py"], cwd=folder, capture_output=True, **options)  # type: ignore[call-overload]
    asked = subprocess.run([python, "-c", "import tiny; print(tiny.version)"], capture_output=True, **options)  # type: ignore[call-overload]
    return done.returncode, done.stdout + done.stderr, asked.stdout.strip()


@pytest.mark.parametrize(
    ("lock", "variables", "says"),
    [
        ("", {}, "Installed 1 package"),
        # What uv lacks, what it does not find, and where it is not to be had: pip installs instead.
        ("", {"PIP_ONLY_BINARY": ":all:"}, "only-binary"),
        ("", {"UV_FIND_LINKS": "nowhere"}, "uv did not succeed"),
        ("uv==0.0.1\n", {}, "uv is not to be had"),
    ],
)
def test_what_the_lock_pins_is_installed_by_uv_or_else_by_pip(
    environment: Path, lock: str, variables: dict[str, str], says: str
) -> None:
    with (environment / "requirements.lock").open("a", encoding="utf-8") as file:
        file.write(lock)
    status, printed, version = installed(environment, **variables)
    assert (status, version) == (0, "1.0")
    assert says in printed
    assert ("Installing collected packages" in printed) is (says != "Installed 1 package")
    assert re.search("tiny[=-]+1.0", (environment / "env" / "install.log").read_text(encoding="utf-8"))


def test_failure_shows_pips_error_and_the_log(environment: Path) -> None:
    (environment / "requirements.lock").write_text("tiny==3.0\n", encoding="utf-8")
    status, printed, version = installed(environment)
    assert (status, version) == (1, "")
    assert "tiny==3.0" in printed
    log = environment / "env" / "install.log"
    assert str(log) in printed
    assert "tiny==3.0" in log.read_text(encoding="utf-8")


def test_installation_outside_of_an_environment_is_refused() -> None:
    python = Path(sys.base_prefix) / "bin" / Path(sys.executable).name
    done = subprocess.run([str(python), str(ROOT / "install.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "make" in done.stdout
